"""What people install is said once, and the other places say the same."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import version

import pytest
import yaml

from .conftest import COURSE, ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REQUIREMENTS = (
    *PYPROJECT["project"]["dependencies"],
    *PYPROJECT["project"]["optional-dependencies"]["test"],
    *PYPROJECT["project"]["optional-dependencies"]["docs"],
)
#: What conda-forge calls the build of torch without CUDA, and Playwright for Python.
CONDA_NAMES = {"pytorch-cpu": "torch", "playwright-python": "playwright"}


def environment_requirements() -> set[str]:
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    lines = re.findall(r"^  - (\S+)$", text.split("dependencies:")[1], re.M)
    found = set()
    for line in lines:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", line).groups()  # type: ignore[union-attr]
        found.add(CONDA_NAMES.get(name, name) + bound)
    return found


def test_environment_yml_says_what_pyproject_says() -> None:
    python = "python" + PYPROJECT["project"]["requires-python"]
    wanted = {one.replace("[binary]", "") for one in REQUIREMENTS}  # conda's has the library
    assert environment_requirements() == {python, "pip", *wanted}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins), (
        "a pin is a name and a version"
    )
    return dict(pin.lower().split("==") for pin in pins)


def as_numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_lower_bound_is_kept_by_what_was_tried(requirement: str) -> None:
    name, bound = requirement.replace("[binary]", "").split(">=")
    pinned = constraints()[name]
    assert as_numbers(pinned) >= as_numbers(bound)
    assert version(name).split("+")[0] == pinned, "run `make setup` again"


def test_the_readme_names_only_commands_that_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^make (\w+)|`make (\w+)", readme, re.M))
    assert {one or other for one, other in named} <= targets


def test_ci_runs_the_one_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "make test NO_SKIPS=1", "what cannot be tried here is no proof"
    assert not [line for line in lines if "pytest" in line]


def test_the_readme_lists_the_lessons_of_course_toml() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for lesson in COURSE.lessons:
        where = f"course/{lesson.folder}/{lesson.notebook_name}.ipynb"
        link = f"[{lesson.number:02d} {lesson.title}]({where})"
        assert f"| {link} | {lesson.minutes} | {lesson.about} |" in readme


def test_the_readmes_picture_is_what_the_solved_lesson_shows() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    import take_picture

    same = take_picture.PICTURE.read_bytes() == take_picture.last_figure()
    assert same, "run python docs/take_picture.py"


def test_the_workflow_for_forks_runs_the_makefile_s_commands() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    steps = workflow["jobs"]["test"]["steps"]
    called = [word for step in steps for word in re.findall(r"make (\w+)", step.get("run", ""))]
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    assert called == ["test"]
    assert set(called) <= targets
    python = next(step["with"] for step in steps if "python" in step.get("uses", ""))
    assert PYPROJECT["project"]["requires-python"] == f">={python['python-version']}"
    installed = " ".join(step.get("run", "") for step in steps)
    assert "bubblewrap" in installed
