#!/usr/bin/env python3
"""Golden files of the worked examples, in f64 from the papers' equations: golden.py OUT_DIR"""

import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/golden"))
from golden_writer import dot, matrix, softmax, write  # noqa: E402


def feature_map(out):
    """Hedgehog (Zhang et al. 2024): phi(x) = [softmax(Wx); softmax(-Wx)], o_t = phi(q_t)^T S_t / (phi(q_t) . z_t + eps)."""
    rng = random.Random(1)
    tokens, heads, d, dv, features, eps = 11, 2, 5, 3, 7, 1e-6
    q, k, v = (matrix(rng, tokens, heads, width) for width in (d, d, dv))
    weight = matrix(rng, heads, features, d, scale=d**-0.5)

    def phi(head, x):
        wx = [dot(row, x) for row in weight[head]]
        return softmax(wx) + softmax([-x for x in wx])

    s = [[[0.0] * dv for _ in range(2 * features)] for _ in range(heads)]
    z = [[0.0] * (2 * features) for _ in range(heads)]
    o = []
    for t in range(tokens):
        row = []
        for h in range(heads):
            for i, p in enumerate(phi(h, k[t][h])):
                z[h][i] += p
                for j in range(dv):
                    s[h][i][j] += p * v[t][h][j]
            read = phi(h, q[t][h])
            row.append([math.fsum(p * s[h][i][j] for i, p in enumerate(read)) / (dot(read, z[h]) + eps) for j in range(dv)])
        o.append(row)
    attributes = {"system": "linear_attention", "feature_map": "split_hedgehog", "num_features": features, "den_mode": "add",
                  "den_eps": eps, "num_heads": heads, "num_kv_heads": heads, "head_dim": d, "value_dim": dv}
    write(out / "linear.split_hedgehog.safetensors", "linear.split_hedgehog", "linear", attributes, [1, 4, tokens],
          {"q": q, "k": k, "v": v, "feature_weight": weight, "o": o, "state_S": s, "state_z": z})


def cache_policy(out):
    """Transformer-XL (Dai et al. 2019, section 3.2): token t sees [max(b - mem_len, 0), t], b = segment_len floor(t / segment_len)."""
    rng = random.Random(3)
    tokens, heads, kv_heads, d, dv, segment, memory, scale = 23, 4, 2, 5, 3, 4, 7, 0.5
    q, k, v = (matrix(rng, tokens, count, width) for count, width in ((heads, d), (kv_heads, d), (kv_heads, dv)))
    o = []
    for t in range(tokens):
        seen = range(max(t - t % segment - memory, 0), t + 1)
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            p = softmax([scale * dot(q[t][h], k[j][kv]) for j in seen])
            row.append([dot(p, [v[j][kv][x] for j in seen]) for x in range(dv)])
        o.append(row)
    attributes = {"system": "cache_attention", "policy": "transformer_xl", "segment_len": segment, "mem_len": memory,
                  "scale": scale, "num_heads": heads, "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    write(out / "cache.transformer_xl.safetensors", "cache.transformer_xl", "cache", attributes, [1, 3, 9, tokens],
          {"q": q, "k": k, "v": v, "o": o})


def slot_control(out):
    """Slot Attention (Locatello et al. 2020, algorithm 1, one round): alpha = softmax(logits) + 1e-8 over the slots, K~_j and V~_j
    the means of all tokens weighed by alpha_j; o = V~^T softmax(scale K~ q)."""
    rng = random.Random(4)
    tokens, heads, kv_heads, d, dv, slots, scale = 19, 4, 2, 5, 3, 6, 0.5
    q, k, v = (matrix(rng, tokens, count, width) for count, width in ((heads, d), (kv_heads, d), (kv_heads, dv)))
    logits = matrix(rng, tokens, kv_heads, slots, scale=2.0)
    alpha = [[[a + 1e-8 for a in softmax(logits[t][h])] for h in range(kv_heads)] for t in range(tokens)]

    def mean(rows, h, j, seen):
        mass = math.fsum(alpha[i][h][j] for i in range(seen))
        return [math.fsum(alpha[i][h][j] * rows[i][h][x] for i in range(seen)) / mass for x in range(len(rows[0][h]))]

    o = []
    for t in range(tokens):
        keys, values = ([[mean(rows, h, j, t + 1) for j in range(slots)] for h in range(kv_heads)] for rows in (k, v))
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            p = softmax([scale * dot(q[t][h], key) for key in keys[kv]])
            row.append([dot(p, [value[x] for value in values[kv]]) for x in range(dv)])
        o.append(row)
    mass = [[math.fsum(alpha[i][h][j] for i in range(tokens)) for j in range(slots)] for h in range(kv_heads)]
    attributes = {"system": "slot_attention", "control": "slot_softmax", "num_slots": slots, "scale": scale, "num_heads": heads,
                  "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    write(out / "slots.slot_softmax.safetensors", "slots.slot_softmax", "slots", attributes, [1, 4, tokens],
          {"q": q, "k": k, "v": v, "control_logit": logits, "o": o, "state_K": keys, "state_V": values, "state_z": mass})


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    feature_map(out)
    cache_policy(out)
    slot_control(out)


if __name__ == "__main__":
    main()
