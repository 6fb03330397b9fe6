"""Answers that look at nothing: each gives one of its arguments, a constant of the card, or stops.

Beside :mod:`autograder.diagnose.idle`, whose answers take the place of all exercises at once: here
one exercise does nothing and all others are right, and every method of a class does the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: What a function, or each method of a class, does; ``given`` is what it is given.
BODIES = {
    "nothing": "return None",
    "0": "return 0",
    "an empty list": "return []",
    "the first argument": "return given[0] if given else None",
    "the second argument": "return given[1] if len(given) > 1 else None",
    "the last argument": "return given[-1] if given else None",
    "StopIteration": "raise StopIteration",
}


def idle_answers(name: str, solution: str) -> Iterator[tuple[str, str]]:
    """What each answer does, and its source.

    Args:
        name: of an exercise.
        solution: its right answer; its constants, and those of its card, are tried too.
    """
    tree = ast.parse(solution)
    constants = {
        repr(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
    }
    bodies = BODIES | {text: f"return {text}" for text in sorted(constants)}
    made = next(
        (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name), None
    )
    for does, body in bodies.items():
        given = "given = [*args, *kwargs.values()]"
        if made is None:
            yield does, f"def {name}(*args, **kwargs):\n    {given}\n    {body}\n"
            continue
        bases = ", ".join(map(ast.unparse, made.bases))
        methods = [node.name for node in made.body if isinstance(node, ast.FunctionDef)]
        lines = [f"class {name}({bases}):", "    def __init__(self, *args, **kwargs):"]
        lines += ["        super().__init__()"]
        for method in methods:
            if method != "__init__":
                lines += [f"    def {method}(self, *args, **kwargs):"]
                lines += [f"        {given}", f"        {body}"]
        yield does, "\n".join(lines) + "\n"
