"""Making a class folder: every lesson released, and settings that say what they do."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from autograder.build import generate_release, nbgrader_config, write_source
from autograder.class_folder import ClassError, ClassFolder
from autograder.course import Course

_NBGRADER_CONFIG = '''\
"""nbgrader's settings of this class; its commands, Formgrader and exchange read them.

Nothing here can fail: nbgrader passes over a configuration that does, and would then run
students' code in a kernel of its own. What is named and missing stops it.
"""

import tomllib
from pathlib import Path

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = {course_id!r}

# The gradebook is said once, in class.toml.
try:
    settings = tomllib.loads(Path(__file__).with_name("class.toml").read_text(encoding="utf-8"))
except (OSError, ValueError):  # grading says what is wrong with it
    settings = {{}}
if settings.get("db_url"):
    c.CourseDirectory.db_url = settings["db_url"]

# `nbgrader autograde` and the Formgrader's button ask this engine, which confines student code.
c.Autograde.exporter_class = "autograder.nbgrader_engine.EngineExporter"
c.Autograde.sanitize_preprocessors = []
c.Autograde.autograde_preprocessors = [
    "autograder.nbgrader_engine.AskEngine",
    "nbgrader.preprocessors.AssignLatePenalties",
]

# `nbgrader generate_feedback` too: nbgrader's own pages show the hidden tests.
c.GenerateFeedback.exporter_class = "autograder.nbgrader_engine.FeedbackExporter"
c.GenerateFeedback.preprocessors = []

# The evidence of known mistakes is for the grader, not for a release.
c.CourseDirectory.ignore = [
    ".ipynb_checkpoints", "*.pyc", "__pycache__", "mistakes.json",
]

c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.InstantiateTests",
    "nbgrader.preprocessors.LockCells",
    "autograder.stubs.ClearSolutionsAndAnswers",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.ClearHiddenTests",
    "nbgrader.preprocessors.ClearMarkScheme",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.CheckCellMetadata",
]
'''

_CLASS_TOML = """\
# Settings of this class for `autograder grade`.

title = {title!r}

# The random inputs of the tests come from this seed and the notebook that is graded.
seed = {seed}

# Seconds that one cell, one test and one notebook may take, and MiB of memory for all
# processes of a notebook. A table of an assignment's own, such as
# [limits."03-scaled-dot-product-attention"], overrides single values.
[limits]
cell = 30
test = 20
notebook = 240
memory = 2048
"""


def new_class(course: Course, root: Path, say: Callable[[str], None] = print) -> ClassFolder:
    """Make a class folder with all lessons of a course released.

    Args:
        course: the lessons.
        root: the folder to make; it must not exist or be empty.
        say: is told what is being done.

    Raises:
        ClassError: the folder holds something already; nothing is touched.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ClassError(f"{root} exists and is not empty; choose a new folder for the class")
    for lesson in course.lessons:
        write_source(lesson, root / "source" / lesson.folder)
    (root / "submitted").mkdir()
    (root / "nbgrader_config.py").write_text(
        _NBGRADER_CONFIG.format(course_id=root.resolve().name), encoding="utf-8"
    )
    (root / "class.toml").write_text(
        _CLASS_TOML.format(title=course.title, seed=secrets.randbelow(2**31)), encoding="utf-8"
    )
    made = ClassFolder.open(root)
    config = nbgrader_config(made.root, made.db_url)
    for lesson in course.lessons:
        say(f"{lesson.folder}: released")
        generate_release(config, lesson.folder)
    return made
