"""nbgrader's commands and the Formgrader's buttons, pressed in a class of the tiny course."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import Any

from autograder.classroom.folder import ClassFolder

from .classes import LESSON

#: What the Formgrader's server does when a button is pressed.
PRESS = """
import json, sys
from nbgrader.apps import NbGrader
from nbgrader.apps.api import NbGraderAPI

button, assignment, student = sys.argv[1:]
app = NbGrader()
app.initialize([])
api = NbGraderAPI(app.coursedir, parent=app)
print(json.dumps(getattr(api, button)(assignment, student)))
"""


def run(folder: ClassFolder, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the class's folder, where starting a kernel leaves ``kernel-started``."""
    spec = folder.root.parent / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True, exist_ok=True)
    started = folder.root.parent / "kernel-started"
    argv = ["sh", "-c", f"touch {shlex.quote(str(started))}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "trap", "language": "python"}))
    environment = {**os.environ, "JUPYTER_PATH": str(folder.root.parent / "jupyter")}
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=folder.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert not started.exists(), "nbgrader started a kernel"
    return ran


def nbgrader(folder: ClassFolder, *words: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "nbgrader", *words)


def press(folder: ClassFolder, button: str, student: str) -> dict[str, Any]:
    ran = run(folder, "-c", PRESS, button, LESSON, student)
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer
