"""Results over terms: written as they come, summed up by term, nobody named."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.grades_file import GradesError, stream_entries
from autograder.cli.main import main
from autograder.report import terms

LESSON = "02-query-key-value"


def entry(
    student: str, hard: float, mistake: bool = False, sentence: str = "Old words."
) -> dict[str, Any]:
    """One submission: a hard exercise and an easy one, in which a mistake may show."""

    def test(name: str, points: float, diagnosis: str = "", message: str = "") -> dict[str, Any]:
        about = {"grade_id": f"test_{name}", "exercise": name, "outcome": "failed"}
        numbers = {"points": points, "max_points": 2.0}
        return {**about, **numbers, "diagnosis": diagnosis, "message": message}

    told = ("last_axis", f"{sentence}\nvalues") if mistake else ("", "")
    tests = [test("hard", hard), test("easy", 0.0 if mistake else 2.0, *told)]
    return {"student": student, "assignment": LESSON, "tests": tests}


def a_term(shown: int, sentence: str, hard: float = 1.0, many: int = 40) -> list[dict[str, Any]]:
    return [entry(f"student{n}", hard, n < shown, sentence) for n in range(many)]


def test_what_stays_hard_and_what_faded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    terms.keep(store, "2025", a_term(20, "Old words."), seed=7)
    terms.keep(store, "2026", a_term(8, "New words."), seed=8)
    terms.keep(store, "2027", a_term(2, "New words."), seed=9)
    items, mistakes = terms.trends(store)
    hard, easy = sorted(items, key=lambda one: one.exercise, reverse=True)
    assert hard.shares == {"2025": 0.5, "2026": 0.5, "2027": 0.5} and hard.stays_hard
    assert easy.shares["2025"] == 0.5 and not easy.stays_hard
    (mistake,) = mistakes
    assert mistake.shares == {"2025": 0.5, "2026": 0.2, "2027": 0.05}
    # In 2027 it is rarer still, and the sentence was the same as before.
    assert (mistake.changed, mistake.faded) == (("2026",), ("2026",))
    assert main(["report", str(store), "--about", "terms"]) == 0
    out = capsys.readouterr().out
    assert "stay hard: 1 of 2 exercises" in out
    assert "easy last_axis: 2025 50%, 2026 20%, 2027 5%; another sentence in 2026" in out
    assert main(["report", str(store), "--about", "terms", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mistakes"][0]["faded"] == ["2026"]


def test_few_submissions_say_nothing(tmp_path: Path) -> None:
    for term in ("2025", "2026"):
        terms.keep(tmp_path, term, a_term(5, term, many=10), seed=7)
    items, mistakes = terms.trends(tmp_path)
    assert not any(one.stays_hard for one in items) and not mistakes[0].faded


def test_a_term_is_replaced_and_nobody_is_named(tmp_path: Path) -> None:
    import polars  # only here: it takes a third of a second

    terms.keep(tmp_path, "2025", a_term(20, "Old words."), seed=7)
    assert terms.keep(tmp_path, "2025", a_term(0, "Old words.", many=30), seed=7) == 30
    items, mistakes = terms.trends(tmp_path)
    assert {number for one in items for number in one.submissions.values()} == {30}
    assert mistakes == []
    held = polars.read_parquet(tmp_path / "term=2025" / "*.parquet")
    assert not held["student"].str.contains("student").any()
    assert [path.name for path in tmp_path.iterdir()] == ["term=2025"]


def test_results_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes next is asked for only after a piece was written."""
    monkeypatch.setattr(terms, "PIECE", 10)
    held: list[int] = []

    def stream() -> Iterator[dict[str, Any]]:
        for number in range(50):
            held.append(len(list((tmp_path / ".2025.new").glob("*.parquet"))))
            yield entry(f"s{number}", 1.0)

    assert terms.keep(tmp_path, "2025", stream(), seed=7) == 50
    assert held[::10] == [0, 2, 4, 6, 8]


def test_grades_json_is_read_as_a_stream(tmp_path: Path) -> None:
    rng = random.Random(3)
    entries = [{**entry(f"s{n}", 1.0), "reason": '"}], [{' * rng.randrange(4)} for n in range(200)]
    path = tmp_path / "grades.json"
    text = json.dumps({"engine": "1", "submissions": entries}, indent=1)
    for most in (1, 7, 2**20):
        path.write_text(text if most > 1 else json.dumps({"submissions": entries[:3]}))
        assert list(stream_entries(path, most)) == (entries if most > 1 else entries[:3])
    for damaged in (text[:-200], "{}", "[]", '{"submissions": [3]}', ""):
        path.write_text(damaged)
        with pytest.raises(GradesError, match="not a grades file"):
            list(stream_entries(path))
    path.unlink()
    with pytest.raises(GradesError, match="does not exist"):
        list(stream_entries(path))


def test_wrong_use_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(terms.TermsError, match="no terms"):
        terms.trends(tmp_path)
    with pytest.raises(terms.TermsError, match="2026-spring"):
        terms.keep(tmp_path, "../x", [], seed=7)
    with pytest.raises(terms.TermsError, match="no submission"):
        terms.keep(tmp_path, "2025", [], seed=7)
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(terms.TermsError, match="pip install"):
        terms.trends(tmp_path)
