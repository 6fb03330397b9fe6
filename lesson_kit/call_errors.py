"""What exceptions about names, calls and Python's own values mean, for any exercise."""

from __future__ import annotations

__all__ = ["RULES"]

_PAIR = (
    "Something here is a tuple, and is used like something else, such as an array or a number. A "
    "shape is a tuple, and so is what a function gives that returns several results."
)
_TWO_RESULTS = (
    r"Given an axis, torch's `\1` returns two results, the values and the places where they stand: "
    "a pair, which is no array itself."
)
_SEVERAL_RESULTS = (
    r"What is used here is all that a function of torch (`\1`) returns: several results, which "
    "together are no array."
)
_NOTHING = (
    "Something here is None where a value is needed: for one, an argument that was left out, a "
    "part that was not made, or what a function gives that returns nothing."
)
_KEYWORDS = (
    r"No argument is called `\1` here: NumPy says `axis` and `keepdims`, torch `dim` and `keepdim`."
)

#: Kinds of exception, pattern of its text, and what it means; \1 and so on from the text.
RULES: list[tuple[str, str, str]] = [
    (
        "TypeError AttributeError",
        r"torch\.return_types\.(max|min|median|nanmedian|mode|sort|topk|kthvalue|cummax|cummin)\b",
        _TWO_RESULTS,
    ),
    ("TypeError AttributeError", r"torch\.return_types\.(\w+)", _SEVERAL_RESULTS),
    ("TypeError AttributeError", r"^tuple indices must be|'tuple' object has no attribute", _PAIR),
    ("TypeError", r"unsupported operand.*'tuple'|must be Tensor, not tuple", _PAIR),
    (
        "TypeError",
        r"cannot unpack non-iterable NoneType",
        "None stands here where several things are to be taken apart: for one, what a function "
        "gives that returns nothing.",
    ),
    (
        "ValueError",
        r"not enough values to unpack|too many values to unpack",
        "There are not as many names on the left as there are things on the right: for one, the "
        "axes of a shape, or the results of a function. How many can there be?",
    ),
    ("TypeError AttributeError", r"NoneType\b", _NOTHING),
    (
        "NameError UnboundLocalError",
        r"local variable '(\w+)'.*|name '(\w+)' is not defined",
        "The name `\\1` has no value here. Is it misspelt, or given one in a part that "
        "has not run?",
    ),
    (
        "AttributeError",
        r"cannot assign (?:module|parameter)s? before|"
        r"has no attribute '_(?:parameters|modules|buffers|backward_hooks|backward_pre_hooks)'",
        "The class does not begin as a module of torch, or a layer of Keras, has to: its parent's "
        "`__init__` has to run before anything is kept in it.",
    ),
    (
        "AttributeError",
        r"module '([\w.]+)' has no attribute '(\w+)'",
        "`\\1` has nothing called `\\2`. Is it misspelt, or from another library?",
    ),
    (
        "AttributeError",
        r"'numpy\.ndarray' object has no attribute '(\w+)'",
        "A NumPy array has no `\\1`. Is it misspelt, or what something else has, such as a torch "
        "tensor or a list?",
    ),
    (
        "AttributeError",
        r"'Tensor' object has no attribute '(\w+)'",
        "A torch tensor has no `\\1`. Is it misspelt, or what something else has, such as a NumPy "
        "array or a list?",
    ),
    (
        "AttributeError",
        r"'(list|int|float|bool|str|dict)' object has no attribute '(\w+)'",
        "Something here is of the kind `\\1`, which has no `\\2`. Should it be something else, "
        "such as an array, a tensor or a module, or is `\\2` misspelt?",
    ),
    (
        "AttributeError",
        r"'([\w.]+)' object has no attribute '(\w+)'",
        "A `\\1` has no `\\2`. Is it misspelt, not yet given a value, or should something else "
        "stand here?",
    ),
    (
        "TypeError",
        r"(?<![\w<>])([\w<>]+)\(\) missing \d+ required [^\n]*arguments?: ([^\n]*)",
        "`\\1` is called without \\2.",
    ),
    ("TypeError", r"unexpected keyword argument '(dim|keepdim|axis|keepdims)'", _KEYWORDS),
    (
        "TypeError",
        r"(?<![\w<>])([\w<>]+)\(\) got an unexpected keyword argument '(\w+)'",
        "`\\1` takes no argument called `\\2`. What are its arguments called?",
    ),
    (
        "TypeError",
        r"(?<![\w<>])([\w<>]+)\(\) takes (?:(?:from |at most )?\d+[^\n]* positional arguments? "
        r"(?:but \d+|\(\d+ given)|no arguments)",
        "`\\1` is called with another number of arguments by position than it takes (a method of "
        "an object gets that as the first), or with ones of another kind.",
    ),
    (
        "TypeError",
        r"^(\w+)\(\) received an invalid combination of arguments",
        "`\\1` does not take these arguments together: their number, kinds, order or names are "
        "not those that it asks for.",
    ),
    (
        "TypeError",
        r"^'(?!float\b)(\w+)' object cannot be interpreted as an integer",
        "A whole number is needed here, such as a length or a place, and something of the kind "
        "`\\1` is given.",
    ),
    (
        "TypeError",
        r"^list indices must be integers or slices, not str",
        "A list is indexed with a text. Its entries are numbered from 0: what is the number of "
        "this one?",
    ),
    (
        "TypeError",
        r"^list indices must be integers",
        "A list is indexed with something else than one whole number or a slice. An array can be "
        "indexed in more ways.",
    ),
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
        "The module has no `forward`. Is it misspelt, does it stand outside the class or inside "
        "another function, or is another module meant?",
    ),
    (
        "TypeError",
        r"'([\w.]+)' object is not callable",
        "Something of the kind `\\1` is called here like a function. Does a variable have the name "
        "of a function, is an operator missing before the bracket, or should the brackets be "
        "square, or not there?",
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
        "A function of `math` is not defined for this number: a root is not for a negative one, "
        "a logarithm not for a negative one or 0.",
    ),
    (
        "KeyError",
        r"^(?!.*(?:already exists|is empty|empty set|can\\?'t contain))",
        "There is no such entry: the key is not among those that are kept there.",
    ),
    (
        "RecursionError",
        r"",
        "Calls stand inside calls, deeper than Python goes. A function that calls itself, directly "
        "or through others, needs a case in which it does not.",
    ),
    (
        "ZeroDivisionError",
        r"",
        "Something is divided by zero here (as a negative power of zero is, too).",
    ),
]
