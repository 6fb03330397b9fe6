"""The nearest repair: one small change of the student's own code that makes every check pass.

Tried when no known mistake explains a failing check. What is said is the line and the kind of
thing, and never the change itself; and it is true as it stands, since the change was tried, on two
sets of inputs.

After program repair for student code (Singh, Gulwani, Solar-Lezama 2013; Gulwani, Radicek,
Zuleger 2018, "Clara"). Taken over: a fixed set of small corrections, tried on the student's own
program against the tests, and a hint at the place. Not taken over: repairs of several changes,
and the student's program is compared with no other.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator

from .answer_text import names_in
from .small_changes import LIKELIEST_FIRST, TAKING_AWAY, TWO_LINES, Groups, called

__all__ = ["nearest_repair"]

#: Seconds of looking on after a first repair was found: is there another, elsewhere?
LOOK_ON = 0.35
#: So many changes elsewhere are tried then, or all there are; with fewer nothing is said. A slow
#: check, or a busy machine, costs the sentence and not its truth.
ENOUGH_ELSEWHERE = 25
#: Seed of the inputs on which a repair has to pass as well: on one set it may by chance.
OTHER_SEED = 20_171
#: Said in place of the kind of a change where that stands in a condition.
CONDITION = "a condition"
#: Functions that ask what kind of thing something is.
ASKS_FOR_A_KIND = {"isinstance", "issubclass", "issubdtype", "is_tensor", "is_floating_point"}
#: Numbers up to this one that something is compared with are tolerances.
LARGEST_TOLERANCE = 0.01
#: Whole numbers above this one are limits of what an answer can take, such as the size of a table
#: made beforehand: with a larger one a limit is there all the same.
LARGEST_NUMBER = 16
#: Longer answers are not tried.
MAX_CHARACTERS = 6000
#: What is drawn is compared loosely: twice as many numbers, say, may pass by chance.
_DRAWS = re.compile(r"\b(rng|generator|random)\b|\b(rand|randn|randint|randperm|multinomial)\(")
#: Code that does more than compute is not run again.
_TOUCHES = re.compile(r"\b(open|input|exec|eval|os|sys|subprocess|shutil|plt|requests|pathlib)\b")


def nearest_repair(
    source: str,
    passes: Callable[[ast.Module], bool],
    seconds: float,
    *,
    elsewhere: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Where one small change of an answer makes every check pass, in a sentence; or "".

    Said only where all repairs that were found stand in one line. After the first, those that take
    something away come next, then the others from the other end: a change that only covers a
    mistake up is soon met by one that takes it away.

    Args:
        source: of the answer.
        passes: whether the checks pass with an answer like this.
        seconds: that it may take.
        elsewhere: changes that are tried in other lines once one was found; None: all there are.
        clock: of these.
    """
    if len(source) > MAX_CHARACTERS or _TOUCHES.search(source):
        return ""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    begun = clock()
    end = begun + seconds
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    exchanges = _two_lines_exchanged(tree)  # the second search goes on where the first one stopped
    tried = 0

    def repairs(groups: Groups, elsewhere_than: int = 0) -> Iterator[tuple[int, str]]:
        nonlocal tried
        for line, kind, taken, changed in itertools.chain(exchanges, _candidates(tree, groups)):
            if line == elsewhere_than:
                continue
            now = clock()
            if now > end or (elsewhere_than and tried == elsewhere):
                return
            if not elsewhere_than and _too_slow(tried, now - begun, seconds):
                return
            tried += 1
            with changed:
                # An answer that does not look at an argument any more passes by chance, if at all.
                lost = arguments & taken
                mends = not (lost and lost - _names_read(tree)) and passes(tree)
            if mends:
                yield line, kind

    if not (first := next(repairs(LIKELIEST_FIRST), None)):
        return ""
    line, kind = first
    end, tried = min(end, clock() + LOOK_ON), 0
    if next(repairs((TAKING_AWAY, *LIKELIEST_FIRST[::-1]), elsewhere_than=line), None):
        return ""
    if clock() > end and tried < ENOUGH_ELSEWHERE:
        return ""
    return _told(line, source.splitlines()[line - 1].strip(), kind)


def _too_slow(tried: int, spent: float, seconds: float) -> bool:
    """Whether a search will not come to as many changes as it takes to say anything: some checks
    take half a second for each."""
    share = spent / seconds if seconds else 1.0
    return share > 0.2 and tried < share * ENOUGH_ELSEWHERE


def _told(line: int, code: str, kind: str) -> str:
    place = f"Look at line {line} of your cell, `{code}`"
    if kind == CONDITION:
        return (
            f"{place}, and at what is done where its condition holds, or does not: with one small "
            "change of the condition every check passes that was tried."
        )
    return (
        f"{place}: one small change there makes every check pass that was tried. What was "
        f"changed: {kind}."
    )


def _ids_within(trees: Iterable[ast.AST]) -> set[int]:
    return {id(node) for tree in trees for node in ast.walk(tree)}


def _names_within(*trees: ast.AST) -> Iterator[ast.Name]:
    return (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name))


def _in_conditions(tree: ast.AST) -> set[int]:
    """The ids of all nodes of conditions. With another condition what hangs on it is not done any
    more, or is: the mistake may stand there as well."""
    return _ids_within(
        test
        for node in ast.walk(tree)
        for test in (
            [node.test]
            if isinstance(node, (ast.If, ast.IfExp, ast.While))
            else node.ifs
            if isinstance(node, ast.comprehension)
            else []
        )
    )


def _sizes_of_blocks(tree: ast.AST) -> set[int]:
    """The ids of all nodes by which the step of a ``range`` is set. With one block in place of
    several, what goes wrong between blocks is not seen any more: its place is elsewhere."""
    steps = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) == "range"
        for name in _names_within(*node.args[2:])
    }
    return _ids_within(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(name.id in steps for name in _names_within(*node.targets))
    )


def _tolerances(tree: ast.AST) -> set[int]:
    """The ids of all small numbers that something is compared with. With a smaller one a wrong
    test sees what is only rounding, and passes: the mistake is in what it compares."""
    compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    names = {name.id for name in _names_within(*compared)}
    places: list[ast.AST] = [
        *compared,
        *(
            node.value
            for node in ast.walk(tree)
            if (isinstance(node, ast.keyword) and node.arg in ("atol", "rtol"))
            or (
                isinstance(node, ast.Assign)
                and any(name.id in names for name in _names_within(*node.targets))
            )
        ),
    ]
    return {
        id(node)
        for place in places
        for node in ast.walk(place)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, float)
        and 0 < node.value <= LARGEST_TOLERANCE
    }


def _limits(tree: ast.AST) -> set[int]:
    """The ids of all whole numbers that may be limits."""
    return {
        id(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and type(node.value) is int
        and abs(node.value) > LARGEST_NUMBER
    }


def _memories(tree: ast.AST) -> set[int]:
    """The ids of all nodes that ask whether something is kept already. Where nothing that is kept
    is used any more, what was kept wrongly does no harm: its place is elsewhere."""
    return _ids_within(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(isinstance(of, (ast.In, ast.NotIn)) for of in node.ops)
        and isinstance(node.comparators[-1], (ast.Name, ast.Attribute))
    )


def _draws(tree: ast.AST) -> set[int]:
    """The ids of all nodes of steps that draw random numbers."""
    steps = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
    return _ids_within(
        node
        for node in ast.walk(tree)
        if isinstance(node, steps) and _DRAWS.search(ast.unparse(node))
    )


def _names_read(tree: ast.AST) -> set[str]:
    return {name.id for name in _names_within(tree) if isinstance(name.ctx, ast.Load)}


def _names_written(step: ast.AST) -> set[str]:
    return {name.id for name in _names_within(step) if isinstance(name.ctx, ast.Store)}


def _candidates(
    tree: ast.Module, groups: Groups
) -> Iterator[tuple[int, str, set[str], contextlib.AbstractContextManager[None]]]:
    """Line, kind, names that are read there no more, and change of every small repair."""
    names, conditions = names_in(tree), _in_conditions(tree)
    untouched = (
        _sizes_of_blocks(tree) | _memories(tree) | _draws(tree) | _tolerances(tree) | _limits(tree)
    )
    places = [
        (parent, field, index, node)
        for parent in ast.walk(tree)
        for field, value in ast.iter_fields(parent)
        for index, node in (enumerate(value) if isinstance(value, list) else [(None, value)])
        if isinstance(node, ast.AST) and id(node) not in untouched
    ]
    for operators in groups:
        for parent, field, index, node in places:
            if isinstance(node, ast.arguments) or isinstance(parent, ast.arguments):
                continue
            # A change of what kind of thing is asked for only hides one half of an answer.
            if {called(node), called(parent)} & ASKS_FOR_A_KIND:
                continue
            for operator in operators:
                for kind, instead in operator(node, parent, names):
                    line = getattr(node, "lineno", getattr(parent, "lineno", 1))
                    change = _changed(parent, field, index, node, instead)
                    decides = id(node) in conditions or id(parent) in conditions
                    yield line, CONDITION if decides else kind, _names_read(node), change


def _two_lines_exchanged(
    tree: ast.Module,
) -> Iterator[tuple[int, str, set[str], contextlib.AbstractContextManager[None]]]:
    """As :func:`_candidates`: a step and the next one in the other order. Not two that make one
    thing: in the other order the first may do nothing any more."""
    steps = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)
    for node in ast.walk(tree):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if not isinstance(block, list):
                continue
            for place, (step, following) in enumerate(itertools.pairwise(block)):
                both = isinstance(step, steps) and isinstance(following, steps)
                if both and not (_names_written(step) & _names_written(following)):
                    yield step.lineno, TWO_LINES, set(), _exchanged(block, place)


@contextlib.contextmanager
def _exchanged(block: list[ast.stmt], place: int) -> Iterator[None]:
    pair = block[place : place + 2]
    block[place : place + 2] = pair[::-1]
    try:
        yield
    finally:
        block[place : place + 2] = pair


@contextlib.contextmanager
def _changed(
    parent: ast.AST, field: str, index: int | None, node: ast.AST, instead: ast.AST
) -> Iterator[None]:
    like = node if hasattr(node, "lineno") else parent
    for inner in ast.walk(instead):
        if "lineno" in inner._attributes and not hasattr(inner, "lineno"):
            ast.copy_location(inner, like)

    def put(what: ast.AST) -> None:
        if index is None:
            setattr(parent, field, what)
        else:
            getattr(parent, field)[index] = what

    put(instead)
    try:
        yield
    finally:
        put(node)
