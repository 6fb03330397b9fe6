"""What feedback may say of an exception that student code raised in a hidden test.

An exception's text can be chosen by the code that raises it, and so could carry what a hidden
test gave it. Let through is only a text of a known form, in which nothing varies but small
lengths of axes and names: names that stand in the student's own notebook, or those of a few
types. The line is one of the student's own. See "Not promised" in SECURITY.md for what this
can tell at most.
"""

from __future__ import annotations

import re

from autograder.lesson.exceptions import meaning

#: Lengths of axes are small; a larger number is no length that a test uses.
MOST_LENGTH = 64
#: Numbers in one text.
MOST_NUMBERS = 10
#: Characters of a line of the student's.
MOST_LINE = 160

_NUMBER = r"-?\d{1,4}"
_SHAPE = r"\((?:\d{1,4}, ?)*\d{0,4},?\)"
_NAME = r"'?[A-Za-z_][\w.]{0,60}'?"

#: Written with N for a number, S for a shape, and ID for a name.
_FORMS = [
    "matmul: Input operand N has a mismatch in its core dimension N, with gufunc signature "
    "(n?,k),(k,m?)->(n?,m?) (size N is different from N)",
    "matmul: Input operand N does not have enough dimensions (has N, gufunc core with signature "
    "(n?,k),(k,m?)->(n?,m?) requires N)",
    "shapes S and S not aligned: N (dim N) != N (dim N)",
    "operands could not be broadcast together with shapes S S ",
    "operands could not be broadcast together with shapes S S",
    "could not broadcast input array from shape S into shape S",
    "mat1 and mat2 shapes cannot be multiplied (NxN and NxN)",
    "The size of tensor a (N) must match the size of tensor b (N) at non-singleton dimension N",
    "Expected size for first two dimensions of batch2 tensor to be: [N, N] but got: [N, N].",
    "axis N is out of bounds for array of dimension N",
    "Dimension out of range (expected to be in range of [N, N], but got N)",
    "tuple index out of range",
    "index N is out of bounds for axis N with size N",
    "index N is out of bounds for dimension N with size N",
    "boolean index did not match indexed array along axis N; size of axis is N but size of "
    "corresponding boolean axis is N",
    "not enough values to unpack (expected N, got N)",
    "too many values to unpack (expected N)",
    "list index out of range",
    "axes don't match array",
    "too many indices for array: array is N-dimensional, but N were indexed",
    "too many indices for tensor of dimension N",
    "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
    "Boolean value of Tensor with more than one value is ambiguous",
    "a leaf Variable that requires grad is being used in an in-place operation.",
    "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    "view size is not compatible with input tensor's size and stride (at least one dimension "
    "spans across two contiguous subspaces). Use .reshape(...) instead.",
    "name ID is not defined",
    "cannot access local variable ID where it is not associated with a value",
    "ID object has no attribute ID",
    "module ID has no attribute ID",
    "cannot assign module before Module.__init__() call",
    "cannot assign parameter before Module.__init__() call",
    "ID() missing N required positional argument: ID",
    "ID() missing N required positional arguments: ID and ID",
    "ID() got an unexpected keyword argument ID",
    "ID() takes N positional argument but N were given",
    "ID() takes N positional arguments but N was given",
    "ID() takes N positional arguments but N were given",
    "ID object is not callable",
    "ID object is not subscriptable",
    "ID object is not iterable",
    "cannot unpack non-iterable ID object",
    "tuple indices must be integers or slices, not tuple",
    "list indices must be integers or slices, not tuple",
]
_TYPES = frozenset(
    {"NoneType", "tuple", "list", "dict", "int", "float", "bool", "str", "set", "function"}
    | {"method", "builtin_function_or_method", "Tensor", "Parameter"}
    | {"numpy.ndarray", "numpy.float64", "numpy.float32", "numpy.int64"}
    | {"numpy", "math", "torch", "torch.nn", "torch.nn.functional"}
)
_KINDS = frozenset(
    {"NameError", "UnboundLocalError", "AttributeError", "TypeError", "ValueError"}
    | {"RuntimeError", "IndexError", "AxisError"}
)


def _compiled(form: str) -> re.Pattern[str]:
    pattern = re.escape(form)
    for sign, stands_for in (("N", _NUMBER), ("S", _SHAPE), ("ID", _NAME)):
        escaped = stands_for.replace("\\", r"\\")
        pattern = re.sub(rf"(?<![A-Za-z]){sign}(?![a-z_A-Z])", escaped, pattern)
    # 3x4: no space between a number and the x.
    pattern = pattern.replace("NxN", f"{_NUMBER}x{_NUMBER}")
    return re.compile(pattern)


_COMPILED = [_compiled(form) for form in _FORMS]


def let_through(kind: str, text: str, line: str, own: str) -> str:
    """What feedback on a hidden test says of an exception besides its kind, or "".

    All but ``own`` is what a box says, which nobody believes.

    Args:
        kind: name of the exception's class.
        text: its own.
        line: in which it arose.
        own: source of all code of the student's notebook.
    """
    if kind not in _KINDS or not any(form.fullmatch(text) for form in _COMPILED):
        return ""
    numbers = [abs(int(number)) for number in re.findall(r"(?<![\w.'])-?\d+", text)]
    numbers += [int(number) for number in re.findall(r"(?<=\dx)\d+", text)]
    if len(numbers) > MOST_NUMBERS or any(number > MOST_LENGTH for number in numbers):
        return ""
    names = set(re.findall(r"[A-Za-z_]\w*", own))
    for quoted in re.findall(r"'([A-Za-z_][\w.]*)'|([A-Za-z_][\w.]*)\(\)", text):
        name = "".join(quoted)
        fixed = any(name in form for form in _FORMS) or name in _TYPES
        if not fixed and not set(name.split(".")) <= names:
            return ""
    said = f" ({text.strip()})"
    if 0 < len(line) <= MOST_LINE and line in {row.strip() for row in own.splitlines()}:
        said += f" in your line `{line}`"
    means = meaning((kind,), text)
    return f"{said}. {means}".removesuffix(". ") if means else said
