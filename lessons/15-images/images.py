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
from lesson.earlier import (
    LayerNorm,
    LearnedPositionalEmbedding,
    MultiHeadAttention,
    TransformerBlock,
)
from lesson.progress import progress
from torch import nn

from lesson.checks import (
    assert_close,
    assert_equal,
    assert_raises,
    check,
    check_answer,
    check_rng,
    checks_passed,
    probe,
)
from lesson.figures import draw_heatmap, show, text_table
from lesson.guesses import reply

torch.set_num_threads(1)  # one thread: faster at these sizes, and the same numbers every time

# %% [markdown]
# `lesson.earlier` brings your parts of lessons 5, 7 and 8, as the course solves them. To use your
# own, paste them into a cell below this one.
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
hexadecimal = np.arange(16).reshape(4, 4)
with check("four by four, by hand", points=1.5):
    assert_equal(
        patches(hexadecimal, 2),
        np.array([[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]),
        "The table above. The four pixels of a patch do not lie side by side in memory: cut into "
        "rows and columns of patches first, then bring the pixels of each patch together.",
        name="the patches",
    )
rng = check_rng()
wide = rng.integers(0, 100, size=(4, 6))
with check("a picture that is wider than high", points=1):
    expected = [wide[r : r + 2, c : c + 2].flatten() for r in (0, 2) for c in (0, 2, 4)]
    message = "4 by 6 pixels in patches of size 2: six patches, row by row, of four pixels each."
    assert_equal(patches(torch.tensor(wide), 2), torch.tensor(np.array(expected)), message,
                 name="the patches")  # fmt: skip
with check("leading axes", points=0.75):
    images = torch.tensor(rng.normal(size=(2, 3, 6, 9)))
    message = "Pictures of shape (2, 3, 6, 9), size 3: each as if it were alone, (2, 3, 6, 9)."
    found = patches(images, 3)
    alone = torch.stack([torch.stack([patches(one, 3) for one in some]) for some in images])
    assert_equal(list(np.shape(found)), [2, 3, 6, 9], message, name="the shape")
    assert_equal(found, alone, message, name="the patches")
    assert_equal(found[0, 0, 0, :3], images[0, 0, 0, :3], message, name="the first three pixels")
with check("the type of the numbers", points=0.25):
    message = "Whole numbers of 8 bits stay what they are."
    assert_equal(patches(wide.astype(np.uint8), 2).dtype, np.dtype(np.uint8), message, name="dtype")
with check("no whole number of patches", points=0.5, side=True):
    message = "4 by 6 pixels do not give whole patches of size 3, nor of size 4."
    with assert_raises(ValueError, message):
        patches(torch.tensor(wide), 3)
    with assert_raises(ValueError, message):
        patches(torch.tensor(wide), 4)
checks_passed("patches")


# %% check="patches_sizes" points=3
# Hidden checks of patches: other sizes and pictures, compared with torch's own function.
### BEGIN HIDDEN TESTS
rng = check_rng()


def by_torch(images, size):
    """torch's unfold puts the patches into columns."""
    return F.unfold(images[:, None], size, stride=size).mT


with check("square pictures", points=1):
    for side, size in ((8, 2), (12, 3), (8, 4)):
        images = torch.tensor(rng.normal(size=(3, side, side)))
        message = f"{side} by {side} pixels, size {size}: row by row, outside and inside."
        assert_close(patches(images, size), by_torch(images, size), message)
with check("other pictures", points=1):
    for height, width, size in ((4, 10, 2), (9, 3, 3), (15, 10, 5)):
        images = torch.tensor(rng.normal(size=(2, height, width)))
        message = f"{height} by {width} pixels, size {size}: row by row, outside and inside."
        assert_close(patches(images, size), by_torch(images, size), message)
with check("patches of one pixel, and one patch", points=1):
    image = rng.normal(size=(3, 5))
    message = "Size 1: each pixel is a patch. 3 by 5 pixels, size 1."
    assert_equal(patches(image, 1), image.reshape(15, 1), message, name="the patches")
    image = rng.normal(size=(4, 4))
    message = "4 by 4 pixels, size 4: one patch."
    assert_equal(patches(image, 4), image.reshape(1, 16), message, name="the patches")
checks_passed("patches")
### END HIDDEN TESTS


# %% check="patches_kinds" points=2
# Hidden checks of patches: leading axes, NumPy and torch, kinds of numbers, gradients.
### BEGIN HIDDEN TESTS
@probe
def gradient_of(images, direction):
    images = images.clone().requires_grad_()
    found = patches(images, 2)
    if getattr(found, "requires_grad", False):
        (found * direction).sum().backward()
    return images.grad


rng = check_rng()
with check("leading axes", points=0.75):
    for lead in ((1,), (3,), (2, 1, 3)):
        images = rng.normal(size=(*lead, 4, 6))
        found = patches(images, 2)
        message = f"Pictures of shape {images.shape}: each as if it were alone."
        alone = [patches(one, 2) for one in images.reshape(-1, 4, 6)]
        assert_equal(bool(np.std(found) > 0.1), True, message, name="'the pixels differ'")
        assert_equal(found, np.stack(alone).reshape(*lead, 6, 4), message, name="the patches")
with check("kinds of numbers", points=0.75):
    plain = rng.integers(0, 2, size=(4, 6))
    message = "The kind of array and the type of its numbers should stay."
    for name in ("bool", "int64", "float16", "float64"):
        image = plain.astype(name)
        found = patches(image, 2)
        assert_equal(found.dtype, image.dtype, f"NumPy, {name}. {message}", name="dtype")
        assert_equal(found.shape, (6, 4), message, name="the shape")
        found = patches(torch.tensor(image), 2)
        expected = str(torch.tensor(image).dtype)
        assert_equal(str(found.dtype), expected, f"torch, {name}. {message}", name="dtype")
with check("gradients", points=0.5):
    images = torch.tensor(rng.normal(size=(3, 4, 6)))
    direction = torch.tensor(rng.normal(size=(3, 6, 4)))
    leaf = images.clone().requires_grad_()
    (F.unfold(leaf[:, None], 2, stride=2).mT * direction).sum().backward()
    message = "Each pixel should get the gradient of its place in the patches. Is it torch throughout?"
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
    message = f"Pictures of shape {shape} do not give whole patches of size {size}."
    for kind in (np.array, torch.tensor):
        with assert_raises(ValueError, message):
            patches(kind(images), size)
images = rng.normal(size=(3, 4, 6))
assert_equal(images_afterwards(images.copy()), images, "patches changes images.", name="images")
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
# | | shape, for digits of 8 by 8 and patches of 2 |
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
#   too; both modes agree; the pictures are not changed. Sizes that do not fit are not graded.


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
            x, _ = block(x)
        return self.output(self.final_norm(x[..., 0, :]))
        ### END SOLUTION


# %% check="VisionTransformer" points=4
# Pictures of 6 by 6 pixels, patches of size 2; the same computation with torch's own functions.
@probe
def parts_of(sizes):
    model = VisionTransformer(*sizes)
    shapes = {name: list(value.shape) for name, value in model.named_parameters()}
    places = [name for name in shapes if name.startswith("position_embedding.")]
    kinds = {name: type(part).__name__ for name, part in model.named_children()}
    kinds["class_token"] = type(getattr(model, "class_token", None)).__name__
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
    side, size, d, heads, _, layers, _ = sizes
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
    assert_equal(found, expected, "The six parts, by name and kind.", name="the parts")
    message = (
        "VisionTransformer(6, 2, 12, 3, 20, 2, 7): each block is an object of its own, and there is "
        "nothing else to train."
    )
    expected = {n: list(v.shape) for n, v in parameters.items() if n not in ("position", "class")}
    assert_equal(shapes, expected, message, name="the shapes of the parameters")
    message = "Nine patches and the class token: ten position vectors."
    assert_equal(positions, [[10, 12]], message, name="the position vectors")
    assert_equal(token, 12, "The class token has d_model numbers.", name="its size")
with check("read from the class token, at position 0", points=1):
    quiet = draw_parameters(sizes, rng, quiet=True)
    assert_close(
        run(sizes, quiet, images),
        by_torch(sizes, quiet, images),
        "Here the blocks add nothing, so the logits come from the class token plus position 0, "
        "through final_norm and output. Which row do you read? Which position has the class token?",
    )
with check("the whole model", points=2):
    assert_close(
        run(sizes, parameters, images),
        by_torch(sizes, parameters, images),
        "Patches, projection, class token in front, positions, every block in turn (pre-norm, no "
        "mask), row 0, final_norm, output.",
    )
checks_passed("VisionTransformer")


# %% check="VisionTransformer_shapes" points=2
# Hidden checks of VisionTransformer: leading axes, other sizes, float64.
### BEGIN HIDDEN TESTS
@probe
def run(sizes, seed, images):
    torch.manual_seed(seed)
    model = VisionTransformer(*sizes).double()
    with torch.no_grad():
        one_by_one = images.reshape(-1, *images.shape[-2:])
        return model(images), [model(one[None]) for one in one_by_one]


rng = check_rng()
cases = [
    ((), (4, 2, 12, 3, 20, 2, 5)),
    ((1,), (3, 1, 8, 8, 4, 1, 3)),
    ((3,), (6, 3, 6, 1, 9, 3, 2)),
    ((2, 3), (8, 2, 12, 4, 8, 2, 10)),
    ((2,), (5, 5, 8, 2, 6, 1, 4)),
]
for lead, sizes in cases:
    images = torch.tensor(rng.normal(size=(*lead, sizes[0], sizes[0])))
    message = (
        f"VisionTransformer{sizes} in float64, pictures of shape {tuple(images.shape)}: any number "
        "of leading axes, each picture as if it were in a batch of one."
    )
    found, alone = run(sizes, 7, images)
    assert_equal(tuple(found.shape), (*lead, sizes[-1]), message, name="the shape")
    assert_equal(bool(found.std() > 1e-6), True, message, name="'the logits differ'")
    one_by_one = torch.cat(alone).double().reshape(found.shape)
    assert_close(found, one_by_one, message, precise=True)
### END HIDDEN TESTS


# %% check="VisionTransformer_positions" points=2
# Hidden checks of VisionTransformer: every patch counts, and where it stands counts.
### BEGIN HIDDEN TESTS
@probe
def moved_by(sizes, seed, image, others):
    torch.manual_seed(seed)
    model = VisionTransformer(*sizes).double()
    with torch.no_grad():
        before = model(image[None])[0]
        return [float((model(other[None])[0] - before).abs().max()) for other in others]


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
    found = [change > 1e-9 for change in moved_by(sizes, int(rng.integers(1000)), image, others)]
    message = "Nine patches. One is changed: do the logits move? They should, for each."
    assert_equal(found, [True] * 9, message, name="what moves the logits")
with check("where it stands counts", points=1):
    others = []
    for (r, c), (s, d) in zip(corners, corners[1:] + corners[:1], strict=True):
        other = image.clone()
        other[r : r + 2, c : c + 2] = image[s : s + 2, d : d + 2]
        other[s : s + 2, d : d + 2] = image[r : r + 2, c : c + 2]
        others.append(other)
    found = [change > 1e-9 for change in moved_by(sizes, int(rng.integers(1000)), image, others)]
    message = "Two patches change places: do the logits move? With positions they should."
    assert_equal(found, [True] * 9, message, name="what moves the logits")
checks_passed("VisionTransformer")
### END HIDDEN TESTS


# %% check="VisionTransformer_training" points=1
# Hidden checks of VisionTransformer: gradients, pictures unchanged, both modes.
### BEGIN HIDDEN TESTS
@probe
def without_gradient(sizes, seed, images):
    torch.manual_seed(seed)
    model = VisionTransformer(*sizes)
    logits = model(images)
    F.cross_entropy(logits, torch.arange(len(images)) % sizes[-1]).backward()
    lost = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    model.eval()
    with torch.no_grad():
        return lost, images, logits.detach(), model(images)


rng = check_rng()
images = torch.tensor(rng.normal(size=(5, 6, 6))).float()
lost, after, logits, evaluated = without_gradient((6, 2, 12, 3, 20, 2, 7), 3, images.clone())
assert_equal(list(np.shape(logits)), [5, 7], "Logits (..., num_classes).", name="the shape")
assert_equal(bool((logits[0] - logits[1]).abs().max() > 1e-6), True, "Pictures differ.")
assert_equal(
    [name for name in lost if not name.endswith("W_k.bias")],
    [],
    "Every parameter should get a gradient. (The keys' bias is exempt: softmax does not see it.)",
    name="the parameters without one",
)
assert_equal(after, images, "The pictures were changed.", name="the pictures")
assert_close(evaluated, logits, "In evaluation mode the logits should be the same.")
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
# ## 4. Rollout
#
# ### Exercise 3: `attention_rollout`
#
# Difficulty: ●●○○○ &nbsp; Importance: ●●●○○ &nbsp; You should spend up to 15-20 minutes on it.
#
# - `attention_rollout(maps)` gets a list of at least one attention map `(..., num_heads, n, n)`, the
#   first layer's first, and returns `(..., n, n)`.
# - In each layer: the mean over the heads, plus the identity, each row divided by its own sum.
# - The layers are multiplied so that **row `i` of the result says where output `i` comes from**.
# - NumPy arrays give a NumPy array, torch tensors a torch tensor. Any number of leading axes (visible:
#   one).
# - Checked when graded: rows that do not sum to 1 (a row of zeros: a query that may see nothing); NumPy
#   maps of whole numbers; precision is kept; the list and the maps are not changed. No errors are
#   graded.


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
        attention_rollout([one_head]),
        np.array([[0.75, 0.25], [0.0, 1.0]]),
        "The map plus the identity is [[1.5, 0.5], [0, 2]]; each row divided by its sum.",
    )
with check("two layers, by hand", points=1):
    assert_close(
        attention_rollout([one_head, other]),
        np.array([[0.75, 0.25], [0.375, 0.625]]),
        "Layer 1 is [[0.75, 0.25], [0, 1]], layer 2 is [[1, 0], [0.5, 0.5]]. Output 1 takes half of "
        "what layer 1 has at position 0, and half of what it has at position 1: the later layer "
        "stands to the left of the product.",
    )
rng = check_rng()
with check("several heads", points=0.75):
    few = rng.random(size=(3, 4, 4))  # (num_heads, n, n)
    few /= few.sum(-1, keepdims=True)
    message = "Three heads, one layer: the mean over the heads, plus the identity, divided by 2."
    assert_close(attention_rollout([few]), (sum(few) / 3 + np.eye(4)) / 2, message)
with check("a batch of torch maps, three layers", points=1.25):
    maps = [torch.softmax(torch.tensor(rng.normal(size=(2, 3, 5, 5))), -1) for _ in range(3)]
    first, second, third = ((one.mean(1) + torch.eye(5)) / 2 for one in maps)
    expected = torch.einsum("bij,bjk,bkl->bil", third, second, first)
    message = "Two texts, three heads, three layers: the last layer to the left, the first to the right."
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


with check("layers and heads", points=1):
    for layers, heads, n in ((1, 1, 3), (2, 4, 5), (5, 2, 4)):
        maps = [rng.dirichlet(np.ones(n), size=(heads, n)) for _ in range(layers)]
        message = f"{layers} layers, {heads} heads, {n} positions."
        assert_close(attention_rollout(maps), expected_rollout(maps), message)
with check("leading axes", points=1):
    for lead in ((1,), (2, 3)):
        maps = [rng.dirichlet(np.ones(4), size=(*lead, 2, 4)) for _ in range(3)]
        message = f"Maps of shape {maps[0].shape}: each text as if it were alone."
        found = attention_rollout(maps)
        alone = [attention_rollout(list(some)) for some in
                 zip(*(one.reshape(-1, 2, 4, 4) for one in maps), strict=True)]  # fmt: skip
        assert_equal(np.shape(found), (*lead, 4, 4), message, name="the shape")
        assert_equal(bool(np.ptp(found) > 0.05), True, message, name="'the shares differ'")
        assert_close(found, np.stack(alone).reshape(*lead, 4, 4), message)
with check("rows that do not sum to 1", points=1):
    maps = [rng.dirichlet(np.ones(4), size=(2, 4)) for _ in range(2)]
    maps[0][:, 1] = 0.0  # query 1 may see nothing: only its residual connection is left
    maps[1] *= 3.0
    message = "Divide each row by its own sum, whatever it is."
    assert_close(attention_rollout(maps), expected_rollout(maps), message)
checks_passed("attention_rollout")
### END HIDDEN TESTS


# %% check="attention_rollout_kinds" points=2
# Hidden checks of attention_rollout: kinds of arrays, whole numbers, precision; nothing is changed.
### BEGIN HIDDEN TESTS
@probe
def maps_afterwards(maps):
    attention_rollout(maps)
    return maps


rng = check_rng()
maps = [rng.dirichlet(np.ones(5), size=(2, 3, 5)) for _ in range(2)]
plain = attention_rollout(maps)
with check("NumPy and torch", points=0.75):
    assert_equal(bool(np.ptp(plain) > 0.05), True, "No constant.", name="'the shares differ'")
    message = "The same maps as torch tensors should give the same, as a torch tensor."
    found = attention_rollout([torch.tensor(one) for one in maps])
    assert_close(found, torch.tensor(np.asarray(plain)), message, precise=True)
    single = attention_rollout([torch.tensor(one).float() for one in maps])
    message = "float32 maps give a float32 result."
    assert_close(single, torch.tensor(np.asarray(plain)).float(), message)
    assert_equal(str(single.dtype), "torch.float32", message, name="dtype")
with check("whole numbers", points=0.75):
    whole = [np.eye(4, dtype=int)[rng.permutation(4)][None] for _ in range(2)]
    message = "Maps of whole numbers are valid, and give the same as with floating numbers."
    floating = attention_rollout([one.astype(float) for one in whole])
    assert_equal(bool(np.ptp(floating) > 0.05), True, message, name="'the shares differ'")
    assert_close(attention_rollout(whole), floating, message)
with check("nothing is changed", points=0.5, side=True):
    after = maps_afterwards([one.copy() for one in maps])
    assert_equal(len(after), 2, "The list of maps was changed.", name="its length")
    for before, now in zip(maps, after, strict=True):
        assert_equal(now, before, "The maps were changed.", name="a map")
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
