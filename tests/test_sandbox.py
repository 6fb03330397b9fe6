"""The sandbox gives what SECURITY.md promises, or says that it cannot."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.box import sandbox, seccomp
from autograder.box.box import Box, BoxDied
from autograder.box.boxes import Boxes
from autograder.box.sandbox import BUBBLEWRAP, NONE, NoSandbox, choose, examine
from autograder.cli.main import main

from .test_class import hand_in, new, solved

#: What torch and OpenMP put into the environment when they are imported.
SET_BY_LIBRARIES = {"KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR"}

needs_bubblewrap = pytest.mark.skipif(
    not all(one.works for one in examine()),
    reason="; ".join(f"{one.name}: no" for one in examine() if not one.works),
)


@pytest.fixture(scope="module")
def confined() -> Iterator[Boxes]:
    with Boxes(BUBBLEWRAP) as boxes:
        yield boxes


@pytest.fixture
def box(confined: Boxes) -> Iterator[Box]:
    with confined.start({"beside.txt": b"hello"}) as box:
        yield box


def inside(box: Box, body: str) -> Any:
    """What the body of a function returns when it runs in the box, or its error's name."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    reply = box.probe(f"def asked():\n{lines}\n", "asked", (), {}, 20)
    return reply.error.types[0] if reply.error else reply.value


@needs_bubblewrap
def test_a_box_sees_the_interpreter_and_its_own_files_and_nothing_else(box: Box) -> None:
    assert inside(box, "return open('beside.txt').read()") == "hello"
    here = Path(__file__).resolve()
    for path in (here, here.parent.parent / "lessons" / "course.toml", Path("/etc/passwd")):
        assert inside(box, f"return open({str(path)!r}).read()") == "FileNotFoundError"
    environment = inside(box, "import os; return dict(os.environ)")
    assert set(environment) <= {*sandbox.box_environment("/"), "PWD", *SET_BY_LIBRARIES}
    # Of the process that forked it at most the numbers of descriptors are seen, never what they
    # lead to.
    reached = inside(
        box,
        """
import os
reached = []
for name in [*[f'fd/{one}' for one in os.listdir('/proc/1/fd')], 'root', 'mem', 'environ']:
    for reach in (os.readlink, lambda path: os.open(path, os.O_RDONLY)):
        try:
            reached.append((name, reach('/proc/1/' + name)))
        except OSError:
            pass
return reached
""",
    )
    assert reached in ("PermissionError", [])
    visible = inside(box, "import os; return [x for x in os.listdir('/proc') if x.isdigit()]")
    assert len(visible) <= 3


@needs_bubblewrap
@pytest.mark.parametrize(
    "path", ["/usr/bin/x", "/x", f"{sys.prefix}/x", f"{Path(sandbox.__file__).parent}/x"]
)
def test_a_box_writes_to_its_scratch_only(box: Box, path: str) -> None:
    assert inside(box, f"open({path!r}, 'w')") in ("OSError", "PermissionError")
    assert inside(box, "return open('mine', 'w').write('x')") == 1


@needs_bubblewrap
def test_scratch_is_limited_and_does_not_outlive_its_box(confined: Boxes) -> None:
    fill = "for n in range(8):\n    open(f'{n}', 'wb').write(bytes(50 * 2**20))"
    with confined.start({}) as box:
        assert inside(box, fill) == "OSError"
        for folder in ("/tmp", "/dev/shm", "."):
            assert inside(box, f"return open('{folder}/left', 'w').write('x')") in (1, "OSError")
    with confined.start({}) as box:
        for folder in ("/tmp", "/dev/shm", "."):
            assert inside(box, f"import os; return os.path.exists('{folder}/left')") is False


@needs_bubblewrap
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET"])
def test_there_is_no_network(box: Box, family: str) -> None:
    body = f"import socket; socket.socket(socket.{family}, socket.SOCK_STREAM)"
    assert inside(box, body) == "PermissionError"


@needs_bubblewrap
def test_a_box_has_no_rights(box: Box) -> None:
    user, group, groups = inside(box, "import os; return os.getuid(), os.getgid(), os.getgroups()")
    assert user != 0 and group != 0
    if os.getuid() == 0:
        assert groups == []
    status = inside(box, "return open('/proc/self/status').read()")
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == 0
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


CALLS = {
    "unshare": "libc.unshare(0x10000000)",
    "mount": "libc.mount(b'proc', b'/tmp', b'proc', 0, None)",
    "ptrace": "libc.ptrace(0, 0, 0, 0)",
    "setns": "libc.setns(0, 0)",
    "chroot": "libc.chroot(b'/tmp')",
    "keyctl": "libc.syscall(250 if x86 else 219, 0, 0, 0, 0, 0)",
    "io_uring_setup": "libc.syscall(425, 1, 0)",
    "bpf": "libc.syscall(321 if x86 else 280, 0, 0, 0)",
    "userfaultfd": "libc.syscall(323 if x86 else 282, 0)",
    "clone with a user namespace": "libc.syscall(56 if x86 else 220, 0x10000011, 0, 0, 0, 0)",
}


@needs_bubblewrap
@pytest.mark.parametrize("name", CALLS)
def test_system_calls_that_python_does_not_need_are_refused(box: Box, name: str) -> None:
    body = (
        "import ctypes, platform\n"
        "libc = ctypes.CDLL(None, use_errno=True); x86 = platform.machine() == 'x86_64'\n"
        f"return {CALLS[name]}, ctypes.get_errno()"
    )
    assert inside(box, body) == (-1, 1)


@needs_bubblewrap
def test_memory_is_limited(confined: Boxes) -> None:
    with confined.start({}) as box:
        assert inside(box, "return len(bytearray(3 * 2**30))") == "MemoryError"
    box = confined.start({}, 300 * 2**20)
    greedy = "import time\nkept = bytearray(700 * 2**20)\ntime.sleep(5)"
    with pytest.raises(BoxDied, match="memory"):
        box.run(greedy, 20)


@needs_bubblewrap
def test_processes_are_limited_and_end_with_the_box(confined: Boxes) -> None:
    bomb = (
        "import os, time\ncount = 0\n"
        "try:\n"
        "    while count < 500:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60); os._exit(0)\n"
        "        count += 1\n"
        "except BlockingIOError:\n    pass\n"
        "return count"
    )
    with confined.start({}) as box:
        assert 10 < inside(box, bomb) < 100
    with confined.start({}) as box:
        assert (
            len(inside(box, "import os; return [x for x in os.listdir('/proc') if x.isdigit()]"))
            <= 3
        )


def test_the_filter_looks_at_the_machine_first() -> None:
    for machine in ("x86_64", "aarch64"):
        program = seccomp.filter_program(machine)
        steps = list(struct.iter_unpack("=HBBI", program))
        assert steps[0][3] == 4  # the offset of the architecture
        assert steps[-1][3] == 0x7FFF0000  # what is not refused is allowed
        for position, (code, yes, no, _) in enumerate(steps):
            if code & 0x07 == 0x05:
                assert position + 1 + max(yes, no) < len(steps), "a jump out of the program"


def test_without_bubblewrap_grading_refuses_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = new(tmp_path)
    hand_in(folder, "ada", solved(folder))
    monkeypatch.setattr("autograder.box.sandbox.shutil.which", lambda name: None)
    with pytest.raises(NoSandbox, match="apt-get install bubblewrap"):
        choose("auto")
    assert main(["grade", str(folder.root)]) == 3
    assert "--sandbox none" in capsys.readouterr().err
    assert main(["doctor"]) == 3
    assert "NO   bubblewrap is installed" in capsys.readouterr().out
    assert main(["doctor", "--tier"]) == 0
    assert capsys.readouterr().out.strip() == NONE
    assert main(["grade", str(folder.root), "--sandbox", "none", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "No sandbox" in out and "8/8" in out
    assert '"sandbox": "none"' in (folder.root / "grades.json").read_text()


def test_nothing_outlives_a_grader_that_is_killed(tmp_path: Path) -> None:
    """Zygote and box end when the process that holds them is gone."""
    mark = f"outlives-{os.getpid()}"
    tier = BUBBLEWRAP if all(one.works for one in examine()) else NONE
    code = (
        "import os, signal\nfrom autograder.box.boxes import Boxes\n"
        f"box = Boxes({tier!r}).start({{}})\n"
        f"box.run('import ctypes; x = {mark!r}; ctypes.CDLL(None).prctl(15, b{mark[:15]!r})', 20)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)

    def still_there() -> list[str]:
        names = []
        for path in Path("/proc").glob("[0-9]*/comm"):
            try:
                names.append(path.read_text().strip())
            except OSError:
                continue
        return [name for name in names if name == mark[:15]]

    for _ in range(100):
        if not still_there():
            return
        subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError("a box outlives its grader")
