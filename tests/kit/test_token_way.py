"""The picture of a token's way: its numbers are what it says, it is seen, and other courses show
nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from autograder.build.beside import way_of
from autograder.course.source_rules import LessonError
from lesson_kit.setting import DATA_FILE, beside_notebook, pack, unpack
from lesson_kit.token_way import WAY, WIDTH, show_strip, show_way, strip, whole

from ..conftest import COURSE, ROOT

FILE = ROOT / "lessons" / "token_way.json"
STATIONS = json.loads(FILE.read_text(encoding="utf-8"))["stations"]


def station(name: str) -> dict[str, Any]:
    return next(one for one in STATIONS if one["name"] == name)


@pytest.mark.parametrize(
    "one", [one for one in STATIONS if "shape" in one], ids=lambda x: x["name"]
)
def test_numbers_have_the_shape_that_is_said(one: dict[str, Any]) -> None:
    assert str(np.array(one["values"]).shape) == one["shape"]


def test_numbers_belong_together() -> None:
    """Hundredths: places are added, weights are the softmax of what the mask leaves, heads V's
    sums."""
    scores, weights = (
        np.array(station(name)["values"], dtype=float) for name in ("scores", "weights")
    )
    assert np.isnan(scores).sum() == 4 * 15
    assert np.isnan(np.triu(scores, 1)[:, 0, 1:]).all()
    raised = np.exp(np.nan_to_num(scores / 100, nan=-np.inf))
    assert np.allclose(100 * raised / raised.sum(-1, keepdims=True), weights, atol=1.5)
    values = np.array(station("Q, K, V")["values"][2]).reshape(6, 4, 8).swapaxes(0, 1)
    assert np.allclose(weights / 100 @ values, station("heads")["values"], atol=6)
    logits = np.array(station("logits")["values"])[-1] / 100
    best = np.sort(np.exp(logits) / np.exp(logits).sum())[::-1]
    shares = [share for _, share in station("next token")["values"]]
    assert np.allclose(best[: len(shares)], shares, atol=0.02)


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_every_lesson_is_somewhere_on_the_way(lesson: Any) -> None:
    """Both pictures are of one width and mark its stations; the one in a row needs no fold."""
    way = way_of(FILE, lesson.number)
    here = [one["name"] for one in STATIONS if lesson.number in one["lessons"]]
    pictures = [ElementTree.fromstring(svg) for svg in (strip(way), whole(way))]
    assert [one.get("width") for one in pictures] == [str(WIDTH)] * 2
    assert int(pictures[0].get("height", 0)) <= 160
    texts = [one.text for one in pictures[1].iter() if (one.text or "").startswith("you are")]
    assert len(texts) == len(here) > 0


def test_it_is_small() -> None:
    assert len(FILE.read_bytes()) < 15_000


def test_what_stands_beside_a_notebook_is_drawn_and_else_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    show_strip()  # no file at all
    (tmp_path / DATA_FILE).write_text("{}", encoding="utf-8")
    show_strip()
    show_way()
    assert capsys.readouterr().out == ""
    beside = {WAY: pack(way_of(FILE, 9))}
    (tmp_path / DATA_FILE).write_text(json.dumps(beside), encoding="utf-8")
    show_way()
    assert "You are here: Q, K, V." in capsys.readouterr().out
    assert unpack(beside_notebook()[WAY])["number"] == 9


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match=re.escape(str(tmp_path / "way.json"))):
        way_of(tmp_path / "way.json", 1)
