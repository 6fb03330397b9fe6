"""Where everything is installed, a test that is skipped is a failure and says why."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import ROOT

pytestmark = pytest.mark.slow

TESTS = """
import pytest

@pytest.mark.skipif(True, reason="There is no such program.")
def test_marked(): ...

def test_calls():
    pytest.skip("It cannot be tried.")

@pytest.fixture
def lacking():
    pytest.skip("The fixture cannot be had.")

def test_fixture(lacking): ...

@pytest.mark.xfail(reason="known")
def test_expected():
    assert False

def test_passes(): ...
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-r", "A"]
    return subprocess.run(
        [*command, *options, str(folder)], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_skip_fails_and_says_what_was_skipped(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    allowed = run(tmp_path)
    assert allowed.returncode == 0, allowed.stdout
    assert "1 passed, 3 skipped, 1 xfailed" in allowed.stdout
    held = run(tmp_path, "--no-skips")
    assert held.returncode == 1
    assert re.search(
        r"1 failed, 1 passed, 1 xfailed, 2 errors|3 failed, 1 passed, 1 xfailed", held.stdout
    )
    for reason in ("There is no such program.", "It cannot be tried.", "The fixture cannot be had"):
        assert f"nothing may be skipped, and this was: Skipped: {reason}" in held.stdout


def test_a_file_that_is_skipped_as_a_whole_fails(tmp_path: Path) -> None:
    (tmp_path / "test_module.py").write_text(
        'import pytest\npytest.importorskip("no_such_thing")\n'
    )
    assert run(tmp_path).returncode == 5  # nothing was run
    held = run(tmp_path, "--no-skips")
    assert held.returncode not in (0, 5)
    assert "no_such_thing" in held.stdout


def test_every_skip_has_a_sentence() -> None:
    found = 0
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not re.fullmatch(
                r"pytest\.(mark\.)?(skip|skipif|importorskip)", ast.unparse(node.func)
            ):
                continue
            found += 1
            reason = next((one.value for one in node.keywords if one.arg == "reason"), None)
            reason = reason or node.args[-1]
            if isinstance(reason, ast.Constant):
                said = str(reason.value)
                assert re.fullmatch(r"[A-Z].* .*[.]", said), f"{path}: {said!r} is no sentence"
            else:  # what the sandbox says of itself, which test_sandbox.py looks at
                assert "why" in ast.unparse(reason), f"{path}: {ast.unparse(node)}"
    assert found >= 5
