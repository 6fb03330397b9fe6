"""Right implementations of lesson 10 that look different from its solutions."""

import copy
import math

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


@alternative("next_token_loss", "gather_and_weights")
def next_token_loss(logits, tokens, keep=None):
    n = tokens.shape[-1]
    if n < 2:
        raise ValueError(f"tokens {tuple(tokens.shape)}: at least two a text")
    if keep is None:
        keep = torch.full_like(tokens, True, dtype=torch.bool)
    log_p = logits[..., :-1, :] - logits[..., :-1, :].logsumexp(dim=-1, keepdim=True)
    targets = torch.where(keep, tokens, 0)[..., 1:]
    shape = torch.broadcast_shapes(log_p.shape[:-1], targets.shape)
    log_p, targets = log_p.expand(*shape, log_p.shape[-1]), targets.expand(shape)
    picked = log_p.gather(-1, targets[..., None].long())[..., 0]
    weights = keep[..., 1:].expand(shape).to(picked.dtype)
    if weights.sum() == 0:
        raise ValueError("no prediction counts")
    return -(picked * weights).sum() / weights.sum()


@alternative("next_token_loss", "ignore_index")
def next_token_loss(logits, tokens, keep=None):
    targets = tokens.clone()
    if keep is not None:
        targets = torch.where(keep, targets, -100)
    if targets.shape[-1] < 2 or (targets[..., 1:] == -100).all():
        raise ValueError("nothing to count")
    lead = torch.broadcast_shapes(logits.shape[:-1], targets.shape)
    logits = logits.expand(*lead, logits.shape[-1])
    targets = targets.expand(lead)
    return F.cross_entropy(
        logits[..., :-1, :].reshape(-1, logits.shape[-1]), targets[..., 1:].reshape(-1)
    )


@alternative("next_token_loss", "loop_over_texts")
def next_token_loss(logits, tokens, keep=None):
    if tokens.shape[-1] < 2:
        raise ValueError("n < 2")
    if keep is None:
        keep = tokens == tokens
    lead = torch.broadcast_shapes(logits.shape[:-2], tokens.shape[:-1], keep.shape[:-1])
    n, vocab = logits.shape[-2:]
    losses = []
    for text_logits, text, kept in zip(
        logits.expand(*lead, n, vocab).reshape(-1, n, vocab),
        tokens.expand(*lead, n).reshape(-1, n),
        keep.expand(*lead, n).reshape(-1, n),
        strict=True,
    ):
        for t in range(n - 1):
            if kept[t + 1]:
                losses.append(-text_logits[t].log_softmax(0)[text[t + 1]])
    if not losses:
        raise ValueError("nothing to count")
    return torch.stack(losses).mean()


@alternative("next_token_loss", "all_losses_then_those_kept")
def next_token_loss(logits, tokens, keep=None):
    if tokens.shape[-1] < 2 or (keep is not None and not keep[..., 1:].any()):
        raise ValueError("no prediction counts")
    keep = tokens > -math.inf if keep is None else keep
    shape = torch.broadcast_shapes(logits.shape[:-1], tokens.shape, keep.shape)
    targets = torch.where(keep, tokens, 0).expand(shape)[..., 1:]
    guesses = logits.expand(*shape, logits.shape[-1])[..., :-1, :]
    losses = F.cross_entropy(guesses.flatten(0, -2), targets.flatten(), reduction="none")
    return losses[keep.expand(shape)[..., 1:].flatten()].mean()


@alternative("GPT", "functional_style")
class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len):
        super().__init__()
        self.max_len = max_len
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = LearnedPositionalEmbedding(max_len, d_model)
        blocks = []
        for _ in range(num_layers):
            blocks.append(TransformerBlock(d_model, num_heads, d_ff, norm_first=True))
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = LayerNorm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, tokens):
        n = tokens.size(-1)
        if n > self.max_len:
            raise ValueError(f"{n} tokens, at most {self.max_len}")
        earlier = torch.ones(n, n, dtype=torch.bool, device=tokens.device).tril()
        h = self.token_embedding(tokens)
        h = self.position_embedding(h)
        for i in range(len(self.blocks)):
            h = self.blocks[i](h, earlier)[0]
        h = self.final_norm(h)
        return h @ self.output.weight.T


@alternative("GPT", "mask_kept_as_buffer")
class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = LearnedPositionalEmbedding(max_len, d_model)
        self.blocks = nn.ModuleList()
        for _ in range(num_layers):
            self.blocks.append(TransformerBlock(d_model, num_heads, d_ff, True))
        self.final_norm = LayerNorm(d_model)
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        mask = torch.ones(max_len, max_len).tril() > 0
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, tokens):
        x = self.position_embedding(self.token_embedding(tokens))
        n = tokens.shape[-1]
        for block in self.blocks:
            x = block(x, mask=self.mask[:n, :n])[0]
        return self.output(self.final_norm(x))


@alternative("training_step", "norm_by_hand")
def training_step(model, optimizer, tokens, max_norm=1.0):
    for parameter in model.parameters():
        parameter.grad = None
    loss = next_token_loss(model(tokens), tokens)
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients))
    if norm > max_norm:
        for g in gradients:
            g.mul_(max_norm / norm)
    optimizer.step()
    return loss.item()


@alternative("training_step", "gradients_of_the_optimizer")
def training_step(model, optimizer, tokens, max_norm=1.0):
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    loss = next_token_loss(model(tokens), tokens)
    before = loss.item()
    gradients = torch.autograd.grad(loss, parameters)
    total = torch.cat([g.reshape(-1) for g in gradients]).norm()
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g * (max_norm / (total + 1e-6)).clamp(max=1.0)
    optimizer.step()
    return before


@alternative("training_step", "clears_again_at_the_end")
def training_step(model, optimizer, tokens, max_norm=1.0):
    model.zero_grad(set_to_none=True)
    loss = next_token_loss(model(tokens), tokens)
    loss.backward()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach().item()


@alternative("sampling_distribution", "masked_logits")
def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature < 0:
        raise ValueError(f"temperature {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k {top_k}")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError(f"top_p {top_p}")
    if temperature == 0:
        return F.one_hot(logits.argmax(), len(logits)).to(logits.dtype)
    logits = logits / temperature
    order = torch.argsort(-logits, stable=True)
    if top_k is not None:
        logits = logits.clone()
        logits[order[top_k:]] = -math.inf
    if top_p is not None:
        logits = logits.clone()
        p = torch.softmax(logits, dim=0)[order]
        crossed = torch.cat([torch.zeros(1, dtype=torch.bool), (p.cumsum(0) >= top_p)[:-1]])
        logits[order[crossed]] = -math.inf
    return torch.softmax(logits, dim=0)


@alternative("sampling_distribution", "loop_in_python")
def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must be at least 0, top_k at least 1")
    if top_p is not None and not (0 < top_p <= 1):
        raise ValueError("top_p must be in (0, 1]")
    ranks = sorted(range(len(logits)), key=lambda i: -logits[i].item())  # stable
    result = torch.zeros_like(logits)
    if temperature == 0:
        result[ranks[0]] = 1.0
        return result
    p = ((logits - logits.max()) / temperature).exp()
    left = ranks if top_k is None else ranks[:top_k]
    total = sum(p[i].item() for i in left)
    kept, so_far = [], 0.0
    for i in left:
        kept.append(i)
        so_far += p[i].item() / total
        if top_p is not None and so_far >= top_p:
            break
    result[kept] = p[kept] / p[kept].sum()
    return result


@alternative("judges_step", "twin_and_two_steps")
def judges_step(step):
    torch_state = torch.get_rng_state()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(9, 5), nn.ReLU(), nn.Linear(5, 9))
    texts = [torch.randint(0, 9, (4, 6)) for _ in range(3)]
    torch.set_rng_state(torch_state)
    for max_norm in (0.03, 50.0):
        mine, theirs = copy.deepcopy(model), copy.deepcopy(model)
        my_optimizer = torch.optim.SGD(mine.parameters(), lr=1.0)
        their_optimizer = torch.optim.SGD(theirs.parameters(), lr=1.0)
        for tokens in texts:
            my_optimizer.zero_grad()
            loss = next_token_loss(mine(tokens), tokens)
            loss.backward()
            nn.utils.clip_grad_norm_(mine.parameters(), max_norm)
            my_optimizer.step()
            try:
                returned = step(theirs, their_optimizer, tokens, max_norm=max_norm)
            except Exception:
                return False
            if type(returned) is not float or not math.isclose(
                returned, loss.item(), rel_tol=1e-4, abs_tol=1e-5
            ):
                return False
            for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
                if (a - b).abs().max() > 1e-4:
                    return False
    return True


@alternative("judges_step", "vectors_of_all_parameters")
def judges_step(step):
    generator = torch.Generator().manual_seed(3)

    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Parameter(torch.randn(8, 4, generator=generator).double())
            self.second = nn.Parameter(torch.randn(4, 8, generator=generator).double())
            self.shift = nn.Parameter(torch.randn(8, generator=generator).double())

        def forward(self, tokens):
            return self.first[tokens] @ self.second + self.shift

    def vector(model):
        return nn.utils.parameters_to_vector(model.parameters()).detach().clone()

    try:
        for max_norm in (0.05, 1e6):
            model = Pairs()
            tokens = torch.randint(8, (5, 9), generator=generator)
            loss = next_token_loss(model(tokens), tokens)
            loss.backward()
            gradient = torch.cat([p.grad.flatten() for p in model.parameters()])
            gradient = gradient * min(1.0, max_norm / gradient.norm().item())
            expected = vector(model) - 0.3 * gradient
            # The gradients of the loss above still lie on the parameters, in the step's way.
            found = step(model, torch.optim.SGD(model.parameters(), lr=0.3), tokens, max_norm)
            if abs(found - float(loss.detach())) > 1e-6:
                return False
            if (vector(model) - expected).norm().item() > 1e-4 * gradient.norm().item() * 0.3 + 1e-6:
                return False
    except Exception:
        return False
    return True


@alternative("judges_step", "beside_ones_own_step")
def judges_step(step):
    def after(one, max_norm):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8)).double()
        tokens = torch.arange(24).reshape(2, 12) * 5 % 7
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
        losses = [one(model, optimizer, tokens, max_norm) for _ in range(2)]
        return torch.tensor(losses), *[p.detach() for p in model.parameters()]

    before = torch.get_rng_state()
    try:
        for max_norm in (0.02, 1e3):
            for mine, theirs in zip(
                after(training_step, max_norm), after(step, max_norm), strict=True
            ):
                if not torch.allclose(mine.double(), theirs.double(), rtol=1e-4, atol=1e-6):
                    return False
        return True
    except Exception:
        return False
    finally:
        torch.set_rng_state(before)


@alternative("GPT", "keeps_its_sizes")
class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, max_len):
        nn.Module.__init__(self)
        sizes = {"d_model": d_model, "num_heads": num_heads, "d_ff": d_ff, "norm_first": True}
        self.output = nn.Linear(d_model, vocab_size, bias=False)
        self.final_norm = LayerNorm(d_model)
        self.blocks = nn.ModuleList([TransformerBlock(**sizes) for _ in range(num_layers)])
        self.position_embedding = LearnedPositionalEmbedding(max_len, d_model)
        self.token_embedding = nn.Embedding(vocab_size, d_model)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[-1])
        mask = places[:, None] >= places
        stream = self.position_embedding(self.token_embedding(tokens))
        for block in self.blocks:
            stream = block(stream, mask)[0]
        return self.output(self.final_norm(stream))


@alternative("train", "by_a_scheduler")
def train(model, optimizer, draw, steps):
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, 2 * (steps - step) / steps)
    )
    losses = []
    for _ in range(steps):
        losses.append(training_step(model, optimizer, draw()))
        schedule.step()
    return losses


@alternative("train", "two_halves")
def train(model, optimizer, draw, steps):
    own, losses = [group["lr"] for group in optimizer.param_groups], []
    while len(losses) < steps:
        left = steps - len(losses)
        if 2 * left < steps:
            for group, rate in zip(optimizer.param_groups, own):
                group["lr"] = 2 * rate * left / steps
        losses += [training_step(model, optimizer, draw())]
    return losses
