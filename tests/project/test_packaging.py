"""What people install is said once, and the other places say the same."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from autograder import __version__
from autograder.course.release import released_files
from autograder.grade.engine import digest, sources

from ..conftest import COURSE, ROOT
from ..tiny import tiny_course

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REQUIREMENTS = (
    *PYPROJECT["project"]["dependencies"],
    *PYPROJECT["project"]["optional-dependencies"]["test"],
    *PYPROJECT["project"]["optional-dependencies"]["docs"],
)
PACKAGES = ("autograder", "lesson_kit")
#: What conda-forge calls the build of torch without CUDA, and Playwright for Python.
CONDA_NAMES = {"pytorch-cpu": "torch", "playwright-python": "playwright"}


def environment_requirements() -> set[str]:
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    # What conda-forge does not have stands below "pip:", further in.
    lines = re.findall(r"^(?:  )+- (\S*[^\s:])$", text.split("dependencies:")[1], re.M)
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
    assert version(name).split("+")[0] == pinned, "run `make setup-tests` again"


def test_the_lowest_versions_that_are_tried_are_the_lowest_that_are_allowed() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.replace("==", ">=") for line in lines if not line.startswith("#")]
    assert pins == PYPROJECT["project"]["dependencies"]


def makefile_targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def test_the_readme_names_only_commands_that_exist() -> None:
    targets = makefile_targets()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^make ([\w-]+)|`make ([\w-]+)", readme, re.M))
    assert {one or other for one, other in named} <= targets


def test_ci_runs_the_one_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert "make test NO_SKIPS=1" in lines, "what cannot be tried here is no proof"
    assert lines[-1].startswith(".venv/bin/python -m tests.concerned ")
    assert not [line for line in lines if "pytest" in line]


def test_the_readme_lists_the_lessons_of_course_toml() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for lesson in COURSE.lessons:
        where = f"course/{lesson.folder}/{lesson.notebook_name}.ipynb"
        link = f"[{lesson.number:02d} {lesson.title}]({where})"
        assert f"| {link} | {lesson.minutes} | {lesson.about} |" in readme
    hours = [
        round(sum(one.minutes for one in COURSE.lessons if (one.number < 10) == core) / 60)
        for core in (True, False)
    ]
    words = "01 to 09 takes about {} hours, the extras 10 to 19 about {} more"
    assert words.format(*hours) in " ".join(readme.split())
    assert round(sum(one.core_minutes for one in COURSE.lessons) / 60) == 10, "about ten hours"


def test_the_readmes_picture_is_what_the_solved_lesson_shows() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    import take_picture

    same = take_picture.PICTURE.read_bytes() == take_picture.first_figure()
    assert same, "run python docs/take_picture.py"


def workflow_jobs() -> dict[str, Any]:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    jobs: dict[str, Any] = workflow["jobs"]
    return jobs


def commands_of(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_the_workflow_for_forks_is_split_by_kind_and_leaves_nothing_out() -> None:
    jobs = workflow_jobs()
    called = {name: re.findall(r"\bmake ([\w-]+)", commands_of(job)) for name, job in jobs.items()}
    kinds = {"lessons", "grading", "browsers", "macos"}
    assert called == {
        "check": ["check"],
        "windows": [],
        **{kind: ["setup-tests"] for kind in kinds},
    }
    assert {one for names in called.values() for one in names} <= makefile_targets()
    for name, needed in (
        ("check", "bubblewrap"),
        ("lessons", "--nbval"),
        ("grading", "postgresql"),
        ("grading", "--ignore tests/browser tests"),
        ("browsers", "--no-skips tests/browser"),
    ):
        assert needed in commands_of(jobs[name])
    for path in re.findall(r"tests/[\w/]+\.py", "\n".join(map(commands_of, jobs.values()))):
        assert (ROOT / path).exists(), f"the workflow names {path}"


def test_the_workflow_for_forks_takes_every_python_from_the_oldest_on() -> None:
    versions = workflow_jobs()["check"]["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert PYPROJECT["project"]["requires-python"] == f">={versions[0]}"


def test_windows_is_installed_as_the_students_page_says() -> None:
    page = (ROOT / "docs" / "student.md").read_text(encoding="utf-8")
    said = re.findall(r"^(?:py|\.venv\\Scripts\\python) -m .*$", page, re.M)
    done = commands_of(workflow_jobs()["windows"]).split()
    assert len(said) == 2
    wanted = [word for line in said for word in line.replace("py -m", "python -m").split()]
    assert wanted == done[: len(wanted)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as `pip wheel` makes it, from a copy: building leaves files behind."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        copy.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, copy)
    for name in (*PACKAGES, "etc", "course", "examples"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--no-index", "--wheel-dir", str(folder), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


def test_a_wheel_holds_the_package_the_example_and_what_students_get(wheel: Path) -> None:
    """Students install it, so it must not bring the solutions."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = {
        path.relative_to(ROOT).as_posix()
        for name in PACKAGES
        for path in (ROOT / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    data = {path.relative_to(ROOT).as_posix() for path in (ROOT / "etc").rglob("*.py")}
    released = {*released_files(ROOT / "course"), ".release.json"}
    course = {f"autograder/student_course/{name}" for name in released}
    example = ROOT / "examples" / "statistics"
    sources = [*example.glob("lessons/*.toml"), *example.glob("lessons/*/*.py")]
    course |= {f"autograder/example_course/{path.relative_to(example)}" for path in sources}
    assert {re.sub(r"^[^/]*\.data/data/", "", name) for name in held} == package | data | course


Autograder = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Autograder:
    """Runs a command of an environment that has the wheel: the folder, then words."""
    home = tmp_path_factory.mktemp("installed") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install"]
    subprocess.run([*pip, "--quiet", "--no-deps", "--no-index", wheel], check=True)
    # What it needs is taken from this environment, whose own copy of the package is not on the
    # path: a folder that a .pth names is not asked for .pth files.
    (packages,) = home.glob("lib/*/site-packages")
    (packages / "needs.pth").write_text(sysconfig.get_paths()["purelib"])

    # nbgrader starts the program alembic, which is here only.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def autograder(
        folder: Path, *words: str, called: str = "autograder"
    ) -> subprocess.CompletedProcess[str]:
        command = [home / "bin" / called, *words]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    return autograder


def test_an_installed_wheel_lays_out_a_course_that_works_alone(
    installed: Autograder, tmp_path: Path
) -> None:
    made = installed(tmp_path, "start", "mine", "--no-lab")
    assert made.returncode == 0, made.stderr
    course = tmp_path / "mine"
    assert (course / "lesson_kit" / "course_progress.py").is_file(), "for the start page"
    for lesson in COURSE.lessons:
        folder = course / lesson.folder
        kit = {path.name for path in (ROOT / "lesson_kit").glob("*.py")} | {"README.txt"}
        assert {path.name for path in (folder / "lesson_kit").iterdir()} == kit
        name = f"{lesson.notebook_name}.ipynb"
        given = (ROOT / "course" / lesson.folder / name).read_bytes()
        assert (folder / name).read_bytes() == given
    (course / "start.ipynb").write_text("mine")
    again = installed(tmp_path, "start", "mine", "--no-lab")
    assert again.stdout.startswith("The course is already in mine.")
    assert (course / "start.ipynb").read_text() == "mine"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    refused = installed(tmp_path, "start", "other", "--no-lab")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "other holds something else; choose a new folder" in refused.stderr


def test_a_copy_says_what_it_is_under_both_names(installed: Autograder, tmp_path: Path) -> None:
    """In a wheel the commit is not known; the digests are those of what it was made of."""
    said = installed(tmp_path, "--version").stdout
    assert installed(tmp_path, "--version", called="attention-course").stdout == said
    first, commit, kit, grading = said.splitlines()
    assert first == __version__
    assert commit == "commit: not known, it is no clone"
    assert kit == f"kit: {digest(sorted((ROOT / 'lesson_kit').glob('*.py')))[:16]}"
    assert grading == f"code that grades: {digest(sources())[:16]}"
    helped = installed(tmp_path, "check", "--help", called="attention-course").stdout
    assert "example: attention-course check" in helped


def test_the_version_stands_once_and_the_citation_has_it() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert "version" not in PYPROJECT["project"]


def test_actions_are_pinned_by_digest() -> None:
    """A tag can be moved to other code; the comment says which release the digest is."""
    lines = [
        line.strip().removeprefix("- ")
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert lines
    assert not [
        one for one in lines if not re.fullmatch(r"uses: [\w/-]+@[0-9a-f]{40}  # v[\d.]+", one)
    ]


def test_an_installed_wheel_makes_a_class_of_a_course_that_is_named(
    installed: Autograder, tmp_path: Path
) -> None:
    def autograder(*words: str) -> subprocess.CompletedProcess[str]:
        return installed(tmp_path, *words)

    nowhere = autograder("new-class", "class")
    assert nowhere.returncode == 2
    assert nowhere.stderr.startswith("autograder: there is no course here: run this in the course")
    assert "--course DIR" in nowhere.stderr and len(nowhere.stderr.splitlines()) == 1
    assert not (tmp_path / "class").exists()
    tiny_course(tmp_path / "course")
    made = autograder("new-class", "class", "--course", "course")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "class" / "release" / "01-tiny" / "tiny.ipynb").exists()
    again = autograder("new-class", "of-another", "--course", "class")
    assert again.returncode == 2 and "course.toml is missing" in again.stderr


def test_a_kernel_leaves_out_the_one_warning_that_nobody_can_act_on() -> None:
    """The settings of kernels came with the package, also with an editable installation."""
    code = """
import nbformat
from nbclient import NotebookClient
cell = "import logging; logging.getLogger('IPKernelApp').warning('another warning')"
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
NotebookClient(notebook, startup_timeout=300, timeout=300).execute()
shown = [output.text for output in notebook.cells[0].outputs]
print(shown)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "another warning" in done.stdout + done.stderr
    assert "encryption" not in done.stdout + done.stderr, "run `make setup` again"


def test_students_commands_need_nothing_that_only_linux_has() -> None:
    """Every module can be imported on Windows; what confines a box is imported when it does."""
    only_unix = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios"}
    for path in (path for name in PACKAGES for path in (ROOT / name).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                found = {one.name for one in node.names} & only_unix
                assert not found, f"{path}: import {found} where it is needed"
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in only_unix, f"{path}: import {node.module} inside"
