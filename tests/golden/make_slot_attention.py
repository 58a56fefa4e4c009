#!/usr/bin/env python3
"""Makes slots.slot_attention.a: the general slot memory with the gates of GSA. make_slot_attention.py OUT_DIR"""

import math
import pathlib
import random
import sys

from golden_writer import dot, matrix, softmax, write


def main():
    rng = random.Random(3)
    tokens, heads, kv_heads, d, dv, slots, normalizer, scale = 21, 4, 2, 6, 5, 7, 4.0, 0.5
    q, k, v = (matrix(rng, tokens, count, width) for count, width in ((heads, d), (kv_heads, d), (kv_heads, dv)))
    logits = matrix(rng, tokens, kv_heads, slots, scale=2.0)
    keys = [[[0.0] * d for _ in range(slots)] for _ in range(kv_heads)]
    values = [[[0.0] * dv for _ in range(slots)] for _ in range(kv_heads)]
    o = []
    for t in range(tokens):
        for h in range(kv_heads):
            for j in range(slots):
                keep = (1 / (1 + math.exp(-logits[t][h][j]))) ** (1 / normalizer)
                keys[h][j] = [keep * old + (1 - keep) * new for old, new in zip(keys[h][j], k[t][h])]
                values[h][j] = [keep * old + (1 - keep) * new for old, new in zip(values[h][j], v[t][h])]
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            p = softmax([scale * dot(q[t][h], key) for key in keys[kv]])
            row.append([dot(p, [value[e] for value in values[kv]]) for e in range(dv)])
        o.append(row)
    attributes = {"system": "slot_attention", "control": "gsa", "num_slots": slots, "gate_normalizer": normalizer, "scale": scale,
                  "num_heads": heads, "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    write(pathlib.Path(sys.argv[1]) / "slots.slot_attention.a.safetensors", "slots.slot_attention.a", "slots", attributes,
          [1, 4, 16, tokens], {"q": q, "k": k, "v": v, "control_logit": logits, "o": o, "state_K": keys, "state_V": values})


if __name__ == "__main__":
    main()
