"""How much memory a process and all that it started hold."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

#: Bytes that may wait in a socket, unless the machine says otherwise.
_SOCKET_BUFFER = 212_992


def memory_below(pid: int, *, exact: bool = True, each_less: int = 0) -> int:
    """Bytes of memory of a process and all it started, with what may wait in its sockets.

    Pages shared since a fork count once when ``exact``, where the kernel lets us ask (the
    proportional set size); otherwise once for each process, which is never less. Of each process
    ``each_less`` bytes are not counted.
    """
    total = 0
    waiting = [pid]
    networks = {_network(os.getpid())}  # that of this process is not the box's
    while waiting:
        process = waiting.pop()
        with contextlib.suppress(OSError, ValueError):
            total += max(0, _memory_of(process, exact) - each_less)
            for task in Path(f"/proc/{process}/task").iterdir():
                waiting.extend(int(child) for child in (task / "children").read_text().split())
            if (network := _network(process)) not in networks:
                networks.add(network)
                total += _memory_of_sockets(process)
    return total


def _memory_of(pid: int, exact: bool) -> int:
    """Anonymous and shared memory of a process, and its page tables."""
    wanted = ("RssAnon:", "RssShmem:", "VmPTE:")
    text = _status(pid)
    if exact:
        with contextlib.suppress(OSError):
            shares = Path(f"/proc/{pid}/smaps_rollup").read_text()
            if shares:  # a process whose first thread has ended shows none
                text, wanted = text + shares, ("Pss_Anon:", "Pss_Shmem:", "VmPTE:")
    lines = [line.split() for line in text.splitlines() if line.startswith(wanted)]
    return sum(int(words[1]) for words in lines) * 1024


def _status(pid: int) -> str:
    """The status of a process; of another thread where the first one has ended before it."""
    text = Path(f"/proc/{pid}/status").read_text()
    if "RssAnon:" in text:
        return text
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            text = (task / "status").read_text()
            if "RssAnon:" in text:
                return text
    return ""


def _network(pid: int) -> str:
    """The name of a process's network namespace."""
    return os.readlink(f"/proc/{pid}/ns/net")


def _memory_of_sockets(pid: int) -> int:
    """What may wait in all sockets of a process's network namespace."""
    lines = Path(f"/proc/{pid}/net/unix").read_bytes().count(b"\n")
    buffer = _SOCKET_BUFFER
    with contextlib.suppress(OSError, ValueError):
        buffer = int(Path("/proc/sys/net/core/wmem_default").read_text())
    return max(0, lines - 1) * buffer
