"""Softmax over cached rows (MATH 0.1, family F3; MATH 1.1 and 1.8.4 to 1.8.6): a policy says which tokens a token sees."""

import math

import torch

from .attention import Attention


class Softmax(Attention):
    """All tokens; a sequence ends at max_context."""

    needs, reads = ("max_context",), ("soft_cap",)

    def sees(self, t, i):
        """True where token t sees token i <= t; t and i are integers in tensors that broadcast."""
        return i <= t

    def keeps(self, t, i):
        """True where a token after t may see token i."""
        return i <= t

    def result(self, logits, visible, v):
        logits, cap = self.scale * logits, self.a.get("soft_cap", 0)
        logits = cap * (logits / cap).tanh() if cap else logits
        return logits.masked_fill(~visible, -math.inf).softmax(-1) @ v

    def attend(self, q, k, v, control):
        if q.shape[2] > self.a.get("max_context", q.shape[2]):
            raise ValueError(f"softmax: {q.shape[2]} tokens, expected at most max_context = {self.a['max_context']}")
        place = torch.arange(q.shape[2], device=q.device)
        t, i = place[:, None], place[None, :]
        return self.result(q @ k.transpose(-1, -2), (i <= t) & self.sees(t, i), v)

    def recur(self, q, k, v, control, state):
        k, v, now = k.unsqueeze(2), v.unsqueeze(2), 0 if state is None else state[3]
        place = torch.tensor([now], device=q.device)
        if state is None:
            keys, values, places = k, v, place
        else:
            keys, values, places = torch.cat([state[0], k], 2), torch.cat([state[1], v], 2), torch.cat([state[2], place])
        o = self.result(q.unsqueeze(2) @ keys.transpose(-1, -2), self.sees(now, places), values)
        stay = self.keeps(now, places).nonzero().squeeze(1)
        return o.squeeze(2), (keys[:, :, stay], values[:, :, stay], places[stay], now + 1)


class SlidingWindow(Softmax):
    """The last tokens, the token's own among them; every dilation-th of them."""

    needs, reads = ("window",), (*Softmax.reads, "dilation")

    def sees(self, t, i):
        dilation = self.a.get("dilation", 1)
        return (t - i < self.a["window"] * dilation) & ((t - i) % dilation == 0)

    def keeps(self, t, i):
        return t - i < self.a["window"] * self.a.get("dilation", 1)


class StridedWindow(Softmax):
    """The last tokens, and the last of every stride-th token."""

    needs = ("window", "stride", "num_strided")

    def strided(self, t, i):
        stride = self.a["stride"]
        return ((i + 1) % stride == 0) & (((t + 1) // stride - (i + 1) // stride) < self.a["num_strided"])

    def sees(self, t, i):
        return (t - i < self.a["window"]) | self.strided(t, i)

    keeps = sees


class L2gWindow(Softmax):
    """The last tokens, and those at global_positions."""

    needs = ("window", "global_positions")

    def __init__(self, c, a):
        super().__init__(c, a)
        self.register_buffer("global_positions", torch.tensor(a["global_positions"]), persistent=False)

    def sees(self, t, i):
        return (t - i < self.a["window"]) | torch.isin(i, self.global_positions)

    keeps = sees


SYSTEMS = {
    "softmax": Softmax, "sliding_window": SlidingWindow, "dilated_window": SlidingWindow, "strided_window": StridedWindow,
    "l2g_window": L2gWindow,
}
