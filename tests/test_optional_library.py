"""Lesson 16 where Keras is installed, and where it is not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder.build.beside import write_companions
from autograder.build.build import write_source
from autograder.course import libraries
from autograder.course.bundle import Bundle
from autograder.course.libraries import LibraryLacking, ask_for_libraries, optional_libraries
from autograder.diagnose.catalogue import mistakes, released_mistakes
from autograder.grade.limits import Limits
from autograder.grade.task import Task
from autograder.grade.worker import judge
from autograder.lesson.absent import Absent, NotInstalled
from autograder.marking.grade_class import grade_class
from autograder.notebooks import DEMONSTRATION, is_answer, is_test, tags

from .classes import solved_class
from .conftest import COURSE, ROOT, shown

LESSON = COURSE.lesson("16-keras")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WITHOUT = "Keras is not installed: `pip install keras==3.15.1` installs it; restart Python then."
HIDE = """
import sys
sys.modules["keras"] = None  # as if it were not installed
"""
