# %% [markdown]
# ## What you will be able to do
#
# - **Cut** pictures into patches, so that attention can read them.
# - **Build** a vision transformer of your own blocks, and **train** it on handwritten digits.
# - **Prove** what it does not know about pictures: that patches have neighbours.
# - **Compute** attention rollout, and **test** three ways of saying what a model looked at.
# - **Explain** what models that read text and pictures add.

# %% tags=["setup"]
import math

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from lesson_kit.checks import (
    assert_close,
    assert_equal,
    assert_raises,
    check,
    check_answer,
    check_rng,
    checks_passed,
    probe,
)
from lesson_kit.earlier import (
    LayerNorm,
    LearnedPositionalEmbedding,
    MultiHeadAttention,
    TransformerBlock,
)
from lesson_kit.figures import draw_flow, show, text_table
from lesson_kit.guesses import reply
from lesson_kit.progress import progress

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `lesson_kit.earlier` brings the parts of lessons 5, 7 and 8: your own where they passed their checks,
# else the course's. The setup cell says which.
#
# ## 1. A picture is a text of patches
#
# Three questions first, from earlier lessons. Answer each on paper before you unfold it.
#
# <details><summary>Lesson 7: a layer of self-attention gets its words in another order, and no
# positions. What happens to its results?</summary>
#
# They come in the new order, and are otherwise the same. Attention reads a set. Section 3 shows the
# same for pictures.
#
# </details>
#
# <details><summary>Lesson 8: what does a block return, and which of its parts carries something from
# one word to another?</summary>
#
# `(output, weights)`, with one map for each head. Only the attention.
#
# </details>
#
# <details><summary>Lesson 12: a head's map looks convincing. Name a check that should come before you
# believe it.</summary>
#
# Count over many inputs; look at the other rows; compare with a control; hide something and measure.
# Section 4 does the last one, and finds that even this has a catch.
#
# </details>
#
# Attention reads a row of vectors. A text is one. A picture is a table of numbers. Could each pixel
# be a word? Lesson 4 counted: the cost grows with $n^2$, and a photo of 224 by 224 pixels would be a
# text of 50,176 words, with 2.5 thousand million scores in each head. So Dosovitskiy and others
# (2021) cut the picture into square **patches**. The pixels of a patch, side by side, are its vector,
# and "an image is worth 16 x 16 words": the photo becomes a text of 196 words.
#
# By hand, a picture of 4 by 4 pixels in patches of size 2. Patches are counted row by row, and so are
# the pixels inside a patch:
#
# | pixels of the picture | patch 0 | patch 1 | patch 2 | patch 3 |
# |---|---|---|---|---|
# | `0 1 2 3` | `0 1` | `2 3` | | |
# | `4 5 6 7` | `4 5` | `6 7` | | |
# | `8 9 a b` | | | `8 9` | `a b` |
# | `c d e f` | | | `c d` | `e f` |
# | as a row of numbers | `0 1 4 5` | `2 3 6 7` | `8 9 c d` | `a b e f` |
#
# Note that patch 0 is **not** `0 1 2 3`: its four numbers do not lie side by side in memory.

# %% [markdown]
# ### Short answer 1: `answer_patches`
#
# A picture of 8 by 8 pixels, patches of size 2. In which patch, and at which place in it, is the pixel
# of row 5 and column 2? (All counted from 0.)
#
# - a) patch 6, place 1
# - b) patch 10, place 2
# - c) patch 9, place 2
# - d) patch 9, place 1

# %% answer="answer_patches"
### BEGIN SOLUTION
answer_patches = "c"
### END SOLUTION

# %% check="answer_patches" points=1
check_answer("answer_patches", answer_patches)

# %% [markdown]
# ### Exercise 1: `patches`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●●○ &nbsp; You should spend up to 15-20 minutes on it.
#
# - `patches(images, size)` cuts `images (..., H, W)` into squares of `size` by `size` pixels and
#   returns `(..., num_patches, size * size)`. Pictures need not be square.
# - The patches stand **row by row**: first the top row of patches, from left to right. So do the
#   pixels inside each patch.
# - Any number of leading axes: each picture as if it were alone.
# - A NumPy array gives a NumPy array, a torch tensor a torch tensor, and the type of the numbers is
#   kept. The result may share memory with `images`. Checked when graded: all kinds of numbers;
#   gradients flow through a tensor's patches; `images` is not changed.
# - A height or a width that is no multiple of `size` is a `ValueError`, also for a torch tensor.


# %% answer="patches"
def patches(images, size):
    """Cut pictures into square patches, row by row.

    Args:
        images: (..., H, W), NumPy array or torch tensor.
        size: side of a patch in pixels.

    Returns:
        (..., num_patches, size * size), of the same kind and dtype.

    Raises:
        ValueError: H or W is no multiple of size.
    """
    ### BEGIN SOLUTION
    *lead, height, width = images.shape
    if height % size or width % size:
        raise ValueError(f"images has shape {tuple(images.shape)}: no whole patches of size {size}")
    rows, columns = height // size, width // size
    grid = images.reshape(*lead, rows, size, columns, size)
    grid = grid.swapaxes(-3, -2)  # (..., rows, columns, size, size): the pixels of a patch together
    return grid.reshape(*lead, rows * columns, size * size)
    ### END SOLUTION


# %% check="patches" points=4
def of_one(image, size):
    """The patches of one picture: alone, or in a batch of one where a picture alone is not taken."""
    try:
        return patches(image, size)
    except NotImplementedError:
        raise
    except Exception:
        return patches(image[None], size)[0]


hexadecimal = np.arange(16).reshape(4, 4)
with check("four by four, by hand", points=1.5):
    assert_equal(
        np.asarray(of_one(hexadecimal.copy(), 2)) + 0.0,
        np.array([[0.0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]),
        "The table above: four patches of four pixels, (4, 4), row by row, outside and inside. "
        "The four pixels of a patch do not lie side by side in memory. Check first: are they "
        "brought together before the last reshape?",
        name="the patches",
    )
rng = check_rng()
wide = rng.integers(0, 100, size=(4, 6))
with check("a torch picture that is wider than high", points=1):
    expected = [wide[r : r + 2, c : c + 2].flatten() for r in (0, 2) for c in (0, 2, 4)]
    message = (
        "4 by 6 pixels, whole numbers, a torch tensor; patches of size 2: six patches, row by "
        "row, of four pixels each, (6, 4), of the same kind and dtype."
    )
    assert_equal(of_one(torch.tensor(wide), 2), torch.tensor(np.array(expected)), message,
                 name="the patches")  # fmt: skip
with check("torch, leading axes: each picture as alone; first three pixels", points=0.75):
    images = torch.tensor(rng.normal(size=(2, 3, 6, 12)))
    message = (
        "Pictures of shape (2, 3, 6, 12), size 3: (2, 3, 8, 9), and each picture comes out as in "
        "your own result for that picture alone."
    )
    found = patches(images.clone(), 3)
    assert_equal(list(np.shape(found)), [2, 3, 8, 9], message, name="the shape")
    kind = "Pictures in a torch tensor give their patches in one torch tensor."
    assert_equal(type(found).__name__, "Tensor", kind, name="the kind of the result")
    alone = torch.stack([torch.stack([patches(one.clone(), 3) for one in some]) for some in images])
    against = "for each picture alone"
    assert_equal(found, alone, message, name="the patches", against=against)
    message = (
        "Pictures of shape (2, 3, 6, 12): the first patch begins with the top row's first three "
        "pixels."
    )
    assert_close(found[0, 0, 0, :3], images[0, 0, 0, :3], message, name="the first three pixels")
    message = (
        "Pictures of float64: the first patch begins with the top row's first three pixels in "
        "float64, to the last digit. Check first: is something rounded to float32?"
    )
    assert_equal(found[0, 0, 0, :3], images[0, 0, 0, :3], message, name="the first three pixels")
with check("NumPy's uint8 stays uint8", points=0.25, side=True):
    message = "A NumPy picture of uint8, whole numbers of 8 bits: its patches are uint8 too."
    found = of_one(wide.astype(np.uint8), 2)
    assert_equal(getattr(found, "dtype", None), np.dtype(np.uint8), message, name="dtype")
with check("no whole number of patches", points=0.5, side=True):
    message = (
        "4 by 6 pixels, a torch tensor, size 3: the height gives no whole patches, so a "
        "ValueError."
    )
    with assert_raises(ValueError, message):
        patches(torch.tensor(wide), 3)
    message = (
        "4 by 6 pixels, a torch tensor, size 4: the width gives no whole patches, so a ValueError."
    )
    with assert_raises(ValueError, message):
        patches(torch.tensor(wide), 4)
checks_passed("patches")


# %% check="patches_sizes" points=3
# Hidden checks of patches: other sizes and pictures, compared with torch's own function.
### BEGIN HIDDEN TESTS
rng = check_rng()


def of_one(image, size):
    """The patches of one picture: alone, or in a batch of one where a picture alone is not taken."""
    try:
        return patches(image, size)
    except NotImplementedError:
        raise
    except Exception:
        return patches(image[None], size)[0]


def by_torch(images, size):
    """torch's unfold puts the patches into columns."""
    return F.unfold(images[:, None], size, stride=size).mT


def shape_told(found, expected):
    """What is said of a result's shape."""
    asked = tuple(expected.shape)
    came = tuple(getattr(found, "shape", asked))
    return "" if came == asked else f" The shape should be {asked}, and {came} came."


with check("three square torch pictures", points=1):
    for side, size in ((8, 2), (12, 3), (8, 4)):
        images = torch.tensor(rng.normal(size=(3, side, side)))
        message = (
            f"Three torch pictures of {side} by {side} pixels, size {size}: the patches of each "
            "row by row, and the pixels of each patch row by row, compared with torch's unfold."
        )
        expected = by_torch(images, size)
        found = patches(images, size)
        assert_close(found, expected, message + shape_told(found, expected))
with check("other pictures; uint8, int64, float32, float64", points=1):
    for height, width, size in ((4, 10, 2), (9, 3, 3), (15, 10, 5)):
        images = torch.tensor(rng.normal(size=(2, height, width)))
        message = (
            f"Two torch pictures {height} pixels high and {width} wide, size {size}: the patches "
            "of each row by row, and the pixels of each patch row by row, compared with torch's "
            "unfold."
        )
        expected = by_torch(images, size)
        found = patches(images, size)
        assert_close(found, expected, message + shape_told(found, expected))
        message = message.replace("torch pictures", "NumPy pictures")
        found = patches(images.numpy(), size)
        assert_close(found, expected.numpy(), message + shape_told(found, expected))
    # Tall after wide, with as many pixels and patches; many patches; large ones.
    for height, width, size in ((10, 4, 2), (2, 600, 2), (48, 80, 16)):
        images = torch.arange(2.0 * height * width).reshape(2, height, width).double()
        message = (
            f"Two pictures {height} pixels high and {width} wide, size {size}, in {{}}: the "
            "patches of each row by row, and the pixels of each patch row by row, compared with "
            "torch's unfold."
        )
        expected = by_torch(images, size)
        found = patches(images.clone(), size)
        assert_close(found, expected, message.format("torch") + shape_told(found, expected))
        found = patches(images.numpy().copy(), size)
        assert_close(found, expected.numpy(), message.format("NumPy") + shape_told(found, expected))
    # All kinds of numbers; a single row or column, equal sizes, some just above a power of two.
    dtypes = ["uint8", "int64", "float32", "float64"]
    shapes = (((3,), 6, 6, 3), ((5,), 5, 1, 1), ((2,), 66, 33, 33), ((35,), 2, 4, 1))
    more = check_rng()
    for case, (lead, height, width, size) in enumerate(shapes):
        for number, dtype in enumerate(dtypes):
            images = more.integers(0, 2, size=(*lead, height, width))
            images = images * more.integers(1, 120, size=images.shape)
            if number % 3 == case % 3:  # a line of zeros
                images[..., 0, :] = 0
            flat = torch.tensor(images).double().reshape(-1, height, width)
            expected = by_torch(flat, size).reshape(*lead, -1, size * size).numpy().astype(dtype)
            message = (
                f"{{}}, pictures of shape {images.shape}, {dtype}, size {size}: the patches "
                "of each row by row, and the pixels of each patch row by row, exactly and in this "
                "dtype."
            )
            found = patches(images.astype(dtype), size)
            told = message.format("NumPy") + shape_told(found, expected)
            assert_equal(found, expected, told, name="the patches")
            found = patches(torch.tensor(images.astype(dtype)), size)
            told = message.format("torch") + shape_told(found, expected)
            assert_equal(found, torch.tensor(expected), told, name="the patches")
with check("patches of one pixel, and one patch", points=1):
    image = rng.normal(size=(3, 5))
    message = (
        "A NumPy picture of 3 by 5 pixels, float64, size 1: each pixel is a patch, (15, 1), row "
        "by row. Check first: is size the side of a patch, and not how many there are?"
    )
    expected = image.reshape(15, 1)
    found = of_one(image, 1)
    assert_equal(found, expected, message + shape_told(found, expected), name="the patches")
    image = rng.normal(size=(4, 4))
    message = "A NumPy picture of 4 by 4 pixels, float64, size 4: one patch, (1, 16), row by row."
    expected = image.reshape(1, 16)
    found = of_one(image, 4)
    assert_equal(found, expected, message + shape_told(found, expected), name="the patches")
checks_passed("patches")
### END HIDDEN TESTS


# %% check="patches_kinds" points=2
# Hidden checks of patches: leading axes, NumPy and torch, kinds of numbers, mirrored pictures,
# gradients.
### BEGIN HIDDEN TESTS
@probe
def gradient_of(images, direction):
    images = images.clone().requires_grad_()
    found = patches(images, 2)
    if getattr(found, "requires_grad", False):
        (found * direction).sum().backward()
    return images.grad


@probe
def mirrored(image):
    return patches(image[:, ::-1], 2)


@probe
def of_other_kinds(numbers, kind):
    """Long doubles, or bytes in another order: they do not travel. The dtype without the order."""
    try:
        found = patches(numbers.astype(kind), 2)
    except (TypeError, ValueError) as error:
        return type(error).__name__, None, None
    if not isinstance(found, np.ndarray):
        return "nothing", type(found).__name__, None
    return "nothing", found.dtype.newbyteorder("=").name, found.astype(float)


@probe
def turned(image):
    return patches(torch.tensor(image).T, 2)


@probe
def of_exchanged_axes(images):
    return patches(images.transpose(0, 1), 2)


@probe
def of_a_view(images):
    """NumPy: Fortran order, cut out, upside down, every second column, read-only."""
    view = np.asfortranarray(images)[1:, ::-1, ::2]
    view.flags.writeable = False
    return patches(view, 2)


rng = check_rng()
with check("leading axes: each picture as alone", points=0.75):
    several = [rng.normal(size=(*lead, 4, 6)) for lead in ((1,), (3,), (2, 1, 3))]
    several += [
        np.arange(24.0 * math.prod(lead)).reshape(*lead, 4, 6) for lead in ((1, 1), (4,), (6,))
    ]
    for images in several:
        lead = images.shape[:-2]
        found = patches(images, 2)
        message = (
            f"NumPy pictures of shape {images.shape}, whose pixels differ: the patches hold "
            "numbers that differ."
        )
        alone = [patches(one, 2) for one in images.reshape(-1, 4, 6)]
        single = "A NumPy picture of shape (4, 6), size 2: patches of (6, 4), finite numbers."
        for one in alone:
            came = tuple(np.shape(one))
            asked = single if came == (6, 4) else f"{single} The shape {came} came."
            assert_equal(came, (6, 4), asked, name="the shape")
            assert_equal(bool(np.isfinite(one).all()), True, single, name="'finite'")
        assert_equal(
            bool(np.std(np.asarray(found, dtype=float)) > 0.1),
            True,
            message,
            name="'finite numbers with a standard deviation above 0.1'",
        )
        message = (
            f"NumPy pictures of shape {images.shape}, size 2: {(*lead, 6, 4)}, and each picture "
            "comes out as in your own result for that picture alone."
        )
        assert_equal(tuple(np.shape(found)), (*lead, 6, 4), message, name="the shape")
        one_by_one = np.stack(alone).reshape(*lead, 6, 4)
        against = "for each picture alone"
        assert_equal(found, one_by_one, message, name="the patches", against=against)
    images = torch.arange(24).reshape(1, 1, 4, 6)
    alone = patches(images[0, 0].clone(), 2)
    message = "A torch picture of shape (4, 6), whole numbers, size 2: its patches are of (6, 4)."
    assert_equal(tuple(getattr(alone, "shape", ())), (6, 4), message, name="the shape")
    alone = np.asarray(alone)
    message = (
        "A torch tensor of shape (1, 1, 4, 6), size 2: both leading axes stay, (1, 1, 6, 4), and "
        "the picture comes out as in your own result for it alone."
    )
    found = np.asarray(patches(images, 2))
    against = "for the picture alone"
    assert_equal(found, alone[None, None], message, name="the patches", against=against)
with check("bool, int8 to longdouble: kept, each pixel once; views as copies", points=0.75):
    plain = rng.integers(0, 2, size=(4, 6))
    message = "The kind of array and the type of its numbers should stay."
    for name in ("bool", "int64", "float16", "float64", "float32", "int32", "int8"):
        image = plain.astype(name)
        found = patches(image, 2)
        dtype = getattr(found, "dtype", None)
        assert_equal(dtype, image.dtype, f"NumPy, {name}. {message}", name="dtype")
        held = f"NumPy, {name}, 4 by 6 pixels, size 2: six patches of four pixels, (6, 4)."
        came = tuple(found.shape)
        held += "" if came == (6, 4) else f" The shape {came} came."
        assert_equal(came, (6, 4), held, name="the shape")
        held = (
            f"NumPy, {name}, 4 by 6 pixels, size 2: the patches hold the picture's numbers, each "
            "pixel once."
        )
        assert_equal(
            np.sort(found, axis=None), np.sort(image, axis=None), held, name="the sorted numbers"
        )
        found = patches(torch.tensor(image), 2)
        expected = str(torch.tensor(image).dtype)
        dtype = str(getattr(found, "dtype", None))
        assert_equal(dtype, expected, f"torch, {name}. {message}", name="dtype")
    numbers = np.arange(24).reshape(4, 6)
    for image in (numbers - 2**62, 2**62 + numbers, (numbers * 10 - 128).astype(np.int8)):
        where = f"whole numbers from {image.min()} to {image.max()}, {image.dtype}, size 2"
        expected = image.ravel()
        for library, picture in (("NumPy", image.copy()), ("torch", torch.tensor(image))):
            found = np.sort(np.asarray(patches(picture, 2)), axis=None)
            message = (
                f"{library}, 4 by 6 pixels, {where}: the patches hold 24 numbers, those of the "
                "picture, each once. This is compared to four digits, and only then exactly."
            )
            near = {"rtol": 1e-4, "name": "the sorted numbers"}
            assert_close(found.astype(float), expected.astype(float), message, **near)
            message = (
                f"{library}, {where}. The patches hold the picture's numbers, each once, exactly and "
                "of the same type."
            )
            assert_equal(found, expected, message, name="the sorted numbers")
    message = (
        "The mirror image, image[:, ::-1] in NumPy, size 2: its patches should be those that your "
        "function gives for a copy of it."
    )
    expected = patches(plain[:, ::-1].copy(), 2)
    against = "for a copy of the mirror image"
    assert_equal(mirrored(plain), expected, message, name="the patches", against=against)
    message = (
        "The transposed image in torch, image.T, size 2: its patches should be those that your "
        "function gives for a contiguous copy of it."
    )
    expected = patches(torch.tensor(plain.T.copy()), 2)
    against = "for a contiguous copy of it"
    assert_equal(turned(plain), expected, message, name="the patches", against=against)
    message = (
        "torch pictures of shape (2, 3, 4, 6) with the first two axes exchanged, "
        "images.transpose(0, 1), size 2: their patches should be those that your function gives "
        "for a copy of it."
    )
    images = torch.arange(144).reshape(2, 3, 4, 6)
    expected = patches(images.transpose(0, 1).clone(memory_format=torch.contiguous_format), 2)
    against = "for a contiguous copy of them"
    assert_equal(of_exchanged_axes(images), expected, message, name="the patches", against=against)
    message = (
        "NumPy pictures of shape (3, 4, 12) in Fortran order, and of them the view "
        "[1:, ::-1, ::2], read-only, size 2: its patches should be those that your function gives "
        "for a copy of it."
    )
    images = np.arange(144).reshape(3, 4, 12)
    expected = patches(images[1:, ::-1, ::2].copy(), 2)
    against = "for a copy of the view"
    assert_equal(of_a_view(images), expected, message, name="the patches", against=against)
    numbers = np.arange(24.0).reshape(4, 6)
    against = "for the same numbers in float64"
    for kind, what in (
        ("longdouble", "long doubles (np.longdouble)"),
        (">u2", "whole numbers of 16 bits, the higher byte first ('>u2')"),
        (">f8", "float64, the highest byte first ('>f8')"),
    ):
        raised, dtype, found = of_other_kinds(numbers, kind)
        message = f"NumPy, 4 by 6 pixels, {what}, size 2: patches like those of other numbers."
        assert_equal(raised, "nothing", message, name="what is raised")
        asked = np.dtype(kind).newbyteorder("=").name
        assert_equal(dtype, asked, f"{message} The type of the numbers should stay.", name="dtype")
        expected = patches(numbers.copy(), 2)
        assert_equal(found, expected, message, name="the patches", against=against)
with check("gradients", points=0.5):
    images = torch.tensor(rng.normal(size=(3, 4, 6)))
    direction = torch.tensor(rng.normal(size=(3, 6, 4)))
    leaf = images.clone().requires_grad_()
    (F.unfold(leaf[:, None], 2, stride=2).mT * direction).sum().backward()
    message = (
        "Three torch pictures of 4 by 6 pixels, size 2: each pixel should get the gradient of its "
        "place in the patches, compared with torch's unfold. Check first: is it torch throughout?"
    )
    assert_close(gradient_of(images, direction), leaf.grad, message, name="the gradient")
checks_passed("patches")
### END HIDDEN TESTS


# %% check="patches_errors" points=1
# Hidden checks of patches: heights and widths that do not fit, images unchanged.
### SIDE CONDITION: counts once another check of patches passes.
### BEGIN HIDDEN TESTS
@probe
def images_afterwards(images):
    patches(images, 2)
    return images


rng = check_rng()
for shape, size in (((5, 4), 2), ((4, 5), 2), ((2, 6, 8), 4), ((3, 2, 8, 6), 4), ((2, 2), 4)):
    images = rng.normal(size=shape)
    for kind in (np.array, torch.tensor):
        library = "NumPy" if kind is np.array else "torch"
        message = (
            f"{library}: shape {shape} gives no whole patches of size {size}, so a ValueError."
        )
        with assert_raises(ValueError, message):
            patches(kind(images), size)
images = rng.normal(size=(3, 4, 6))
for shape in ((3, 4, 6), (4, 6)):
    before = images.reshape(-1)[: math.prod(shape)].reshape(shape)
    for library, kind in (("NumPy", np.array), ("torch", torch.tensor)):
        message = (
            f"images, {library}, of shape {shape}: after the call it should have this shape and "
            "the numbers that it had."
        )
        after = images_afterwards(kind(before))
        assert_equal(tuple(np.shape(after)), shape, message, name="its shape")
        assert_equal(after, kind(before), message, name="images")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# Cut the height into (rows of patches, `size`) and the width into (columns of patches, `size`): one
# `reshape` to `(..., rows, size, columns, size)`. Two of these axes are in the wrong order for you.
# `swapaxes(-3, -2)` exists in NumPy and in torch. Then join two and two axes. Lesson 5's
# `split_heads` was of the same kind.
#
# </details>
#
# ### The digits, cut
#
# Our pictures are handwritten digits of 8 by 8 pixels (Alpaydin and Kaynak, 1998), which come with
# scikit-learn: nothing is fetched. (If `sklearn` is missing where you run this notebook:
# `pip install scikit-learn`. The exercises and their checks do not need it.) Each pixel is a whole
# number, from 0 for paper to 16 for ink; we take them to numbers from −1 to 1.
#
# **Predict, then run.** The figure shows a digit cut by your function, and cut by `reshape` alone. How
# many of its sixteen patches are the same both ways?

# %% tags=["demonstration", "guess"]
guess_same = 4  # write a number from 0 to 16

# %% tags=["demonstration"]
from sklearn.datasets import load_digits

digits = load_digits()
pictures = torch.tensor(digits.images / 8 - 1).float()  # (1797, 8, 8), from -1 (paper) to 1 (ink)
labels = torch.tensor(digits.target)
shown = pictures[3]  # a three
by_reshape = shown.reshape(16, 4)
same = int((patches(shown, 2) == by_reshape).all(-1).sum())
print(len(pictures), "pictures, the first ten are", *labels[:10].tolist())
figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.6))
panels[0].imshow(shown, cmap="Greys", vmin=-1, vmax=1)
panels[0].set_title(f"the picture, a {labels[3].item()}")
panels[0].set_xticks(np.arange(-0.5, 8, 2), labels=[])
panels[0].set_yticks(np.arange(-0.5, 8, 2), labels=[])
panels[0].grid(color="#2166ac", linewidth=1.5)
for axes, cut, title in (
    (panels[1], patches(shown, 2), "its patches"),
    (panels[2], by_reshape, "cut by reshape alone"),
):
    apart = np.full((11, 11), -1.3)  # 16 tiles of 2 by 2, a line between them
    for number, tile in enumerate(cut):
        row, column = number // 4 * 3, number % 4 * 3
        apart[row : row + 2, column : column + 2] = tile.reshape(2, 2)
    axes.imshow(np.ma.masked_equal(apart, -1.3), cmap="Greys", vmin=-1, vmax=1)
    axes.set_facecolor("#9ecae1")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title)
figure.tight_layout()
show(
    figure,
    "Figure 1. Left: a three, and the lines along which it is cut. Middle: the sixteen patches that your "
    "function gives, each drawn as a square in its place. Right: the pieces that reshape alone gives, "
    "drawn in the same way: each is half of one row of pixels.",
    "Three panels. Left, an 8 by 8 picture of the digit 3 with a grid of four by four. Middle, the same "
    "digit in sixteen tiles, still readable as a 3. Right, sixteen tiles in which no digit can be "
    "recognised.",
)
reply("guess_same", guess_same, same, "A patch has two pixels of each of two rows, a piece has four of one row.")

# %% [markdown]
# ## 2. The model
#
# The vision transformer (ViT) of Dosovitskiy and others (2021) is an encoder of lesson 8's blocks.
# Only its two ends are new:
#
# 1. each patch, `size * size` numbers, goes through one linear layer and becomes a vector of `d_model`
#    features;
# 2. in front of the patches stands a vector that is no patch: the **class token**. It is a parameter,
#    the same for every picture. Through the blocks it can collect what it needs from the patches, and
#    the answer is read from it alone. (BERT's `[CLS]` in lesson 12 has the same place.)
#
# | what | shape, for digits of 8 by 8 and patches of 2 |
# |---|---|
# | picture | (8, 8) |
# | `patches` | (16, 4) |
# | linear layer | (16, `d_model`) |
# | class token in front | (17, `d_model`) |
# | plus learned positions | (17, `d_model`) |
# | blocks, **no mask** | (17, `d_model`) |
# | row 0, norm, linear layer | (10,): one logit for each digit |
#
# No mask: a picture has no future. Every patch may look at every other.
#
# ### Exercise 2: `VisionTransformer`
#
# Difficulty: ●●●○○ &nbsp; Importance: ●●●●● &nbsp; You should spend up to 20-30 minutes on it.
#
# - `VisionTransformer(image_size, patch_size, d_model, num_heads, d_ff, num_layers, num_classes)` is for
#   square pictures and has six parts:
#   - `projection`: `nn.Linear(patch_size**2, d_model)`;
#   - `class_token`: an `nn.Parameter` of `d_model` numbers;
#   - `position_embedding`: `LearnedPositionalEmbedding(num_patches + 1, d_model)` of lesson 7, which
#     *adds* its vectors to what it is given; the class token has position 0;
#   - `blocks`: an `nn.ModuleList` of `num_layers` blocks,
#     `TransformerBlock(d_model, num_heads, d_ff, norm_first=True)` of lesson 8, one object each;
#   - `final_norm`: `LayerNorm(d_model)` of lesson 8;
#   - `output`: `nn.Linear(d_model, num_classes)`.
# - `forward(images (..., H, W)) -> logits (..., num_classes)`, read from the class token, which stands
#   first. No softmax, no mask, no dropout.
# - Any number of leading axes (visible: one; checked when graded: none and two).
# - Checked when graded: float64 (after `.double()`); gradients reach every parameter, the class token
#   too, and the pictures (section 4 asks for them); both modes agree; the pictures are not changed;
#   a model whose parameters were changed gives what a new one with these parameters gives. Sizes that
#   do not fit are not graded.


# %% answer="VisionTransformer"
class VisionTransformer(nn.Module):
    """An encoder of pre-norm blocks over the patches of a picture, read from its class token.

    Parts projection, class_token, position_embedding, blocks, final_norm, output.
    """

    def __init__(
        self, image_size, patch_size, d_model, num_heads, d_ff, num_layers, num_classes
    ):
        ### BEGIN SOLUTION
        super().__init__()
        self.patch_size = patch_size
        num_patches = (image_size // patch_size) ** 2
        self.projection = nn.Linear(patch_size**2, d_model)
        self.class_token = nn.Parameter(torch.randn(d_model) / math.sqrt(d_model))
        self.position_embedding = LearnedPositionalEmbedding(num_patches + 1, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)
        )
        self.final_norm = LayerNorm(d_model)
        self.output = nn.Linear(d_model, num_classes)
        ### END SOLUTION

    def forward(self, images):
        """Say what is in each picture.

        Args:
            images: (..., image_size, image_size).

        Returns:
            logits (..., num_classes).
        """
        ### BEGIN SOLUTION
        x = self.projection(patches(images, self.patch_size))  # (..., num_patches, d_model)
        first = self.class_token.expand(*x.shape[:-2], 1, -1)  # (..., 1, d_model)
        x = self.position_embedding(torch.cat([first, x], dim=-2))  # (..., num_patches + 1, d_model)
        for block in self.blocks:
            x, _ = block(x, None)
        return self.output(self.final_norm(x[..., 0, :]))
        ### END SOLUTION


# %% check="VisionTransformer" points=4
# Pictures of 6 by 6 pixels, patches of size 2; the same computation with torch's own functions.
@probe
def parts_of(sizes):
    model = VisionTransformer(*sizes)
    shapes = {name: list(value.shape) for name, value in model.named_parameters()}
    places = [name for name in shapes if name.startswith("position_embedding.")]
    names = ("projection", "class_token", "position_embedding", "blocks", "final_norm", "output")
    kinds = {
        name: type(getattr(model, name)).__name__ if hasattr(model, name) else "missing"
        for name in names
    }
    positions = [shapes.pop(name) for name in places]
    token = shapes.pop("class_token", [])
    return kinds, shapes, positions, math.prod(token) if token else 0


@probe
def run(sizes, parameters, images):
    model = VisionTransformer(*sizes)
    with torch.no_grad():
        next(model.position_embedding.parameters()).copy_(parameters["position"])
        model.class_token.copy_(parameters["class"].reshape(model.class_token.shape))
        model.load_state_dict(parameters, strict=False)
        return model(images)


def draw_parameters(sizes, rng, quiet=False):
    """Random parameters; quiet: such that the blocks add nothing."""
    side, size, d, _, d_ff, layers, classes = sizes
    shapes = {"projection.weight": (d, size**2), "projection.bias": (d,), "class": (d,)}
    shapes["position"] = ((side // size) ** 2 + 1, d)
    for i in range(layers):
        for name in "qkvo":
            shapes[f"blocks.{i}.attention.W_{name}.weight"] = (d, d)
            shapes[f"blocks.{i}.attention.W_{name}.bias"] = (d,)
        for norm in ("norm1", "norm2"):
            shapes[f"blocks.{i}.{norm}.gamma"] = shapes[f"blocks.{i}.{norm}.beta"] = (d,)
        for name, (rows, columns) in (("linear1", (d_ff, d)), ("linear2", (d, d_ff))):
            shapes[f"blocks.{i}.feed_forward.{name}.weight"] = (rows, columns)
            shapes[f"blocks.{i}.feed_forward.{name}.bias"] = (rows,)
    shapes |= {"final_norm.gamma": (d,), "final_norm.beta": (d,)}
    shapes |= {"output.weight": (classes, d), "output.bias": (classes,)}
    drawn = {
        name: torch.tensor(rng.normal(size=shape) * (0.4 if len(shape) == 2 else 1.0)).float()
        for name, shape in shapes.items()
    }
    for name, values in drawn.items():
        if quiet and ("W_o" in name or "linear2" in name):
            values.zero_()
    return drawn


def by_torch(sizes, p, images):
    _, size, d, heads, _, layers, _ = sizes
    x = F.linear(F.unfold(images[:, None], size, stride=size).mT, p["projection.weight"],
                 p["projection.bias"])  # fmt: skip
    x = torch.cat([p["class"].expand(len(x), 1, d), x], 1) + p["position"]
    for i in range(layers):

        def part(name, y, i=i):
            return F.linear(y, p[f"blocks.{i}.{name}.weight"], p[f"blocks.{i}.{name}.bias"])

        def norm(name, y, i=i):
            return F.layer_norm(y, (d,), p[f"blocks.{i}.{name}.gamma"], p[f"blocks.{i}.{name}.beta"])

        y = norm("norm1", x)
        q, k, v = (
            part(f"attention.W_{name}", y).unflatten(-1, (heads, -1)).transpose(-2, -3)
            for name in "qkv"
        )
        seen = F.scaled_dot_product_attention(q, k, v)
        x = x + part("attention.W_o", seen.transpose(-2, -3).flatten(-2))
        hidden = F.relu(part("feed_forward.linear1", norm("norm2", x)))
        x = x + part("feed_forward.linear2", hidden)
    x = F.layer_norm(x[:, 0], (d,), p["final_norm.gamma"], p["final_norm.beta"])
    return F.linear(x, p["output.weight"], p["output.bias"])


sizes = (6, 2, 12, 3, 20, 2, 7)  # image, patch, d_model, num_heads, d_ff, num_layers, num_classes
rng = check_rng()
parameters = draw_parameters(sizes, rng)
images = torch.tensor(rng.normal(size=(4, 6, 6))).float()
with check("the six parts", points=1):
    kinds, shapes, positions, token = parts_of(sizes)
    expected = {
        "projection": "Linear",
        "class_token": "Parameter",
        "position_embedding": "LearnedPositionalEmbedding",
        "blocks": "ModuleList",
        "final_norm": "LayerNorm",
        "output": "Linear",
    }
    found = {name: kinds.get(name) for name in expected}
    assert_equal(
        found,
        expected,
        "The model has these six parts, each of this name and kind.",
        name="the parts",
    )
    message = (
        "VisionTransformer(6, 2, 12, 3, 20, 2, 7): besides the class token and the positions it "
        "has these parameters, of these shapes, and no others. Check first: is each block an "
        "object of its own?"
    )
    expected = {n: list(v.shape) for n, v in parameters.items() if n not in ("position", "class")}
    assert_equal(shapes, expected, message, name="the shapes of the parameters")
    message = (
        "Nine patches and the class token: ten position vectors of 12 features, in one table, "
        "(10, 12)."
    )
    assert_equal(positions, [[10, 12]], message, name="the position vectors")
    assert_equal(
        token, 12, "The class token is a parameter of d_model numbers, 12.", name="its size"
    )
with check("read from the class token, at position 0", points=1):
    quiet = draw_parameters(sizes, rng, quiet=True)
    expected = by_torch(sizes, quiet, images)
    assert_close(
        run(sizes, quiet, images.clone()),
        expected,
        "Four pictures, and blocks that add nothing: the logits, (4, 7), come from the class "
        "token plus position 0, through final_norm and output alone, without softmax. Check first: "
        "which row is read, and which position has the class token?",
    )
with check("the whole model; the pictures stay as they are", points=2):
    expected, given = by_torch(sizes, parameters, images), images.clone()
    assert_close(
        run(sizes, parameters, given),
        expected,
        "Four pictures: the logits, (4, 7), are those of the same computation with torch's "
        "functions: patches, projection, class token in front, positions; then two blocks "
        "(pre-norm, no mask), the second on the result of the first; then row 0, final_norm, "
        "output, no softmax.",
    )
    message = "After the call the four pictures should be what they were before."
    assert_equal(given, images, message, name="images", against="before the call")
checks_passed("VisionTransformer")


# %% check="VisionTransformer_shapes" points=2
# Hidden checks of VisionTransformer: leading axes, other sizes, float64.
### SIDE CONDITION: counts once another check of VisionTransformer passes.
### BEGIN HIDDEN TESTS
@probe
def run(sizes, seed, images):
    torch.manual_seed(seed)
    model = VisionTransformer(*sizes).double()
    if images.ndim == 4:  # the same pictures, a view: they do not lie one after the other
        images = images.transpose(0, 1).contiguous().transpose(0, 1)
    with torch.no_grad():
        one_by_one = images.reshape(-1, *images.shape[-2:])
        try:
            alone = [model(one[None].clone()) for one in one_by_one]
            return "nothing", model(images), alone
        except ValueError as error:  # as of an earlier lesson's answer; others the grader tells
            return f"ValueError: {str(error)[:200]}", None, None


@probe
def with_its_parameters(sizes, seed, images, dtype, learns):
    """Logits of a model with parameters of any size, and these; every second size by name."""
    torch.manual_seed(seed)
    names = ("num_heads", "d_ff", "num_layers", "num_classes")
    model = VisionTransformer(*sizes[:3], **dict(zip(names, sizes[3:], strict=True)))
    model = model.to(getattr(torch, dtype)).train(learns)
    with torch.no_grad():
        for number, one in enumerate(model.parameters()):
            one.mul_(1.5).add_((torch.arange(one.numel()) + number).sin().view_as(one) / 5)
    with torch.set_grad_enabled(learns):
        found = model(images.clone().requires_grad_(learns))
    found = found.detach() if isinstance(found, torch.Tensor) else found
    return found, {name: one.detach().clone() for name, one in model.named_parameters()}


def by_formula(sizes, p, images):
    """The same with torch's functions, each picture on its way alone in float64."""
    _, size, d, heads, _, layers, _ = sizes
    x = F.unfold(images.reshape(-1, 1, *images.shape[-2:]), size, stride=size).mT
    x = F.linear(x, p["projection.weight"], p["projection.bias"])
    x = torch.cat([p["class_token"].reshape(1, 1, d).expand(len(x), 1, d), x], 1)
    (positions,) = (one for name, one in p.items() if name.startswith("position_embedding."))
    x = x + positions
    for i in range(layers):
        own = {name.removeprefix(f"blocks.{i}."): one for name, one in p.items()}

        def part(name, y, own=own):
            return F.linear(y, own[f"{name}.weight"], own[f"{name}.bias"])

        def norm(name, y, own=own):
            return F.layer_norm(y, y.shape[-1:], own[f"{name}.gamma"], own[f"{name}.beta"])

        y = norm("norm1", x)
        q, k, v = (
            part(f"attention.W_{name}", y).unflatten(-1, (heads, -1)).transpose(-2, -3)
            for name in "qkv"
        )
        seen = F.scaled_dot_product_attention(q, k, v)
        x = x + part("attention.W_o", seen.transpose(-2, -3).flatten(-2))
        x = x + part("feed_forward.linear2", part("feed_forward.linear1", norm("norm2", x)).relu())
    x = F.layer_norm(x[:, 0], (d,), p["final_norm.gamma"], p["final_norm.beta"])
    found = F.linear(x, p["output.weight"], p["output.bias"])
    return found.reshape(*images.shape[:-2], found.shape[-1])


rng = check_rng()
cases = [
    ((), (4, 2, 12, 3, 20, 2, 5)),
    ((1,), (3, 1, 8, 8, 4, 1, 3)),
    ((3,), (6, 3, 6, 1, 9, 3, 2)),
    ((2, 3), (8, 2, 12, 4, 8, 2, 10)),
    ((2,), (5, 5, 8, 2, 6, 1, 4)),
    ((2, 1), (4, 2, 6, 2, 5, 1, 1)),
    ((5,), (4, 2, 5, 1, 3, 2, 5)),
    ((1, 1), (20, 1, 4, 2, 3, 1, 3)),
]
for lead, sizes in cases:
    images = torch.tensor(rng.normal(size=(*lead, sizes[0], sizes[0])))
    raised, found, alone = run(sizes, 7, images)
    message = (
        f"VisionTransformer{sizes} in float64, patch_size {sizes[1]}, is called with pictures of "
        f"shape {tuple(images.shape)}, and with each of them in a batch of one. No error should "
        f"come, and this one came: {raised}. Check first: are the patches of the size that was "
        "given, and has lesson 7's embedding a place for each patch and for the class token? (More "
        "positions than it has it refuses with a ValueError.)"
    )
    if len(lead) != 1:
        message += " Or is exactly one leading axis taken for granted?"
    assert_equal(raised, "nothing", message, name="what is raised")
    view = " (two axes exchanged: a view)" * (len(lead) == 2)
    message = (
        f"VisionTransformer{sizes} in float64, pictures of shape {tuple(images.shape)}{view}: the "
        f"logits have shape {(*lead, sizes[-1])}, for any number of leading axes. Here it is "
        f"{tuple(getattr(found, 'shape', ()))}."
    )
    assert_equal(tuple(getattr(found, "shape", ())), (*lead, sizes[-1]), message, name="the shape")
    message = (
        f"VisionTransformer{sizes} in float64, one picture in a batch of one: its logits have "
        f"shape {(1, sizes[-1])} and are finite."
    )
    for one in alone:
        assert_equal(tuple(getattr(one, "shape", ())), (1, sizes[-1]), message, name="the shape")
        assert_equal(bool(torch.as_tensor(one).isfinite().all()), True, message, name="'finite'")
    message = (
        f"VisionTransformer{sizes} in float64, random pictures: the logits are numbers that "
        "differ."
    )
    if sizes[-1] > 1:
        name = "'the logits are finite numbers that differ'"
        assert_equal(bool(found.std() > 1e-6), True, message, name=name)
    message = (
        f"VisionTransformer{sizes} in float64, pictures of shape {tuple(images.shape)}{view}: each "
        "picture's logits are those that your model gives for it in a batch of one, in float64."
    )
    one_by_one = torch.cat(alone).double().reshape(found.shape)
    assert_close(found, one_by_one, message, precise=True, against="in a batch of one")
    message = (
        f"VisionTransformer{sizes} in float64: pictures moved by 2e-7 should change the logits "
        "twice as much as pictures moved by 1e-7. Check first: does anything go through float32?"
    )
    step = 1e-7 * torch.tensor(rng.normal(size=images.shape))
    once, twice = (run(sizes, 7, images + times * step)[1].double() - found for times in (1, 2))
    assert_close(twice / 2e-7, once / 1e-7, message, rtol=1e-3, atol=1e-5,
                 name="the change per step", against="for half the step")  # fmt: skip
# The logits by torch's functions: these sizes and others, float32, paper and ink alone.
cases += [((6,), (6, 3, 6, 3, 5, 1, 5)), ((), (9, 3, 35, 5, 3, 2, 33)),
          ((35,), (2, 1, 3, 1, 2, 3, 2)), ((2, 1, 2), (5, 1, 4, 4, 1, 4, 4)),
          ((2,), (7, 7, 2, 1, 3, 1, 65)), cases[0]]  # fmt: skip
for number, (lead, sizes) in enumerate(cases):
    images = torch.tensor(rng.normal(size=(*lead, sizes[0], sizes[0])))
    inked = images.abs() + 0.1
    inked[..., 0, :] = 0.0
    kinds = {"random": images, "paper, every pixel -1": 0 * images - 1, "no pixel negative": inked}
    kind, given = list(kinds.items())[number % 3]
    dtype = ("float64", "float32")[number % 2]
    learns = number % 4 < 2
    pixels = given.to(getattr(torch, dtype))
    found, own = with_its_parameters(sizes, 7, pixels, dtype, learns)
    where = (
        f"VisionTransformer{sizes}, the last four sizes by name, in {dtype}, in "
        f"{'training mode, with gradients' if learns else 'evaluation mode, under no_grad'}; "
        f"pictures of shape {tuple(given.shape)}, {kind}"
    )
    message = f"{where}: the model has its six parts, with one table of positions."
    parts = sorted({name.split(".")[0] for name in own})
    wanted = ["blocks", "class_token", "final_norm", "output", "position_embedding"]
    wanted.append("projection")
    assert_equal(parts, wanted, message, name="the parts with parameters")
    tables = sum(name.startswith("position_embedding.") for name in own)
    assert_equal(tables, 1, message, name="how many tables")
    exact = {name: one.double() for name, one in own.items()}
    expected = by_formula(sizes, exact, pixels.double())
    message = (
        f"{where}: the logits are those of the same computation with torch's functions: "
        "patches, projection, class token in front, positions, the blocks one after the other, "
        "then row 0, final_norm, output."
    )
    assert_close(found, expected, message, against="by torch's functions, with its parameters")
### END HIDDEN TESTS


# %% check="VisionTransformer_positions" points=2
# Hidden checks of VisionTransformer: every patch counts, and where it stands counts.
### SIDE CONDITION: counts once another check of VisionTransformer passes.
### BEGIN HIDDEN TESTS
@probe
def moved_by(sizes, seed, image, others):
    torch.manual_seed(seed)
    model = VisionTransformer(*sizes).double()
    with torch.no_grad():  # each beside one and the same second picture
        before, second = model(torch.stack([image, image.flip(0)])), image.flip(0)
        moved = [
            float((model(torch.stack([other, second]))[0] - before[0]).abs().max())
            for other in others
        ]
        return list(before.shape), moved


rng = check_rng()
sizes = (6, 2, 8, 2, 10, 2, 4)
image = torch.tensor(rng.normal(size=(6, 6)))
corners = [(r, c) for r in (0, 2, 4) for c in (0, 2, 4)]
with check("every patch counts", points=1):
    others = []
    for r, c in corners:
        other = image.clone()
        other[r : r + 2, c : c + 2] = torch.tensor(rng.normal(size=(2, 2)))
        others.append(other)
    shape, moved = moved_by(sizes, int(rng.integers(1000)), image, others)
    assert_equal(
        shape,
        [2, 4],
        "A batch of two pictures: two rows of four logits.",
        name="the shape of their logits",
    )
    found = [change > 1e-9 for change in moved]
    message = (
        "Nine patches. Where any one of them is changed in the first of two pictures, its logits "
        "should move."
    )
    assert_equal(found, [True] * 9, message, name="'logits are numbers that move'")
with check("where a patch stands counts", points=1):
    others = []
    for (r, c), (s, d) in zip(corners, corners[1:] + corners[:1], strict=True):
        other = image.clone()
        other[r : r + 2, c : c + 2] = image[s : s + 2, d : d + 2]
        other[s : s + 2, d : d + 2] = image[r : r + 2, c : c + 2]
        others.append(other)
    shape, moved = moved_by(sizes, int(rng.integers(1000)), image, others)
    assert_equal(
        shape,
        [2, 4],
        "A batch of two pictures: two rows of four logits.",
        name="the shape of their logits",
    )
    found = [change > 1e-9 for change in moved]
    message = (
        "Two of nine patches of the first of two pictures change places: its logits should move, "
        "for each of nine such pairs. "
        "Check first: are the positions added before the blocks?"
    )
    assert_equal(found, [True] * 9, message, name="'logits are numbers that move'")
checks_passed("VisionTransformer")
### END HIDDEN TESTS


# %% check="VisionTransformer_training" points=1
# Hidden checks of VisionTransformer: gradients, pictures unchanged, both modes, parameters that are
# changed between two calls.
### SIDE CONDITION: counts once another check of VisionTransformer passes.
### BEGIN HIDDEN TESTS
@probe
def without_gradient(sizes, seed, images):
    torch.manual_seed(seed)
    model = VisionTransformer(*sizes)
    given = [images, images.clone(), images.clone()]  # one for each call
    with torch.no_grad():
        model(given[0])
    logits = model(given[1])
    F.cross_entropy(logits, torch.arange(len(images)) % sizes[-1]).backward()
    lost = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    token = dict(model.named_parameters()).get("class_token")
    lost += ["class_token"] * (token is None)
    model.eval()
    with torch.no_grad():
        evaluated = model(given[2])
    return lost, given, logits.detach(), evaluated


@probe
def gradients_of(sizes, seed, images, training):
    torch.manual_seed(seed)
    leaf = images.clone().requires_grad_()
    model = VisionTransformer(*sizes).train(training)
    logits = model(leaf)
    if logits.requires_grad:
        (logits * torch.arange(1.0, 1 + sizes[-1])).sum().backward()
    return leaf.grad, [name for name, one in model.named_parameters() if one.grad is not None]


@probe
def changed_after_a_call(sizes, seed, images):
    """A model that is called, changed and called again, and one that is only changed."""

    def change(model):
        for parameter in model.parameters():
            parameter.mul_(1.5).add_(torch.arange(parameter.numel()).cos().view_as(parameter) / 5)

    found = []
    for called in (True, False):
        torch.manual_seed(seed)
        model = VisionTransformer(*sizes).eval()
        logits = []
        with torch.no_grad():
            if called:
                model(images.clone())
            change(model)
            logits.append(model(images.clone()))
            if not called:
                torch.manual_seed(seed)
                model = VisionTransformer(*sizes).eval()
                change(model)
            logits.append(model.double()(images.double()))
        found.append(logits)
    return found


rng = check_rng()
images = torch.tensor(rng.normal(size=(5, 6, 6))).float()
lost, after, logits, evaluated = without_gradient((6, 2, 12, 3, 20, 2, 7), 3, images.clone())
assert_equal(
    list(np.shape(logits)),
    [5, 7],
    "Five pictures, seven classes: logits (..., num_classes), (5, 7).",
    name="the shape",
)
assert_equal(
    bool((logits[0] - logits[1]).abs().max() > 1e-6),
    True,
    "Two random pictures have different logits.",
    name="'their logits are finite numbers that differ'",
)
called, new = changed_after_a_call((6, 2, 12, 3, 20, 2, 7), 3, images.clone())
for what, one, other in zip(("", " and .double()"), called, new, strict=True):
    message = (
        f"A model is called, then its parameters are changed in place{what}, and it is called "
        "again: the logits are those of a new model of yours with these parameters. Check first: "
        "is anything of an earlier call kept?"
    )
    assert_close(one, other, message, name="the logits", against="for the new model")
six = (4, 2, 8, 2, 6, 6, 3)  # six blocks
deep, *_ = without_gradient(six, 3, torch.tensor(rng.normal(size=(5, 4, 4))).float())
for blocks, names in (("Two", lost), ("Six", deep)):
    without = [name for name in names if not name.endswith("W_k.bias")]
    assert_equal(
        without,
        [],
        f"{blocks} blocks, a model that was called under no_grad before: after backward every "
        "parameter, the class token too, should have a gradient that is not all zeros. (The keys' "
        "bias is exempt: softmax does not see it.) "
        f"Without one, at first: {without[0] if without else 'none'}. Check first: does every "
        "block read what the one before it gave, and is nothing kept from an earlier call?",
        name="the parameters without one",
    )
assert_equal(
    after, [images] * 3, "The pictures were changed by a call of the model.", name="the pictures"
)
assert_close(
    evaluated,
    logits,
    "After model.eval() the logits should be those that the same model gave in training mode.",
    against="in training mode",
)
slopes, reached = gradients_of((6, 2, 12, 3, 20, 2, 7), 3, images.clone(), True)
message = (
    "The pictures require gradients: after backward each of their pixels should have one that is "
    "not 0."
)
assert_equal(list(np.shape(slopes)), [5, 6, 6], message, name="the shape of their gradient")
assert_equal(bool((slopes != 0).all()), True, message, name="'no pixel has gradient 0'")
evaluated, names = gradients_of((6, 2, 12, 3, 20, 2, 7), 3, images.clone(), False)
message = (
    "After model.eval(), outside of no_grad, the pictures require gradients: backward reaches the "
    "parameters and the pictures, as in training mode, with the same gradients for the pictures."
)
against = "in training mode"
assert_equal(names, reached, message, name="the parameters that have a gradient", against=against)
assert_equal(list(np.shape(evaluated)), [5, 6, 6], message, name="the shape of their gradient")
assert_close(evaluated, slopes, message, name="the gradient of the pictures", against=against)
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# The class token has no leading axes, the patches have some. `expand` repeats it without copying:
# `self.class_token.expand(*x.shape[:-2], 1, -1)`. Then `torch.cat` along the axis of the tokens
# (-2), class token first. A block returns a pair; the next one gets its first entry.
#
# </details>
#
# ## 3. What it knows about pictures
#
# We train with 1,297 pictures and keep 500 for the test. **Predict, then run:** which share of the 500
# does the model name, after 200 steps with 64 pictures each?

# %% tags=["demonstration", "guess"]
guess_right = 0.8  # write a share between 0 and 1

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
order = np.random.default_rng(0).permutation(len(pictures))
train_set, held_out = order[:1297], order[1297:]
seeds = range(5)


def train(model, seed, label, steps=200):
    """200 steps of Adam; the rate rises to 0.01 and falls again."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    draw = np.random.default_rng(seed)
    for _ in progress(steps, f"{label}, seed {seed}"):
        batch = train_set[draw.integers(0, len(train_set), size=64)]
        optimizer.zero_grad()
        F.cross_entropy(model(pictures[batch]), labels[batch]).backward()
        optimizer.step()
        rate.step()
    return model.eval()


def new_model(seed, kind=VisionTransformer):
    torch.manual_seed(seed)
    return kind(8, 2, 32, 4, 64, 2, 10)


def right(model, images, numbers):
    """Share of pictures that are named right; numbers are those of the labels."""
    with torch.no_grad():
        return (model(images).argmax(-1) == labels[numbers]).float().mean().item()


models = [train(new_model(seed), seed, "patches and positions") for seed in seeds]
held_out_right = [right(model, pictures[held_out], held_out) for model in models]
print("held-out pictures named right, 5 seeds:", np.round(held_out_right, 3))
assert min(held_out_right) > 0.94 and np.mean(held_out_right) > 0.95
reply("guess_right", guess_right, float(np.mean(held_out_right)), within=0.02)

# %% [markdown]
# Above 0.95 on average: with blocks made for texts, and nothing in them that was made for pictures. Is
# that good? Ask what the simplest thing does: to look for the most similar training picture, pixel by
# pixel, and to say its label. It learns nothing. And ask how far the 500 are from the 1,297: all
# were written by the same thirteen people. In the file's own order, without shuffling, the two parts
# are less mixed.

# %% tags=["demonstration"]
def nearest(train_numbers, test_numbers):
    """Share named right by the nearest training picture."""
    distances = torch.cdist(pictures[test_numbers].flatten(1), pictures[train_numbers].flatten(1))
    found = labels[train_numbers][distances.argmin(-1)]
    return (found == labels[test_numbers]).float().mean().item()


everything = np.arange(len(pictures))
by_nearest = nearest(train_set, held_out)
in_file_order = nearest(everything[:1297], everything[1297:])
print(f"nearest training picture, shuffled: {by_nearest:.2f}, in the file's order: {in_file_order:.2f}")
assert by_nearest > max(0.98, np.mean(held_out_right)) and in_file_order < by_nearest - 0.02

# %% [markdown]
# A look-up in the training pictures is **better** than our transformer, by about two in a hundred. So 0.97
# proves that the model works, and not that attention is the right tool for small pictures.
# Dosovitskiy and others (2021) found the same in large: trained on a million pictures ViT was behind
# convolutional networks, and it took hundreds of millions to pass them. How one trains counts as well: DeiT
# (Touvron and others, 2021) caught up with a million pictures alone, by changing them at random in many ways
# and by learning from a convolutional network. And shuffled parts share their writers, which makes every
# number here look better than for a new writer.
#
# ### Patches without order
#
# Now take the positions away: the same model, trained in the same way, with nothing in place of
# `position_embedding`. And shuffle the patches of each held-out picture, each picture in its own way.
#
# **Predict, then run.** What does the model **with** positions get on shuffled pictures? Guessing gets 0.10.

# %% tags=["demonstration", "guess"]
guess_shuffled = 0.3  # write a share between 0 and 1


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
class BagOfPatches(VisionTransformer):
    """The same without positions."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.position_embedding = nn.Identity()


def joined(cut):
    """Sixteen patches (..., 16, 4) back to pictures (..., 8, 8)."""
    return cut.unflatten(-2, (4, 4)).unflatten(-1, (2, 2)).transpose(-3, -2).flatten(-2).flatten(-3, -2)


bags = [train(new_model(seed, BagOfPatches), seed, "no positions") for seed in seeds]
ways = torch.stack([torch.randperm(16, generator=torch.Generator().manual_seed(i)) for i in range(500)])
cut = patches(pictures[held_out], 2)  # (500, 16, 4)
assert torch.equal(joined(cut), pictures[held_out])
shuffled = joined(cut.gather(1, ways[..., None].expand_as(cut)))
table = {}
for name, group in (("with positions", models), ("without", bags)):
    table[name] = [
        [right(model, images, held_out) for model in group] for images in (pictures[held_out], shuffled)
    ]
    whole, apart = table[name]
    print(f"{name:15s} pictures {np.round(whole, 2)}   shuffled {np.round(apart, 2)}")
with torch.no_grad():
    largest = (bags[0](shuffled) - bags[0](pictures[held_out])).abs().max().item()
print("without positions, shuffling moves a logit by at most 1e-4:", largest < 1e-4)
assert max(table["with positions"][1]) < 0.25
assert min(table["without"][0]) > 0.5 and max(table["without"][0]) < 0.85 and largest < 1e-4
reply("guess_shuffled", guess_shuffled, float(np.mean(table["with positions"][1])), within=0.05)

# %% [markdown]
# Without positions a picture is a bag of patches: shuffling changes nothing but rounding, and about seven
# of ten digits can be told by **which** patches there are, wherever they stand. With positions the model
# relies on them, and shuffled pictures are like another language.
#
# But what does it know about positions? Here is a harsher trial. Scramble **all** pictures in one and
# the same way, for training and for the test.
#
# ### Short answer 2: `answer_scrambled`
#
# A friend moves the sixteen patches of every picture by one fixed permutation, the same for all
# pictures, and trains the model with positions on them. You could not read a single digit. What will it
# get on held-out pictures that are scrambled in the same way?
#
# - a) About 0.10: nobody could read these pictures.
# - b) About 0.70, as without positions.
# - c) About 0.90: neighbouring strokes are now apart, which makes it harder.
# - d) About 0.97, as before.

# %% answer="answer_scrambled"
### BEGIN SOLUTION
answer_scrambled = "d"
### END SOLUTION

# %% check="answer_scrambled" points=1
check_answer("answer_scrambled", answer_scrambled)

# %% [markdown]
# When you have answered, run the cell. It does not train: it takes each trained model, moves the rows of
# its position table by the same permutation, and gives it scrambled pictures.

# %% tags=["demonstration"]
one_way = ways[0]  # the same for all pictures
scrambled = joined(cut[:, one_way])
moves = []
for seed, model in enumerate(models):
    other = new_model(seed)
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        table_of_positions = next(other.position_embedding.parameters())
        rows = torch.cat([torch.zeros(1, dtype=torch.long), 1 + one_way])  # the class token keeps its own
        table_of_positions.copy_(table_of_positions[rows])
        moves.append((other(scrambled) - model(pictures[held_out])).abs().max().item())
print("the same logits on scrambled pictures, within 1e-4:", max(moves) < 1e-4)
print("and the old table on scrambled pictures: at most 0.3 right:",
      max(right(model, scrambled, held_out) for model in models) < 0.3)  # fmt: skip
assert max(moves) < 1e-4 and all(right(model, scrambled, held_out) < 0.3 for model in models)

# %% [markdown]
# So for every model of pictures there is an equally good model of scrambled pictures, with exactly the
# same logits; and the rows of the position table start as random numbers that know no order, so training finds
# the one as easily as the other. **Nothing in the model says that patch 5 lies beside patch 6.** It
# could learn it from pictures, and needs pictures for that. A convolution has it built in: this is
# what "less inductive bias" means when people say it of transformers.
#
# ## 4. Where does it look? Three answers
#
# The class token reads the patches through two blocks. Which patches made the model say "3"? There are
# three usual answers.
#
# **Rollout** (Abnar and Zuidema, 2020) uses the attention maps. A block adds its attention to what was
# there before, so half of each position is taken to stay and half to come from where the map says:
#
# $$\hat A_l = \text{rows of } \tfrac1H \textstyle\sum_h A_{l,h} + I \text{, each divided by its sum},
# \qquad R = \hat A_L \cdots \hat A_2 \hat A_1 .$$
#
# Row $i$ of $R$ says where output $i$ comes from. By hand, two positions and one head. Layer 1:
# position 0 looks half at each, position 1 at itself. Layer 2: both look at position 0.
#
# | matrix | row 0 | row 1 | how |
# |---|---|---|---|
# | $A_1$ | 0.5, 0.5 | 0, 1 | given |
# | $\hat A_1$ | 0.75, 0.25 | 0, 1 | plus identity, divided by 2 |
# | $A_2$ | 1, 0 | 1, 0 | given |
# | $\hat A_2$ | 1, 0 | 0.5, 0.5 | plus identity, divided by 2 |
# | $R = \hat A_2 \hat A_1$ | 0.75, 0.25 | 0.375, 0.625 | 0.5 · (0.75, 0.25) + 0.5 · (0, 1) |
#
# The order matters: output 1 asks the **last** layer first.
#
# ### Exercise 3: `attention_rollout`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 15-20 minutes on it.
#
# - `attention_rollout(maps)` gets a list of at least one attention map `(..., num_heads, n, n)`, the
#   first layer's first, and returns `(..., n, n)`.
# - In each layer: the mean over the heads, plus the identity, each row divided by its own sum.
# - The layers are multiplied so that **row `i` of the result says where output `i` comes from**.
# - NumPy arrays give a NumPy array, torch tensors a torch tensor, also where they require gradients.
#   Any number of leading axes (visible: one).
# - Checked when graded: rows that do not sum to 1 (a row of zeros: a query that may see nothing); NumPy
#   maps of whole numbers; a result at least as precise as the maps; the list and the maps are not
#   changed. No errors are graded.


# %% answer="attention_rollout"
def attention_rollout(maps):
    """How much of each output comes from each input, by the attention maps of all layers.

    Args:
        maps: list of at least one (..., num_heads, n, n), all NumPy or all torch, first layer first.

    Returns:
        (..., n, n), rows sum to 1, of the same kind.
    """
    ### BEGIN SOLUTION
    rollout = None
    for one in maps:
        layer = one.mean(-3)  # (..., n, n): the mean over the heads
        n, kind = layer.shape[-1], layer.dtype
        layer = layer + (np if isinstance(one, np.ndarray) else torch).eye(n, dtype=kind)
        layer = layer / layer.sum(-1)[..., None]
        rollout = layer if rollout is None else layer @ rollout  # a later layer stands to the left
    return rollout
    ### END SOLUTION


# %% check="attention_rollout" points=4
one_head = np.array([[[0.5, 0.5], [0.0, 1.0]]])  # (num_heads, n, n)
other = np.array([[[1.0, 0.0], [1.0, 0.0]]])
with check("one layer, by hand", points=1):
    assert_close(
        np.asarray(attention_rollout([one_head.copy()])),
        np.array([[0.75, 0.25], [0.0, 1.0]]),
        "One layer, one head: the map plus the identity is [[1.5, 0.5], [0, 2]]; each row divided "
        "by its sum.",
    )
with check("two layers, by hand", points=1):
    assert_close(
        np.asarray(attention_rollout([one_head.copy(), other.copy()])),
        np.array([[0.75, 0.25], [0.375, 0.625]]),
        "Layer 1 is [[0.75, 0.25], [0, 1]], layer 2 is [[1, 0], [0.5, 0.5]]. Output 1 takes half of "
        "what layer 1 has at position 0, and half of what it has at position 1: the later layer "
        "stands to the left of the product.",
    )
rng = check_rng()
with check("several heads", points=0.5):
    few = rng.random(size=(3, 4, 4))  # (num_heads, n, n)
    few /= few.sum(-1, keepdims=True)
    message = "Three heads, one layer: the mean over the heads, plus the identity, divided by 2."
    expected = (sum(few) / 3 + np.eye(4)) / 2
    assert_close(np.asarray(attention_rollout([few.copy()])), expected, message)
with check("a row of zeros, by hand", points=0.5):
    blind = np.array([[[0.0, 0.0], [0.5, 0.5]]])
    assert_close(
        np.asarray(attention_rollout([blind])),
        np.array([[1.0, 0.0], [0.25, 0.75]]),
        "One layer, one head; query 0 may see nothing, and its row of the map is zeros. Plus the identity it is "
        "(1, 0), whose sum is 1: each row is divided by its own sum.",
    )
with check("a batch of torch maps, three layers", points=1):
    maps = [torch.softmax(torch.tensor(rng.normal(size=(2, 3, 5, 5))), -1) for _ in range(3)]
    first, second, third = ((one.mean(1) + torch.eye(5)) / 2 for one in maps)
    expected = torch.einsum("bij,bjk,bkl->bil", third, second, first)
    message = (
        "Two texts, three heads, three layers: in each layer the mean over the heads first; then the last "
        "layer to the left, the first to the right."
    )
    assert_close(attention_rollout(maps), expected, message)
checks_passed("attention_rollout")


# %% check="attention_rollout_layers" points=3
# Hidden checks of attention_rollout: numbers of layers and heads, leading axes, which way the rows go.
### BEGIN HIDDEN TESTS
rng = check_rng()


def expected_rollout(maps):
    """Each output followed down by itself, last layer first."""
    n = maps[0].shape[-1]
    shares = np.broadcast_to(np.eye(n), (*maps[0].shape[:-3], n, n))
    for one in maps[::-1]:
        layer = one.sum(-3) / one.shape[-3] + np.eye(n)
        shares = np.einsum("...ij,...jk->...ik", shares, layer / layer.sum(-1, keepdims=True))
    return shares


with check("layers and heads of many sizes, NumPy and torch, also maps of zeros", points=1):
    for layers, heads, n in ((1, 1, 3), (2, 4, 5), (5, 2, 4)):
        maps = [rng.dirichlet(np.ones(n), size=(heads, n)) for _ in range(layers)]
        message = (
            f"{layers} layers, {heads} heads, {n} positions: in each layer the mean over the "
            "heads, plus the identity, each row divided by its sum; row i of the product says "
            "where output i comes from."
        )
        assert_close(
            np.asarray(attention_rollout([one.copy() for one in maps])), expected_rollout(maps), message
        )
    more = check_rng()
    for layers, heads, n in ((12, 9, 20), (2, 4, 4), (3, 2, 1)):
        maps = [more.dirichlet(np.ones(n) / 4, size=(heads, n)) for _ in range(layers)]
        message = (
            f"{layers} layers, {heads} heads, maps of shape {maps[0].shape}: in each layer the "
            "mean over the heads, plus the identity, each row divided by its sum; row i of the "
            "product says where output i comes from."
        )
        found = np.asarray(attention_rollout([one.copy() for one in maps]))
        assert_close(found, expected_rollout(maps), message)
    # Sizes that are equal or just above a power of two, and the first again; even and causal maps.
    shapes = (((), 3, 5, 33), ((3,), 3, 3, 3), ((), 1, 3, 65), ((2, 1), 2, 17, 5), ((35,), 2, 1, 2),
              ((), 4, 4, 4), ((), 3, 5, 33))  # fmt: skip
    for case, (lead, layers, heads, n) in enumerate(shapes):
        maps = [more.dirichlet(np.ones(n), size=(*lead, heads, n)) for _ in range(layers)]
        kinds = {"random": maps, "every row even": [0 * one + 1 / n for one in maps]}
        causal = [np.tril(one) for one in maps]
        kinds["causal"] = [one / one.sum(-1, keepdims=True) for one in causal]
        kinds["all zeros"] = [0 * one for one in maps]
        for number, (kind, given) in enumerate(kinds.items()):
            dtype = ("float64", "float32")[(case + number) % 2]
            typed = [one.astype(dtype) for one in given]
            expected = expected_rollout([one.astype(float) for one in typed])
            message = (
                f"{{}}, number of layers: {layers}, maps of shape {maps[0].shape}, {dtype}, {kind}"
                "{}: in each layer the mean over the heads, plus the identity, each row divided by "
                "its sum; row i of the product says where output i comes from."
            )
            found = np.asarray(attention_rollout([one.copy() for one in typed]))
            assert_close(found, expected, message.format("NumPy", ""))
            found = np.asarray(attention_rollout([torch.tensor(one) for one in typed]))
            assert_close(found, expected, message.format("torch", ""))
with check("leading axes, or none, NumPy and torch: each as alone", points=1):
    for lead in ((1,), (2, 3)):
        maps = [rng.dirichlet(np.ones(4), size=(*lead, 2, 4)) for _ in range(3)]
        found = attention_rollout([one.copy() for one in maps[:2]])
        message = (
            f"Two layers of NumPy maps of shape {maps[0].shape}: the result has shape "
            f"{(*lead, 4, 4)}. Leading axes go through the product together."
        )
        assert_equal(tuple(np.shape(found)), (*lead, 4, 4), message, name="the shape")
        message = (
            f"Three layers of maps of shape {maps[0].shape}: the result has shape {(*lead, 4, 4)}."
        )
        found = np.asarray(attention_rollout([one.copy() for one in maps]))
        alone = [np.asarray(attention_rollout(list(some))) for some in
                 zip(*(one.reshape(-1, 2, 4, 4) for one in maps), strict=True)]  # fmt: skip
        assert_equal(tuple(np.shape(found)), (*lead, 4, 4), message, name="the shape")
        message = (
            f"Three layers of random maps of shape {maps[0].shape}: the shares are numbers that "
            "differ."
        )
        name = "'the shares are finite and differ by more than 0.05'"
        assert_equal(bool(np.ptp(found) > 0.05), True, message, name=name)
        message = (
            f"Three layers of maps of shape {maps[0].shape}: each text comes out as in your own "
            "result for that text alone."
        )
        one_by_one = np.stack(alone).reshape(*lead, 4, 4)
        assert_close(found, one_by_one, message, against="for each text alone")
    for lead in ((), (2, 3)):
        for layers in (1, 3):
            maps = [rng.dirichlet(np.ones(4), size=(*lead, 2, 4)) for _ in range(layers)]
            message = (
                f"torch, number of layers: {layers}, maps of shape {maps[0].shape}: a result "
                f"of shape {(*lead, 4, 4)}, with the formula's numbers in float64."
            )
            found = np.asarray(attention_rollout([torch.tensor(one) for one in maps]))
            assert_close(found, expected_rollout(maps), message)
    more = check_rng()
    for lead, heads, n in (((2, 3), 2, 4), ((3,), 3, 3), ((1, 1), 1, 2), ((2, 1), 2, 5)):
        maps = [more.random(size=(*lead, heads, n, n)) for _ in range(3)]
        for library, kind in (("NumPy", np.array), ("torch", torch.tensor)):
            message = (
                f"{library}, three layers of maps of shape {maps[0].shape}, rows that do not sum "
                f"to 1: the result has shape {(*lead, n, n)}, and each text comes out as in your "
                "own result for that text alone. Each text's rows have sums of their own."
            )
            single = (
                f"{library}, three layers of maps of one text, ({heads}, {n}, {n}), rows that do "
                f"not sum to 1: the result has shape ({n}, {n}), and its numbers are finite."
            )
            found = np.asarray(attention_rollout([kind(one) for one in maps]))
            alone = [np.asarray(attention_rollout([kind(one) for one in some])) for some in
                     zip(*(one.reshape(-1, heads, n, n) for one in maps), strict=True)]  # fmt: skip
            for one in alone:
                assert_equal(one.shape, (n, n), single, name="the shape")
                assert_equal(bool(np.isfinite(one).all()), True, single, name="'finite'")
            assert_equal(found.shape, (*lead, n, n), message, name="the shape")
            one_by_one = np.stack(alone).reshape(*lead, n, n)
            assert_close(found, one_by_one, message, against="for each text alone")
with check("rows that do not sum to 1", points=1):
    maps = [rng.dirichlet(np.ones(4), size=(2, 4)) for _ in range(2)]
    maps[0][:, 1] = 0.0  # query 1 may see nothing: only its residual connection is left
    maps[1] *= 3.0
    message = (
        "Two layers: in the first one row of zeros, in the second rows that sum to 3. In each "
        "layer, before the layers are multiplied, each row of the mean over the heads plus the "
        "identity is divided by its own sum, whatever that is."
    )
    assert_close(np.asarray(attention_rollout([one.copy() for one in maps])), expected_rollout(maps), message)
    found = np.asarray(attention_rollout([torch.tensor(one) for one in maps]))
    assert_close(found, expected_rollout(maps), f"In torch. {message}")
    maps = [rng.random(size=(3, 4, 4)) for _ in range(2)]
    maps[0][1, 2] = 0.0
    message = (
        "Two layers, three heads, whose rows have other sums in each head: first the mean over "
        "the heads, as they are, plus the identity, then each row divided by its own sum."
    )
    assert_close(np.asarray(attention_rollout([one.copy() for one in maps])), expected_rollout(maps), message)
checks_passed("attention_rollout")
### END HIDDEN TESTS


# %% check="attention_rollout_kinds" points=2
# Hidden checks of attention_rollout: kinds of arrays, whole numbers, precision; nothing is changed.
### BEGIN HIDDEN TESTS
@probe
def maps_afterwards(maps):
    """Which map stands where in the list after the call (-1: another one), and the maps."""
    given = list(maps)
    attention_rollout(maps)
    order = [next((i for i, one in enumerate(given) if one is now), -1) for now in maps]
    return order, given


@probe
def with_gradients(maps):
    try:
        found = attention_rollout([one.clone().requires_grad_() for one in maps])
    except NotImplementedError:
        raise
    except Exception as error:
        return type(error).__name__, None
    return "nothing", found.detach() if isinstance(found, torch.Tensor) else found


@probe
def of_views(maps):
    """The same numbers in transposed views."""
    return attention_rollout([one.mT.contiguous().mT for one in maps])


rng = check_rng()
maps = [rng.dirichlet(np.ones(5), size=(2, 3, 5)) for _ in range(2)]
plain = attention_rollout([one.copy() for one in maps])
with check("torch as NumPy, requires_grad as without, views as copies", points=0.5):
    message = "Random NumPy maps: the shares are numbers that differ."
    assert_equal(
        bool(np.ptp(np.asarray(plain, dtype=float)) > 0.05),
        True,
        message,
        name="'the shares are finite and differ by more than 0.05'",
    )
    message = (
        "The same float64 maps, as NumPy arrays and as torch tensors, should give the same numbers, "
        "for torch in a torch tensor of float64. (Which of the two are right the other checks say.)"
    )
    found = attention_rollout([torch.tensor(one) for one in maps])
    kind = "NumPy maps give a NumPy array."
    assert_equal(type(plain).__name__, "ndarray", kind, name="the kind of the result")
    in_numpy = torch.tensor(np.asarray(plain))
    assert_close(found, in_numpy, message, precise=True, against="for the NumPy maps")
    message = "torch maps that require gradients: no error, and the numbers of those that do not."
    raised, again = with_gradients([torch.tensor(one) for one in maps])
    assert_equal(raised, "nothing", message, name="what is raised")
    assert_close(again, found, message, against="for maps without requires_grad")
    message = "torch maps that are transposed views: the same as for the same numbers in new ones."
    again = of_views([torch.tensor(one) for one in maps])
    assert_close(again, found, message, against="for maps that are no views")
with check("float32 maps as float64 maps, to six digits", points=0.25, side=True):
    message = "Random NumPy maps: the shares are numbers that differ."
    assert_equal(
        bool(np.ptp(np.asarray(plain, dtype=float)) > 0.05),
        True,
        message,
        name="'the shares are finite and differ by more than 0.05'",
    )
    for library, kind in (("torch", torch.tensor), ("NumPy", np.array)):
        double = np.asarray(attention_rollout([kind(one) for one in maps]))
        single = np.asarray(attention_rollout([kind(one.astype(np.float32)) for one in maps]))
        message = f"{library} maps of float32 give the numbers of your own result for the same maps in float64."
        against = "for the maps in float64"
        assert_close(single, double, message, rtol=1e-5, atol=1e-6, against=against)
with check("whole numbers as floats", points=0.75, side=True):
    heads = [[rng.permutation(5) for _ in range(2)] for _ in range(2)]
    whole = [np.eye(5, dtype=int)[np.array(one)] for one in heads]
    message = "NumPy maps of zeros and ones, as floats: the shares are numbers that differ."
    floating = attention_rollout([one.astype(float) for one in whole])
    assert_equal(
        bool(np.ptp(np.asarray(floating, dtype=float)) > 0.05),
        True,
        message,
        name="'the shares are finite and differ by more than 0.05'",
    )
    message = (
        "NumPy maps of whole numbers, of two heads each, are valid, and give what your function gives "
        "for the same numbers as floats."
    )
    against = "for the same numbers as floats"
    assert_close(np.asarray(attention_rollout(whole)), np.asarray(floating), message, against=against)
    for kind in ("uint8", "int32"):
        few = [(5 * one[:1]).astype(kind) for one in whole]
        message = (
            f"NumPy maps of {kind}, shape {few[0].shape}, zeros and fives: what your function "
            "gives for the same numbers as floats."
        )
        floating = attention_rollout([one.astype(float) for one in few])
        assert_close(np.asarray(attention_rollout(few)), np.asarray(floating), message, against=against)
with check("nothing is changed", points=0.5, side=True):
    for heads, library in ((3, "NumPy"), (3, "torch"), (1, "torch"), (1, "NumPy")):
        few = [one[:, :heads].copy() for one in maps]
        few = [torch.tensor(one) for one in few] if library == "torch" else few
        copies = [one.clone() if library == "torch" else one.copy() for one in few]
        order, after = maps_afterwards(copies)
        where = f"{library} maps, heads: {heads}."
        message = (
            f"{where} The list was changed by the call: it should hold the same two maps, 0 and 1, "
            "in the order in which they stood. (-1 is another map.)"
        )
        assert_equal(order, [0, 1], message, name="the maps in the list")
        message = f"{where} The numbers of a map were changed by the call."
        for before, now in zip(few, after, strict=True):
            assert_equal(now, before, message, name="a map", against="before the call")
checks_passed("attention_rollout")
### END HIDDEN TESTS

# %% [markdown]
# <details><summary>Hint</summary>
#
# The heads are axis -3. Compute the first layer's matrix, then for each further layer:
# `layer @ rollout`. Why from the left? $x_2 = A_2 x_1$ and $x_1 = A_1 x_0$ give
# $x_2 = A_2 A_1 x_0$. The identity is `np.eye(n)` or `torch.eye(n)`: ask what kind you were given.
#
# </details>
#
# ### Beside the gradient, and beside hiding
#
# **The gradient** (Simonyan, Vedaldi and Zisserman, 2014) asks how fast the logit of the answer changes
# with each pixel. For a patch we take the length of its four numbers. A variant multiplies the gradient
# by the ink of each pixel before adding up.
#
# **Hiding** (Zeiler and Fergus, 2014) replaces one patch, runs the model again, and notes how far the
# logit falls. It needs a decision: replaced **by what**? By paper? By the same place of another picture?
#
# Two controls know nothing of the model: the **ink** of each patch, and a **random** order. Here are
# four of the seven for two digits.


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
def read(model, images):
    """Logits, and the attention maps of all blocks."""
    maps = []
    handles = [
        block.register_forward_hook(lambda _, __, result: maps.append(result[1].detach()))
        for block in model.blocks
    ]
    try:
        logits = model(images)
    finally:
        for handle in handles:
            handle.remove()
    return logits, maps


def logit_of(logits, said):
    """The logits (..., 10) of the classes `said` (pictures,), for pictures along the first axis."""
    places = said.reshape(-1, *[1] * (logits.ndim - 1)).expand(*logits.shape[:-1], 1)
    return logits.gather(-1, places)[..., 0]


def by_hiding(model, images, said, replacement):
    """How far the logit of `said` falls when one patch is replaced: (pictures, 16)."""
    cut = patches(images, 2)
    hidden = cut[:, None].repeat(1, 16, 1, 1)  # (pictures, which is hidden, 16, 4)
    each = torch.arange(16)
    hidden[:, each, each] = replacement
    with torch.no_grad():
        before, after = model(images), model(joined(hidden))  # (pictures, 10), (pictures, 16, 10)
        return logit_of(before, said)[:, None] - logit_of(after, said)


some = pictures[held_out[:100]]
paper = torch.full((100, 16, 4), -1.0)
draw = np.random.default_rng(7)
others = [patches(pictures[draw.choice(train_set, size=100)], 2) for _ in range(6)]
average = patches(pictures[train_set].mean(0), 2).expand(100, 16, 4)
ink = 1 + patches(some, 2)


def scores_of(model, seed):
    """By each measure, how much each patch of each picture counted: (pictures, 16)."""
    with torch.no_grad():
        logits, maps = read(model, some)
    said = logits.argmax(-1)
    leaf = some.clone().requires_grad_()
    logit_of(model(leaf), said).sum().backward()
    slope = patches(leaf.grad, 2)
    random = torch.rand(100, 16, generator=torch.Generator().manual_seed(seed))
    return said, {
        "rollout": attention_rollout(maps)[:, 0, 1:],  # the class token's row, without itself
        "gradient": slope.norm(dim=-1),
        "gradient x ink": (slope * ink).sum(-1),
        "hiding by paper": by_hiding(model, some, said, paper),
        "hiding by others": sum(by_hiding(model, some, said, other) for other in others[:5]) / 5,
        "ink": ink.sum(-1),
        "random": random,
    }


measured = [scores_of(model, seed) for seed, model in enumerate(models)]
said, scores = measured[0]
chosen = ["rollout", "gradient", "hiding by paper", "hiding by others"]
figure, panels = plt.subplots(2, 5, figsize=(12, 5.2))
columns = []
two = [next(i for i in range(100) if labels[held_out[i]] == digit) for digit in (3, 6)]
for line, number in zip(panels, two):
    line[0].imshow(some[number], cmap="Greys", vmin=-1, vmax=1)
    line[0].set_title(f"the model says {said[number].item()}")
    for axes, name in zip(line[1:], chosen):
        values = scores[name][number].detach().clamp(min=0)
        columns.append((f"{said[number].item()}: {name}", values / values.max()))
        axes.imshow((values / values.max()).reshape(4, 4), cmap="Blues", vmin=0, vmax=1)
        axes.set_title(name)
for axes in panels.flat:
    axes.set_xticks([])
    axes.set_yticks([])
figure.tight_layout()
show(
    figure,
    "Figure 2. Two pictures, and four answers to 'which patches counted?', each divided by its largest "
    "number. They do not agree, and no picture can say which of them is right.",
    "Two rows of five panels: a digit, then four grids of four by four in blue: rollout, gradient, hiding "
    "by paper, hiding by other pictures. The dark cells differ from grid to grid.",
    text_table(torch.stack([values for _, values in columns]), [name for name, _ in columns],
               [str(number) for number in range(16)], corner="measure \\ patch"),
)  # fmt: skip

# %% [markdown]
# ### The judge
#
# A ranking of patches is good if the patches on top are those that the model needs. So **delete** the
# four on top, of sixteen, and count how often the model still gives the answer it gave before (Samek
# and others, 2017, judge in this way). The fewer, the better the ranking. But deleting is replacing,
# too: by paper, by the same places of another picture (none of those that were used for hiding), or by the
# mean of all training pictures. So there are three judges.
#
# **Predict, then run.** Which measure wins when the four patches are replaced by paper? Write one of the
# names: `"rollout"`, `"gradient"`, `"gradient x ink"`, `"hiding by paper"`, `"hiding by others"`.

# %% tags=["demonstration", "guess"]
guess_winner = "gradient"  # write one of the five names


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
def kept(model, said, ranking, replacement, number=4):
    """Share of answers that stay when the `number` patches of largest score are replaced."""
    first = ranking.argsort(dim=-1, descending=True, stable=True)[:, :number]
    first = first[..., None].expand(-1, -1, 4)
    cut = patches(some, 2).scatter(1, first, replacement.gather(1, first))
    with torch.no_grad():
        return (model(joined(cut)).argmax(-1) == said).float().mean().item()


judges = {"paper": paper, "another picture": others[5], "the mean picture": average}
stay = {
    name: np.array([
        [kept(model, said, scores[name], replacement) for replacement in judges.values()]
        for model, (said, scores) in zip(models, measured)
    ])
    for name in measured[0][1]
}  # fmt: skip
means = {name: values.mean(0) for name, values in stay.items()}  # over the seeds
winner = min(means, key=lambda name: means[name][0])
print("answers that stay, mean of 5 seeds (smallest, largest), four patches replaced by:")
print(" " * 18 + "".join(f"{name:>22s}" for name in judges))
for name, values in stay.items():
    line = (f"{m:.2f} ({a:.2f}, {b:.2f})" for m, a, b in zip(values.mean(0), values.min(0), values.max(0)))
    print(f"{name:18s}" + "".join(f"{one:>22s}" for one in line))
reply("guess_winner", guess_winner, winner, "It was made with paper, and is judged with paper.")

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
figure, axes = plt.subplots(figsize=(9.5, 3.8))
names = list(means)
for number, (judge, colour) in enumerate(zip(judges, ("#08306b", "#4292c6", "#9ecae1"))):
    places = np.arange(len(names)) + 0.27 * (number - 1)
    axes.bar(places, [means[name][number] for name in names], 0.25, color=colour, label=judge)
    for place, name in zip(places, names):
        axes.plot([place] * 5, stay[name][:, number], ".", color="black", markersize=3)
axes.set_xticks(range(len(names)), names, rotation=15)
axes.set_ylabel("answers that stay")
axes.set_ylim(0, 1)
axes.legend(title="four patches replaced by", fontsize=8)
figure.tight_layout()
show(
    figure,
    "Figure 3. Lower is better: the patches on top of the ranking are needed. Each measure has three "
    "bars, one for each judge; points are seeds. Hiding by paper wins when paper is the judge, and falls "
    "behind rollout when the mean picture is. Rollout is better than a random order for every judge.",
    "A bar chart, seven measures with three bars each. Random is between 0.6 and 0.8. Hiding by paper goes "
    "from below 0.1 to about 0.5, hiding by others stays near 0.2, rollout goes from 0.2 to about 0.4.",
    text_table(np.stack([means[name] for name in names]), names, list(judges), corner="measure \\ judge"),
)

# %% tags=["demonstration"]
hidden_by_paper, hidden_by_others = means["hiding by paper"], means["hiding by others"]
claims = {
    "judged by paper, hiding by paper wins": winner == "hiding by paper",
    "judged by the mean picture, 0.2 more answers stay, and rollout is better":
        hidden_by_paper[2] > max(hidden_by_paper[0] + 0.2, means["rollout"][2]),
    "hiding by others: at most 0.35 with every judge": max(hidden_by_others) < 0.35,
    "rollout beats the random order by 0.2, every judge, on average":
        bool((means["rollout"] < means["random"] - 0.2).all()),
    "the gradient beats it by 0.1, every judge, on average":
        bool((means["gradient"] < means["random"] - 0.1).all()),
    "gradient x ink beats the gradient when paper is the judge, and only then":
        (means["gradient x ink"] < means["gradient"]).tolist() == [True, False, False],
    "gradient x ink and ink: by the mean picture, worse than rollout":
        min(means["gradient x ink"][2], means["ink"][2]) > means["rollout"][2],
    "ink beats rollout when paper is the judge, or nearly": means["ink"][0] < means["rollout"][0] + 0.1,
}  # fmt: skip
for claim, holds in claims.items():
    print(f"{claim}: {holds}")
assert all(claims.values())

# %% [markdown]
# What the numbers say:
#
# - **The measure that was made like the judge wins.** Hiding by paper finds the ink that must not go
#   missing. Replace the same patches by the mean picture, and about half of the answers stay: rollout is better then.
#   Nor can it see that an **empty** patch matters, which a stroke would turn into another digit: paper in
#   place of paper changes nothing.
# - **Hiding by other pictures** is good with all three judges. It asks about many replacements instead of one.
#   It also costs 80 runs of the model for a picture; rollout costs one.
# - **Rollout** beats the random order with every judge. But it knows neither which answer was given nor
#   what the values held, and it is not the best with any judge. Is the random order the right control?
# - **Gradient times ink** is what hiding by paper would find if the model were linear: ink is how far a
#   pixel is from paper. So it is judged alike: better than the gradient alone when paper is the judge, and
#   worse with the two others.
# - **Ink** alone, which knows nothing of the model, does as well as rollout when paper is the judge.
#
# "What did the model use?" is half a question. The whole one is: used, **compared with what**?
#
# ### The control that comes to mind second
#
# A random order knows nothing at all. A map can beat it without knowing anything of *this* picture: on
# digits some places count in nearly every picture (the middle), others in none (the corners). So rank the
# patches by three things that do not look at the picture that is judged:
#
# - **one map for all**: the mean rollout of the training pictures, the same for every picture;
# - **the spread of a place**: how much the ink there varies over the training pictures, without any model;
# - **another picture's rollout**: that of the next picture of the hundred.
#
# (Adebayo and others, 2018, and Hooker and others, 2019, asked published maps such questions. Many did not
# pass.) And take away what is fixed: **rollout minus the one map**, beside **ink minus the mean ink** of the
# place, which needs no model.
#
# **Predict, then run.** Mean of the three judges: how many answers stay with rollout is about 0.26, with a random
# order 0.71. How many with one map for all pictures?

# %% tags=["demonstration", "guess"]
guess_one_map = 0.5  # write the share of answers that stay

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
training_ink = (1 + patches(pictures[train_set], 2)).sum(-1)  # (pictures, 16)


def controls_of(model, seed):
    """Rankings that look at another picture or at none, and what is left without the fixed part."""
    with torch.no_grad():
        maps, own_maps = read(model, pictures[train_set])[1], read(model, some)[1]
    one_map, own = (attention_rollout(one)[:, 0, 1:] for one in (maps, own_maps))
    one_map = one_map.mean(0)
    return {
        "rollout": own,
        "one map for all": one_map.expand(100, 16),
        "the spread of a place": training_ink.var(0).expand(100, 16),
        "another picture's rollout": own.roll(1, dims=0),
        "rollout minus the one map": own - one_map,
        "ink minus the mean ink": ink.sum(-1) - training_ink.mean(0),
        "random": measured[seed][1]["random"],
    }


controls = [controls_of(model, seed) for seed, model in enumerate(models)]
left = {
    name: np.array([
        [kept(model, said, scores[name], replacement) for replacement in judges.values()]
        for model, (said, _), scores in zip(models, measured, controls)
    ])
    for name in controls[0]
}  # fmt: skip
print("answers that stay, mean of 5 seeds for each judge, and the mean of the judges for each seed:")
for name, values in left.items():
    line = " ".join(f"{one:.2f}" for one in values.mean(0))
    print(f"{name:26s} {line}   " + " ".join(f"{one:.2f}" for one in values.mean(1)))
by_seed = {name: values.mean(1) for name, values in left.items()}  # over the judges
why = "As few as with rollout itself: it need not look at the picture at all."
reply("guess_one_map", guess_one_map, float(by_seed["one map for all"].mean()), why, within=0.1)

# %% tags=["demonstration"]
over_seeds = {name: values.mean() for name, values in by_seed.items()}
claims = {
    "rollout beats the random order by 0.2, each of 5 seeds":
        bool((by_seed["rollout"] < by_seed["random"] - 0.2).all()),
    "one map for all pictures does as well, to 0.08 over the seeds":
        abs(over_seeds["one map for all"] - over_seeds["rollout"]) < 0.08,
    "so does the spread of a place, without a model":
        abs(over_seeds["the spread of a place"] - over_seeds["rollout"]) < 0.08,
    "another picture's rollout keeps 0.7 of the gain over the random order, or more":
        over_seeds["random"] - over_seeds["another picture's rollout"]
        > 0.7 * (over_seeds["random"] - over_seeds["rollout"]),
    "and is still the worse one, by 0.03 over the seeds":
        over_seeds["another picture's rollout"] > over_seeds["rollout"] + 0.03,
    "without the one map, rollout still beats the random order, by 0.08 in each seed":
        bool((by_seed["rollout minus the one map"] < by_seed["random"] - 0.08).all()),
    "but not the ink above the usual, beyond 0.1 over the seeds":
        abs(over_seeds["rollout minus the one map"] - over_seeds["ink minus the mean ink"]) < 0.1,
}  # fmt: skip
for claim, holds in claims.items():
    print(f"{claim}: {holds}")
assert all(claims.values())

# %% [markdown]
# So nearly all of rollout's gain is **a fixed map of places**, which a count of ink over the training pictures
# gives as well, without a model. What is left is small and real: another picture's rollout is a little worse than
# the picture's own, and with the fixed part taken away the rest still beats a random order. That rest finds
# about what "more ink than usual" finds. In this model, with these judges, rollout shows nothing of a single
# picture that could not be had without the model. A heat map of rollout over one digit looks like an
# explanation; most of it would be there over any other digit.
#
# ### Short answer 3: `answer_judge`
#
# A paper says: "Our new map is the best explanation: when we black out the patches that it ranks highest, the
# accuracy falls the most, more than with rollout." The map was made by blacking out patches. Which
# objection is supported by this section?
#
# - a) Deleting patches says nothing about a model.
# - b) The judge was made in the same way as the map: another replacement may turn the order round, and ink alone
#   should have been tried as a control.
# - c) Rollout uses the attention, so only rollout can say what the model used.
# - d) Accuracy must not fall when patches are blacked out, if the model is good.

# %% answer="answer_judge"
### BEGIN SOLUTION
answer_judge = "b"
### END SOLUTION

# %% check="answer_judge" points=1
check_answer("answer_judge", answer_judge)

# %% [markdown]
# ## 5. Text and pictures
#
# A picture is now a row of vectors, and so is a text. Three ways to bring them together, one
# paragraph each.
#
# **One space for both.** CLIP (Radford and others, 2021) has an encoder for pictures, such as yours, and one
# for texts. Each gives one vector of length 1. Both are trained together on 400 million pairs: the dot
# product of a picture with its own caption shall be larger than with the other captions of the batch.
# It is lesson 12's search, with pictures on one side. Words and patches never see each other.
#
# **Patches as words.** LLaVA (Liu, Li, Wu and Lee, 2023) takes the patch vectors of a finished picture
# encoder, maps each by a small trained layer to the width of a finished language model, and puts them
# in front of the words. From there on it is lesson 10's model: its self-attention does the rest.
#
# **Cross-attention.** Flamingo (Alayrac and others, 2022) leaves the language model as it is and puts new layers
# between its blocks, in which words ask and patches answer. It is lesson 9's cross-attention, with another memory.
#
# **Text-to-image models** turn it round (latent diffusion: Rombach and others, 2022, known as Stable Diffusion). They
# begin with noise and take a little of it away, some dozens of times. In each step the picture asks, and the words
# answer:

# %% tags=["demonstration"]
figure, axes = plt.subplots(figsize=(9.6, 3.0))
places = {
    "noisy picture,\npatch by patch": (0.0, 0.0),
    "self-\nattention": (2.5, 0.0),
    "cross-\nattention": (5.0, 0.0),
    "a little less\nnoise": (7.6, 0.0),
    "a black cat, asleep": (1.2, 1.7),
    "text encoder": (3.4, 1.7),
    "K, V: one a word": (5.9, 1.7),
}
picture, itself, cross, less, text, encoder, words = places
arrows = [(picture, itself), (itself, cross), (cross, less), (text, encoder), (encoder, words)]
arrows += [(words, (5.9, 0.85), (5.0, 0.85), cross), (less, (7.6, -0.9), (0.0, -0.9), picture)]
draw_flow(axes, places, arrows, plain=(text, words))
axes.text(3.75, 0.12, "Q", ha="center")
axes.text(3.8, -0.82, "again, some dozens of times", ha="center")
show(
    figure,
    "One step of a text-to-image model. Its map has a row for each patch and a column for each word: which word did "
    "this patch look at? Its blocks also have feed-forwards and convolutions, which are left out here.",
    "Boxes and arrows. A noisy picture goes through self-attention and cross-attention and comes out with a little "
    "less noise; an arrow leads back to the beginning. From above, a text goes through a text encoder, whose keys "
    "and values, one a word, enter the cross-attention; the picture gives the queries.",
)

# %% [markdown]
# Nothing of that is trained here. Here is the third, as small as it can be. Two digits stand side by side, and each may be written dim (with half of
# the ink). One word is asked about. The patch vectors come from the finished model of section
# 3, which is not trained further; new are word vectors, 32 positions, one cross-attention of one head, and a
# read-out of two logits. The same reader gets two different tasks:
#
# - **where**: "Where is the three?" Left or right.
# - **dim**: "Is the three dim?" Yes or no.
#
# **Predict, then run.** Both are learned, by all five seeds. In which of them does the attention of the
# word go to the picture that is asked about, in all five? Write `"where"`, `"dim"`, `"both"` or `"none"`.

# %% tags=["demonstration", "guess"]
guess_looks = "both"  # "where", "dim", "both" or "none"


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
class Reader(nn.Module):
    """A word asks the patches of two pictures."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 32)
        self.places = LearnedPositionalEmbedding(32, 32)
        self.cross = MultiHeadAttention(32, 1)
        self.output = nn.Linear(32, 2)

    def forward(self, words, memory):
        """words (batch, n_q), memory (batch, 32, 32) -> logits (batch, n_q, 2), weights."""
        seen, weights = self.cross(self.words(words), self.places(memory))
        return self.output(seen), weights


def patch_vectors(model, images):
    """What the last block says at each patch, normalised: (pictures, 16, d_model)."""
    found = []
    handle = model.blocks[-1].register_forward_hook(lambda _, __, result: found.append(result[0]))
    with torch.no_grad():
        model(images)
        handle.remove()
        return model.final_norm(found[0])[:, 1:]


def draw_pairs(draw, numbers, batch):
    """Two pictures of different digits, whether each is dim, and which is asked about."""
    pairs = draw.choice(numbers, size=(4 * batch, 2))
    pairs = pairs[(labels[pairs[:, 0]] != labels[pairs[:, 1]]).numpy()][:batch]
    return pairs, draw.integers(0, 2, size=(batch, 2)), draw.integers(0, 2, size=batch)


def question(vectors, task, pairs, dim, side):
    """Words, memory, and the right answers."""
    memory = torch.cat([vectors[dim[:, i], pairs[:, i]] for i in (0, 1)], dim=1)
    each = np.arange(len(side))
    answers = side if task == "where" else dim[each, side]
    return labels[pairs[each, side]][:, None], memory, torch.tensor(answers)


answers_right, looked, readers = {}, {}, {}
bright_and_dim = torch.stack([pictures, (pictures + 1) / 2 - 1])
for task in ("where", "dim"):
    for seed, model in enumerate(models):
        vectors = torch.stack([patch_vectors(model, images) for images in bright_and_dim])
        torch.manual_seed(seed)
        reader = readers[task, seed] = Reader()
        optimizer, draw = torch.optim.Adam(reader.parameters(), lr=1e-2), np.random.default_rng(seed)
        for _ in progress(200, f"{task}, seed {seed}"):
            words, memory, answers = question(vectors, task, *draw_pairs(draw, train_set, 64))
            optimizer.zero_grad()
            F.cross_entropy(reader(words, memory)[0][:, 0], answers).backward()
            optimizer.step()
        test = draw_pairs(np.random.default_rng(99), held_out, 400)
        words, memory, answers = question(vectors, task, *test)
        with torch.no_grad():
            logits, weights = reader(words, memory)
        answers_right[task, seed] = (logits[:, 0].argmax(-1) == answers).float().mean().item()
        halves = weights[:, 0, 0].unflatten(-1, (2, 16)).sum(-1)  # (400, 2): left, right picture
        looked[task, seed] = halves[torch.arange(400), torch.tensor(test[2])].mean().item()
for task in ("where", "dim"):
    print(f"{task:6s} right:", *(f"{answers_right[task, seed]:.2f}" for seed in seeds),
          "  weight on the picture asked about:", *(f"{looked[task, seed]:.2f}" for seed in seeds))  # fmt: skip
on_it = {task: [looked[task, seed] for seed in seeds] for task in ("where", "dim")}
always = [task for task in on_it if min(on_it[task]) > 0.7]
found = {0: "none", 1: "".join(always), 2: "both"}[len(always)]
assert min(answers_right.values()) > 0.8 and min(on_it["dim"]) > 0.7
assert min(on_it["where"]) < 0.5 and max(on_it["where"]) > 0.6  # some seeds one way, some the other
reply("guess_looks", guess_looks, found, "'Left' also follows from what is on the right.")

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
away = int(np.argmin(on_it["where"]))  # the seed that looks away most
threes, sevens = (held_out[(labels[held_out] == digit).numpy()][:30] for digit in (3, 7))
pairs, bright = np.stack([threes, sevens], axis=1), np.zeros((30, 2), dtype=int)
vectors = torch.stack([patch_vectors(models[away], images) for images in bright_and_dim])
in_mean = torch.cat([pictures[threes].mean(0), pictures[sevens].mean(0)], dim=1)
figure, panels = plt.subplots(2, 2, figsize=(9.5, 5.4))
lines, in_numbers = [], []
for line, task in zip(panels, ("where", "dim")):
    for axes, asked, word in zip(line, (0, 1), ("three", "seven")):
        words, memory, _ = question(vectors, task, pairs, bright, np.full(30, asked))
        with torch.no_grad():
            weights = readers[task, away](words, memory)[1][:, 0, 0].mean(0)  # (32,)
        lines.append(f"{task}: {word}")
        in_numbers.append(weights)
        both = torch.cat([one.reshape(4, 4) for one in weights.split(16)], dim=1)  # (4, 8)
        both = both.repeat_interleave(2, 0).repeat_interleave(2, 1)
        axes.imshow(in_mean, cmap="Greys", vmin=-1, vmax=2)
        axes.imshow(both, cmap="Blues", alpha=0.6, vmin=0)
        axes.axvline(7.5, color="black", linewidth=1)
        question_asked = {"where": f"Where is the {word}?", "dim": f"Is the {word} dim?"}[task]
        axes.set_title(f"{question_asked} Weights {weights[:16].sum():.2f}, {weights[16:].sum():.2f}")
        axes.set_xticks([])
        axes.set_yticks([])
figure.tight_layout()
show(
    figure,
    f"Figure 4. Where the word looks, for seed {away}: the mean over thirty pairs, a three on the left and a "
    "seven on the right. Above each panel stand the weights on the left and on the right picture. Below, they "
    "lie mostly on the picture that is asked about. Above, in a reader that answers nearly as well, they do not.",
    "Four panels, each with a three on the left and a seven on the right, and the weights of one word in "
    "blue on top. Task 'dim', below: most of the weight lies on the digit that is asked about. Task 'where', "
    "above: most of it lies on the other digit, or is divided.",
    text_table(torch.stack(in_numbers), lines, [str(number) for number in range(32)],
               corner="question \\ patch"),
)  # fmt: skip

# %% [markdown]
# To say whether a three is dim, the reader has to fetch something that is known only there, and all five do.
# To say **where** it is, it may as well look at the other picture: if that is no three, the three is here. Some
# seeds do it in one way, some in the other, and the answers do not tell which. So a map of text on
# pictures shows where things are only if the task forces it to.

# %% [markdown]
# ## 6. Find the silent bug
#
# A friend does not like class tokens and takes the mean over the patches; torch's own layer, "it is
# faster"; and no norm at the end. The friend's model is trained as yours was, and names more than nine of
# ten held-out pictures, a little fewer than yours. "It has one block, and yours has two." Four lines are
# marked. One of them makes these results worthless.


# %% locked="given_friends_model"
class FriendsModel(nn.Module):
    """Patches, positions, one block of torch, mean."""

    def __init__(self):
        super().__init__()
        self.projection = nn.Linear(4, 32)
        self.position_embedding = LearnedPositionalEmbedding(16, 32)  # line a: no class token
        self.block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0)  # line b: torch's block
        self.output = nn.Linear(32, 10)

    def forward(self, images):
        x = self.position_embedding(self.projection(patches(images, 2)))  # (batch, 16, 32)
        x = self.block(x)  # line c: no mask
        return self.output(x.mean(dim=-2))  # line d: the mean over the patches


# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
friends = []
for seed in seeds:
    torch.manual_seed(seed)
    friends.append(train(FriendsModel(), seed, "the friend's model"))
friends_right = [right(model, pictures[held_out], held_out) for model in friends]
print("the friend's five models, 500 held-out pictures:", np.round(friends_right, 2))
assert min(friends_right) > 0.9 and np.mean(friends_right) < np.mean(held_out_right)

# %% [markdown]
# ### Short answer 4: `answer_silent_bug`
#
# Which line is it?
#
# - a) line a: without a class token the positions are off by one
# - b) line b: this layer takes the first axis for the row of patches, and the second for the batch
# - c) line c: a mask is missing, so patches see later patches
# - d) line d: the mean forgets where the patches stood

# %% answer="answer_silent_bug"
### BEGIN SOLUTION
answer_silent_bug = "b"
### END SOLUTION

# %% check="answer_silent_bug" points=2
check_answer("answer_silent_bug", answer_silent_bug)

# %% [markdown]
# <details><summary>Hint</summary>
#
# Which test have your own functions passed all the time, in lesson 4 and in the hidden checks of this
# one? "Each picture as if it were alone." Ask the friend's model about one picture alone, and about
# the same picture in a batch.
#
# </details>
#
# When you have answered, run the cell. It gives the friend's models the same 500 pictures again, one at a
# time. Then mend the line in a cell of your own, and see that both numbers are the same.

# %% tags=["demonstration", "nbval-ignore-output"]
# Trained numbers: they differ a little from machine to machine.
one_by_one, apart = [], []
for model in friends:
    with torch.no_grad():
        alone = torch.cat([model(pictures[[i]]) for i in held_out])
        apart.append((alone - model(pictures[held_out])).abs().max().item())
    one_by_one.append((alone.argmax(-1) == labels[held_out]).float().mean().item())
print("together:      ", np.round(friends_right, 2))
print("one at a time: ", np.round(one_by_one, 2))
print("largest change of a logit:", np.round(apart, 1))
with torch.no_grad():
    yours = torch.cat([models[0](pictures[[i]]) for i in held_out[:50]])
    change = (yours - models[0](pictures[held_out[:50]])).abs().max().item()
print("your model, the same change, is below 1e-4:", change < 1e-4)
assert min(apart) > 0.5 and change < 1e-4
assert np.mean(one_by_one) < np.mean(friends_right) - 0.1

# %% [markdown]
# `nn.TransformerEncoderLayer` has `batch_first=False` unless you say otherwise. So the friend's attention never
# went from patch to patch: the top left patch of one picture looked at the top left patches of **the other
# pictures of the batch**. No error, no strange shape, a loss that falls, and held-out pictures named
# right, as long as they come by hundreds. What a picture is then depends on its company. The test
# is cheap and always the same: one alone, one in a batch.
#
# ### What is often said, and what is right
#
# | often said | what is right | where shown |
# |---|---|---|
# | "Transformers see pictures better than older methods." | On these small pictures a look-up by pixels is better. It is a matter of how many pictures there are, and of how one trains (DeiT). | section 3 |
# | "A vision transformer knows which patches are neighbours." | All that it knows stands in the position table. Scrambled pictures are as easy for it. | section 3 |
# | "Without positions nothing works." | Seven of ten digits are named from a bag of patches. | section 3 |
# | "Attention shows what the model used." | Rollout beats chance, and so does one map for all pictures, as far. | section 4 |
# | "Deletion proves which explanation is right." | It prefers the one that deletes in the same way. | section 4 |
# | "The gradient times the input is the better gradient." | By paper, yes, and it was made with paper; by the two other judges it is the worse one here. | section 4 |
# | "The word looks at the thing it names." | If the task forces it to. | section 5 |
# | "Held-out accuracy finds such bugs." | Not one that is in the test as well. | section 6 |
#
# ### Written answer: `written_heatmap`
#
# A clinic buys a model that reads X-rays. The seller shows a heat map, made by attention rollout, with the
# tumour in dark colours: "the model looks where a doctor looks." Answer in 6 to 9 sentences (4 points):
#
# 1. Name two things that rollout cannot know about this answer of the model.
# 2. Describe a test of the map by deletion. What do you put in place of what you delete, and which
#    two controls do you run?
# 3. Suppose the map passes. What has section 5 shown that still may be wrong with "it looks at the tumour"?

# %% [markdown] written="heatmap" points=4
# ### BEGIN SOLUTION
# Rollout uses the attention weights only. It does not know which answer was given: the map for "tumour" and for
# "no tumour" is the same. It does not know what the values held either, nor whether the read-out uses
# what arrives: a patch with much weight may add nothing. For the test I rank the patches by the map,
# replace the first ones, and count over many pictures how often the answer changes. I replace them in more
# than one way, by grey, by the mean, and by the same place of other X-rays, because in the lesson the
# order of the measures changed with the replacement, and the measure that was made like the judge won. As
# controls I rank at random, and by something that knows nothing of the model, such as how bright a
# patch is: in the lesson one map for all pictures was as good as rollout. Even then the model may
# answer by something else that goes along with the tumour: in section 5 readers said where the three was
# while looking at the other picture. That an answer is right does not say that it comes from where we
# would look.
#
# **Marking scheme** (4 points). 1 point: two of: the class that was asked about, the values, the sign (for
# or against), what the feed-forward and the read-out do. 1 point: ranking, replacing, counting over
# many pictures, with more than one replacement or a reason for the one chosen. 1 point: two
# controls, a random order and one that knows nothing of the model or of the picture (or an untrained model). 1 point:
# right answers by another way, with section 5; no point for "correlation is not causation" alone.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# | concept | formula | code | purpose |
# |---|---|---|---|
# | patches | $(H/s)(W/s)$ rows of $s^2$ numbers | `patches` | a picture becomes a text |
# | class token | one learned row in front | `class_token` | a place that collects, and is read |
# | vision transformer | patches, linear, positions, blocks, norm, linear | `VisionTransformer` | lesson 8's stack reads pictures |
# | what it knows of space | rows of a table | `position_embedding` | scrambled pictures are as easy |
# | rollout | $\hat A_L \cdots \hat A_1$ | `attention_rollout` | where an output comes from, by weights alone |
# | deletion | answers that stay | `kept` | judges a map, **for a replacement** |
# | cross-attention on patches | $Q$ of words, $K, V$ of patches | `Reader` | words ask pictures |
#
# ## Check yourself
#
# <details><summary>1. A photo has three colours. What changes in <code>patches</code> and in the model?</summary>
#
# Each patch has `3 * size * size` numbers, and the projection takes as many. Nothing else.
#
# </details>
#
# <details><summary>2. Patches of 4 in place of 2, same picture. How many patches are there, and what becomes of
# the cost of the attention maps?</summary>
#
# 4 in place of 16; with the class token 5 by 5 in place of 17 by 17, so about a twelfth. Each patch says more,
# and the map says less about where.
#
# </details>
#
# <details><summary>3. A model that was trained on 8 by 8 pixels gets 16 by 16. Which part fails?</summary>
#
# The position table: it has 17 rows, and 65 are needed. In practice it is stretched, by interpolating
# between the rows of neighbours (Dosovitskiy and others, 2021): there somebody tells the model which
# patches are neighbours, after all.
#
# </details>
#
# <details><summary>4. All heads of both blocks look only at their own position. What is the rollout?</summary>
#
# The identity: each layer is (I + I) / 2.
#
# </details>
#
# <details><summary>5. Why can a causal mask not be used with a class token that stands first?</summary>
#
# It would see itself alone, and every picture would get the same answer. (At the end it could.)
#
# </details>
#
# Questions to ask yourself about every map: *Compared with what? Does chance do as well, or ink? Does the
# map change when the answer does? Is the answer the same, one at a time?*
#
# ## References
#
# - Dosovitskiy and others (2021), *An Image is Worth 16x16 Words: Transformers for Image Recognition at
#   Scale*.
# - Touvron and others (2021), *Training Data-Efficient Image Transformers & Distillation through Attention* (DeiT).
# - Alpaydin, Kaynak (1998), *Optical Recognition of Handwritten Digits*, UCI Machine Learning Repository;
#   scikit-learn's copy is its test part: 1,797 digits of thirteen writers.
# - Abnar, Zuidema (2020), *Quantifying Attention Flow in Transformers*: rollout.
# - Simonyan, Vedaldi, Zisserman (2014), *Deep Inside Convolutional Networks*: gradients.
# - Zeiler, Fergus (2014), *Visualizing and Understanding Convolutional Networks*: hiding.
# - Samek, Binder, Montavon, Lapuschkin, Müller (2017), *Evaluating the Visualization of What a Deep Neural
#   Network Has Learned*: deletion as a judge.
# - Hooker, Erhan, Kindermans, Kim (2019), *A Benchmark for Interpretability Methods in Deep Neural
#   Networks*: what is wrong with that judge.
# - Adebayo and others (2018), *Sanity Checks for Saliency Maps*.
# - Radford and others (2021), *Learning Transferable Visual Models From Natural Language Supervision* (CLIP);
#   Liu, Li, Wu, Lee (2023), *Visual Instruction Tuning* (LLaVA); Alayrac and others (2022), *Flamingo*;
#   Rombach and others (2022), *High-Resolution Image Synthesis with Latent Diffusion Models*.
#
# ## What comes next
#
# Nearly all layers of this course were written in PyTorch. Other libraries have the same ones, with other names,
# other defaults and masks that may say the opposite (the table of lesson 3): before you use one, ask it
# what you asked your own: lesson 16, an appendix, does it for Keras. The course goes on with lesson 17: from characters
# to tokens, and then to a model that talks.
