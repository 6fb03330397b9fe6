"""The command line: thin, the library under it does the work.

What is slow to import waits until a command needs it: every worker imports this module.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import autograder
from autograder.errors import WrongUse
from autograder.instructor import add_commands, roster_from
from autograder.sandbox import BUBBLEWRAP, NONE, NoSandbox, examine

WRONG_USE = 2
NO_SANDBOX = 3


def course_root(given: Path | None) -> Path:
    """The course's folder: as given, else this one, else where this package is developed."""
    if given is not None:
        return given
    here = Path.cwd()
    if (here / "lessons" / "course.toml").exists():
        return here
    return Path(autograder.__file__).resolve().parent.parent


def _build(arguments: argparse.Namespace) -> int:
    from autograder.build import build
    from autograder.course import Course

    course = Course.load(course_root(arguments.course))
    build(course, arguments.into or course.root, only=arguments.lesson)
    return 0


def _lint(arguments: argparse.Namespace) -> int:
    from autograder.course import Course
    from autograder.lint import lint

    course = Course.load(course_root(arguments.course))
    lessons = [course.lesson(name) for name in arguments.lesson] or list(course.lessons)
    found = [text for lesson in lessons for text in lint(lesson)]
    print("\n".join(found) or f"{len(lessons)} lessons: nothing to mend")
    return 1 if found else 0


def _new_class(arguments: argparse.Namespace) -> int:
    from autograder.course import Course
    from autograder.new_class import new_class

    course = Course.load(course_root(arguments.course))
    made = new_class(course, arguments.folder, roster=roster_from(arguments))
    print(f"The class is at {made.root}.")
    print(f"Hand out {made.root}/release/, collect into {made.root}/submitted/STUDENT/ASSIGNMENT/,")
    print(f"then run: autograder grade {arguments.folder}")
    return 0


def _grade(arguments: argparse.Namespace) -> int:
    from autograder.batch import grade_class
    from autograder.class_folder import ClassFolder
    from autograder.grades import read_entries, table
    from autograder.regrade import changes
    from autograder.regrade import table as changes_table

    folder = ClassFolder.open(arguments.folder)
    before = read_entries(folder.root / "grades.json")
    if arguments.sandbox == NONE:
        print("No sandbox: the submissions run as ordinary processes with your rights.")
    result = grade_class(
        folder,
        assignments=arguments.assignment,
        students=arguments.student,
        workers=arguments.workers,
        sandbox=arguments.sandbox,
        scheduler=arguments.scheduler,
        again=arguments.again,
        quiet=arguments.quiet,
    )
    if not result.verdicts:
        print(f"Nothing to grade in {folder.root}/submitted/STUDENT/ASSIGNMENT/.")
    else:
        print(result.summary)
        print()
        print(table(result.verdicts))
        print("* something is left to grade by hand")
        changed = changes(before, read_entries(folder.root / "grades.json"))
        if changed:
            print()
            print("points that are not what they were")
            print(changes_table(changed))
        elif arguments.again and before:
            print("no points changed")
        for verdict in sorted(result.verdicts, key=lambda one: one.key):
            if verdict.notes:
                who = f"{verdict.student} {verdict.graded.assignment}"
                print(f"graded, but {', '.join(verdict.notes)}: {who}")
        print()
        print(f"feedback pages  {folder.root}/feedback/STUDENT/ASSIGNMENT/")
        print(f"grades          {folder.root}/grades.csv and grades.json")
        print(f"gradebook       {folder.root}/gradebook.db (open it with `nbgrader formgrader`)")
    for name in result.strangers:
        print(
            f"not graded: submitted/{name} is no student's assignment; there are "
            f"{', '.join(folder.assignments)}",
            file=sys.stderr,
        )
    for verdict in result.not_judged:
        graded = verdict.graded
        print(f"not judged: {verdict.student} {graded.assignment}", file=sys.stderr)
        print(graded.reason, file=sys.stderr)
    return 1 if result.not_judged or result.strangers else 0


def _report(arguments: argparse.Namespace) -> int:
    import json

    from autograder.class_folder import ClassFolder
    from autograder.report import write_report

    folder = ClassFolder.open(arguments.folder)
    report = write_report(folder, names=arguments.names)
    if arguments.json:
        print(json.dumps(report.tree(), indent=1, ensure_ascii=False))
        return 0
    print(
        f"{_count(report.submissions, 'submission')}, {_count(report.students, 'student')}, "
        f"{len(report.need_an_eye)} need an eye, "
        f"{_count(len(report.misconceptions), 'misconception')} recognised."
    )
    print(f"page     {folder.root}/report.html{' (holds names)' if arguments.names else ''}")
    print(f"numbers  {folder.root}/report.csv")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    import json

    from autograder.visible_checks import as_lines, check_notebook, notebooks, summary

    found = []
    for path in notebooks(arguments.notebook, Path.cwd()):
        found.append(check_notebook(path, arguments.seconds))
        if not arguments.json:
            print("\n".join(as_lines(found[-1])), flush=True)
    passes = all(one.passes for one in found)
    if arguments.json:
        tree = {"passes": passes, "notebooks": [one.entry() for one in found]}
        print(json.dumps(tree, indent=1, ensure_ascii=False))
    else:
        print(f"\n{summary(found)}")
    return 0 if passes else 1


def _update(arguments: argparse.Namespace) -> int:
    import json
    from datetime import datetime

    from autograder.update import as_lines, plan

    found = plan(arguments.folder, arguments.release, datetime.now())
    if arguments.json:
        if not arguments.dry_run:
            found.carry_out()
        print(json.dumps(found.tree(), indent=1, ensure_ascii=False))
        return found.status
    if arguments.dry_run:
        said = [line for step in found.steps for line in as_lines(step)]
        print("\n".join([*said, *found.last_lines(dry_run=True)]))
        return found.status
    found.carry_out(lambda step: print("".join(f"{line}\n" for line in as_lines(step)), end=""))
    print("\n".join(found.last_lines(dry_run=False)))
    return found.status


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _doctor(arguments: argparse.Namespace) -> int:
    found = examine()
    if arguments.tier:
        print(BUBBLEWRAP if all(one.works for one in found) else NONE)
        return 0
    for one in found:
        print(
            f"{'yes' if one.works else 'NO '}  {one.name}{'' if one.works else ': ' + one.advice}"
        )
    if all(one.works for one in found):
        print("Student code is confined with bubblewrap when you grade on this machine.")
        return 0
    print("`autograder grade` refuses here, unless you trust the code and say --sandbox none.")
    return NO_SANDBOX


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(
        prog="autograder", description="Build, check and grade the attention course."
    )
    top.add_argument("--version", action="version", version=autograder.__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser(
        "build",
        help="make course/ and solutions/ from lessons/",
        description="Make build/source, course/ and solutions/ from lessons/.",
        epilog="example: autograder build --lesson 03",
    )
    one.add_argument("--course", type=Path, metavar="DIR", help="the course's folder")
    one.add_argument("--lesson", metavar="NAME", help="only this lesson, as 03 or its folder")
    one.add_argument("--into", type=Path, metavar="DIR", help="write there instead")
    one.set_defaults(run=_build)

    one = commands.add_parser(
        "new-class",
        help="make a class folder in nbgrader's layout",
        description="Make a class folder in nbgrader's layout, with every lesson released.",
        epilog="example: autograder new-class spring-class",
    )
    one.add_argument("folder", type=Path, metavar="DIR")
    one.add_argument("--course", type=Path, metavar="DIR", help="the course's folder")
    one.add_argument(
        "--roster", type=Path, metavar="FILE.csv", help="who is in it, as Moodle or Canvas lists it"
    )
    one.add_argument(
        "--column",
        action="append",
        metavar="OURS=THEIRS",
        help="which column of FILE.csv is our "
        "id, first_name, last_name, full_name, email, status or lms_id",
    )
    one.set_defaults(run=_new_class)

    one = commands.add_parser(
        "grade",
        help="grade what a class handed in",
        description="Grade DIR/submitted/STUDENT/ASSIGNMENT/NOTEBOOK.ipynb.",
        epilog="example: autograder grade spring-class --assignment 02-query-key-value. "
        "Exit status: 0 every submission has a verdict, 1 some could not be judged through no "
        "fault of theirs (each is named), 2 wrong use, 3 no sandbox.",
    )
    one.add_argument("folder", type=Path, metavar="DIR")
    one.add_argument("--assignment", action="append", metavar="NAME", help="only this one")
    one.add_argument("--student", action="append", metavar="ID", help="only this one")
    one.add_argument("--workers", type=_positive, metavar="N", help="how many at a time")
    one.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers grade instead"
    )
    one.add_argument(
        "--sandbox",
        choices=["auto", BUBBLEWRAP, NONE],
        default="auto",
        help="how student code is confined; none only for code you trust",
    )
    one.add_argument(
        "--again", action="store_true", help="grade also what did not change since an earlier run"
    )
    one.add_argument("--quiet", action="store_true", help="print the result only")
    one.set_defaults(run=_grade)

    one = commands.add_parser(
        "report",
        help="say what a class got right and wrong",
        description="Write DIR/report.html and DIR/report.csv from DIR/grades.json: points by "
        "exercise, which exercises separate strong from weak, misconceptions, time-outs and "
        "crashes, and the submissions that need an eye. Students are numbered, not named.",
        epilog="example: autograder report spring-class --names. "
        "Exit status: 0 written, 2 wrong use, such as a class that was not graded.",
    )
    one.add_argument("folder", type=Path, metavar="DIR")
    one.add_argument(
        "--names", action="store_true", help="say who is who, and quote flags as they are"
    )
    one.add_argument("--json", action="store_true", help="print all numbers, as JSON")
    one.set_defaults(run=_report)

    one = commands.add_parser(
        "lint",
        help="find the mistakes that authors of exercises make",
        description="Look at the exercises, tests and catalogues of lessons/.",
        epilog="example: autograder lint 03. Exit status: 0 nothing found, 1 something found, "
        "2 wrong use.",
    )
    one.add_argument("lesson", nargs="*", metavar="LESSON", help="as 03 or its folder; all else")
    one.add_argument("--course", type=Path, metavar="DIR", help="the course's folder")
    one.set_defaults(run=_lint)

    one = commands.add_parser(
        "check",
        help="say which visible checks pass in your own notebooks",
        description="Run notebooks of the course in a fresh kernel, without their demonstrations, "
        "and say which visible checks pass. It is your own code on your own machine: it runs "
        "without a sandbox. No notebook is written.",
        epilog="example: autograder check 03-scaled-dot-product-attention. "
        "Exit status: 0 all visible checks pass, 1 some do not or a notebook cannot be read, "
        "2 wrong use.",
    )
    one.add_argument(
        "notebook",
        nargs="*",
        type=Path,
        metavar="NOTEBOOK",
        help="a notebook or a folder; else all lessons of the course folder you are in",
    )
    one.add_argument(
        "--seconds", type=_positive, default=60, metavar="N", help="a cell may take (default 60)"
    )
    one.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    one.set_defaults(run=_check)

    one = commands.add_parser(
        "update",
        help="take a new release of the course and keep your work",
        description="Copy a new release of the course into your course folder. What you wrote is "
        "carried over into the new notebooks; a file that you changed is first set aside beside "
        "the new one. Nothing is deleted. Close the notebooks in JupyterLab before.",
        epilog="example: autograder update course --from Downloads/course --dry-run. "
        "Exit status: 0 the release was taken whole, 1 a file of yours had to stay as it is (it "
        "is named), 2 wrong use.",
    )
    one.add_argument("folder", type=Path, metavar="COURSE_DIR", help="with your work")
    one.add_argument(
        "--from",
        dest="release",
        type=Path,
        metavar="NEW_COURSE_DIR",
        required=True,
        help="the new release, untouched",
    )
    one.add_argument("--dry-run", action="store_true", help="say what would happen, do nothing")
    one.add_argument("--json", action="store_true", help="print what happens as JSON")
    one.set_defaults(run=_update)

    one = commands.add_parser(
        "doctor",
        help="say how student code can be confined on this machine",
        description="Try each protection of the sandbox and say what to install or allow.",
        epilog="example: autograder doctor",
    )
    one.add_argument("--tier", action="store_true", help="print bubblewrap or none, nothing else")
    one.set_defaults(run=_doctor)

    add_commands(commands, _grade)
    return top


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("should be at least 1")
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit status; see ``autograder COMMAND --help``.
    """
    arguments = parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except WrongUse as error:
        print(f"autograder: {error}", file=sys.stderr)
        return WRONG_USE
    except NoSandbox as error:
        print(f"autograder: {error}", file=sys.stderr)
        return NO_SANDBOX
    return status


if __name__ == "__main__":
    sys.exit(main())
