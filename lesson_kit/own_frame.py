"""What the student's package has beside its parts: how it is found, tested, described and drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from .own_answer import GIVEN, PROGRAM
from .own_package import Place, put, sections, write
from .words import N_, tr

__all__ = ["as_markdown", "kept_parts", "lines_of", "picture", "write_frame", "write_readme"]

_INIT = '''\
"""{about}

{written}
"""

import os

from .given.package_parts import part

os.environ.setdefault("KERAS_BACKEND", "torch")  # where Keras is used


def __getattr__(name: str) -> object:
    return part(__name__, name)
'''

_WRITTEN = N_("I wrote it in the lessons of a course: README.md says what each part is.")

_MAIN = """\
import sys

import {name}
from {name}.given.package_program import main

sys.exit(main({name}))
"""

_TESTS = '''\
import pytest

from {name}.given.package_parts import MissingPart


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """{builds}"""
    try:
        return (yield)
    except MissingPart as error:
        pytest.skip(str(error))
'''

_BUILDS = N_("A part that builds on one that is not there yet cannot be tested.")

_PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{distribution}"
version = "0.1"
description = "{about}"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["numpy", "torch", "matplotlib", "seaborn"]

[tool.setuptools]
packages = ["{name}", "{name}.given"]
package-dir = {{ "{name}" = "." }}
package-data = {{ "{name}.given" = ["*.json"] }}

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = [".."]

[tool.{name}]
keep = true  # {keep}
"""

_KEEP = N_("false: passed answers are not kept here any more, and later lessons do not use them")

_README = N_("""\
# {name}

{about} I wrote its parts in the lessons of a course, and each has passed its lesson's visible
checks, which are the tests here. {count} parts, {lines} lines of code. What lies in `given/` is the
course's: {given}the tests' assertions.

{picture}

| part | what it is | where | lines |
| :-- | :-- | :-- | --: |
{table}

In the folder above this one, which has to be called `{name}`:

```
{commands}pytest {name}
```
""")

#: Of a package that runs a published model.
_ITS_GIVEN = N_("the reader of a published model's file, its tokenizer, the program, and ")
_ITS_COMMANDS = N_("""\
python -m {name} "The capital of France is"    # a published model goes on with a text
python -m {name} --chat                        # talk with it
python -m {name} --look "the black cat"        # what looks at what
python -m {name} --zip                         # all of this as one file
""")


_ON_START_PAGE = N_("""\
### Your package `{name}`

What passed its check is kept there, and the lessons that build on it use it: {kept} of {parts} \
parts, {lines} of your lines. [README.md]({name}/README.md) says what it can do.""")


def write_frame(here: Place) -> None:
    """What a package has beside its parts."""
    folder, kit = here.package, Path(__file__).parent
    names = {"name": here.name, "distribution": here.name.replace("_", "-"), "about": here.about}
    names |= {"written": tr(_WRITTEN), "builds": tr(_BUILDS), "keep": tr(_KEEP)}
    put(folder / "__init__.py", "package", _INIT.format(**names))
    put(folder / "pyproject.toml", "project", _PROJECT.format(**names))
    put(folder / "tests" / "conftest.py", "missing", _TESTS.format(**names))
    given = tr("The course's own, as it is.")
    put(folder / "given" / "__init__.py", "given", f'"""{given}"""')
    if _has_program(here):
        put(folder / "__main__.py", "program", _MAIN.format(**names))
    for name in (*GIVEN, *(PROGRAM if _has_program(here) else ())):
        text = (kit / f"{name}.py").read_text(encoding="utf-8")
        text = text.replace("from .checks import", "from .plain_checks import")
        put(folder / "given" / f"{name}.py", name, text)
    exercises = folder / "given" / "exercises.json"
    data = (json.dumps(here.parts, indent=0) + "\n").encode()
    if not exercises.exists() or exercises.read_bytes() != data:
        write(exercises, data)


def _has_program(here: Place) -> bool:
    """Whether a whole package of this course can run the published model."""
    from .package_program import NEEDED  # the start page needs no NumPy

    return here.parts.keys() >= set(NEEDED)


def kept_parts(package: Path) -> dict[str, tuple[str, str]]:
    """The parts of a package: name, module and text."""
    return {
        section.name: (path.stem, section.text)
        for path in sorted(package.glob("lesson_*.py"))
        for section in sections(path)
        if section.name not in ("", "about", "imports")
    }


def lines_of(text: str) -> int:
    """How many lines are not empty."""
    return sum(bool(line.strip()) for line in text.splitlines())


def picture(parts: dict[str, str], kept: dict[str, tuple[str, str]]) -> Iterator[str]:
    """The course's parts as blocks, a line a lesson: full where the package has one.

    Args:
        parts: all, with the folder of their lesson.
        kept: those of the package.
    """
    for lesson in dict.fromkeys(parts.values()):
        names = [name for name, folder in parts.items() if folder == lesson]
        blocks = "".join("■" if name in kept else "□" for name in names)
        said = ", ".join(name for name in names if name in kept)
        yield f"{lesson.replace('-', ' '):32s}{blocks:9s}{said}".rstrip()


def as_markdown(course: Path) -> str:
    """A student's package for the start page; "" where there is none yet."""
    try:
        here = Place(course, "")
        kept, parts = kept_parts(here.package) if here.name else {}, here.parts
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    if not kept:
        return ""
    count = sum(lines_of(text) for _, text in kept.values())
    text = tr(_ON_START_PAGE, name=here.name, kept=len(kept), parts=len(parts), lines=count)
    return f"\n\n{text}\n\n```\n" + "\n".join(picture(parts, kept)) + "\n```"


def write_readme(here: Place) -> None:
    """Say what each part is, and draw the whole; a README that was edited stays."""
    kept = kept_parts(here.package)
    rows = [
        f"| `{name}` | {_about(name, text)} | [{module}.py]({module}.py) | {lines_of(text)} |"
        for name, (module, text) in kept.items()
    ]
    drawn = "\n".join(f"    {line}" for line in picture(here.parts, kept))
    lines = sum(lines_of(text) for _, text in kept.values())
    program = _has_program(here)
    text = tr(
        _README,
        name=here.name,
        about=here.about,
        count=len(kept),
        lines=lines,
        given=tr(_ITS_GIVEN) if program else "",
        picture=drawn,
        table="\n".join(rows),
        commands=tr(_ITS_COMMANDS, name=here.name) if program else "",
    )
    put(here.package / "README.md", "README", text)


def _about(name: str, text: str) -> str:
    """The first sentence of a part's docstring."""
    docstring = re.search(rf'^(?:def|class) {name}\b.*?"""(.*?)(?:\n|""")', text, re.M | re.S)
    return docstring[1].replace("|", r"\|") if docstring else ""
