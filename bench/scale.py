"""Whether a submission costs the same in a small and in a large class.

``python -m bench.scale`` grades classes of 10, 100 and 1,000 submissions of one lesson. The
smaller ones are graded before and after the largest.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path

from autograder.course.lessons import Course
from bench.markdown import table
from bench.meter import Cost, how, measure
from bench.submissions import hand_in, handed_in, make_class, student


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Measure classes of several sizes; see README.md.")
    parser.add_argument("--quick", action="store_true", help="10 and 40 submissions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--lesson", default="02")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--course", type=Path, default=Path())
    parser.add_argument("--sandbox", default="auto", help="as for autograder grade")
    asked = parser.parse_args()
    sizes = sorted([10, 40] if asked.quick else asked.sizes)
    course = Course.load(asked.course)
    lesson = course.lesson(asked.lesson)
    costs: dict[int, list[Cost]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folders = {}
        for size in sizes:
            folder = make_class(course, Path(scratch, str(size)), [lesson])
            released = folder.root / "release" / lesson.folder
            for number in range(size):
                into = folder.root / "submitted" / student(number) / lesson.folder
                hand_in(handed_in(lesson, released, number), released, into)
            folders[size] = folder.root
        for size in [*sizes, *reversed(sizes[:-1])]:
            cost = _grade(folders[size], asked.workers, asked.sandbox)
            costs[size].append(cost)
            print(
                f"{size} submissions: {cost.processor:.1f} processor seconds, {cost.wall:.1f} s",
                file=sys.stderr,
            )
    print(_report(costs, asked, sizes))


def _grade(root: Path, workers: int, sandbox: str) -> Cost:
    command = [str(Path(sys.executable).parent / "autograder"), "grade", str(root), "--again"]
    more = ["--quiet", "--workers", str(workers), "--sandbox", sandbox]
    return measure([*command, *more], root)[0]


def _report(costs: dict[int, list[Cost]], asked: argparse.Namespace, sizes: list[int]) -> str:
    processor = {size: _mean([cost.processor for cost in costs[size]]) for size in sizes}
    wall = {size: _mean([cost.wall for cost in costs[size]]) for size in sizes}
    rows: list[list[str | float]] = []
    for smaller, size in zip([None, *sizes], sizes):
        one = (
            (processor[size] - processor[smaller]) / (size - smaller) if smaller is not None else ""
        )
        rows.append(
            [
                f"{size:,}",
                processor[size],
                wall[size],
                processor[size] / size,
                wall[size] / size,
                one,
                max(cost.mib for cost in costs[size]),
                max(cost.worker_mib for cost in costs[size]),
            ]
        )
    head = [
        "submissions",
        "processor s a run",
        "wall s a run",
        "processor s a submission",
        "wall s a submission",
        "processor s each one more",
        "peak MiB",
        "peak MiB of a worker",
    ]
    command = shlex.join(["python", "-m", "bench.scale", *sys.argv[1:]])
    return (
        f"Command: `{command}`: lesson {asked.lesson}, {asked.workers} "
        f"workers; processor seconds counted {how()}; load of the machine's {os.cpu_count()} "
        f"cores at the end: {os.getloadavg()[1]:.1f}.\n\n" + table(head, rows)
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
