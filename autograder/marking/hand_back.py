"""Feedback pages once more, from what was graded: no student's code runs.

For when written answers were marked in the Formgrader, and for handing back through an LMS.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import MissingEntry

from autograder.box.sandbox import NONE
from autograder.classroom.folder import ClassError, ClassFolder
from autograder.classroom.gradebook import open_gradebook, stops_the_class
from autograder.classroom.grades_file import GradedSubmission, sandbox_of, write_grades
from autograder.classroom.hand_ins import collected, task_in_class
from autograder.files import replacing, write_whole
from autograder.grade.result_cache import ResultCache
from autograder.marking.exchange import name_for_exchange
from autograder.marking.feedback import feedback_path, settled_page
from autograder.text import plain_line


@dataclass
class HandedBack:
    """The pages that were written, the submissions that have no verdict, and what went wrong."""

    pages: list[Path] = field(default_factory=list)
    not_graded: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def write_pages(folder: ClassFolder, assignments: Sequence[str] | None = None) -> HandedBack:
    """Write the feedback page of every submission that was graded, with its points by hand.

    ``grades.json`` and ``grades.csv`` get the totals of now.

    Raises:
        ClassError: there is no such assignment.
    """
    bundles = {name: folder.bundle(name) for name in assignments or folder.assignments}
    results = ResultCache(folder.root / ".results")
    done = HandedBack()
    handins, _ = folder.handins()
    again: list[GradedSubmission] = []
    with open_gradebook(folder.db_url) as gradebook:
        for handin in handins:
            if handin.assignment not in bundles:
                continue
            bundle = bundles[handin.assignment]
            # The verdict that there is, whatever it was reached under.
            result = results.find(task_in_class(folder, handin.student, bundle, NONE).key)
            name = f"{handin.student}/{handin.assignment}"
            if result is None:
                done.not_graded.append(name)
                continue
            submission = GradedSubmission(handin.student, result)
            path = feedback_path(folder.root, submission)
            try:
                write_whole(path, settled_page(submission, bundle, gradebook, folder))
                name_for_exchange(handin.folder, path)
            except MissingEntry:
                done.not_graded.append(name)
            except Exception as error:
                if stops_the_class(error):
                    raise
                gradebook.db.rollback()
                done.problems.append(f"{name}: {type(error).__name__}: {plain_line(str(error))}")
            else:
                done.pages.append(path)
                again.append(submission)
    write_grades(folder.root, folder.title, sandbox_of(folder.root / "grades.json"), again)
    return done


def zip_for_lms(folder: ClassFolder, pages: list[Path], target: Path) -> int:
    """Pack pages for Moodle's “Upload multiple feedback files in a zip”.

    Each is in a folder called as in the zip that Moodle gave; whose submission did not come
    from there, in a folder called as the student.

    Returns:
        How many pages lie in a folder that Moodle will know.

    Raises:
        ClassError: the file cannot be written, or there is one already.
    """
    if target.exists():
        raise ClassError(f"{target} exists already; name another file")
    known = collected(folder)
    moodles = 0
    try:
        with (
            replacing(target) as scratch,
            zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as packed,
        ):
            for page in pages:
                student, assignment = page.parts[-3:-1]
                name = known.get(f"{student}/{assignment}", {}).get("folder", "")
                moodles += bool(name)
                packed.write(page, f"{name or student}/{assignment}-feedback.html")
    except OSError as error:
        raise ClassError(f"{target} cannot be written: {error.strerror}") from None
    return moodles
