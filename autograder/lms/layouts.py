"""How Moodle, Canvas and Gradescope name what students hand in.

Each layout is a regular expression for the path of a file, with the names of groups that
nbgrader's own zip collector uses: ``student_id`` and ``file_id``; ``name`` and ``lms_id``
where a path tells a person's name or the LMS's number instead, and ``assignment``, ``late``.

The outermost folder that a layout knows names the student: what lies in it is the student's
own, and may be called like somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import yaml

from autograder.errors import WrongUse
from autograder.text import plain_line

#: ``Ada Lovelace_1234567_assignsubmission_file_/means.ipynb``; older: no folder. What a student
#: may choose can hold such words too: of a folder the last ones are Moodle's, before a file's name
#: the first.
_MOODLE_ENDS = r"_assignsubmission_(?:file|onlinetext)_?"
MOODLE = re.compile(
    rf"^(?:.*?/)??(?P<folder>(?P<name>[^/]+(?=_[0-9]+{_MOODLE_ENDS}/)|[^/]+?)"
    rf"_(?P<lms_id>[0-9]+){_MOODLE_ENDS})/?(?P<file_id>[^/].*)$"
    # A team of those who are in none: it has no number.
    rf"|^(?:.*?/)??(?P<team_folder>(?P<team>[^/]+?){_MOODLE_ENDS})/?(?P<team_file>[^/].*)$"
)
#: ``lovelaceada_LATE_12345_678910_means-1.ipynb``; LATE and -1 only where it is so. A name may
#: hold underscores and numbers, and so may a file's; see :func:`readings`.
CANVAS = re.compile(
    r"^(?:.*/)?(?P<name>[^/]+)_(?:(?P<late>LATE)_)?(?P<lms_id>[0-9]+)_(?P<submission>[0-9]+)_"
    r"(?P<file_id>[^/]+)$"
)
#: ``submission_123456789/means.ipynb``, with a submission_metadata.yml beside the folders.
GRADESCOPE = re.compile(r"^(?:.*?/)??(?P<submission>submission_[0-9]+)/(?P<file_id>.+)$")
#: ``ada/01-means/means.ipynb``: nbgrader's own.
PLAIN = re.compile(r"^(?:.*/)?(?P<student_id>[^/]+)/(?P<assignment>[^/]+)/(?P<file_id>[^/]+)$")

METADATA = "submission_metadata.yml"

#: What an LMS or a browser adds to a file's name: Canvas's -1, " (1)", "-Copy1" of JupyterLab.
_ADDED = re.compile(r"(?:-\d+| ?\(\d+\)|-Copy\d+| - Copy)$")


class LayoutError(WrongUse):
    """No layout fits what an archive holds; the message says what to do."""


@dataclass(frozen=True)
class Named:
    """What the path of one file says; empty where it says nothing."""

    file: str
    student: str = ""
    name: str = ""
    email: str = ""
    lms_id: str = ""
    assignment: str = ""
    folder: str = ""
    late: bool = False
    came: datetime | None = None


@dataclass(frozen=True)
class Layout:
    """A way of naming files."""

    name: str
    pattern: re.Pattern[str]

    def read(self, path: str, people: dict[str, list[Named]]) -> list[Named]:
        """What a path says, for each student it belongs to; nothing when it does not fit.

        Args:
            path: of the file in its archive.
            people: for Gradescope, who handed in which submission; see :func:`submitters`.
        """
        match = self.pattern.match(path)
        if match is None:
            return []
        says = {name: text or "" for name, text in match.groupdict().items()}
        if says.get("team"):
            says |= {"name": says["team"], "folder": says["team_folder"]}
            says["file_id"] = says["team_file"]
        file = says["file_id"].rpartition("/")[2]
        if self.pattern is GRADESCOPE:
            return [
                Named(file, person.student, person.name, person.email, came=person.came)
                for person in people.get(says["submission"], [])
            ]
        named = Named(
            file=file,
            student=says.get("student_id", ""),
            name=says.get("name", ""),
            email=says.get("email", ""),
            lms_id=says.get("lms_id", ""),
            assignment=says.get("assignment", ""),
            folder=says.get("folder", ""),
            late=bool(says.get("late")),
        )
        return [named]


_CANVAS_NUMBERS = re.compile(r"(?=_(?P<late>LATE_)?(?P<lms_id>\d+)_\d+_(?P<file>[^/]+)$)")


def readings(path: str) -> list[Named]:
    """All that the path of a file of Canvas's can mean: which numbers in it are Canvas's own."""
    name = path.rpartition("/")[2]
    return [
        Named(
            match["file"],
            name=name[: match.start()],
            lms_id=match["lms_id"],
            late=bool(match["late"]),
        )
        for match in _CANVAS_NUMBERS.finditer(name)
        if match.start() and not name[: match.start()].endswith("_LATE")
    ]


def own_metadata(paths: Iterable[str], assignments: list[str]) -> str | None:
    """The path of the archive's own ``submission_metadata.yml``; None where it has none.

    It lies above all notebooks. One in a student's folder is the student's and says nothing.
    """
    paths = list(paths)
    notebooks = [path for path in paths if is_notebook(path)]
    for path in sorted(paths, key=lambda path: path.count("/")):
        folder, _, name = path.rpartition("/")
        inside = f"{folder}/" if folder else ""
        if name != METADATA or not all(path.startswith(inside) for path in notebooks):
            continue
        of_a_student = MOODLE.match(f"{inside}x") or GRADESCOPE.match(f"{inside}x")
        if not of_a_student and not set(folder.split("/")) & set(assignments):
            return path
    return None


def too_deep(paths: Iterable[str], layout: Layout, assignments: list[str]) -> set[str]:
    """The files that lie deeper than others which the layout knows, or in two students' folders.

    In Canvas's zips and in nbgrader's folders nothing tells a student's own folder from one
    around all students' but that theirs are side by side. A notebook beside the folders of
    assignments, where a student may have put it, says nothing about where these lie.
    """
    if layout.pattern not in (CANVAS, PLAIN):
        return set()
    depths = {path: path.count("/") for path in paths if layout.pattern.match(path)}
    known = [path for path in depths if is_notebook(path) and _fits(path, layout, assignments)]
    least = min((depths[path] for path in known), default=0)
    return {
        path
        for path, depth in depths.items()
        if depth > least or (layout.pattern is PLAIN and _of_two(path, assignments))
    }


def _of_two(path: str, assignments: list[str]) -> bool:
    """Whether a path has two levels of ``student/assignment``: the inner one is no student."""
    return sum(folder in assignments for folder in path.split("/")[1:-1]) > 1


def _fits(path: str, layout: Layout, assignments: list[str]) -> bool:
    match = layout.pattern.match(path)
    return match is not None and (layout.pattern is not PLAIN or match["assignment"] in assignments)


#: What a browser or a system puts behind the ending that it does not know, or in its place.
_ODD_ENDING = re.compile(
    r"(?:\.ipynb)+(?: ?\(\d+\))?(?:\.(?:ipynb|json|txt|download))?$|\.(?:json|txt|download)$", re.I
)


def is_notebook(path: str) -> bool:
    """Whether a file is called as notebooks are, with another ending behind that or without."""
    return ".ipynb" in path.casefold() and _ODD_ENDING.search(path) is not None


def may_be_notebook(path: str) -> bool:
    """Whether what is in a file has to say if it is a notebook."""
    name = path.rpartition("/")[2]
    odd = _ODD_ENDING.search(name) is not None or "." not in name
    return odd and not path.casefold().endswith(".ipynb")


def choose(
    paths: Iterable[str],
    own: re.Pattern[str] | None,
    assignments: list[str],
    known: Mapping[str, Layout],
) -> Layout:
    """The layout that fits most of the outermost folders and files, and most notebooks in them.

    A student's folder counts once: what somebody puts into it does not outvote the others.

    Args:
        paths: of the files in one archive.
        own: the instructor's own pattern; where it is there, it is used.
        assignments: of the class; the plain layout names one of them.
        known: the layouts, by name.

    Raises:
        LayoutError: none fits any notebook.
    """
    if own is not None:
        return Layout("class.toml", own)
    paths = list(paths)
    notebooks = [path for path in paths if is_notebook(path)]
    if own_metadata(paths, assignments) is not None:
        return known["gradescope"]

    folders = zip(*(path.split("/")[:-1] for path in notebooks))
    around = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, folders))

    def fits(layout: Layout) -> tuple[int, int]:
        fitting = [path for path in notebooks if _fits(path, layout, assignments)]
        return len({path.split("/")[around] for path in fitting}), len(fitting)

    best = max((layout for layout in known.values() if layout.pattern is not GRADESCOPE), key=fits)
    if not any(fits(best)):
        example = f", such as {plain_line(notebooks[0])!r}" if notebooks else ""
        raise LayoutError(
            f"{len(notebooks)} notebooks{example}, and no path is one that an LMS makes ("
            f"{', '.join(known)}), or STUDENT/ASSIGNMENT/NOTEBOOK.ipynb; say how paths are made "
            "with [collect] pattern in class.toml"
        )
    return best


def stem(file: str) -> tuple[str, int]:
    """A notebook's name without what an LMS or a browser added, and the number added.

    Of a copy that somebody made beside the notebook, as JupyterLab calls it, it is below 0.
    """
    name = _ODD_ENDING.sub("", file)
    number, copy = 0, False
    while (match := _ADDED.search(name)) and match.start():
        digits = re.search(r"\d+", match[0])
        number = max(number, int(digits[0][:9])) if digits else max(number, 1)
        copy |= "copy" in match[0].casefold()
        name = name[: match.start()]
    return name, -number if copy else number


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads plain data; what Ruby marks as an object of its own is read as such."""


def _unmarked(loader: Any, suffix: str, node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_Loader.add_multi_constructor("!", _unmarked)


def submitters(metadata: bytes) -> dict[str, list[Named]]:
    """Who handed in which submission, from Gradescope's ``submission_metadata.yml``.

    Raises:
        LayoutError: it is not what Gradescope writes.
    """
    wrong = LayoutError(f"{METADATA} is not what Gradescope writes; export the submissions again")
    try:
        tree = yaml.load(metadata, Loader=_Loader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError):
        raise wrong from None
    if not isinstance(tree, dict):
        raise wrong
    by_submission: dict[str, list[Named]] = {}
    for submission, about in tree.items():
        people = about.get(":submitters") if isinstance(about, dict) else None
        if not isinstance(people, list):
            continue
        came = about.get(":created_at")
        when = came if isinstance(came, datetime) else None
        if when is not None:
            when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
        by_submission[str(submission)] = [
            Named(
                file="",
                student=_text(person.get(":sid")),
                name=_text(person.get(":name")),
                email=_text(person.get(":email")),
                came=when,
            )
            for person in people
            if isinstance(person, dict)
        ]
    return by_submission


def _text(value: Any) -> str:
    return "" if value is None else plain_line(str(value)).strip()
