"""The class report: right numbers, readable for everybody, and no names unless asked."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from autograder.classroom.folder import ClassFolder
from autograder.classroom.grades_file import GradesError, read_grades
from autograder.classroom.new_class import new_class
from autograder.cli.main import main
from autograder.report.class_report import write_report
from autograder.report.findings import labels, without_ids
from autograder.report.numbers import make_report
from autograder.report.points import in_words, separates

from ..classes import grade_here
from ..report_class import CLASS, MISSING, a_class, submission
from ..submissions import notebook_with
from ..tiny import tiny_course

IDS = [entry["student"] for entry in CLASS]


@pytest.fixture
def folder(tmp_path: Path) -> ClassFolder:
    return a_class(tmp_path / "class", CLASS)


def page_of(folder: ClassFolder, *, names: bool = False) -> str:
    write_report(folder, names=names)
    return (folder.root / "report.html").read_text(encoding="utf-8")


def rows_of(folder: ClassFolder) -> dict[str, dict[str, str]]:
    text = (folder.root / "report.csv").read_text(encoding="utf-8")
    return {row["exercise"]: row for row in csv.DictReader(io.StringIO(text))}


def test_the_numbers_of_a_class(folder: ClassFolder) -> None:
    report = write_report(folder)
    (numbers,) = report.assignments
    assert (report.students, numbers.submissions, numbers.graded) == (9, 9, 6)
    assert (numbers.unreadable, numbers.without_notebook, numbers.not_judged) == (1, 1, 1)
    assert (numbers.to_read, numbers.need_an_eye) == (1, 5)
    assert sum(numbers.steps) == 6 and numbers.steps[-1] == 2
    assert numbers.mean_share == pytest.approx((6 + 2 + 0 + 0 + 1 + 6) / 36)
    softmax, lookup = numbers.exercises
    assert softmax.parts == (2, 1, 2, 1)
    assert lookup.parts == (2, 1, 1, 2)
    assert softmax.mean_share == pytest.approx(2.5 / 6)
    assert softmax.mean_share_attempted == pytest.approx(0.5)
    assert (softmax.timeouts, softmax.crashes, lookup.timeouts) == (1, 1, 0)
    assert (report.lost, report.recognised) == (5, 3)
    found = [(one.name, one.exercise, one.submissions) for one in report.misconceptions]
    assert found == [("last_axis", "softmax", 2), ("no_scale", "lookup", 1)]
    assert report.misconceptions[0].sentence == "The last_axis sentence."
    assert [(one.exercise, one.timeouts, one.crashes) for one in report.stopped] == [
        ("softmax", 1, 1)
    ]


def test_the_csv_says_the_same(folder: ClassFolder) -> None:
    report = write_report(folder)
    rows = rows_of(folder)
    assert list(rows) == ["softmax", "lookup"]
    for exercise in report.assignments[0].exercises:
        row = rows[exercise.name]
        counts = [row[name] for name in ("all_points", "some_points", "no_points", "not_attempted")]
        assert tuple(map(int, counts)) == exercise.parts
        assert float(row["mean_share"]) == pytest.approx(exercise.mean_share, abs=1e-3)
        assert row["separation"] == "" and row["no_separation"] == "too few submissions"
    assert rows["softmax"]["misconceptions"] == "last_axis (2)"


def test_a_test_that_passes_in_part(tmp_path: Path) -> None:
    """Named checks: some of the points, and the rest can still show a known mistake."""
    entry = submission("ada", "partial:no_axis passed partial")
    entry["tests"][2]["message"] = "✓ the half: 1 of 1\n✗ the rest: 0 of 1. What is left?"
    entry["tests"][0]["message"] = "Is it along `axis` & not <all>?\n✗ rows: 0 of 1."
    report = write_report(a_class(tmp_path / "class", [entry]))
    softmax, lookup = report.assignments[0].exercises
    assert softmax.parts == lookup.parts == (0, 1, 0, 0)
    assert (softmax.mean_share, lookup.mean_share) == (0.75, 0.5)
    assert (report.lost, report.recognised) == (2, 1)
    assert [one.exercise for one in report.misconceptions] == ["softmax"]
    page = (tmp_path / "class" / "report.html").read_text(encoding="utf-8")
    assert "Is it along <code>axis</code> &amp; not &lt;all&gt;?" in page
    assert "None was recognised more than once" in page and "by frequency" in page


def test_without_names_there_are_none(
    folder: ClassFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder.root), "--json"]) == 0
    written = [(folder.root / name).read_text() for name in ("report.html", "report.csv")]
    for text in (*written, capsys.readouterr().out):
        for student in IDS:
            assert student.lower() not in text.lower(), student
    assert "test_<wbr>softmax" in written[0] and "something else was noticed" in written[0]
    assert "the notebook had another name than expected" in written[0]


def test_with_names_it_says_who_and_shows_what_they_wrote_as_text(folder: ClassFolder) -> None:
    page = page_of(folder, names=True)
    assert "This page holds names" in page
    assert re.search(r"mallory \(student \d\)", page)
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "OSError: /x/niklaus/y" in page
    assert "ada_lovelace" not in page  # nothing to say about her
    assert not any(student in text for text in map(str, rows_of(folder)) for student in IDS)


def test_an_id_within_the_sentence_of_a_misconception_is_left_out(tmp_path: Path) -> None:
    entry = submission("ada", "failed:x passed passed")
    entry["tests"][0]["message"] = "Ada raised KeyError('ada'): no adaption."
    folder = a_class(tmp_path / "class", [entry])
    assert write_report(folder).misconceptions[0].sentence == "… raised KeyError('…'): no adaption."
    named = write_report(folder, names=True).misconceptions[0]
    assert named.sentence == entry["tests"][0]["message"]
    assert named.examples == ("ada (student 1)",)
    assert without_ids("a.b and a+b", ["a.b"]) == "… and a+b"


def test_numbers_stand_for_students_and_tell_nothing_of_their_order() -> None:
    students = [f"s{number:03}" for number in range(200)]
    called = labels(students, 7, names=False)
    assert called == labels(reversed(students), 7, names=False)
    assert sorted(called.values()) == sorted(f"student {number}" for number in range(1, 201))
    listed = list(called)
    assert listed != sorted(listed)
    assert listed != list(labels(students, 8, names=False))
    # Listed by number, so that the order of rows does not tell the order of ids either.
    assert list(called.values()) == [f"student {number}" for number in range(1, 201)]
    assert list(labels(students, 7, names=True)) == students


def test_separation_is_the_correlation_with_the_rest() -> None:
    share = [0.0, 1.0] * 5
    assert separates(share, [2 * one for one in share]) == (pytest.approx(1.0), "")
    assert separates(share, [-one for one in share])[0] == pytest.approx(-1.0)
    assert separates(share[:9], share[:9]) == (None, "too few submissions")
    assert separates([1.0] * 10, share) == (None, "all have the same points here")
    assert separates(share, [0.1 * 3] * 10) == (None, "all have the same points elsewhere")
    said = [in_words(value) for value in (-0.1, 0.1, 0.3, 0.5, 0.9)]
    assert said[1:] == ["hardly", "somewhat", "clearly", "strongly"]
    assert "wrong way round" in said[0]


def test_separation_of_a_class(tmp_path: Path) -> None:
    strong, weak = "passed passed passed", "failed failed failed"
    entries = [submission(f"s{n}", strong if n % 2 else weak) for n in range(12)]
    report = write_report(a_class(tmp_path / "class", entries))
    assert [one.separation for one in report.assignments[0].exercises] == [pytest.approx(1.0)] * 2
    page = (tmp_path / "class" / "report.html").read_text()
    assert "1.00, strongly" in page and "do not differ clearly" in page


def test_who_attempted_nothing_does_not_make_an_exercise_separate(tmp_path: Path) -> None:
    """Nine of twelve tried, and what they got in one exercise says nothing of the other."""
    halves = ["passed passed failed", "failed failed passed", "passed passed passed"]
    entries = [submission(f"s{n:02}", halves[n % 2]) for n in range(12)]
    entries += [submission(f"u{n:02}", "not_attempted " * 3) for n in range(12)]
    report = write_report(a_class(tmp_path / "class", entries))
    assert [one.separation for one in report.assignments[0].exercises] == [pytest.approx(-1.0)] * 2
    assert report.assignments[0].exercises[0].not_attempted == 12


def test_who_handed_in_nothing_is_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = {"status": "missing", "reason": "Nothing was handed in."}
    entries = [submission("ada"), submission("bob", MISSING, **nothing)]
    folder = a_class(tmp_path / "class", entries)
    report = write_report(folder)
    (numbers,) = report.assignments
    assert (report.submissions, numbers.submissions, numbers.nothing) == (1, 1, 1)
    assert (numbers.without_notebook, report.need_an_eye) == (0, ())
    assert main(["report", str(folder.root)]) == 0
    assert "1 submission, 2 students, 1 handed in nothing, 0 need" in capsys.readouterr().out


def test_a_misconception_goes_by_its_sentence(tmp_path: Path) -> None:
    entries = [submission(who, "failed:inner_id_of_it passed passed") for who in ("ada", "bob")]
    for entry in entries:
        entry["tests"][0]["message"] = "You sum the wrong way. More of it.\nvalues"
    page = page_of(a_class(tmp_path / "class", entries))
    assert "inner_id" not in page and "inner_<wbr>id" not in page
    assert "Most frequent: “You sum the wrong way.” in softmax (in 2 submissions)." in page
    assert '<th scope="row" class="words">You sum the wrong way. More of it.</th>' in page


def test_with_names_the_roster_says_who_it_is(tmp_path: Path) -> None:
    folder = a_class(tmp_path / "class", [submission("ada", flags=["odd"]), submission("bob")])
    (folder.root / "roster.csv").write_text("id,first_name,last_name\nada,Ada,Lovelace\n")
    named = page_of(ClassFolder.open(folder.root), names=True)
    assert "Ada Lovelace, ada (student " in named
    assert "Lovelace" not in page_of(ClassFolder.open(folder.root))


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]


def test_the_page_needs_nothing_else_and_can_be_read_aloud(folder: ClassFolder) -> None:
    text = page_of(folder)
    page = Page(text)
    tags = [tag for tag, _ in page.tags]
    assert "://" not in text and "script" not in tags and "link" not in tags
    assert "<course>" not in text and "A &lt;course&gt;" in text
    assert any(attrs.get("name") == "viewport" for tag, attrs in page.tags if tag == "meta")
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in page.tags if tag == "th")
    figures = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert len(figures) == tags.count("figcaption") == 3
    assert all(one["role"] == "img" and len(one["aria-label"] or "") > 40 for one in figures)
    assert "softmax: 2 all points, 1 some" in text
    assert len(page.ids) == len(set(page.ids))
    targets = re.findall(r'(?:href="#|url\(#|labelledby=")([^")]+)', text)
    assert set(targets) <= set(page.ids)
    # Headings go down one step at a time.
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


def test_the_same_class_gives_the_same_page(folder: ClassFolder) -> None:
    assert page_of(folder) == page_of(folder)


def test_a_class_of_one_and_a_class_of_nobody_graded(tmp_path: Path) -> None:
    one = page_of(a_class(tmp_path / "one", [submission("ada_lovelace")]))
    assert "1 student, 1 submission, 1 assignment." in one
    assert "The one graded submission has 100" in one
    none = page_of(a_class(tmp_path / "none", [CLASS[-1]]))
    assert "No submission could be graded" in none


def test_a_large_class_folds_what_is_long(tmp_path: Path) -> None:
    entries = [
        submission(f"student_{n:03}", "crashed failed:last_axis passed", assignment=f"{lesson:02}")
        for n in range(30)
        for lesson in range(1, 13)
    ]
    page = page_of(a_class(tmp_path / "class", entries))
    assert "335 more" in page and "360: ended its process" in page
    assert page.count("<svg") == 25


@pytest.mark.parametrize(
    "content",
    ["{", "[]", '{"submissions": []}', '{"submissions": [{"student": 1}]}', "\udcff", "NaN"],
)
def test_a_file_that_is_not_ours_is_refused(
    folder: ClassFolder, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder.root / "grades.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    assert main(["report", str(folder.root)]) == 2
    said = capsys.readouterr().err
    assert str(path) in said and "autograder grade" in said
    assert not (folder.root / "report.html").exists()


def test_points_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    entry = submission("ada")
    entry["tests"][0]["points"] = float("nan")
    with pytest.raises(GradesError, match="not a grades file"):
        read_grades(a_class(tmp_path / "class", [entry]))


def test_exit_status_and_what_is_said(
    folder: ClassFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder.root)]) == 0
    said = capsys.readouterr().out
    assert (
        "9 submissions, 9 students, 5 need an eye" in said
        and "report.html" in said
        and "report.csv" in said
    )
    assert main(["report", str(folder.root), "--json", "--names"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["names"] is True
    assert tree["assignments"][0]["exercises"][0]["all_points"] == 2
    (folder.root / "grades.json").unlink()
    assert main(["report", str(folder.root)]) == 2
    assert "grades.json does not exist; run `autograder grade" in capsys.readouterr().err
    assert main(["report", str(folder.root / "nowhere")]) == 2
    assert "autograder new-class" in capsys.readouterr().err
    with pytest.raises(SystemExit) as asked:
        main(["report", "--help"])
    assert asked.value.code == 0
    assert "example: autograder report" in capsys.readouterr().out


@pytest.mark.slow
def test_a_class_that_was_really_graded(tmp_path: Path) -> None:
    """What grading writes is what the report reads: statuses, outcomes, flags."""
    folder = new_class(tiny_course(tmp_path / "course"), tmp_path / "class", say=lambda text: None)
    negative = {"double": "def double(x):\n    return x + x\n"}
    for student, name, instead in (("ada", "tiny", {}), ("bob", "bobs homework", negative)):
        path = folder.root / "submitted" / student / "01-tiny" / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook_with(folder.bundle("01-tiny"), instead)))
    (folder.root / "submitted" / "cleo" / "01-tiny").mkdir(parents=True)
    grade_here(folder)
    about, entries = read_grades(folder)
    report = make_report(about, entries, seed=folder.seed)
    (numbers,) = report.assignments
    assert (numbers.graded, numbers.without_notebook) == (2, 1)
    by_name = {one.name: one for one in numbers.exercises}
    assert by_name["double"].parts == (1, 1, 0, 0)
    words = [reason.words for one in report.need_an_eye for reason in one.reasons]
    assert words == [
        "no notebook under the expected name",
        "the notebook had another name than expected",
    ]
    assert "homework" not in page_of(folder)
