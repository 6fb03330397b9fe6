"""What a tag of the repository hands out to students: the course as folders that work alone.

``python -m autograder.build.release_files FOLDER`` makes the zip; ``make release`` the rest too.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from autograder.build.beside import write_kit
from autograder.course.course_progress import lesson_notebooks
from autograder.course.release import read_manifest, record_release, release_in, released_files
from autograder.errors import WrongUse

#: The folder in the zip, and the zip's own name.
NAME = "attention-course"


class NotAsBuilt(WrongUse):
    """A course folder is not what the build made; the message says what to do."""


def lay_out(course: Path, into: Path) -> None:
    """Copy a course as the build made it; in the copy each lesson has the kit and works alone.

    Args:
        course: the generated folder.
        into: the folder to make, or an empty one.

    Raises:
        NotAsBuilt: somebody worked in ``course``, or a build of it did not end.
    """
    if read_manifest(course) != release_in(course):
        raise NotAsBuilt(f"{course} is not as it was built: build it again, and hand out that")
    for name in released_files(course):
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(course / name, into / name)
    for notebook in lesson_notebooks(into):
        write_kit(notebook.parent)
    record_release(into)


def zipped(course: Path, folder: Path) -> Path:
    """Make a zip of :func:`lay_out` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        lay_out(course, Path(scratch, NAME))
        return Path(shutil.make_archive(str(folder / NAME), "zip", scratch, NAME))


if __name__ == "__main__":
    print(zipped(Path("course"), Path(sys.argv[1])))
