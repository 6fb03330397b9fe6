"""Worker processes are gone when the process that started them is, however it ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import time

import pytest

#: Two workers, one asleep and one that computes without end.
PARENT = """
import sys, time
from multiprocessing import get_context
from autograder.processes import processes

if __name__ == "__main__":
    with processes(2, context=get_context(sys.argv[1])) as pool:
        for task in ("import time; time.sleep(600)", "while True: pass"):
            pool.submit(exec, task)
        while len(pool._processes) < 2:
            time.sleep(0.01)
        print(*pool._processes, flush=True)
"""


def runs(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    command = ["ps", "-o", "stat=", "-p", str(pid)]
    state = subprocess.run(command, capture_output=True, text=True, check=False)
    return bool(state.stdout.strip()) and not state.stdout.startswith("Z")


@pytest.mark.parametrize("start", multiprocessing.get_all_start_methods())
def test_workers_end_with_a_parent_that_is_killed(start: str) -> None:
    command = [sys.executable, "-c", PARENT, start]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(workers) == 2 and all(map(runs, workers))
        time.sleep(1.0)  # both are at their tasks
        parent.kill()
    until = time.monotonic() + 60
    while left := [pid for pid in workers if runs(pid)]:
        if time.monotonic() > until:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            pytest.fail(f"workers outlive their parent: {left}")
        time.sleep(0.1)
