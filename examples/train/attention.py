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

    over all positions, or over those up to t where causal. Of x / (|x| + norm_eps), phi(x) = D^-1/2 [sin(W x), cos(W x)], or
    D^-1/2 relu(W x) (arc-cosine kernel), with W = sigma * random_matrix, eq. 8: sigma is learned, the matrix stays as it was
    drawn. With the forget gate, eq. 7, S_t = g_t S_{t-1} + (1 - g_t) phi(k_t) x v_t and z_t alike, g = sigmoid(g_proj x), a
    number per head.
    """

    def __init__(self, c, a, causal):
        super().__init__(c, a, causal)
        self.register_buffer("random_matrix", torch.randn(self.heads, a["num_features"], self.d))
        self.sigma = nn.Parameter(torch.full((self.heads, self.d), 1.5))
        if a["gate"] == "forget":
            self.g_proj = nn.Linear(c["hidden_size"], self.heads)
            nn.init.zeros_(self.g_proj.weight)
            self.g_proj.bias.data = torch.linspace(1, 5, self.heads)

    def features(self, x):
        x = x / (x.norm(dim=-1, keepdim=True) + self.a["norm_eps"])
        angles = torch.einsum("bhtd,hfd->bhtf", x, self.sigma[:, None, :] * self.random_matrix)
        phi = angles.relu() if self.a["feature_map"] == "arccos" else torch.cat([angles.sin(), angles.cos()], -1)
        return phi * self.a["num_features"] ** -0.5

    def weights(self, memory, visible):
        """What is left of token i at token t, of what it wrote: 1 where there is no gate."""
        if self.a["gate"] == "none":
            return visible
        logits = self.g_proj(memory).transpose(1, 2)  # [B, H, T]
        log_decay = nn.functional.logsigmoid(logits).cumsum(-1)
        log_weight = log_decay[..., :, None] - log_decay[..., None, :] + nn.functional.logsigmoid(-logits)[..., None, :]
        return log_weight.masked_fill(~visible, float("-inf")).exp()

    def attend(self, q, k, v, memory, visible):
        q, k = self.features(q), self.features(k)
        if self.causal:
            scores = (q @ k.transpose(-1, -2)) * self.weights(memory, visible)
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
