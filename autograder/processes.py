"""Worker processes that end with the process that started them, also when that was killed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext

#: The status of a worker whose parent is gone.
ORPHANED = 1


def processes(
    workers: int | None = None,
    begin: Callable[[], object] | None = None,
    context: BaseContext | None = None,
) -> ProcessPoolExecutor:
    """An executor on this machine's cores.

    Args:
        workers: how many at a time; as many as there are cores otherwise.
        begin: is called in each worker before its first task.
        context: how workers are started; as Python does it here otherwise.
    """
    return ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(begin,))


def _begin(begin: Callable[[], object] | None) -> None:
    end_with_parent()
    if begin is not None:
        begin()


def end_with_parent() -> None:
    """From now on this process ends when the one that started it is gone, whatever it is at."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(ORPHANED)

    threading.Thread(target=watch, daemon=True).start()
