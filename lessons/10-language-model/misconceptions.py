"""Wrong implementations of lesson 10, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

# The right answer in few words, of which the wrong ones below are changes.
SHORT_LOSS = """
def next_token_loss(logits, tokens, keep=None):
    if tokens.shape[-1] < 2:
        raise ValueError("a text of one token")
    if keep is None:
        keep = torch.ones_like(tokens).bool()
    shape = torch.broadcast_shapes(logits.shape[:-1], tokens.shape, keep.shape)
    vocab = logits.shape[-1]
    logits, tokens, keep = logits.expand(*shape, vocab), tokens.expand(shape), keep.expand(shape)
    guesses, targets, counted = logits[..., :-1, :], tokens[..., 1:], keep[..., 1:]
    if not counted.any():
        raise ValueError("nothing to count")
    return F.cross_entropy(guesses[counted], targets[counted])
"""

with exercise("next_token_loss", base=SHORT_LOSS):
    wrong(
        "loss_not_shifted",
        {"[..., :-1, :], tokens[..., 1:], keep[..., 1:]": ", tokens, keep"},
        "You score each position against the token that it has just read. The model then learns to "
        "copy, and its loss falls to 0. Position t is to guess token t + 1.",
        seen="public issues: labels that are not shifted by the model",
    )

    wrong(
        "loss_shifted_backwards",
        {
            "logits[..., :-1, :], tokens[..., 1:], keep[..., 1:]":
                "logits[..., 1:, :], tokens[..., :-1], keep[..., :-1]",
        },
        "Your shift goes the other way: position t is scored against token t - 1, which it has "
        "read. The next token is the one to guess.",
    )

    wrong(
        "loss_shifted_twice",
        {
            "tokens.shape[-1] < 2": "tokens.shape[-1] < 3",
            "logits[..., :-1, :], tokens[..., 1:], keep[..., 1:]":
                "logits[..., :-2, :], tokens[..., 2:], keep[..., 2:]",
        },
        "You shift by two: position t is scored against token t + 2.",
        seen="public issues: labels that are shifted by the caller and by the model",
    )

    wrong(
        "loss_rolls",
        {
            "logits[..., :-1, :], tokens[..., 1:], keep[..., 1:]":
                "logits, tokens.roll(-1, -1), keep.roll(-1, -1)",
        },
        "The last position is scored against the first token of its own text, as with a shift in "
        "a circle. A text of n tokens gives n - 1 predictions.",
    )

    wrong(
        "loss_sum",
        {"F.cross_entropy(guesses[counted], targets[counted])":
            "F.cross_entropy(guesses[counted], targets[counted], reduction='sum')"},
        "You return the sum of the losses. The exercise asks for the mean over all counted "
        "predictions; a sum grows with the batch.",
    )

    wrong(
        "loss_mean_of_means",
        {
            "return F.cross_entropy(guesses[counted], targets[counted])": """
                each = -guesses.log_softmax(-1).gather(-1, torch.where(counted, targets, 0)[..., None])[..., 0]
                each = torch.where(counted, each, 0)
                number = counted.sum(-1)
                return (each.sum(-1) / number.clamp(min=1))[number > 0].mean()
            """,
        },
        "You average each text by itself and then the averages. A prediction of a short text then "
        "weighs more than one of a long text. One mean, over all predictions that count.",
    )

    wrong(
        "loss_divides_by_all",
        {
            "return F.cross_entropy(guesses[counted], targets[counted])":
                "return F.cross_entropy(guesses[counted], targets[counted]) * counted.float().mean()",
        },
        "You divide by the number of all predictions, padding included. The more padding a batch "
        "has, the smaller your loss. Divide by those that count.",
    )

    wrong(
        "loss_keep_of_the_input",
        {"keep[..., 1:]": "keep[..., :-1]"},
        "You ask whether the INPUT of a prediction is kept. The last real token is kept, but what "
        "it has to guess is padding. The target decides.",
    )

    wrong(
        "loss_keep_both",
        {"keep[..., 1:]": "keep[..., 1:] & keep[..., :-1]"},
        "You ask that input and target are both kept. A prediction counts exactly when its target "
        "is: after a gap too.",
    )

    wrong(
        "loss_keep_ignored",
        {"keep[..., 1:]": "torch.ones_like(keep[..., 1:])"},
        "Your keep has no effect: padding is learned too, or is an index out of range.",
    )

    wrong(
        "loss_keep_inverted",
        {"keep[..., 1:]": "~keep[..., 1:]", "torch.ones_like": "torch.zeros_like"},
        "You count where keep is False. True means a real token, which counts.",
    )

    wrong(
        "loss_ignores_minus_100",
        {
            "return F.cross_entropy(guesses[counted], targets[counted])":
                "return F.cross_entropy(guesses.flatten(0, -2), targets.flatten())",
        },
        "Your loss skips the targets -100, as F.cross_entropy does by itself, and not those that "
        "are not kept. What is not kept may hold any integer: -1, or a token of the vocabulary. "
        "keep says what counts.",
        seen="ignore_index, the default of F.cross_entropy",
    )

    wrong(
        "loss_with_eps",
        {
            "return F.cross_entropy(guesses[counted], targets[counted])": """
                p = torch.softmax(guesses[counted], -1)
                return -(p + 1e-9).log().gather(-1, targets[counted][:, None]).mean()
            """,
        },
        "The loss of a very wrong guess is cut off near 20, as where a small number keeps the "
        "probability away from 0 so that its logarithm is finite. Its gradient is 0 then: nothing "
        "is learned where it matters most.",
    )

    wrong(
        "loss_softmax_twice",
        {"F.cross_entropy(guesses[counted],": "F.cross_entropy(guesses[counted].softmax(-1),"},
        "It comes out as if the softmax were taken twice: all guesses become nearly equal. "
        "F.cross_entropy, for one, takes logits and does the softmax itself.",
        seen="public issues: softmax before nn.CrossEntropyLoss",
    )

    wrong(
        "loss_in_bits",
        {"targets[counted])": "targets[counted]) / math.log(2)"},
        "Your loss is in bits (a logarithm with base 2). The exercise asks for nats, the natural "
        "logarithm.",
    )

    wrong(
        "loss_negative",
        {"return F.cross_entropy": "return -F.cross_entropy"},
        "Your sign is the wrong one: you return the mean of ln p. The loss is minus that, and is "
        "never negative.",
    )

    wrong(
        "loss_perplexity",
        {"return F.cross_entropy(guesses[counted], targets[counted])":
            "return F.cross_entropy(guesses[counted], targets[counted]).exp()"},
        "You return e to the power of the loss, the perplexity. The exercise asks for the loss "
        "itself, in nats.",
    )

    wrong(
        "loss_float",
        {"targets[counted])": "targets[counted]).item()"},
        "You return a plain number, such as a Python float. Nothing can be learned from it: "
        "gradients flow only through a torch scalar.",
    )

    wrong(
        "loss_of_each",
        {"targets[counted])": "targets[counted], reduction='none')"},
        "You return the loss of every prediction. The exercise asks for one number, their mean.",
    )

    wrong(
        "loss_no_errors",
        {"tokens.shape[-1] < 2": "False", "not counted.any()": "False"},
        "With nothing to count you raise no error. The mean of no numbers is NaN, which would "
        "then go into every parameter. Raise a ValueError, for texts of one token and for a keep "
        "without targets.",
    )

    wrong(
        "loss_no_error_for_keep",
        {"not counted.any()": "False"},
        "Where keep leaves nothing to count, as where it keeps first tokens alone, no error is "
        "raised. The mean of no numbers is NaN. Raise a ValueError. (A kept first token is no target.)",
    )

    wrong(
        "loss_one_batch_axis",
        """
            def next_token_loss(logits, tokens, keep=None):
                if tokens.shape[-1] < 2 or (keep is not None and not keep[..., 1:].any()):
                    raise ValueError("nothing to count")
                guesses, targets = logits[:, :-1], tokens[:, 1:]
                if keep is None:
                    return F.cross_entropy(guesses.flatten(0, 1), targets.flatten())
                return F.cross_entropy(guesses[keep[:, 1:]], targets[keep[:, 1:]])
        """,
        "Without a leading axis, or with two, your code does not get through, as where exactly one "
        "is expected. One text alone has none: count the axes from the right.",
        edge=True,
    )

    wrong(
        "loss_writes_into_tokens",
        {
            "if keep is None:": """
                if keep is not None:
                    tokens.masked_fill_(~keep, 0)
                if keep is None:
            """,
        },
        "You write into the tokens that you were given. They belong to the caller, who uses them "
        "again in the next round.",
    )

    wrong(
        "loss_counts_keep_as_given",
        {
            "torch.ones_like(tokens).bool()":
                "torch.ones(torch.broadcast_shapes(logits.shape[:-1], tokens.shape)).bool()",
            "vocab = logits.shape[-1]": "vocab, number = logits.shape[-1], keep[..., 1:].sum()",
            "targets[counted])": "targets[counted], reduction='sum') / number",
        },
        "Where one keep serves several texts your loss is too large: for one, what it keeps is "
        "counted before it is broadcast. The mean is over the predictions of all texts.",
        seen="answers written blind",
        edge=True,
    )

    wrong(
        "loss_every_text_needs_a_target",
        {"any()": "any(-1).all()"},
        "You raise a ValueError when one text of several has no kept target. It adds nothing to "
        "the mean; only where no text has one is there nothing to count.",
        seen="answers written by an adversary",
        edge=True,
    )

    wrong(
        "loss_chosen_after_cross_entropy",
        {
            "return F.cross_entropy(guesses[counted], targets[counted])": """
                each = F.cross_entropy(
                    guesses.flatten(0, -2), targets.flatten(), reduction="none"
                )
                return each[counted.flatten()].mean()
            """,
        },
        "Texts that are filled up with integers of any size, and keep, give an error: for one, an "
        "integer that is not kept is taken as an index, and is too large. It may be any integer.",
        seen="answers written blind",
        edge=True,
    )


SHORT_GPT = """
class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = LearnedPositionalEmbedding(max_len, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)
        )
        self.final_norm = LayerNorm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, tokens):
        n = tokens.shape[-1]
        mask = torch.from_numpy(causal_mask(n))
        x = self.position_embedding(self.token_embedding(tokens))
        for block in self.blocks:
            x, _ = block(x, mask=mask)
        return self.output(self.final_norm(x))
"""

with exercise("GPT", base=SHORT_GPT):
    wrong(
        "gpt_no_mask",
        {"block(x, mask=mask)": "block(x)"},
        "Your blocks hide nothing, as without a mask: each position sees the token that it has to "
        "guess. The loss falls through the floor, and the model cannot write.",
    )

    wrong(
        "gpt_mask_of_the_first_text",
        {
            "mask = torch.from_numpy(causal_mask(n))": """
            if not hasattr(self, "kept"):
                self.kept = torch.from_numpy(causal_mask(n))
            mask = self.kept[:n, :n]
            """,
        },
        "A longer text that comes after a shorter one is not treated right, as where the causal "
        "mask of the first text is kept: it does not fit or, made for one token, hides nothing.",
    )

    wrong(
        "gpt_mask_inverted",
        {"torch.from_numpy(causal_mask(n))": "~torch.from_numpy(causal_mask(n))"},
        "Your mask is turned round: each position sees only the future. True means 'may attend' "
        "here, the opposite of nn.MultiheadAttention's attn_mask.",
        seen="the attn_mask of torch's nn.MultiheadAttention",
    )

    wrong(
        "gpt_mask_transposed",
        {"causal_mask(n))": "causal_mask(n)).T"},
        "Your mask is transposed: each position sees itself and the future.",
    )

    wrong(
        "gpt_mask_in_the_first_block",
        {"block(x, mask=mask)": "block(x, mask=mask if block is self.blocks[0] else None)"},
        "Only your first block gets the mask. One block without it is enough for the future to "
        "come in.",
    )

    wrong(
        "gpt_post_norm",
        {"norm_first=True": "norm_first=False"},
        "Your blocks are post-norm. The exercise asks for norm_first=True.",
    )

    wrong(
        "gpt_no_final_norm",
        {"self.final_norm(x)": "x"},
        "Your logits are those without final_norm. In a pre-norm stack nothing else normalises "
        "the stream before the read-out.",
    )

    wrong(
        "gpt_norm_before_the_blocks",
        {
            "= self.position_embedding(self.token_embedding(tokens))":
                "= self.final_norm(self.position_embedding(self.token_embedding(tokens)))",
            "self.output(self.final_norm(x))": "self.output(x)",
        },
        "Your final_norm stands before the blocks. It belongs behind them: the stream that comes "
        "out of a pre-norm stack is not normalised.",
    )

    wrong(
        "gpt_no_positions",
        {"self.position_embedding(self.token_embedding(tokens))": "self.token_embedding(tokens)"},
        "Your position vectors are never added. Then the model knows only what the mask gives away "
        "of the order.",
    )

    wrong(
        "gpt_scaled_embedding",
        {"self.token_embedding(tokens))": "self.token_embedding(tokens) * self.output.in_features**0.5)"},
        "You multiply the token vectors by the root of d_model, as the paper of 2017 does. This "
        "card does not scale them.",
        seen="Vaswani and others 2017, section 3.4",
    )

    wrong(
        "gpt_same_block",
        {
            """
                nn.ModuleList(
                    TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)
                )
            """: """
                nn.ModuleList(
                    [TransformerBlock(d_model, num_heads, d_ff, norm_first=True)] * num_layers
                )
            """,
        },
        "Your blocks are one object, num_layers times: they share all their numbers. Make a new "
        "block in each round.",
    )

    wrong(
        "gpt_plain_list",
        {
            """
                nn.ModuleList(
                    TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)
                )
            """: """
                [TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)]
            """,
        },
        "Your blocks are in a plain Python list. torch does not see them: the optimiser would never "
        "train them, and .double() or load_state_dict pass them by.",
        seen="public issues: layers in a list",
    )

    wrong(
        "gpt_tied",
        {
            "vocab_size, bias=False)": "vocab_size, bias=False); self.output.weight = self.token_embedding.weight",
        },
        "Your output shares its weight with the token embedding, as GPT-2 does. Here it has a "
        "weight of its own.",
        seen="GPT-2; Press and Wolf 2017",
    )

    wrong(
        "gpt_output_bias",
        {"vocab_size, bias=False)": "vocab_size)"},
        "Your output has a bias. The exercise asks for none.",
    )

    wrong(
        "gpt_softmax",
        {"return self.output(self.final_norm(x))": "return self.output(self.final_norm(x)).softmax(-1)"},
        "You return probabilities. The loss wants logits, and does the softmax itself.",
    )

    wrong(
        "gpt_last_position_only",
        {"self.final_norm(x))": "self.final_norm(x))[..., -1:, :]"},
        "You return the logits of the last position alone. Every position guesses: that gives n - 1 "
        "tasks in one pass.",
    )

    wrong(
        "gpt_blocks_not_chained",
        {
            "(self.token_embedding(tokens))": "(self.token_embedding(tokens)); start = x",
            "block(x, mask=mask)": "block(start, mask=mask)",
        },
        "Your result is that of the last block on the embeddings: for one, each block begins with "
        "them again. The result of one block is the input of the next.",
    )

    wrong(
        "gpt_residual_around_the_block",
        {"x, _ = block(x, mask=mask)": "x = x + block(x, mask=mask)[0]"},
        "It comes out as if x were added to what a block returns. The residual connections are "
        "inside the block already, so that x counts twice.",
    )

    wrong(
        "gpt_takes_the_weights",
        {"x, _ = block": "_, x = block"},
        "A block returns (output, weights), in this order. It goes wrong as where you go on with "
        "the weights.",
    )

    wrong(
        "gpt_fixed_mask",
        {
            "vocab_size, bias=False)": "vocab_size, bias=False); self.mask = torch.from_numpy(causal_mask(max_len))",
            "torch.from_numpy(causal_mask(n))": "self.mask",
        },
        "A text that is shorter than max_len does not get through, as with a mask of the size "
        "max_len. A shorter text needs a mask of its own length.",
        seen="buffers of published GPT code, without the cut to n",
    )

    wrong(
        "gpt_cuts_long_texts",
        {
            "n = tokens.shape[-1]": "tokens = tokens[..., -next(self.position_embedding.parameters()).shape[0]:]; n = tokens.shape[-1]",
        },
        "A text longer than max_len passes silently, cut for one. It is a ValueError: whoever "
        "wants to cut it should know it.",
    )

    wrong(
        "gpt_dropout",
        {"= self.position_embedding(self.token_embedding(tokens))":
            "= F.dropout(self.position_embedding(self.token_embedding(tokens)), 0.1, self.training)"},
        "In training mode your logits are others than in evaluation mode, as with dropout. The "
        "exercise has none: two calls give the same.",
    )

    wrong(
        "gpt_one_batch_axis",
        {"n = tokens.shape[-1]": "_, n = tokens.shape"},
        "Without a leading axis, or with two, your code does not get through, as where exactly one "
        "is expected. One text alone has none, and there may be two.",
        edge=True,
    )

    wrong(
        "gpt_float32",
        {"return self.output(self.final_norm(x))": "return self.output(self.final_norm(x)).float()"},
        "After .double() your logits do not have the digits of float64: for one, they are rounded "
        "to float32. The model then computes and answers in float64.",
        edge=True,
    )

    wrong(
        "gpt_padding_token",
        {"nn.Embedding(vocab_size, d_model)": "nn.Embedding(vocab_size, d_model, padding_idx=0)"},
        "No gradient reaches the vector of token 0, as where it is a padding token, so it does not "
        "learn. Here token 0 is a token as any other.",
        seen="padding_idx of nn.Embedding",
    )

    wrong(
        "gpt_mask_for_one_leading_axis",
        {"causal_mask(n))": "causal_mask(n)).expand(tokens.shape[0], n, n)"},
        "Your model stops with an error where tokens have the shape (n,), one text without a leading "
        "axis. Check first: a mask of shape (tokens.shape[0], n, n) counts on exactly one leading "
        "axis.",
        seen="answers written blind",
        edge=True,
    )


with exercise("training_step"):
    wrong(
        "step_keeps_gradients",
        {"optimizer.zero_grad()": ""},
        "Gradients that lie there when the step is called still count, as where they are cleared at the "
        "end of the step, or never: torch adds the new ones to them. Clear them before backward.",
        seen="public issues: zero_grad forgotten",
    )

    wrong(
        "step_clears_afterwards",
        {
            "optimizer.zero_grad()": "",
            "optimizer.step()": "optimizer.step(); optimizer.zero_grad()",
        },
        "Gradients that lie there when the step is called still count, as where they are cleared at the "
        "end of the step, or never: torch adds the new ones to them. Clear them before backward.",
    )

    wrong(
        "step_no_update",
        {"optimizer.step()": ""},
        "After your step nothing has moved. Either the optimiser is never asked to step, or "
        "it finds no gradients of this loss when it is: they are not computed yet, or cleared "
        "already. Clear, backward, update.",
    )

    wrong(
        "step_no_clipping",
        {"nn.utils.clip_grad_norm_(model.parameters(), max_norm)": ""},
        "Your step is as long as without clipping. The total norm of the gradients is to be "
        "cut to max_norm between backward and the update: before backward they are not there, "
        "and after the update they have been used. (What model.parameters() gives can be gone through "
        "once: kept in a variable, it is empty the second time.)",
    )

    wrong(
        "step_adds_norms",
        {
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
            total = sum(p.grad.norm() for p in model.parameters() if p.grad is not None)
            for p in model.parameters():
                if p.grad is not None:
                    p.grad *= min(1.0, max_norm / float(total))
            """,
        },
        "It comes out as if the total norm were the sum of the parameters' norms. The total norm "
        "is that of all gradients as one long vector: the root of the sum of all squares, which "
        "is smaller.",
    )

    wrong(
        "step_clips_each",
        {
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
                for p in model.parameters():
                    nn.utils.clip_grad_norm_(p, max_norm)
            """,
        },
        "It comes out as if each parameter were clipped by itself. The total norm can still be "
        "far above max_norm, and the direction changes: large gradients are cut, small ones are "
        "not. One norm over all of them.",
    )

    wrong(
        "step_clips_values",
        {"clip_grad_norm_": "clip_grad_value_"},
        "It comes out as if every single number were clipped to max_norm. The exercise asks for "
        "the total norm over all numbers of all parameters, and one factor for all.",
        seen="clip_grad_value_ of torch",
    )

    wrong(
        "step_always_scales",
        {
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
                found = [p.grad for p in model.parameters() if p.grad is not None]
                norm = torch.sqrt(sum(g.square().sum() for g in found))
                for g in found:
                    g.mul_(max_norm / norm)
            """,
        },
        "You bring the norm to max_norm also when it is below. Short gradients are left as they "
        "are: clipping only shortens.",
    )

    wrong(
        "step_compares_with_one",
        {
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
                found = [p.grad for p in model.parameters() if p.grad is not None]
                norm = math.sqrt(sum(g.square().sum().item() for g in found))
                for g in found:
                    g.mul_(max_norm / max(norm, 1.0))
            """,
        },
        "Your factor compares the norm with 1, and not with max_norm. Short gradients are then scaled, "
        "too, and with a max_norm above 1 even made longer. They should stay as they are.",
    )

    wrong(
        "step_clips_parameters",
        {
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
                with torch.no_grad():
                    for p in model.parameters():
                        p.mul_((max_norm / p.norm()).clamp(max=1))
            """,
        },
        "You shorten the parameters. Clipping is about their gradients.",
    )

    wrong(
        "step_max_norm_ignored",
        {"(model.parameters(), max_norm)": "(model.parameters(), 1.0)"},
        "You always clip to 1. The bound is max_norm; 1 is only its default.",
    )

    wrong(
        "step_returns_a_tensor",
        {"return loss.item()": "return loss"},
        "You return a tensor. The exercise asks for a Python float; and a tensor that is not "
        "detached holds the whole computation in memory as long as somebody keeps it.",
        seen="public issues: memory that grows with a list of losses",
    )

    wrong(
        "step_returns_the_loss_after",
        {"return loss.item()": "return next_token_loss(model(tokens), tokens).item()"},
        "You return the loss after the step, with a second pass through the model. The loss of the "
        "first pass is there already, and is the one that belongs to the gradients.",
    )

    wrong(
        "step_returns_nothing",
        {"return loss.item()": ""},
        "Your step returns nothing. The loop wants to draw the loss.",
    )

    wrong(
        "step_not_shifted",
        {
            "next_token_loss(model(tokens), tokens)":
                "F.cross_entropy(model(tokens).flatten(0, -2), tokens.flatten())",
        },
        "Your loss scores each position against the token that it has read. Use next_token_loss, "
        "which shifts.",
    )

    wrong(
        "step_shifted_twice",
        {"next_token_loss(model(tokens), tokens)":
            "next_token_loss(model(tokens[..., :-1]), tokens[..., 1:])"},
        "It comes out as where you shift the tokens and next_token_loss shifts once more. It "
        "takes the logits and the tokens of the same, whole text.",
    )

    wrong(
        "step_two_calls",
        {"return loss.item()": "return loss.item() + 0 * model(tokens).sum().item()"},
        "You call the model more than once. A second pass costs as much as the first, and with "
        "dropout it is not even the same.",
    )

    wrong(
        "step_two_updates",
        {"optimizer.step()": "optimizer.step(); optimizer.step()"},
        "It comes out as if the optimiser stepped twice with the same gradients. It should step "
        "once.",
    )

    wrong(
        "step_own_optimizer",
        {
            "optimizer.zero_grad()": """
                optimizer = torch.optim.SGD(model.parameters(), lr=optimizer.param_groups[0]["lr"])
                optimizer.zero_grad()
            """,
        },
        "The parameters move by rate times gradient, as where not the given optimiser makes the "
        "step, but your own hand or another one. The given one has a rule and a memory (momentum, "
        "Adam's averages), which are lost.",
    )

    wrong(
        "step_sets_train_mode",
        {"optimizer.zero_grad()": "model.train(); optimizer.zero_grad()"},
        "You switch the model to training mode. The mode belongs to the caller: leave it as it is.",
    )

    wrong(
        "step_frozen_crashes",
        {
            "nn.utils.clip_grad_norm_(model.parameters(), max_norm)": """
                norm = torch.sqrt(sum(p.grad.square().sum() for p in model.parameters()))
                for p in model.parameters():
                    p.grad.mul_((max_norm / norm).clamp(max=1))
            """,
        },
        "A parameter that is not trained has no gradient: its .grad is None, and your code stops "
        "there. Leave those out.",
        edge=True,
    )

    wrong(
        "step_in_train_mode_for_a_while",
        {
            "loss = next_token_loss(model(tokens), tokens)": """
                mode = model.training
                loss = next_token_loss(model.train()(tokens), tokens)
                model.train(mode)
            """,
        },
        "The model is called in another mode than the one you got it in: in eval mode dropout "
        "should stay off during the step too, not only afterwards.",
        seen="answers written by an adversary",
    )


SHORT_SAMPLING = """
def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature < 0:
        raise ValueError(f"temperature {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p {top_p}")
    order = torch.sort(logits, descending=True, stable=True).indices
    if temperature == 0:
        p = torch.zeros_like(logits)
        p[order[0]] = 1
        return p
    p = torch.softmax(logits / temperature, dim=-1)
    if top_k is not None:
        kept = torch.zeros_like(p)
        kept[order[:top_k]] = p[order[:top_k]]
        p = kept / kept.sum()
    if top_p is not None:
        ordered = p[order]
        count = int((ordered.cumsum(-1) - ordered < top_p).sum())
        kept = torch.zeros_like(p)
        kept[order[:count]] = p[order[:count]]
        p = kept / kept.sum()
    return p
"""

with exercise("sampling_distribution", base=SHORT_SAMPLING):
    wrong(
        "sampling_multiplies",
        {"logits / temperature": "logits * temperature"},
        "You multiply by the temperature. A high temperature should make the tokens more alike: "
        "divide.",
    )

    wrong(
        "sampling_temperature_of_probabilities",
        {"torch.softmax(logits / temperature, dim=-1)":
            "torch.softmax(torch.softmax(logits, dim=-1) / temperature, dim=-1)"},
        "It comes out as if the probabilities were divided by the temperature and went through a "
        "softmax again. The temperature divides the logits.",
    )

    wrong(
        "sampling_temperature_ignored",
        {"logits / temperature": "logits"},
        "Your temperature has no effect (other than at 0).",
    )

    wrong(
        "sampling_temperature_after_softmax",
        {"torch.softmax(logits / temperature, dim=-1)": "torch.softmax(logits, dim=-1) / temperature"},
        "You divide the probabilities by the temperature: they no longer sum to 1, and their ratios "
        "stay. The temperature divides the logits.",
    )

    wrong(
        "sampling_zero_divides",
        {
            """
                if temperature == 0:
                    p = torch.zeros_like(logits)
                    p[order[0]] = 1
                    return p
            """: "",
        },
        "At temperature 0 your result is NaN, as where it divides. All goes to the largest logit.",
    )

    wrong(
        "sampling_zero_is_small",
        {
            """
                if temperature == 0:
                    p = torch.zeros_like(logits)
                    p[order[0]] = 1
                    return p
            """: """
                temperature = max(temperature, 1e-6)
            """,
        },
        "At temperature 0 your equal largest logits share, as with a tiny temperature. The first "
        "of them should get all.",
    )

    wrong(
        "sampling_zero_last_of_equals",
        {"p[order[0]] = 1": "p[torch.nonzero(logits == logits.max())[-1]] = 1"},
        "At temperature 0 you take the last of equal logits. The first one gets all.",
        edge=True,
    )

    wrong(
        "sampling_zero_before_the_errors",
        """
            def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
                order = torch.sort(logits, descending=True, stable=True).indices
                if temperature == 0:
                    p = torch.zeros_like(logits)
                    p[order[0]] = 1
                    return p
                if temperature < 0 or (top_k is not None and top_k < 1):
                    raise ValueError("out of range")
                if top_p is not None and not 0 < top_p <= 1:
                    raise ValueError("out of range")
                p = torch.softmax(logits / temperature, dim=-1)
                if top_k is not None:
                    kept = torch.zeros_like(p)
                    kept[order[:top_k]] = p[order[:top_k]]
                    p = kept / kept.sum()
                if top_p is not None:
                    ordered = p[order]
                    count = int((ordered.cumsum(-1) - ordered < top_p).sum())
                    kept = torch.zeros_like(p)
                    kept[order[:count]] = p[order[:count]]
                    p = kept / kept.sum()
                return p
        """,
        "At temperature 0 a top_k or top_p that is out of range goes through. It is a ValueError "
        "there too.",
        edge=True,
    )

    wrong(
        "sampling_no_errors",
        {
            "temperature < 0": "False",
            "top_k is not None and top_k < 1": "False",
            "top_p is not None and not 0 < top_p <= 1": "False",
        },
        "A value out of range goes through: a negative temperature, for one, prefers the least "
        "likely tokens. Each such value, of top_k and top_p too, is a ValueError.",
    )

    wrong(
        "sampling_top_k_threshold",
        {
            """
                kept = torch.zeros_like(p)
                kept[order[:top_k]] = p[order[:top_k]]
            """: """
                least = p[order[min(top_k, len(p)) - 1]]
                kept = torch.where(p >= least, p, 0)
            """,
        },
        "You keep every token that is at least as likely as the k-th one. Where several are equal "
        "there, more than k stay. Exactly k stay; of equals the lower index.",
        seen="logits below torch.topk's last value set to -inf, as published samplers do",
    )

    wrong(
        "sampling_top_k_above_vocab",
        {"order[:top_k]] = p[order[:top_k]": "p.topk(top_k).indices] = p[p.topk(top_k).indices"},
        "A top_k above the vocabulary makes your function stop: torch.topk, for one, allows no "
        "such k (and does not promise which of equals it takes). A top_k above vocab keeps all.",
        edge=True,
    )

    wrong(
        "sampling_top_k_smallest",
        {"kept[order[:top_k]] = p[order[:top_k]]": "kept[order[-top_k:]] = p[order[-top_k:]]"},
        "Your top_k keeps the least likely tokens.",
    )

    wrong(
        "sampling_top_k_not_renormalised",
        {
            """
                    kept[order[:top_k]] = p[order[:top_k]]
                    p = kept / kept.sum()
            """: """
                    kept[order[:top_k]] = p[order[:top_k]]
                    p = kept
            """,
        },
        "After top_k you do not renormalise: what is left sums to less than 1, and top_p then asks "
        "for more tokens than it should.",
    )

    wrong(
        "sampling_top_k_one_more",
        {"kept[order[:top_k]] = p[order[:top_k]]": "kept[order[:top_k + 1]] = p[order[:top_k + 1]]"},
        "Your top_k keeps one token too many.",
    )

    wrong(
        "sampling_equals_higher_index",
        {
            "order = torch.sort(logits, descending=True, stable=True).indices":
                "order = torch.sort(logits, stable=True).indices.flip(0)",
        },
        "Of equal logits your order takes the higher index first. The lower index comes first: an "
        "order that is sorted and then flipped, for one, turns equals round.",
        edge=True,
    )

    wrong(
        "sampling_top_p_without_the_crossing",
        {"ordered.cumsum(-1) - ordered < top_p": "ordered.cumsum(-1) <= top_p"},
        "You leave out the token that crosses top_p. The set's sum should be AT LEAST top_p; and "
        "where the first token alone is above it, yours is empty.",
    )

    wrong(
        "sampling_top_p_crossing_kept_first",
        {"int((ordered.cumsum(-1) - ordered < top_p).sum())":
            "max(1, int((ordered.cumsum(-1) <= top_p).sum()))"},
        "You leave out the token that crosses top_p (but keep at least one). The set's sum should "
        "be at least top_p.",
    )

    wrong(
        "sampling_top_p_one_too_many",
        {"ordered.cumsum(-1) - ordered < top_p": "ordered.cumsum(-1) - ordered <= top_p"},
        "When the sum is exactly top_p you take one token more. 'At least' is reached: the smallest "
        "set is complete.",
        edge=True,
    )

    wrong(
        "sampling_top_p_threshold",
        {"int((ordered.cumsum(-1) - ordered < top_p).sum())":
            "max(1, int((ordered >= 1 - top_p).sum()))"},
        "It comes out as if each token's own probability were compared with a bound. Top-p is "
        "about the SUM of the most likely ones.",
    )

    wrong(
        "sampling_top_p_min_p",
        {"int((ordered.cumsum(-1) - ordered < top_p).sum())":
            "int((ordered >= top_p * ordered[0]).sum())"},
        "You keep tokens that are at least top_p times as likely as the first (that is called "
        "min-p). Top-p is about the sum of the most likely ones.",
        seen="min-p sampling",
    )

    wrong(
        "sampling_top_p_unsorted",
        {"[order]": "", "order[:count]] = p[order[:count]": ":count] = p[:count"},
        "It comes out as if the probabilities were added up in the order of the vocabulary. The "
        "most likely tokens come first: sort.",
    )

    wrong(
        "sampling_top_p_not_renormalised",
        {
            """
                    kept[order[:count]] = p[order[:count]]
                    p = kept / kept.sum()
            """: """
                    kept[order[:count]] = p[order[:count]]
                    p = kept
            """,
        },
        "After top_p you do not renormalise: the probabilities sum to less than 1.",
    )

    wrong(
        "sampling_sorted_result",
        {"order[:count]] = p[order[:count]": ":count] = ordered[:count"},
        "Your result is in sorted order: the largest probability stands at token 0. Put each one "
        "back to its own token.",
    )

    wrong(
        "sampling_sorted_throughout",
        {
            "p = torch.softmax":
                "logits, order = logits[order], torch.arange(len(logits)); p = torch.softmax",
        },
        "Your result is in sorted order, whatever was asked for: the largest probability stands at "
        "token 0. Put each one back to its own token.",
    )

    wrong(
        "sampling_top_p_first",
        """
            def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
                if temperature < 0 or (top_k is not None and top_k < 1):
                    raise ValueError("out of range")
                if top_p is not None and not 0 < top_p <= 1:
                    raise ValueError("out of range")
                order = torch.sort(logits, descending=True, stable=True).indices
                p = torch.zeros_like(logits)
                if temperature == 0:
                    p[order[0]] = 1
                    return p
                ordered = torch.softmax(logits / temperature, dim=-1)[order]
                count = len(ordered)
                if top_p is not None:
                    count = int((ordered.cumsum(-1) - ordered < top_p).sum())
                if top_k is not None:
                    count = min(count, top_k)
                p[order[:count]] = ordered[:count]
                return p / p.sum()
        """,
        "You apply top_p to the whole distribution, and not to what top_k has left, renormalised. "
        "With both, your set is larger than it should be.",
        seen="samplers that mask twice and renormalise once",
    )

    wrong(
        "sampling_top_p_before_temperature",
        {"ordered = p[order]": "ordered = torch.softmax(logits, -1)[order] if top_k is None else p[order]"},
        "Your top_p looks at the probabilities without the temperature. The temperature comes first.",
    )

    wrong(
        "sampling_writes_into_the_logits",
        {"logits / temperature": "logits.div_(temperature)"},
        "You write into the logits that you were given. They belong to the caller.",
    )

    wrong(
        "sampling_float32",
        {"logits / temperature": "logits.float() / temperature"},
        "It comes out as if float64 were rounded to float32 on the way. The precision of the "
        "logits is kept.",
        edge=True,
    )

    wrong(
        "sampling_exponentials",
        {"torch.softmax(logits / temperature, dim=-1)":
            "torch.exp(logits / temperature) / torch.exp(logits / temperature).sum()"},
        "With logits near 10,000 your result is NaN, as where the softmax is written as "
        "exponentials over their sum: they are infinite (lesson 2).",
    )

    wrong(
        "sampling_draws",
        """
            def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
                p = torch.softmax(logits / max(temperature, 1e-6), dim=-1)
                return torch.multinomial(p, 1)[0]
        """,
        "You return a single number, such as a token. The exercise asks for the distribution from "
        "which the token is drawn.",
    )

    wrong(
        "sampling_order_of_topk",
        {"torch.sort(logits, descending=True, stable=True": "logits.topk(len(logits)"},
        "Of many equal logits others stay than those of the lower indices. Not every way to sort "
        "keeps equals in their order: torch.topk and np.argsort, for two, do not promise it.",
        seen="input gaps of the tests",
    )

    wrong(
        "sampling_refuses_top_p_one",
        {"not 0 < top_p <= 1": "not 0 < top_p < 1"},
        "You refuse top_p = 1 with an error. It is allowed: top_p is above 0 and at most 1, and with 1 "
        "everything stays.",
        seen="answers written blind",
        edge=True,
    )


with exercise("judges_step"):
    wrong(
        "judge_always_true",
        "return True",
        "You find every step right, the broken ones too. A test that does not fail there tests "
        "nothing.",
    )

    wrong(
        "judge_no_old_gradients",
        {
            "p.grad = torch.randn(p.shape, generator=generator, dtype=torch.float64)": "",
        },
        "A step that keeps old gradients looks right to you. On a new model, for one, none lie: "
        "put some there, other than the step's own, before you call it, or call it twice.",
    )

    wrong(
        "judge_never_clips",
        {"(0.1, 100.0)": "(100.0,)"},
        "A step without clipping looks right to you. This comes, for one, of a max_norm above the "
        "norm of your gradients, so that nothing is clipped; or of Adam, whose step hardly "
        "depends on the size of the gradient. Take SGD and a small max_norm.",
    )

    wrong(
        "judge_loss_only",
        {
            """
                for p, old, g in zip(model.parameters(), before, gradients, strict=True):
                    if not torch.allclose(p, old - 0.5 * scale * g, rtol=0, atol=1e-5):
                        return False
            """: "",
        },
        "Your verdicts are those of the returned loss alone, as where parameters are not compared, or "
        "with too wide a tolerance. The loss does not say what became of them: no update, no "
        "clipping and a frozen layer go through.",
    )

    wrong(
        "judge_parameters_only",
        {"not isinstance(returned, float) or abs(returned - loss.item()) > 1e-4 or model.training":
            "not isinstance(returned, float)"},
        "A step that reports the loss after the update goes through: you do not look at the loss "
        "that is returned, or allow it too much.",
    )

    wrong(
        "judge_first_parameter",
        {"not torch.allclose": "p is model[0].weight and not torch.allclose"},
        "A step that freezes a parameter behind the first looks right to you: compare all.",
    )

    wrong(
        "judge_loss_falls",
        """
            def judges_step(step):
                generator = torch.Generator().manual_seed(0)
                model = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11))
                tokens = torch.randint(11, (3, 7), generator=generator)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                try:
                    losses = [step(model, optimizer, tokens) for _ in range(20)]
                except Exception:
                    return False
                return bool(losses[-1] < losses[0])
        """,
        "Your verdicts are those of a judge who asks whether the loss falls. It falls with most "
        "broken steps too: that is the whole trouble. Compute what one step should do, and "
        "compare.",
    )

    wrong(
        "judge_something_moves",
        {"not torch.allclose(p, old - 0.5 * scale * g, rtol=0, atol=1e-5)": "torch.equal(p, old)"},
        "Clipping and old gradients do not show in your verdicts. Compare each parameter with the place "
        "where this step should put it, on a text whose gradient is larger than max_norm, and with "
        "gradients from before.",
    )

    wrong(
        "judge_exact",
        {"torch.allclose(p, old - 0.5 * scale * g, rtol=0, atol=1e-5)":
            "torch.equal(p, old - 0.5 * scale * g)"},
        "You find right steps broken, as where exactly equal numbers are asked for. A right step "
        "may add in another order, and torch's clipping divides by the norm plus 1e-6: allow a "
        "little.",
    )

    wrong(
        "judge_coarse",
        {"atol=1e-5": "atol=0.5"},
        "Moves that are wrong, or missing, look right to you, as with a tolerance that is larger "
        "than the moves themselves.",
    )

    wrong(
        "judge_raises",
        {
            """
                try:
                    returned = step(model, torch.optim.SGD(model.parameters(), lr=0.5), tokens, max_norm)
                except Exception:
                    return False
            """: """
                returned = step(model, torch.optim.SGD(model.parameters(), lr=0.5), tokens, max_norm)
            """,
        },
        "A step that raises an error stops your judge. Such a step is broken: the verdict is False.",
    )

    wrong(
        "judge_catches_value_errors",
        {"except Exception:": "except ValueError:"},
        "Your judge does not survive every kind of error. A step that raises any error is broken: "
        "the verdict is False.",
        edge=True,
    )

    wrong(
        "judge_expects_unshifted",
        {"loss = next_token_loss(model(tokens), tokens)":
            "loss = F.cross_entropy(model(tokens).flatten(0, -2), tokens.flatten())"},
        "You find the right steps broken, as where the loss is computed without the shift.",
    )

    wrong(
        "judge_expects_no_clipping",
        {"min(1.0, max_norm / norm)": "1.0"},
        "You find the right steps broken, as where the move is computed without clipping.",
    )

    wrong(
        "judge_expects_the_loss_after",
        {" loss.": " next_token_loss(model(tokens), tokens)."},
        "Your verdicts are those of a judge who compares the loss after the step has changed the "
        "model. The loss before the step is asked for: compute it before the call.",
    )

    wrong(
        "judge_compares_with_itself",
        {"[p.detach().clone() for p in model.parameters()]": "[p.detach() for p in model.parameters()]"},
        "You find every step broken, also the right ones. Right steps differ by rounding: do you "
        "compare with a tolerance? If you compare with the old parameters: are they copies? "
        "p.detach() is the same memory, and after the step it has moved as well.",
    )

    wrong(
        "judge_tensor",
        """
            def judges_step(step):
                generator = torch.Generator().manual_seed(0)
                model = nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 11)).double()
                for p in model.parameters():
                    p.data = torch.randn(p.shape, generator=generator, dtype=torch.float64)
                twin = copy.deepcopy(model)
                for p in model.parameters():
                    p.grad = torch.ones_like(p)
                tokens = torch.randint(11, (3, 7), generator=generator)
                loss = next_token_loss(twin(tokens), tokens)
                loss.backward()
                nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
                torch.optim.SGD(twin.parameters(), lr=1.0).step()
                try:
                    found = step(model, torch.optim.SGD(model.parameters(), lr=1.0), tokens, 0.1)
                except Exception:
                    return torch.tensor(False)
                a = torch.cat([p.flatten() for p in model.parameters()])
                b = torch.cat([p.flatten() for p in twin.parameters()])
                return ((a - b).abs().max() < 1e-5) & (abs(found - loss.item()) < 1e-4)
        """,
        "You return a tensor (or NumPy's bool). The exercise asks for Python's bool.",
    )

    wrong(
        "judge_global_random",
        {"generator = torch.Generator().manual_seed(0)":
            "generator = torch.Generator().manual_seed(0); np.random.seed(0)"},
        "You change NumPy's global random state. Other people's random numbers change with it: "
        "make a generator of your own.",
    )

    wrong(
        "judge_looks_at_gradients",
        {
            "if not isinstance(returned, float)": """
                if any(p.grad is None or p.grad.norm() > 1.01 * max_norm for p in model.parameters()):
                    return False
                if not isinstance(returned, float)
            """,
        },
        "A right step that clears the gradients when it is done looks broken to you. What counts is "
        "where the parameters are afterwards and what is returned, not what lies on .grad.",
        seen="input gaps of the tests",
        edge=True,
    )

    wrong(
        "judge_without_biases",
        {
            "nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 11))":
                "nn.Sequential(nn.Embedding(11, 6), nn.Linear(6, 8, bias=False), nn.Tanh(), "
                "nn.Linear(8, 11, bias=False))",
        },
        "A step that keeps the old gradients of biases alone looks right to you: for one, your "
        "model has no bias, or no old gradient lies on it. Take a model that has some.",
        seen="answers written blind",
        edge=True,
    )

    wrong(
        "judge_tokens_in_turn",
        {"tokens = torch.randint(11, (3, 7), generator=generator)":
            "tokens = (torch.arange(7) % 2).repeat(3, 1)"},
        "A step that scores the logits against the token before, and not the next, looks right to "
        "you: for one, your tokens come in turn, so that both are the same. Take others.",
        seen="answers written blind",
        edge=True,
    )


choice(
    "answer_mean",
    "a",
    reason="That is the mean of the two means: the one prediction of the second text would weigh as "
    "much as the nine of the first.",
)
choice(
    "answer_mean",
    "b",
    right=True,
    reason="Ten predictions count: 9 of mean 1 and 1 of 3, so 12 / 10.",
)
choice(
    "answer_mean",
    "c",
    reason="That is 12 / 20: predictions of padding were counted in the divisor. Only those that "
    "count are.",
)
choice(
    "answer_mean",
    "d",
    reason="That is the sum of the two means. The loss is a mean over predictions.",
)

choice(
    "answer_top_p",
    "a",
    reason="That is the order of the exercise: there top-k renormalises first, and 0.667 is enough. "
    "Here top-p sees 0.5, which is below 0.6.",
)
choice(
    "answer_top_p",
    "b",
    reason="Two tokens stay, but they are renormalised: 8 and 4 of 12, not of 16.",
)
choice(
    "answer_top_p",
    "c",
    right=True,
    reason="0.5 is below 0.6, so the second token is needed; top-k 2 then keeps both. 8 of 12. The "
    "order of the two knobs matters.",
)
choice(
    "answer_top_p",
    "d",
    reason="0.5 + 0.25 is already at least 0.6: two tokens are enough.",
)

choice(
    "answer_silent_bug",
    "a",
    reason="The first line clears them. Put old gradients on the parameters and try: they have no "
    "influence.",
)
choice(
    "answer_silent_bug",
    "b",
    reason="The loss was computed before the update and is not computed again.",
)
choice(
    "answer_silent_bug",
    "c",
    right=True,
    reason="After zero_grad the gradients are None until backward: there is nothing to clip. With "
    "Adam the curve shows none of it. Measure the move with SGD.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="There is one call, and it shortens nothing. Measure the length of the move with SGD: it "
    "is too long, not too short.",
)

with exercise("train"):
    wrong(
        "one_batch_for_all_steps",
        {"losses = []": "losses, tokens = [], draw()", "draw())": "tokens)"},
        "Your steps all learn from one batch: draw() is called once and not once a step.",
    )
    wrong(
        "rate_stays",
        {
            """
            for group, rate in zip(optimizer.param_groups, rates):
                group["lr"] = rate * min(1.0, 2 * (steps - step) / steps)
            """: "",
        },
        "Your learning rate stays as it is. In the second half of the steps it falls to 0.",
    )
    wrong(
        "rate_falls_from_the_start",
        {"min(1.0, 2 * (steps - step) / steps)": "(steps - step) / steps"},
        "Your rate falls from the first step on. In the first half it is the optimiser's own.",
    )
    wrong(
        "rate_falls_twice",
        {"rate * min": 'group["lr"] * min'},
        "Your rate is made smaller again and again from what it was in the step before. Each is a share of "
        "the rate at the beginning.",
    )
    wrong(
        "rate_of_the_next_step",
        {"steps - step)": "steps - step - 1)"},
        "Your rate falls one step too early, and is 0 in the last step. Steps are counted from 0.",
    )
    wrong(
        "rate_set_after_the_step",
        """
            rates = [group["lr"] for group in optimizer.param_groups]
            losses = []
            for step in range(steps):
                losses.append(training_step(model, optimizer, draw()))
                for group, rate in zip(optimizer.param_groups, rates):
                    group["lr"] = rate * min(1.0, 2 * (steps - step) / steps)
            return losses
        """,
        "Your rate is set after the step that it belongs to, so each falls one step late.",
    )
    wrong(
        "first_group_alone",
        """
            rate = optimizer.param_groups[0]["lr"]
            losses = []
            for step in range(steps):
                optimizer.param_groups[0]["lr"] = rate * min(1.0, 2 * (steps - step) / steps)
                losses.append(training_step(model, optimizer, draw()))
            return losses
        """,
        "The rate falls for the first group of parameters alone. Each group has its own.",
        edge=True,
    )
    wrong(
        "one_step_short",
        {"range(steps)": "range(1, steps)"},
        "Your loop takes one step too few, or begins to count at 1. There are steps 0 to steps - 1.",
    )
    wrong(
        "train_returns_nothing",
        {"return losses": ""},
        "Your function returns None. The losses of all steps are asked for, a list.",
    )
