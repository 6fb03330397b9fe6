"""A print that belongs to one processor turns the check red; the truth of its bound does not."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

from .. import other_processors
from ..conftest import SHARD
from ..other_processors import PLAIN, Setting, Under, main, moved, nearest, settings, under

pytestmark = pytest.mark.slow

COMPUTED = """
import os
import numpy as np
import torch
torch.set_num_threads(1)
rng = np.random.default_rng(0)
product = rng.normal(size=(67, 131)) @ rng.normal(size=(131, 61))
total = torch.from_numpy(rng.normal(size=200_000)).float().sum().item()
"""
#: What the notebooks print, by their names in the probe.
PRINTED = {"NumPy matmul", "torch sum"}
DIGITS = "print(product.tolist(), total)"
BOUND = "print(abs(product).max() < 100)\nassert abs(product).max() < 100, 'small'"
CLAIM = "assert (product.tolist(), total) == {}, 'the digits of this processor'"
ENDED = "if 'OPENBLAS_NUM_THREADS' in os.environ:\n    os._exit(3)"


def solved(path: Path, source: str, *tags: str) -> Path:
    """A notebook with the outputs that its two cells have in this process."""
    names: dict[str, Any] = {}
    notebook = nbformat.v4.new_notebook()
    exec(COMPUTED, names)
    source = source.replace("{}", repr((names["product"].tolist(), names["total"])))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(source, names)
    outputs = [nbformat.v4.new_output("stream", text=printed.getvalue())]
    notebook.cells = [
        nbformat.v4.new_code_cell(COMPUTED),
        nbformat.v4.new_code_cell(
            source, outputs=outputs * bool(printed.getvalue()), metadata={"tags": [*tags]}
        ),
    ]
    nbformat.write(notebook, path)
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[Setting, Under]:
    folder = tmp_path_factory.mktemp("solved")
    notebooks = [
        solved(folder / "digits.ipynb", DIGITS),
        solved(folder / "bound.ipynb", BOUND),
        solved(folder / "ignored.ipynb", DIGITS, "nbval-ignore-output"),
        solved(folder / "claim.ipynb", CLAIM),
        solved(folder / "ended.ipynb", ENDED),
    ]
    return {setting: under(setting, notebooks) for setting in (PLAIN, *TRIED)}


#: One setting is sampled, or all are tried: a start of the libraries takes seconds.
TRIED = settings() if os.environ[SHARD] == "all" else settings()[:1]


def of(runs: dict[Setting, Under], notebook: str) -> list[tuple[bool, other_processors.Ran]]:
    """For each setting but the plain one: whether printed digits moved, and what came of it."""
    found = []
    for setting in TRIED:
        here = runs[setting]
        changed = PRINTED & set(moved(runs[PLAIN].probe, here.probe))
        found.append((bool(changed), next(one for one in here.ran if one.notebook == notebook)))
    assert any(changed for changed, _ in found), "no setting moves a digit: nothing is tested"
    return found


def test_the_plain_setting_finds_nothing(runs: dict[Setting, Under]) -> None:
    assert [one.faults for one in runs[PLAIN].ran] == [[]] * 5


def test_a_print_that_belongs_to_a_processor_is_found(runs: dict[Setting, Under]) -> None:
    for changed, ran in of(runs, "digits"):
        assert bool(ran.faults) == changed
        assert all("cell 1 prints something else" in fault for fault in ran.faults)


def test_the_truth_of_a_bound_is_the_same_everywhere(runs: dict[Setting, Under]) -> None:
    for _, ran in of(runs, "bound"):
        assert (ran.faults, ran.compared) == ([], 1)


def test_an_ignored_output_is_not_compared(runs: dict[Setting, Under]) -> None:
    for changed, ran in of(runs, "ignored"):
        assert (ran.faults, ran.compared, ran.moved) == ([], 0, changed)


def test_a_claim_that_does_not_hold_is_found(runs: dict[Setting, Under]) -> None:
    for changed, ran in of(runs, "claim"):
        assert bool(ran.faults) == changed
        assert all("raised AssertionError: the digits" in fault for fault in ran.faults)


def test_a_notebook_that_ends_its_process_is_found(runs: dict[Setting, Under]) -> None:
    for _, ran in of(runs, "ended"):
        assert ran.faults == ["its process ended before the notebook did"]


def test_claims_are_listed_with_their_sides(runs: dict[Setting, Under]) -> None:
    (_, ran), *_ = of(runs, "bound")
    (claim,) = ran.claims
    assert claim.text == "abs(product).max() < 100"
    assert 0 < claim.left < claim.right == 100
    assert claim.room == pytest.approx(1 - claim.left / 100)
    listed = "\n".join(nearest({"some": runs[settings()[0]]}, 3))
    assert "bound, cell 1: abs(product).max() < 100" in listed
    assert f"some {claim.left:.4g} | 100" in listed


def test_the_command_fails_for_a_fault_or_if_it_proves_nothing(
    runs: dict[Setting, Under], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def only(name: str, run: dict[Setting, Under] = runs) -> int:
        def kept(setting: Setting, notebooks: list[Path], workers: int) -> Under:
            ran = [one for one in run[setting].ran if one.notebook == name]
            return Under(run[setting].probe, ran)

        monkeypatch.setattr(other_processors, "under", kept)
        monkeypatch.setattr(other_processors, "settings", lambda: TRIED)
        return main([f"{name}.ipynb"])

    assert only("digits") == 1
    assert "digits, cell 1 prints something else" in capsys.readouterr().out
    assert only("bound") == 0
    assert only("bound", dict.fromkeys(runs, runs[PLAIN])) == 1
    told = capsys.readouterr().out
    assert "no other digits on this processor" in told
    assert "proves nothing; find settings that do" in told


def test_only_features_that_numpy_reports_are_switched_off() -> None:
    """NumPy refuses to load, or warns, for any other name."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    there = {name for name in __cpu_dispatch__ if __cpu_features__.get(name)}
    oldest, newer = (one.environment["NPY_DISABLE_CPU_FEATURES"].split() for one in settings()[:2])
    assert set(newer) < there == set(oldest) or not there
