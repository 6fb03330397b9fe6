"""What a submission may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a submission may take: processor seconds, MiB of memory for all its processes, and MiB
    of its file, large outputs left out.

    It may sleep :data:`autograder.box.patience.ASLEEP` times as long.
    """

    cell: float = 30.0
    test: float = 20.0
    notebook: float = 240.0
    memory: float = 2048.0
    size: float = 25.0
