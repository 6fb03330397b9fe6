"""A check that passes keeps the answer: it goes into the student's package, and one line says so.

It watches the cells of a notebook's kernel. A check counts only as it was handed out, and only
when the whole of its cell passed; what is tried while a failed check looks for a mistake is no
cell. An answer that fails later takes nothing away.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import textwrap
from pathlib import Path
from typing import Any

from . import own_answer
from .cells import namespace, source_of
from .notebook_reading import digest
from .own_frame import lines_of, write_frame, write_readme
from .own_package import SWITCH, Place, Section, module_of, place, put, replace, sections
from .own_parts import set_aside
from .words import N_, said, tr, tr_n

__all__ = ["keep", "watch"]

_CHECKS = re.compile(r"""^checks_passed\(["'](\w+)["']""", re.M)

#: What is said with the first part.
_BEGUN = N_(
    "{name} is a package of your own, a folder beside the lessons: each answer that passes its "
    "check goes there, and later lessons use it."
)

#: Columns of a line below a check.
_WIDTH = 88

#: Seconds to wait for another notebook that writes into the package.
_PATIENCE = 20


def watch() -> None:
    """From now on keep what passes in this kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is not None:
        shell.events.register("post_run_cell", _after)


def _after(result: Any) -> None:
    source = str(getattr(result.info, "raw_cell", ""))
    here = place() if "assert_" in source else None
    if here is None:
        return
    exercise, named = here.checks.get(digest(source, True)), _CHECKS.findall(source)
    if not result.success:
        told = _stays(here, exercise)
    elif exercise is not None:
        told = keep(here, exercise, source)
    else:
        changed = here.parts.get(named[-1] if named else "") == here.lesson
        other = N_("Not kept in {name}: this check is not as it was handed out.")
        told = tr(other, name=here.name) if changed else ""
    if told:
        print(told)


def _stays(here: Place, exercise: str | None) -> str:
    """What to say where a check fails of an answer that the package has from before."""
    module = f"{module_of(here.lesson)}.py"
    with contextlib.suppress(OSError):
        if exercise in [section.name for section in sections(here.package / module)]:
            stays = N_("The version of `{exercise}` that passed before stays in {where}.")
            return tr(stays, exercise=exercise, where=f"{here.name}/{module}")
    return ""


def keep(here: Place, exercise: str, check: str) -> str:
    """Keep an answer whose check passed; nothing that happens here disturbs the notebook.

    Args:
        here: the lesson.
        exercise: whose check passed.
        check: its source.

    Returns:
        What there is to say, in one line; "" where the package holds this answer already.
    """
    from filelock import FileLock, Timeout

    not_kept = tr("`{exercise}` is not kept in {name}", exercise=exercise, name=here.name)
    try:
        cells = [*map(str, namespace().get("In", [])), source_of(exercise)]
        lifted = own_answer.answer(exercise, source_of(exercise), cells, here.parts)
        tested = own_answer.test(exercise, check, cells, here.parts)
        here.package.mkdir(exist_ok=True)
        with FileLock(here.package / ".lock", timeout=_PATIENCE):
            return _written(here, exercise, lifted, tested)
    except own_answer.CannotLift as error:
        belongs = tr("Put it into the answer's cell.")
        return f"{not_kept}: {said(str(error))}. {belongs}"
    except Timeout:
        busy = tr("another notebook writes there. Run this again.")
        return f"{not_kept}: {busy}"
    except OSError as error:
        return tr(
            "`{exercise}` passes, and cannot be kept: {name} cannot be written ({why}). "
            "`{switch}=off` switches this off.",
            exercise=exercise,
            name=here.name,
            why=error.strerror or error,
            switch=SWITCH,
        )
    except Exception as error:  # whatever it is, the check has passed
        return f"{not_kept}: {type(error).__name__}: {error}"


def _written(
    here: Place, exercise: str, lifted: own_answer.Lifted, tested: own_answer.Lifted
) -> str:
    module = here.package / f"{module_of(here.lesson)}.py"
    tests = here.package / "tests" / f"test_{module.name}"
    begun = (here.package / "__init__.py").exists()
    write_frame(here)
    names = [name for name, lesson in here.parts.items() if lesson == here.lesson]
    order = ["about", "imports", *names]
    before = {s.name: s.text for s in sections(module)}
    about = tr("What I wrote in lesson {lesson}.", lesson=here.lesson.replace("-", " "))
    put(module, "about", f'"""{about}"""', order)
    kept = {*before, exercise}
    wanted = [f"from . import {name}" for name in lifted.parts if name not in kept]
    wanted += lifted.imports
    _add_imports(module, wanted, f"from . import {exercise}", order)
    edited = put(module, exercise, lifted.text, order)
    wanted = [f"from {here.name} import {name}" for name in tested.parts]
    # It passed with the course's part in place of one of the student's, which the package has.
    others = {*tested.parts, *lifted.parts} & set_aside().keys()
    not_mine = N_("my {name} will not do: {why}")
    why = "; ".join(tr(not_mine, name=name, why=set_aside()[name]) for name in sorted(others))
    marks = f"@pytest.mark.skip({why!r})\n" if why else ""
    wanted += ["import pytest"] if why else []
    given = [line.replace("from .given", f"from {here.name}.given") for line in tested.imports]
    _add_imports(tests, [*wanted, *given], "", order)
    put(tests, exercise, marks + tested.text, order)
    write_readme(here)
    where = f"{here.name}/{module.name}"
    if edited is not None:
        differs = _differs(edited, lifted.text)
        stays = N_("{where}: `{exercise}` has edits of yours and stays as it is. {differs}")
        return tr(stays, where=where, exercise=exercise, differs=differs).strip()
    if before.get(exercise, "").strip() == lifted.text.strip():
        return ""
    lines = _counted(lines_of(lifted.text))
    kept_now = N_("Kept: `{exercise}` is in {where} ({lines}).")
    told = tr(kept_now, exercise=exercise, where=where, lines=lines)
    return told if begun else f"{told}\n{textwrap.fill(tr(_BEGUN, name=here.name), _WIDTH)}"


def _add_imports(path: Path, wanted: list[str], unwanted: str, order: list[str]) -> None:
    """Bring the imports of a file up to date: lines of others stay."""
    old = next((s.text for s in sections(path) if s.name == "imports"), "")
    lines = [line for line in old.strip().splitlines() if line != unwanted]
    lines += [line for line in dict.fromkeys(wanted) if line not in lines]
    if all(re.match(r"(?:import|from) [\w., ]+$", line) for line in lines):
        own = ("from .", *(f"from {folder}" for folder in path.parts[-3:-1]))
        lines.sort(key=lambda line: (line.startswith(own), line.startswith("from"), line))
    text = "\n".join(lines)
    if text != old.strip():
        replace(path, "imports", text, order)


def _counted(lines: int) -> str:
    return tr_n("{n} line", "{n} lines", lines)


def _differs(edited: Section, passed: str) -> str:
    """How many lines differ from what passed, and the first of them."""
    lines = difflib.unified_diff(
        passed.strip().splitlines(), edited.text.strip().splitlines(), n=0, lineterm=""
    )
    changed = [line for line in lines if re.match(r"[-+](?![-+]{2})", line)]
    if not changed:
        return ""
    more, fewer = (sum(line[0] == sign for line in changed) for sign in "+-")
    return tr(
        "Against the answer that passed here: {more} more, {fewer} fewer; first `{line}`. To take "
        "that, delete yours there and run this again.",
        more=_counted(more),
        fewer=fewer,
        line=changed[0][1:].strip(),
    )
