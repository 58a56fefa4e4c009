"""Norms of rows, by the "norm" of a config.json"""

import torch
from torch import nn


class RmsNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * self.weight


def norm(c, size):
    kind = RmsNorm if c["norm"] == "rmsnorm" else nn.LayerNorm
    return kind(size, eps=c["norm_eps"])
