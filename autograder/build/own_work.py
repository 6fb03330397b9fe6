"""A build replaces ``course/``, and the one who builds may have worked in it: that is kept."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

from autograder.course.release import digest_of_file, read_manifest, released_files

#: The folder that gets it, with the time.
KEPT = "course-before-build-"


def keep_own_work(course: Path, lesson: str | None, now: datetime) -> tuple[Path, list[str]]:
    """Copy what is not as the last build left it out of a course folder's lessons.

    Args:
        course: the folder that is about to be built.
        lesson: the only lesson folder that will be built, or None for all.
        now: goes into the name of the folder beside ``course``.

    Returns:
        The folder with the copies, and their names; no folder is made where there are none.
    """
    known = read_manifest(course) if course.is_dir() else None
    target = course.with_name(f"{KEPT}{now:%Y%m%d-%H%M%S}")
    kept: list[str] = []
    for name in released_files(course) if known else ():
        if "/" not in name or (lesson is not None and not name.startswith(f"{lesson}/")):
            continue
        before = known.files.get(name) if known else None
        # Companions of a build that was interrupted are nobody's work.
        if before is None or name.endswith(".ipynb"):
            if digest_of_file(course / name) == before:
                continue
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(course / name, target / name)
            kept.append(name)
    return target, kept
