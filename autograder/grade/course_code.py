"""In the tester: the course's own version of an exercise, called by a box that stands in for it.

What a box asks is not believed: it is plain data, and names one of the exercises that the tester
lent it. The other side is :mod:`autograder.box.reference_proxy`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import FunctionType
from typing import Any

from autograder.box.leaves import leaves
from lesson_kit.tensors import installed, torch

_PLAIN = (int, float, bool, str, type(None))

#: Numbers in one request. A box chooses what is computed here, and one step of a library, such as
#: NumPy's product of float16, cannot be interrupted.
MAX_NUMBERS = 2**19


class CourseCode:
    """The course's answers of one lesson, run once; each can be called from a box."""

    def __init__(self, namespace: dict[str, Any], exercises: dict[str, str]) -> None:
        """Run the answers.

        Args:
            namespace: of the lesson's setup cell.
            exercises: source of each answer, by name.
        """
        self._names = dict(namespace)
        for name, source in exercises.items():
            exec(compile(source, f"<the course's {name}>", "exec"), self._names)
        self._operations: dict[str, Callable[..., Any]] = {
            "call": self._call,
            "make": self._make,
            "forward": self._forward,
        }

    def kind(self, name: str) -> str:
        """``function``, ``class`` of a torch module, or "" for what cannot be called from a box."""
        made = self._names.get(name)
        if isinstance(made, FunctionType):
            return "function"
        return "class" if isinstance(made, type) and issubclass(made, torch.nn.Module) else ""

    def answer(self, proxied: frozenset[str], request: Any) -> dict[str, Any]:
        """What a box asked for, or the error that it led to, as plain data.

        Args:
            proxied: the exercises that may be called.
            request: of the box.
        """
        try:
            with torch.random.fork_rng(devices=[]) if installed() else nullcontext():
                return {"value": self._answer(proxied, request)}
        except Exception as error:
            return self.refused(error)

    @staticmethod
    def refused(error: Exception) -> dict[str, Any]:
        """An error, as plain data."""
        types = [kind.__name__ for kind in type(error).__mro__]
        return {"error": {"types": types, "text": str(error)[:2000]}}

    def _answer(self, proxied: frozenset[str], request: Any) -> Any:
        if not isinstance(request, dict):
            raise TypeError("a request is a dict")
        if _numbers(request) > MAX_NUMBERS:
            raise ValueError(f"more than {MAX_NUMBERS} numbers for the course's own code")
        if request.get("op") == "pull back":
            return self._pull_back(proxied, request["of"], request["gradients"])
        with torch.no_grad() if installed() else nullcontext():
            return self._do(proxied, request)

    def _do(self, proxied: frozenset[str], request: dict[str, Any]) -> Any:
        rest = dict(request)
        operation, name = self._operations[rest.pop("op")], rest.pop("name")
        if name not in proxied:
            raise NameError("this exercise is not lent")
        return operation(self._names[name], **rest)

    def _pull_back(self, proxied: frozenset[str], request: dict[str, Any], gradients: Any) -> Any:
        """Gradients to the tensors of a request that want one."""
        wanted = [leaf for leaf in leaves(request) if leaf.requires_grad]
        with torch.enable_grad():
            outs = leaves(self._do(proxied, request))
        pairs = [(out, gradient) for out, gradient in zip(outs, gradients) if out.requires_grad]
        if not pairs:
            return [None] * len(wanted)
        ends, starts = zip(*pairs)
        return list(torch.autograd.grad(ends, wanted, starts, allow_unused=True))

    def _call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def _make(self, kind: type[torch.nn.Module], given: Any, named: Any, seed: int) -> Any:
        torch.manual_seed(seed)
        module = kind(*given, **named)
        return {
            "parameters": dict(module.named_parameters()),
            "buffers": dict(module.named_buffers()),
            "attributes": _attributes(module),
            "linear layers": {
                path: (layer.in_features, layer.out_features, layer.bias is not None)
                for path, layer in module.named_modules()
                if type(layer) is torch.nn.Linear
            },
        }

    def _forward(
        self,
        kind: type[torch.nn.Module],
        *,
        given: Any,
        named: Any,
        state: Any,
        args: Any,
        kwargs: Any,
        attributes: Any,
        training: bool,
        seed: int,
    ) -> Any:
        module = kind(*given, **named).train(training)
        _set(module, attributes)
        torch.manual_seed(seed)
        return torch.func.functional_call(module, state, tuple(args), dict(kwargs), strict=True)


def _numbers(tree: Any) -> int:
    """How many numbers the arrays and tensors of plain data hold."""
    if isinstance(tree, torch.Tensor):
        return tree.numel()
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return sum(map(_numbers, tree))
    return int(getattr(tree, "size", 0))


def _attributes(module: torch.nn.Module) -> dict[str, Any]:
    """The plain attributes of a module and its parts, by dotted name."""
    return {
        f"{path}.{name}".removeprefix("."): value
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if not name.startswith("_") and name != "training" and isinstance(value, _PLAIN)
    }


def _set(module: torch.nn.Module, attributes: dict[str, Any]) -> None:
    """Set those that the module has; a box that names another, or sends no plain value, erred."""
    known = _attributes(module)
    for path, value in attributes.items():
        if path not in known or not isinstance(value, _PLAIN):
            raise TypeError(f"{path} cannot be set")
        part, _, name = path.rpartition(".")
        setattr(module.get_submodule(part), name, value)
