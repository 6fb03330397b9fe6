"""What a student wrote is read where it can do no harm, and no more of it than a person writes."""

from __future__ import annotations

import ast
import contextlib
import resource
from collections import Counter
from pathlib import Path

import pytest

from autograder.grade import reader
from autograder.grade.reader import look, names_bound, rebound_at, repaired, words_of
from autograder.limited_process import TooMuch

from ..conftest import ROOT


def nested(levels: int) -> str:
    """Each level doubles what a compiler makes of the lines innermost: of 2,300 characters, 2.6
    GiB."""
    lines = [f"{'  ' * level}try: pass\n{'  ' * level}finally:" for level in range(levels)]
    return "\n".join([*lines, *([f"{'  ' * levels}x = 1"] * 40)]) + "\n"


@pytest.mark.parametrize(
    "cell",
    [nested(19), "x = 1\n" * 100_000, "(" * 15_000, "-" * 15_000 + "1", "x" + ".a" * 9_000],
)
def test_a_cell_that_takes_gigabytes_takes_them_elsewhere(cell: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert rebound_at(["def f(): return 1", cell], [1]) <= {1}
    assert names_bound(cell) in ([], ["x"])
    assert look(cell, True).digest
    for ask in (words_of, lambda source: repaired(source, lambda changed: False, 1.0)):
        with contextlib.suppress(TooMuch):
            ask(cell)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 100_000  # KiB


def test_of_what_is_too_long_or_too_much_everything_may_be() -> None:
    function = "def f(): return y"
    assert not rebound_at([function, "x = 1"], [1])
    assert rebound_at([function, nested(19)], [1]) == {1}
    long = f"x = '{'a' * reader.MAX_CELL_CHARACTERS}'"
    assert rebound_at([function, long], [1]) == {1}
    assert names_bound(long) == []
    assert rebound_at([function] * (reader.MAX_NOTEBOOK_CHARACTERS // 10), [1]) == {1}


def test_a_notebook_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [f"def f{number}(): return x" for number in range(5)] + ["x = 1"]
    assert rebound_at(cells, [1, 3]) == {1, 3}
    assert rebound_at(cells[:5], [1, 3]) == frozenset()


#: Every module that compiles, parses, tokenises or matches, and from whom its texts come.
OURS = "the authors of the course, or ourselves"
READER = "students: runs in reader_process or tokens_process alone"
BOX = "students: runs in a box, or in their own notebook"
PICTURES = "students: runs in picture_process alone"
LINEAR = "students: possessive, so that no byte is looked at twice but where a chunk ends"
SHORT = "students and boxes: cut to some thousand characters before, and linear in them"
FORMS = "students: parsed in reader_process or on their own machine; elsewhere the course's texts"
WHO = {
    "grade/flags.py": SHORT,  # the words of flags: names of files and cells, each cut
    "grade/picture_process.py": PICTURES,
    "grade/cell_names.py": READER,
    "grade/hidden_exceptions.py": READER,
    "grade/reader_process.py": READER,
    "grade/remote_names.py": OURS,  # a probe's source
    "grade/tester.py": OURS,  # the setup cell and test cells
    "grade/course_code.py": OURS,
    "lesson_kit/words.py": OURS,  # forms of the course's sentences
    "diagnose/plain_run.py": OURS,
    "diagnose/idle.py": OURS,
    "grade/without_outputs.py": LINEAR,  # the bytes of a file
    "grade/written.py": SHORT,
    "lesson_kit/cells.py": BOX,
    "lesson_kit/chat_tokenizer.py": BOX,
    "lesson_kit/course_progress.py": BOX,
    "lesson_kit/notebook_reading.py": FORMS,
    "lesson_kit/answer_text.py": READER,  # and in the student's own notebook
    "lesson_kit/earlier.py": OURS,
    "lesson_kit/evidence.py": SHORT,  # an exception's text
    "lesson_kit/advice.py": BOX,
    "lesson_kit/own_answer.py": BOX,
    "lesson_kit/own_frame.py": BOX,
    "lesson_kit/own_keeping.py": BOX,
    "lesson_kit/own_package.py": BOX,
    "lesson_kit/own_parts.py": BOX,
    "lesson_kit/package_parts.py": BOX,
    "lesson_kit/probes.py": BOX,
    "lesson_kit/repair.py": READER,
    "lesson_kit/short_answers.py": SHORT,
    "lesson_kit/shown.py": BOX,
    "lesson_kit/small_changes.py": READER,
    "lesson_kit/exceptions.py": BOX,
    "lesson_kit/course_map.py": BOX,
    "lesson_kit/differences.py": OURS,  # what a check calls a value
    "lesson_kit/not_begun.py": BOX,
    "report/figures.py": OURS,
    "report/findings.py": SHORT,
    "report/class_report.py": OURS,
    "report/terms.py": OURS,
}
_READING = {"ast", "dis", "re", "tokenize"}


def readers() -> dict[str, Counter[str]]:
    """By module: what it calls that compiles, parses, tokenises or matches."""
    calls: dict[str, Counter[str]] = {}
    for package in ("autograder/grade", "autograder/diagnose", "autograder/report", "lesson_kit"):
        for path in sorted((ROOT / package).glob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and (name := _reads(node.func)):
                    calls.setdefault(f"{path.parent.name}/{path.name}", Counter())[name] += 1
    return calls


def _reads(function: ast.expr) -> str:
    if isinstance(function, ast.Name) and function.id in ("compile", "eval", "exec"):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        of, name = function.value.id, function.attr
        reading = of in _READING and name not in ("escape", "Name", "Constant")
        return f"{of}.{name}" if reading and not (of == "ast" and name[0].isupper()) else ""
    return ""


def test_of_every_reader_it_is_said_from_whom_its_texts_come() -> None:
    there = {name for name, calls in readers().items() if set(calls) - _HARMLESS}
    assert there == set(WHO)


#: They walk a tree that somebody else has parsed.
_HARMLESS = {"ast.walk", "ast.iter_child_nodes", "ast.iter_fields", "ast.copy_location"}


def test_no_process_that_grades_imports_a_reader_of_students_sources() -> None:
    """Who grades reaches them through :mod:`autograder.grade.reader` only."""
    reading = {
        f"autograder/{name}".replace("autograder/lesson_kit", "lesson_kit")[:-3].replace("/", ".")
        for name, who in WHO.items()
        if who in (READER, PICTURES)
    } - {"lesson_kit.answer_text"}
    for path in Path(ROOT, "autograder").rglob("*.py"):
        if path.parent.name == "authors" or path.name == "reader_process.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not modules & reading, path


def test_a_notebook_of_cells_that_are_too_much_is_not_asked_about_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def ask(function: str, cells: list[tuple[str, bool]]) -> None:
        asked.append(len(cells))
        raise reader.TooMuch

    monkeypatch.setattr(reader._reader, "ask", ask)
    cells = [(f"x = {number}  # {'y' * 19_000}", True) for number in range(60)]
    reader.look_at(cells)
    assert len(asked) == reader.MAX_TOO_MUCH
    assert not any(reader.look(*cell).is_python for cell in cells)
    assert len(asked) == reader.MAX_TOO_MUCH
