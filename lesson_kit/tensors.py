"""torch where it is used: ``from .tensors import torch``.

Looking for tensors among results imports nothing: before somebody imported torch there are none.
What torch is asked to make or to do imports it. So a course that does without torch is checked and
graded where it is not installed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

__all__ = ["installed", "one_thread", "torch"]


class _Nothing:
    """The class of the tensors that there are without torch."""


_KINDS = {"Tensor": _Nothing, "nn": SimpleNamespace(Module=_Nothing, Parameter=_Nothing)}


class _WhereUsed:
    """torch, as far as it is there."""

    def __getattr__(self, name: str) -> Any:
        if name in _KINDS and sys.modules.get("torch") is None:
            return _KINDS[name]
        return getattr(import_module("torch"), name)


if TYPE_CHECKING:
    import torch
else:
    torch = _WhereUsed()


def installed() -> bool:
    """Whether torch can be imported here."""
    return find_spec("torch") is not None


def one_thread() -> None:
    """Have torch work with one thread, where it is installed: beside others that is faster."""
    if installed():
        torch.set_num_threads(1)
