"""Right implementations of lesson 15 that look different from its solutions."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.implementations import alternative


class LayerNorm(nn.Module):
    """Stand in, for the linter, for the layer of lesson 8."""


class LearnedPositionalEmbedding(nn.Module):
    """Stand in, for the linter, for the layer of lesson 7."""


class TransformerBlock(nn.Module):
    """Stand in, for the linter, for the block of lesson 8."""


@alternative("patches", "cut_one_by_one")
def patches(images, size):
    height, width = images.shape[-2:]
    if height % size != 0 or width % size != 0:
        raise ValueError(f"size {size} does not divide {height} x {width}")
    found = []
    for top in range(0, height, size):
        for left in range(0, width, size):
            piece = images[..., top : top + size, left : left + size]
            found.append(piece.reshape(*piece.shape[:-2], size * size))
    if isinstance(images, np.ndarray):
        return np.stack(found, axis=-2)
    return torch.stack(found, dim=-2)


@alternative("patches", "indices")
def patches(images, size):
    H, W = images.shape[-2], images.shape[-1]
    if H % size or W % size:
        raise ValueError("the sides must be multiples of size")
    numbers = np.arange(H * W).reshape(H // size, size, W // size, size)
    places = numbers.transpose(0, 2, 1, 3).reshape(-1, size * size)
    if isinstance(images, torch.Tensor):
        places = torch.from_numpy(places)
    return images.reshape(*images.shape[:-2], H * W)[..., places]


@alternative("patches", "einsum_order_of_axes")
def patches(images, size):
    *lead, H, W = images.shape
    if (H % size, W % size) != (0, 0):
        raise ValueError(f"{H} x {W} pixels, patches of {size}")
    cut = images.reshape(-1, H // size, size, W // size, size)
    if isinstance(cut, np.ndarray):
        cut = np.moveaxis(cut, 2, 3)
    else:
        cut = cut.permute(0, 1, 3, 2, 4)
    return cut.reshape(*lead, H * W // size**2, size**2)


@alternative("VisionTransformer", "leading_axes_joined")
class VisionTransformer(nn.Module):
    def __init__(self, image_size, patch_size, d_model, num_heads, d_ff, num_layers, num_classes):
        super().__init__()
        self.size = patch_size
        self.projection = nn.Linear(patch_size * patch_size, d_model)
        self.class_token = nn.Parameter(torch.zeros(1, 1, d_model))
        side = image_size // patch_size
        self.position_embedding = LearnedPositionalEmbedding(1 + side * side, d_model)
        blocks = []
        for _ in range(num_layers):
            blocks.append(TransformerBlock(d_model, num_heads, d_ff, norm_first=True))
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = LayerNorm(d_model)
        self.output = nn.Linear(d_model, num_classes)

    def forward(self, images):
        lead = images.shape[:-2]
        flat = images.reshape(-1, *images.shape[-2:])
        h = self.projection(patches(flat, self.size))
        token = self.class_token.repeat(h.shape[0], 1, 1)
        h = self.position_embedding(torch.cat((token, h), dim=1))
        for i in range(len(self.blocks)):
            h = self.blocks[i](h)[0]
        logits = self.output(self.final_norm(h)[:, 0])
        return logits.reshape(*lead, logits.shape[-1])


@alternative("VisionTransformer", "own_patches")
class VisionTransformer(nn.Module):
    def __init__(self, image_size, patch_size, d_model, num_heads, d_ff, num_layers, num_classes):
        super().__init__()
        self.output = nn.Linear(d_model, num_classes)
        self.final_norm = LayerNorm(d_model)
        sizes = {"d_model": d_model, "num_heads": num_heads, "d_ff": d_ff, "norm_first": True}
        self.blocks = nn.ModuleList([TransformerBlock(**sizes) for _ in range(num_layers)])
        self.rows = image_size // patch_size
        self.position_embedding = LearnedPositionalEmbedding(self.rows**2 + 1, d_model)
        self.class_token = nn.Parameter(torch.empty(d_model).uniform_(-0.5, 0.5))
        self.projection = nn.Linear(patch_size**2, d_model)

    def forward(self, images):
        cut = images.unflatten(-1, (self.rows, -1)).unflatten(-3, (self.rows, -1))
        tokens = self.projection(cut.transpose(-3, -2).flatten(-2).flatten(-3, -2))
        x = F.pad(tokens, (0, 0, 1, 0))  # one row of zeros in front
        first = torch.zeros(x.shape[-2], 1, dtype=x.dtype)
        first[0] = 1
        x = self.position_embedding(x + first * self.class_token)
        for block in self.blocks:
            x = block(x)[0]
        x = self.final_norm(x.select(-2, 0))
        return F.linear(x, self.output.weight, self.output.bias)


@alternative("attention_rollout", "numpy_or_torch")
def attention_rollout(maps):
    library = torch if isinstance(maps[0], torch.Tensor) else np
    n = maps[0].shape[-1]
    result = None
    for A in maps:
        mean = A.mean(-3)
        mean = mean + library.eye(n, dtype=mean.dtype)
        mean = mean / mean.sum(-1)[..., None]
        result = mean if result is None else library.matmul(mean, result)
    return result


@alternative("attention_rollout", "from_the_last_layer")
def attention_rollout(maps):
    if isinstance(maps[0], np.ndarray):
        layers = [one.sum(axis=-3) / one.shape[-3] + np.eye(one.shape[-1], dtype=one.dtype) for one in maps]
        layers = [one / one.sum(axis=-1, keepdims=True) for one in layers]
    else:
        layers = [one.mean(dim=-3) + torch.eye(one.shape[-1]).to(one) for one in maps]
        layers = [one / one.sum(dim=-1, keepdim=True) for one in layers]
    shares = layers.pop()
    while layers:
        shares = shares @ layers.pop()
    return shares


@alternative("attention_rollout", "by_torch_throughout")
def attention_rollout(maps):
    is_array = isinstance(maps[0], np.ndarray)
    maps = [torch.as_tensor(one) for one in maps]
    maps = [one if one.is_floating_point() else one.double() for one in maps]
    shares = torch.eye(maps[0].shape[-1], dtype=maps[0].dtype)
    for one in maps:
        layer = one.mean(-3)
        rest = layer.sum(-1, keepdim=True) + 1
        shares = (layer @ shares + shares) / rest
    return shares.numpy() if is_array else shares


@alternative("attention_rollout", "plain_identity")
def attention_rollout(maps):
    rollout = 1.0
    for one in maps:
        layer = one.mean(-3) + (np.eye(one.shape[-1]) if isinstance(one, np.ndarray) else torch.eye(one.shape[-1]))
        layer = layer / layer.sum(-1)[..., None]
        rollout = layer * rollout if isinstance(rollout, float) else layer @ rollout
    return rollout


@alternative("attention_rollout", "row_by_row_in_float64")
def attention_rollout(maps):
    is_torch = torch.is_tensor(maps[0])
    n = maps[0].shape[-1]
    shares = None
    for one in reversed(maps):
        layer = (one.double() if is_torch else one.astype(np.float64)).mean(-3)
        rows = []
        for i in range(n):
            here = np.eye(n)[i]
            row = layer[..., i, :] + (torch.from_numpy(here) if is_torch else here)
            rows.append(row / row.sum(-1)[..., None])
        layer = torch.stack(rows, -2) if is_torch else np.stack(rows, -2)
        shares = layer if shares is None else shares @ layer
    return shares
