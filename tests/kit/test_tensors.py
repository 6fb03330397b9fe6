"""torch is imported where a lesson uses it, and asked for nowhere else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch as real

from lesson_kit.tensors import torch

WITHOUT = """
import sys
sys.modules["torch"] = None
import pkgutil
from importlib import import_module
import autograder, lesson_kit
for package in (autograder, lesson_kit):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        import_module(found.name)
from autograder.box import wire
from autograder.diagnose.idle import BOXES
assert "a tensor" not in BOXES
assert wire.decode(wire.encode([1.5, {"a": None}])) == [1.5, {"a": None}]
print("all")
"""

UNUSED = """
import sys
import numpy as np
from lesson_kit import advice, checks, figures, repair
checks.assert_close(np.ones(3), np.ones(3), "same")
checks.assert_equal([1, "a"], [1, "a"], "same")
try:
    checks.assert_close(np.ones(3), np.zeros(3), "other")
except checks.CheckFailed as failed:
    print(failed.evidence.got["shape"], "torch" in sys.modules)
"""


def printed(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_module_can_be_imported_without_torch() -> None:
    assert printed(WITHOUT) == "all"


def test_checks_of_arrays_do_not_import_torch() -> None:
    assert printed(UNUSED) == "[3] False"


def test_where_torch_is_imported_it_is_torch() -> None:
    assert torch.Tensor is real.Tensor and torch.nn is real.nn
    assert not isinstance(np.ones(2), torch.Tensor)
    with pytest.raises(AttributeError, match="no attribute 'tenser'"):
        _ = torch.tenser
