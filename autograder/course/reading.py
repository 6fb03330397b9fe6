"""Reading a course's lessons in other processes while this one is busy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from nbformat import NotebookNode

from autograder.course.lessons import Course, Lesson
from autograder.processes import processes


@contextmanager
def lessons_read(course: Course) -> Iterator[None]:
    """While the block runs others parse the notebooks of a course, which takes a tenth of a second
    each; behind it they are there.

    Raises:
        LessonError: a source cannot be read.
    """
    wanted = {lesson.folder: lesson for last in course.lessons for lesson in (*last.earlier, last)}
    with processes(max(1, (os.cpu_count() or 1) - 1)) as readers:
        notebooks = readers.map(_read, wanted.values())
        yield
        for lesson, notebook in zip(wanted.values(), notebooks):
            lesson.__dict__["notebook"] = notebook  # where its cached_property looks


def _read(lesson: Lesson) -> NotebookNode:
    return lesson.notebook
