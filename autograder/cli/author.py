"""The commands of who writes lessons: lint, trial, measure, inputs.

Those with which a course begins are in :mod:`autograder.cli.beginning`, and what makes of it what
students get in :mod:`autograder.cli.building`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.cli.options import (
    COUNT,
    PATH,
    Group,
    changed_option,
    command,
    course_at,
    course_option,
    exercise_option,
    exercises_of,
    json_option,
    lessons_argument,
    lessons_of,
    print_json,
)
from autograder.errors import WrongUse

if TYPE_CHECKING:
    from autograder.course.lessons import Lesson


@command(example="03", statuses={0: "nothing found", 1: "something found"})
@lessons_argument
@exercise_option
@changed_option
@course_option
@json_option("print what was found as JSON")
def lint(
    *,
    lesson: tuple[str, ...],
    exercise: tuple[str, ...],
    changed: bool,
    course: Path | None,
    as_json: bool,
) -> int:
    """Find the mistakes that authors of exercises make.

    Looks at the exercises, tests and catalogues of lessons/.
    """
    its_course = course_at(course)
    chosen: dict[Lesson, list[str]] = {}
    for its_lesson, name in exercises_of(its_course, lesson, exercise, changed=changed):
        chosen.setdefault(its_lesson, []).append(name)
    lessons = list(chosen)
    remarks: list[str] = []
    if chosen:  # what looks at exercises takes seconds to import
        from autograder.authors import lint as linting
        from autograder.authors.translating import remarks as of_translations

        remarks = [text for lesson, names in chosen.items() for text in linting.lint(lesson, names)]
        remarks += [] if lesson or exercise else of_translations(its_course)
    if as_json:
        print_json({"lessons": [lesson.folder for lesson in lessons], "found": remarks})
    else:
        print("\n".join(remarks) or f"{len(lessons)} lessons: nothing to mend")
    return 1 if remarks else 0


@command(
    example="02 --execute figures",
    statuses={0: "all tests do what they should", 1: "some do not (each is named)"},
)
@lessons_argument
@exercise_option
@changed_option
@click.option("--anew", is_flag=True, help="compute everything again, whatever is kept")
@click.option("--seeds", type=COUNT, metavar="N", help="try right answers on so many inputs")
@click.option(
    "--execute", type=PATH, metavar="DIR", help="also run all of it; notebook and figures go there"
)
@course_option
def trial(
    *,
    lesson: tuple[str, ...],
    exercise: tuple[str, ...],
    changed: bool,
    anew: bool,
    seeds: int | None,
    execute: Path | None,
    course: Path | None,
) -> int:
    """Try a lesson's tests while writing it.

    The solution and every alternative must pass; every misconception must fail a test of its
    exercise, and of no exercise that does not build on it, and most must get their own sentence
    on other inputs; answers that ignore the question must earn nothing. What held is written into
    the lesson's lock. No sandbox: it is your own code.
    """
    from autograder.authors import trial as trying

    chosen = exercises_of(course_at(course), lesson, exercise, changed=changed)
    if execute is not None:
        for its_lesson in dict.fromkeys(its_lesson for its_lesson, _ in chosen):
            folder = execute if len(lesson) == 1 else execute / its_lesson.folder
            seconds = trying.execute(its_lesson, folder)
            print(f"{its_lesson.folder}: {seconds:.1f} processor seconds, see {folder}")
    tried: dict[Lesson, list[trying.Tried]] = {}
    for its_lesson, result in trying.try_all(chosen, range(1, (seeds or 0) + 1), anew=anew):
        tried.setdefault(its_lesson, []).append(result)
        print(trying.row(its_lesson, result), flush=True)
    complaints = [
        f"{its_lesson.folder} {text}"
        for its_lesson, results in tried.items()
        for text in trying.complaints(its_lesson, results)
    ]
    print("\n".join(complaints) or f"{len(chosen)} exercises: all tests do what they should")
    return 1 if complaints else 0


@command(
    example="02 --seeds 5",
    statuses={
        0: "every wrong answer is rejected, every right one accepted, 95 % of the wrong named",
        1: "not so (each is named)",
    },
)
@lessons_argument
@exercise_option
@click.option(
    "--seeds",
    type=COUNT,
    default=5,
    metavar="N",
    help="how many random inputs to try",
)
@course_option
def mutants(
    *, lesson: tuple[str, ...], exercise: tuple[str, ...], seeds: int, course: Path | None
) -> int:
    """Say which wrong answers are rejected and named.

    Counts known wrong answers that are rejected and get their own sentence, right ones that are
    accepted, and small mechanical changes of the solution that are accused falsely.
    """
    from autograder.authors.mutation_score import HEAD, Counted, count, told_of_unseen

    chosen = exercises_of(course_at(course), lesson, exercise)
    total = Counted("all")
    remarks: list[str] = []
    print("Counts are over all seeds; mutants are small changes of the solution.\n" + HEAD)
    for its_lesson, name in chosen:
        if name.startswith("answer_"):
            continue
        counted = count(its_lesson, name, range(101, 101 + seeds), unseen=True)
        print(counted.row(), flush=True)
        total.add(counted)
        remarks += [f"{its_lesson.folder} {name}: {text}" for text in counted.remarks]
    print(total.row())
    if total.unseen:
        print(told_of_unseen(total))
    print("\n".join(remarks))
    return 0 if total.good_enough else 1


@command(example="02 --all", statuses={0: "measured"})
@lessons_argument
@click.option("--seed", type=int, default=101, metavar="N", help="of the random inputs")
@click.option("--all", "each", is_flag=True, help="print each mistake too, the dearest first")
@course_option
def lost_points(*, lesson: tuple[str, ...], seed: int, each: bool, course: Path | None) -> int:
    """Say what one mistake costs of an exercise's points.

    Each misconception goes through the tests of its exercise; counted is the share of the
    exercise's points that it loses. A teaching assistant gives 40 to 70 % back for one mistake.
    """
    from autograder.authors.lost_points import HEAD, row, shares_lost
    from autograder.diagnose.catalogue import entries
    from autograder.diagnose.matrix import Matrix

    lessons = lessons_of(course_at(course), lesson)
    every: list[float] = []
    print(HEAD)
    for its_lesson in lessons:
        for exercise in entries(its_lesson):
            with Matrix(its_lesson) as matrix:
                shares = shares_lost(matrix, exercise, seed)
            print(row(exercise, list(shares.values())), flush=True)
            every += shares.values()
            if each:
                for name, share in sorted(shares.items(), key=lambda pair: -pair[1]):
                    print(f"    {share:4.0%}  {name}")
    print(row("all", every))
    return 0


@command(example="04", statuses={0: "printed"})
@lessons_argument
@click.option("--seed", type=int, default=101, metavar="N", help="of the random inputs")
@course_option
def inputs(*, lesson: tuple[str, ...], seed: int, course: Path | None) -> int:
    """Print what the inputs of a lesson's tests are, and what they never are.

    A wrong answer keeps its points where no test hands it an input on which it is wrong. Every call
    of an exercise's own answer is counted, argument by argument.
    """
    from autograder.authors.inputs import inputs as inputs_of

    for its_lesson in lessons_of(course_at(course), lesson):
        for called, arguments in inputs_of(its_lesson, seed).items():
            print(called)
            for name, argument in arguments.items():
                print("\n".join(argument.lines(name)), flush=True)
    return 0


@command(example="03", statuses={0: "measured"})
@lessons_argument
@click.option("--seed", type=int, default=101, metavar="N", help="of the random inputs")
@course_option
def spoiled(*, lesson: tuple[str, ...], seed: int, course: Path | None) -> int:
    """Find inputs that tests hand over without looking at the results.

    The right answer's result is spoiled for inputs of one kind, kind by kind: a test should fail.
    Printed are the kinds for which all tests pass.
    """
    from autograder.authors.fault_injection import spoiled as spoiled_of

    met = noticed = 0
    for its_lesson in lessons_of(course_at(course), lesson):
        for of_exercise in spoiled_of(its_lesson, seed):
            print(of_exercise.text(), flush=True)
            met += len(of_exercise.met)
            noticed += len(of_exercise.met) - len(of_exercise.unnoticed)
    print(f"in all: {noticed} of {met} kinds of inputs, {noticed / max(met, 1):.1%}")
    return 0


@command(example="02", statuses={0: "measured"})
@lessons_argument
@exercise_option
@click.option("--seed", type=int, default=101, metavar="N", help="of the random inputs")
@course_option
def repairs(
    *, lesson: tuple[str, ...], exercise: tuple[str, ...], seed: int, course: Path | None
) -> int:
    """Count where a small change of a wrong answer is found that mends it.

    Each known wrong answer is looked up without its own sentence; where nothing else explains it,
    the search runs as when grading.
    """
    from autograder.authors.repairs import HEAD, Searches, searches

    chosen = [
        (its_lesson, name)
        for its_lesson, name in exercises_of(course_at(course), lesson, exercise)
        if not name.startswith("answer_")
    ]
    every: list[Searches] = []
    print(HEAD)
    for of_exercise in searches(chosen, seed):
        print(of_exercise.row(), flush=True)
        every.append(of_exercise)
    print(
        f"in all: {sum(each.mended for each in every)} of "
        f"{sum(each.searched for each in every)} mended; "
        f"{sum(each.searched > 0 == each.mended for each in every)} exercises where none ever is"
    )
    return 0


@command(example="others-answers 02", statuses={0: "printed"})
@click.argument(
    "folder", type=PATH, metavar="DIR", help="holds LESSON/EXERCISE/NAME.py, one answer a file"
)
@lessons_argument
@click.option("--only", type=click.Choice(["box", "graded"]), help="what is tried; both else")
@course_option
def answers(*, folder: Path, lesson: tuple[str, ...], only: str | None, course: Path | None) -> int:
    """Print what students read of answers that others wrote.

    Each answer is put into the solved lesson; its first line may say in a comment what is wrong.
    Its visible check runs in a kernel, beside what lies beside a released notebook, and the
    notebook is graded.
    """
    from autograder.authors import trial_answers as trying

    if not folder.is_dir():
        raise WrongUse(f"{folder} is no folder; name the one that holds LESSON/EXERCISE/NAME.py")
    for its_lesson in lessons_of(course_at(course), lesson):
        tried = trying.answers(folder, its_lesson)
        with tempfile.TemporaryDirectory() as scratch:
            if tried and only != "graded":
                trying.in_a_notebook(its_lesson, tried, Path(scratch))
        with tempfile.TemporaryDirectory() as scratch:
            if tried and only != "box":
                trying.when_graded(its_lesson, tried, Path(scratch))
        for answer in tried:
            print(answer.text(), flush=True)
    return 0


@command(example="02", statuses={0: "measured"})
@lessons_argument
@course_option
def spare(*, lesson: tuple[str, ...], course: Path | None) -> int:
    """Name the known mistakes without which nothing less is told, and no check less fails."""
    from autograder.authors.spare import spare as spare_in

    for its_lesson in lessons_of(course_at(course), lesson):
        for text in spare_in(its_lesson):
            print(f"{its_lesson.folder} {text}", flush=True)
    return 0


@command(example="02", statuses={0: "measured"})
@lessons_argument
@click.option("--write", is_flag=True, help="into the headers of the lesson's source")
@course_option
def seconds(*, lesson: tuple[str, ...], write: bool, course: Path | None) -> int:
    """Run a lesson's cells, and print the processor seconds that they take with one thread.

    A page says before a cell runs that it takes long, where its header has seconds=20.
    """
    from autograder.authors.seconds import FEWEST, seconds_of, write_seconds

    for its_lesson in lessons_of(course_at(course), lesson):
        taken = seconds_of(its_lesson)
        long = ", ".join(f"{one:.1f}" for one in taken if one >= FEWEST)
        print(
            f"{its_lesson.folder}: {sum(taken):.0f} s; {FEWEST} s or more: {long or 'none'}",
            flush=True,
        )
        if write:
            write_seconds(its_lesson.source_path, taken)
    return 0


measure = Group(
    "measure",
    commands=[mutants, lost_points, repairs, spoiled, spare, answers, seconds],
    short_help="Measure the tests, the diagnoses and the cells of the course",
    help="Measure the tests, the diagnoses and the cells of the course.",
)
