"""What of ``make test-long`` concerns what changed since it last held.

``tests/held.json`` says of each lesson and each package under which digest its long tests held.
``python -m tests.concerned`` lists what differs, with its commands; ``--run MINUTES`` runs them, as
many as begin in that time, writes what held into the file, and says what was left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HELD = Path(__file__).with_name("held.json")

PYTEST = "pytest -q -n 3 -r s"
ATTACKS = (
    f"{PYTEST} tests/box/test_attacks.py tests/box/test_sandbox.py tests/box/test_warm_start.py"
)
KILLS = f"{PYTEST} -m long tests/marking/test_many.py"
BROWSER = "tests/browser/test_browser_"
IN_JUPYTERLAB = (
    f"{PYTEST} {BROWSER}student.py {BROWSER}accidents.py {BROWSER}start.py {BROWSER}hands_on.py "
    f"{BROWSER}accessible.py"
)
IN_THE_FORMGRADER = f"{PYTEST} {BROWSER}instructor.py {BROWSER}answers.py"

#: What of the long tests concerns a package; of the others nothing does.
OF_A_PACKAGE = {
    "autograder/box": [ATTACKS],
    "autograder/grade": [ATTACKS, KILLS],
    "autograder/marking": [KILLS, IN_THE_FORMGRADER],
    "autograder/build": [IN_JUPYTERLAB, f"{PYTEST} -m long tests/project/test_site.py"],
    "lesson_kit": [IN_JUPYTERLAB],
}
#: What concerns a lesson, by its folder.
OF_A_LESSON = [
    f"{PYTEST} tests/diagnose/test_the_tests.py tests/authors/test_lint.py -k {{folder}}",
    f"{PYTEST} -m long tests/diagnose/test_another_processor.py -k {{folder}}",
    "python -m tests.other_processors {notebook}",
]


def units() -> Iterator[tuple[str, list[str]]]:
    """What is looked at by itself, and its commands."""
    yield from OF_A_PACKAGE.items()
    for notebook in sorted((ROOT / "solutions").glob("*/*.ipynb")):
        where, path = notebook.relative_to(ROOT).as_posix(), notebook.parent
        yield (
            f"lessons/{path.name}",
            [text.format(folder=path.name, notebook=where) for text in OF_A_LESSON],
        )


def digest(unit: str) -> str:
    """Of all code of a package, or of all sources of a lesson."""
    whole = hashlib.sha256()
    for path in sorted((ROOT / unit).rglob("*.py")):
        whole.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def concerned(held: dict[str, str]) -> list[tuple[str, list[str]]]:
    """The units that differ from what held, those of few commands that many share first."""
    return [(unit, commands) for unit, commands in units() if held.get(unit) != digest(unit)]


def main() -> int:
    """Exit status: 0 nothing failed, 1 something did."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", type=float, metavar="MINUTES", help="run what begins in this time")
    asked = parser.parse_args()
    held = json.loads(HELD.read_text(encoding="utf-8")) if HELD.exists() else {}
    came_to: dict[str, bool] = {}
    left_out: list[str] = []
    end = time.monotonic() + 60 * (asked.run or 0)
    for unit, commands in concerned(held):
        before = digest(unit)
        for command in commands:
            if command in came_to:
                continue
            if asked.run is None or time.monotonic() > end:
                left_out.append(f"{unit}: {command}")
                continue
            print(f"== {unit}: {command}", flush=True)
            came_to[command] = _holds(command)
        if all(came_to.get(command) for command in commands):
            held[unit] = before
    if came_to:
        HELD.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if left_out:
        print("== Left out, for `make test-long`:", *left_out, sep="\n")
    failed = [command for command, holds in came_to.items() if not holds]
    if came_to:
        print(f"Of {len(came_to)} commands {len(failed)} failed.")
    return 1 if failed else 0


def _holds(command: str) -> bool:
    name, *arguments = command.split()
    program = [sys.executable] if name == "python" else [sys.executable, "-m", name]
    environment = {**os.environ, "AUTOGRADER_TEST_SHARD": "all"}
    # 5: no test is chosen, as where a lesson has none of a kind.
    done = subprocess.run([*program, *arguments], cwd=ROOT, env=environment, check=False)
    return done.returncode in (0, 5)


if __name__ == "__main__":
    sys.exit(main())
