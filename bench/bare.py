"""The limit of all grading: the graded cells and nothing else.

``python -m bench.bare CLASS`` forks a process that has imported the libraries for each
submission of a class and executes in it, with Python's ``exec``, the student's cells
that a grade depends on, and the test cells. No shell, no sandbox, no second process, no
gradebook, no pages. It prints one JSON object a line.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from autograder.classroom.folder import ClassFolder
from autograder.course.bundle import Bundle
from autograder.grade.submission import find_notebook, parse, read_file


def main() -> None:
    """Execute what was handed in to the class at the given folder."""
    folder = ClassFolder.open(Path(sys.argv[1]))
    _warm_up()
    bundles = {name: folder.bundle(name) for name in folder.assignments}
    handins, _ = folder.handins()
    for handin in handins:
        bundle = bundles[handin.assignment]
        path, _ = find_notebook(handin.folder, bundle)
        data = read_file(path)
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                _execute(data, bundle, handin.folder, folder.seed)
            os._exit(0)
        _, _, used = os.wait4(pid, 0)
        report = {
            "student": handin.student,
            "assignment": handin.assignment,
            "processor": used.ru_utime + used.ru_stime,
            "wall": time.monotonic() - started,
        }
        print(json.dumps(report), flush=True)


def _warm_up() -> None:
    import matplotlib.pyplot
    import seaborn
    import torch
    import torch._dynamo

    assert matplotlib.pyplot and seaborn and torch._dynamo
    torch.set_num_threads(1)


def _execute(data: bytes, bundle: Bundle, beside: Path, seed: int) -> None:
    """What a kernel would do with the graded cells, in a fork."""
    import numpy as np

    random.seed()
    np.random.seed()
    submission = parse(data, bundle)
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(beside, scratch, dirs_exist_ok=True)
        os.chdir(scratch)
        sys.path.insert(0, scratch)

        setting = import_module("lesson_kit.setting")
        setting.now.seed = seed
        namespace: dict[str, Any] = {"__name__": "__main__"}
        sources = [cell.source for cell in submission.to_run(bundle)]
        sources += [test.source for test in bundle.tests]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for number, source in enumerate(sources):
                _cell(source, number, namespace)


def _cell(source: str, number: int, namespace: dict[str, Any]) -> None:
    import linecache

    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    # A wrong answer raises here or in its tests; the next cell runs all the same.
    with contextlib.suppress(Exception):
        exec(compile(source, name, "exec"), namespace)


if __name__ == "__main__":
    main()
