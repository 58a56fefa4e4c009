#!/usr/bin/env python3
"""Makes linear.gated_deltanet.a, .b and .c: the delta rule with a decay of the head, with heads of k for several heads of v, and
with a decay of each channel. make_gated_delta.py OUT_DIR"""

import math
import pathlib
import random
import sys

from golden_writer import dot, matrix, write

EPS = 1e-6


def unit(x):
    length = math.sqrt(dot(x, x) + EPS)
    return [value / length for value in x]


def make(folder, name, seed, tokens, heads, kv_heads, key_heads, d, dv, gate, beta_scale):
    rng = random.Random(seed)
    shared = key_heads or 0
    q, k = matrix(rng, tokens, shared or heads, d), matrix(rng, tokens, shared or kv_heads, d)
    v, beta = matrix(rng, tokens, kv_heads, dv), matrix(rng, tokens, kv_heads, scale=2.0)
    by_row = gate == "softplus_vector"
    logits = matrix(rng, tokens, kv_heads, *([d] if by_row else []), scale=2.0)
    a_log, scale = matrix(rng, kv_heads, scale=0.7), d**-0.5

    s = [[[0.0] * dv for _ in range(d)] for _ in range(kv_heads)]
    o = []
    for t in range(tokens):
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            if h % (heads // kv_heads) == 0:  # the first head of a state writes it
                key = unit(k[t][kv * shared // kv_heads if shared else kv])
                for i in range(d):
                    decay = math.exp(-math.exp(a_log[kv]) * math.log1p(math.exp(logits[t][kv][i] if by_row else logits[t][kv])))
                    s[kv][i] = [decay * cell for cell in s[kv][i]]
                strength = beta_scale / (1 + math.exp(-beta[t][kv]))
                for j in range(dv):
                    written = strength * (v[t][kv][j] - dot(key, [cells[j] for cells in s[kv]]))
                    for i in range(d):
                        s[kv][i][j] += key[i] * written
            query = unit(q[t][h * shared // heads if shared else h])
            row.append([scale * dot(query, [cells[j] for cells in s[kv]]) for j in range(dv)])
        o.append(row)
    attributes = {"system": "gated_deltanet", "gate": gate, "beta_scale": beta_scale, "scale": scale, "num_heads": heads,
                  "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    if shared:
        attributes["num_key_heads"] = shared
    if by_row:
        attributes["gate_low_rank"] = False
    write(folder / f"{name}.safetensors", name, "linear", attributes, [1, 4, 16, tokens],
          {"q": q, "k": k, "v": v, "gate_logit": logits, "beta_logit": beta, "A_log": a_log, "o": o, "state_S": s})


def main():
    folder = pathlib.Path(sys.argv[1])
    make(folder, "linear.gated_deltanet.a", 5, 29, 4, 2, None, 7, 5, "softplus", 1.0)
    make(folder, "linear.gated_deltanet.b", 6, 23, 6, 6, 2, 9, 11, "softplus", 2.0)
    make(folder, "linear.gated_deltanet.c", 7, 21, 4, 2, None, 10, 6, "softplus_vector", 2.0)


if __name__ == "__main__":
    main()
