"""Feature maps of linear attention: x [B, H, T, d] or [B, H, d] -> [..., M]. MATH 1.2.1 to 1.7."""

import torch
from torch import nn


def l2_normalized(x, eps, mode):
    if mode == "inside":
        return x / (x.square().sum(-1, keepdim=True) + eps).sqrt()
    return x / (x.norm(dim=-1, keepdim=True) + eps)


def projected(x, matrix):
    """Rows of matrix [H, M, d] times x"""
    return torch.einsum("bhtd,hmd->bhtm", x, matrix) if x.dim() == 4 else torch.einsum("bhd,hmd->bhm", x, matrix)


def gaussian(angles):
    """D^-1/2 [sin, cos] of D random projections"""
    return torch.cat([angles.sin(), angles.cos()], -1) * angles.shape[-1] ** -0.5


def arccos(angles):
    """D^-1/2 relu of D random projections"""
    return angles.relu() * angles.shape[-1] ** -0.5


def elu_plus_one(x):
    return nn.functional.elu(x) + 1


def dpfp(x, nu):
    """Products of neighbours in [relu(x), relu(-x)], at distances 1 to nu"""
    halves = torch.cat([x, -x], -1).relu()
    return torch.cat([halves * halves.roll(-distance, -1) for distance in range(1, nu + 1)], -1)
