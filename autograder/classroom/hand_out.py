"""What a class hands out: the student version of a lesson, as class.toml wants it."""

from __future__ import annotations

from autograder.build.build import generate_release, nbgrader_config
from autograder.classroom.folder import WHEN_GRADED, ClassFolder
from autograder.classroom.held_back import lies_in
from autograder.course.choices_alone import ANSWERS_FILE, choices_alone
from autograder.files import write_whole


def release(folder: ClassFolder, assignment: str) -> None:
    """Write the student version of ``source/<assignment>/``; one that is held back stays so.

    Raises:
        BuildError: nbgrader refused the notebook.
        ClassError: short_answers in class.toml cannot be used.
    """
    when = folder.short_answers
    place = lies_in(folder, assignment)
    config = nbgrader_config(folder.root, folder.db_url)
    config.CourseDirectory.release_directory = place.parent.name
    generate_release(config, assignment)
    answers = place / ANSWERS_FILE
    if when == WHEN_GRADED and answers.exists():
        write_whole(answers, choices_alone(answers.read_text(encoding="utf-8")))
