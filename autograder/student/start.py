"""A student's first minute: the course laid out in a folder of their own, and JupyterLab on it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from autograder.course.release import read_manifest
from autograder.course.standalone import installed_course, lay_out
from autograder.errors import WrongUse
from autograder.files import holds_something


class StartError(WrongUse):
    """The course cannot be laid out there; the message says what to do."""


def start(folder: Path) -> bool:
    """Lay the course out, if the folder has none yet.

    Args:
        folder: to make, or an empty one, or one in which the course was laid out before, which
            stays as it is.

    Returns:
        Whether it was laid out now.

    Raises:
        StartError: something else is there.
        NotAsBuilt: this installation holds no course.
    """
    if read_manifest(folder) is not None:
        return False
    if holds_something(folder):
        raise StartError(f"{folder} holds something else; choose a new folder")
    lay_out(installed_course(), folder)
    with contextlib.suppress(OSError):  # of what JupyterLab keeps at home
        # It then asks nothing when the button above the map is clicked.
        NotebookNotary().sign(nbformat.read(folder / "start.ipynb", as_version=4))
    return True


def open_lab(folder: Path) -> int:
    """Open JupyterLab on the start page of a course folder; its exit status, when it ends."""
    settings = (folder / ".jupyterlab").resolve()
    command = [sys.executable, "-m", "jupyterlab", str(folder)]
    command += ["--LabApp.default_url=/lab/tree/start.ipynb"]
    command += [f"--LabApp.app_settings_dir={settings}"]
    with subprocess.Popen(command) as lab:
        while True:
            try:
                return lab.wait()
            except KeyboardInterrupt:  # JupyterLab asks whether it is meant
                continue
