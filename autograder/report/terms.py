"""Results over terms and campuses: a columnar store, and what it says of items and mistakes.

A store is a folder of Parquet files, one folder a term: a row for each test of each submission, and
no names. Polars writes it in pieces and sums it up without having it in memory.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from autograder.errors import WrongUse
from autograder.files import untaken

#: Rows of a file.
PIECE = 200_000
#: A share of the points below which an exercise is hard.
HARD = 0.6
#: Submissions of a term below which nothing is said about it.
FEWEST = 20

_COLUMNS = ("student", "assignment", "exercise", "test", "points", "max_points", "outcome")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")


class TermsError(WrongUse):
    """A store cannot be written or read; the message says what to do."""


@dataclass(frozen=True)
class Item:
    """An exercise over terms: its mean share of the points in each, and whether it stays hard."""

    assignment: str
    exercise: str
    shares: dict[str, float]
    submissions: dict[str, int]

    @property
    def stays_hard(self) -> bool:
        """Whether it was hard in every term of which enough is known, and in two at least."""
        known = [self.shares[term] for term, many in self.submissions.items() if many >= FEWEST]
        return len(known) > 1 and max(known) < HARD


@dataclass(frozen=True)
class Mistake:
    """A known mistake over terms: the share of submissions that show it, and what they were told.

    ``changed`` names the terms in which the sentence was another one than in the term before.
    """

    assignment: str
    exercise: str
    name: str
    shares: dict[str, float]
    submissions: dict[str, int]
    changed: tuple[str, ...]

    @property
    def faded(self) -> tuple[str, ...]:
        """The terms with another sentence in which at most half as many made the mistake."""
        terms = sorted(self.shares)
        return tuple(
            term
            for before, term in pairwise(terms)
            if term in self.changed
            and min(self.submissions[before], self.submissions[term]) >= FEWEST
            and self.shares[term] <= self.shares[before] / 2
        )


def keep(store: Path, term: str, entries: Iterable[dict[str, Any]], seed: int) -> int:
    """Write the results of one term into a store; what it had of that term is replaced at once.

    Args:
        store: its folder; made when it is not there.
        term: such as ``2026-spring`` or ``2026-spring-north``; terms are compared in this order.
        entries: submissions, as ``grades.json`` has them; they may come as a stream.
        seed: of the class: students are known by a keyed hash of their ids.

    Returns:
        How many submissions were written.

    Raises:
        TermsError: the term cannot name a folder, or the extra is not installed.
    """
    polars = _polars()
    if not _NAME.fullmatch(term):
        raise TermsError(f"--term is {term!r}; use letters, digits, dots and dashes: 2026-spring")
    place = store / f"term={term}"
    fresh = store / f".{term}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    counted = [0]
    for number, rows in enumerate(_pieces(entries, seed, counted)):
        frame = polars.DataFrame(rows, schema=_schema(polars), orient="row")
        frame.write_parquet(fresh / f"part-{number:05}.parquet")
    if not counted[0]:
        shutil.rmtree(fresh)
        raise TermsError("there is no submission to keep; grade the class first")
    if place.exists():
        former = untaken(store / f".{term}.former")
        os.replace(place, former)
        os.replace(fresh, place)
        shutil.rmtree(former)
    else:
        os.replace(fresh, place)
    return counted[0]


def _schema(polars: Any) -> dict[str, Any]:
    numbers = dict.fromkeys(("points", "max_points"), polars.Float32)
    return {name: numbers.get(name, polars.String) for name in _COLUMNS} | {
        "diagnosis": polars.String,
        "sentence": polars.String,
    }


def _pieces(
    entries: Iterable[dict[str, Any]], seed: int, counted: list[int]
) -> Iterator[list[tuple[Any, ...]]]:
    """Rows for each file; ``counted`` has the number of submissions."""
    key = str(seed).encode()
    rows: list[tuple[Any, ...]] = []
    for entry in entries:
        counted[0] += 1
        said = str(entry["student"]).encode("utf-8", "surrogatepass")
        student = hmac.digest(key, said, hashlib.sha256).hex()[:16]
        for test in entry["tests"]:
            diagnosis = test["diagnosis"]
            rows.append(
                (
                    student,
                    entry["assignment"],
                    test["exercise"],
                    test["grade_id"],
                    test["points"],
                    test["max_points"],
                    test["outcome"],
                    diagnosis,
                    test["message"].strip().partition("\n")[0] if diagnosis else "",
                )
            )
        if len(rows) >= PIECE:
            yield rows
            rows = []
    if rows:
        yield rows


def terms_of(store: Path) -> list[str]:
    """The terms that a store holds, in order.

    Raises:
        TermsError: there is none.
    """
    terms = sorted(path.name.removeprefix("term=") for path in store.glob("term=*"))
    if not terms:
        raise TermsError(
            f"{store} holds no terms; put one there: "
            f"autograder export CLASS --to terms --output {store} --term 2026-spring"
        )
    return terms


def trends(store: Path) -> tuple[list[Item], list[Mistake]]:
    """The exercises and the known mistakes over all terms of a store.

    Raises:
        TermsError: it holds no terms, or the extra is not installed.
    """
    polars = _polars()
    parts = [
        (term, path)
        for term in terms_of(store)
        for path in sorted((store / f"term={term}").glob("*.parquet"))
    ]
    # File by file: a submission is in one of them, and memory does not grow with their number.
    of_items, of_mistakes = zip(*(_summed_up(polars, term, path) for term, path in parts))
    by = ["term", "assignment", "exercise"]
    items = (
        polars.concat(of_items)
        .group_by(by)
        .agg(many=polars.col("many").sum(), share=polars.col("shares").sum())
        .with_columns(share=polars.col("share") / polars.col("many"))
        .sort("assignment", "exercise", "term")
    )
    by_sentence = (
        polars.concat(of_mistakes)
        .group_by([*by, "diagnosis", "sentence"])
        .agg(who=polars.col("who").sum())
        .sort("who", "sentence")
    )
    mistakes = (
        by_sentence.group_by([*by, "diagnosis"], maintain_order=True)
        .agg(who=polars.col("who").sum(), told=polars.col("sentence").last())
        .sort("assignment", "exercise", "diagnosis", "term")
    )
    exercises = _items(items.iter_rows(named=True))
    return exercises, _mistakes(mistakes.iter_rows(named=True), exercises)


def _summed_up(polars: Any, term: str, path: Path) -> tuple[Any, Any]:
    """Of one file: submissions and shares by exercise, and who made which mistake."""
    rows = polars.read_parquet(path).with_columns(term=polars.lit(term))
    by = ["term", "assignment", "exercise"]
    of_items = (
        rows.group_by([*by, "student"])
        .agg(
            share=(polars.col("points").sum() / polars.col("max_points").sum()).fill_nan(0.0),
            tried=(polars.col("outcome") != "not_attempted").any(),
        )
        .filter("tried")
        .group_by(by)
        .agg(many=polars.len(), shares=polars.col("share").cast(polars.Float64).sum())
    )
    of_mistakes = (
        rows.filter(polars.col("diagnosis") != "")
        .unique(["student", *by, "diagnosis"], keep="first", maintain_order=True)
        .group_by([*by, "diagnosis", "sentence"])
        .agg(who=polars.len())
    )
    return of_items, of_mistakes


def _items(rows: Iterable[dict[str, Any]]) -> list[Item]:
    items: dict[tuple[str, str], Item] = {}
    for row in rows:
        key = row["assignment"], row["exercise"]
        item = items.setdefault(key, Item(*key, {}, {}))
        item.shares[row["term"]] = float(row["share"] or 0.0)
        item.submissions[row["term"]] = int(row["many"])
    return list(items.values())


def _mistakes(rows: Iterable[dict[str, Any]], items: list[Item]) -> list[Mistake]:
    counts = {(item.assignment, item.exercise): item.submissions for item in items}
    told: dict[tuple[str, str, str], dict[str, tuple[int, str]]] = {}
    for row in rows:
        key = row["assignment"], row["exercise"], row["diagnosis"]
        told.setdefault(key, {})[row["term"]] = int(row["who"]), str(row["told"])
    mistakes = []
    for (assignment, exercise, name), by_term in told.items():
        many = counts.get((assignment, exercise), {})
        sentences = {term: sentence for term, (_, sentence) in sorted(by_term.items())}
        known = list(sentences)
        mistakes.append(
            Mistake(
                assignment,
                exercise,
                name,
                {term: by_term.get(term, (0, ""))[0] / number for term, number in many.items()},
                dict(many),
                tuple(b for a, b in pairwise(known) if sentences[a] != sentences[b]),
            )
        )
    return mistakes


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise TermsError(
            "results over terms need polars, which is not installed: "
            "pip install 'attention-course-autograder[terms]'"
        ) from None
    return polars
