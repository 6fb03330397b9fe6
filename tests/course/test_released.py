"""Every student notebook runs as handed out, and fails only at its stubs."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.course.lessons import Lesson
from autograder.notebooks import grade_id, is_answer, is_test

from ..conftest import COURSE, ROOT, sampled


def bound_names(source: str) -> set[str]:
    """The names a cell would define."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return names


def used_names(source: str) -> set[str]:
    """The names a cell looks up."""
    return {
        node.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


@pytest.mark.parametrize("lesson", sampled(COURSE.lessons), ids=lambda lesson: lesson.folder)
def test_the_student_notebook_fails_only_at_its_stubs(lesson: Lesson, tmp_path: Path) -> None:
    """An error is a stub's own, or comes of a name that a failed cell would have defined."""
    shutil.copytree(ROOT / "course" / lesson.folder, tmp_path, dirs_exist_ok=True)
    notebook = nbformat.read(tmp_path / f"{lesson.notebook_name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    patience = {"timeout": 900, "startup_timeout": 300}
    NotebookClient(notebook, allow_errors=True, resources=resources, **patience).execute()
    lost: set[str] = set()
    stubs = 0
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if not errors:
            continue
        error = errors[0]
        if error.ename == "NotImplementedError":
            stubs += 1
        else:
            # Undefined, or defined in part: a dictionary of models that were to be trained.
            follows = used_names(cell.source) & lost
            assert follows, f"{grade_id(cell) or cell.source}: {error.ename}: {error.evalue}"
        assert not is_answer(cell), f"the stub {grade_id(cell)} fails when it is defined"
        lost |= bound_names(cell.source)
    assert stubs, "nothing failed: are the solutions gone?"


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_every_visible_check_fails_on_the_untouched_notebook(lesson: Lesson) -> None:
    """A check that passes for the stub checks nothing; each calls its exercise."""
    for name, cell in lesson.tests.items():
        assert is_test(cell)
        assert used_names(cell.source) & set(lesson.exercises), f"{name} calls no exercise"


@pytest.mark.parametrize("lesson", COURSE.lessons, ids=lambda lesson: lesson.folder)
def test_no_solved_notebook_shows_a_warning(lesson: Lesson) -> None:
    """One names a file of the machine on which the notebook was built."""
    for path in (ROOT / "solutions" / lesson.folder).glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                assert output.get("name") != "stderr", grade_id(cell) or cell.source
