"""The tensors in a tree of plain data, in order, and the same tree with others in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lesson_kit.tensors import torch


def leaves(tree: Any) -> list[torch.Tensor]:
    """The tensors in lists, tuples and dicts."""
    tensors: list[torch.Tensor] = []
    _walk(tree, tensors.append)
    return tensors


def with_leaves(tree: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """The same tree with these tensors in the place of its own."""
    waiting: Iterator[torch.Tensor] = iter(tensors)
    return _walk(tree, lambda _: next(waiting))


def _walk(tree: Any, change: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if isinstance(tree, (list, tuple)):
        items = [_walk(item, change) for item in tree]
        return items if isinstance(tree, list) else tuple(items)
    if isinstance(tree, dict):
        return {key: _walk(item, change) for key, item in tree.items()}
    return tree
