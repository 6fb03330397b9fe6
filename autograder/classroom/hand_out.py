"""What a class hands out: the student version of a lesson, as class.toml wants it."""

from __future__ import annotations

import json

from autograder.build.build import generate_release, nbgrader_config
from autograder.classroom.folder import WHEN_GRADED, ClassFolder
from autograder.classroom.held_back import lies_in
from autograder.classroom.new_gradebook import begin_gradebook
from autograder.course.bundle import spoken_in
from autograder.course.choices_alone import choices_alone
from autograder.files import write_whole
from lesson_kit.setting import DATA_FILE
from lesson_kit.words import speaking


def renew_gradebook(folder: ClassFolder) -> bool:
    """Make the gradebook of a class anew where its file is gone; whether it was.

    It knows the assignments again. Points that people gave are in ``marking.jsonl`` alone then.

    Raises:
        BuildError: nbgrader refused a notebook.
    """
    if not folder.lacks_gradebook:
        return False
    begin_gradebook(folder.db_url)
    for assignment in folder.assignments:
        release(folder, assignment)
    return True


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
    config.CheckCellMetadata.enabled = False  # slow; the build has asked the same of these cells
    with speaking(spoken_in(folder.root / "source" / assignment)):
        generate_release(config, assignment)
    data = place / DATA_FILE
    if when == WHEN_GRADED and data.exists():
        alone = choices_alone(data.read_text(encoding="utf-8"))
        write_whole(data, json.dumps(alone, ensure_ascii=False) + "\n")
