"""The command that starts a process in bubblewrap: what it sees of this machine, read-only."""

from __future__ import annotations

import os
import shutil
import site
import sys
import sysconfig
from pathlib import Path

import autograder
import lesson_kit
from autograder.box.confinement import WORK
from autograder.box.user_namespace import UserMaps

#: How student code is confined.
BUBBLEWRAP, NONE = "bubblewrap", "none"


def user_of_boxes() -> int:
    """Who boxes of a grader that is root run as; another one for each process that grades, for
    limits on processes are counted by user."""
    return 100_000 + os.getpid()


def fork_server_command(
    backend: str, descriptor: int, libraries: tuple[str, ...] = (), maps: UserMaps | None = None
) -> list[str]:
    """The command that starts a fork server on an inherited control socket, with more modules."""
    confined = backend == BUBBLEWRAP
    run = [sys.executable, "-I", "-m", "autograder.box.fork_server", str(descriptor)]
    run += ["confined", str(user_of_boxes())] if confined else ["free", "0"]
    run += libraries
    return [*bubblewrap(maps), "--", *run] if confined else run


def bubblewrap(maps: UserMaps | None = None) -> list[str]:
    """bubblewrap with the interpreter, its libraries and this package, read-only.

    Args:
        maps: of the user namespace that it waits in; None: it has none, or maps this user alone.
    """
    command = [shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--clearenv", "--hostname", "box"]
    if maps is not None:
        command += maps.options
    elif os.getuid() != 0:  # else root stays outside one, so that boxes can become another user
        command.append("--unshare-user")
    # The fork server, which runs no student code, makes namespaces for its children; the
    # children give these up before student code runs.
    command += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN"]
    if os.getuid() == 0:
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL"]
    command += ["--proc", "/proc", "--dev", "/dev", "--dir", "/tmp", "--tmpfs", WORK]
    command += ["--tmpfs", "/dev/pts"]  # one box could take all terminals that boxes may have
    # Shared mappings of /dev/zero are memory that no watch sees; /dev/full reads the same.
    command += ["--dev-bind", "/dev/full", "/dev/zero"]
    bound = [path for path in (*_system_folders(), *_python_folders()) if path.exists()]
    for parent in sorted({parent for path in bound for parent in path.parents}):
        if parent != Path("/"):  # made by --ro-bind, it would be closed to the box's user
            command += ["--perms", "0755", "--dir", str(parent)]
    for path in bound:
        if path.is_symlink():
            command += ["--symlink", os.readlink(path), str(path)]
        else:
            command += ["--ro-bind", str(path), str(path)]
    for name, value in box_environment(WORK).items():
        command += ["--setenv", name, value]
    # Also /dev: an ordinary user's boxes could leave each other words there.
    return [*command, "--chdir", WORK, "--remount-ro", "/dev", "--remount-ro", "/"]


def box_environment(folder: str) -> dict[str, str]:
    """All that a box's process has in its environment."""
    return {
        "HOME": folder,
        "KERAS_BACKEND": "torch",  # where a lesson uses it: Keras looks once, when it is imported
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": folder,
        "OMP_NUM_THREADS": "1",
        "PATH": "/usr/bin:/bin",
        "TMPDIR": folder,
    }


def _system_folders() -> list[Path]:
    names = ("/lib", "/lib32", "/lib64", "/libx32", "/bin", "/usr/bin", "/usr/lib", "/usr/lib32")
    more = ("/usr/lib64", "/usr/libx32", "/usr/share/fonts", "/usr/share/zoneinfo")
    return [Path(name) for name in (*names, *more, "/etc/fonts", "/etc/ld.so.cache")]


def _python_folders() -> list[Path]:
    """The interpreter, its environment, this package and the kit, outermost first."""
    wanted = {Path(sys.base_prefix), Path(sys.prefix), Path(sysconfig.get_paths()["stdlib"])}
    wanted |= {Path(str(package.__file__)).parent for package in (autograder, lesson_kit)}
    wanted |= {Path(folder) for folder in site.getsitepackages()}
    kept: list[Path] = []
    covered = [path for path in _system_folders() if path.is_dir() and not path.is_symlink()]
    for path in sorted({path.resolve() for path in wanted if path.exists()}):
        if path in (Path("/"), Path("/usr"), Path("/usr/local")):
            # An interpreter of the system: its libraries, not the whole tree.
            kept += [path / part for part in ("bin", "lib") if path == Path("/usr/local")]
        elif not any(path.is_relative_to(other) for other in (*covered, *kept)):
            kept.append(path)
    return kept
