"""What all causal attention variants share: projections, heads, and the two forms in which each variant is written.

A variant computes the same outputs in two ways:

    forward(x)                  a whole sequence from a reset, chunk by chunk or as one matrix product: for training
    step(x, state, position)    one token, by the recurrence of docs/mathematics.md, which comments cite by section: for checking

Shapes: B batches, T tokens (C in a chunk), H heads, d the size of a head of q and k, dv that of v, M features, n slots.
What decides an output is computed in float32, also under autocast: states and denominators in bf16 lose too much (MATH 4.3).
"""

import torch
from torch import nn

from .dense import Linear
from .norms import norm
from .positions import rotate


def exact(x):
    """float32, or float64 where the model is in float64"""
    return x if x.dtype == torch.float64 else x.float()


def until(count, device):
    """[count, count]: True where token i (column) is not behind token t (row)."""
    return torch.ones(count, count, dtype=torch.bool, device=device).tril()


def expect(value, choices, name):
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(str, choices))}")


class Attention(nn.Module):
    needs, reads = (), ()  # fields of the attention object, besides system and scale: those that have to be there, those that may
    values = {}  # name -> the values that a field of them can have, where these are few

    def __init__(self, c, a):
        super().__init__()
        self.check_fields(a)
        self.a, width = a, c["hidden_size"]
        self.heads = c["num_heads"]
        self.kv_heads = c.get("num_kv_heads", self.heads)
        self.d = c.get("head_dim", width // self.heads)
        self.dv = c.get("value_head_dim", self.d)
        rates = self.rotary_rates(c) if c.get("position_embedding") == "rope" else None
        self.register_buffer("rates", rates, persistent=False)
        self.scale = a.get("scale", self.default_scale())
        some = c.get("attention_bias", False)
        biased = some if isinstance(some, list) else "qkvo" if some else ""
        self.q_proj = Linear(width, self.heads * self.d, bias="q" in biased)
        self.k_proj = Linear(width, self.kv_heads * self.d, bias="k" in biased)
        self.v_proj = Linear(width, self.kv_heads * self.dv, bias="v" in biased)
        self.o_proj = Linear(self.heads * self.dv, width, bias="o" in biased)
        by_head = c.get("qk_norm", "none") == "head"
        self.q_norm, self.k_norm = (norm(c, self.d) if by_head else None for _ in range(2))

    def rotary_rates(self, c):
        """The angle of each pair of a head per position: float64 [d / 2]"""
        if "rope_frequencies" in c:
            return torch.tensor(c["rope_frequencies"], dtype=torch.float64)
        half = self.d // 2
        return c.get("rope_theta", 10000.0) ** (-torch.arange(half, dtype=torch.float64) / half)

    def check_fields(self, a):
        """A field that tarn-convert knows and no module reads would make another model of the checkpoint than was trained. A value that
        is misspelled would be taken for another one."""
        for name, choices in self.values.items():
            if name in a:
                expect(a[name], choices, f"attention: {a['system']}: {name}")
        for name in self.needs:
            if name not in a:
                raise ValueError(f"attention: {a['system']}: {name} is missing")
        known = ("system", "scale", *self.needs, *self.reads)
        for name in a:
            if name not in known:
                raise ValueError(f"attention: {a['system']}: no module reads {name}, expected one of {', '.join(known)}")

    def default_scale(self):
        return self.d**-0.5

    def shared(self, x, dim=1):
        """Key/value heads -> heads: each serves a group of query heads (MATH 0.3)."""
        return x.repeat_interleave(self.heads // self.kv_heads, dim)

    def per_head(self, projection, x, size):
        """[B, T, E] -> [B, H, T, size], by a projection with rows for every key/value head"""
        return self.shared(exact(projection(x)).unflatten(-1, (self.kv_heads, size)).transpose(1, 2))

    def project(self, x, first):
        """x [B, T, E] -> q, k [B, H, T, d], v [B, H, T, dv], turned to their positions"""
        q = exact(self.q_proj(x)).unflatten(-1, (self.heads, self.d)).transpose(1, 2)
        k, v = self.per_head(self.k_proj, x, self.d), self.per_head(self.v_proj, x, self.dv)
        if self.q_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        return (q, k, v) if self.rates is None else (rotate(q, self.rates, first), rotate(k, self.rates, first), v)

    def inherit(self, q, k, scale):
        """Begins as near to softmax(scale q . k) as it can, for q and k [B, H, T, d] of some text. q_proj ... o_proj are there."""

    def controls(self, x):
        """What the layer input says beside q, k and v: gates, write strengths, controls; a tensor [B, H, T, ...] or None."""
        return None

    def attend(self, q, k, v, control):
        """[B, H, T, dv]: the outputs of a whole sequence"""
        raise NotImplementedError

    def recur(self, q, k, v, control, state):
        """The output [B, H, dv] of one token, q, k [B, H, d], v [B, H, dv], and the state after it; state None: a reset."""
        raise NotImplementedError

    def forward(self, x):
        q, k, v = self.project(x, 0)
        control = self.controls(x)
        with torch.autocast(x.device.type, enabled=False):
            o = self.attend(q, k, v, control)
        return self.o_proj(o.transpose(1, 2).flatten(2))

    def step(self, x, state, position):
        q, k, v = (part.squeeze(2) for part in self.project(x, position))
        control = self.controls(x)
        o, state = self.recur(q, k, v, None if control is None else control.squeeze(2), state)
        return self.o_proj(o.flatten(1))[:, None], state
