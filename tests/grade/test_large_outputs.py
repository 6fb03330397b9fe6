"""Outputs are never graded, and how many there are costs nobody a point."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

from autograder.classroom.folder import ClassFolder
from autograder.grade import without_outputs
from autograder.grade.limits import Limits
from autograder.grade.submission import parse, read_file
from autograder.grade.task import make_task
from autograder.grade.without_outputs import TooLarge, read_without_outputs
from autograder.lms.collecting import carry_out, plan

from ..classes import LESSON, hand_in, new, pack, solved

MB = 2**20


def stream(text: Any) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def notebook(*outputs: list[Any]) -> dict[str, Any]:
    cells = [
        {"cell_type": "code", "metadata": {}, "source": f"x = {at}", "outputs": output}
        for at, output in enumerate(outputs)
    ]
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": {"outputs": [1] * 3}, "cells": cells}


def without(tree: Any, most: int = MB, **style: Any) -> Any:
    data = json.dumps(tree, **style).encode()
    return json.loads(read_without_outputs(io.BytesIO(data), most, 50 * most))


LINES = [f'line {number}: "}}]\\\\\n' for number in range(60_000)]
#: Outputs of one cell that are dropped: lines, a picture, one text, many small ones, a widget.
LARGE = {
    "printed lines": [stream(LINES)],
    "one text": [stream("".join(LINES))],
    "a picture": [{"output_type": "display_data", "data": {"image/png": "iVBOR" * 10**6}}],
    "many outputs": [stream("a") for _ in range(3_000)],
    "a widget": [{"output_type": "display_data", "data": {"application/x": [[{}]] * 3_000}}],
    "ends with backslashes": [stream("\\" * 3_000_001)],
}


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("style", [{}, {"indent": 1}, {"separators": (",", ":")}])
def test_large_outputs_are_dropped_and_nothing_else(kind: str, style: dict[str, Any]) -> None:
    small = [stream('a [ { " ] small one'), {"output_type": "error", "ename": "E"}]
    tree = notebook(small, LARGE[kind], small)
    assert without(tree, **style) == notebook(small, [], small)
    old = {"nbformat": 3, "worksheets": [{"cells": notebook(small, LARGE[kind])["cells"]}]}
    assert without(old, **style)["worksheets"][0]["cells"] == notebook(small, [])["cells"]


def test_where_a_chunk_ends_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_outputs, "MAX_OUTPUT_BYTES", 90)
    tree = notebook([stream("x" * 100)], [stream('é\\" ]')], [stream(["y\n"] * 30)])
    data = json.dumps(tree, ensure_ascii=False).encode()
    for chunk in (1, 2, 3, 7, 64, 1000):
        monkeypatch.setattr(without_outputs, "_CHUNK", chunk)
        read = json.loads(read_without_outputs(io.BytesIO(data), 10**5, 10**6))
        assert read == notebook([], [stream('é\\" ]')], [])


def test_what_is_no_notebook_stays_as_it_is() -> None:
    made = random.Random(0)
    for data in (b"", b"[1, 2]", b'{"outputs": [', b'{"a": "', made.randbytes(5_000), b"{" * 999):
        assert read_without_outputs(io.BytesIO(data), MB, MB) == data


def test_what_is_large_without_outputs_is_refused_before_it_is_read() -> None:
    tree = notebook([]) | {"metadata": {"a": ["b" * 100] * 20_000}}
    with pytest.raises(TooLarge):
        without(tree)
    file = io.BytesIO(json.dumps(notebook([stream("a" * 60 * MB)])).encode())
    with pytest.raises(TooLarge):
        read_without_outputs(file, MB, 50 * MB)
    assert file.tell() < 54 * MB


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ClassFolder:
    return new(tmp_path_factory.mktemp("large"))


@pytest.mark.slow
def test_a_notebook_that_printed_40_mb_is_collected_and_read(
    folder: ClassFolder, tmp_path: Path
) -> None:
    made = solved(folder)
    before = parse(json.dumps(made).encode(), folder.bundle(LESSON)).cells
    made.cells[-2]["outputs"] = [stream(LINES * 18)]
    data = json.dumps(made).encode()
    assert len(data) > 25 * MB
    path = hand_in(folder, "ada", data)
    files = {"Bob_2_assignsubmission_file_/tiny.ipynb": data}
    carry_out(folder, plan(folder, [pack(tmp_path / "m.zip", files)]))
    for student in ("ada", "bob"):
        there = folder.root / "submitted" / student / LESSON
        task = make_task(there, folder.bundle(LESSON), 1, Limits(), "none")
        assert isinstance(task.data, bytes) and len(task.data) < MB
        read = parse(task.data, folder.bundle(LESSON)).cells
        assert [cell.source for cell in read] == [cell.source for cell in before]
    assert path.read_bytes() == data


def test_the_limit_can_be_set(folder: ClassFolder) -> None:
    there = hand_in(folder, "cy", json.dumps({"a": "b" * 2 * MB}).encode()).parent
    settings = folder.root / "class.toml"
    text = settings.read_text()
    settings.write_text(text.replace("size = 25", "size = 1"))
    small = ClassFolder.open(folder.root).limits(LESSON)
    settings.write_text(text)
    assert small.size == 1
    task = make_task(there, folder.bundle(LESSON), 1, small, "none")
    assert "more than 1 MB without its outputs" in str(task.data)
    assert isinstance(make_task(there, folder.bundle(LESSON), 1, Limits(), "none").data, bytes)
    assert read_file(there / "tiny.ipynb")
