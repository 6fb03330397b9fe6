"""What of ``make test-long`` concerns what a change touched.

``python -m tests.concerned`` looks at the last commit, or with ``--since COMMIT`` at all after that
one, and lists the commands of each lesson and package that it touched. ``--run MINUTES`` runs them:
none begins after that time, and one that is still running then is stopped. What was not run to its
end is said, and is no failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

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


def commands_for(changed: list[str]) -> Iterator[tuple[str, str]]:
    """What concerns changed files: the lesson's or package's folder, and a command.

    Args:
        changed: paths in the repository.
    """
    touched = {"/".join(path.split("/")[:2]) for path in changed if path.endswith(".py")}
    for package, commands in OF_A_PACKAGE.items():
        if any(unit == package or unit.startswith(f"{package}/") for unit in touched):
            yield from ((package, command) for command in commands)
    for notebook in sorted((ROOT / "solutions").glob("*/*.ipynb")):
        folder = notebook.parent.name
        if f"lessons/{folder}" in touched:
            where = notebook.relative_to(ROOT).as_posix()
            for command in OF_A_LESSON:
                yield f"lessons/{folder}", command.format(folder=folder, notebook=where)


def changed_since(commit: str | None) -> list[str]:
    """Paths of the files that differ between a commit and what lies here.

    Args:
        commit: None is the one before; where the history begins here, nothing is compared.
    """
    asked = ["git", "-C", str(ROOT), "diff", "--name-only", commit or "HEAD~1"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    if found.returncode and commit:
        sys.exit(f"git does not know {commit!r} here; fetch more of the history, or name another")
    if found.returncode:
        print("There is no commit before this one here to compare with.")
    return found.stdout.splitlines()


def main() -> int:
    """Exit status: 0 nothing failed, 1 something did."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--since", metavar="COMMIT", help="else the one before")
    parser.add_argument("--run", type=float, metavar="MINUTES", default=0, help="for so long")
    asked = parser.parse_args()
    units: dict[str, list[str]] = {}
    for unit, command in commands_for(changed_since(asked.since)):
        units.setdefault(command, []).append(unit)
    end = time.monotonic() + 60 * asked.run
    failed, left_out = [], []
    for command, concerned in units.items():
        seconds = end - time.monotonic()
        if seconds > 0:
            print(f"== {', '.join(concerned)}: {command}", flush=True)
        holds = _holds(command, seconds) if seconds > 0 else None
        if holds is None:
            left_out.append(f"{', '.join(concerned)}: {command}")
        elif not holds:
            failed.append(command)
    if left_out:
        print("== Left out, for `make test-long`:", *left_out, sep="\n")
    print(f"Of {len(units)} commands {len(failed)} failed, {len(left_out)} were left out.")
    return 1 if failed else 0


def _holds(command: str, seconds: float) -> bool | None:
    """Whether a command succeeds; None where it did not end in time."""
    name, *arguments = command.split()
    program = [sys.executable] if name == "python" else [sys.executable, "-m", name]
    environment = {**os.environ, "AUTOGRADER_TEST_SHARD": "all"}
    try:
        done = subprocess.run(
            [*program, *arguments], cwd=ROOT, env=environment, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return None
    # 5: no test is chosen, as where a lesson has none of a kind.
    return done.returncode in (0, 5)


if __name__ == "__main__":
    sys.exit(main())
