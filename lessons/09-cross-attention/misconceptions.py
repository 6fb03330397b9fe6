"""Wrong implementations of lesson 9, each with the sentence its author needs."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.implementations import choice, misconception


class MultiHeadAttention(nn.Module):
    """Stand in, for the linter, for the layer of lesson 5."""


class FeedForward(nn.Module):
    """Stand in, for the linter, for the layer of lesson 8."""


class LayerNorm(nn.Module):
    """Stand in, for the linter, for the layer of lesson 8."""


def causal_mask(n):
    """Stand in, for the linter, for the function of lesson 6."""
    raise NotImplementedError


# --- DecoderBlock --------------------------------------------------------------------------


@misconception(
    "DecoderBlock",
    "block_memory_asks",
    sentence="The memory asks and x is asked: there is one result for each memory position. The "
    "sequence that is being written needs something, so its positions are the queries; "
    "keys and values come from memory.",
    seen="public issues: query and key exchanged in cross-attention",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(memory, x)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_values_from_x",
    sentence="The values of your cross-attention come from x. The weights say where in the memory "
    "to look, so what is fetched must come from the memory as well.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, x, memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_cross_is_self_attention",
    sentence="Your second attention never looks at memory: its keys and values are x again, so the "
    "source cannot influence the output.",
    seen="public issues: decoder that ignores its encoder",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_self_attention_looks_at_memory",
    sentence="Your first attention already looks at memory, so the block attends to the memory "
    "twice and never to the text that is being written. The first attention is for x "
    "alone.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, memory)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_joined_keys",
    sentence="Your second attention looks at memory and x joined together. In the paper the two "
    "are kept apart: one attention for the own text, another one for the memory.",
    seen="decoder-only models, which have one attention for everything",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        lead = torch.broadcast_shapes(x.shape[:-2], memory.shape[:-2])
        both = (t.expand(*lead, *t.shape[-2:]) for t in (memory, x))
        found, weights = self.cross_attention(x, torch.cat(list(both), -2))
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_self_mask_lost",
    sentence="self_mask is not used, so a position sees the whole text, also what comes later. "
    "Pass it to the self-attention.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_memory_mask_lost",
    sentence="memory_mask is not used, so the cross-attention also looks at padding. Pass it to "
    "the cross-attention.",
    seen="public issues: padding of the source not masked in the decoder",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_masks_exchanged",
    sentence="The two masks are exchanged. self_mask belongs to the self-attention, (n, n); "
    "memory_mask belongs to the cross-attention, (n, m).",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=memory_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=self_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_mask_as_key",
    sentence="A mask is passed by position, and the attention takes it for keys or values. Look at "
    "the order of MultiHeadAttention's arguments, or pass mask=.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_self_mask_for_both",
    sentence="self_mask is used in both attentions and memory_mask in none. The cross-attention "
    "looks at another sequence, with a mask of its own.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=self_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_self_mask_inverted",
    sentence="Your self-attention uses self_mask the wrong way round. In this course True means: "
    "may attend. nn.TransformerDecoderLayer means the opposite.",
    seen="torch issues: opposite meaning of boolean masks",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        hidden = None if self_mask is None else ~self_mask
        attended, own = self.self_attention(x, mask=hidden)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_memory_mask_inverted",
    sentence="Your cross-attention uses memory_mask the wrong way round. In this course True "
    "means: may attend. nn.TransformerDecoderLayer means the opposite.",
    seen="torch issues: opposite meaning of boolean masks",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        hidden = None if memory_mask is None else ~memory_mask
        found, weights = self.cross_attention(x, memory, mask=hidden)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_causal_by_default",
    sentence="Without a self_mask you make a causal one. None should mask nothing: the caller "
    "decides.",
    seen="libraries in which decoders are causal by default",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        if self_mask is None:
            self_mask = torch.tensor(causal_mask(x.shape[-2]))
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_causal_always",
    sentence="You add a causal mask to whatever self_mask the caller gives. The block should use "
    "the masks as they are; None masks nothing.",
    seen="libraries in which decoders are causal by default",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        triangle = torch.tensor(causal_mask(x.shape[-2]))
        self_mask = triangle if self_mask is None else self_mask & triangle
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_causal_cross_attention",
    sentence="Your cross-attention hides later source positions. The source is complete before the "
    "first word is written, so nothing of it is future.",
    seen="public issues: causal mask in cross-attention",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        early = torch.ones(x.shape[-2], memory.shape[-2], dtype=torch.bool).tril()
        found, weights = self.cross_attention(
            x, memory, mask=early if memory_mask is None else memory_mask & early
        )
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_no_norm1",
    sentence="The first norm is missing: each of the three sublayers ends with a norm of its own.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = x + attended
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_no_norm2",
    sentence="The norm after the cross-attention is missing: each of the three sublayers ends with "
    "a norm of its own.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = x + found
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_no_norm3",
    sentence="The last norm is missing: each of the three sublayers ends with a norm of its own.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return x + self.feed_forward(x), weights


@misconception(
    "DecoderBlock",
    "block_one_norm",
    sentence="One norm serves all three sublayers. Each has a norm of its own, because each "
    "learns its own gamma and beta.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = self.norm2 = self.norm3 = LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_norms_reversed",
    sentence="Your norms are used in the wrong order. norm1 belongs to the self-attention, norm2 "
    "to the cross-attention, norm3 to the feed-forward.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm3(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm1(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_norm2_and_norm3_exchanged",
    sentence="norm2 and norm3 are exchanged. norm2 belongs to the cross-attention and norm3 to the "
    "feed-forward.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm3(x + found)
        return self.norm2(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_one_attention",
    sentence="One attention object serves both sublayers. Self-attention and cross-attention ask "
    "different questions, so each has its own weights.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = self.self_attention
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_pre_norm",
    sentence="Your block normalises before each sublayer (pre-norm). This one is the paper's: add "
    "first, then normalise (post-norm).",
    seen="pre-norm implementations, such as GPT-2's",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(self.norm1(x), mask=self_mask)
        x = x + attended
        found, weights = self.cross_attention(self.norm2(x), memory, mask=memory_mask)
        x = x + found
        return x + self.feed_forward(self.norm3(x)), weights


@misconception(
    "DecoderBlock",
    "block_norm_before_adding",
    sentence="You normalise the result of a sublayer and then add it. The norm comes after the "
    "addition: it takes the sum.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = x + self.norm1(attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = x + self.norm2(found)
        return x + self.norm3(self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_memory_normalised",
    sentence="You normalise memory before the cross-attention uses it. It comes from the encoder "
    "as it should be used.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, self.norm2(memory), mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_no_residual_1",
    sentence="The residual connection around the self-attention is missing: its result replaces x, "
    "instead of being added to it.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_no_residual_2",
    sentence="The residual connection around the cross-attention is missing: what was found "
    "replaces what the position knew about its own text.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_no_residual_3",
    sentence="The residual connection around the feed-forward is missing: its result is added to "
    "its input.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_residual_from_the_start",
    sentence="The cross-attention's result is added to the block's input, and the self-attention's "
    "is lost. Each sublayer adds to the result of the one before.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        y = self.norm1(x + attended)
        found, weights = self.cross_attention(y, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_steps_in_parallel",
    sentence="Your cross-attention asks with the block's input, not with what the self-attention "
    "made of it. The sublayers come one after the other.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(self.norm1(x + attended) + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_cross_first",
    sentence="The cross-attention comes before the self-attention. First a position reads its own "
    "text, so that its query knows what has been written; then it asks the memory.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_feed_forward_second",
    sentence="The feed-forward comes before the cross-attention. It is the last sublayer: it works "
    "on what both attentions have brought.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        x = self.norm3(x + self.feed_forward(x))
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        return self.norm2(x + found), weights


@misconception(
    "DecoderBlock",
    "block_no_feed_forward",
    sentence="The feed-forward is never used. Without it the block only mixes positions and "
    "normalises.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x), weights


@misconception(
    "DecoderBlock",
    "block_no_self_attention",
    sentence="The self-attention is never used, so a position does not know what has been written "
    "before it.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_extra_output_norm",
    sentence="You add the norm of the feed-forward twice. There are exactly three norms, one after "
    "each sublayer.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(self.norm3(x + self.feed_forward(x))), weights


@misconception(
    "DecoderBlock",
    "block_self_weights",
    sentence="You return the weights of the self-attention, (n, n). The exercise asks for those of "
    "the cross-attention, (n, m): they say where in the source each position looks.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), own


@misconception(
    "DecoderBlock",
    "block_averaged_heads",
    sentence="You average the weights over the heads. Return one map for each head; whoever wants "
    "an average can take it.",
    seen="nn.MultiheadAttention, which averages by default",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights.mean(-3)


@misconception(
    "DecoderBlock",
    "block_first_head_only",
    sentence="You return the weights of the first head only. Return one map for each head.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights[..., 0, :, :]


@misconception(
    "DecoderBlock",
    "block_output_only",
    sentence="You return only the output. The exercise asks for the output and the cross weights.",
    seen="nn.TransformerDecoderLayer",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x))


@misconception(
    "DecoderBlock",
    "block_order_of_results",
    sentence="You return (weights, output). The course's order is (output, weights).",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return weights, self.norm3(x + self.feed_forward(x))


@misconception(
    "DecoderBlock",
    "block_three_results",
    sentence="You return three things. The exercise asks for two: the output and the cross "
    "weights.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), own, weights


@misconception(
    "DecoderBlock",
    "block_weights_detached",
    sentence="The cross weights are detached: no gradient flows through them. A loss that uses the "
    "map could not train it.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights.detach()


@misconception(
    "DecoderBlock",
    "block_memory_detached",
    sentence="memory is detached: no gradient reaches the encoder, which would never learn.",
    seen="public issues: encoder that does not train",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory.detach(), mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_no_grad",
    sentence="The self-attention is computed without gradients, so it can never learn.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        with torch.no_grad():
            attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_dropout",
    sentence="There is dropout in your block. This one has none: the same input must give the same "
    "output.",
    seen="the paper's model, which is trained with dropout 0.1",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + F.dropout(attended, 0.1))
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_in_place",
    sentence="The result of the self-attention is added to x in place: the caller's tensor is "
    "changed, and a leaf that requires a gradient refuses it.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x += attended
        x = self.norm1(x)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_one_batch_axis",
    sentence="Your code takes exactly one batch axis. There may be none, two or more, and those of "
    "x and memory may differ.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        batch, n, d_model = x.shape
        batch, m, d_model = memory.shape
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_mask_gets_an_axis",
    sentence="You give a mask a head axis yourself. MultiHeadAttention does that, where it is "
    "needed; with one axis more the mask means something else.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(
            x, mask=None if self_mask is None else self_mask[:, None]
        )
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_memory_mask_gets_an_axis",
    sentence="You give a mask a head axis yourself. MultiHeadAttention does that, where it is "
    "needed; with one axis more the mask means something else.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        if memory_mask is not None:
            memory_mask = memory_mask[:, None]
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_float32",
    sentence="The computation goes through float32. After block.double() float64 inputs should "
    "keep their precision.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        x = self.norm3(x + self.feed_forward(x))
        return x.float().to(memory.dtype), weights


@misconception(
    "DecoderBlock",
    "block_parts_in_a_list",
    sentence="Your norms are in a list. The six parts should be attributes with the names of the "
    "card, so that weights can be loaded by name.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norms = nn.ModuleList(LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norms[0](x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norms[1](x + found)
        return self.norms[2](x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_sizes_exchanged",
    sentence="The feed-forward is made with its two sizes exchanged. It goes from d_model to d_ff "
    "and back.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_ff, d_model)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_memory_mean",
    sentence="You replace the memory by its average, the same for every position. That is the "
    "bottleneck of lesson 1; attention exists to avoid it.",
    seen="folklore",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(
            x, memory.mean(-2, keepdim=True).expand(memory.shape), mask=memory_mask
        )
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights


@misconception(
    "DecoderBlock",
    "block_mask_as_value",
    sentence="A mask is passed by position, and the attention takes it for keys or values. Look at "
    "the order of MultiHeadAttention's arguments, or pass mask=.",
    seen="a trial with typical wrong answers",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, x, self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights



@misconception(
    "DecoderBlock",
    "block_memory_mask_as_value",
    sentence="A mask is passed by position, and the attention takes it for keys or values. Look at "
    "the order of MultiHeadAttention's arguments, or pass mask=.",
    seen="a trial with typical wrong answers",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights



@misconception(
    "DecoderBlock",
    "block_masks_as_values",
    sentence="A mask is passed by position, and the attention takes it for keys or values. Look at "
    "the order of MultiHeadAttention's arguments, or pass mask=.",
    seen="a trial with typical wrong answers",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, x, self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights



@misconception(
    "DecoderBlock",
    "block_pair_added",
    sentence="You add the pair that MultiHeadAttention returns. It is (output, weights); only the "
    "output is added to x.",
    seen="a trial with typical wrong answers",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, mask=self_mask))
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights



@misconception(
    "DecoderBlock",
    "block_added_to_pair",
    sentence="You add the pair that MultiHeadAttention returns. It is (output, weights); only the "
    "output is added to x.",
    seen="a trial with typical wrong answers",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(self.self_attention(x, mask=self_mask) + x)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + found)
        return self.norm3(x + self.feed_forward(x)), weights



@misconception(
    "DecoderBlock",
    "block_cross_pair_added",
    sentence="You add the pair that MultiHeadAttention returns. It is (output, weights); only the "
    "output is added to x.",
    seen="a trial with typical wrong answers",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm2(x + weights)
        return self.norm3(x + self.feed_forward(x)), weights



@misconception(
    "DecoderBlock",
    "block_norm1_three_times",
    sentence="One norm serves all three sublayers. Each has a norm of its own, because each "
    "learns its own gamma and beta.",
    seen="a trial with typical wrong answers",
)
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        attended, own = self.self_attention(x, mask=self_mask)
        x = self.norm1(x + attended)
        found, weights = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm1(x + found)
        return self.norm1(x + self.feed_forward(x)), weights



# --- greedy_decode --------------------------------------------------------------------------


@misconception(
    "greedy_decode",
    "greedy_keeps_the_end",
    sentence="The end token is part of your result. It only says that the text is over.",
    seen="generate functions of libraries, which keep it",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        prefix.append(token)
        if token == end_id:
            break
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_keeps_the_start",
    sentence="The start token is part of your result. It was given, not generated.",
    seen="generate functions of libraries, which keep it",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix


@misconception(
    "greedy_decode",
    "greedy_keeps_both",
    sentence="Start and end token are part of your result. Both must go.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        prefix.append(token)
        if token == end_id:
            break
    return prefix


@misconception(
    "greedy_decode",
    "greedy_one_too_few",
    sentence="Your text is one token too short: the start token counts towards max_len. Only "
    "generated tokens count.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len - 1):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_one_too_many",
    sentence="Your text may be one token longer than max_len. Count what has been generated before "
    "you ask the model again.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len + 1):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_at_least_one",
    sentence="You ask the model before you look at max_len: with max_len = 0 you still generate a "
    "token.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    while True:
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
        if len(prefix) > max_len:
            break
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_one_call_too_many",
    sentence="The result is right, but the model is asked once more after max_len tokens, and its "
    "answer is thrown away. A model with room for max_len positions fails there.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    while True:
        token = int(step(list(prefix)).argmax())
        if token == end_id or len(prefix) > max_len:
            return prefix[1:]
        prefix.append(token)


@misconception(
    "greedy_decode",
    "greedy_cut_afterwards",
    sentence="The model writes on far beyond max_len and the text is cut afterwards. Stop asking "
    "when max_len tokens have been generated.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len + 5):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1 : max_len + 1]


@misconception(
    "greedy_decode",
    "greedy_ignores_the_end",
    sentence="Your loop does not stop at the end token: it runs on to max_len, and what comes "
    "after the end is noise.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_end_skipped",
    sentence="The end token is left out of the result, but decoding goes on after it. It should "
    "stop there.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        prefix.append(token)
    return [token for token in prefix[1:] if token != end_id]


@misconception(
    "greedy_decode",
    "greedy_stops_at_zero",
    sentence="Your loop stops at token 0. The end token is end_id; 0 may be an ordinary word.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id or not token:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_stops_at_a_repetition",
    sentence="Your loop stops when a token comes twice. Words may repeat; only end_id ends the "
    "text.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id or token in prefix:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_argmin",
    sentence="You take the token with the smallest logit. The largest logit is the most probable "
    "token.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmin())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_largest_absolute_value",
    sentence="You take the logit that is largest in absolute value. A logit of -9 is a very "
    "improbable token.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(abs(step(list(prefix))).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_second_best",
    sentence="You take the second largest logit.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(np.argsort(step(list(prefix)))[-2])
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_samples",
    sentence="You draw the token at random from the probabilities. Greedy means: always the most "
    "probable one, so the result is the same every time.",
    seen="generate functions with sampling",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        p = torch.as_tensor(step(list(prefix))).double().softmax(-1)
        token = int(torch.multinomial(p, 1))
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_exp_overflows",
    sentence="You compute exp of the logits without subtracting their maximum. Large logits "
    "overflow to inf. The largest logit is also the most probable token: no softmax is "
    "needed.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        e = np.exp(np.asarray(step(list(prefix))))
        token = int((e / e.sum()).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_logits_rounded",
    sentence="You round the logits to integers, and close ones become equal. Compare them as they "
    "are.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(np.asarray(step(list(prefix))).astype(int).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_last_row",
    sentence="You take the last row of the logits. step already gives one logit for each token of "
    "the vocabulary: its last entry is a number.",
    seen="models that return logits for every position",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(np.argmax(step(list(prefix))[-1]))
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_torch_only",
    sentence="Your argmax wants the keyword dim, which only torch has. Logits may also be a NumPy "
    "array.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax(dim=-1))
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_numpy_only",
    sentence="You turn the logits around with a negative step, which torch does not have. Logits "
    "may also be a torch tensor.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argsort()[::-1][0])
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_numpy_integers",
    sentence="The prefix holds NumPy's integers or tensors, as argmax gives them. The card asks "
    "for Python ints, in the prefix and in the result.",
    seen="public issues: int64 is not JSON serializable",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = np.int64(int(step(list(prefix)).argmax()))
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_result_of_numpy_integers",
    sentence="The result holds NumPy's integers. The card asks for Python ints, in the prefix and "
    "in the result.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return list(np.array(prefix[1:]))


@misconception(
    "greedy_decode",
    "greedy_result_is_an_array",
    sentence="The result is a NumPy array. The card asks for a list of Python ints.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return np.array(prefix[1:])


@misconception(
    "greedy_decode",
    "greedy_result_is_a_tensor",
    sentence="The result is a torch tensor. The card asks for a list of Python ints.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return torch.tensor(prefix[1:])


@misconception(
    "greedy_decode",
    "greedy_result_is_a_tuple",
    sentence="The result is a tuple. The card asks for a list of Python ints.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return tuple(prefix[1:])


@misconception(
    "greedy_decode",
    "greedy_prefix_is_an_array",
    sentence="The model gets a NumPy array. The card asks for a list of Python ints.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(np.array(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_prefix_is_a_tensor",
    sentence="The model gets a torch tensor. The card asks for a list of Python ints.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(torch.tensor(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_no_start_in_the_prefix",
    sentence="The prefix does not begin with start_id. The model was trained with the start token "
    "in front: without it, every position is shifted.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = []
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix


@misconception(
    "greedy_decode",
    "greedy_last_token_only",
    sentence="The model is shown only the last token. It needs everything that has been written so "
    "far.",
    seen="models with a key-value cache",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(prefix[-1:]).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_last_two_tokens",
    sentence="The model is shown only the last two tokens. It needs everything that has been "
    "written so far.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(prefix[-2:]).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_newest_first",
    sentence="Your prefix has the newest token in front. The oldest one, start_id, comes first.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.insert(0, token)
    return prefix[-2::-1]


@misconception(
    "greedy_decode",
    "greedy_never_grows",
    sentence="The token is never added to the prefix, so the model is asked the same question "
    "again and again.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix, result = [start_id], []
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        result.append(token)
    return result


@misconception(
    "greedy_decode",
    "greedy_end_in_the_prefix",
    sentence="The prefix already holds the end token when the model is first asked. It should hold "
    "only the start token.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id, end_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[2:]


@misconception(
    "greedy_decode",
    "greedy_padded",
    sentence="A text that ends early is filled up to max_len. The result should stop where the "
    "text stops.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:] + [end_id] * (max_len + 1 - len(prefix))


@misconception(
    "greedy_decode",
    "greedy_refuses_an_open_end",
    sentence="You raise an error when the model does not end in time. A text of max_len tokens is "
    "a valid result.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix, token = [start_id], end_id
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    if token != end_id:
        raise RuntimeError("no end")
    return prefix[1:]


@misconception(
    "greedy_decode",
    "greedy_drops_the_last_token",
    sentence="The last entry of the prefix is dropped, whether it is the end token or not. When "
    "max_len ends the text, it is an ordinary token.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        prefix.append(token)
        if token == end_id:
            break
    return prefix[1:-1]


@misconception(
    "greedy_decode",
    "greedy_logits_in_place",
    sentence="You write into the logits that the model gave you. They are not yours: the model may "
    "use them again.",
    seen="folklore",
)
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        logits = step(list(prefix))
        token = int(logits.argmax())
        logits[token] = 0
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]


# --- align ----------------------------------------------------------------------------------


@misconception(
    "align",
    "align_over_the_targets",
    sentence="Your argmax runs over the target positions. For each target position it is the "
    "source positions that compete: the last axis.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i % len(source_tokens)] for i in array.mean(0).argmax(0)]


@misconception(
    "align",
    "align_first_head",
    sentence="You use the first head only. The heads are averaged.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array[0].argmax(-1)]


@misconception(
    "align",
    "align_last_head",
    sentence="You use the last head only. The heads are averaged.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array[-1].argmax(-1)]


@misconception(
    "align",
    "align_largest_over_heads",
    sentence="You take the largest weight over the heads. One head that is sure then overrules all "
    "others; the card asks for the average.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array.max(0).argmax(-1)]


@misconception(
    "align",
    "align_smallest_over_heads",
    sentence="You take the smallest weight over the heads. The card asks for the average.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array.min(0).argmax(-1)]


@misconception(
    "align",
    "align_product_of_heads",
    sentence="You multiply the weights of the heads. One head with a weight near 0 then forbids a "
    "position; the card asks for the average.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array.prod(0).argmax(-1)]


@misconception(
    "align",
    "align_heads_vote",
    sentence="Each head votes for a position and the votes are counted. How sure a head is gets "
    "lost; the card asks for the average of the weights.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    votes = (array.argmax(-1)[..., None] == np.arange(array.shape[-1])).sum(0)
    return [source_tokens[i] for i in votes.argmax(-1)]


@misconception(
    "align",
    "align_median_of_heads",
    sentence="You take the median of the heads. The card asks for the average.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in np.median(array, axis=0).argmax(-1)]


@misconception(
    "align",
    "align_words_compete",
    sentence="You add up the weights of equal words before you compare. The card lets positions "
    "compete: two places of 'the' stay two.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    found = []
    for row in array.mean(0):
        total = {}
        for word, weight in zip(source_tokens, row):
            total[word] = total.get(word, 0) + weight
        found.append(max(total, key=total.get))
    return found


@misconception(
    "align",
    "align_last_wins",
    sentence="If several positions are equal, yours takes the last one. The first should win.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[len(row) - 1 - row[::-1].argmax()] for row in array.mean(0)]


@misconception(
    "align",
    "align_alphabet_decides_ties",
    sentence="If several positions are equal, yours decides by the word. The first position should "
    "win.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [max(zip(row, source_tokens))[1] for row in array.mean(0).tolist()]


@misconception(
    "align",
    "align_all_the_best",
    sentence="If several positions are equal, yours returns all of them. Each target position gets "
    "one word: the first.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [w for row in array.mean(0) for w, x in zip(source_tokens, row) if x == row.max()]


@misconception(
    "align",
    "align_rounded",
    sentence="You round the weights before you compare, so different weights become equal. Compare "
    "them as they are.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array.mean(0).round(1).argmax(-1)]


@misconception(
    "align",
    "align_refuses_gradients",
    sentence="A tensor that requires grad cannot become a NumPy array as it is. Take it out of the "
    "graph first, as a new tensor.",
    seen="torch: Can't call numpy() on Tensor that requires grad",
)
def align(weights, source_tokens):
    return [source_tokens[i] for i in np.asarray(weights).mean(0).argmax(-1)]


@misconception(
    "align",
    "align_torch_only",
    sentence="Your code calls a method that only torch tensors have. weights may also be a NumPy "
    "array.",
    seen="folklore",
)
def align(weights, source_tokens):
    return [source_tokens[i] for i in weights.detach().mean(0).argmax(-1)]


@misconception(
    "align",
    "align_torch_function",
    sentence="torch.mean takes no NumPy array. weights may be either kind.",
    seen="folklore",
)
def align(weights, source_tokens):
    return [source_tokens[i] for i in torch.mean(weights, dim=0).argmax(dim=-1).tolist()]


@misconception(
    "align",
    "align_integers_fail",
    sentence="Your code turns the array into a tensor of the same type, and torch takes no mean of "
    "integers. Integer NumPy arrays are valid.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in torch.as_tensor(array).mean(0).argmax(-1)]


@misconception(
    "align",
    "align_integers_divided",
    sentence="Integer weights are divided without a remainder, so small differences are lost.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    total = array.sum(0)
    mean = total // len(array) if array.dtype.kind == "i" else total / len(array)
    return [source_tokens[i] for i in mean.argmax(-1)]


@misconception(
    "align",
    "align_indices",
    sentence="You return positions. The exercise asks for the words that stand there.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return array.mean(0).argmax(-1).tolist()


@misconception(
    "align",
    "align_pairs",
    sentence="You return pairs of word and weight. The exercise asks for the words only.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [(source_tokens[i], float(row[i])) for row in array.mean(0) for i in [row.argmax()]]


@misconception(
    "align",
    "align_one_list_a_head",
    sentence="You return one list for each head. Average the heads first; the result is one word "
    "for each target position.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [[source_tokens[i] for i in head.argmax(-1)] for head in array]


@misconception(
    "align",
    "align_an_array",
    sentence="You return a NumPy array. The exercise asks for a list.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return np.array(source_tokens)[array.mean(0).argmax(-1)]


@misconception(
    "align",
    "align_a_tuple",
    sentence="You return a tuple. The exercise asks for a list.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return tuple(source_tokens[i] for i in array.mean(0).argmax(-1))


@misconception(
    "align",
    "align_one_string",
    sentence="You join the words to one string. The exercise asks for a list.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return " ".join(source_tokens[i] for i in array.mean(0).argmax(-1))


@misconception(
    "align",
    "align_smallest_weight",
    sentence="You take the smallest weight. The word that a position looks at has the largest one.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array.mean(0).argmin(-1)]


@misconception(
    "align",
    "align_every_word_once",
    sentence="Each source word is used once and then taken out. Two target words may look at the "
    "same source word ('is sleeping' becomes one word), and the card asks for each row by "
    "itself.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    free, found = array.mean(0).astype(float), []
    for q in range(len(free)):
        best = free[q].argmax()
        found.append(source_tokens[best])
        if len(free) > q + 1 and np.isfinite(free[q + 1]).sum() > 1:
            free[:, best] = -np.inf
    return found


@misconception(
    "align",
    "align_without_repetition",
    sentence="A word that comes twice is returned once. There is one result for each target "
    "position.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return list(dict.fromkeys(source_tokens[i] for i in array.mean(0).argmax(-1)))


@misconception(
    "align",
    "align_only_forwards",
    sentence="Your alignment may only move to the right. Word order crosses: that is why we look "
    "at the map at all.",
    seen="monotonic alignment in speech",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    found, at = [], 0
    for row in array.mean(0):
        at += int(row[at:].argmax())
        found.append(source_tokens[at])
    return found


@misconception(
    "align",
    "align_diagonal",
    sentence="You pair the words in order and do not look at the weights.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[q % len(source_tokens)] for q in range(array.shape[1])]


@misconception(
    "align",
    "align_first_row_dropped",
    sentence="You drop the first target position. There is one result for each row of the map.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array.mean(0).argmax(-1)[1:]]


@misconception(
    "align",
    "align_one_row_late",
    sentence="Your words come one row late. Row t of the map is the result for position t.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in np.roll(array.mean(0).argmax(-1), 1)]


@misconception(
    "align",
    "align_target_by_target_axis",
    sentence="You average over the target positions and not over the heads. The first axis holds "
    "the heads.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array.mean(1).argmax(-1)]


@misconception(
    "align",
    "align_detached_in_place",
    sentence="The weights themselves are detached, so that training cannot go on. A method whose "
    "name ends in an underscore changes its tensor; take a new one out of the graph.",
    seen="folklore",
)
def align(weights, source_tokens):
    if isinstance(weights, torch.Tensor):
        weights.detach_()
    return [source_tokens[i] for i in np.asarray(weights).mean(0).argmax(-1)]


@misconception(
    "align",
    "align_averaged_in_place",
    sentence="The sum of the heads is written into the weights of the first head: the caller's map "
    "is changed.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    for head in array[1:]:
        array[0] += head
    return [source_tokens[i] for i in array[0].argmax(-1)]


@misconception(
    "align",
    "align_best_column_overwritten",
    sentence="You write into the weights while you look for the largest: the caller's map is "
    "changed.",
    seen="folklore",
)
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    best = array.mean(0).argmax(-1)
    array[:] = 0
    return [source_tokens[i] for i in best]


# --- short answers ------------------------------------------------------------------------

choice(
    "answer_shape",
    "a",
    reason="That is one row for each English word: the source would be asking. The target asks, "
    "so the rows are its three positions.",
)
choice(
    "answer_shape",
    "b",
    right=True,
    reason="Four heads, one row for each of the three target positions that ask, one column for "
    "each of the five source words that are asked. The map is not square.",
)
choice(
    "answer_shape",
    "c",
    reason="Eight would be source and target joined into one text. Some models do that, but in "
    "cross-attention rows and columns stay apart: three ask, five are asked.",
)
choice(
    "answer_shape",
    "d",
    reason="That is the shape of the decoder's self-attention, where the three target positions "
    "look at each other. In cross-attention the columns are the source's.",
)
choice(
    "answer_bug",
    "a",
    reason="The source is complete and does not change while the translation is written. So its "
    "memory is computed once. That is right, and it saves time; translate does it too.",
)
choice(
    "answer_bug",
    "b",
    reason="decode makes its own causal mask, look into the class. And only the last position is "
    "used here, which may see everything before it anyway.",
)
choice(
    "answer_bug",
    "c",
    right=True,
    reason="The sentences are sorted by length, and the results are never put back. Sentences of "
    "one length keep their order, so there nothing shows. Every translation is right, for a "
    "sentence at another place of the list.",
)
choice(
    "answer_bug",
    "d",
    reason="It does go on, but the causal mask keeps later words from changing earlier logits, "
    "and the text is cut at the first <end>. That costs time, not correctness.",
)
choice(
    "answer_row",
    "a",
    reason="This row reads 'negro'. When it looks at the source, 'negro' is written already: the "
    "row is busy with the next word, 'duerme'.",
)
choice(
    "answer_row",
    "b",
    right=True,
    reason="The row that reads 'gato' has to say what comes next, 'negro'. So this is where the "
    "model needs 'black'. The label of a row is what it reads; what it looks for is one "
    "word further.",
)
choice(
    "answer_row",
    "c",
    reason="The row that reads <start> says the first word, 'el'. 'negro' is the third word, so "
    "it is the third row that says it.",
)
choice(
    "answer_row",
    "d",
    reason="English word 1 is a column of the map, not a row. Columns are asked; rows ask, and "
    "they belong to the Spanish tokens.",
)
