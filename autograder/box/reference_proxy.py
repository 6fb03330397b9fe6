"""Inside a box: what stands for the course's own version of an exercise.

An exercise that builds on one that failed is graded once more on the course's own version of
that one. Its source never enters a box: a call goes to the tester as plain data, and the answer
comes back. Gradients flow through it, as the tester also pulls them back; a class is a torch
module whose parameters live here and travel with every call, as does what was set after it was made
(``norm.eps = 1e-3``).

The other side is :mod:`autograder.grade.course_code`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from autograder.box.leaves import leaves, with_leaves
from lesson_kit.tensors import installed, torch

if installed():
    from torch import nn

#: Sends a request to the tester and gives its answer: a dict with ``value`` or ``error``.
Ask = Callable[[dict[str, Any]], dict[str, Any]]


def function_proxy(name: str, ask: Ask) -> Callable[..., Any]:
    """What stands for a function of the course's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return _through(ask, {"op": "call", "name": name, "args": args, "kwargs": kwargs})

    call.__name__ = call.__qualname__ = name
    return call


def class_proxy(name: str, ask: Ask) -> type[nn.Module]:
    """What stands for a torch module of the course's."""

    class StandIn(nn.Module):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__()
            self._given = {"name": name, "given": args, "named": kwargs}
            made = _value(ask({"op": "make", **self._given, "seed": _seed()}))
            for path, (wide, out, bias) in made["linear layers"].items():
                # Torch's own: it draws no numbers, for its parameters follow.
                layer = nn.Linear(wide, out, bias, device="meta")
                _below(self, path).add_module(path.split(".")[-1], layer)
            for path, tensor in made["parameters"].items():
                _below(self, path).register_parameter(path.split(".")[-1], nn.Parameter(tensor))
            for path, tensor in made["buffers"].items():
                _below(self, path).register_buffer(path.split(".")[-1], tensor)
            self._made_with = made["attributes"]
            for path, value in self._made_with.items():
                setattr(_below(self, path), path.split(".")[-1], value)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            state = {**dict(self.named_parameters()), **dict(self.named_buffers())}
            request: dict[str, Any] = {"op": "forward", **self._given, "state": state}
            request |= {"args": args, "kwargs": kwargs, "training": self.training}
            request |= {"attributes": _set_since(self, self._made_with)}
            return _through(ask, {**request, "seed": _seed() if self.training else 0})

    StandIn.__name__ = StandIn.__qualname__ = name
    return StandIn


def _below(module: nn.Module, path: str) -> nn.Module:
    """The module that holds the parameter of a dotted name; made where there is none yet."""
    for part in path.split(".")[:-1]:
        if part not in module._modules:
            module.add_module(part, nn.Module())
        module = module.get_submodule(part)
    return module


def _set_since(module: nn.Module, made_with: dict[str, Any]) -> dict[str, Any]:
    """By dotted name, the attributes that have another value than the module was made with."""
    found: dict[str, Any] = {}
    for path, before in made_with.items():
        now = getattr(_below(module, path), path.split(".")[-1], before)
        if type(now) is not type(before) or now != before:
            found[path] = now
    return found


def _seed() -> int:
    """For what is random in the tester: drawn from the student's own stream."""
    return int(torch.randint(2**31, ()))


def _value(answer: dict[str, Any]) -> Any:
    error = answer.get("error")
    if error is None:
        return answer.get("value")
    for name in error["types"]:
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            raise kind(error["text"])
    raise RuntimeError(error["text"])


def _through(ask: Ask, request: dict[str, Any]) -> Any:
    """The tester's answer, as part of the graph of gradients where there is one."""
    tensors = [leaf for leaf in leaves(request) if leaf.requires_grad]
    if not tensors or not torch.is_grad_enabled():
        return _value(ask(request))
    # As it is now: a tensor may be changed in place before gradients are asked for.
    kept = [leaf.detach().clone().requires_grad_(leaf.requires_grad) for leaf in leaves(request)]
    kept_request = with_leaves(request, kept)
    shape: list[Any] = []
    outs = _Remote.apply(  # type: ignore[no-untyped-call]
        ask, kept_request, shape, *tensors
    )
    return with_leaves(shape[0], list(outs))


if installed():

    class _Remote(torch.autograd.Function):
        """One call in the tester, and the gradients that it pulls back."""

        @staticmethod
        def forward(ctx: Any, ask: Ask, request: Any, shape: list[Any], *tensors: Any) -> Any:
            value = _value(ask(request))
            shape.append(value)
            answers = [leaf.detach() for leaf in leaves(value)]
            ctx.ask, ctx.request = ask, request
            ctx.mark_non_differentiable(
                *(tensor for tensor in answers if not tensor.is_floating_point())
            )
            return tuple(answers)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            back = _value(
                ctx.ask({"op": "pull back", "of": ctx.request, "gradients": list(gradients)})
            )
            return (None, None, None, *back)
