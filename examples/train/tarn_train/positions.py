"""Sinusoidal and rotary positions. Angles are formed in float64: in float32 those of late positions would be wrong."""

import math

import torch


def angles_of(rates, count, first):
    """float64 [count, rates], where the rates are"""
    return torch.arange(first, first + count, dtype=torch.float64, device=rates.device)[:, None] * rates


def sinusoidal(count, size, like, first=0):
    """[count, size]: all sines, then all cosines; of the type and on the device of `like`."""
    steps = torch.arange(size // 2, dtype=torch.float64, device=like.device)
    angles = angles_of(torch.exp(steps * (-math.log(10000) / (size // 2 - 1))), count, first)
    return torch.cat([angles.sin(), angles.cos()], 1).to(like)


def rotate(x, rates, first=0):
    """x [B, H, T, d]: pair i of the halves of a head turns by position * rates[i]."""
    half = x.shape[-1] // 2
    angles = angles_of(rates, x.shape[-2], first)
    sin, cos = angles.sin().to(x), angles.cos().to(x)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
