#!/usr/bin/env python3
"""Makes linear.linear_attention.a: the general variant with features relu(Wx + b) and a forget gate. make_linear_attention.py OUT_DIR"""

import math
import pathlib
import random
import sys

from golden_writer import dot, matrix, write


def main():
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
    write(pathlib.Path(sys.argv[1]) / "linear.linear_attention.a.safetensors", "linear.linear_attention.a", "linear", attributes,
          [1, 4, 16, tokens], {"q": q, "k": k, "v": v, "gate_logit": logits, "feature_weight": weight, "feature_bias": bias, "o": o,
                               "state_S": s, "state_z": z})


if __name__ == "__main__":
    main()
