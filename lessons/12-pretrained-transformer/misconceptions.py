"""Wrong implementations of lesson 12, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("wordpiece"):
    wrong(
        "shortest_first",
        {"range(len(word), start, -1)": "range(start + 1, len(word) + 1)"},
        "You take the shortest piece that fits. The longest comes first: try ends from the last "
        "letter backwards.",
    )

    wrong(
        "no_marks_in_the_lookup",
        {'piece = word[start:end] if start == 0 else "##" + word[start:end]': "piece = word[start:end]"},
        "A piece that may only begin a word is found inside one, as where inner pieces are looked "
        "up without ##. After the first piece the vocabulary is asked for '##' and the letters.",
    )

    wrong(
        "marks_optional_in_the_lookup",
        {"if piece in vocabulary:": "if piece in vocabulary or word[start:end] in vocabulary:"},
        "Inside a word you also take a piece that stands in the vocabulary without ##. Such a piece may "
        "only begin a word; inside one only '##' and the letters count.",
    )

    wrong(
        "marks_lost_in_the_result",
        {"pieces.append(piece)": 'pieces.append(piece.replace("##", ""))'},
        "Your result lacks the ##. Inner pieces carry it in the result too: 's' and '##s' are two "
        "different pieces with two different vectors.",
    )

    wrong(
        "marks_on_every_piece",
        {'word[start:end] if start == 0 else "##" + word[start:end]': '"##" + word[start:end]'},
        "It comes out as where ## is looked for also at the beginning of the word. The first "
        "piece stands in the vocabulary without it.",
    )

    wrong(
        "goes_back",
        """
        def cut(rest, mark):
            if not rest:
                return []
            for end in range(len(rest), 0, -1):
                if mark + rest[:end] in vocabulary:
                    more = cut(rest[end:], "##")
                    if more is not None:
                        return [mark + rest[:end], *more]
            return None

        found = cut(word, "") if len(word) < 100 else None
        return found if found is not None else ["[UNK]"]
        """,
        "Your pieces are those of a cut that goes back and tries a shorter piece when it runs "
        "into a wall. The published one never does: one wall, and the whole word is [UNK].",
        seen="solutions that search for any cover",
    )

    wrong(
        "fewest_pieces",
        """
        best = {0: []}
        for end in range(1, len(word) + 1):
            for start in range(end):
                piece = ("##" if start else "") + word[start:end]
                if start in best and piece in vocabulary:
                    if end not in best or len(best[start]) + 1 < len(best[end]):
                        best[end] = [*best[start], piece]
        return best.get(len(word), ["[UNK]"])
        """,
        "Your cut is the one with the fewest pieces. The one that is asked for is greedy: the "
        "longest piece at each place, from the left, even where another cut would need fewer or "
        "would avoid [UNK].",
        seen="tokenisers of the unigram kind, which optimise the whole cut",
    )

    wrong(
        "unknown_only_for_the_rest",
        {'return ["[UNK]"]': 'return [*pieces, "[UNK]"]'},
        "You keep the pieces before the wall and put [UNK] behind them. The whole word becomes one "
        "[UNK].",
    )

    wrong(
        "skips_the_letter",
        {'return ["[UNK]"]': "start += 1\ncontinue"},
        "Where nothing fits you skip a letter and go on, so a word with an unknown letter looks like "
        "another word. The whole word becomes [UNK].",
    )

    wrong(
        "nothing_for_unknown",
        {'return ["[UNK]"]': "return []"},
        "For a word that cannot be covered you return an empty list: the word vanishes. It should be "
        "the list with the one piece [UNK].",
    )

    wrong(
        "stops_at_the_wall",
        {'return ["[UNK]"]': "return pieces"},
        "At a wall you return the pieces found so far, so the rest of the word vanishes. The whole "
        "word becomes [UNK].",
    )

    wrong(
        "unknown_letter_by_letter",
        {'return ["[UNK]"]': 'piece, end = "[UNK]", start + 1'},
        "Where nothing fits you put [UNK] for one letter and go on. One wall makes the whole word one "
        "[UNK].",
    )

    wrong(
        "word_cut_to_a_hundred",
        {"pieces = []": 'pieces = []\nif len(word) > 100:\n    return ["[UNK]"]'},
        "You give up on long words. In this exercise there is no largest length.",
        seen="BERT's own tokeniser, which makes words of more than 100 letters [UNK]",
        edge=True,
    )

    wrong(
        "lower_case",
        {"pieces = []": "pieces = []\nword = word.lower()"},
        "It comes out as if the word were made lower case. Here upper and lower case are "
        "different letters; who calls wordpiece has done that already.",
    )

    wrong(
        "loops_over_the_vocabulary",
        {
            "range(len(word), start, -1)": "sorted({start + len(p) for p in vocabulary} | {start + len(p) - 2 "
            "for p in vocabulary if start} , reverse=True)",
            "if piece in vocabulary": "if start < end <= len(word) and piece in vocabulary",
        },
        "You go through the vocabulary: a loop does, and so do set(), sorted() and max(). It may "
        "be anything that answers `piece in vocabulary`, and it has 30,000 entries: loop over the "
        "ends of the piece instead.",
        edge=True,
    )

    wrong(
        "last_letter_left_out",
        {"range(len(word), start, -1)": "range(len(word) - 1, start, -1)"},
        "Every word of the tests comes out as [UNK]. Check first: is a piece looked for that "
        "reaches the end of the word? A slice word[start:end] ends before end.",
    )

    wrong(
        "letters_only",
        {
            "pieces = []": """
                if not word.isalpha():
                    return ["[UNK]"]
                pieces = []
            """,
        },
        "A word with a character that is no letter, such as 3's, is not cut as the vocabulary "
        "says. Any character but # may stand in a word: ask the vocabulary, and nothing else.",
        seen="answers written by an adversary",
    )


with exercise("embed"):
    wrong(
        "no_positions",
        {"words + positions + kind": "words + kind"},
        "The positions are missing: without them the model cannot tell orders apart (lesson 7). Row t "
        "of the table of positions is added to token t.",
    )

    wrong(
        "no_token_type",
        {"words + positions + kind": "words + positions"},
        "The token type is missing. It is the same vector for every token, but the norm comes "
        "afterwards, so it does not cancel.",
        seen="encoders written for one text",
    )

    wrong(
        "token_type_one",
        {'token_type_embeddings.weight"][0]': 'token_type_embeddings.weight"][1]'},
        "You add token type 1. A single text is type 0; type 1 is for the second text of a pair.",
    )

    wrong(
        "no_norm",
        {"F.layer_norm(words + positions + kind, gamma.shape, gamma, beta, 1e-12)": "words + positions + kind"},
        "The layer norm is missing. It stands before the first block.",
    )

    wrong(
        "norm_before_the_sum",
        {
            "F.layer_norm(words + positions + kind, gamma.shape, gamma, beta, 1e-12)": "F.layer_norm(words, "
            "gamma.shape, gamma, beta, 1e-12) + positions + kind"
        },
        "You normalise the words and add the other two afterwards. All three are added first, and the "
        "sum is normalised.",
    )

    wrong(
        "gamma_and_beta_left_out",
        {"gamma.shape, gamma, beta, 1e-12": "gamma.shape, None, None, 1e-12"},
        "The norm's own gamma (weight) and beta (bias) are missing.",
    )

    wrong(
        "gamma_and_beta_exchanged",
        {"gamma.shape, gamma, beta, 1e-12": "gamma.shape, beta, gamma, 1e-12"},
        "gamma and beta are exchanged: weight multiplies, bias is added.",
    )

    wrong(
        "default_eps",
        {"beta, 1e-12": "beta"},
        "Your norm has another eps. This model was trained with 1e-12, not with PyTorch's 1e-5; for "
        "small vectors it shows.",
        seen="ports of BERT with the default eps of nn.LayerNorm",
    )

    wrong(
        "no_eps",
        """
        words = weights["embeddings.word_embeddings.weight"][ids]
        x = words + weights["embeddings.position_embeddings.weight"][: ids.shape[-1]]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        centred = x - x.mean(-1, keepdim=True)
        normal = centred / (centred.square().mean(-1, keepdim=True).sqrt() + 1e-12)
        return normal * weights["embeddings.LayerNorm.weight"] + weights["embeddings.LayerNorm.bias"]
        """,
        "Your eps has next to no effect: it is missing, or stands outside the root. It is added "
        "to the variance, before the root is taken; for small vectors it shows.",
    )

    wrong(
        "unbiased_variance",
        """
        words = weights["embeddings.word_embeddings.weight"][ids]
        x = words + weights["embeddings.position_embeddings.weight"][: ids.shape[-1]]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        normal = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-12).sqrt()
        return normal * weights["embeddings.LayerNorm.weight"] + weights["embeddings.LayerNorm.bias"]
        """,
        "Your variance divides by d_model - 1, torch's default. Layer norm takes the biased one, which "
        "divides by d_model.",
    )

    wrong(
        "norm_over_the_text",
        {"gamma.shape, gamma, beta, 1e-12)": "words.shape[-2:], None, None, 1e-12) * gamma + beta"},
        "You normalise each text as a whole, so each token feels the others. Mean and variance are "
        "those of one token's features.",
    )

    wrong(
        "positions_of_the_pieces",
        {'position_embeddings.weight"][: ids.shape[-1]]': 'position_embeddings.weight"][ids]'},
        "It comes out as if the positions were looked up with ids, the numbers of the pieces. "
        "Position t belongs to token t, whichever piece it is: 0, 1, 2 and so on.",
    )

    wrong(
        "positions_from_one",
        {"[: ids.shape[-1]]": "[(torch.arange(ids.shape[-1]) + 1) % 9]"},
        "Your positions begin at 1. The first token gets row 0.",
        seen="RoBERTa, whose positions begin at 2",
    )

    wrong(
        "positions_without_padding",
        {": ids.shape[-1]": "((ids != 0).long().cumsum(-1) - 1).clamp(min=0)"},
        "It comes out as if positions were counted only over tokens whose number is not 0. Piece "
        "0 is a token like any other here: position t belongs to token t.",
        seen="RoBERTa, whose positions skip the padding",
    )

    wrong(
        "positions_of_the_texts",
        {
            '["embeddings.position_embeddings.weight"][: ids.shape[-1]]': '["embeddings.position_embeddings.weight"]'
            "[torch.arange(ids.shape[0])].unflatten(0, (-1, *[1] * (ids.ndim - 1)))"
        },
        "You number the texts of the batch, not the tokens of a text: all tokens of a text get the same "
        "position. Positions run along the last axis of ids.",
    )

    wrong(
        "whole_position_table",
        {"[: ids.shape[-1]]": ""},
        "It goes wrong as where the whole table of positions is added. A text of n tokens gets "
        "its first n rows.",
    )

    wrong(
        "writes_into_weights",
        {
            'words = weights["embeddings.word_embeddings.weight"][ids]': 'table = '
            'weights["embeddings.word_embeddings.weight"]\n'
            'table += weights["embeddings.token_type_embeddings.weight"][0]\n'
            "words = table[ids]",
            "words + positions + kind": "words + positions",
        },
        "weights is changed, as where the token type is added into the table of words itself: at "
        "the next call it is added once more. Add to what was looked up.",
    )

    wrong(
        "scaled_words",
        {"words + positions + kind": "words * words.shape[-1] ** 0.5 + positions + kind"},
        "You multiply the word vectors by the root of d_model. The paper of 2017 does that, BERT and "
        "this model do not.",
        seen="the paper of 2017, section 3.4",
    )

    wrong(
        "tables_by_their_order",
        """
            word, place, kinds, gamma, beta = list(weights.values())[:5]
            x = word[ids] + place[: ids.shape[-1]] + kinds[0]
            return F.layer_norm(x, gamma.shape, gamma, beta, 1e-12)
        """,
        "A dictionary in another order, with more names, gives something else or an error: for "
        "one, the tensors are taken by their place, or by a part of the name. Take each by its "
        "whole name.",
        seen="answers written by an adversary",
    )

    wrong(
        "float64_always",
        {
            "words + positions + kind, gamma.shape, gamma, beta":
                "(words + positions + kind).double(), gamma.shape, gamma.double(), beta.double()",
        },
        "Weights of float32 give a result that is not float32. The precision of the weights should "
        "be kept: what goes into the first block has to fit its parameters.",
        seen="answers written by an adversary",
        edge=True,
    )

    wrong(
        "names_by_their_end",
        {
            "words = weights": """
                ends = {name: ".".join(name.split(".")[-2:]) for name in weights}
                weights = {f"embeddings.{ends[name]}": weights[name] for name in weights}
                words = weights
            """,
        },
        "A dictionary in another order, with more names, gives something else or an error: for "
        "one, the tensors are taken by their place, or by a part of the name. Take each by its "
        "whole name.",
        seen="answers written blind",
    )


with exercise("load_block"):
    wrong(
        "turned_round",
        {"sources[name] = weights[published]": "sources[name] = weights[published].T"},
        "Weights that fit are refused, as where the matrices are turned round. They are stored as "
        "nn.Linear stores them, (outputs, inputs). Where a matrix is square, nothing tells you.",
        seen="ports of GPT-2, whose file stores (inputs, outputs)",
    )

    wrong(
        "square_ones_turned_round",
        {
            "sources[name] = weights[published]": "sources[name] = weights[published]\n"
            "if sources[name].ndim == 2 and target.shape[0] == target.shape[1]:\n"
            "    sources[name] = sources[name].T"
        },
        "You turn the square matrices of the attention round. All are stored as nn.Linear stores them, "
        "(outputs, inputs).",
    )

    wrong(
        "queries_and_keys_exchanged",
        {
            '"attention.self.query": attention.W_q': '"attention.self.query": attention.W_k',
            '"attention.self.key": attention.W_k': '"attention.self.key": attention.W_q',
        },
        "Queries and keys are exchanged: attention.self.query belongs into W_q, .key into W_k.",
    )

    wrong(
        "keys_and_values_exchanged",
        {
            '"attention.self.key": attention.W_k': '"attention.self.key": attention.W_v',
            '"attention.self.value": attention.W_v': '"attention.self.value": attention.W_k',
        },
        "Keys and values are exchanged: attention.self.key belongs into W_k, .value into W_v.",
    )

    wrong(
        "norms_exchanged",
        {
            '"attention.output.LayerNorm": block.norm1': '"attention.output.LayerNorm": block.norm2',
            '"output.LayerNorm": block.norm2': '"output.LayerNorm": block.norm1',
        },
        "The two norms are exchanged. attention.output.LayerNorm follows the attention: norm1.",
    )

    wrong(
        "gamma_and_beta_exchanged",
        {"gamma, part.beta": "beta, part.gamma"},
        "gamma and beta are exchanged in the norms: the published weight is gamma, bias is beta.",
    )

    wrong(
        "no_biases",
        {'targets[f"{name}.weight"], targets[f"{name}.bias"] = part.weight, part.bias': 'targets[f"{name}.weight"] = part.weight'},
        "The biases of the linear layers are not copied: they keep their random start values.",
    )

    wrong(
        "no_norms",
        {"in norms.items()": "in ()"},
        "The norms are not copied: gamma stays 1 and beta 0. They are part of the published layer.",
    )

    wrong(
        "no_feed_forward",
        {'"intermediate.dense": network.linear1,': "", '"output.dense": network.linear2,': ""},
        "The feed-forward is not copied: linear1 and linear2 keep their random start values.",
    )

    wrong(
        "attention_output_forgotten",
        {'"attention.output.dense": attention.W_o,': ""},
        "attention.output.dense is not copied: W_o keeps its random start values.",
    )

    wrong(
        "always_layer_zero",
        {"encoder.layer.{layer}.": "encoder.layer.0."},
        "You always load layer 0. The name holds the number of the layer that is asked for.",
    )

    wrong(
        "layers_count_from_one",
        {"encoder.layer.{layer}.": "encoder.layer.{layer - 1}."},
        "You load the layer before the one that is asked for. Layers count from 0, here and in the "
        "names.",
    )

    wrong(
        "every_parameter_of_the_block",
        """
        theirs = {
            "attention.W_q": "attention.self.query",
            "attention.W_k": "attention.self.key",
            "attention.W_v": "attention.self.value",
            "attention.W_o": "attention.output.dense",
            "norm1": "attention.output.LayerNorm",
            "feed_forward.linear1": "intermediate.dense",
            "feed_forward.linear2": "output.dense",
            "norm2": "output.LayerNorm",
        }
        pairs = []
        for name, parameter in block.named_parameters():
            part, _, kind = name.rpartition(".")
            kind = {"gamma": "weight", "beta": "bias"}.get(kind, kind)
            full = f"encoder.layer.{layer}.{theirs[part]}.{kind}"
            if full not in weights:
                raise KeyError(full)
            if weights[full].shape != parameter.shape:
                raise ValueError(f"{full}: {tuple(weights[full].shape)}, not {tuple(parameter.shape)}")
            pairs.append((parameter, weights[full]))
        with torch.no_grad():
            for parameter, source in pairs:
                parameter.copy_(source)
        """,
        "It goes wrong as where you go through all parameters that the block has. Its "
        "feed_forward may be another module, with parameters that nothing is published for: copy "
        "the 16 tensors that are.",
    )

    wrong(
        "one_is_ten",
        {
            'published = f"encoder.layer.{layer}.{name}"': "found = [one for one in weights if "
            'one.startswith(f"encoder.layer.{layer}") and one.endswith("." + name.split(".", 1)[1])\n'
            '         and one.split(".", 3)[3] == name]\n'
            'published = found[-1] if found else f"encoder.layer.{layer}.{name}"'
        },
        "It comes out as if every name that begins with encoder.layer.1 were taken, and so layer "
        "10 and 11 as well. The number ends at the next point.",
        edge=True,
    )

    wrong(
        "shares_memory",
        {"target.copy_(sources[name])": "target.data = sources[name]"},
        "The block's parameters and weights share memory: who trains the block changes weights. "
        "Copy the numbers. (A tensor that is put in itself brings its precision along, too.)",
    )

    wrong(
        "frozen_afterwards",
        {"target.copy_(sources[name])": "target.copy_(sources[name])\ntarget.requires_grad_(False)"},
        "After loading the parameters are frozen. They should stay trainable.",
    )

    wrong(
        "copies_while_it_looks",
        {
            "sources[name] = weights[published]": "sources[name] = weights[published]\n"
            "if sources[name].shape == target.shape:\n"
            "    with torch.no_grad():\n"
            "        target.copy_(sources[name])"
        },
        "After an error a part of the block is overwritten already, as where numbers are copied "
        "while names and shapes are still looked at. Look at all 16 first, then copy.",
    )

    wrong(
        "shapes_not_looked_at",
        {"sources[name].shape != target.shape": "False"},
        "A shape that does not fit goes through, or gives another error, as where only PyTorch "
        "looks at it: it broadcasts where it can, and where it cannot it stops with a "
        "RuntimeError. It is a ValueError, before anything is copied.",
    )

    wrong(
        "missing_names_skipped",
        {
            'raise KeyError(f"{published} is not among the weights")': "continue",
            "target.copy_(sources[name])": "target.copy_(sources.get(name, target))",
        },
        "A name that is missing passes without a word, and where it is skipped that part keeps "
        "its random numbers. It should be a KeyError that says the name.",
        seen="load_state_dict(strict=False)",
    )

    wrong(
        "key_error_without_the_name",
        {'raise KeyError(f"{published} is not among the weights")': 'raise KeyError("a weight is missing")'},
        "Your KeyError does not hold the whole name that is missing, as it stands in the "
        "dictionary. With 100 names that is what one needs to know.",
    )

    wrong(
        "value_error_without_shapes",
        {'raise ValueError(f"{published} has shape {given}, the block needs {wanted}")': 'raise ValueError(f"{published} does not fit")'},
        "Your ValueError does not say both shapes: the one in weights and the one that the block needs.",
    )

    wrong(
        "new_feed_forward",
        {
            "attention, network = block.attention, block.feed_forward": """
            d_model, d_ff = block.feed_forward.linear1.in_features, block.feed_forward.linear1.out_features
            kind = type(TransformerBlock(d_model, 1, d_ff).feed_forward)
            block.feed_forward = kind(d_model, d_ff)
            attention, network = block.attention, block.feed_forward
            """
        },
        "The activation that stood in the block is lost, or its precision, as where a new "
        "FeedForward is put there. Copy into the block's own linear1 and linear2.",
    )

    wrong(
        "feed_forward_by_order",
        {
            "attention, network = block.attention, block.feed_forward": """
                attention, network = block.attention, block.feed_forward
                ours = [m for m in network.children() if isinstance(m, torch.nn.Linear)]
            """,
            '"intermediate.dense": network.linear1': '"intermediate.dense": ours[0]',
            '"output.dense": network.linear2': '"output.dense": ours[1]',
        },
        "A feed_forward that makes linear2 before linear1 gets wrong numbers: for one, its layers "
        "are taken by their order. Another module may have them in any order: go by the names.",
        seen="answers written blind",
    )

    wrong(
        "by_way_of_float32",
        {"target.copy_(sources[name])": "target.copy_(sources[name].float())"},
        "Digits of float64 weights are lost on their way into a block of float64: for one, they go "
        "through float32. Copy them as they are: the block's parameters keep their own precision.",
        seen="answers written blind",
        edge=True,
    )

    wrong(
        "load_copies_nothing",
        {"target.copy_(sources[name])": "pass"},
        "Your function ends without an error, and none of the block's parameters has changed. "
        "Check first: a zip or a generator that the checks have gone through is empty when the "
        "copying begins.",
        seen="answers written blind",
    )

    wrong(
        "parameters_by_their_first_name",
        {
            "targets = {}": """
                own = dict(block.named_parameters())
                network = torch.nn.Module()
                for one, name in (("linear1", "intermediate.dense"), ("linear2", "output.dense")):
                    part = torch.nn.Module()
                    part.weight = own[f"feed_forward.{one}.weight"]
                    part.bias = own[f"feed_forward.{one}.bias"]
                    linear[name] = part
                targets = {}
            """,
        },
        "A feed_forward whose linear1 and linear2 are second names of its layers is not loaded, as "
        "where parameters are looked up in named_parameters(), which tells the first name only. "
        "The attributes linear1 and linear2 are there all the same.",
        seen="answers written blind",
        edge=True,
    )


with exercise("sentence_embedding"):
    wrong(
        "padding_in_the_mean",
        "return F.normalize(hidden.mean(dim=-2), dim=-1)",
        "You take the mean over all tokens. Only those count where keep is True; the others only fill up "
        "the batch.",
        seen="public issues: mean pooling without the attention mask",
    )

    wrong(
        "not_unit_length",
        {"return F.normalize(total / count, dim=-1)": "return total / count"},
        "Your vectors have not length 1. Divide the mean by its length.",
    )

    wrong(
        "each_token_to_length_one",
        {" hidden": " F.normalize(hidden, dim=-1)"},
        "You give each token the length 1 before the mean. The mean of the tokens as they are comes first; "
        "it is the mean that gets length 1.",
    )

    wrong(
        "first_token",
        "return F.normalize(hidden[..., 0, :], dim=-1)",
        "You take the vector of the first token, [CLS]. This model was trained with the mean over the "
        "kept tokens.",
        seen="classifiers on BERT, which read [CLS]",
    )

    wrong(
        "mean_over_features",
        {"return F.normalize(total / count, dim=-1)": "return (total / count) / (total / count).abs().sum(-1, keepdim=True).clamp(min=1e-12)"},
        "You divide by the sum of the absolute values. The length of a vector is the root of the sum of "
        "its squares.",
    )

    wrong(
        "normalised_over_the_batch",
        {"return F.normalize(total / count, dim=-1)": "return F.normalize(total / count, dim=0)"},
        "You divide along the first axis, which runs over the texts. Each vector gets length 1 by itself, "
        "over its features: the last axis.",
    )

    wrong(
        "the_largest",
        """
        largest = hidden.masked_fill(~keep[..., None], -torch.inf).amax(dim=-2)
        return F.normalize(largest.masked_fill(~keep.any(-1)[..., None], 0.0), dim=-1)
        """,
        "You take the largest value of each feature. It should be the mean over the kept tokens.",
        seen="max pooling, another setting of the same libraries",
    )

    wrong(
        "keep_turned_round",
        {"~keep[..., None]": "keep[..., None]", "keep.sum": "(~keep).sum"},
        "You take the mean over the tokens that are not kept. True means: a real token.",
        seen="torch's key_padding_mask, where True means hidden",
    )

    wrong(
        "nan_from_the_count",
        {".clamp(min=1)": ""},
        "A text without kept tokens gives NaN: somewhere 0 is divided by 0. It should give zeros.",
    )

    wrong(
        "number_added_to_the_length",
        {
            "return F.normalize(total / count, dim=-1)": "mean = total / count\nreturn mean / (mean.norm(dim=-1, keepdim=True) + 1e-8)",
        },
        "A mean of small numbers becomes shorter than 1, as where a small number is added to its "
        "length. Only a mean of zeros needs care.",
        edge=True,
    )

    wrong(
        "norm_of_one_text",
        {"return F.normalize(total / count, dim=-1)": "return total / count / (total / count).norm().clamp(min=1e-12)"},
        "You divide all vectors by one length, that of the whole batch. Each text's vector gets length 1 "
        "by itself.",
    )

    wrong(
        "axis_from_the_front",
        {"dim=-2": "dim=min(1, hidden.ndim - 2)"},
        "With two leading axes your result is another one, as where the axis of the tokens is "
        "counted from the front: count from the back.",
        edge=True,
    )

    wrong(
        "writes_into_hidden",
        {"hidden.masked_fill(": "hidden.masked_fill_("},
        "You write zeros into hidden itself. The caller still needs it: make a new tensor.",
    )

    wrong(
        "mean_in_float32",
        {
            "F.normalize(total / count, dim=-1)":
                "F.normalize((total / count).float(), dim=-1).to(hidden.dtype)",
        },
        "A float64 text gives a vector with fewer digits than float64 has: for one, something is "
        "float32 on the way, and turned back at the end. What is lost does not come back.",
        seen="answers written by an adversary",
        edge=True,
    )

    wrong(
        "cut_at_the_largest_count",
        {
            "total = hidden.masked_fill": """
                n = int(keep.sum(-1).max())
                hidden, keep = hidden[..., :n, :], keep[..., :n]
                total = hidden.masked_fill
            """,
        },
        "A kept token that stands behind others which are not kept is lost, as where a text is cut "
        "after as many tokens as are kept. Kept tokens may stand anywhere: keep says where.",
        seen="answers written blind",
    )

    wrong(
        "one_vector_for_nothing",
        {
            "total = hidden.masked_fill": """
                if not keep.any():
                    return hidden.new_zeros(hidden.shape[-1])
                total = hidden.masked_fill
            """,
        },
        "Where no text of a batch has a kept token, your result has another shape, as where an "
        "early return gives one vector for all. Each text has a vector of its own, zeros too.",
        seen="answers written blind",
    )


with exercise("attention_share"):
    wrong(
        "queries_for_keys",
        {"columns[..., None, None, :]).sum(dim=-1)": "columns[..., None, :, None]).sum(dim=-2)"},
        "You sum over marked rows. Rows are queries; the columns that are asked for are keys, the last "
        "axis.",
        seen="maps read the wrong way round",
    )

    wrong(
        "each_row_made_one",
        {"(weights * columns": "(weights / weights.sum(-1, keepdim=True).clamp(min=1e-12) * columns"},
        "You divide each query's sum by that of its whole row. A row that does not sum to 1 counts as "
        "it is: one that may attend to nothing gives 0.",
    )

    wrong(
        "keep_hides_columns_too",
        {" columns[": " (columns & keep)["},
        "You count a column only where keep is True. keep chooses the queries; a marked column counts "
        "for all of them.",
    )

    wrong(
        "keep_ignored",
        {"if keep is None:\n    keep = torch.ones_like(columns)": "keep = torch.ones_like(columns)"},
        "keep has no effect: queries that should not count, such as [PAD], are in your mean.",
    )

    wrong(
        "keep_for_the_sum_not_for_the_mean",
        {"/ keep.sum()": "/ keep.numel()"},
        "You leave out queries in the sum, but divide by the number of all queries. Divide by the number "
        "of the kept ones.",
    )

    wrong(
        "each_text_counts_once",
        {
            "return share.movedim(-2, 0).reshape(n_heads, -1).sum(dim=-1) / keep.sum()": "share = share.sum(-1) "
            "/ keep.sum(-1, keepdim=True).clamp(min=1)\nreturn share.reshape(-1, n_heads).mean(0)"
        },
        "You take the mean of each text, and then the mean of the texts. All kept queries count the "
        "same, so a long text counts more than a short one.",
    )

    wrong(
        "mean_over_columns",
        {
            "columns[..., None, None, :]).sum(dim=-1)": "columns[..., None, None, :]).sum(dim=-1) / "
            "columns.sum(-1)[..., None, None].clamp(min=1)"
        },
        "You take the mean over the marked columns. What goes to all of them together is the sum.",
    )

    wrong(
        "mean_over_all_columns",
        {"columns[..., None, None, :]).sum(dim=-1)": "columns[..., None, None, :]).mean(dim=-1)"},
        "You take the mean over all columns. What goes to the marked ones is the sum.",
    )

    wrong(
        "sum_not_mean",
        {" / keep.sum()": ""},
        "You add up over the queries. A share is a mean over them, between 0 and 1.",
    )

    wrong(
        "heads_averaged",
        {"/ keep.sum()": "/ keep.sum() * 0 + (share.sum() / keep.sum() / n_heads)"},
        "You average over the heads. There should be one number for each head.",
    )

    wrong(
        "one_number_a_text",
        {
            "return share.movedim(-2, 0).reshape(n_heads, -1).sum(dim=-1) / keep.sum()": "return share.sum(-1) / "
            "keep.sum(-1, keepdim=True).clamp(min=1)"
        },
        "You return one number for each head of each text. All texts together give one number a head.",
    )

    wrong(
        "heads_and_texts_mixed",
        {"share.movedim(-2, 0).reshape(n_heads, -1)": "share.reshape(n_heads, -1)"},
        "A head gets numbers of other heads, as where a reshape to (num_heads, ...) cuts the "
        "numbers of texts and heads as they lie. It moves no axis; movedim does.",
    )

    wrong(
        "columns_of_the_first_text",
        {"[..., None, None, :": ".reshape(-1, columns.shape[-1])[0"},
        "You use the columns of the first text for all. Each text has columns of its own.",
    )

    wrong(
        "largest_is_marked",
        {
            "(weights * columns[..., None, None, :]).sum(dim=-1)": "columns[..., None, :].expand(weights.shape[:-1])"
            ".gather(-1, weights.argmax(-1)).to(weights.dtype)",
        },
        "You count how often the largest weight is on a marked column. Asked for is how much weight is "
        "there.",
    )

    wrong(
        "writes_into_weights",
        {"(weights * columns[..., None, None, :])": "weights.mul_(columns[..., None, None, :])"},
        "You write into weights itself, so the map is lost to the caller. Make a new tensor.",
    )

    wrong(
        "keep_not_marked",
        {"keep[..., None, :]": "(~keep | (keep.sum() == keep.numel()))[..., None, :]"},
        "You count the queries where keep is False. True means: this query counts.",
    )

    wrong(
        "share_in_float32",
        {" /": " .float().to(weights.dtype) /"},
        "Float64 weights give shares with fewer digits than float64 has: for one, something is "
        "float32 on the way, and turned back at the end. What is lost does not come back.",
        seen="answers written by an adversary",
        edge=True,
    )

    wrong(
        "texts_without_a_column",
        {"share *": "share / columns.any(-1)[..., None, None] *"},
        "A text without a marked column spoils the result: for one, 0 is divided by 0 there. Its "
        "queries give 0 to no column, and count like all others.",
        seen="answers written by an adversary",
    )

    wrong(
        "heads_and_texts_mixed_before_keep",
        {
            "share = share * keep[..., None, :]": """
            n = share.shape[-1]
            share = share.reshape(weights.shape[-3], -1, n) * keep.reshape(-1, n)
            """,
            "share.movedim(-2, 0).reshape(n_heads, -1)": "share.reshape(n_heads, -1)",
        },
        "With one text your shares are right, with several they are others. Check first: a reshape "
        "to (num_heads, texts, n) mixes heads and texts. It moves no axis; movedim does.",
        seen="answers written blind",
    )


choice(
    "answer_pieces",
    "a",
    reason="That is the cut with the fewest pieces, but the cut is greedy: 'att' is longer than 'at' and "
    "fits, so it is taken, and there is no way back.",
)
choice(
    "answer_pieces",
    "b",
    right=True,
    reason="'att' is the longest beginning, then nothing longer than '##e', '##n' and '##t' fits, then '##ion'. "
    "A cut with two pieces existed, and the greedy cut missed it.",
)
choice(
    "answer_pieces",
    "c",
    reason="[UNK] comes only where no piece at all fits. Here single letters always do: look for '##e'.",
)
choice(
    "answer_pieces",
    "d",
    reason="The beginning is right. But at the end three letters fit one piece: the longest comes first.",
)

choice(
    "answer_bias",
    "a",
    reason="The bias of W_q adds b_q . k_j to the score of key j: another number for each key. That "
    "changes the row.",
)
choice(
    "answer_bias",
    "b",
    right=True,
    reason="The bias of W_k adds q_i . b_k to the scores of query i, the same number for every key. Softmax "
    "does not see a number that is added to a whole row.",
)
choice(
    "answer_bias",
    "c",
    reason="The bias of W_v is added to every value. Weights sum to 1, so it comes out whole, and W_o "
    "passes it on.",
)
choice(
    "answer_bias",
    "d",
    reason="The bias of W_o is added to the result of every token, as it is. The residual and the norm do "
    "not take it away.",
)

choice(
    "answer_silent_bug",
    "a",
    reason="Sorting by length saves filling, and so time. A text's vector is the same in whatever order "
    "the texts stand.",
)
choice(
    "answer_silent_bug",
    "b",
    right=True,
    reason="embed counts positions from the left edge. How much filling stands in front depends on the "
    "longest text of the batch, so the same word gets another position vector in another batch.",
)
choice(
    "answer_silent_bug",
    "c",
    reason="What a [PAD] query finds is never read: no real token looks at it, and the mean leaves it out. "
    "Keys have to be hidden, and they are.",
)
choice(
    "answer_silent_bug",
    "d",
    reason="The model was trained with [CLS] and [SEP] in the mean. They do not depend on the other texts.",
)

choice(
    "answer_trap",
    "a",
    reason="More weight is not more meaning: nearly every word of this map gives 'cat' about as much. Look at "
    "the other rows, then at the count.",
)
choice(
    "answer_trap",
    "b",
    reason="The section did not measure that. It measured which of two nouns gets more weight, and that most "
    "rows of this map go to 'cat'.",
)
choice(
    "answer_trap",
    "c",
    right=True,
    reason="A row means something only beside the other rows, and a head only over many sentences. Here both "
    "say: it looks at the noun that the sentence is about, whoever asks.",
)
choice(
    "answer_trap",
    "d",
    reason="Nothing here shows a limit of the last layer. This head was measured, and it does not follow the "
    "pronoun; others may.",
)
