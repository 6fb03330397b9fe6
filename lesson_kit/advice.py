"""What a student is told first when a check fails: what helps most, if it is certain."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized

from . import setting
from .as_known import as_known
from .cells import (
    namespace,
    not_run,
    not_yet_right,
    seconds_of_cell,
    source_of,
    source_of_cell,
)
from .evidence import Evidence
from .in_a_copy import in_this_notebook
from .known_mistakes import known_mistake
from .probes import CHANGES_ITS_ARGUMENT, property_seen
from .unused import never_used

__all__ = ["advice"]

#: A failing check answers within so many seconds, as far as that is ours: the search for a repair
#: gets what is left of them, whatever the check and the look-up before it took.
ANSWERS_WITHIN = 1.5
#: Of them, to end the search and to show the answer; on a busy machine that takes a while.
TO_SHOW = 0.3
#: A check that takes longer is not tried again with repairs.
MOST_SECONDS = 0.4


def advice(
    exercise: str,
    evidence: Sequence[Evidence],
    begin_cell: Callable[[], None],
    parts: Callable[[], Sized],
) -> str:
    """The sentence to begin with, or "".

    In this order: the answer's cell did not run; an exercise that it builds on is not right
    yet; the known mistake that leaves this evidence; where one small change would mend it; what
    it makes or is given and never uses; a property that no right answer has.

    Args:
        exercise: whose check failed.
        evidence: what the check saw.
        begin_cell: forgets the named checks of a cell.
        parts: the named checks of the cell so far.
    """
    if not setting.now.advice or not exercise:
        return ""
    return (
        not_run(exercise)
        or not_yet_right(exercise)
        or _known(exercise, evidence)
        or _repair(exercise, begin_cell, parts)
    )


def _known(exercise: str, evidence: Sequence[Evidence]) -> str:
    sentence = known_mistake(exercise, evidence, source_of(exercise))
    return as_known(sentence) if sentence else ""


def _repair(exercise: str, begin_cell: Callable[[], None], parts: Callable[[], Sized]) -> str:
    answer, check = source_of(exercise), source_of_cell()
    taken = seconds_of_cell()
    if not answer or not check or taken > MOST_SECONDS:
        return ""
    left = ANSWERS_WITHIN - TO_SHOW - taken
    with setting.without_advice():  # the checks that are tried give none of their own
        return in_this_notebook(
            answer,
            check,
            namespace(),
            begin_cell,
            seconds=left,
            otherwise=lambda test: (
                never_used(answer) or property_seen(exercise, test, namespace(), begin_cell, parts)
            ),
            # A check may compare with what the answer wrote into: a change that mends that is none.
            settled=CHANGES_ITS_ARGUMENT,
        )
