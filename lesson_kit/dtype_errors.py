"""What exceptions about kinds of numbers, truth values and gradients mean, for any exercise."""

from __future__ import annotations

__all__ = ["RULES"]

_DTYPES = (
    "Tensors have different kinds of numbers here, or different precision (dtype), and torch does "
    "not mix them in this function."
)
_BOOL_FOR_NUMBERS = (
    "Truth values (bool) and numbers meet here, and torch does not mix them in this function. Is a "
    "mask to be turned into numbers, or did it land in the place of another argument?"
)
_NOT_WITH_BOOL = (
    "torch does not do this with truth values (bool): it asks for numbers here, in some functions "
    "for floating point ones."
)
_NUMBERS_FOR_BOOL = (
    "A mask of truth values (bool) is asked for here, and what it gets is of another kind."
)
_INVERT = (
    "The opposite of a mask of truth values (bool) is asked for here, and what stands there is of "
    "another kind."
)
_MASK_OR_NUMBERS = (
    "A mask of truth values (bool) is asked for here, or one of the same kind of numbers (dtype) "
    "as the queries; what it gets is of another kind."
)
_WHOLE_WITH_DECIMALS = (
    "Whole numbers meet numbers of another kind here (floating point ones, for one, or another "
    "dtype of whole numbers), and torch does not mix them in this function."
)
_FLOATING_ONLY = (
    "torch asks for floating point numbers here, and gets whole numbers or truth values."
)
_WHOLE_ONLY = (
    "Whole numbers are asked for here (an index, a token, a class; int64 is the dtype that "
    "fits), and what it gets is of another kind."
)
_BOOL_ARITHMETIC = (
    "Truth values (bool) are used with `-` like numbers, which is refused. Where the opposite of a "
    "mask is meant: it is not a difference."
)
_ONE_NUMBER = (
    "A whole array stands here where one number is asked for. What Python and `math` do for one "
    "number, NumPy and torch do for arrays with functions of their own."
)
_GRAPH = (
    "This tensor is part of a gradient's computation and cannot be turned into a NumPy array "
    "as it is. Stay in torch, or take it out of the computation first."
)
_LEAF = (
    "A tensor that wants a gradient, a parameter or an input, is changed in place here while torch "
    "records what is computed. Make a new tensor; a parameter is written into without recording."
)

#: Kinds of exception, pattern of its text, and what it means; \1 and so on from the text.
RULES: list[tuple[str, str, str]] = [
    (
        "ValueError RuntimeError",
        r"truth value of an (?:array|empty)|Boolean value of Tensor with (?:more|no)",
        "Python needs one True or False here and gets a whole array (in `if`, `and`, `or`, `not`, "
        "`in`, a comparison with None by `==`, or the like). Decide for the array as a whole or "
        "entry by entry; whether it is None is asked with `is`.",
    ),
    ("RuntimeError", r"leaf Variable that requires grad|view of a leaf", _LEAF),
    ("RuntimeError", r"Can't call numpy\(\) on Tensor that requires grad", _GRAPH),
    (
        "RuntimeError",
        r"does not require grad and does not have a grad_fn",
        "As far as torch knows, the result does not depend on anything that wants a gradient: no "
        "parameter goes into it, gradients were switched off, or on the way it was taken out of "
        "the computation.",
    ),
    (
        "RuntimeError",
        r"implicitly created only for scalar",
        "A gradient is that of one number, and what it is asked of here is a whole array.",
    ),
    (
        "RuntimeError",
        r"backward through the graph a second time",
        "The gradient of one computation, or of a part of it, is asked for again. What was "
        "computed once serves one backward pass; the next needs a computation of its own.",
    ),
    (
        "RuntimeError",
        r"modified by an inplace operation",
        "A tensor that the gradient needs was written into after it was used. Make a new one.",
    ),
    (
        "TypeError UFuncTypeError _UFuncOutputCastingError UFuncOutputCastingError",
        r"Cannot cast ufunc '(\w+)' output",
        "A result is written into an array whose kind of numbers (dtype) cannot hold it: decimals "
        "into whole numbers, for one, or numbers into truth values. Make a new array.",
    ),
    (
        "RuntimeError",
        r"result type \w+ can't be cast to the desired output type",
        "A result is written into a tensor whose kind of numbers (dtype) cannot hold it: decimals "
        "into whole numbers, for one. Make a new tensor, or give numbers of the right kind.",
    ),
    (
        "ValueError",
        r"assignment destination is read-only|output array is read-only",
        "An array is written into that may only be read: for one, one that was handed in, or a "
        "broadcast one.",
    ),
    (
        "TypeError",
        r"must be tuple of Tensors|cannot be joined|only integer scalar arrays can be converted",
        "An array stands here where a list of arrays, or one whole number, is asked for.",
    ),
    (
        "TypeError",
        r"expected np\.ndarray",
        "A NumPy array is asked for here, and what it gets is none.",
    ),
    ("TypeError", r"operator\.invert|'invert' not supported", _INVERT),
    (
        "TypeError",
        r"can't convert .* to numpy|ufunc '\w+' not supported for the input types",
        "A function of NumPy gets something that it cannot use: for one, numbers of another kind, "
        "or no numbers.",
    ),
    (
        "TypeError",
        r"Cannot interpret 'torch\.",
        "A kind of numbers (dtype) of torch is given to NumPy, which has its own.",
    ),
    (
        "TypeError",
        r"Cannot interpret '\d",
        "A number stands where the kind of numbers (dtype) is asked for. If it is a length: a "
        "shape is one tuple.",
    ),
    (
        "ValueError TypeError RuntimeError",
        r"only one element tensors|only 0-dimensional arrays|only length-1 arrays|"
        r"convert an array of size 1|elements? cannot be converted to Scalar",
        _ONE_NUMBER,
    ),
    ("RuntimeError TypeError", r"the `-` operator", _BOOL_ARITHMETIC),
    (
        "RuntimeError",
        r"only supports? boolean masks|condition to be a boolean",
        _NUMBERS_FOR_BOOL,
    ),
    ("RuntimeError", r"attn_mask dtype", _MASK_OR_NUMBERS),
    ("RuntimeError", r"not implemented for 'Bool'", _NOT_WITH_BOOL),
    (
        "RuntimeError",
        r"not implemented for '(?:Long|Int|Short|Byte|Char)'|could not infer output dtype|"
        r"only supports? floating|Expected a floating|Only Tensors of floating",
        _FLOATING_ONLY,
    ),
    (
        "RuntimeError IndexError",
        r"scalar types: Long|dtype to be Long|dtype int32/int64|tensor of type LongTensor|"
        r"tensors used as indices must be",
        _WHOLE_ONLY,
    ),
    (
        "RuntimeError",
        r"(?:same dtype|expected scalar type|expected both).*\b[Bb]ool",
        _BOOL_FOR_NUMBERS,
    ),
    (
        "RuntimeError",
        r"(?:same dtype|expected scalar type|expected both).*\b(?:Long|Int|long|int)\b",
        _WHOLE_WITH_DECIMALS,
    ),
    ("RuntimeError", r"same dtype|expected scalar type|expected both|^mixed dtype", _DTYPES),
    (
        "ValueError TypeError",
        r"not inexact|finfo\(\) requires",
        "The limits of floating point numbers (finfo) are asked of another kind of numbers (dtype) "
        "here: whole ones, or True and False.",
    ),
    (
        "OverflowError",
        r"Python integer -?\d+ out of bounds for (u?int\d+)",
        "A whole number does not fit into the kind of numbers (dtype) `\\1`: it is too large for "
        "it, or too far below 0.",
    ),
    (
        "RuntimeError",
        r"probability tensor contains",
        "Among the probabilities is one that is negative, infinite or NaN. Are they logits, or NaN "
        "from an earlier step?",
    ),
    (
        "TypeError",
        r"'float' object cannot be interpreted as an integer|non-int of type 'float'",
        "A number with decimals stands where a whole number is asked for; `/` always gives one.",
    ),
]
