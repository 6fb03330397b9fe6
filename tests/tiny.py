"""A lesson of three exercises, for tests of the engine that need no real lesson."""

from __future__ import annotations

import json
from pathlib import Path

from autograder.course.lessons import Course

COURSE_TOML = """
title = "A tiny course"
[package]
name = "my_transformer"
about = "What doubles."
[[lesson]]
folder = "01-tiny"
title = "Tiny"
minutes = 5
needs = []
about = "Doubling, and what can be built on it."
"""


def head(name: str, *, test: bool = False, points: int = 0) -> str:
    kind = {"grade": test, "grade_id": name, "locked": test, "points": points}
    more = {"schema_version": 3, "solution": not test, "task": False, "cell_type": "code"}
    return f"# %% nbgrader={json.dumps({**kind, **more})}\n"


LESSON = (
    '# %% tags=["setup"]\n'
    "import numpy as np\nimport math\n"
    "from lesson_kit.checks import assert_close, assert_equal, assert_raises, check_answer\n"
    "from lesson_kit.checks import check_rng, checks_passed, probe\n\n"
    + head("double")
    + 'def double(x):\n    """Twice x; a negative x is a ValueError."""\n'
    "    ### BEGIN SOLUTION\n    if np.any(np.asarray(x) < 0):\n"
    '        raise ValueError("x is negative")\n    return 2 * x\n    ### END SOLUTION\n\n'
    + head("test_double", test=True, points=2)
    + 'x = check_rng().uniform(size=3)\nassert_close(double(x), x + x, "Is it twice x?")\n'
    'checks_passed("double")\n\n'
    + head("test_double_errors", test=True, points=1)
    + "# Hidden checks of double: negative numbers.\n### BEGIN HIDDEN TESTS\n"
    'with assert_raises(ValueError, "A negative x is to be refused."):\n'
    "    double(np.array([-3.0]))\n### END HIDDEN TESTS\n\n"
    + head("quadruple")
    + 'def quadruple(x):\n    """Four times x."""\n    ### BEGIN SOLUTION\n'
    "    return double(double(x))\n    ### END SOLUTION\n\n"
    + head("test_quadruple", test=True, points=4)
    + "@probe\ndef result_and_input(x):\n    return quadruple(x), x\n\n"
    "x = check_rng().uniform(size=4)\nresult, after = result_and_input(x.copy())\n"
    'assert_close(result, 4 * x, "Is it four times x?")\n'
    'assert_equal(after, x, "x is changed in place.")\n\n'
    '# %% tags=["demonstration"]\n'
    'raise RuntimeError("a demonstration is not run when grading")\n\n'
    + head("answer_size")
    + '### BEGIN SOLUTION\nanswer_size = "b"\n### END SOLUTION\n\n'
    + head("test_answer_size", test=True, points=1)
    + 'check_answer("answer_size", answer_size)\n\n'
    '# %% [markdown] nbgrader={"grade": true, "grade_id": "written_why", "locked": false, '
    '"points": 3, "schema_version": 3, "solution": true, "task": false, "cell_type": "markdown"}\n'
    "# ### BEGIN SOLUTION\n# Because.\n#\n# **Marking scheme** (3 points).\n# ### END SOLUTION\n"
)

#: To import torch takes a second and a half, of every kernel: only where it is used.
WITH_TORCH = LESSON.replace("import math\n", "import torch\n")

MISCONCEPTIONS = """
from autograder.course.implementations import choice

choice("answer_size", "a", reason="It is larger.")
choice("answer_size", "b", right=True, reason="It is.")
"""


def tiny_course(folder: Path) -> Course:
    """Write the course below ``folder`` and load it."""
    lesson = folder / "lessons" / "01-tiny"
    lesson.mkdir(parents=True)
    (folder / "lessons" / "course.toml").write_text(COURSE_TOML)
    (lesson / "tiny.py").write_text(LESSON)
    (lesson / "misconceptions.py").write_text(MISCONCEPTIONS)
    (lesson / "alternatives.py").write_text("")
    return Course.load(folder)


#: A second lesson, which builds on the first.
ENTRY = """
[[lesson]]
folder = "02-next"
title = "Next"
minutes = 5
needs = ["01-tiny"]
about = "What can be built on quadrupling."
"""

NEXT = (
    '# %% tags=["setup"]\n'
    "import numpy as np\n"
    "from lesson_kit.earlier import quadruple\n"
    "from lesson_kit.checks import assert_close, check_rng, checks_passed\n\n"
    + head("octuple")
    + 'def octuple(x):\n    """Eight times x."""\n    ### BEGIN SOLUTION\n'
    "    return quadruple(x) + quadruple(x)\n    ### END SOLUTION\n\n"
    + head("test_octuple", test=True, points=2)
    + "x = check_rng().uniform(size=3)\n"
    'assert_close(octuple(x), 2 * quadruple(x), "Is it eight times x?")\n'
    'checks_passed("octuple")\n'
)


def two_lessons(folder: Path, text: str = NEXT) -> Course:
    tiny_course(folder)
    path = folder / "lessons" / "course.toml"
    path.write_text(path.read_text() + ENTRY)
    (folder / "lessons" / "02-next").mkdir()
    (folder / "lessons" / "02-next" / "next.py").write_text(text)
    (folder / "lessons" / "02-next" / "misconceptions.py").write_text("")
    (folder / "lessons" / "02-next" / "alternatives.py").write_text("")
    return Course.load(folder)
