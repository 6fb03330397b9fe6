"""What exceptions about shapes, axes and indices mean, in words that hold for any exercise."""

from __future__ import annotations

__all__ = ["RULES"]

_MATMUL = (
    "The axes of two factors do not fit. A matrix product multiplies the last axis of the left "
    "factor with the second last axis of the right one (or with its only one): the two must have "
    "the same length, and leading axes must fit. Are axes to be exchanged, or has one of the "
    "factors another shape than is meant?"
)
_NO_AXIS = (
    "A factor of this matrix product is one number, without any axis; a product of matrices takes "
    "vectors, matrices, or batches of them. Is an axis lost before, for one by an index, a sum, or "
    "a loop that takes an array apart?"
)
_BROADCAST = (
    "Two shapes do not fit each other. They are compared axis by axis from the right (in a matrix "
    "product without the last two axes); two lengths fit when they are equal or one of them is 1. "
    "Check first: is an axis missing, exchanged, or lost by a sum, a mean or a maximum that does "
    "not keep it?"
)
_INTO = (
    "What is written, or stretched, does not fit the shape that it has to take: compared from the "
    "right, each of its lengths has to be the same there or be 1, and it may not have more axes."
)
_AXIS = (
    "There is no such axis: the array has fewer axes than are counted on here. Counted from the "
    "front, an axis is another one as soon as there are more or fewer batch axes."
)
_NO_SUCH_PLACE = (
    "A tuple is shorter than this index asks for: a shape, for one, which has one entry for each "
    "axis, or the results of a function."
)
_OUTSIDE = (
    "An index lies outside its axis: they run from 0 to the length of the axis minus 1; where "
    "negative ones count from the end, from -1 back to minus the length."
)
_EINSUM = (
    "The letters of einsum do not go together with its arrays, or with each other: one group of "
    "letters for each array, one letter for each axis (`...` stands for several), one length for "
    "each letter, and after the arrow letters that stand before it, each once."
)
_EINSUM_LENGTHS = (
    "Lengths that have to be the same here, or 1, are not: with einsum those of one letter in two "
    "arrays, or of the axes of `...`."
)
_AXES_FIXED = (
    "This function takes arrays with a fixed number of axes, and gets one with more or fewer. Are "
    "there batch axes, or does an axis lack?"
)
_AS_MANY_AXES = (
    "Two arrays have to have as many axes as each other here, and one has more than the other. Is "
    "an axis missing, or one too many?"
)
_JOINED = (
    "Arrays that are joined must have as many axes as each other, and the same lengths: on all "
    "axes where they are stacked, on all but the joined one where they are put end to end."
)
_ORDER = (
    "NumPy's `transpose` takes the new order of all axes, one place for each; torch's takes the "
    "two that are exchanged."
)
_ALL_AXES = "The new order of the axes names each axis once, and the array has more axes or fewer."

#: Kinds of exception, pattern of its text, and what it means; \1 and so on from the text.
RULES: list[tuple[str, str, str]] = [
    ("ValueError", r"^matmul: .*does not have enough dimensions \(has 0", _NO_AXIS),
    ("RuntimeError", r"^both arguments to matmul need to be at least 1D", _NO_AXIS),
    ("ValueError", r"^matmul: .*(?:mismatch|does not have enough)", _MATMUL),
    ("ValueError", r"^shapes \(.*\) and \(.*\) not aligned", _MATMUL),
    (
        "RuntimeError",
        r"shapes cannot be multiplied|^size mismatch, got input|inconsistent tensor size|"
        r"Expected size for first two dimensions of batch2",
        _MATMUL,
    ),
    ("RuntimeError", r"^einsum\(\)", _EINSUM),
    ("ValueError", r"einstein sum|einsum", _EINSUM),
    # The leading axes of a matrix product; what is asked of broadcast_to has no arrow.
    ("ValueError", r"->\([\d,]*newaxis[^\n]* and requested shape", _BROADCAST),
    (
        "ValueError",
        r"could not broadcast input|non-broadcastable output operand|more dimensions than allowed "
        r"by the axis remapping|and requested shape|broadcast to indexing result",
        _INTO,
    ),
    ("ValueError", r"remapped shapes \[original->remapped\]: [^\n]*->", _EINSUM_LENGTHS),
    ("ValueError", r"operands could not be broadcast|shape mismatch: ", _BROADCAST),
    (
        "RuntimeError",
        r"expanded size of the tensor \(\d+\) must match|output with shape .* doesn't match|"
        r"^expand\(.*number of sizes provided|broadcast to indexing result",
        _INTO,
    ),
    (
        "RuntimeError",
        r"must match the size of tensor b|not broadcastable|shape mismatch: ",
        _BROADCAST,
    ),
    (
        "RuntimeError",
        r"must be a \dD tensor|\dD tensors expected|Expected \d-D|must be a matrix|vector expected",
        _AXES_FIXED,
    ),
    (
        "RuntimeError ValueError",
        r"Sizes of tensors must match except|stack expects each tensor|"
        r"all (?:the )?input arrays? (?:dimensions )?.*must (?:have|match)",
        _JOINED,
    ),
    ("AxisError ValueError IndexError", r"axis -?\d+ is out of bounds", _AXIS),
    ("IndexError", r"Dimension out of range", _AXIS),
    ("IndexError", r"tuple index out of range", _NO_SUCH_PLACE),
    (
        "TypeError",
        r"iteration over a 0-d|len\(\) of (?:a 0-d|unsized)",
        "An array without axes, one number, stands where there should be several. Is an axis "
        "missing, or lost by an index, a sum or a `squeeze`, for one?",
    ),
    ("ValueError", r"axes don't match array", _ORDER),
    ("RuntimeError", r"desired ordering of dimensions", _ALL_AXES),
    ("ValueError", r"repeated axis", "The same axis is named more than once here."),
    (
        "IndexError",
        r"too many indices",
        "More axes are indexed here than the array has. Does it have the batch axes that the "
        "line counts on?",
    ),
    (
        "IndexError",
        r"boolean index did not match|shape of the mask",
        "An array is indexed with a mask of another shape. Indexing with a mask does not "
        "broadcast.",
    ),
    (
        "IndexError",
        r"^list (?:assignment )?index out of range",
        "A list is shorter than this index asks for.",
    ),
    (
        "IndexError",
        r"^index out of range in self",
        "A number is looked up in a table that has no such row (or entry): they run from 0 to "
        "their number minus 1.",
    ),
    (
        "IndexError",
        r"^Target -?\d+ is out of bounds",
        "A target asks for a class that there is not: they are counted from 0 to their number "
        "minus 1. Do the classes stand on the axis that the function takes them from?",
    ),
    ("IndexError RuntimeError", r"index -?\d+ is out of bounds", _OUTSIDE),
    (
        "RuntimeError",
        r"selected index k out of range",
        "More entries are asked for than there are, or fewer than none.",
    ),
    ("IndexError", r"valid indices", "An index of this kind is none for an array."),
    ("RuntimeError ValueError", r"must have the same number of dimensions", _AS_MANY_AXES),
    (
        "ValueError RuntimeError",
        r"cannot reshape array of size|is invalid for input of size",
        "The new shape does not hold as many numbers as the array has. Which lengths are read "
        "from which axis?",
    ),
    (
        "ValueError RuntimeError",
        r"equal division|must be divisible by (?:num_)?groups|split_with_sizes expects",
        "The parts do not add up to the length that is divided.",
    ),
    ("ValueError RuntimeError", r"negative dimension", "A length is negative here."),
    (
        "RuntimeError",
        r"view size is not compatible",
        "As the numbers lie in memory, no view of this shape can be made of them: after an "
        "exchange of axes, for one, they no longer lie there in the order of the axes.",
    ),
    (
        "RuntimeError",
        r"Given normalized_shape",
        "The norm is for another length of the last axis (or of several) than this array has.",
    ),
    (
        "ValueError RuntimeError",
        r"Expected input batch_size|Expected target size",
        "Targets and predictions do not fit. The function takes the second axis of the "
        "predictions for that of the classes; the targets need the lengths of the others. Which "
        "axis holds the classes?",
    ),
    (
        "ValueError",
        r"inhomogeneous shape|expected sequence of length",
        "Things of different shapes are put into one array: for one, lists of different lengths, "
        "or arrays that do not have the same shape.",
    ),
]
