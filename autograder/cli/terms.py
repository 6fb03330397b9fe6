"""The commands that look over terms and campuses: keep and trends."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from autograder.cli.options import (
    PATH,
    class_argument,
    class_at,
    command,
    json_option,
    print_json,
)


@command(example="spring-class results --term 2026-spring", statuses={0: "written"})
@class_argument
@click.argument("store", type=PATH, metavar="STORE", help="a folder for the results of all terms")
@click.option("--term", required=True, metavar="NAME", help="such as 2026-spring")
def keep(*, folder: Path, store: Path, term: str) -> int:
    """Keep a class's results beside those of other terms.

    Writes STORE/term=NAME/ as Parquet, a row for each test of each submission, from
    DIR/grades.json. Students are a keyed hash, no names. Needs the extra "terms".
    """
    from autograder.classroom.grades_file import stream_entries
    from autograder.report import terms

    its_class = class_at(folder)
    entries = stream_entries(its_class.root / "grades.json")
    number = terms.keep(store, term, entries, its_class.seed)
    print(f"{number} submissions of {term} in {store}")
    return 0


@command(example="results", statuses={0: "printed"})
@click.argument("store", type=PATH, metavar="STORE", help="made with `autograder keep`")
@json_option("print all numbers as JSON")
def trends(*, store: Path, as_json: bool) -> int:
    """Say which exercises stay hard, and which mistakes faded.

    Compares the terms in STORE, in the order of their names: exercises that were hard in each, and
    known mistakes that at most half as many made once their sentence was another one.
    """
    from autograder.report import terms

    known = terms.terms_of(store)
    items, mistakes = terms.trends(store)
    if as_json:
        print_json(
            {
                "terms": known,
                "items": [{**asdict(item), "stays_hard": item.stays_hard} for item in items],
                "mistakes": [
                    {**asdict(mistake), "faded": list(mistake.faded)} for mistake in mistakes
                ],
            }
        )
        return 0
    print(f"terms: {', '.join(known)}")
    hard = [item for item in items if item.stays_hard]
    print(f"stay hard: {len(hard)} of {len(items)} exercises")
    for item in hard:
        print(f"  {item.assignment} {item.exercise}: {_listed(item.shares)} of the points")
    faded = [mistake for mistake in mistakes if mistake.faded]
    print(f"faded after another sentence: {len(faded)} of {len(mistakes)} mistakes")
    for mistake in faded:
        said = f"{mistake.assignment} {mistake.exercise} {mistake.name}"
        print(
            f"  {said}: {_listed(mistake.shares)}; another sentence in {', '.join(mistake.faded)}"
        )
    return 0


def _listed(shares: dict[str, float]) -> str:
    return ", ".join(f"{term} {share:.0%}" for term, share in sorted(shares.items()))
