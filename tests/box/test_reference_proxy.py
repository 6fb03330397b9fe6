"""The course's own version of an exercise is called from a box, and never enters it."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder.box.box import Box
from autograder.box.leaves import leaves, with_leaves
from autograder.box.reference_proxy import class_proxy, function_proxy
from autograder.build.build import write_source
from autograder.course.bundle import Bundle
from autograder.course.lessons import builds_on
from autograder.grade.course_code import CourseCode
from autograder.grade.tester import Tester

from ..conftest import COURSE, sampled
from ..submissions import boxes, graded, max_points, notebook_with, points
from ..tiny import LESSON, tiny_course

SETUP = {"np": np, "torch": torch, "nn": torch.nn}
CODE = CourseCode(
    dict(SETUP),
    {
        "softened": "def softened(x, by=1.0):\n"
        "    if by == 0:\n        raise ValueError('by nothing')\n"
        "    return torch.tanh(x / by), x.shape",
        "Scaled": "class Scaled(nn.Module):\n"
        "    def __init__(self, width, bias=True):\n        super().__init__()\n"
        "        self.width = width\n        self.inner = nn.Linear(width, width, bias)\n"
        "        self.scale = nn.Parameter(torch.ones(width))\n"
        "        self.register_buffer('shift', torch.full((width,), 0.5))\n"
        "    def forward(self, x, twice=False):\n"
        "        out = self.inner(x) * self.scale + self.shift\n"
        "        return out, 2 * out if twice else None\n",
        "Twice": "class Twice(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.times, self.norm = 2, nn.LayerNorm(width, eps=1e-5)\n"
        "    def forward(self, x):\n        return self.times * self.norm(x)\n",
        "answer_x": "answer_x = 3",
    },
)


def ask(request: dict[str, object]) -> dict[str, object]:
    return CODE.answer(frozenset({"softened", "Scaled", "Twice"}), request)


def test_a_function_is_called_with_its_errors_and_its_gradients() -> None:
    softened = function_proxy("softened", ask)
    real = CODE._names["softened"]
    x = torch.randn(3, 4, dtype=torch.float64)
    assert softened(x)[0].equal(real(x)[0])
    assert softened(x, by=2.0)[1] == (3, 4)
    with pytest.raises(ValueError, match="by nothing"):
        softened(x, by=0)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    direction = torch.randn_like(x)
    (softened(ours * 3, by=2.0)[0] * direction).sum().backward()
    (real(theirs * 3, by=2.0)[0] * direction).sum().backward()
    assert ours.grad is not None and theirs.grad is not None
    assert torch.allclose(ours.grad, theirs.grad)


def test_a_module_has_its_parameters_here_and_learns() -> None:
    real = CODE._names["Scaled"](4)
    module = class_proxy("Scaled", ask)(4)
    assert list(module.state_dict()) == list(real.state_dict())
    assert module.width == 4 and module.inner.in_features == 4
    module.load_state_dict(real.state_dict())
    real, module = real.double(), module.double()
    x = torch.randn(2, 4, dtype=torch.float64)
    assert torch.allclose(module(x)[0], real(x)[0]) and module(x)[1] is None
    for one in (module, real):
        torch.optim.SGD(one.parameters(), 0.1).zero_grad()
        (one(x, twice=True)[1] ** 2).sum().backward()
    for (name, mine), theirs in zip(module.named_parameters(), real.parameters()):
        assert mine.grad is not None and torch.allclose(mine.grad, theirs.grad), name
    with pytest.raises(TypeError):
        class_proxy("Scaled", ask)()


def test_what_is_set_on_a_module_counts() -> None:
    real, module = CODE._names["Twice"](4), class_proxy("Twice", ask)(4)
    x = torch.randn(3, 4)
    assert module(x).equal(real(x))
    for one in (real, module):
        assert one.times == 2 and one.norm.eps == 1e-5
        one.times, one.norm.eps = 5, 2.0
    assert module(x).equal(real(x))


@pytest.mark.parametrize(
    "name", ["forward", "norm.forward", "norm.weight", "_modules", "nowhere.a"]
)
def test_only_what_a_module_has_can_be_set(name: str) -> None:
    state = dict(CODE._names["Twice"](4).named_parameters())
    request = {"op": "forward", "name": "Twice", "given": (4,), "named": {}, "state": state}
    request |= {"args": (torch.randn(3, 4),), "kwargs": {}, "training": True, "seed": 0}
    assert "value" in ask({**request, "attributes": {"norm.eps": 2.0}})
    for attributes in ({name: 3.0}, {"norm.eps": torch.ones(2)}, None):
        assert "error" in ask({**request, "attributes": attributes})


@pytest.mark.parametrize(
    "request_",
    [
        None,
        {},
        {"op": "call", "name": "answer_x", "args": (), "kwargs": {}},
        {"op": "call", "name": "__builtins__", "args": (), "kwargs": {}},
        {"op": "call", "name": "softened"},
        {"op": "call", "name": "softened", "args": 3, "kwargs": {"a": 1}},
        {"op": ["call"], "name": "softened", "args": (), "kwargs": {}},
        {"op": "pull back", "of": None, "gradients": None},
        {"op": "pull back", "of": {"op": "pull back"}, "gradients": []},
        {"op": "make", "name": "Scaled", "given": (-1,), "named": {}, "seed": 0},
        {"op": "make", "name": "Scaled", "given": (1,), "named": {}, "seed": "x"},
    ],
)
def test_whatever_a_box_asks_has_an_answer(request_: object) -> None:
    assert "error" in ask(request_)  # type: ignore[arg-type]


def test_leaves_are_put_back_where_they_were() -> None:
    tree = {"a": [torch.ones(2), 3], "b": (torch.zeros(1),)}
    doubled = with_leaves(tree, [2 * one for one in leaves(tree)])
    assert doubled["a"][0].tolist() == [2, 2] and doubled["a"][1] == 3
    assert isinstance(doubled["b"], tuple)


def _wrong(source: str, name: str) -> str:
    kind = next(node for node in ast.parse(source).body if getattr(node, "name", "") == name)
    if isinstance(kind, ast.ClassDef):
        return (
            f"class {name}(nn.Module):\n    def __init__(self, *args, **kwargs):\n"
            "        raise RuntimeError('mine is wrong')\n"
        )
    return f"def {name}(*args, **kwargs):\n    raise RuntimeError('mine is wrong')\n"


EDGES = [
    (lesson.folder, name)
    for lesson in COURSE.lessons
    for name in lesson.exercises
    if any(name in builds_on(lesson.exercises, other) for other in lesson.exercises)
]


@pytest.mark.parametrize(("folder", "name"), sampled(EDGES))
def test_one_mistake_costs_its_own_points_only(
    folder: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every exercise of the course on which another one builds."""
    # No diagnosis is wanted here, and its evidence takes long to compute.
    monkeypatch.setattr("autograder.build.build.catalogue", lambda lesson: [])
    monkeypatch.setattr("autograder.build.beside.released_mistakes", lambda lesson: "{}")
    write_source(COURSE.lesson(folder), tmp_path / folder)
    bundle = Bundle.load(tmp_path / folder)
    wrong = {name: _wrong(bundle.exercises[name], name)}
    verdict = graded(bundle, notebook_with(bundle, wrong))
    assert points(verdict) == {**max_points(bundle), name: 0.0}, [
        (test.grade_id, test.message) for test in verdict.tests if test.outcome != "passed"
    ]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("tiny")
    lesson = tiny_course(folder).lesson("01")
    lesson.source_path.write_text(LESSON.replace("x is negative", UNHEARD_OF))
    write_source(lesson, folder / "source" / lesson.folder)
    return Bundle.load(folder / "source" / lesson.folder)


#: What the course's answer says, and no library.
UNHEARD_OF = "nothing below nought is doubled"
#: Looks for it in the objects of its process, the newest first, until it is found.
LOOK = f"""
import gc
wanted = ''.join(reversed({UNHEARD_OF[::-1]!r}))  # so that it does not find itself
code = type(compile('', '', 'exec'))
found, seen, waiting = False, {{id(wanted)}}, [gc.get_objects()]
while waiting and not found:
    one = waiting.pop()
    inside = one if type(one) is list else gc.get_referents(one)
    for item in (*inside, *(one.co_consts if type(one) is code else ())):
        if id(item) in seen:
            continue
        seen.add(id(item))
        if type(item) is str:
            found |= wanted in item
        else:
            waiting.append(item)
print('found', found)
"""


def look(box: Box) -> str:
    reply = box.run(LOOK, 300)
    assert reply.error is None
    return reply.output.strip()


def test_nothing_of_the_courses_answer_is_in_a_box(tiny: Bundle) -> None:
    tester = Tester(tiny, 20)
    with boxes().start({}) as box:
        box.run("import numpy as np", 20)
        assert tester.put_proxy("double", box)
        reply = box.run("print(double(np.arange(3.0)))", 20)
        assert "0. 2. 4." in reply.output
        assert look(box) == "found False"
        box.run(tiny.exercises["double"], 20)  # as it was: it would be found
        assert look(box) == "found True"
