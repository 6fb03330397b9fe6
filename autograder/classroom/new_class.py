"""Making a class folder: every lesson released, and settings that say what they do."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from datetime import datetime
from functools import partial
from pathlib import Path

from nbformat import NotebookNode

from autograder.build.build import NEVER_RELEASED, write_source
from autograder.classroom.folder import AT_ONCE, ClassError, ClassFolder
from autograder.classroom.gradebook import open_gradebook
from autograder.classroom.hand_out import release
from autograder.classroom.late import TO_BEGIN_WITH, LatePolicy
from autograder.classroom.new_gradebook import begin_gradebook
from autograder.classroom.roster import Roster
from autograder.course.languages import ENGLISH, languages
from autograder.course.lessons import Course
from autograder.course.translation import course_in
from autograder.files import holds_something, write_whole
from autograder.grade.limits import Limits
from autograder.processes import processes

#: Seconds after which it is said what the first lesson waits for.
LONG = 10.0

_NBGRADER_CONFIG = '''\
"""nbgrader's settings of this class; its commands, Formgrader and exchange read them.

Nothing here can fail: nbgrader passes over a configuration that does, and would then run
students' code in a kernel of its own. What is named and missing stops it.
"""

import tomllib
from pathlib import Path

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = {course_id!r}
# Everybody's, also on a hub whose settings name each server's user.
c.CourseDirectory.student_id = "*"

# The gradebook is said once, in class.toml.
try:
    settings = tomllib.loads(Path(__file__).with_name("class.toml").read_text(encoding="utf-8"))
except (OSError, ValueError):  # grading says what is wrong with it
    settings = {{}}
if settings.get("db_url"):
    c.CourseDirectory.db_url = settings["db_url"]

# `nbgrader autograde` and the Formgrader's button ask this engine, which confines student code.
c.Autograde.exporter_class = "autograder.marking.nbgrader_engine.EngineExporter"
c.Autograde.sanitize_preprocessors = []
c.Autograde.autograde_preprocessors = [
    "autograder.marking.nbgrader_engine.AskEngine",
    "nbgrader.preprocessors.AssignLatePenalties",
]
# What handing in late costs is said once too, in class.toml.
c.AssignLatePenalties.plugin_class = "autograder.classroom.standing.LatePenalty"

# `nbgrader generate_feedback` too: nbgrader's own pages show the hidden tests.
c.GenerateFeedback.exporter_class = "autograder.marking.nbgrader_engine.FeedbackExporter"
c.GenerateFeedback.preprocessors = []

# The Formgrader's pages load nothing from elsewhere; formulas are drawn all the same.
try:
    from autograder.marking.formgrader import without_internet
except ImportError:  # what is named above is missing too, and stops nbgrader
    pass
else:
    without_internet(c)

# The evidence of known mistakes is for the grader, not for a release.
c.CourseDirectory.ignore = {ignore!r}

c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.InstantiateTests",
    "nbgrader.preprocessors.LockCells",
    "autograder.build.stubs.ClearSolutionsAndAnswers",
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
# Settings of this class for `autograder`.

title = {title!r}

# The random inputs of the tests come from this seed and the notebook that is graded.
seed = {seed}

# What students read: {languages}. What is in source/ and release/ was made in it; a lesson that
# has no translation keeps its English text. Changed here, it counts for lessons that come later.
language = "{language}"

# Where the class is. Its days begin at midnight there, also when the clocks change, and times in a
# zip that says no zone are of that place.
# time_zone = "Europe/Berlin"

# When students learn whether a short answer is right, and why it is not: "at_once", by the check
# in the notebook, which whoever tries all choices can make say which one is right; or
# "when_graded". What is in release/ was made with the value that `autograder new-class` was given.
short_answers = "{short_answers}"

# Whether a lesson, which brings solutions of earlier ones, is kept in held_back/ until all of
# those are due. `autograder export --to release` moves lessons to where they belong, once there
# are dates in the table below; `grade` and `collect` move to release/ what has become due, and
# take nothing back.
hold_back = true

# Seconds of work that one cell, one test and one notebook may take on a processor, MiB of memory
# for all processes of a notebook, and MiB of its file without large outputs, which are never read.
# What sleeps is ended after four times as long. A table of an assignment's own, such as
# [limits."{first}"], overrides single values.
[limits]
{limits}

# When assignments are due: date, time and offset from UTC, without quotes; with time_zone above, no
# offset is needed. One that is not named here has no due date, and nothing is late.
[due]
{due}

# What handing in late costs: percent of the points of the submission for each day that has
# begun since it was due. So many minutes cost nothing; after so many days all points are lost.
[late]
{late}
# latest_days = 7

# More time for single students: days, or a due date of their own. "all" is every assignment.
# extensions.csv with the columns id, assignment, and days or until says the same; 0 days take
# back what was given.
[extensions]
# "ada" = {{ "{first}" = 3, "all" = 1 }}

# How points become a grade, for `autograder export`. maximum: points that your LMS gives each
# assignment; a share of our points is the same share of it. --to final writes the weighted mean in
# percent, of the best assignments if you say how many, and who has enough of the written points.
[grade]
# maximum = 100
{weights}
# best = 8
# written_at_least = 50

# Who marks written answers: `autograder mark DIR --assignment NAME --share anna`.
[marking]
# assistants = ["anna", "ben"]

# What the feedback page says to a student who thinks that points are wrong;
# `autograder report --about requests` lists what came.
[requests]
# how = "Post it in the forum “Another look”: the exercise, and what the checks overlook."

# `autograder collect` knows the paths in the zips of Moodle, Canvas and Gradescope. For others,
# a regular expression in single quotes says where student and file stand in the path.
[collect]
# pattern = '(?P<student_id>[^_]+)_(?P<file_id>.+\\.ipynb)$'

# The column of your LMS's gradebook for an assignment, where `autograder export` does not find it.
[export]
# "{first}" = "Homework 1"
"""


def new_class(
    course: Course,
    root: Path,
    say: Callable[[str], None] = print,
    roster: Roster | None = None,
    short_answers: str = AT_ONCE,
    *,
    language: str = ENGLISH,
) -> ClassFolder:
    """Make a class folder with all lessons of a course released.

    Args:
        course: the lessons.
        root: the folder to make; it must not exist or be empty.
        say: is told what is being done.
        short_answers: when students learn whether one is right, ``at_once`` or ``when_graded``.
        roster: who is in the class; only a heading is written otherwise.
        language: of its boxes and pages, and of the lessons that are translated.

    Raises:
        ClassError: the folder holds something already; nothing is touched.
        LessonError, BuildError: a lesson cannot be released.
    """
    if holds_something(root):
        raise ClassError(f"{root} exists and is not empty; choose a new folder for the class")
    if not course.lessons:
        raise ClassError(f"{course.title} has no lesson that is finished; remove a draft = true")
    course = _in_language(course, language, say)
    (root / "source").mkdir(parents=True)
    (root / "submitted").mkdir()
    (root / "nbgrader_config.py").write_text(
        _NBGRADER_CONFIG.format(course_id=root.resolve().name, ignore=list(NEVER_RELEASED)),
        encoding="utf-8",
    )
    names = [lesson.folder for lesson in course.lessons]
    settings = _CLASS_TOML.format(
        title=course.title,
        seed=secrets.randbelow(2**31),
        short_answers=short_answers,
        language=language,
        languages=" or ".join(f'"{name}"' for name in languages()),
        limits=_as_toml(Limits()),
        late=_as_toml(TO_BEGIN_WITH),
        due="\n".join(_due(name, course.terms.due) for name in names),
        weights=_weights(course.terms.weights, names),
        first=names[0],
    )
    (root / "class.toml").write_text(settings, encoding="utf-8")
    write_whole(root / "roster.csv", (roster or Roster()).as_csv())
    made = ClassFolder.open(root)
    begin_gradebook(made.db_url)
    with open_gradebook(made.db_url):  # makes its tables, once
        pass
    _release_all(course, made, say)
    return made


def add_lessons(course: Course, there: ClassFolder, say: Callable[[str], None] = print) -> None:
    """Release lessons in a class that has others.

    Args:
        course: the lessons to add.
        there: the class.
        say: is told what is being done.

    Raises:
        ClassError: it has one of them already; nothing is touched.
        LessonError, BuildError: a lesson cannot be released.
    """
    twice = [lesson.folder for lesson in course.lessons if lesson.folder in there.assignments]
    if twice:
        raise ClassError(
            f"{there.root} has {', '.join(twice)} already; name others with --lesson. What was "
            "mended in a lesson, `autograder grade --mended` takes"
        )
    _release_all(_in_language(course, there.language, say), there, say)


def _release_all(course: Course, made: ClassFolder, say: Callable[[str], None]) -> None:
    names = [lesson.folder for lesson in course.lessons]
    with processes(begin=partial(_begin, course, made)) as workers:
        # Once each: a lesson takes over answers of earlier ones.
        for name, notebook in zip(names, workers.map(_notebook, names)):
            vars(course.lesson(name))["notebook"] = notebook
    with processes(begin=partial(_begin, course, made)) as workers:
        lessons = [workers.submit(_make, name) for name in names]
        if not wait(lessons, LONG, FIRST_COMPLETED).done:
            say("known mistakes that nobody has looked at here yet take some minutes, once")
        for name, lesson in zip(names, lessons):
            lesson.result()
            say(f"{name}: released")


def _in_language(course: Course, language: str, say: Callable[[str], None]) -> Course:
    spoken, english = course_in(course, language)
    if english:
        say(f"in English, with boxes in {language!r}: {', '.join(english)}")
    return spoken


_making: tuple[Course, ClassFolder]


def _begin(course: Course, made: ClassFolder) -> None:
    """In a worker: what it makes lessons of. torch, if something needs it, takes one thread."""
    global _making
    _making = course, made
    os.environ["OMP_NUM_THREADS"] = "1"


def _notebook(name: str) -> NotebookNode:
    course, _ = _making
    return course.lesson(name).notebook


def _make(name: str) -> None:
    """In a worker: write a lesson's source, with the evidence of its known mistakes, and release
    it."""
    course, made = _making
    write_source(course.lesson(name), made.root / "source" / name)
    release(made, name)


def _due(name: str, dates: Mapping[str, datetime]) -> str:
    """A line of the table of due dates; a comment where there is none."""
    if name in dates:
        return f'"{name}" = {dates[name].isoformat()}'
    return f'# "{name}" = 2030-12-01T23:59:00+01:00'


def _weights(weights: Mapping[str, float], names: Sequence[str]) -> str:
    """What lessons count, as far as the course says it; a comment where it does not."""
    said = [f'"{name}" = {weights[name]:g}' for name in names if name in weights]
    return f"weights = {{ {', '.join(said)} }}" if said else f'# weights = {{ "{names[0]}" = 2 }}'


def _as_toml(settings: Limits | LatePolicy) -> str:
    """The values of a table; one without end is not said."""
    values = vars(settings).items()
    return "\n".join(f"{name} = {value:g}" for name, value in values if math.isfinite(value))
