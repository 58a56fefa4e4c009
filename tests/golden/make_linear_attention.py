#!/usr/bin/env python3
"""Makes golden files of the general variant. make_linear_attention.py OUT_DIR

linear.linear_attention.a: features relu(Wx + b) and a forget gate. linear.linear_attention.b and noncausal.linear_attention.b: features
(Wx + b) (Ux + c), with weights of its own for q.
"""

import math
import pathlib
import random
import sys

from golden_writer import dot, matrix, write


def forget_gate(folder):
    rng = random.Random(2)
    tokens, heads, kv_heads, d, dv, features, eps, scale = 21, 4, 2, 6, 5, 9, 1e-2, 0.75
    q, k, v = (matrix(rng, tokens, count, width) for count, width in ((heads, d), (kv_heads, d), (kv_heads, dv)))
    logits = matrix(rng, tokens, kv_heads, scale=2.0)
    weight, bias = matrix(rng, kv_heads, features, d, scale=d**-0.5), matrix(rng, kv_heads, features, scale=0.5)

    def phi(head, x):
        return [max(dot(w, x) + b, 0.0) for w, b in zip(weight[head], bias[head])]

    s = [[[0.0] * dv for _ in range(features)] for _ in range(kv_heads)]
    z = [[0.0] * features for _ in range(kv_heads)]
    o = []
    for t in range(tokens):
        for h in range(kv_heads):
            gate = 1 / (1 + math.exp(-logits[t][h]))
            for i, p in enumerate(phi(h, k[t][h])):
                z[h][i] = gate * z[h][i] + (1 - gate) * p
                s[h][i] = [gate * old + (1 - gate) * p * new for old, new in zip(s[h][i], v[t][h])]
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            read = phi(kv, q[t][h])
            row.append([scale * dot(read, [cells[j] for cells in s[kv]]) / (dot(read, z[kv]) + eps) for j in range(dv)])
        o.append(row)
    attributes = {"system": "linear_attention", "feature_map": "mlp_relu", "num_features": features, "gate": "forget",
                  "den_mode": "add", "den_eps": eps, "scale": scale, "num_heads": heads, "num_kv_heads": kv_heads, "head_dim": d,
                  "value_dim": dv}
    write(folder / "linear.linear_attention.a.safetensors", "linear.linear_attention.a", "linear", attributes,
          [1, 4, 16, tokens], {"q": q, "k": k, "v": v, "gate_logit": logits, "feature_weight": weight, "feature_bias": bias, "o": o,
                               "state_S": s, "state_z": z})


def products(folder):
    rng = random.Random(3)
    tokens, heads, kv_heads, d, dv, features, scale = 19, 6, 3, 5, 7, 11, 0.6
    q, k, v = (matrix(rng, tokens, count, width) for count, width in ((heads, d), (kv_heads, d), (kv_heads, dv)))
    maps = {}
    for side in "", "q_":
        for factor in "feature", "factor":
            maps[f"{side}{factor}_weight"] = matrix(rng, kv_heads, features, d, scale=d**-0.5)
            maps[f"{side}{factor}_bias"] = matrix(rng, kv_heads, features, scale=0.5)

    def phi(side, head, x):
        one, other = ([dot(w, x) + b for w, b in zip(maps[f"{side}{name}_weight"][head], maps[f"{side}{name}_bias"][head])]
                      for name in ("feature", "factor"))
        return [a * b for a, b in zip(one, other)]

    s = [[[0.0] * dv for _ in range(features)] for _ in range(kv_heads)]
    o = []
    for t in range(tokens):
        for h in range(kv_heads):
            for i, p in enumerate(phi("", h, k[t][h])):
                s[h][i] = [old + p * new for old, new in zip(s[h][i], v[t][h])]
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            read = phi("q_", kv, q[t][h])
            row.append([scale * dot(read, [cells[j] for cells in s[kv]]) for j in range(dv)])
        o.append(row)
    attributes = {"system": "linear_attention", "feature_map": "product", "num_features": features, "own_q_map": True, "scale": scale,
                  "num_heads": heads, "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    inputs = {"q": q, "k": k, "v": v, **maps}
    write(folder / "linear.linear_attention.b.safetensors", "linear.linear_attention.b", "linear", dict(attributes),
          [1, 3, 16, tokens], {**inputs, "o": o, "state_S": s})
    whole = [[[scale * dot(phi("q_", h * kv_heads // heads, q[t][h]), [cells[j] for cells in s[h * kv_heads // heads]])
               for j in range(dv)] for h in range(heads)] for t in range(tokens)]
    write(folder / "noncausal.linear_attention.b.safetensors", "noncausal.linear_attention.b", "noncausal", attributes, [],
          {**inputs, "o": whole})


if __name__ == "__main__":
    forget_gate(pathlib.Path(sys.argv[1]))
    products(pathlib.Path(sys.argv[1]))
