"""What the rules say of exceptions as NumPy, torch and Python raise them today."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.exceptions import lines_of, meaning


class Unborn(nn.Module):
    def __init__(self, part: object = None) -> None:
        if part is not None:
            self.part = part


THINGS = {
    "Unborn": Unborn,
    "a": np.ones((2, 3)),
    "t": torch.ones(2, 3),
    "g": torch.ones(2, 3, requires_grad=True),
    "whole": torch.ones(2, 3).long(),
    "mask": torch.ones(2, 3) > 0,
    "lin": nn.Linear(3, 3),
    **{"np": np, "torch": torch, "nn": nn, "F": F, "math": math},
}

#: What the sentence says, and expressions whose exception it is said of.
SAID = {
    "Python needs one True or False": ["max(a)", "bool(t)", "1 if t > 0 else 0", "t in [2 * t]"],
    "A matrix product multiplies": ["a @ a", "t @ t", "np.dot(a, a)", "t[None] @ t[None]"],
    "is one number, without any axis": ["a[0, 0] @ a", "a @ a.sum()", "t @ t[0, 0]", "t.sum() @ t"],
    "letters of einsum": [
        'torch.einsum("ij,jk->ik", t, t)',
        'torch.einsum("ij,kl->", t)',
        'np.einsum("ijk", a)',
        'torch.einsum("ijk->i", t)',
    ],
    "each of its lengths has to be the same there or be 1": [
        "t.expand(5, 3)",
        "t.expand(4)",
        "a.__iadd__(np.ones((2, 2, 3)))",
        "a.__setitem__(0, np.ones((2, 3)))",
        "a.__setitem__([0], np.ones((2, 3)))",
        "t.__setitem__([0], torch.ones(2, 3))",
        "np.broadcast_to(a, (2, 1))",
        "t.add_(torch.ones(2, 2, 3))",
    ],
    "with einsum those of one letter": ['np.einsum("ij,jk->ik", a, a)'],
    "axis by axis from the right": [
        "a + np.ones(4)",
        "np.ones((2, 3, 4)) @ np.ones((3, 4, 2))",
        "t + torch.ones(4)",
    ],
    "a fixed number of axes": ["torch.bmm(t, t)", "torch.dot(t, t)", "torch.mv(t, t)"],
    "Arrays that are joined": [
        "torch.cat([t, torch.ones(2, 4)], 0)",
        "torch.stack([t, torch.ones(3, 2)])",
        "np.concatenate([a, np.ones(3)])",
        "np.stack([a, a.T])",
    ],
    "There is no such axis": ["t.transpose(-3, -1)", "a.swapaxes(1, 2)", "a.mean(-3)", "t.mean(2)"],
    "names each axis once": ["t.permute(0)", "t.permute(0, 1, 2)"],
    "More axes are indexed": ["t[0, 0, 0]", "a[0, 0, 0]"],
    "outside its axis": ["a[5]", "t[5]", "a[:, -4]", "t.scatter(-1, 7 * whole, 1.0)"],
    "A list is shorter": ["[1, 2][2]", "[][-1]"],
    "A tuple is shorter": ["a.shape[2]", "(1, 2)[3]"],
    "have as many axes as each other here": ["t.gather(1, whole[0])"],
    "a table that has no such row": ["nn.Embedding(3, 2)(torch.tensor([5]))"],
    "a class that there is not": [
        "F.cross_entropy(t, torch.tensor([5, 1]))",
        "F.cross_entropy(t, torch.tensor([-1, 1]))",
    ],
    "Targets and predictions do not fit": [
        "F.cross_entropy(t, torch.ones(4).long())",
        "F.cross_entropy(torch.ones(2, 3, 4), torch.ones(2, 3).long())",
    ],
    "More entries are asked for": ["t.topk(5)"],
    "An index of this kind": ["a[1.0]", "t[1.0]", 'a["x"]'],
    "does not hold as many numbers": ["t.view(7)", "a.reshape(7)"],
    "do not add up": ["np.split(a, 2, -1)", "t.split([1, 1], -1)"],
    "A length is negative": ["torch.empty(-1)", "np.empty(-1)"],
    "As the numbers lie in memory": ["t.T.view(6)", "t[:, ::2].view(4)"],
    "another length of the last axis": ["nn.LayerNorm(4)(t)"],
    "cannot be turned into a NumPy array": ["g.numpy()", "np.exp(g)"],
    "taken out of the computation": ["t.sum().backward()"],
    "A gradient is that of one number": ["(2 * g).backward()"],
    "The gradient of one computation, or of a part of it, is asked for again": [
        "[x.backward() for x in 2 * [g.exp().sum()]]"
    ],
    "A tensor that wants a gradient, a parameter or an input, is changed in place": [
        "g.add_(1)",
        "lin.weight.copy_(t)",
    ],
    "returns two results": ["torch.max(t, dim=-1) / t", "t - t.max(-1)", "torch.exp(t.max(-1))"],
    "all that a function of torch (`linalg_svd`) returns": ["torch.linalg.svd(t) / 2"],
    "Something here is a tuple": [
        "(t, t).shape",
        "(t, t) / 3",
        "torch.exp((t, t))",
        "a.shape[0, 1]",
        "a.shape / 2",
    ],
    "None where a value is needed": ["None + 1", "None.shape", "a > None", "np.exp([None])"],
    "has no value here": ["undefined_name + 1"],
    "`torch.nn` has nothing called `Nothing`": ["nn.Nothing()"],
    "A NumPy array has no `unsqueeze`": ["a.unsqueeze(0)"],
    "A torch tensor has no `astype`": ["t.astype(float)"],
    "of the kind `list`, which has no `shape`": ["[1, 2].shape"],
    "its parent's `__init__` has to run": ["Unborn()(t)", "Unborn(lin)"],
    "has no `randn`": ["np.random.default_rng(0).randn(3)"],
    'is called without "dim"': ["torch.softmax(t)"],
    "NumPy says `axis`": [
        "a.sum(dim=-1)",
        "a.max(keepdim=True)",
        "np.max(a, axis=-1, keepdim=True)",
    ],
    "another number of arguments by position": [
        "t.transpose(0, 1, 2)",
        "lin(t, t)",
        "t.sqrt(3)",
        "t.reshape(2.0, 3)",
        "np.exp()",
    ],
    "does not take these arguments together": ['torch.where(t > 0, 1.0, "x")', "t.sum(foo=1)"],
    "gets something that is no tensor": ["torch.exp(a)", "lin(a)", "torch.cat([t, a])"],
    "A NumPy array is asked for": ["torch.from_numpy([1])"],
    "dtype) of torch is given to NumPy": ["np.zeros(3, dtype=torch.bool)"],
    "a shape is one tuple": ["np.zeros(2, 3)"],
    "is to be of the kind `int` here, and is of the kind `float`": ["t.tril(diagonal=1.5)"],
    "where one number is asked for": [
        "math.exp(t)",
        "math.sqrt(a)",
        "float(t)",
        "t.item()",
        "a.item()",
    ],
    "Things of different shapes": [
        "np.array([[1, 2], [3]])",
        "torch.tensor([[1, 2], [3]])",
        "np.logical_and.reduce([a > 0, a[0] > 0])",
    ],
    "Truth values (bool) are used with `-`": ["1 - mask", "-mask", "-(a > 0)"],
    "A mask of truth values (bool) is asked for": [
        "t.masked_fill(t, 0.0)",
        "torch.where(t, 1.0, 0.0)",
        "F.scaled_dot_product_attention(t, t, t, attn_mask=whole)",
    ],
    "The opposite of a mask": ["~t", "~a"],
    "torch does not do this with truth values": ["F.softmax(mask, -1)", "mask @ mask.T"],
    "torch asks for floating point numbers": [
        "whole.mean()",
        "whole.softmax(-1)",
        "whole.std()",
        "nn.Parameter(whole)",
        "torch.linalg.norm(whole)",
    ],
    "Whole numbers are asked for": [
        "nn.Embedding(3, 2)(t)",
        "F.cross_entropy(t, torch.ones(2))",
        "t.gather(-1, t)",
        "t[t]",
    ],
    "Truth values (bool) and numbers meet": ["lin(mask)"],
    "Whole numbers meet numbers of another kind": ["lin(whole)", "whole @ whole.int().T"],
    "different precision": ["lin(t.double())", "t @ t.double().T", "nn.LayerNorm(3)(t.double())"],
    "An array without axes, one number": ["list(np.array(1))", "[*t.sum()]", "len(np.array(1))"],
    "it is too large for it, or too far below 0": [
        "np.array([-1], dtype=np.uint8)",
        "np.uint8(1) - 300",
    ],
    "has no `forward`": ["nn.ModuleList([lin])(t)", "nn.Module()(t)"],
    "Are they logits, or NaN": ["torch.multinomial(t - 2, 1)"],
    "called here like a function": ["a()", "t(0)", "t.shape(0)", "lin.weight()"],
    "several things are asked for": ["list(5)", "len(3)"],
    "always gives one": ["range(6 / 2)", "[1, 2] * 2.5"],
    "`+` is used between a `list` and a `int`": ["[1, 2] + 3"],
    "`math` is not defined for this number": ["math.sqrt(-1)", "math.log(0)", "math.acos(2)"],
    "There is no such entry": ['{}["x"]', "{}[3]", "{1}.remove(2)"],
}


@pytest.mark.parametrize(
    ("said", "expression"), [(said, one) for said, many in SAID.items() for one in many]
)
def test_what_is_said_is_true_of_what_is_raised(said: str, expression: str) -> None:
    with pytest.raises(Exception) as raised:
        eval(expression, dict(THINGS))
    kinds = tuple(kind.__name__ for kind in type(raised.value).__mro__)
    assert said in meaning(kinds, str(raised.value)), str(raised.value)


def test_an_exception_that_no_rule_knows_is_not_explained() -> None:
    assert meaning(("OSError", "Exception"), "No such file") == ""


@pytest.mark.parametrize(
    "expression",
    [
        'lin.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.ones(3)})',
        "t.expand(-1, 2, 3)",
        "F.pad(t, (1,))",
        'lin.register_buffer("weight", t)',
        "set().pop()",
    ],
)
def test_what_no_sentence_fits_is_told_none(expression: str) -> None:
    with pytest.raises(Exception) as raised:
        eval(expression, dict(THINGS))
    kinds = tuple(kind.__name__ for kind in type(raised.value).__mro__)
    assert meaning(kinds, str(raised.value)) == ""


def test_what_keras_adds_to_an_exception_says_nothing_about_it() -> None:
    text = (
        "Exception encountered when calling Attention.call().\n\nexpected scalar type Float but "
        "found Long\n\nArguments received by Attention.call():\n  • mask=torch.Tensor("
        "dtype=torch.bool)\n  • training=NoneType"
    )
    assert "Whole numbers meet" in meaning(("RuntimeError",), text)


def test_colours_of_a_terminal_are_not_shown() -> None:
    try:
        raise ValueError("\x1b[1mExpected\x1b[0m three axes")
    except ValueError as error:
        assert "It raised ValueError: Expected three axes" in lines_of(error)
