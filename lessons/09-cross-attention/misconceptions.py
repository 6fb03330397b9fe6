"""Wrong implementations of lesson 9, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

# The right answer in few words, of which the wrong ones below are changes.
SHORT_DECODER_BLOCK = """
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
        return self.norm3(x + self.feed_forward(x)), weights
"""


with exercise("DecoderBlock", base=SHORT_DECODER_BLOCK):
    wrong(
        "block_memory_asks",
        {"x, memory, mask=memory_mask": "memory, x"},
        "The memory asks and x is asked: there is one result for each memory position. The "
        "sequence that is being written needs something, so its positions are the queries; keys "
        "and values come from memory.",
        seen="public issues: query and key exchanged in cross-attention",
    )

    wrong(
        "block_values_from_x",
        {"mask=memory_mask": "x, memory_mask"},
        "The values of your cross-attention come from the decoder's own words. The weights say where in the memory to "
        "look, so what is fetched must come from the memory as well.",
    )

    wrong(
        "block_cross_is_self_attention",
        {"x, memory, mask=memory_mask": "x"},
        "Your second attention never looks at memory: its keys and values are x again, so the "
        "source cannot influence the output.",
        seen="public issues: decoder that ignores its encoder",
    )

    wrong(
        "block_self_attention_looks_at_memory",
        {"mask=self_mask": "memory"},
        "Your first attention already looks at memory, so the block attends to the memory twice "
        "and never to the text that is being written. The first attention is for x alone.",
    )

    wrong(
        "block_joined_keys",
        {
            "x = self.norm1(x + attended)": """
                x = self.norm1(x + attended)
                lead = torch.broadcast_shapes(x.shape[:-2], memory.shape[:-2])
                both = (t.expand(*lead, *t.shape[-2:]) for t in (memory, x))
            """,
            "memory, mask=memory_mask": "torch.cat(list(both), -2)",
        },
        "Your second attention looks at memory and x joined together. In the paper the two are "
        "kept apart: one attention for the own text, another one for the memory.",
        seen="decoder-only models, which have one attention for everything",
    )

    wrong(
        "block_self_mask_lost",
        {"x, mask=self_mask": "x"},
        "self_mask has no effect where it should have one: a position sees the whole text, also "
        "what comes later. It belongs to the self-attention.",
    )

    wrong(
        "block_memory_mask_lost",
        {"memory, mask=memory_mask": "memory"},
        "memory_mask has no effect where it should have one: the cross-attention also looks at "
        "padding. It belongs to the cross-attention.",
        seen="public issues: padding of the source not masked in the decoder",
    )

    wrong(
        "block_masks_exchanged",
        {"mask=self_mask": "mask=memory_mask", "mask=memory_mask": "mask=self_mask"},
        "The two masks are exchanged. self_mask belongs to the self-attention, (n, n); "
        "memory_mask belongs to the cross-attention, (n, m).",
    )

    wrong(
        "block_self_mask_for_both",
        {"mask=memory_mask": "mask=self_mask"},
        "Your cross-attention uses self_mask, as the self-attention does. It looks at another "
        "sequence, with a mask of its own: memory_mask.",
    )

    wrong(
        "block_self_mask_inverted",
        {
            "attended, own = self.self_attention(x, mask=self_mask)": """
                hidden = None if self_mask is None else ~self_mask
                attended, own = self.self_attention(x, mask=hidden)
            """,
        },
        "Your self-attention uses self_mask the wrong way round. In this course True means: may "
        "attend. nn.TransformerDecoderLayer means the opposite.",
        seen="torch issues: opposite meaning of boolean masks",
    )

    wrong(
        "block_memory_mask_inverted",
        {
            "attended)": "attended); hidden = None if memory_mask is None else ~memory_mask",
            "mask=memory_mask": "mask=hidden",
        },
        "Your cross-attention uses memory_mask the wrong way round. In this course True means: "
        "may attend. nn.TransformerDecoderLayer means the opposite.",
        seen="torch issues: opposite meaning of boolean masks",
    )

    wrong(
        "block_causal_by_default",
        {
            "attended, own = self.self_attention(x, mask=self_mask)": """
                if self_mask is None:
                    self_mask = torch.tensor(causal_mask(x.shape[-2]))
                attended, own = self.self_attention(x, mask=self_mask)
            """,
        },
        "Without a self_mask your self-attention is causal. None should mask nothing: the caller "
        "decides.",
        seen="libraries in which decoders are causal by default",
    )

    wrong(
        "block_causal_always",
        {
            "attended, own = self.self_attention(x, mask=self_mask)": """
                triangle = torch.tensor(causal_mask(x.shape[-2]))
                self_mask = triangle if self_mask is None else self_mask & triangle
                attended, own = self.self_attention(x, mask=self_mask)
            """,
        },
        "Your self-attention hides what comes later, whatever self_mask says. The block should "
        "use the masks as they are; None masks nothing.",
        seen="libraries in which decoders are causal by default",
    )

    wrong(
        "block_causal_cross_attention",
        {
            "x = self.norm1(x + attended)": """
                x = self.norm1(x + attended)
                early = torch.ones(x.shape[-2], memory.shape[-2], dtype=torch.bool).tril()
            """,
            "mask=memory_mask": "mask=early if memory_mask is None else memory_mask & early",
        },
        "Your cross-attention hides later source positions. The source is complete before the "
        "first word is written, so nothing of it is future.",
        seen="public issues: causal mask in cross-attention",
    )

    wrong(
        "block_no_norm1",
        {"self.norm1(x + attended)": "x + attended"},
        "Your result is the one without the first norm: each of the three sublayers ends with a "
        "norm of its own, and the next one goes on with its result.",
    )

    wrong(
        "block_no_norm2",
        {"self.norm2(x + found)": "x + found"},
        "Your result is the one without the norm after the cross-attention: each of the three "
        "sublayers ends with a norm of its own, and the next one goes on with its result.",
    )

    wrong(
        "block_no_norm3",
        {"self.norm3(x + self.feed_forward(x))": "x + self.feed_forward(x)"},
        "Your result is the one without the last norm: each of the three sublayers ends with a "
        "norm of its own, and the last one's result is the output.",
    )

    wrong(
        "block_one_norm",
        {
            ", self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))":
                " = self.norm2 = self.norm3 = LayerNorm(d_model)",
        },
        "One norm serves all three sublayers. Each has a norm of its own, because each learns its "
        "own gamma and beta.",
    )

    wrong(
        "block_norms_reversed",
        {
            "self.norm1(x + attended)": "self.norm3(x + attended)",
            "return self.norm3": "return self.norm1",
        },
        "Your norms are used in the wrong order. norm1 belongs to the self-attention, norm2 to "
        "the cross-attention, norm3 to the feed-forward.",
    )

    wrong(
        "block_one_attention",
        {
            "self.cross_attention = MultiHeadAttention(d_model, num_heads)":
                "self.cross_attention = self.self_attention",
        },
        "One attention object serves both sublayers. Self-attention and cross-attention ask "
        "different questions, so each has its own weights.",
    )

    wrong(
        "block_pre_norm",
        {
            "x, mask=self_mask": "self.norm1(x), mask=self_mask",
            "self.norm1(x + attended)": "x + attended",
            "x, memory, mask=memory_mask": "self.norm2(x), memory, mask=memory_mask",
            "self.norm2(x + found)": "x + found",
            "self.norm3(x + self.feed_forward(x))": "x + self.feed_forward(self.norm3(x))",
        },
        "Your block normalises before each sublayer (pre-norm). This one is the paper's: add "
        "first, then normalise (post-norm).",
        seen="pre-norm implementations, such as GPT-2's",
    )

    wrong(
        "block_norm_before_adding",
        {
            "self.norm1(x + attended)": "x + self.norm1(attended)",
            "self.norm2(x + found)": "x + self.norm2(found)",
            "self.norm3(x + self.feed_forward(x))": "x + self.norm3(self.feed_forward(x))",
        },
        "You normalise the result of a sublayer and then add it. The norm comes after the "
        "addition: it takes the sum.",
    )

    wrong(
        "block_memory_normalised",
        {"memory, mask=memory_mask": "self.norm2(memory), mask=memory_mask"},
        "It comes out as where memory is normalised before the cross-attention uses it. It comes "
        "from the encoder as it should be used.",
    )

    wrong(
        "block_no_residual_1",
        {"x + attended": "attended"},
        "The residual connection around the self-attention is missing: its result replaces x, "
        "instead of being added to it.",
    )

    wrong(
        "block_no_residual_2",
        {"x + found": "found"},
        "The residual connection around the cross-attention is missing: what was found replaces "
        "what the position knew about its own text.",
    )

    wrong(
        "block_no_residual_3",
        {"x + self": "self"},
        "The residual connection around the feed-forward is missing: its result is added to its "
        "input.",
    )

    wrong(
        "block_residual_from_the_start",
        {
            "x = self.norm1": "y = self.norm1",
            "x, memory, mask=memory_mask": "y, memory, mask=memory_mask",
        },
        "The cross-attention's result is added to the block's input. What the self-attention "
        "brought is in the queries only, and is not handed on. Each sublayer adds to the result "
        "of the one before.",
    )

    wrong(
        "block_steps_in_parallel",
        {"x = self.norm1(x + attended)": "", "x + found": "self.norm1(x + attended) + found"},
        "Your cross-attention asks with the block's input, not with what the self-attention made "
        "of it. The sublayers come one after the other.",
    )

    wrong(
        "block_cross_first",
        {
            """
                attended, own = self.self_attention(x, mask=self_mask)
                x = self.norm1(x + attended)
            """: "",
            "x = self.norm2(x + found)": """
                x = self.norm2(x + found)
                attended, own = self.self_attention(x, mask=self_mask)
                x = self.norm1(x + attended)
            """,
        },
        "The cross-attention comes before the self-attention. First a position reads its own "
        "text, so that its query knows what has been written; then it asks the memory.",
    )

    wrong(
        "block_feeds_what_came_before_the_cross_attention",
        {
            "x = self.norm1(x + attended)": "x = y = self.norm1(x + attended)",
            "self.feed_forward(x)": "self.feed_forward(y)",
        },
        "Your feed-forward reads the result of sublayer 1. It should read that of sublayer 2, what "
        "the cross-attention has found: else it computes nothing from the memory.",
    )

    wrong(
        "block_feed_forward_second",
        {
            "attended)": "attended); x = self.norm3(x + self.feed_forward(x))",
            "x = self.norm2(x + found)": "",
            "self.norm3(x + self.feed_forward(x))": "self.norm2(x + found)",
        },
        "The feed-forward comes before the cross-attention. It is the last sublayer: it works on "
        "what both attentions have brought.",
    )

    wrong(
        "block_no_feed_forward",
        {"+ self.feed_forward(x)": ""},
        "The feed-forward's result is not used. Without it the block only mixes positions and "
        "normalises.",
    )

    wrong(
        "block_no_self_attention",
        {"attended, own = self.self_attention(x, mask=self_mask)": "", "+ attended": ""},
        "The self-attention's result is not used, so a position does not know what has been "
        "written before it.",
    )

    wrong(
        "block_self_weights",
        {"(x + self.feed_forward(x)), weights": "(x + self.feed_forward(x)), own"},
        "You return the weights of the self-attention, (n, n). The exercise asks for those of the "
        "cross-attention, (n, m): they say where in the source each position looks.",
    )

    wrong(
        "block_averaged_heads",
        {"(x + self.feed_forward(x)), weights": "(x + self.feed_forward(x)), weights.mean(-3)"},
        "You average the weights over the heads. Return one map for each head; whoever wants an "
        "average can take it.",
        seen="nn.MultiheadAttention, which averages by default",
    )

    wrong(
        "block_first_head_only",
        {
            "(x + self.feed_forward(x)), weights":
                "(x + self.feed_forward(x)), weights[..., 0, :, :]",
        },
        "You return the weights of the first head only. Return one map for each head.",
    )

    wrong(
        "block_output_only",
        {"(x + self.feed_forward(x)), weights": "(x + self.feed_forward(x))"},
        "You return only the output. The exercise asks for the output and the cross weights.",
        seen="nn.TransformerDecoderLayer",
    )

    wrong(
        "block_order_of_results",
        {
            "self.norm3(x + self.feed_forward(x)), weights":
                "weights, self.norm3(x + self.feed_forward(x))",
        },
        "You return (weights, output). The course's order is (output, weights).",
    )

    wrong(
        "block_three_results",
        {"(x + self.feed_forward(x)), weights": "(x + self.feed_forward(x)), own, weights"},
        "You return three things. The exercise asks for two: the output and the cross weights.",
    )

    wrong(
        "block_memory_detached",
        {"memory, mask=memory_mask": "memory.detach(), mask=memory_mask"},
        "No gradient comes back to memory, as after memory.detach(): the encoder would never "
        "learn.",
        seen="public issues: encoder that does not train",
    )

    wrong(
        "block_no_grad",
        {
            "attended, own = self.self_attention(x, mask=self_mask)": """
                with torch.no_grad():
                    attended, own = self.self_attention(x, mask=self_mask)
            """,
        },
        "No gradient flows through your self-attention, so it can never learn.",
    )

    wrong(
        "block_dropout",
        {"+ attended": "+ F.dropout(attended, 0.1)"},
        "The same input does not give the same output, as with dropout. This block has none.",
        seen="the paper's model, which is trained with dropout 0.1",
    )

    wrong(
        "block_in_place",
        {"x = self.norm1(x + attended)": "x += attended; x = self.norm1(x)"},
        "The result of the self-attention is added to x in place: the caller's tensor is changed, "
        "and a leaf that requires a gradient refuses it.",
    )

    wrong(
        "block_one_batch_axis",
        {"attended,": "batch, n, d_model = x.shape; batch, m, d_model = memory.shape; attended,"},
        "Where there is no batch axis, or another number of them, your code stops, as where "
        "exactly one is expected. There may be none, two or more, and those of x and memory may "
        "differ.",
        edge=True,
    )

    wrong(
        "block_mask_gets_an_axis",
        {"mask=self_mask": "mask=None if self_mask is None else self_mask[:, None]"},
        "A mask comes to another meaning, as where the block gives it a head axis. "
        "MultiHeadAttention does that, where it is needed.",
        edge=True,
    )

    wrong(
        "block_memory_mask_gets_an_axis",
        {
            "x = self.norm1(x + attended)": """
                x = self.norm1(x + attended)
                if memory_mask is not None:
                    memory_mask = memory_mask[:, None]
            """,
        },
        "A mask comes to another meaning, as where the block gives it a head axis. "
        "MultiHeadAttention does that, where it is needed.",
        edge=True,
    )

    wrong(
        "block_float32",
        {
            "return self.norm3(x + self.feed_forward(x)), weights": """
                x = self.norm3(x + self.feed_forward(x))
                return x.float().to(memory.dtype), weights
            """,
        },
        "Float64 inputs give fewer digits than float64 has: for one, something goes through "
        "float32. After block.double() float64 inputs should keep their precision.",
    )

    wrong(
        "block_parts_in_a_list",
        {
            "self.norm1, self.norm2, self.norm3 = (LayerNorm(d_model) for _ in range(3))":
                "self.norms = nn.ModuleList(LayerNorm(d_model) for _ in range(3))",
            "self.norm1(x + attended)": "self.norms[0](x + attended)",
            "self.norm2(x + found)": "self.norms[1](x + found)",
            "return self.norm3": "return self.norms[2]",
        },
        "No gamma and beta are found under norm1, norm2 and norm3: for one, your norms stand in "
        "a list or have other names. The six parts should be attributes with the names of the "
        "card, so that weights can be loaded by name.",
    )

    wrong(
        "block_sizes_exchanged",
        {"d_model, d_ff": "d_ff, d_model"},
        "The feed-forward is made with its two sizes exchanged. It goes from d_model to d_ff and "
        "back.",
    )

    wrong(
        "block_mask_as_value",
        {"mask=self_mask": "x, self_mask"},
        "It goes wrong as where an attention gets a mask in the place of its keys or values. Look "
        "at the order of MultiHeadAttention's arguments, or pass mask=.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_memory_mask_as_value",
        {"mask=memory_mask": "memory_mask"},
        "It goes wrong as where an attention gets a mask in the place of its keys or values. Look "
        "at the order of MultiHeadAttention's arguments, or pass mask=.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_masks_as_values",
        {"mask=self_mask": "x, self_mask", "mask=memory_mask": "memory_mask"},
        "It goes wrong as where an attention gets a mask in the place of its keys or values. Look "
        "at the order of MultiHeadAttention's arguments, or pass mask=.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_pair_added",
        {
            "attended, own = self.self_attention(x, mask=self_mask)": "",
            "+ attended": "+ self.self_attention(x, mask=self_mask)",
        },
        "You add a tensor and a tuple. MultiHeadAttention returns a pair, (output, weights); "
        "only the output is added to x.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_added_to_pair",
        {
            "attended, own = self.self_attention(x, mask=self_mask)": "",
            "x + attended": "self.self_attention(x, mask=self_mask) + x",
        },
        "You add a tensor and a tuple. MultiHeadAttention returns a pair, (output, weights); "
        "only the output is added to x.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_cross_pair_added",
        {"found, weights": "weights", "+ found": "+ weights"},
        "You add a tensor and a tuple. MultiHeadAttention returns a pair, (output, weights); "
        "only the output is added to x.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_norm1_three_times",
        {
            "self.norm2(x + found)": "self.norm1(x + found)",
            "return self.norm3": "return self.norm1",
        },
        "One norm serves all three sublayers. Each has a norm of its own, because each learns its "
        "own gamma and beta.",
        seen="a trial with typical wrong answers",
    )

    wrong(
        "block_all_false_for_none",
        {
            "x = self.norm1(x + attended)": """
                x = self.norm1(x + attended)
                if memory_mask is not None and not memory_mask.any():
                    memory_mask = None
            """,
        },
        "With a memory_mask that is False everywhere your block gives what it gives without one. "
        "Such a mask lets nothing of memory be read: all cross weights are 0.",
        seen="answers written blind",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_GREEDY_DECODE = """
def greedy_decode(step, start_id, end_id, max_len):
    prefix = [start_id]
    for _ in range(max_len):
        token = int(step(list(prefix)).argmax())
        if token == end_id:
            break
        prefix.append(token)
    return prefix[1:]
"""


with exercise("greedy_decode", base=SHORT_GREEDY_DECODE):
    wrong(
        "greedy_keeps_the_end",
        {
            "if token == end_id:": """
                prefix.append(token)
                if token == end_id:
            """,
            "prefix.append(token)": "",
        },
        "The end token is part of your result. It only says that the text is over.",
        seen="generate functions of libraries, which keep it",
    )

    wrong(
        "greedy_keeps_the_start",
        {"prefix[1:]": "prefix"},
        "The start token is part of your result. It was given, not generated.",
        seen="generate functions of libraries, which keep it",
    )

    wrong(
        "greedy_keeps_both",
        {
            "if token == end_id:": """
                prefix.append(token)
                if token == end_id:
            """,
            "prefix.append(token)": "",
            "prefix[1:]": "prefix",
        },
        "Start and end token are part of your result. Both must go.",
    )

    wrong(
        "greedy_one_too_few",
        {"range(max_len)": "range(max_len - 1)"},
        "Where max_len ends it, your text is one token too short, as if the start token counted. "
        "Only generated tokens count.",
    )

    wrong(
        "greedy_one_too_many",
        {"range(max_len)": "range(max_len + 1)"},
        "Your text may be one token longer than max_len. Count what has been generated before you "
        "ask the model again.",
    )

    wrong(
        "greedy_at_least_one",
        """
            prefix = [start_id]
            while True:
                token = int(step(list(prefix)).argmax())
                if token == end_id:
                    break
                prefix.append(token)
                if len(prefix) > max_len:
                    break
            return prefix[1:]
        """,
        "With max_len = 0 you still ask the model, and generate a token. Look at max_len before "
        "you ask.",
    )

    wrong(
        "greedy_one_call_too_many",
        """
            prefix = [start_id]
            while True:
                token = int(step(list(prefix)).argmax())
                if token == end_id or len(prefix) > max_len:
                    return prefix[1:]
                prefix.append(token)
        """,
        "The result is right, but the model is asked once more after max_len tokens, and its "
        "answer is thrown away. A model with room for max_len positions fails there.",
    )

    wrong(
        "greedy_cut_afterwards",
        {"range(max_len)": "range(max_len + 5)", "prefix[1:]": "prefix[1 : max_len + 1]"},
        "The model writes on far beyond max_len and the text is cut afterwards. Stop asking when "
        "max_len tokens have been generated.",
    )

    wrong(
        "greedy_ignores_the_end",
        {
            """
                if token == end_id:
                    break
            """: "",
        },
        "Your text does not stop at the end token: it runs on to max_len, and what comes after "
        "the end is noise.",
    )

    wrong(
        "greedy_end_skipped",
        {
            """
                if token == end_id:
                    break
            """: "",
            "prefix[1:]": "[token for token in prefix[1:] if token != end_id]",
        },
        "The end token is left out of the result, but decoding goes on after it. It should stop "
        "there.",
    )

    wrong(
        "greedy_stops_at_zero",
        {"end_id:": "end_id or not token:"},
        "Your text stops at token 0. The end token is end_id; 0 may be an ordinary word.",
    )

    wrong(
        "greedy_argmin",
        {".argmax()": ".argmin()"},
        "You take the token with the smallest logit. The largest logit is the most probable token.",
    )

    wrong(
        "greedy_largest_absolute_value",
        {"step(list(prefix)).argmax()": "abs(step(list(prefix))).argmax()"},
        "You take the logit that is largest in absolute value. A logit of -9 is a very improbable "
        "token.",
    )

    wrong(
        "greedy_second_best",
        {"step(list(prefix)).argmax()": "np.argsort(step(list(prefix)))[-2]"},
        "You take the second largest logit.",
    )

    wrong(
        "greedy_samples",
        {
            "token = int(step(list(prefix)).argmax())": """
                p = torch.as_tensor(step(list(prefix))).double().softmax(-1)
                token = int(torch.multinomial(p, 1))
            """,
        },
        "Your token is not always the most probable one, as where it is drawn at random. Greedy "
        "means: always the most probable one, so the result is the same every time.",
        seen="generate functions with sampling",
    )

    wrong(
        "greedy_torch_softmax",
        {
            "token = int(step(list(prefix)).argmax())": """
                p = torch.softmax(torch.as_tensor(step(list(prefix))), dim=-1)
                token = int(p.argmax())
            """,
        },
        "Logits that are whole numbers make your code stop: torch's softmax, for one, refuses "
        "them. The largest logit is also the most probable token: no softmax is needed.",
    )

    wrong(
        "greedy_exp_overflows",
        {
            "token = int(step(list(prefix)).argmax())":
                "e = np.exp(np.asarray(step(list(prefix)))); token = int((e / e.sum()).argmax())",
        },
        "Where the logits are large for their kind of number, or far below 0, your code cannot tell them apart: exp "
        "without their maximum subtracted, for one, gives inf or 0. The largest logit is also "
        "the most probable token: no softmax is needed.",
    )

    wrong(
        "greedy_logits_rounded",
        {"step(list(prefix)).argmax()": "np.asarray(step(list(prefix))).astype(int).argmax()"},
        "Logits that are close count as equal, as where they are rounded to integers. Compare them "
        "as they are.",
    )

    wrong(
        "greedy_last_row",
        {"step(list(prefix)).argmax()": "np.argmax(step(list(prefix))[-1])"},
        "Your token is 0 whatever the logits are, as with an argmax over the last row of the "
        "logits. step already gives one logit for each token of the vocabulary: its last entry "
        "is a number.",
        seen="models that return logits for every position",
    )

    wrong(
        "greedy_torch_only",
        {".argmax()": ".argmax(dim=-1)"},
        "Logits in a NumPy array make your code stop: for one, NumPy's argmax has no keyword dim. "
        "Logits may be either kind.",
        edge=True,
    )

    wrong(
        "greedy_numpy_only",
        {".argmax()": ".argsort()[::-1][0]"},
        "Logits in a torch tensor make your code stop: for one, torch has no negative step, "
        "[::-1]. Logits may be either kind.",
        edge=True,
    )

    wrong(
        "greedy_numpy_integers",
        {"int(step(list(prefix)).argmax())": "np.int64(int(step(list(prefix)).argmax()))"},
        "The prefix holds NumPy's integers or tensors, as argmax gives them. The card asks for "
        "Python ints, in the prefix and in the result.",
        seen="public issues: int64 is not JSON serializable",
    )

    wrong(
        "greedy_result_of_numpy_integers",
        {"prefix[1:]": "list(np.array(prefix[1:]))"},
        "The result holds NumPy's integers. The card asks for Python ints, in the prefix and in "
        "the result.",
    )

    wrong(
        "greedy_prefix_is_an_array",
        {"list(prefix)": "np.array(prefix)"},
        "The model gets a NumPy array. The card asks for a list of Python ints.",
    )

    wrong(
        "greedy_prefix_is_a_tensor",
        {"list(prefix)": "torch.tensor(prefix)"},
        "The model gets a torch tensor. The card asks for a list of Python ints.",
    )

    wrong(
        "greedy_no_start_in_the_prefix",
        {"[start_id]": "[]", "prefix[1:]": "prefix"},
        "The prefix does not begin with start_id. The model was trained with the start token in "
        "front: without it, every position is shifted.",
    )

    wrong(
        "greedy_last_token_only",
        {"list(prefix)": "prefix[-1:]"},
        "The model is shown only the last token. It needs everything that has been written so far.",
        seen="models with a key-value cache",
    )

    wrong(
        "greedy_never_grows",
        {
            "prefix = [start_id]": "prefix_, prefix = [start_id], []",
            "list(prefix)": "list(prefix_)",
            "prefix[1:]": "prefix",
        },
        "The model is asked the same question again and again: your tokens never reach the "
        "prefix that it is shown.",
    )

    wrong(
        "greedy_padded",
        {"prefix[1:]": "prefix[1:] + [end_id] * (max_len + 1 - len(prefix))"},
        "A text that ends early is filled up to max_len. The result should stop where the text "
        "stops.",
    )

    wrong(
        "greedy_refuses_an_open_end",
        {
            "prefix = [start_id]": "prefix, token = [start_id], end_id",
            "return prefix[1:]": """
                if token != end_id:
                    raise RuntimeError("no end")
                return prefix[1:]
            """,
        },
        "You raise an error when the model does not end in time. A text of max_len tokens is a "
        "valid result.",
    )

    wrong(
        "greedy_drops_the_last_token",
        {
            "if token == end_id:": """
                prefix.append(token)
                if token == end_id:
            """,
            "prefix.append(token)": "",
            "prefix[1:]": "prefix[1:-1]",
        },
        "The last entry of the prefix is dropped, whether it is the end token or not. When "
        "max_len ends the text, it is an ordinary token.",
    )

    wrong(
        "greedy_logits_in_place",
        {
            "token = int(step(list(prefix)).argmax())":
                "logits = step(list(prefix)); token = int(logits.argmax()); logits[token] = 0",
        },
        "You write into the logits that the model gave you. They are not yours: the model may use "
        "them again.",
    )

    wrong(
        "greedy_start_barred",
        {
            "token = int(step(list(prefix)).argmax())": """
                logits = np.array(step(list(prefix)), dtype=float)
                logits[start_id] = -np.inf
                token = int(logits.argmax())
            """,
        },
        "Where the start token has the largest logit, another token is written in your text, or it "
        "ends. The model may say it: it is a token like the others, unless it is end_id as well.",
        seen="answers written blind",
    )

    wrong(
        "greedy_end_as_an_index",
        {
            "token = int(step(list(prefix)).argmax())":
                "logits = step(list(prefix)); token = int(logits.argmax())",
            "if token == end_id:": "if logits[end_id] == logits.max():",
        },
        "With an end_id that is no token, such as -1, your text ends too early or your code stops, "
        "as where end_id is an index of the logits: at -1 stands the last one. It is a token that "
        "is said, or not.",
        seen="answers written blind",
    )

    wrong(
        "greedy_end_zero_is_none",
        {"if token == end_id:": "if end_id and token == end_id:"},
        "With end_id = 0 your text does not end where the model says 0. Check first: `if end_id` "
        "is false for 0 too. Compare with end_id, whatever token it is.",
        seen="answers written blind",
    )


# The right answer in few words, of which the wrong ones below are changes.
SHORT_ALIGN = """
def align(weights, source_tokens):
    array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
    return [source_tokens[i] for i in array.mean(0).argmax(-1)]
"""


with exercise("align", base=SHORT_ALIGN):
    wrong(
        "align_over_the_targets",
        {"[i] for": "[i % len(source_tokens)] for", "(-1)": "(0)"},
        "It comes out as with an argmax over the target positions. For each target position it is "
        "the source positions that compete: the last axis.",
    )

    wrong(
        "align_votes",
        """
            array = weights.detach().numpy() if isinstance(weights, torch.Tensor) else weights
            best = [[int(row.argmax()) for row in head] for head in array]
            winners = [max(found, key=found.count) for found in zip(*best, strict=True)]
            return [source_tokens[winner] for winner in winners]
        """,
        "It comes out as if each head voted for one position, and the most votes won. The weights "
        "are averaged over the heads first: a position that is second everywhere can win.",
        seen="answers written blind",
    )

    wrong(
        "align_first_head",
        {"array.mean(0).argmax(-1)": "array[0].argmax(-1)"},
        "You use the first head only. The heads are averaged.",
    )

    wrong(
        "align_largest_over_heads",
        {"array.mean": "array.max"},
        "You take the largest weight over the heads. One head that is sure then overrules all "
        "others; the card asks for the average.",
    )

    wrong(
        "align_heads_vote",
        {
            "return [source_tokens[i] for i in array.mean(0).argmax(-1)]": """
                votes = (array.argmax(-1)[..., None] == np.arange(array.shape[-1])).sum(0)
                return [source_tokens[i] for i in votes.argmax(-1)]
            """,
        },
        "It comes out as if each head voted for a position and the votes were counted. How sure a "
        "head is gets lost; the card asks for the average of the weights.",
    )

    wrong(
        "align_last_wins",
        {"[i] for": "[len(i) - 1 - i[::-1].argmax()] for", ".argmax(-1)": ""},
        "If several positions are equal, yours takes the last one. The first should win.",
    )

    wrong(
        "align_alphabet_decides_ties",
        {"source_tokens[i]": "max(zip(i, source_tokens))[1]", ".argmax(-1)": ".tolist()"},
        "If several positions are equal, yours does not always take the first: the word may "
        "decide, as where pairs of weight and word are compared. The first position should win.",
    )

    wrong(
        "align_refuses_gradients",
        "return [source_tokens[i] for i in np.asarray(weights).mean(0).argmax(-1)]",
        "A tensor that requires grad cannot become a NumPy array as it is. Take it out of the "
        "graph first, as a new tensor.",
        seen="torch: Can't call numpy() on Tensor that requires grad",
    )

    wrong(
        "align_torch_only",
        "return [source_tokens[i] for i in weights.detach().mean(0).argmax(-1)]",
        "A NumPy array makes your code stop: for one, it calls a method that only tensors have. "
        "weights may be either kind.",
        edge=True,
    )

    wrong(
        "align_torch_function",
        "return [source_tokens[i] for i in torch.mean(weights, dim=0).argmax(dim=-1).tolist()]",
        "A NumPy array makes your code stop: torch.mean, for one, takes none. weights may be "
        "either kind.",
    )

    wrong(
        "align_integers_fail",
        {"in array": "in torch.as_tensor(array)"},
        "Integer NumPy arrays make your code stop: torch, for one, takes no mean of integers. Such "
        "arrays are valid.",
    )

    wrong(
        "align_indices",
        {
            "[source_tokens[i] for i in array.mean(0).argmax(-1)]":
                "array.mean(0).argmax(-1).tolist()",
        },
        "You return positions. The exercise asks for the words that stand there.",
    )

    wrong(
        "align_pairs",
        {
            "source_tokens[i] for i in array.mean(0).argmax(-1)":
                "(source_tokens[i_], float(i[i_])) for i in array.mean(0) for i_ in [i.argmax()]",
        },
        "You return pairs of word and weight. The exercise asks for the words only.",
    )

    wrong(
        "align_one_list_a_head",
        {
            "source_tokens[i] for i in array.mean(0).argmax(-1)":
                "[source_tokens[i] for i in head.argmax(-1)] for head in array",
        },
        "You return one list for each head. Average the heads first; the result is one word for "
        "each target position.",
    )

    wrong(
        "align_a_tuple",
        {
            "[source_tokens[i] for i in array.mean(0).argmax(-1)]":
                "tuple(source_tokens[i] for i in array.mean(0).argmax(-1))",
        },
        "You return a tuple. The exercise asks for a list.",
    )

    wrong(
        "align_only_forwards",
        {
            "return [source_tokens[i] for i in array.mean(0).argmax(-1)]": """
                found, at = [], 0
                for i in array.mean(0):
                    at += int(i[at:].argmax())
                    found.append(source_tokens[at])
                return found
            """,
        },
        "Your alignment may only move to the right. Word order crosses: that is why we look at "
        "the map at all.",
        seen="monotonic alignment in speech",
    )

    wrong(
        "align_target_by_target_axis",
        {"(0).argmax(-1)": "(1).argmax(-1)"},
        "It comes out as an average over the target positions and not over the heads. The first "
        "axis holds the heads.",
    )

    wrong(
        "align_detached_in_place",
        """
            if isinstance(weights, torch.Tensor):
                weights.detach_()
            return [source_tokens[i] for i in np.asarray(weights).mean(0).argmax(-1)]
        """,
        "The weights themselves are detached, so that training cannot go on. A method whose name "
        "ends in an underscore changes its tensor; take a new one out of the graph.",
    )

    wrong(
        "align_gradient_switched_off",
        """
            if isinstance(weights, torch.Tensor):
                weights.requires_grad = False
            return [source_tokens[i] for i in np.asarray(weights).mean(0).argmax(-1)]
        """,
        "You switch requires_grad off on the caller's weights. That is theirs: training could not go "
        "on with them, and torch refuses it for a tensor that was computed. Take a new one out of the "
        "graph.",
    )

    wrong(
        "align_averaged_in_place",
        {
            "return [source_tokens[i] for i in array.mean(0).argmax(-1)]": """
                for head in array[1:]:
                    array[0] += head
                return [source_tokens[i] for i in array[0].argmax(-1)]
            """,
        },
        "The caller's map is changed, as where the sum of the heads is written into the weights "
        "of the first head.",
    )

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


with exercise("mended_batch"):
    wrong(
        "mend_copied",
        "return run(sorted(sentences, key=len))",
        "The texts come back in the order of the lengths, as from the friend's code. Remember "
        "where each sentence stood.",
    )

    wrong(
        "mend_order_applied_again",
        {"back[i] = texts[place]": "back[place] = texts[i]"},
        "It comes out as if the order were applied a second time, and not undone. order[p] says "
        "which sentence stands at place p; you need the place of each sentence.",
    )

    wrong(
        "mend_reversed",
        """
            order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
            return run([sentences[i] for i in order])[::-1]
        """,
        "Your texts come back in the turned order of the lengths. Turning around undoes only an "
        "order that was turned around: remember where each sentence stood.",
    )

    wrong(
        "mend_length_in_characters",
        {"key=lambda i: len(sentences[i])": 'key=lambda i: len(" ".join(sentences[i]))'},
        "You sort by the number of characters. The length of a sentence is its number of words: "
        "that is what padding makes equal.",
    )

    wrong(
        "mend_equal_sentences_once",
        """
            keys = [tuple(words) for words in sentences]
            unique = sorted(dict.fromkeys(keys), key=len)
            text_of = dict(zip(unique, run([list(key) for key in unique])))
            return [text_of[key] for key in keys]
        """,
        "A sentence that stands there twice goes to run only once. run gets all of them: it is "
        "asked for one text a sentence, in the order of the lengths.",
    )

    wrong(
        "mend_sorts_the_argument",
        """
            given = list(sentences)
            sentences.sort(key=len)
            texts = run(sentences)
            return [texts[sentences.index(words)] for words in given]
        """,
        "You sort the caller's list. It should stay as it is: sort a copy, or sort its numbers.",
    )

    wrong(
        "mend_found_by_length",
        """
            texts = run(sorted(sentences, key=len))
            lengths = sorted(len(words) for words in sentences)
            return [texts[lengths.index(len(words))] for words in sentences]
        """,
        "Two sentences of one length get the same text, as where each text is looked for by the "
        "length of its sentence.",
    )


with exercise("still_right"):
    wrong(
        "still_places_swapped",
        {
            'others | itself) if where == "encoder"': 'others | itself) if where == "decoder"',
            'mask, others) if where == "decoder"': 'mask, others) if where == "encoder"',
        },
        "The two places are exchanged: \"decoder\" is about the cross-attention's mask, \"encoder\" "
        "about the mask with which the source words read each other.",
    )

    wrong(
        "still_hidden_in_both",
        {'combine_masks(mask, others) if where == "decoder" else mask': "combine_masks(mask, others)"},
        "The decoder never reads the hidden position, also where the word is hidden inside the "
        "encoder only. Then you cannot tell which of the two paths was needed.",
    )

    wrong(
        "still_encoder_always_hidden",
        {'combine_masks(mask, others | itself) if where == "encoder" else mask': "combine_masks(mask, others | itself)"},
        "The encoder never lets the others read the hidden word, also where it is hidden from the "
        "decoder only. Then you cannot tell which of the two paths was needed.",
    )

    wrong(
        "still_word_cannot_read_itself",
        {"others | itself": "others"},
        "Inside the encoder the hidden word may not read itself either, so its own place loses it. "
        "It should be hidden from the other words only.",
    )

    wrong(
        "still_reads_nobody",
        {"others | itself": "others.transpose(-1, -2) | itself"},
        "Inside the encoder you close the hidden word's row: it reads none of the others, and "
        "they still read it. Rows ask, columns are read: which of them should be closed?",
    )

    wrong(
        "still_mask_the_other_way",
        {"positions != hidden": "positions == hidden"},
        "Your mask is the wrong way round: the hidden position may be read, and the other ones "
        "are hidden. True means: may be read.",
    )

    wrong(
        "still_padding_readable",
        {
            "combine_masks(mask, others | itself)": "others | itself",
            "combine_masks(mask, others)": "others",
        },
        "Where a word is hidden, padding may be read again, as if your mask took the place of "
        "the one that you got. Both should hold.",
    )

    wrong(
        "still_masks_joined_by_or",
        {
            "combine_masks(mask, others | itself)": "mask | others | itself",
            "combine_masks(mask, others)": "mask | others",
        },
        "Where a word is hidden, everything may be read, as when masks are joined with OR: what "
        "one of them allows may be read. A position may be read where both allow it.",
    )

    wrong(
        "still_padding_in_the_decoder",
        {'combine_masks(mask, others) if where == "decoder" else mask': 'combine_masks(mask, others) if where == "decoder" else None'},
        "Where the word is hidden inside the encoder, the decoder reads the padding. Padding "
        "stays hidden in every experiment.",
    )

    wrong(
        "still_padding_in_the_encoder",
        {'combine_masks(mask, others | itself) if where == "encoder" else mask': 'others | itself if where == "encoder" else None'},
        "The encoder reads the padding: the mask that you got belongs into both parts of the model, "
        "in every experiment.",
    )

    wrong(
        "still_first_position_for_all",
        {"hidden[:, None, None]": "hidden[0]"},
        "The first text's hidden position is hidden in every text. Each text has one of its own.",
    )

    wrong(
        "still_one_later",
        {"positions != hidden[:, None, None]": "positions != hidden[:, None, None] + 1"},
        "The position after the hidden one is hidden. The source has no start token: its first word "
        "is at position 0.",
    )

    wrong(
        "still_token_for_position",
        {"positions != hidden[:, None, None]": "source[:, None] != hidden[:, None, None]"},
        "You look for the token whose number is hidden. hidden holds positions in the text.",
    )

    wrong(
        "still_nothing_hidden",
        """
            if where not in ("decoder", "encoder"):
                raise ValueError(f"where is {where!r}")
            with torch.no_grad():
                logits, _ = model.decode(reads, model.encode(source, mask), mask)
            return (logits[:, -1].argmax(dim=-1) == says).double().mean().item()
        """,
        "Nothing is hidden: this is how often the model is right when it may read everything.",
    )

    wrong(
        "still_replaced_by_padding",
        """
            if where not in ("decoder", "encoder"):
                raise ValueError(f"where is {where!r}")
            gone = torch.arange(source.shape[-1]) == hidden[:, None]
            with torch.no_grad():
                memory = model.encode(source.masked_fill(gone, 0), mask)
                logits, _ = model.decode(reads, memory, mask)
            return (logits[:, -1].argmax(dim=-1) == says).double().mean().item()
        """,
        "It comes out as if the hidden word were replaced by token 0. That is another text: its "
        "position can still be read, in both parts of the model. Hide the position with a mask, "
        "in one part.",
    )

    wrong(
        "still_last_token_that_is_not_0",
        {":, -": "range(len(says)), (reads != 0).sum(1) - "},
        "It comes out as where the last token of reads that is not 0 is looked for. Nothing says "
        "that 0 is padding there: the last position is the last one.",
    )

    wrong(
        "still_first_logits",
        {"logits[:, -1]": "logits[:, 0]"},
        "You look at the logits of the first target position. The token that comes after all of "
        "reads is said at the last one.",
    )

    wrong(
        "still_every_position",
        {"(logits[:, -1].argmax(dim=-1) == says)": "(logits.argmax(dim=-1) == says[:, None])"},
        "You compare every target position with the same token and average over all of them. Only "
        "the last position should say it.",
    )

    wrong(
        "still_share_of_mistakes",
        {"== says": "!= says"},
        "This is the share of texts that are wrong. Asked is how many stay right.",
    )

    wrong(
        "still_number_not_share",
        {".mean()": ".sum()"},
        "You return how many texts are right. A share is that number divided by the number of texts.",
    )

    wrong(
        "still_any_where",
        {'where not in ("decoder", "encoder")': "False"},
        "Another `where` passes without a word, and the result looks like that of an experiment. "
        "It should be a ValueError.",
    )

    wrong(
        "still_mask_changed",
        {
            "in_encoder = combine_masks(mask, others | itself)": "mask = mask.logical_and_(others) if "
            'where == "decoder" else mask\nin_encoder = combine_masks(mask, others | itself)'
        },
        "You write into the mask that you got, and the caller's next experiment hides this word too. "
        "Make a new one.",
    )

    wrong(
        "still_tensor",
        {".mean().item()": ".mean()"},
        "You return a tensor with one number. A Python float was asked for.",
    )

    wrong(
        "still_leaves_the_model_in_evaluation_mode",
        {
            "with torch.no_grad():":
                "model.eval() if isinstance(model, nn.Module) else None\nwith torch.no_grad():",
        },
        "A model that came in training mode is no longer in it after the call: the caller's "
        "training would go on in another mode. Leave the mode as it is, or put it back.",
        seen="answers written blind",
    )

    wrong(
        "still_graph_in_the_way",
        {
            "with torch.no_grad():": "if True:",
            "(logits[:, -1].argmax(dim=-1) == says).double()":
                "torch.tensor(logits[:, -1].numpy().argmax(-1) == says.numpy()).double()",
        },
        "Your code stops with a model that has parameters: its logits belong to a graph, and "
        "NumPy, for one, does not take such tensors. No gradient is needed here.",
        seen="answers written by an adversary",
    )


choice(
    "answer_recall_norm",
    "a",
    reason='That would be a norm over the whole text, the silent bug of lesson 8.',
)
choice(
    "answer_recall_norm",
    "b",
    right=True,
    reason='Each word is normalised by itself, over its own features.',
)
choice(
    "answer_recall_norm",
    "c",
    reason='No norm of this course carries anything from word to word. Attention does.',
)

choice(
    "answer_recall_leak",
    "a",
    right=True,
    reason='Both look where the next word is not there to be read.',
)
choice(
    "answer_recall_leak",
    "b",
    reason='The answer stands in every fresh text as well.',
)
choice(
    "answer_recall_leak",
    "c",
    reason='Its loss is low because it reads what it should guess. It cannot write.',
)

choice(
    "answer_recall_query",
    "a",
    reason='Keys are there to be compared with; what is handed on are the values.',
)
choice(
    "answer_recall_query",
    "b",
    reason='Queries ask. They are compared with the keys.',
)
choice(
    "answer_recall_query",
    "c",
    right=True,
    reason='In this lesson the queries come from one text, keys and values from another.',
)
