#!/usr/bin/env python3
"""Makes the files of linear states whose gate says what is written, or that take away by a key of its own: linear.hgrn2.a and .b,
linear.mamba2.a and .b, linear.rwkv7.a and .b. make_gated_state.py OUT_DIR"""

import math
import pathlib
import random
import sys

from golden_writer import dot, matrix, write


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def unit(x, mode, eps):
    square = dot(x, x)
    length = math.sqrt(square + eps) if mode == "inside" else math.sqrt(square) + eps
    return [value / length for value in x]


def zeros(*shape):
    return 0.0 if not shape else [zeros(*shape[1:]) for _ in range(shape[0])]


def read(s, q, scale):
    return [scale * dot(q, [row[j] for row in s]) for j in range(len(s[0]))]


def make_hgrn2(folder, name, seed, tokens, heads, kv_heads, d, dv, layers):
    """S <- diag(g) S + (1 - g) x v, g = b + (1 - b) sigmoid(k), b of the last of `layers` layers."""
    rng = random.Random(seed)
    q, k, v = matrix(rng, tokens, heads, d), matrix(rng, tokens, kv_heads, d, scale=2.0), matrix(rng, tokens, kv_heads, dv)
    scale = d**-0.5
    bounds = matrix(rng, layers, kv_heads * d) if layers else []
    least = [0.0] * (kv_heads * d)
    for i in range(kv_heads * d if layers else 0):
        exponentials = [math.exp(row[i]) for row in bounds]
        least[i] = sum(exponentials[1:]) / sum(exponentials)
    s, o = zeros(kv_heads, d, dv), []
    for t in range(tokens):
        for h in range(kv_heads):
            for i in range(d):
                g = least[h * d + i] + (1 - least[h * d + i]) * sigmoid(k[t][h][i])
                s[h][i] = [g * cell + (1 - g) * value for cell, value in zip(s[h][i], v[t][h])]
        o.append([read(s[h * kv_heads // heads], q[t][h], scale) for h in range(heads)])
    attributes = {"system": "hgrn2", "lower_bounds": bool(layers), "scale": scale, "num_heads": heads, "num_kv_heads": kv_heads,
                  "head_dim": d, "value_dim": dv}
    tensors = {"q": q, "k": k, "v": v, "o": o, "state_S": s}
    if layers:
        attributes.update(layer=layers - 1, num_layers=layers)
        tensors["lower_bounds"] = bounds
    write(folder / f"{name}.safetensors", name, "linear", attributes, [1, 4, 16, tokens], tensors)


def make_mamba2(folder, name, seed, tokens, heads, groups, d, dv, limits):
    """S <- exp(-rate t) S + t k x v, t = softplus(logit), clamped."""
    rng = random.Random(seed)
    q, k, v = matrix(rng, tokens, groups, d), matrix(rng, tokens, groups, d), matrix(rng, tokens, heads, dv)
    logits, a_log = matrix(rng, tokens, heads, scale=2.0), matrix(rng, heads, scale=0.7)
    s, o = zeros(heads, d, dv), []
    for t in range(tokens):
        row = []
        for h in range(heads):
            step = math.log1p(math.exp(logits[t][h]))
            if limits:
                step = min(max(step, limits[0]), limits[1])
            decay, group = math.exp(-math.exp(a_log[h]) * step), h * groups // heads
            for i in range(d):
                s[h][i] = [decay * cell + step * k[t][group][i] * value for cell, value in zip(s[h][i], v[t][h])]
            row.append(read(s[h], q[t][group], 1.0))
        o.append(row)
    attributes = {"system": "mamba2", "scale": 1.0, "num_heads": heads, "num_kv_heads": heads, "head_dim": d, "value_dim": dv}
    if groups != heads:
        attributes["num_key_heads"] = groups
    if limits:
        attributes.update(step_min=limits[0], step_max=limits[1])
    write(folder / f"{name}.safetensors", name, "linear", attributes, [1, 4, 16, tokens],
          {"q": q, "k": k, "v": v, "gate_logit": logits, "A_log": a_log, "o": o, "state_S": s})


def make_rwkv7(folder, name, seed, tokens, heads, kv_heads, d, dv, mode, eps):
    """S <- diag(w) S - (a o r) x (S^T r) + k x v, log w = least sigmoid(logit), a = sigmoid(beta), r the unit removal key."""
    rng = random.Random(seed)
    least = -(math.exp(-0.5))
    q, k, v = matrix(rng, tokens, heads, d), matrix(rng, tokens, kv_heads, d), matrix(rng, tokens, kv_heads, dv)
    logits, beta = matrix(rng, tokens, kv_heads, d, scale=2.0), matrix(rng, tokens, kv_heads, d, scale=2.0)
    removal, factors = matrix(rng, tokens, kv_heads, d), matrix(rng, kv_heads * d)
    s, o = zeros(kv_heads, d, dv), []
    for t in range(tokens):
        for h in range(kv_heads):
            r = unit([x * f for x, f in zip(removal[t][h], factors[h * d:(h + 1) * d])], mode, eps)
            old = [dot(r, [row[j] for row in s[h]]) for j in range(dv)]
            for i in range(d):
                decay, taken = math.exp(least * sigmoid(logits[t][h][i])), sigmoid(beta[t][h][i]) * r[i]
                s[h][i] = [decay * cell - taken * was + k[t][h][i] * value for cell, was, value in zip(s[h][i], old, v[t][h])]
        o.append([read(s[h * kv_heads // heads], q[t][h], 1.0) for h in range(heads)])
    attributes = {"system": "rwkv7", "removal_norm": mode, "removal_norm_eps": eps, "scale": 1.0, "num_heads": heads,
                  "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    write(folder / f"{name}.safetensors", name, "linear", attributes, [1, 4, 16, tokens],
          {"q": q, "k": k, "v": v, "gate_logit": logits, "beta_logit": beta, "removal_key": removal, "k_removal": factors, "o": o,
           "state_S": s})


def main():
    folder = pathlib.Path(sys.argv[1])
    make_hgrn2(folder, "linear.hgrn2.a", 11, 27, 4, 2, 7, 5, 3)
    make_hgrn2(folder, "linear.hgrn2.b", 12, 21, 3, 3, 9, 11, 0)
    make_mamba2(folder, "linear.mamba2.a", 13, 29, 6, 2, 7, 9, None)
    make_mamba2(folder, "linear.mamba2.b", 14, 23, 3, 3, 10, 6, (0.25, 1.5))
    make_rwkv7(folder, "linear.rwkv7.a", 15, 29, 3, 3, 9, 7, "inside", 1e-6)
    make_rwkv7(folder, "linear.rwkv7.b", 16, 23, 4, 2, 6, 21, "outside", 1e-12)


if __name__ == "__main__":
    main()
