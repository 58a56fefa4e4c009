"""Softmax attention, random feature attention (RFA) and attention with bounded-memory control (ABC), over padded batches.

Shapes: x [B, T, E] asks, memory [B, S, E] is asked about; keep [B, S] is False where memory is padding, which no sum, softmax or
state may see. Heads: B batches, H heads, d the size of a head, D random features, n slots.
"""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, c, a, causal):
        super().__init__()
        self.a, self.heads, self.causal = a, c["num_heads"], causal
        self.d = c["hidden_size"] // self.heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(c["hidden_size"], c["hidden_size"], bias=c["attention_bias"]))

    def split(self, x):
        """[B, T, H * size] -> [B, H, T, size]"""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, memory, keep):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(memory)), self.split(self.v_proj(memory))
        visible = keep[:, None, None, :]  # [B, 1, 1 or T, S]
        if self.causal:
            visible = visible & torch.ones(x.shape[1], memory.shape[1], dtype=torch.bool).tril()
        o = self.attend(q, k, v, memory, visible)
        return self.o_proj(o.transpose(1, 2).flatten(2))


class Softmax(Attention):
    """RFA eq. 1: o_t = sum over i of softmax_i(q_t . k_i / sqrt d) v_i"""

    def attend(self, q, k, v, memory, visible):
        scores = (q @ k.transpose(-1, -2) * self.d**-0.5).masked_fill(~visible, float("-inf"))
        return scores.softmax(-1) @ v


class Rfa(Attention):
    """RFA eqs. 5 and 6: o_t = phi(q_t)^T S / max(phi(q_t) . z, eps), S = sum of phi(k_i) x v_i, z = sum of phi(k_i)

    over all positions, or over those up to t where causal. phi(x) = D^-1/2 [sin(W x), cos(W x)] of x / (|x| + norm_eps), with
    W = sigma * random_matrix, eq. 8: sigma is learned, the matrix stays as it was drawn.
    """

    def __init__(self, c, a, causal):
        super().__init__(c, a, causal)
        self.register_buffer("random_matrix", torch.randn(self.heads, a["num_features"], self.d))
        self.sigma = nn.Parameter(torch.full((self.heads, self.d), 1.5))

    def features(self, x):
        x = x / (x.norm(dim=-1, keepdim=True) + self.a["norm_eps"])
        angles = torch.einsum("bhtd,hfd->bhtf", x, self.sigma[:, None, :] * self.random_matrix)
        return torch.cat([angles.sin(), angles.cos()], -1) * self.a["num_features"] ** -0.5

    def attend(self, q, k, v, memory, visible):
        q, k = self.features(q), self.features(k)
        if self.causal:
            scores = (q @ k.transpose(-1, -2)) * visible
            numerator, denominator = scores @ v, scores.sum(-1, keepdim=True)
        else:
            k = k * visible.transpose(-1, -2)
            numerator, denominator = q @ (k.transpose(-1, -2) @ v), q @ k.sum(-2).unsqueeze(-1)
        return numerator / denominator.clamp_min(self.a["den_eps"])


class AbcMlp(Attention):
    """ABC eqs. 3 and 4: o_t = V~^T softmax(K~ q_t / sqrt d), K~ = sum of phi_i x k_i, V~ alike, n slots each.

    phi_i = alpha_i / sum of alpha_j, alpha = exp(W x): a softmax over all positions, or over those up to t where causal.
    """

    def __init__(self, c, a, causal):
        super().__init__(c, a, causal)
        self.control_proj = nn.Linear(c["hidden_size"], self.heads * a["num_slots"], bias=False)

    def attend(self, q, k, v, memory, visible):
        control = self.split(self.control_proj(memory)).transpose(-1, -2)  # [B, H, n, S]
        if not self.causal:
            phi = control.masked_fill(~visible, float("-inf")).softmax(-1)
            p = (q @ (phi @ k).transpose(-1, -2) * self.d**-0.5).softmax(-1)
            return p @ (phi @ v)
        phi = control[:, :, None].masked_fill(~visible[:, :, :, None], float("-inf")).softmax(-1)  # of each t: [B, H, T, n, S]
        keys, values = ((phi.flatten(2, 3) @ x).unflatten(2, phi.shape[2:4]) for x in (k, v))  # [B, H, T, n, d]
        p = ((keys * q[:, :, :, None]).sum(-1) * self.d**-0.5).softmax(-1)
        return (p[..., None] * values).sum(-2)


SYSTEMS = {"softmax": Softmax, "rfa": Rfa, "abc_mlp": AbcMlp}


def attention(c, a, causal=False):
    return SYSTEMS[a["system"]](c, a, causal)
