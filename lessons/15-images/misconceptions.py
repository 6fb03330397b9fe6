"""Wrong implementations of lesson 15, each with the sentence its author needs."""

from autograder.course.implementations import choice, exercise, wrong

with exercise("patches"):
    wrong(
        "patches_reshape_alone",
        {"grid = grid.swapaxes(-3, -2)": ""},
        "It comes out as if the long row of all pixels were cut into pieces. The pixels of a "
        "patch do not lie side by side in memory: between two rows of a patch lie the rows of its "
        "neighbours.",
        seen="public questions on cutting images into patches with reshape",
    )

    wrong(
        "patches_column_by_column",
        {
            "return grid.reshape(*lead, rows * columns, size * size)":
                "grid = grid.swapaxes(-4, -3); return grid.reshape(*lead, rows * columns, size * size)",
        },
        "Your patches stand column by column. First comes the top row of patches, from left to right.",
    )

    wrong(
        "patches_transposed_inside",
        {
            "return grid.reshape(*lead, rows * columns, size * size)":
                "grid = grid.swapaxes(-2, -1); return grid.reshape(*lead, rows * columns, size * size)",
        },
        "The patches are in the right order, but the pixels inside each stand column by column.",
    )

    wrong(
        "patches_picture_transposed",
        {
            "*lead, height, width = images.shape": "images = images.swapaxes(-1, -2); *lead, height, width = images.shape",
        },
        "Rows and columns of the picture are exchanged, for the patches and inside each of them.",
    )

    wrong(
        "patches_axes_all_turned",
        {"grid.swapaxes(-3, -2)": "grid.swapaxes(-4, -2)"},
        "The rows of patches are exchanged with the columns of patches, and the pixels stay "
        "apart. The two axes that belong together are the ones inside a patch.",
    )

    wrong(
        "patches_rows_and_columns_exchanged",
        {"rows, columns = height // size, width // size": "columns, rows = height // size, width // size"},
        "It comes out as if you exchanged how many patches fit into the height and into the "
        "width. In a square picture it makes no difference; in others it does.",
    )

    wrong(
        "patches_number_and_size_exchanged",
        {"rows, columns = height // size, width // size": "rows, columns, size = size, size, height // size"},
        "You cut into size by size patches. size is the side of one patch in pixels, not their number.",
    )

    wrong(
        "patches_square_only",
        {"rows, columns = height // size, width // size": "rows = columns = height // size"},
        "You take as many rows of patches as columns. A picture may be wider than high.",
    )

    wrong(
        "patches_kept_two_dimensional",
        {"rows * columns, size * size)": "rows * columns, size, size)"},
        "Your patches are small tables. Each patch is one row of size * size numbers.",
    )

    wrong(
        "patches_kept_in_a_grid",
        {"rows * columns, size * size)": "rows, columns, size * size)"},
        "Your patches stand in a table of rows and columns. They form one long row, as words do.",
    )

    wrong(
        "patches_axes_exchanged_at_the_end",
        {"size * size)": "size * size).swapaxes(-1, -2)"},
        "Your result is turned: one column a patch. It should be one row a patch, "
        "(..., num_patches, size * size).",
        seen="torch.nn.functional.unfold, which gives one column a patch",
    )

    wrong(
        "patches_batch_joined",
        {"grid.reshape(*lead, rows * columns, size * size)": "grid.reshape(-1, size * size)"},
        "You join the patches of all pictures into one list. Leading axes stay as they are.",
    )

    wrong(
        "patches_one_leading_axis",
        {"*lead, height, width = images.shape": "batch, height, width = images.shape; lead = [batch]"},
        "It goes wrong as where code counts on one leading axis. One picture alone has none, and there may be two.",
        edge=True,
    )

    wrong(
        "patches_no_error",
        {"height % size or width % size": "False"},
        "A side that is no multiple of size ends in whatever error comes later; the reshape of a torch tensor "
        "gives a RuntimeError. It should be a ValueError.",
    )

    wrong(
        "patches_edge_dropped",
        {
            """
                if height % size or width % size:
                    raise ValueError(f"images has shape {tuple(images.shape)}: no whole patches of size {size}")
            """: "images = images[..., : height // size * size, : width // size * size]",
        },
        "Pixels at the edge are dropped, or made up, silently. A side that is no multiple of size is a ValueError.",
    )

    wrong(
        "patches_only_height_checked",
        {"if height % size or width % size:": "if height % size:"},
        "You look at the height only. The width may not fit, either.",
    )

    wrong(
        "patches_become_floats",
        {"return grid.reshape(*lead, rows * columns, size * size)":
            "return grid.reshape(*lead, rows * columns, size * size) * 1.0"},
        "You turn whole numbers into floating ones. The type of the numbers stays as it is.",
    )

    wrong(
        "patches_through_numpy",
        {"images.reshape(*lead, rows, size, columns, size)":
            "np.array(images.detach() if isinstance(images, torch.Tensor) else images).reshape(*lead, rows, size, columns, size)"},
        "You give a NumPy array for a torch tensor. A tensor should stay a tensor, so that gradients "
        "flow through.",
    )

    wrong(
        "patches_overlap",
        """
            *lead, height, width = images.shape
            if height % size or width % size:
                raise ValueError("no whole patches")
            library = np if isinstance(images, np.ndarray) else torch
            found = [
                images[..., r : r + size, c : c + size].reshape(*lead, size * size)
                for r in range(height - size + 1)
                for c in range(width - size + 1)
            ]
            return library.stack(found, -2)
        """,
        "Your window moves by one pixel, so that the patches overlap. It moves by size.",
    )

SHORT_VIT = """
class VisionTransformer(nn.Module):
    def __init__(self, image_size, patch_size, d_model, num_heads, d_ff, num_layers, num_classes):
        super().__init__()
        self.patch_size = patch_size
        n = (image_size // patch_size) ** 2
        self.projection = nn.Linear(patch_size**2, d_model)
        self.class_token = nn.Parameter(torch.randn(d_model) / 4)
        self.position_embedding = LearnedPositionalEmbedding(n + 1, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)
        )
        self.final_norm = LayerNorm(d_model)
        self.output = nn.Linear(d_model, num_classes)

    def forward(self, images):
        x = self.projection(patches(images, self.patch_size))
        first = self.class_token.expand(*x.shape[:-2], 1, -1)
        x = torch.cat([first, x], dim=-2)
        x = self.position_embedding(x)
        for block in self.blocks:
            x, _ = block(x, None)
        return self.output(self.final_norm(x[..., 0, :]))
"""

with exercise("VisionTransformer", base=SHORT_VIT):
    wrong(
        "vit_token_last",
        {"torch.cat([first, x], dim=-2)": "torch.cat([x, first], dim=-2)", "x[..., 0, :]": "x[..., -1, :]"},
        "Your class token stands behind the patches. It stands first, and has position 0.",
    )

    wrong(
        "vit_reads_the_last_patch",
        {"x[..., 0, :]": "x[..., -1, :]"},
        "You read the last patch. The answer is read from the class token, which stands first.",
    )

    wrong(
        "vit_reads_the_first_patch",
        {"x[..., 0, :]": "x[..., 1, :]"},
        "You read row 1, which is the first patch. The class token is row 0.",
    )

    wrong(
        "vit_mean_of_all",
        {"x[..., 0, :]": "x.mean(-2)"},
        "You read the mean over all rows. Many models do; this one reads its class token.",
        seen="global average pooling, as in later vision transformers",
    )

    wrong(
        "vit_mean_of_patches",
        {"x[..., 0, :]": "x[..., 1:, :].mean(-2)"},
        "You read the mean over the patches. Many models do; this one reads its class token.",
        seen="global average pooling, as in later vision transformers",
    )

    wrong(
        "vit_all_rows",
        {"x[..., 0, :]": "x"},
        "You return logits for every patch. One row of logits a picture: read the class token only.",
    )

    wrong(
        "vit_norm_forgotten",
        {"self.final_norm(x[..., 0, :])": "x[..., 0, :]"},
        "You build final_norm and do not use it. In a pre-norm stack nothing else normalises the "
        "stream before the read-out.",
    )

    wrong(
        "vit_norm_before_the_blocks",
        {"x = self.position_embedding(x)": "x = self.final_norm(self.position_embedding(x))",
         "self.final_norm(x[..., 0, :])": "x[..., 0, :]"},
        "Your final_norm stands before the blocks. It belongs behind them: the stream that comes out "
        "of a pre-norm stack is not normalised.",
    )

    wrong(
        "vit_no_positions",
        {"x = self.position_embedding(x)": ""},
        "Your position vectors are never added. The model then reads a bag of patches.",
    )

    wrong(
        "vit_positions_added_twice",
        {"x = self.position_embedding(x)": "x = x + self.position_embedding(x)"},
        "The patches' vectors count twice, as where x is added once more: position_embedding(x) "
        "already returns x plus the positions.",
    )

    wrong(
        "vit_token_without_position",
        {
            "x = torch.cat([first, x], dim=-2)": "",
            "x = self.position_embedding(x)": "x = torch.cat([first, self.position_embedding(x)], dim=-2)",
        },
        "Your class token gets no position, and the patches get positions 0, 1, 2 and so on. Position 0 "
        "is the class token's: put it in front first, then add positions.",
    )

    wrong(
        "vit_post_norm",
        {"norm_first=True": "norm_first=False"},
        "Your blocks are post-norm. The exercise asks for norm_first=True.",
    )

    wrong(
        "vit_causal",
        {"block(x, None)": "block(x, mask=torch.ones(x.shape[-2], x.shape[-2]).tril().bool())"},
        "Your class token sees no patch at all, as with a causal mask: it stands first, and every picture "
        "gets the same answer. A picture has no future: no mask.",
    )

    wrong(
        "vit_same_block",
        {
            """
                nn.ModuleList(
                    TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)
                )
            """: "nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, norm_first=True)] * num_layers)",
        },
        "Your blocks are one object, num_layers times: they share all their numbers. Make a new block "
        "in each round.",
    )

    wrong(
        "vit_plain_list",
        {
            """
                nn.ModuleList(
                    TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)
                )
            """: "[TransformerBlock(d_model, num_heads, d_ff, norm_first=True) for _ in range(num_layers)]",
        },
        "Your blocks are in a plain Python list. torch does not see them: the optimiser would never "
        "train them, and .double() or load_state_dict pass them by.",
        seen="public issues: layers in a list",
    )

    wrong(
        "vit_token_is_no_parameter",
        {"nn.Parameter(torch.randn(d_model) / 4)": "torch.randn(d_model) / 4"},
        "Your class token is a tensor and no parameter: an optimiser never sees it, so it is never trained. "
        "Make it an nn.Parameter.",
    )

    wrong(
        "vit_token_is_an_embedding",
        {"nn.Parameter(torch.randn(d_model) / 4)": "nn.Embedding(1, d_model)",
         "self.class_token.expand": "self.class_token.weight[0].expand"},
        "Your class token is an nn.Embedding. The exercise asks for the parameter itself, under the "
        "name class_token.",
    )

    wrong(
        "vit_token_of_zeros",
        {"self.class_token.expand(*x.shape[:-2], 1, -1)": "torch.zeros_like(x[..., :1, :])"},
        "It comes out as if zeros stood in front of the patches in place of the class token, "
        "which then learns nothing.",
    )

    wrong(
        "vit_one_position_too_few",
        {"LearnedPositionalEmbedding(n + 1, d_model)": "LearnedPositionalEmbedding(n, d_model)",
         "x = torch.cat([first, x], dim=-2)": "",
         "x = self.position_embedding(x)": "x = torch.cat([first, self.position_embedding(x)], dim=-2)"},
        "You have a position for each patch and none for the class token. It has position 0, so there "
        "is one more position than patches.",
    )

    wrong(
        "vit_projection_without_bias",
        {"nn.Linear(patch_size**2, d_model)": "nn.Linear(patch_size**2, d_model, bias=False)"},
        "Your projection has no bias. nn.Linear(patch_size**2, d_model) has one.",
    )

    wrong(
        "vit_output_without_bias",
        {"nn.Linear(d_model, num_classes)": "nn.Linear(d_model, num_classes, bias=False)"},
        "Your output has no bias. nn.Linear(d_model, num_classes) has one.",
    )

    wrong(
        "vit_residual_around_the_block",
        {"x, _ = block(x, None)": "x = x + block(x)[0]"},
        "It comes out as if x were added to what a block returns. The residual connections are "
        "inside the block already.",
    )

    wrong(
        "vit_softmax",
        {"return self.output(self.final_norm(x[..., 0, :]))": "return self.output(self.final_norm(x[..., 0, :])).softmax(-1)"},
        "You return probabilities. The exercise asks for logits: the loss does the softmax itself.",
    )

    wrong(
        "vit_reshape_alone",
        {"patches(images, self.patch_size)": "images.reshape(*images.shape[:-2], -1, self.patch_size**2)"},
        "It comes out as if the long row of all pixels were cut into pieces, without a call of "
        "patches. It runs, and even trains, but your patches are pieces of single rows, no "
        "squares.",
        seen="public questions on cutting images into patches with reshape",
    )

    wrong(
        "vit_one_batch_axis",
        {"self.class_token.expand(*x.shape[:-2], 1, -1)": "self.class_token.expand(len(x), 1, -1)"},
        "It goes wrong as where code counts on one leading axis, where the class token is put in front, for one. "
        "One picture alone has none, and there may be two.",
        edge=True,
    )

    wrong(
        "vit_dropout",
        {"x = self.position_embedding(x)": "x = F.dropout(self.position_embedding(x), 0.1, self.training)"},
        "Two calls of your model give other logits, as with dropout behind the positions. The "
        "exercise has none: two calls give the same.",
    )

    wrong(
        "vit_float32",
        {"return self.output(self.final_norm(x[..., 0, :]))": "return self.output(self.final_norm(x[..., 0, :])).float()"},
        "It comes out as if the logits were rounded to float32. After .double() the model "
        "computes and answers in float64.",
    )

    wrong(
        "vit_token_kept",
        {
            "first = self.class_token.expand(*x.shape[:-2], 1, -1)": """
                self.kept = getattr(self, "kept", {})
                if x.shape[:-2] not in self.kept:
                    self.kept[x.shape[:-2]] = self.class_token.expand(*x.shape[:-2], 1, -1).clone()
                first = self.kept[x.shape[:-2]]
            """
        },
        "After a change of its parameters your model gives other logits than a new model with these parameters, "
        "as where numbers of an earlier call are kept. Each call uses the parameters as they are then.",
        seen="answers written blind",
    )

    wrong(
        "vit_pictures_detached",
        {"patches(images, self.patch_size)": "patches(images.detach(), self.patch_size)"},
        "No gradient comes back to the pictures, as where they are detached, or leave torch, on the way. Section 4 "
        "asks how fast a logit changes with each pixel.",
    )

    wrong(
        "vit_one_picture_without_an_axis",
        {"return self.output(self.final_norm(x[..., 0, :]))":
            "return self.output(self.final_norm(x[..., 0, :])).squeeze(0)"},
        "For a batch of one picture the logits have no batch axis, as where squeeze or an index takes it away. "
        "Leading axes stay, those of length 1 too.",
        seen="answers written blind",
    )

    wrong(
        "vit_no_gradients_in_evaluation",
        {"return self.output(self.final_norm(x[..., 0, :]))": """
            logits = self.output(self.final_norm(x[..., 0, :]))
            return logits if self.training else logits.detach()
        """},
        "After model.eval() no parameter gets a gradient, as where no_grad is used in that mode. Both modes agree, "
        "in their gradients too: section 4 asks a model in evaluation mode for some.",
        seen="answers written blind",
    )

SHORT_ROLLOUT = """
def attention_rollout(maps):
    library = torch if isinstance(maps[0], torch.Tensor) else np
    shares = None
    for one in maps:
        layer = one.mean(-3)
        layer = layer + library.eye(layer.shape[-1], dtype=layer.dtype)
        layer = layer / layer.sum(-1)[..., None]
        shares = layer if shares is None else layer @ shares
    return shares
"""

with exercise("attention_rollout", base=SHORT_ROLLOUT):
    wrong(
        "rollout_multiplied_from_the_right",
        {"layer @ shares": "shares @ layer"},
        "You multiply the later layer from the right. Output i first asks the last layer where it looked, "
        "and then the layers below: the last layer stands to the left.",
        seen="public code that multiplies the layers in the other order",
    )

    wrong(
        "rollout_without_identity",
        {"layer = layer + library.eye(layer.shape[-1], dtype=layer.dtype)": ""},
        "You leave out the identity. A block adds its attention to what was there before: the residual "
        "connection carries each position on to itself.",
        seen="attention maps multiplied without the residual connection",
    )

    wrong(
        "rollout_of_each_head",
        """
            library = np if isinstance(maps[0], np.ndarray) else torch
            rollout = None
            for one in maps:
                layer = one + library.eye(one.shape[-1], dtype=one.dtype)
                layer = layer / layer.sum(-1)[..., None]
                rollout = layer if rollout is None else layer @ rollout
            return rollout.mean(-3)
        """,
        "Each head gets a rollout of its own, and the mean over the heads comes at the end. It comes first, "
        "in each layer: the next layer reads what all heads together have brought.",
    )

    wrong(
        "rollout_not_normalised",
        {"layer = layer / layer.sum(-1)[..., None]": ""},
        "You do not divide the rows by their sums. After adding the identity a row sums to 2, after two "
        "layers to 4.",
    )

    wrong(
        "rollout_halved",
        {"layer / layer.sum(-1)[..., None]": "layer / 2"},
        "It comes out as a division by 2. That is right for rows that summed to 1 before the "
        "identity was added; a row of zeros, for a query that may see nothing, sums to 1 now.",
    )

    wrong(
        "rollout_normalised_down_the_columns",
        {"layer.sum(-1)[..., None]": "layer.sum(-2)[..., None, :]"},
        "You divide each column by its sum. A row says where one output comes from: rows sum to 1.",
    )

    wrong(
        "rollout_normalised_over_everything",
        {"layer.sum(-1)[..., None]": "layer.sum()"},
        "You divide by the sum of the whole matrix. Each row is divided by its own sum.",
    )

    wrong(
        "rollout_transposed",
        {"return shares": "return shares.swapaxes(-1, -2)"},
        "Your result is turned: row i should say where output i comes from.",
    )

    wrong(
        "rollout_maps_transposed",
        {"layer = one.mean(-3)": "layer = one.mean(-3).swapaxes(-1, -2)"},
        "You turn the maps before you use them. Row i of a map is query i already.",
    )

    wrong(
        "rollout_sum_of_heads",
        {"one.mean(-3)": "(one.sum(-3) * 1.0)"},
        "You add the heads. Their mean is asked for: with the sum, many heads outweigh the identity.",
    )

    wrong(
        "rollout_largest_head",
        {"one.mean(-3)": "(one * 1.0).max(-3) if library is np else one.amax(-3)"},
        "You take the largest weight over the heads. The exercise asks for their mean.",
        seen="variants of rollout that fuse heads by their maximum",
    )

    wrong(
        "rollout_first_head",
        {"one.mean(-3)": "one[..., 0, :, :] * 1.0"},
        "You use the first head only. Take the mean over all heads.",
    )

    wrong(
        "rollout_mean_over_the_batch",
        {"one.mean(-3)": "one.mean(0)"},
        "You take the mean over the first axis. With leading axes that is the batch; the heads are axis "
        "-3.",
    )

    wrong(
        "rollout_mean_of_layers",
        {"layer @ shares": "(layer + shares) / 2"},
        "You average the layers. What comes from where is passed on from layer to layer: a product.",
    )

    wrong(
        "rollout_elementwise",
        {"layer @ shares": "layer * shares"},
        "You multiply entry by entry. Passing on from layer to layer is a matrix product.",
    )

    wrong(
        "rollout_last_layer",
        {"layer if shares is None else layer @ shares": "layer"},
        "You return the last layer alone. All layers are multiplied.",
    )

    wrong(
        "rollout_first_layer_left_out",
        {"in maps:": "in maps[1:] or maps:"},
        "You leave out the first layer.",
    )

    wrong(
        "rollout_identity_after_normalising",
        {
            "layer = layer + library.eye(layer.shape[-1], dtype=layer.dtype)": "",
            "layer = layer / layer.sum(-1)[..., None]":
                "layer = layer / layer.sum(-1)[..., None] + library.eye(layer.shape[-1], dtype=layer.dtype)",
        },
        "You normalise first and add the identity afterwards, so that the rows sum to 2.",
    )

    wrong(
        "rollout_changes_its_input",
        {"one.mean(-3)": "one.mean(-3); one /= one.sum()"},
        "You write into the maps that you were given.",
    )

    wrong(
        "rollout_torch_one_batch_axis",
        {"layer @ shares": "torch.bmm(layer, shares) if library is torch else layer @ shares"},
        "With torch maps your code counts on one leading axis, as torch.bmm does. There may be none, "
        "or two.",
        edge=True,
    )

    wrong(
        "rollout_numpy_dot",
        {"layer @ shares": "np.dot(layer, shares) if library is np else layer @ shares"},
        "With leading axes NumPy maps give a result of another shape, or none, as with np.dot: it "
        "pairs each text with every other. Leading axes go through the product together.",
    )

    wrong(
        "rollout_each_head_divided",
        {
            "layer = one.mean(-3)": "layer = one * 1.0",
            "layer = layer / layer.sum(-1)[..., None]":
                "layer = (layer / layer.sum(-1)[..., None]).mean(-3)",
        },
        "Where a row has another sum in each head your shares are those of heads that are divided one by one, "
        "before their mean. The mean over the heads comes first, then the identity, then the division.",
    )

    wrong(
        "rollout_divided_at_the_end",
        {
            "layer = layer / layer.sum(-1)[..., None]": "",
            "return shares": "return shares / shares.sum(-1)[..., None]",
        },
        "Where rows of a map do not sum to 1 your shares are those of a product whose rows are divided "
        "once, at the end. Divide in each layer, before the layers are multiplied.",
    )

    wrong(
        "rollout_gives_torch",
        {"return shares": "return torch.as_tensor(shares)"},
        "You return a torch tensor for NumPy maps. The result is of the same kind as the maps.",
    )

    wrong(
        "rollout_class_token_only",
        {"return shares": "return shares[..., 0, :]"},
        "You return the row of the class token alone. All rows are asked for.",
    )


choice(
    "answer_patches", "a",
    reason="You counted the patches column by column, and the pixels inside too. Row 5 lies in the third "
    "row of patches.",
)
choice(
    "answer_patches", "b",
    reason="That is the pixel's place in the long row of all pixels, 5 * 8 + 2 = 42, cut into pieces of "
    "four. Patches are squares.",
)
choice(
    "answer_patches", "c", right=True,
    reason="Row 5 lies in row 2 of patches, column 2 in column 1: patch 2 * 4 + 1 = 9. Inside it is row 1, "
    "column 0: place 1 * 2 + 0 = 2.",
)
choice(
    "answer_patches", "d",
    reason="The right patch. Inside it the pixel is in the second row and the first column, and the first "
    "row has two pixels.",
)

choice(
    "answer_scrambled", "a",
    reason="You could not read them, because you know what lies beside what. The model was never told: it "
    "has one row of numbers for each place, and any place is as good as any other.",
)
choice(
    "answer_scrambled", "b",
    reason="Without positions all places are alike. With a fixed permutation they are not: place 5 always "
    "holds what was at one other place, and the model can learn that.",
)
choice(
    "answer_scrambled", "c",
    reason="It would be so for a convolution, which looks at neighbours. Attention joins any two places with "
    "the same ease.",
)
choice(
    "answer_scrambled", "d", right=True,
    reason="The same model with the rows of its position table moved gives exactly the same logits, and rows "
    "that start at random are as easy to learn in one order as in another.",
)

choice(
    "answer_judge", "a",
    reason="It says something: which patches are needed, with this replacement. All measures of this section "
    "were told from a random order by it.",
)
choice(
    "answer_judge", "b", right=True,
    reason="Hiding with blank won with blank as the judge and lost its lead with the mean picture, and ink alone "
    "did about as well as rollout with blank.",
)
choice(
    "answer_judge", "c",
    reason="Rollout knows the weights, but neither the values nor the answer. It beat the random order and won "
    "with no judge.",
)
choice(
    "answer_judge", "d",
    reason="Even the best model needs the strokes of a digit. The question is which of them, and compared "
    "with what.",
)

choice(
    "answer_silent_bug", "a",
    reason="There are sixteen patches and sixteen positions, each with its own row. Which row a patch has does "
    "not matter, as long as it is always the same.",
)
choice(
    "answer_silent_bug", "b", right=True,
    reason="batch_first is False by default. So the pictures of a batch attend to each other, place by place, "
    "and a picture's answer depends on its company.",
)
choice(
    "answer_silent_bug", "c",
    reason="A picture has no future: every patch may see every other. Your model has no mask, either.",
)
choice(
    "answer_silent_bug", "d",
    reason="The positions were added before, so that each patch carries its place into the mean. Many vision "
    "transformers end in this way.",
)
