"""Sinusoidal and rotary positions. Angles are formed in float64: in float32 those of late positions would be wrong."""

import math

import torch


def sinusoidal(count, size, dtype, first=0):
    """[count, size]: all sines, then all cosines."""
    rates = torch.exp(torch.arange(size // 2, dtype=torch.float64) * (-math.log(10000) / (size // 2 - 1)))
    angles = torch.arange(first, first + count, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1).to(dtype)


def rotate(x, rates, first=0):
    """x [B, H, T, d]: pair i of the halves of a head turns by position * rates[i]."""
    half = x.shape[-1] // 2
    angles = torch.arange(first, first + x.shape[-2], dtype=torch.float64)[:, None] * rates
    sin, cos = angles.sin().to(x), angles.cos().to(x)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
