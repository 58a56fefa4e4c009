"""Dense layers that can round as a .tarn file of int8, int4, int3 or int2 does: fake quantization, for the last steps of a training.

The rules are those of the converter and of the runtime. Weights of int8: symmetric, a scale for each row. Of int4: -8 to 7, a bf16
scale for each 32 neighbours of a row, the one with the least squared error; of int3: -4 to 3, with a scale of either sign; of
int2: -3, -1, 1 and 3. Rows of another length become int8. Inputs of all: int8 with a zero point, a scale for each token. The gradient
passes as if nothing had been rounded.
"""

import itertools

import torch
from torch import nn

BLOCK = 32
# The least level, the most, from one to the next (2: the odd ones), signs of scales.
LEVELS = {"int4": (-8, 7, 1, (1,)), "int3": (-4, 3, 1, (1, -1)), "int2": (-3, 3, 2, (1,))}
CANDIDATES = 160  # scales of a block that are tried: bf16 numbers, from FIRST * max / the most downwards
FIRST = 1.15


def passed(x, rounded):
    """The values of `rounded`, the gradient of x"""
    return x + (rounded - x).detach()


def rounded_rows(w):
    largest = w.abs().amax(-1, keepdim=True)
    scale = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return (w / scale).round().clamp(-127, 127) * scale


def rounded_blocks(w, kind):
    low, high, step, signs = LEVELS[kind]
    blocks = w.unflatten(-1, (-1, BLOCK))
    first = (blocks.abs().amax(-1, keepdim=True).clamp_min(1e-30) * (FIRST / high)).view(torch.int32) >> 16
    best, least = None, None
    for sign, candidate in itertools.product(signs, range(CANDIDATES)):
        scale = sign * ((first - candidate) << 16).view(torch.float32)
        level = (blocks / scale).clamp(low, high)
        rounded = (level.round() if step == 1 else ((level - 1) / 2).round() * 2 + 1) * scale
        error = (rounded - blocks).square().sum(-1, keepdim=True)
        best = rounded if best is None else torch.where(error < least, rounded, best)
        least = error if least is None else torch.minimum(error, least)
    return best.flatten(-2)


@torch.no_grad()
def rounded_weight(w, kind):
    w = w.detach().float()
    return rounded_blocks(w, kind) if kind in LEVELS and w.shape[-1] % BLOCK == 0 else rounded_rows(w)


@torch.no_grad()
def rounded_input(x):
    low, high = x.amin(-1, keepdim=True).clamp_max(0), x.amax(-1, keepdim=True).clamp_min(0)
    steps = 255 / (high - low).clamp_min(1e-30)
    from_low, from_high = -128 - low * steps, 127 - high * steps
    zero = torch.where(low * steps + high * steps > 1, from_low, from_high).round().clamp(-128, 127)
    return ((x * steps).round() + zero).clamp(-128, 127).sub(zero) / steps


class Rounds:
    """A weight, and what it is rounded to: None or one of settings.ROUNDED."""

    kind = None

    def used_weight(self):
        return self.weight if self.kind is None else passed(self.weight, rounded_weight(self.weight, self.kind))


class Linear(Rounds, nn.Linear):
    def forward(self, x):
        return product(x, self, self.bias)


class LogitLinear(Linear):
    """The logits of a gate or of a control, in a dense layer of their own: the converter does not make it narrower than int8."""

    def used_weight(self):
        return self.weight if self.kind is None else passed(self.weight, rounded_weight(self.weight, "int8"))


class Embedding(Rounds, nn.Embedding):
    def forward(self, tokens):
        return nn.functional.embedding(tokens, self.used_weight())


def product(x, layer, bias=None):
    """x W^T + b, with the weight of a Linear or, for a tied head, of an Embedding"""
    if layer.kind is not None:
        x = passed(x, rounded_input(x.float()))
    return nn.functional.linear(x, layer.used_weight(), bias)


def round_as(model, kind):
    """All dense layers and embeddings of a model: kind is None or one of settings.ROUNDED."""
    for module in model.modules():
        if isinstance(module, Rounds):
            module.kind = kind
