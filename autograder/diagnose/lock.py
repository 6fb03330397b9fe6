"""The lock of a lesson: what is known of its tests, committed, so that a clone computes nothing.

``lessons/NN-name/lock.json`` holds, for each exercise, digests of what the evidence of its known
mistakes comes from, one a test, that evidence, and the digest of what was proved of it. What lies
beside the released notebook already, the evidence of visible checks, is referred to by its number
there, with a digest of it, and not written twice; the rest is packed. Where a digest does not fit,
the test, or the exercise, is looked at anew.

``autograder build`` writes the evidence, ``autograder trial`` what was proved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

from autograder.course.lessons import Lesson
from autograder.diagnose.matrix import digest
from autograder.errors import WrongUse
from autograder.files import write_whole
from lesson_kit.evidence import Evidence, Seen, same
from lesson_kit.setting import pack, unpack

LOCK_FILE = "lock.json"
FORMAT = 1

#: Of an exercise, what the visible checks see of its mistakes, in the order of the released file.
HandedOut = Mapping[str, Sequence[Seen]]


class LockError(WrongUse):
    """A lock cannot be used; the message says how it is made anew."""


@dataclass
class OfExercise:
    """What a lock says of one exercise.

    Attributes:
        made_from: digests of what the evidence comes from, one for each test.
        seen: of each known mistake, by its name, what the tests saw of it as graded.
        handed_out: names of the mistakes that a visible check sees, in the released file's order;
            in the lock their places among the names of ``seen`` in order.
        proved: digest of what was tried when all of it held, or "".
        named: of the known mistakes on fresh inputs, how many get their own sentence, and of how
            many.
        whole: the release that its references lead to lies beside it; else their evidence lacks.
    """

    made_from: list[str] = field(default_factory=list)
    seen: dict[str, Seen] = field(default_factory=dict)
    handed_out: list[str] = field(default_factory=list)
    proved: str = ""
    named: tuple[int, int] = (0, 0)
    whole: bool = True


@dataclass
class Lock:
    """The lock of a lesson, by exercise."""

    path: Path
    exercises: dict[str, OfExercise] = field(default_factory=dict)

    @classmethod
    def read(cls, lesson: Lesson, handed_out: HandedOut) -> Lock:
        """Of a lesson as it is committed; one without exercises where there is none.

        Args:
            lesson: whose lock.
            handed_out: what its references lead to.

        Raises:
            LockError: it is no lock of this kind, is cut off, or leads nowhere.
        """
        path = lesson.path / LOCK_FILE
        if not path.exists():
            return cls(path)
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            if tree["format"] != FORMAT:
                raise ValueError(
                    f"its format is {tree['format']}, and this version writes {FORMAT}"
                )
            exercises = {
                name: _of_exercise(entry, handed_out.get(name, ()))
                for name, entry in tree["exercises"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            number = lesson.folder.partition("-")[0]
            raise LockError(
                f"{path} cannot be used ({type(error).__name__}: {error}). Remove it and make it "
                f"anew: autograder build --lesson {number}, then autograder trial {number}"
            ) from None
        return cls(path, exercises)

    def write(self, handed_out: HandedOut) -> None:
        """Write it, one exercise a line, so that a changed exercise is one changed line."""
        parts = []
        for name, exercise in self.exercises.items():
            seen = {
                mistake: _written(seen, handed_out.get(name, ()))
                for mistake, seen in exercise.seen.items()
            }
            entry = {
                "made_from": exercise.made_from,
                "proved": exercise.proved,
                "named": exercise.named,
                "handed_out": [sorted(seen).index(name) for name in exercise.handed_out],
                "released": _digest(handed_out.get(name, ())),
                "seen": pack(seen) if seen else {},
            }
            parts.append(f"{_json(name)}: {_json(entry)}")
        text = ",\n".join(parts)
        write_whole(self.path, f'{{"format": {FORMAT}, "exercises": {{\n{text}\n}}}}\n')


def _of_exercise(entry: Mapping[str, Any], handed_out: Sequence[Seen]) -> OfExercise:
    """What a lock says of an exercise; without what it refers to where another release lies beside
    it, since its references then lead to other evidence."""
    whole = entry.get("released") == _digest(handed_out)
    packed = unpack(entry["seen"])
    seen = {name: _read(tree, handed_out if whole else ()) for name, tree in packed.items()}
    known = sorted(seen)
    return OfExercise(
        list(entry["made_from"]),
        seen,
        [known[place] for place in entry["handed_out"]] if whole else [],
        entry["proved"],
        tuple(entry["named"]),
        whole,
    )


def _digest(handed_out: Sequence[Seen]) -> str:
    """Of what visible checks see of an exercise's mistakes, as it was released."""
    plain = [[[test, *map(astuple, seen[test])] for test in seen] for seen in handed_out]
    return digest(plain)[:16]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _written(seen: Seen, handed_out: Sequence[Seen]) -> dict[str, Any]:
    """Evidence by test; in place of what was handed out, its number there. What a test that passed
    saw is nothing, and is not written."""
    tree: dict[str, Any] = {}
    for test, evidence in seen.items():
        there = (
            n for n, seen_there in enumerate(handed_out) if same(seen_there.get(test, ()), evidence)
        )
        if not evidence:
            continue
        number = next(there, None)
        pieces = [[piece.check, piece.got, piece.tolerance] for piece in evidence]
        tree[test] = pieces if number is None else number
    return tree


def _read(tree: Mapping[str, Any], handed_out: Sequence[Seen]) -> Seen:
    """Evidence by test; that which is referred to lacks where nothing was handed out."""
    return {
        test: handed_out[there][test]
        if isinstance(there, int)
        else tuple(Evidence(check, got, tolerance) for check, got, tolerance in there)
        for test, there in tree.items()
        if handed_out or not isinstance(there, int)
    }
