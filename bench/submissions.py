"""Submissions as a class hands them in: solved notebooks, and notebooks with typical mistakes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.classroom.folder import ClassFolder
from autograder.classroom.new_class import new_class
from autograder.course.implementations import misconceptions
from autograder.course.lessons import Course, Lesson
from autograder.notebooks import grade_id, is_answer


def make_class(course: Course, root: Path, lessons: Iterable[Lesson]) -> ClassFolder:
    """A class with these lessons and nothing handed in."""
    only = replace(course, lessons=tuple(lessons))
    return new_class(only, root, say=lambda _: None)


def student(number: int) -> str:
    """The id of a student."""
    return f"student-{number:04d}"


def handed_in(lesson: Lesson, released: Path, number: int) -> NotebookNode:
    """What the student of that number hands in.

    Every third notebook is solved. Another third has one mistake, the last third one in every
    exercise for which a misconception is known. No two notebooks are alike.
    """
    notebook: NotebookNode = nbformat.read(released / f"{lesson.notebook_name}.ipynb", as_version=4)
    known: dict[str, list[str]] = {}
    for one in misconceptions(lesson):
        known.setdefault(one.exercise, []).append(one.source)
    names = sorted(known)
    wrong = [[], [names[number // 3 % len(names)]], names][number % 3] if names else []
    for cell in notebook.cells:
        name = grade_id(cell)
        if is_answer(cell):
            choices = known.get(name, [])
            cell.source = (
                choices[number // 3 % len(choices)] if name in wrong else lesson.exercises[name]
            )
    notebook.cells.append(nbformat.v4.new_markdown_cell(f"Handed in by {student(number)}."))
    return notebook


def hand_in(notebook: NotebookNode, released: Path, folder: Path) -> None:
    """Put a notebook and what was released beside it into ``folder``."""
    shutil.copytree(released, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (name,) = (path.name for path in folder.glob("*.ipynb"))
    nbformat.write(notebook, folder / name)
