"""The course as folders that work alone: with the kit beside each notebook.

``python -m autograder.course.standalone FOLDER/NAME.zip`` makes the zip for students that a tag of
the repository has; ``make release`` makes the rest too. A wheel holds the same course, without the
kit, which it installs: ``autograder start`` lays it out.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import autograder
import lesson_kit
from autograder.course.release import (
    package_of,
    read_manifest,
    record_release,
    release_in,
    released_files,
)
from autograder.errors import WrongUse
from lesson_kit.course_progress import lesson_notebooks

#: The folder in the installed package that setup.py makes of course/.
IN_WHEEL = "student_course"

_READ_ME = """\
What the notebook in the folder above needs: its checks and its figures. Keep this folder beside the
notebook when you copy or move it; there is nothing in it to edit.
"""


class NotAsBuilt(WrongUse):
    """A course folder is not what the build made; the message says what to do."""


def write_kit(folder: Path) -> None:
    """Write the kit into the folder of a notebook that is handed out."""
    kit = folder / lesson_kit.__name__
    kit.mkdir(exist_ok=True)
    for path in sorted(Path(str(lesson_kit.__file__)).parent.glob("*.py")):
        (kit / path.name).write_bytes(path.read_bytes())
    (kit / "README.txt").write_text(_READ_ME, encoding="utf-8")


def installed_course() -> Path:
    """The student's course that came with this package; of a clone its own.

    Raises:
        NotAsBuilt: there is none.
    """
    package = Path(autograder.__file__).resolve().parent
    for folder in (package / IN_WHEEL, package.parent / "course"):
        if read_manifest(folder) is not None:
            return folder
    raise NotAsBuilt("this installation has no course in it; install the wheel of a release")


def lay_out(course: Path, into: Path) -> None:
    """Copy a course as the build made it, with the kit: lessons and start page work alone.

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
    for folder in (into, *(notebook.parent for notebook in lesson_notebooks(into))):
        write_kit(folder)
    record_release(into, package_of(course))


def zipped(course: Path, path: Path) -> None:
    """Make a zip of :func:`lay_out`, whose one folder is called as the zip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        lay_out(course, Path(scratch, path.stem))
        shutil.make_archive(str(path.with_suffix("")), "zip", scratch, path.stem)


if __name__ == "__main__":
    zipped(Path("course"), Path(sys.argv[1]))
