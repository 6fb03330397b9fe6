"""What a submission costs: ``nbgrader autograde`` against ``autograder grade``.

``python -m bench.against_nbgrader`` grades the same submissions with both, in turn, round
after round. nbgrader runs in a class of its own on the same source notebooks, in two ways: as it
comes, but for a larger timeout, when it executes demonstrations too (cells that train a model
or draw a figure); and with five lines of settings that leave them out (nbconvert's
``TagRemovePreprocessor``), as anyone would who grades this course with it. The second is the
fair comparison.

Both take seconds to start, once a run, which says little about a class of many. So
``autograder grade`` also grades a class several times as large, made up in the same way; the
difference of the two runs is what each further submission costs.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook

from autograder.classroom.folder import ClassFolder
from autograder.course.lessons import Course, Lesson
from autograder.notebooks import DEMONSTRATION, tags
from bench.markdown import table
from bench.meter import CommandFailed, Cost, how, measure
from bench.submissions import hand_in, handed_in, make_class, student

#: A stock class; the only setting is a timeout that training does not exceed.
_STOCK = """\
c = get_config()
c.CourseDirectory.course_id = "stock"
c.Execute.timeout = 1800
"""

#: The same, and demonstrations are left out before anything is executed.
_TUNED = f"""{_STOCK}
from nbconvert.preprocessors import TagRemovePreprocessor
from nbgrader.converters import Autograde
usual = Autograde.autograde_preprocessors.default()
c.Autograde.autograde_preprocessors = [TagRemovePreprocessor, *usual]
c.TagRemovePreprocessor.enabled = True
c.TagRemovePreprocessor.remove_cell_tags = {{{DEMONSTRATION!r}}}
"""

_BIN = Path(sys.executable).parent
_COMMAND = shlex.join(["python", "-m", "bench.against_nbgrader", *sys.argv[1:]])


@dataclass(frozen=True)
class Run:
    """What one round of a contender cost, all submissions together."""

    processor: float
    wall: float
    memory: float = 0.0
    worker: float = 0.0


@dataclass
class Contender:
    """One way to grade the submissions, and what each round of it cost."""

    name: str
    count: int
    grade: Callable[[], Run]
    runs: list[Run] = field(default_factory=list)

    def processor(self) -> float:
        """Processor seconds of a round: the median."""
        return statistics.median(run.processor for run in self.runs)

    def wall(self) -> float:
        """Seconds of a round: the median."""
        return statistics.median(run.wall for run in self.runs)


def main() -> None:
    """Measure and print a table."""
    asked = _arguments()
    course = Course.load(asked.course)
    lessons = [course.lesson(name) for name in asked.lesson]
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        root = Path(scratch)
        print("Making the classes", file=sys.stderr)
        ours = make_class(course, root / "ours", lessons)
        large = make_class(course, root / "large", lessons)
        stock = _nbgrader_class(ours, root / "stock", _STOCK)
        tuned = _nbgrader_class(ours, root / "tuned", _TUNED)
        for lesson in lessons:
            released = ours.root / "release" / lesson.folder
            for number in range(asked.submissions * asked.times):
                notebook = handed_in(lesson, released, number)
                below = Path("submitted", student(number), lesson.folder)
                hand_in(notebook, released, large.root / below)
                if number < asked.submissions:
                    hand_in(notebook, released, ours.root / below)
                    hand_in(notebook, released, stock / below)
                    hand_in(notebook, released, tuned / below)
        # One random input for both classes, so that the same notebooks are the same work.
        shutil.copy(ours.root / "class.toml", large.root / "class.toml")
        grade = partial(_autograder, sandbox=asked.sandbox)
        small = asked.submissions * len(lessons)
        more = small * asked.times
        contenders = {
            "stock": Contender("nbgrader autograde", small, partial(_nbgrader, stock, lessons)),
            "tuned": Contender(
                "nbgrader autograde, told to leave demonstrations out",
                small,
                partial(_nbgrader, tuned, lessons),
            ),
            "start": Contender(
                "start of nbgrader autograde", 0, partial(_nbgrader, tuned, lessons, again=False)
            ),
            "one": Contender("autograder grade --workers 1", small, partial(grade, ours.root, 1)),
            "two": Contender("autograder grade --workers 2", small, partial(grade, ours.root, 2)),
            "one large": Contender(
                "autograder grade --workers 1", more, partial(grade, large.root, 1)
            ),
            "two large": Contender(
                "autograder grade --workers 2", more, partial(grade, large.root, 2)
            ),
            "bare": Contender(
                "bare exec of the graded cells, nothing else", more, partial(_bare, large.root)
            ),
        }
        if asked.fair:
            del contenders["stock"]
        for number in range(asked.rounds):
            for contender in contenders.values():
                run = contender.grade()
                contender.runs.append(run)
                print(
                    f"round {number + 1} of {asked.rounds}: {contender.name} ({contender.count}): "
                    f"{run.processor:.1f} processor seconds, {run.wall:.1f} s",
                    file=sys.stderr,
                )
        if _demonstrations_executed(tuned, lessons):
            raise CommandFailed("nbgrader executed demonstrations that it was told to leave out")
        same, compared = _same_points(ours, tuned)
        if not asked.fair:
            _same_points(ours, stock)
            executed = _demonstrations_executed(stock, lessons)
    print(_report(contenders, asked))
    if not asked.fair:
        print(f"\nnbgrader as it comes executed {executed} demonstrations in the last round.")
    print(
        f"\nOf {compared} submissions {same} got the same points from both; for wrong answers they "
        "may differ, because `autograder grade` does not let one mistake cost the exercises that "
        "build on it."
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure a submission's cost; see README.md.")
    parser.add_argument("--quick", action="store_true", help="2 submissions a lesson, one round")
    parser.add_argument("--fair", action="store_true", help="not nbgrader as it comes: it is slow")
    parser.add_argument("--submissions", type=int, default=6, help="of each lesson")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=10, help="how much larger the larger class is")
    parser.add_argument("--lesson", action="append", help="such as 02; all when not given")
    parser.add_argument("--course", type=Path, default=Path())
    parser.add_argument("--sandbox", default="auto", help="as for autograder grade")
    asked = parser.parse_args()
    if asked.quick:
        asked.submissions, asked.rounds = 2, 1
    asked.lesson = asked.lesson or [one.folder for one in Course.load(asked.course).lessons]
    return asked


def _nbgrader_class(ours: ClassFolder, root: Path, settings: str) -> Path:
    """A class that knows nothing of this package: the same sources, nbgrader's own commands."""
    shutil.copytree(ours.root / "source", root / "source")
    (root / "nbgrader_config.py").write_text(settings, encoding="utf-8")
    for assignment in ours.assignments:
        _run([str(_BIN / "nbgrader"), "generate_assignment", assignment], root)
    return root


def _run(command: list[str], folder: Path) -> tuple[Cost, str]:
    # nbgrader calls alembic and python by name
    path = {"PATH": os.pathsep.join([str(_BIN), os.environ.get("PATH", os.defpath)])}
    return measure(command, folder, environment=path)


def _nbgrader(root: Path, lessons: list[Lesson], again: bool = True) -> Run:
    """One command a lesson, as nbgrader wants it; what is graded already is passed over."""
    costs = []
    for lesson in lessons:
        command = [str(_BIN / "nbgrader"), "autograde", lesson.folder]
        costs.append(_run([*command, *(["--force"] if again else [])], root)[0])
    return Run(
        sum(cost.processor for cost in costs),
        sum(cost.wall for cost in costs),
        max(cost.mib for cost in costs),
    )


def _autograder(root: Path, workers: int, sandbox: str) -> Run:
    command = [str(_BIN / "autograder"), "grade", str(root), "--workers", str(workers)]
    cost, _ = _run([*command, "--again", "--quiet", "--sandbox", sandbox], root)
    return Run(cost.processor, cost.wall, cost.mib, cost.worker_mib)


def _bare(root: Path) -> Run:
    here = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "bench.bare", str(root)]
    one_thread = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}  # as in a box
    _, said = measure(command, here, environment=one_thread)
    found = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return Run(sum(one["processor"] for one in found), sum(one["wall"] for one in found))


def _demonstrations_executed(root: Path, lessons: list[Lesson]) -> int:
    """How many demonstration cells nbgrader executed; an unfair comparison is refused."""
    executed = 0
    for lesson in lessons:
        for path in (root / "autograded").glob(f"*/{lesson.folder}/*.ipynb"):
            for cell in nbformat.read(path, as_version=4).cells:
                if cell.cell_type != "code" or not cell.source.strip():
                    continue
                if cell.get("execution_count") is None:
                    raise CommandFailed(f"{path}: nbgrader did not execute {cell.source[:60]!r}")
                executed += DEMONSTRATION in tags(cell)
    return executed


def _same_points(ours: ClassFolder, other: Path) -> tuple[int, int]:
    """How many submissions got the same points from both, of how many; solved ones must.

    Raises:
        CommandFailed: a solved notebook has other points, so different things were measured.
    """
    same = compared = 0
    verdicts = json.loads((ours.root / "grades.json").read_text(encoding="utf-8"))["submissions"]
    with Gradebook(f"sqlite:///{other / 'gradebook.db'}") as gradebook:
        for verdict in verdicts:
            found = gradebook.find_submission(verdict["assignment"], verdict["student"])
            agree = found.score == verdict["score"]
            if not agree and int(verdict["student"].rpartition("-")[2]) % 3 == 0:
                raise CommandFailed(
                    f"{verdict['student']}'s solved {verdict['assignment']} has {found.score} "
                    f"points from nbgrader and {verdict['score']} from autograder"
                )
            same += agree
            compared += 1
    return same, compared


def _report(contenders: dict[str, Contender], asked: argparse.Namespace) -> str:
    rows: list[list[str | float]] = [
        [
            one.name,
            str(one.count),
            one.processor() / one.count,
            one.wall() / one.count,
            max(run.memory for run in one.runs) or "",
        ]
        for one in contenders.values()
        if one.count
    ]
    head = ["", "submissions", "processor s a submission", "wall s a submission", "peak MiB"]
    start = contenders["start"]
    others = [contenders[key] for key in ("tuned", "stock") if key in contenders]
    one, two, bare = (contenders[key] for key in ("one", "two", "bare"))
    one_large, two_large = contenders["one large"], contenders["two large"]
    further = (one_large.processor() - one.processor()) / (one_large.count - one.count)
    further_wall = (two_large.wall() - two.wall()) / (two_large.count - two.count)
    limit = bare.processor() / bare.count
    compared = ["times better than"]
    for other in others:
        compared += [
            f"{other.name}, {one.count} submissions with the start",
            f"{one_large.count} with the start",
            "each further submission",
        ]
    times = one_large.count / one.count
    ratios: list[list[str | float]] = [
        [
            "throughput, 2 workers against its 1",
            *(
                ratio
                for other in others
                for ratio in (
                    other.wall() / two.wall(),
                    _scaled(start.wall(), other.wall(), times) / two_large.wall(),
                    # Less than the cores can do: the load of the machine changed in between.
                    (other.wall() - start.wall()) / other.count / further_wall
                    if further_wall * 2 > further
                    else "lost in noise",
                )
            ),
        ],
        [
            "processor seconds, 1 worker",
            *(
                ratio
                for other in others
                for ratio in (
                    other.processor() / one.processor(),
                    _scaled(start.processor(), other.processor(), times) / one_large.processor(),
                    (other.processor() - start.processor()) / other.count / further,
                )
            ),
        ],
    ]
    workers = [run.worker for key in ("one", "two") for run in contenders[f"{key} large"].runs]
    return "\n".join(
        [
            f"Command: `{_COMMAND}`. Medians of {asked.rounds} rounds; processor seconds "
            f"counted {how()}; load of the machine's {os.cpu_count()} cores at the end: "
            f"{os.getloadavg()[1]:.1f}.",
            "",
            table(head, rows),
            "",
            table(compared, ratios),
            "",
            f"Each further submission costs {further:.3f} processor seconds. Executing its graded "
            f"cells takes {limit:.3f}; 1.25 times that and 0.1 s are {1.25 * limit + 0.1:.3f}. The "
            f"start of a run with one worker costs {one.processor() - one.count * further:.1f} "
            f"processor seconds, that of nbgrader {start.processor() / len(asked.lesson):.1f} a "
            "lesson. Peak memory of one worker (its process, its fork server, its box): "
            f"{max(workers):.0f} MiB.",
        ]
    )


def _scaled(start: float, whole: float, times: float) -> float:
    """What so many times as many submissions cost: nbgrader starts once a lesson all the same."""
    return start + (whole - start) * times


if __name__ == "__main__":
    main()
