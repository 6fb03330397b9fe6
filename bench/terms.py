"""Whether results cost the same each, and no more memory, from ten thousand to a million.

``python -m bench.terms`` writes synthetic verdicts into a store and sums them up, each size in
processes of its own: one that keeps, one that asks.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.markdown import table

#: A lesson's exercises; each has one visible test and two hidden ones.
EXERCISES = ("similarity_scores", "softmax", "soft_lookup", "answer_temperature")
SENTENCE = "Your weights sum to 1 down each column, term {term}. Each query spreads its weight."


def verdicts(number: int, term: str) -> Iterator[dict[str, Any]]:
    """So many synthetic submissions of one term, as ``grades.json`` has them."""
    rng = random.Random(term)
    for student in range(number):
        tests = []
        for exercise in EXERCISES:
            wrong = rng.random() < 0.3
            for test in range(3):
                lost = wrong and test > 0
                tests.append(
                    {
                        "grade_id": f"test_{exercise}_{test}",
                        "exercise": exercise,
                        "points": 0.0 if lost else 2.0,
                        "max_points": 2.0,
                        "outcome": "failed" if lost else "passed",
                        "diagnosis": "over_the_queries" if lost else "",
                        "message": SENTENCE.format(term=term) if lost else "",
                    }
                )
        yield {"student": f"s{student}", "assignment": "02-query-key-value", "tests": tests}


def keep(store: Path, number: int) -> None:
    """Write two terms that have so many submissions together."""
    from autograder.report.terms import keep

    for term in ("2025", "2026"):
        keep(store, term, verdicts(number // 2, term), seed=7)


def ask(store: Path) -> None:
    """Sum them up."""
    from autograder.report.terms import trends

    items, mistakes = trends(store)
    assert len(items) == len(mistakes) == len(EXERCISES)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Measure results over terms; see README.md.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--do", choices=["keep", "ask"], help="in this process, for one size")
    parser.add_argument("--store", type=Path)
    asked = parser.parse_args()
    if asked.do is not None:
        import resource

        keep(asked.store, asked.sizes[0]) if asked.do == "keep" else ask(asked.store)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
        return
    rows = []
    for number in asked.sizes:
        with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
            cells = [f"{number:,}"]
            for what in ("keep", "ask"):
                command = [sys.executable, "-m", "bench.terms", "--do", what]
                command += ["--store", scratch, "--sizes", str(number)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                seconds, mebibytes = map(float, done.stdout.split())
                cells += [f"{seconds:.1f}", f"{mebibytes:,.0f}"]
            size = sum(path.stat().st_size for path in Path(scratch).rglob("*.parquet"))
            rows.append([*cells, f"{size / 2**20:.1f}"])
    heading = ["submissions", "keep: processor s", "peak MiB", "ask: processor s", "peak MiB"]
    print(table([*heading, "store MiB"], rows))


if __name__ == "__main__":
    main()
