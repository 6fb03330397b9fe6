"""The house as docs/architecture.md draws it: its floors, its sizes, the doors that it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from importlinter.cli import lint_imports

from autograder.box import imports

from ..conftest import COURSE, ROOT

PACKAGE, KIT = ROOT / "autograder", ROOT / "lesson_kit"
MODULES = sorted([*PACKAGE.rglob("*.py"), *KIT.glob("*.py")])
#: Modules outside packages: what all floors stand on.
MAX_OUTSIDE = 8
MAX_LINES = 350
MAX_LINES_OF_A_FUNCTION = 60
#: Names of variables that say nothing of what they hold, and how often they may stand.
NAMELESS = {"one", "found"}
MAX_NAMELESS = 100
#: Longer functions, each with the reason that it is one.
LONG_FOR_A_REASON = {
    "autograder/course/source_rules.py check_cells": "a list of rules, each with its message",
    "autograder/grade/grading.py grade": "the steps of grading, in order",
    "autograder/lms/moodle.py moodle": "a list of columns, and what is refused",
    "autograder/marking/grade_class.py grade_class": "the steps of grading a class, in order",
}

DISTRIBUTION = "attention-course-autograder"
LESSONS = "|".join(lesson.folder for lesson in COURSE.lessons)
#: Modules that name attention all the same, each with the reason.
NAMES_ATTENTION = {
    "autograder/cli/main.py": "the command's second name",
    "lesson_kit/__init__.py": "the name of the module below",
    "lesson_kit/attention_view.py": "a figure of the field, which lessons call by its name",
    "lesson_kit/chat_model.py": "keys of the format that a published model is in",
    "lesson_kit/course_progress.py": "a key in notebooks that were handed out before",
    "lesson_kit/package_program.py": "what a student's package runs: the published model's keys",
}


def test_imports_go_downward() -> None:
    """The floors stand in pyproject.toml; import-linter reads every import of the package."""
    pyproject = str(ROOT / "pyproject.toml")
    assert lint_imports(config_filename=pyproject, no_cache=True) == 0


def test_every_package_says_what_it_must_not_know() -> None:
    for init in (*PACKAGE.glob("*/__init__.py"), KIT / "__init__.py"):
        words = " ".join((ast.get_docstring(ast.parse(init.read_text())) or "").split())
        assert all(said in words for said in ("In: ", "Out: ", "must not know", "Public face: ")), (
            init
        )


def test_the_kits_public_face_is_what_lessons_import() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "lessons").glob("*/*.py")]
    imported = {name for text in sources for name in re.findall(r"lesson_kit\.(\w+)", text)}
    said = set(re.findall(r":mod:`\.(\w+)`", (KIT / "__init__.py").read_text(encoding="utf-8")))
    assert imported <= said


def test_only_lessons_know_what_the_course_is_about() -> None:
    """The engine grades any course; where attention is named, it says why."""
    named = {}
    for path in (path for folder in (PACKAGE, KIT) for path in folder.rglob("*.*")):
        if path.suffix in (".py", ".j2", ".js", ".css"):
            text = path.read_text(encoding="utf-8").replace(DISTRIBUTION, "")
            words = re.findall(rf"attention|{LESSONS}", text, re.I)
            named |= {path.relative_to(ROOT).as_posix(): set(words)} if words else {}
    assert named.keys() == NAMES_ATTENTION.keys()


def test_few_modules_stand_outside_packages() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MAX_OUTSIDE


def test_modules_and_functions_can_be_read_at_one_go() -> None:
    long = []
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        if len(text.splitlines()) > MAX_LINES:
            long.append(f"{name} has {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                size = (node.end_lineno or 0) - node.lineno + 1
                key = f"{name} {node.name}"
                if size > MAX_LINES_OF_A_FUNCTION and key not in LONG_FOR_A_REASON:
                    long.append(f"{key} has {size} lines")
    assert not long


def test_architecture_names_only_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:autograder|lessons|tests|docs|demo|bench)/[\w./-]+)`", text)
    assert len(named) > 30
    decisions = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    named += re.findall(r"`((?:autograder|tests)/[\w./-]+)`", decisions)
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    unnamed = {one for one in packages if f"autograder/{one}/" not in text}
    assert not unnamed, "each package has its place in docs/architecture.md"


def test_names_say_something() -> None:
    empty = {"utils", "helpers", "common", "misc", "util", "helper", "manager"}
    tracked = [path for path in ROOT.glob("*/**/*.py") if ".venv" not in path.parts]
    assert not [path for path in tracked if empty & {Path(part).stem for part in path.parts}]


def test_no_test_imports_from_another() -> None:
    """What tests share stands in modules of its own, and fixtures in conftest.py."""
    tests = (ROOT / "tests").rglob("test_*.py")
    from_another = re.compile(r"^from (\.+|tests\.)([a-z]+\.)?test_\w+ import", re.M)
    assert not [path.name for path in tests if from_another.search(path.read_text("utf-8"))]


def test_a_box_answers_for_every_module_beside_a_notebook() -> None:
    there = {"", *(f".{path.stem}" for path in KIT.glob("*.py"))} - {".__init__"}
    names = {f"{kit}{module}" for kit in (KIT.name, imports.FORMER) for module in there}
    assert imports.MODULES.keys() == names


def test_variables_are_called_after_what_they_hold() -> None:
    """A mistake, a member, a cell: ``one`` and ``found`` stood 1,348 times once."""
    nodes = (node for path in MODULES for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    names = [
        node.id if isinstance(node, ast.Name) else node.arg
        for node in nodes
        if isinstance(node, (ast.Name, ast.arg))
    ]
    assert len(names) > 10_000
    assert sum(name in NAMELESS for name in names) <= MAX_NAMELESS
