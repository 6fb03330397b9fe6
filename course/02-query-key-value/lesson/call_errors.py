"""What exceptions about names, calls and Python's own values mean, for any exercise.

Lies beside every notebook as ``lesson/call_errors.py``.
"""

from __future__ import annotations

__all__ = ["RULES"]

_PAIR = (
    "Something here is a tuple, a pair of results, where one array is needed: a function that "
    "returns several results gives all of them."
)
_TWO_RESULTS = (
    r"Given an axis, torch's `\1` returns two results, the values and the places where they stand; "
    "here both are used as if they were one array."
)
_NOTHING = (
    "Something here is None where a value is needed: an argument that was left out, a part that "
    "was not made, or the result of a function without `return`?"
)
_KEYWORDS = (
    r"No argument is called `\1` here: NumPy says `axis` and `keepdims`, torch `dim` and `keepdim`."
)

#: Kinds of exception, pattern of its text, and what it means; \1 and so on from the text.
RULES: list[tuple[str, str, str]] = [
    ("TypeError AttributeError", r"torch\.return_types\.(\w+)'", _TWO_RESULTS),
    ("TypeError", r"must be Tensor, not torch\.return_types\.(\w+)", _TWO_RESULTS),
    ("TypeError AttributeError", r"^tuple indices must be|'tuple' object has no attribute", _PAIR),
    ("TypeError", r"unsupported operand.*'tuple'|must be Tensor, not tuple", _PAIR),
    (
        "TypeError",
        r"cannot unpack non-iterable NoneType",
        "None stands here where two things or more are expected: what a function without `return` "
        "gives, or a name that was given no other value.",
    ),
    (
        "ValueError",
        r"not enough values to unpack|too many values to unpack",
        "There are not as many names on the left as there are things on the right: the axes of "
        "a shape, or the results of a function. How many axes may the array have?",
    ),
    ("TypeError AttributeError", r"NoneType\b", _NOTHING),
    (
        "NameError UnboundLocalError",
        r"local variable '(\w+)'.*|name '(\w+)' is not defined",
        "The name `\\1` has no value here. Is it misspelt, or defined in a part that did not run?",
    ),
    (
        "AttributeError",
        r"cannot assign (?:module|parameter)s? before|"
        r"has no attribute '_(?:parameters|modules|buffers|backward_hooks|backward_pre_hooks)'",
        "The class does not begin as a torch module has to: its parent's `__init__` has to run "
        "before anything is kept in it.",
    ),
    (
        "AttributeError",
        r"module '([\w.]+)' has no attribute '(\w+)'",
        "`\\1` has nothing called `\\2`. Is it misspelt, or from another library?",
    ),
    (
        "AttributeError",
        r"'numpy\.ndarray' object has no attribute '(\w+)'",
        "A NumPy array has no `\\1`. Is it misspelt, or what a torch tensor has?",
    ),
    (
        "AttributeError",
        r"'Tensor' object has no attribute '(\w+)'",
        "A torch tensor has no `\\1`. Is it misspelt, or what a NumPy array has?",
    ),
    (
        "AttributeError",
        r"'(list|int|float|bool|str|dict)' object has no attribute '(\w+)'",
        "Something here is of the kind `\\1`, which has no `\\2`. Should it be an array, a "
        "tensor or a module?",
    ),
    (
        "AttributeError",
        r"'([\w.]+)' object has no attribute '(\w+)'",
        "A `\\1` has no `\\2`. Is it misspelt, or never given a value?",
    ),
    (
        "TypeError",
        r"([\w<>]+)\(\) missing \d+ required .*arguments?: (.*)",
        "`\\1` is called without \\2.",
    ),
    ("TypeError", r"unexpected keyword argument '(dim|keepdim|axis|keepdims)'", _KEYWORDS),
    (
        "TypeError",
        r"([\w<>]+)\(\) got an unexpected keyword argument '(\w+)'",
        "`\\1` takes no argument called `\\2`. Which library is it from, and what is it called "
        "there?",
    ),
    (
        "TypeError",
        r"([\w<>]+)\(\) takes (?:from |at most )?\d+.* positional arguments? "
        r"(?:but \d+|\(\d+ given)|([\w<>]+)\(\) takes no arguments",
        "`\\1` is called with more arguments than it takes.",
    ),
    (
        "TypeError",
        r"^(\w+)\(\) received an invalid combination of arguments",
        "`\\1` does not take arguments of these kinds together, or not in this order.",
    ),
    ("TypeError", r"^list indices must be integers", "A list is indexed as if it were an array."),
    (
        "TypeError",
        r"must be Tensor, not|got \(?numpy\.ndarray|but got numpy\.ndarray",
        "A function of torch gets something that is no tensor.",
    ),
    (
        "TypeError",
        r"argument '(\w+)'.* must be ([\w. ]+), not ([\w.]+)",
        "The argument `\\1` is to be of the kind `\\2` here, and is of the kind `\\3`.",
    ),
    (
        "NotImplementedError",
        r'missing the required "forward"',
        "The module has no `forward`. Is it misspelt, or does it stand outside the class?",
    ),
    (
        "TypeError",
        r"'([\w.]+)' object is not callable",
        "Something of the kind `\\1` is called here like a function. Does a name hide a function, "
        "or is an operator missing?",
    ),
    (
        "TypeError",
        r"'([\w.]+)' object is not subscriptable",
        "Something of the kind `\\1` is indexed here.",
    ),
    (
        "TypeError",
        r"'([\w.]+)' object is not iterable|object of type '([\w.]+)' has no len",
        "Something of the kind `\\1` stands here where several things are asked for.",
    ),
    (
        "TypeError",
        r"unsupported operand type\(s\) for (.{1,4}): '([\w.]+)' and '([\w.]+)'",
        "`\\1` is used between a `\\2` and a `\\3`.",
    ),
    (
        "TypeError",
        r"can only concatenate (\w+) \(not \"([\w.]+)\"\)",
        "`+` is used between a `\\1` and a `\\2`.",
    ),
    (
        "ValueError",
        r"math domain error|expected a (?:positive|nonnegative) input",
        "There is no such root or logarithm: the number is negative, or 0.",
    ),
    ("KeyError", r"", "There is no entry with this name."),
    ("RecursionError", r"", "The function calls itself without an end."),
    ("ZeroDivisionError", r"", "Something is divided by zero here."),
]
