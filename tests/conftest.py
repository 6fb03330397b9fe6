"""What the tests share: the course, and one class of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import Course

# No example has a deadline: on a busy machine any of them takes long.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

ROOT = Path(__file__).resolve().parent.parent
COURSE = Course.load(ROOT)


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """The test bundle of every lesson, as a class would hold it."""
    source = tmp_path_factory.mktemp("source")
    for lesson in COURSE.lessons:
        write_source(lesson, source / lesson.folder)
    return {lesson.folder: Bundle.load(source / lesson.folder) for lesson in COURSE.lessons}
