"""Wrong implementations of lesson 18, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("dequantise"):
    wrong(
        "low_numbers_of_the_row_first",
        """
        if blocks.dtype != np.uint8 or blocks.shape[-1] != 20:
            raise ValueError(blocks.shape)
        d = np.ascontiguousarray(blocks[..., 0:2]).view("<f2").astype(np.float32)
        m = np.ascontiguousarray(blocks[..., 2:4]).view("<f2").astype(np.float32)
        low, high = (d * numbers + m for numbers in (blocks[..., 4:] & 15, blocks[..., 4:] >> 4))
        rows = blocks.shape[:-2]
        return np.concatenate([low.reshape(*rows, -1), high.reshape(*rows, -1)], axis=-1)
        """,
        "In a row the low four bits of all blocks come first, and then all high ones. Each block's 32 numbers stay "
        "side by side: join the two before the blocks are put into a row.",
        seen="answers written blind",
    )

    wrong(
        "neighbours_in_a_byte",
        {"np.concatenate([pairs & 15, pairs >> 4], axis=-1)": "np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(*pairs.shape[:-1], 32)"},
        "Your numbers come out as if a byte held two neighbours. The two numbers of a byte lie 16 apart: "
        "first come the low halves of all 16 bytes, then the high halves.",
        seen="readers of other 4-bit formats, which do keep neighbours",
    )
    wrong(
        "halves_of_the_byte_exchanged",
        {"[pairs & 15, pairs >> 4]": "[pairs >> 4, pairs & 15]"},
        "The first 16 numbers of your blocks are those of the high four bits. They stand in the low "
        "four, and the last 16 in the high four.",
    )
    wrong(
        "high_bits_not_moved_down",
        {"pairs >> 4": "pairs & 0xF0"},
        "The last 16 numbers of your blocks are 16 times too large: the high four bits of a byte have to be "
        "moved down before they are a number from 0 to 15.",
    )
    wrong(
        "whole_byte_as_the_low_number",
        {"pairs & 15": "pairs"},
        "The first 16 numbers of your blocks go up to 255. Of each byte only the low four bits belong to "
        "them.",
    )
    wrong(
        "centred_levels",
        {"d * numbers + m": "d * (numbers.astype(np.float32) - 8)"},
        "Your weights are d * (number - 8), without the block's offset. That is the format Q4_0; in Q4_1 "
        "each block brings its own m: d * number + m.",
        seen="the neighbouring format Q4_0 of the same library",
    )
    wrong(
        "no_offset",
        {"d * numbers + m": "d * numbers"},
        "Your weights lack the offset m, so none of a block with positive d is below 0.",
    )
    wrong(
        "offset_subtracted",
        {"d * numbers + m": "d * numbers - m"},
        "Your weights come out with the offset m taken away. It is added.",
    )
    wrong(
        "scale_and_offset_exchanged",
        {"d * numbers + m": "m * numbers + d"},
        "The scale and the offset are exchanged: bytes 0 and 1 are d, which multiplies, and bytes 2 and 3 "
        "are m, which is added.",
    )
    wrong(
        "offset_in_levels",
        {"d * numbers + m": "d * (numbers + m)"},
        "The offset is multiplied by the scale, too. It is a weight, not a level: d * number + m.",
    )
    wrong(
        "high_byte_first",
        {'0:2]).view("<f2")': '0:2]).view(">f2")', '2:4]).view("<f2")': '2:4]).view(">f2")'},
        "d and m come out as if their high byte stood first. In this file the low byte does: little "
        "endian, '<f2'.",
    )
    wrong(
        "scale_as_a_whole_number",
        {
            'np.ascontiguousarray(blocks[..., 0:2]).view("<f2")': "(blocks[..., 0:1].astype(np.uint16) + 256 * blocks[..., 1:2])",
            'np.ascontiguousarray(blocks[..., 2:4]).view("<f2")': "(blocks[..., 2:3].astype(np.uint16) + 256 * blocks[..., 3:4])",
        },
        "d and m come out as whole numbers: two bytes are read as a number from 0 to 65535. They are the bits of a "
        "float16.",
    )
    wrong(
        "computed_in_half",
        {
            '0:2]).view("<f2").astype(np.float32)': '0:2]).view("<f2")',
            '2:4]).view("<f2").astype(np.float32)': '2:4]).view("<f2")',
            "(d * numbers + m)": "(d * numbers + m).astype(np.float32)",
        },
        "Your numbers are right to three digits: it comes out as if d * number + m were computed in "
        "float16. Convert d and m to float32 first.",
    )
    wrong(
        "stays_half",
        {'0:2]).view("<f2").astype(np.float32)': '0:2]).view("<f2")', '2:4]).view("<f2").astype(np.float32)': '2:4]).view("<f2")'},
        "Your result is float16. d and m are, but the result should be float32, and be computed so.",
    )
    wrong(
        "blocks_not_joined",
        {".reshape(*blocks.shape[:-2], -1)": ""},
        "Your result keeps an axis for the blocks. The blocks of a row stand side by side: (..., 32 * n).",
    )
    wrong(
        "everything_in_one_row",
        {".reshape(*blocks.shape[:-2], -1)": ".reshape(-1)"},
        "Your result is one long row. The leading axes stay, only the blocks of each row are joined.",
    )
    wrong(
        "numbers_of_the_blocks_mixed",
        {"(d * numbers + m)": "np.swapaxes(d * numbers + m, -1, -2)"},
        "The numbers of a row come out block by block in turns: first number 0 of every block. A block's "
        "32 numbers stay side by side.",
    )
    wrong(
        "needs_side_by_side",
        {"np.ascontiguousarray(blocks[..., 0:2])": "blocks[..., 0:2]", "np.ascontiguousarray(blocks[..., 2:4])": "blocks[..., 2:4]"},
        "It stops where the bytes of a block do not lie one after the other in memory: .view with "
        "another size of number needs that. Copy the two bytes first.",
    )
    wrong(
        "works_in_place",
        {"pairs = blocks[..., 4:]": "blocks[..., 4:] = blocks[..., 4:]\npairs = blocks[..., 4:].copy()\nblocks[..., 4:] >>= 4"},
        "Your function writes into blocks. A memory map of a file cannot be written into, and who called you "
        "still needs the bytes.",
    )
    wrong(
        "any_dtype",
        {"blocks.dtype != np.uint8 or blocks": "blocks"},
        "Another dtype than uint8 is let through. It should be a ValueError: such numbers are no bytes.",
    )
    wrong(
        "any_width",
        {" or blocks.shape[-1] != 20": ""},
        "Blocks of another width than 20 bytes are not refused with a ValueError. They belong to another format.",
    )

with exercise("LlamaBlock"):
    wrong(
        "positions_as_places_of_keys",
        {"mask = torch.ones(n, n_k, dtype=torch.bool).tril(n_k - n)": "mask = positions[:, None] >= torch.arange(n_k)"},
        "Your causal mask compares positions with the places of keys in the row. Where positions do not begin at 0, or leave "
        "gaps, a query sees later tokens. Which keys are later depends on n and n_k alone.",
        seen="answers written blind",
    )

    wrong(
        "mask_kept_by_its_rows",
        {
            "self.feed_forward_norm = RMSNorm(d_model, eps)": "self.feed_forward_norm = RMSNorm(d_model, eps)\nself.masks = {}",
            "mask = torch.ones(n, n_k, dtype=torch.bool).tril(n_k - n)": "mask = self.masks.setdefault(n, torch.ones(n, n_k, dtype=torch.bool).tril(n_k - n))",
        },
        "Your block keeps the mask of an earlier call with as many tokens. With a cache there are more keys now: the mask "
        "depends on n and on n_k.",
        seen="answers written blind",
    )

    wrong(
        "turned_after_the_cache_from_0",
        {
            "K = apply_rotary(split_heads(self.W_k(h), self.num_kv_heads), positions, self.base)": "K = split_heads(self.W_k(h), self.num_kv_heads)",
            "if mask is None:": "K = apply_rotary(K, torch.arange(K.shape[-2]), self.base)\nif mask is None:",
        },
        "The cache is handed keys that have not been turned, and all keys are turned afterwards as if they stood at 0, 1, 2 and so on. "
        "Turn each key once, at the position given, before it goes into the cache.",
        seen="answers written blind",
    )

    wrong(
        "post_norm",
        {
            "h = self.attention_norm(x)": "h = x",
            "x = x + self.W_o(combine_heads(heads))": "x = self.attention_norm(x + self.W_o(combine_heads(heads)))",
            "x + self.feed_forward(self.feed_forward_norm(x)), weights": "self.feed_forward_norm(x + self.feed_forward(x)), weights",
        },
        "Your block norms the sums, as the paper of 2017 did. Here each part reads a normed copy of the "
        "stream, and adds to the stream itself.",
    )
    wrong(
        "the_stream_is_normed",
        {"h = self.attention_norm(x)": "h = x = self.attention_norm(x)"},
        "The first sum begins with the normed x. The norm is for the attention's eyes only: it is x itself to which "
        "its result is added.",
    )
    wrong(
        "second_norm_kept_in_the_stream",
        {"return x + self.feed_forward(self.feed_forward_norm(x)), weights": "x = self.feed_forward_norm(x)\nreturn x + self.feed_forward(x), weights"},
        "The second sum begins with the normed stream. Only SwiGLU reads the norm; what it makes is added to "
        "the stream as it was.",
    )
    wrong(
        "no_first_residual",
        {"x = x + self.W_o(combine_heads(heads))": "x = self.W_o(combine_heads(heads))"},
        "The attention's result takes the place of x. It is added to it.",
    )
    wrong(
        "no_second_residual",
        {"return x + self.feed_forward": "return self.feed_forward"},
        "Your output is what SwiGLU makes. It should be added to the stream behind the attention.",
    )
    wrong(
        "side_by_side",
        {"x = x + self.W_o(combine_heads(heads))\nreturn x + self.feed_forward(self.feed_forward_norm(x)), weights": "return x + self.W_o(combine_heads(heads)) + self.feed_forward(self.feed_forward_norm(x)), weights"},
        "The feed-forward reads x as it was before the attention. It comes afterwards, and reads the norm of the sum.",
        seen="GPT-J and other models with parallel blocks",
    )
    wrong(
        "norms_exchanged",
        {"h = self.attention_norm(x)": "h = self.feed_forward_norm(x)", "self.feed_forward(self.feed_forward_norm(x))": "self.feed_forward(self.attention_norm(x))"},
        "The two norms are exchanged. attention_norm stands in front of the attention, feed_forward_norm in front of "
        "SwiGLU; their gammas differ.",
    )
    wrong(
        "no_second_norm",
        {"self.feed_forward(self.feed_forward_norm(x))": "self.feed_forward(x)"},
        "SwiGLU reads the stream as it is. In front of it stands feed_forward_norm.",
    )
    wrong(
        "no_turning",
        {"apply_rotary(split_heads(self.W_q(h), self.num_heads), positions, self.base)": "split_heads(self.W_q(h), self.num_heads)",
         "apply_rotary(split_heads(self.W_k(h), self.num_kv_heads), positions, self.base)": "split_heads(self.W_k(h), self.num_kv_heads)"},
        "Your weights are those of queries and keys that have not been turned: the block does not see positions.",
    )  # fmt: skip
    wrong(
        "only_queries_turned",
        {"apply_rotary(split_heads(self.W_k(h), self.num_kv_heads), positions, self.base)": "split_heads(self.W_k(h), self.num_kv_heads)"},
        "Only the queries are turned. Keys have to be turned, too: what counts is the difference of the two angles.",
    )
    wrong(
        "turned_before_the_split",
        {"apply_rotary(split_heads(self.W_q(h), self.num_heads), positions, self.base)": "split_heads(apply_rotary(self.W_q(h), positions, self.base), self.num_heads)",
         "apply_rotary(split_heads(self.W_k(h), self.num_kv_heads), positions, self.base)": "split_heads(apply_rotary(self.W_k(h), positions, self.base), self.num_kv_heads)"},
        "Queries and keys come out as if they were turned before they are split into heads: the speeds then run over all "
        "features, so that each head gets other ones. Each head is turned by itself.",
    )  # fmt: skip
    wrong(
        "values_turned_too",
        {"V = split_heads(self.W_v(h), self.num_kv_heads)": "V = apply_rotary(split_heads(self.W_v(h), self.num_kv_heads), positions, self.base)"},
        "The values are turned, too. Positions belong into the scores only.",
    )
    wrong(
        "halves_layout",
        {"h = self.attention_norm(x)": """
            h = self.attention_norm(x)

            def apply_rotary(y, positions, base):
                half = y.shape[-1] // 2
                angles = positions[:, None] * base ** (-torch.arange(half, dtype=torch.float64) / half)
                cos, sin = angles.cos().to(y.dtype), angles.sin().to(y.dtype)
                first, second = y[..., :half], y[..., half:]
                turned = [first * cos - second * sin, first * sin + second * cos]
                return torch.cat(turned, dim=-1)
         """},
        "Your queries and keys are turned as in the authors' own source: feature i with feature i + d_head / 2. In this "
        "file, and in lesson 11's apply_rotary, the pairs are neighbours.",
        seen="the published source of Llama",
    )  # fmt: skip
    wrong(
        "positions_counted_anew",
        {"h = self.attention_norm(x)": "h = self.attention_norm(x)\npositions = torch.arange(x.shape[-2])"},
        "Your weights are those of positions 0, 1, 2, ..., whatever positions are given. With a cache the new tokens "
        "stand further on.",
        seen="decoders that read prompts well and write nonsense",
    )
    wrong(
        "default_base",
        {"positions, self.base)\nK": "positions)\nK", "positions, self.base)\nV": "positions)\nV"},
        "The base that the block was given has no effect: it comes out as with 10,000. This model was trained with 100,000.",
    )
    wrong(
        "default_eps",
        {"self.attention_norm = RMSNorm(d_model, eps)": "self.attention_norm = RMSNorm(d_model)", "self.feed_forward_norm = RMSNorm(d_model, eps)": "self.feed_forward_norm = RMSNorm(d_model)"},
        "The eps that the block was given has no effect on the output: the norms have another one, as RMSNorm's default is.",
    )
    wrong(
        "heads_in_turns",
        {"shared.repeat_interleave(group, dim=-3)": "torch.cat([shared] * group, dim=-3)"},
        "Your query heads use the key-value heads in turns, 0 1 0 1 0 1. Neighbours share: with 6 and 2 it is 0 0 0 1 1 1.",
        seen="repeat in place of repeat_interleave",
    )
    wrong(
        "shared_before_the_cache",
        {
            "if cache is not None:": "group = self.num_heads // self.num_kv_heads\nK, V = (shared.repeat_interleave(group, dim=-3) for shared in (K, V))\nif cache is not None:",
            "group = self.num_heads // self.num_kv_heads\nK, V = (shared.repeat_interleave(group, dim=-3) for shared in (K, V))\nheads": "heads",
        },
        "The cache is handed keys and values of every query head. The few that are shared go into it, and are repeated afterwards: "
        "a small cache is what sharing is for.",
    )
    wrong(
        "turned_after_the_cache",
        {
            "K = apply_rotary(split_heads(self.W_k(h), self.num_kv_heads), positions, self.base)": "K = split_heads(self.W_k(h), self.num_kv_heads)",
            "if mask is None:": "K = apply_rotary(K, torch.arange(K.shape[-2]) + positions[-1] + 1 - K.shape[-2], self.base)\nif mask is None:",
        },
        "The cache is handed keys that have not been turned. They are turned first, each once, at the position given, and kept so.",
    )
    wrong(
        "old_keys_turned_again",
        {
            "if mask is None:": "if cache is not None:\n    K = apply_rotary(K, torch.arange(K.shape[-2]), self.base)\nif mask is None:",
        },
        "With a cache the weights come out as if keys were turned once more after they were kept. What the cache returns is turned already.",
    )
    wrong(
        "cache_left_out",
        {"if cache is not None:\n    K, V = cache.append(K, V)": ""},
        "The cache is not used: each piece sees itself alone.",
    )
    wrong(
        "new_keys_only",
        {"K, V = cache.append(K, V)": "cache.append(K, V)"},
        "What the cache returns is thrown away: each piece is kept, but sees itself alone.",
    )
    wrong(
        "mask_of_the_first_rows",
        {".tril(n_k - n)": ".tril()"},
        "With a cache, a new token sees the oldest keys only: your causal mask is that of the first rows of the square. The new "
        "tokens are its last rows.",
    )
    wrong(
        "no_causal_mask",
        {"mask = torch.ones(n, n_k, dtype=torch.bool).tril(n_k - n)": "mask = torch.ones(n, n_k, dtype=torch.bool)"},
        "Without a mask every query sees every key, also later ones. mask=None is causal here.",
    )
    wrong(
        "own_key_hidden",
        {".tril(n_k - n)": ".tril(n_k - n - 1)"},
        "A token does not see itself. It sees the keys up to its own, that one included.",
    )
    wrong(
        "mask_and_causal",
        {
            "if mask is None:\n    n, n_k = x.shape[-2], K.shape[-2]\n    mask = torch.ones(n, n_k, dtype=torch.bool).tril(n_k - n)": "n, n_k = x.shape[-2], K.shape[-2]\ncausal = torch.ones(n, n_k, dtype=torch.bool).tril(n_k - n)\nmask = causal if mask is None else mask & causal",
        },
        "Your given mask only hides more: later keys stay hidden where it allows them. A mask that is given takes the place "
        "of the causal one.",
    )
    wrong(
        "mask_ignored",
        {"if mask is None:": "if True:"},
        "A mask that is given has no effect: the weights are the causal ones.",
    )
    wrong(
        "mask_turned_round",
        {"if mask is None:": "if mask is not None:\n    mask = ~mask\nelse:"},
        "Your given mask hides what it should show. True = may attend.",
        seen="nn.MultiheadAttention, whose attn_mask has True = hidden",
    )
    wrong(
        "nothing_to_attend_is_even",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": "scores = (Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])).masked_fill(~mask, -1e9)\nweights = torch.softmax(scores, dim=-1)\nheads = weights @ V",
        },
        "A query that may attend to nothing attends to everything evenly: a row of -1e9 is a row of equal numbers. Its weights "
        "should be 0.",
    )
    wrong(
        "low_number_then_zeros",
        {
            "heads, weights = torch_scaled_dot_product_attention(Q, K, V, mask)": """
                scores = (Q @ K.transpose(-1, -2) / math.sqrt(Q.shape[-1])).masked_fill(~mask, -1e4)
                weights = torch.softmax(scores, dim=-1) * mask
                heads = weights @ V
            """,
        },
        "It comes out as if a forbidden score became a number, or were lowered by one, that is not low "
        "enough: an allowed score can be lower still, and then its key has no weight.",
        seen="early Hugging Face models",
    )

    wrong(
        "scaled_by_the_model",
        {"Q,": "Q * (Q.shape[-1] / x.shape[-1]) ** 0.5,"},
        "Your scores are divided by the root of d_model. It is the root of a head's width.",
    )
    wrong(
        "with_biases",
        {"self.W_q = nn.Linear(d_model, d_model, bias=False)": "self.W_q = nn.Linear(d_model, d_model)", "self.W_o = nn.Linear(d_model, d_model, bias=False)": "self.W_o = nn.Linear(d_model, d_model)"},
        "Some of your linear layers have a bias. None of this model's has.",
    )
    wrong(
        "no_errors",
        {"d_model % num_heads or num_heads % num_kv_heads": "False"},
        "Head counts that do not divide are not refused when the block is made. They are a ValueError.",
    )
    wrong(
        "weights_of_the_groups",
        {"return x + self.feed_forward(self.feed_forward_norm(x)), weights": "return x + self.feed_forward(self.feed_forward_norm(x)), weights.unflatten(-3, (-1, group)).mean(-3)"},
        "Your weights have one map for each key-value head. Each query head has its own map: (..., num_heads, n, n_k).",
    )

with exercise("load_layer"):
    wrong(
        "gate_and_up_exchanged",
        {'"ffn_gate": network.gate.weight': '"ffn_gate": network.up.weight', '"ffn_up": network.up.weight': '"ffn_up": network.gate.weight'},
        "gate and up are exchanged. Their shapes are equal, so only the names tell: ffn_gate belongs into gate, through which silu goes.",
        seen="converters that name the matrices w1, w2, w3",
    )
    wrong(
        "norms_exchanged",
        {'"attn_norm": block.attention_norm.gamma': '"attn_norm": block.feed_forward_norm.gamma', '"ffn_norm": block.feed_forward_norm.gamma': '"ffn_norm": block.attention_norm.gamma'},
        "The two norms are exchanged. attn_norm belongs into attention_norm, ffn_norm into feed_forward_norm.",
    )
    wrong(
        "keys_and_values_exchanged",
        {'"attn_k": block.W_k.weight': '"attn_k": block.W_v.weight', '"attn_v": block.W_v.weight': '"attn_v": block.W_k.weight'},
        "W_k and W_v are exchanged. Their shapes are equal, so only the names tell.",
    )
    wrong(
        "queries_and_output_exchanged",
        {'"attn_q": block.W_q.weight': '"attn_q": block.W_o.weight', '"attn_output": block.W_o.weight': '"attn_output": block.W_q.weight'},
        "W_q and W_o are exchanged. Their shapes are equal, so only the names tell.",
    )
    wrong(
        "transposed",
        {"pairs.append((parameter, tensor))": "pairs.append((parameter, tensor.T if tensor.ndim == 2 and tensor.shape[0] == tensor.shape[1] else tensor))"},
        "Square matrices come out turned over. They lie in the file as nn.Linear keeps them, (outputs, inputs).",
        seen="GPT-2's file, which keeps (inputs, outputs)",
    )
    wrong(
        "norms_forgotten",
        {'"attn_norm": block.attention_norm.gamma,': "", '"ffn_norm": block.feed_forward_norm.gamma,': ""},
        "The norms keep their ones. A layer has nine tensors, and two of them are the gammas.",
    )
    wrong(
        "one_layer_on",
        {"blk.{layer}.{part}": "blk.{layer + 1}.{part}"},
        "It looks for the layer behind the one that is asked for. Layers count from 0, in the file, too.",
    )
    wrong(
        "first_that_begins_so",
        {
            'name = f"blk.{layer}.{part}.weight"': 'name = next((n for n in tensors if n.startswith(f"blk.{layer}") and n.endswith(f".{part}.weight")), f"blk.{layer}.{part}.weight")',
        },
        "Layer 1 is confused with layer 10: the name is found by its beginning. Ask for the whole name.",
    )
    wrong(
        "copies_while_it_looks",
        {"pairs.append((parameter, tensor))": "parameter.data.copy_(tensor)\npairs.append((parameter, tensor))"},
        "After an error some parameters have the new numbers already. First look at all nine, then copy.",
    )
    wrong(
        "missing_names_skipped",
        {'raise KeyError(f"{name} is not among the tensors")': "continue"},
        "A missing name is passed over: the block keeps random numbers there, and nobody is told. It is a KeyError.",
    )
    wrong(
        "error_without_the_name",
        {'raise KeyError(f"{name} is not among the tensors")': 'raise KeyError(part)'},
        "The message of your KeyError does not say the whole published name, such as blk.1.ffn_norm.weight.",
    )
    wrong(
        "shapes_not_looked_at",
        {"if tensor.shape != parameter.shape:": "if False:"},
        "A tensor of another shape is no ValueError with its name: copy_ stops by itself, or broadcasts silently. Compare the shapes first.",
    )
    wrong(
        "sizes_only",
        {"if tensor.shape != parameter.shape:": "if tensor.numel() != parameter.numel():"},
        "A tensor with as many numbers in another shape, or one that broadcasts, passes. Compare the shapes, not the counts.",
    )
    wrong(
        "one_shape_in_the_message",
        {'raise ValueError(f"{name} has shape {given}, the block needs {wanted}")': 'raise ValueError(f"{name} has the wrong shape {given}")'},
        "The message of your ValueError does not say both shapes.",
    )
    wrong(
        "new_parameters",
        {
            """
            with torch.no_grad():
                for parameter, tensor in pairs:
                    parameter.copy_(tensor)
            """: """
            for parameter, tensor in pairs:
                for module in block.modules():
                    for own, held in list(module._parameters.items()):
                        if held is parameter:
                            setattr(module, own, nn.Parameter(tensor.clone().to(parameter.dtype)))
            """,
        },
        "The block has new parameter objects. An optimizer that was made before holds the old ones; copy into them.",
    )
    wrong(
        "shared_memory",
        {"parameter.copy_(tensor)": "parameter.data = tensor"},
        "The parameters share their memory with tensors, or take over their precision: training would write into them. Copy the numbers.",
    )
    wrong(
        "no_longer_trained",
        {"parameter.copy_(tensor)": "parameter.copy_(tensor)\nparameter.requires_grad_(False)"},
        "The parameters can no longer be trained. Whether they should is not load_layer's to say.",
    )

with exercise("chat_tokens"):
    wrong(
        "nothing_for_the_answer",
        {'return [*ids, start, *encode("assistant\\n")]': "return ids"},
        "Your text ends with the last message. Behind it stands the beginning of the answer: start, and 'assistant' with a newline. "
        "Without it the model may write the user's next message.",
    )
    wrong(
        "answer_begins_after_each",
        {'ids += [start, *encode(role + "\\n" + content), end, *encode("\\n")]': 'ids += [start, *encode(role + "\\n" + content), end, *encode("\\n")]\nif role == "user" and message is not messages[-1]:\n    ids += [start, *encode("assistant\\n")]'},
        "An answer is begun behind messages in the middle, too. It is begun once, at the end.",
    )
    wrong(
        "answer_without_newline",
        {'encode("assistant\\n")': 'encode("assistant")'},
        "The newline behind the last 'assistant' is missing. In every message the model was trained on it stands there.",
    )
    wrong(
        "answer_closed",
        {'return [*ids, start, *encode("assistant\\n")]': 'return [*ids, start, *encode("assistant\\n"), end]'},
        "The beginning of the answer is closed at once, so there is nothing to write.",
    )
    wrong(
        "no_newline_between",
        {', end, *encode("\\n")]': ", end]"},
        "Behind the end of a message stands encode of a newline. It is missing.",
    )
    wrong(
        "newline_before_the_end",
        {'content), end, *encode("\\n")]': 'content), *encode("\\n"), end]'},
        "The newline stands inside the message, before its end. It belongs behind it.",
    )
    wrong(
        "encoded_in_pieces",
        {'encode(role + "\\n" + content)': 'encode(role + "\\n"), *encode(content)'},
        "Role and content are encoded one by one. Tokens may reach over the newline, so the whole text goes through encode in one call.",
        seen="templates that put ids together piece by piece",
    )
    wrong(
        "no_role",
        {'encode(role + "\\n" + content)': "encode(content)"},
        "The roles are missing: the model cannot see who said what.",
    )
    wrong(
        "blank_for_the_newline",
        {'role + "\\n" + content': 'role + " " + content'},
        "Between role and content stands a newline, not a blank.",
    )
    wrong(
        "stripped",
        {'message["content"]': 'message["content"].strip()'},
        "Blanks or newlines at the edge of a content are lost. Nothing is stripped.",
        seen="chat templates that trim",
    )
    wrong(
        "typed_tokens_let_through",
        """
        if not messages:
            raise ValueError("messages is empty")
        import re

        start, end = special["<|im_start|>"], special["<|im_end|>"]

        def all_of(text):
            parts = re.split(r"(<\\|im_(?:start|end)\\|>)", text)
            return [i for part in parts if part for i in ([special[part]] if part in special else encode(part))]

        ids = []
        for message in messages:
            role, content = message["role"], message["content"]
            if role not in ("system", "user", "assistant"):
                raise ValueError(f"role {role!r}")
            ids += [start, *all_of(role + "\\n" + content), end, *encode("\\n")]
        return [*ids, start, *encode("assistant\\n")]
        """,
        "What a user types becomes a special token where it spells one. It stays text; otherwise anybody can end a message and forge the next.",
        seen="tokenizers that find special tokens in any string",
    )
    wrong(
        "special_tokens_as_text",
        {"start, end = special[\"<|im_start|>\"], special[\"<|im_end|>\"]": "",
         "[start, *encode(role + \"\\n\" + content), end, *encode(\"\\n\")]": "encode(f\"<|im_start|>{role}\\n{content}<|im_end|>\\n\")",
         "[*ids, start, *encode(\"assistant\\n\")]": "[*ids, *encode(\"<|im_start|>assistant\\n\")]"},
        "Your start and end go through encode and become text. Their ids stand in special; encode never gives them.",
    )  # fmt: skip
    wrong(
        "default_system_message",
        {"ids = []": 'ids = []\nif messages[0]["role"] != "system":\n    ids = [start, *encode("system\\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"), end, *encode("\\n")]'},
        "A system message is added that nobody sent. No message is added here.",
        seen="the template in this model's own file",
    )
    wrong(
        "start_and_end_exchanged",
        {'start, end = special["<|im_start|>"], special["<|im_end|>"]': 'end, start = special["<|im_start|>"], special["<|im_end|>"]'},
        "Start and end are exchanged.",
    )
    wrong(
        "first_message_only",
        {"for message in messages:": "for message in messages[:1]:"},
        "Only the first message is there. The model has no other memory than this text, so all of them stand in it.",
    )
    wrong(
        "last_message_only",
        {"for message in messages:": "for message in messages[-1:]:"},
        "Only the last message is there. The model has no other memory than this text, so all of them stand in it.",
    )
    wrong(
        "any_role",
        {"if role not in": "if False and role not in"},
        "Another role than the three is let through. It should be a ValueError: the model has never seen it.",
    )
    wrong(
        "capitals_do_not_count",
        {"if role not in": "if role.strip().lower() not in"},
        "Roles with capitals or blanks are let through. They are a ValueError: 'User' is another text than 'user'.",
    )
    wrong(
        "no_message_is_fine",
        {'raise ValueError("messages is empty: there is nothing to answer")': 'return [special["<|im_start|>"], *encode("assistant\\n")]'},
        "No message at all gives the beginning of an answer. It should be a ValueError.",
    )
    wrong(
        "writes_into_encodes_list",
        """
        if not messages:
            raise ValueError("messages is empty")
        ids = []
        for message in messages:
            if message["role"] not in ("system", "user", "assistant"):
                raise ValueError(message["role"])
            one = encode(message["role"] + "\\n" + message["content"])
            one.insert(0, special["<|im_start|>"])
            one.append(special["<|im_end|>"])
            ids += one + encode("\\n")
        return [*ids, special["<|im_start|>"], *encode("assistant\\n")]
        """,
        "You put ids into a list that encode returned. It may keep that list for the next time: begin one of your own.",
    )

with exercise("generate"):
    wrong(
        "reads_everything_again",
        {"unread = [token]": "unread = [*prompt, *new]"},
        "step is handed the whole text again each time. It remembers what it has read: hand it the new token alone.",
        seen="lesson 10's way of writing, without a cache",
    )
    wrong(
        "all_new_ones_again",
        {"unread = [token]": "unread = list(new)"},
        "step is handed all new tokens again each time. It remembers what it has read: hand it the newest alone.",
    )
    wrong(
        "prompt_one_by_one",
        {
            "new, unread = [], list(prompt)": "new, unread = [], [prompt[-1]]\nif max_new:\n    for early in prompt[:-1]:\n        step([early])",
        },
        "The prompt is read token by token. It goes to step once, as one list: a model reads many tokens nearly as fast as one.",
    )
    wrong(
        "prompt_in_the_result",
        {"return new": "return [*prompt, *new]"},
        "Your result begins with the prompt. It should hold the new tokens alone.",
    )
    wrong(
        "stop_in_the_result",
        {"if token == stop:\n    break\nnew.append(token)": "new.append(token)\nif token == stop:\n    break"},
        "Your result holds stop. It ends the writing and does not belong to it.",
    )
    wrong(
        "stop_not_asked",
        {"if token == stop:": "if False:"},
        "It goes on behind stop, until max_new. At stop it ends.",
    )
    wrong(
        "stop_skipped",
        {"if token == stop:\n    break\nnew.append(token)": "if token != stop:\n    new.append(token)\nelif len(new) + 1 >= max_new or prompt[-1] is None:\n    break\nelse:\n    max_new -= 1"},
        "It leaves stop away, and goes on behind it. At stop it ends.",
    )
    wrong(
        "one_too_many",
        {"while len(new) < max_new:": "while len(new) <= max_new:"},
        "It writes one token more than max_new.",
    )
    wrong(
        "one_too_few",
        {"while len(new) < max_new:": "while len(new) < max_new - 1:"},
        "It writes one token less than max_new.",
    )
    wrong(
        "prompt_counts",
        {"while len(new) < max_new:": "while len(prompt) + len(new) < max_new:"},
        "The tokens of the prompt count against max_new. Only new ones do.",
    )
    wrong(
        "reads_the_last_one_too",
        {"new, unread = [], list(prompt)": "new, logits = [], step(list(prompt)) if max_new else None",
         "token = pick(step(unread))": "token = pick(logits)", "unread = [token]": "logits = step([token])"},
        "step is handed a token that nobody asks about: the last one. Reading costs a passage of all weights; read when you have to pick.",
    )  # fmt: skip
    wrong(
        "reads_stop_too",
        {"if token == stop:\n    break": "if token == stop:\n    step([token])\n    break"},
        "step is handed stop. Nobody asks what follows it.",
    )
    wrong(
        "reads_for_nothing",
        {"new, unread = [], list(prompt)": "new, unread = [], list(prompt)\nif not max_new:\n    step(unread)"},
        "With max_new = 0 the prompt is read all the same. Nothing is asked, so nothing is read.",
    )
    wrong(
        "picks_by_itself",
        {"pick(step(unread))": "int(step(unread).argmax())"},
        "Your function takes the largest logit itself. The choice is pick's.",
    )
    wrong(
        "picks_twice",
        {"token = pick(step(unread))\nif token == stop:": "logits = step(unread)\ntoken = pick(logits)\nif pick(logits) == stop:"},
        "pick is called more than once for a reading. If it draws, the second token is another one.",
    )
    wrong(
        "stop_in_the_prompt_ends",
        {"new, unread = [], list(prompt)": "new, unread = [], list(prompt)\nif stop in prompt:\n    return []"},
        "A stop in the prompt ends the writing before it has begun. A chat holds one behind each message.",
    )
    wrong(
        "the_callers_list",
        {"list(prompt)": "prompt"},
        "step is handed the caller's own list. It may keep it and write into it: hand it a copy.",
    )
    wrong(
        "writes_into_the_prompt",
        {"new.append(token)": "new.append(token)\nprompt.append(token)"},
        "Your function writes into prompt. It should be as before after the call.",
    )
    wrong(
        "a_number_for_a_list",
        {"unread = [token]": "unread = token"},
        "After the prompt, step is handed a number. It takes a list, of one token then.",
    )
    wrong(
        "empty_prompt_read",
        {"if not prompt:": "if False:"},
        "An empty prompt is not refused. It is a ValueError: there is nothing to continue.",
    )
    wrong(
        "empty_prompt_gives_nothing",
        {'raise ValueError("prompt is empty: there is nothing to continue")': "return []"},
        "An empty prompt gives an empty result. It is a ValueError: there is nothing to continue.",
    )

choice("answer_bits", "a", reason="Three bits a level, but the block's d and m have to be kept as well: four bytes for 32 weights.")
choice("answer_bits", "b", reason="d and m are four bytes, so 32 bits for 32 weights: one bit each, not half a one.")
choice("answer_bits", "c", reason="32 times 3 bits, and 32 bits for d and m: 128 bits, four for each weight. Sixteen levels take five.", right=True)
choice("answer_bits", "d", reason="That is what the sixteen levels of this file take: four bits and one.")

choice("answer_silent_bug", "a", reason="They fall from 1 to nearly 1 / base, exactly as in lesson 11.")
choice("answer_silent_bug", "b", reason="Only differences of positions count, so where they begin does not matter.")
choice(
    "answer_silent_bug",
    "c",
    reason="The file keeps the pairs side by side; the friend pairs feature i with i + d_head / 2. Speeds and angles are right, and turn the wrong pairs.",
    right=True,
)
choice("answer_silent_bug", "d", reason="The signs are right: (1, 0) becomes (cos, sin). With both signs changed, queries and keys would turn backwards, and that the model would notice.")

choice("answer_typed", "a", reason="Look at the third answer: kept as text, the typed words still made it a pirate.")
choice(
    "answer_typed",
    "b",
    reason="Start and end come from the program alone, so who speaks where is sure. What is said is read like any text, and persuades like any text.",
    right=True,
)
choice("answer_typed", "c", reason="The characters are the same, the tokens are not: one id that was trained as a boundary, or several that spell it.")
choice("answer_typed", "d", reason="It sees tokens that spell an odd word. Nothing tells it why they are there.")

choice("answer_positions", "a", reason="All digits agree, on both texts: that is no chance.")
choice(
    "answer_positions",
    "b",
    reason="Position 0 means angle 0: nothing is turned, neither the query nor the key that is kept. So it is the unturned model.",
    right=True,
)
choice("answer_positions", "c", reason="The cache holds all earlier keys. If it did not, the loss would be far higher.")
choice("answer_positions", "d", reason="It keeps what it is handed, turned by the position given. Only that this position is 0.")
