"""A small model that guesses what a larger one, the target, will write: the draft model of speculative decoding.

    Pools      windows of text that the target continues, half of them greedily, half drawn as `tarn run` draws
    Drafting   the draft model learns the target's distribution of each next token of such windows

With the rule of Leviathan et al. 2023 (theorem 3.5) a draft is accepted with probability 1 - TV(p, q), TV the total variation
distance of the two distributions; the runtime draws both with the same random numbers, which comes near it. The loss is KL(p || q) + TV(p, q). p and q are at the temperature of the draws; where the target is greedy they are
near the temperature 0. Texts of the target itself are what the draft model meets (Zhou et al. 2024, "DistillSpec").
"""

import torch

from . import checkpoint
from .dense import round_as
from .text import Windows
from .trainer import Trainer

TOP_K, TOP_P, MIN_P = 40, 0.95, 0.05  # the defaults of tarn run
NEARLY_GREEDY = 0.3  # the temperature: at 0 there is no gradient
TEXT_SHARE = 4  # of a window, the first part of so many is text


def drawn(logits, temperature, generator):
    """[B] tokens of logits [B, V], as the sampler of the runtime draws by default"""
    top, tokens = logits.float().topk(min(TOP_K, logits.shape[-1]))
    p = top.softmax(-1)
    kept = (p.cumsum(-1) - p < TOP_P) & (p >= MIN_P * p[:, :1])
    weights = (top / temperature).masked_fill(~kept, -torch.inf).softmax(-1)
    return tokens.gather(1, torch.multinomial(weights, 1, generator=generator)).squeeze(1)


class Pools:
    """Batches [batch, context + 1] as text.Windows has them, but continued by the target: the first half of the rows greedily.

    `pool` windows are made at once, and are in use for pool * pool_uses / batch steps. A step alone decides its batch.
    """

    def __init__(self, target, tokens, s, device):
        self.target, self.s, self.device = target, s, device
        self.windows = Windows(tokens, s.context, s.pool, s.seed)
        self.size, self.steps = s.batch, max(1, s.pool * s.pool_uses // s.batch)
        self.number, self.pool = None, None

    @torch.no_grad()
    def continued(self, windows, seed):
        """Windows [B, T] whose first quarter stays"""
        generator = torch.Generator(self.device).manual_seed(seed)
        tokens, states, half = windows.to(self.device).clone(), None, len(windows) // 2
        for i in range(tokens.shape[1] - 1):
            logits, states = self.target.step(tokens[:, i : i + 1], states, i)
            if i + 1 >= tokens.shape[1] // TEXT_SHARE:
                tokens[:half, i + 1] = logits[:half, 0].argmax(-1)
                tokens[half:, i + 1] = drawn(logits[half:, 0], self.s.temperature, generator)
        return tokens

    def batch(self, step):
        number = step // self.steps
        if number != self.number:
            self.number, self.pool = number, self.continued(self.windows.batch(number), self.s.seed * 1_000_003 + number)
        generator = torch.Generator().manual_seed(self.s.seed * 1_000_003 + step)
        half, count = self.s.pool // 2, self.size // 2
        rows = torch.cat([torch.randint(half, (count,), generator=generator),
                          torch.randint(half, self.s.pool, (self.size - count,), generator=generator)])
        return self.pool[rows.to(self.device)]


class Drafting(Trainer):
    """The loss, of training and of held-out text, is KL(p || q) + TV(p, q)."""

    measure = "divergence"

    def __init__(self, target, s, config, tokens, held_out, folder, identity):
        super().__init__(s, config, None, None, folder, identity)
        self.target = target.to(self.device).eval().requires_grad_(False)
        self.windows = Pools(self.target, tokens, s, self.device)
        if held_out is not None:
            if len(held_out) <= 2 * s.context:
                raise ValueError(f"the held-out text has {len(held_out)} tokens, expected at least {2 * s.context + 1}: more text, "
                                 "a smaller context, or held_out 0")
            rows = Windows(held_out, s.context, s.evaluate_windows, s.seed).batch(0)
            self.held_out = self.windows.continued(rows, s.seed)

    def distances(self, tokens):
        """KL(p || q) and TV(p, q) of the tokens that the target wrote, [B, T'] each"""
        with self.autocast():
            draft = self.model(tokens[:, :-1])
            with torch.no_grad():
                target = self.target(tokens[:, :-1])
        written = slice(tokens.shape[1] // TEXT_SHARE - 1, None)
        temperature = torch.full((len(tokens), 1, 1), self.s.temperature, device=tokens.device)
        temperature[: len(tokens) // 2] = NEARLY_GREEDY
        p, q = ((logits[:, written].float() / temperature).log_softmax(-1) for logits in (target, draft))
        return (p.exp() * (p - q)).sum(-1), (p.exp() - q.exp()).abs().sum(-1) / 2

    def loss(self, tokens, reduction="mean"):
        divergence, rejected = self.distances(tokens)
        return (divergence + rejected).mean()

    @torch.no_grad()
    def held_out_distances(self):
        """Means of KL and TV over the held-out text"""
        self.model.eval()
        half = len(self.held_out) // 2
        pairs = zip(self.held_out[:half].split(self.s.batch // 2), self.held_out[half:].split(self.s.batch // 2))
        parts = [torch.stack(self.distances(torch.cat(pair))).flatten(1) for pair in pairs]
        self.model.train()
        return torch.cat(parts, 1).mean(1).tolist()

    def evaluate(self):
        return sum(self.held_out_distances())

    def run(self, tokenizer):
        """The result also has about which share of the drafts the target rejects, of the model that was kept: TV, which is exact for
        the rule of acceptance that Leviathan et al. have, without top-k, top-p and min-p."""
        result = super().run(tokenizer)
        if self.held_out is None:
            return {**result, "held_out_share_rejected": None}
        round_as(self.model, None)
        self.model.load_state_dict(checkpoint.load(self.folder).state_dict())
        return {**result, "held_out_share_rejected": self.held_out_distances()[1]}
