#!/usr/bin/env python3
"""Makes cache.cache_attention.a: the general variant with a strided policy and grouped heads. make_cache_attention.py OUT_DIR"""

import pathlib
import random
import sys

from golden_writer import dot, matrix, softmax, write


def main():
    rng = random.Random(4)
    tokens, heads, kv_heads, d, dv, window, stride, kept, scale = 41, 4, 2, 6, 5, 5, 3, 4, 0.75
    q, k, v = (matrix(rng, tokens, count, width) for count, width in ((heads, d), (kv_heads, d), (kv_heads, dv)))
    o = []
    for t in range(tokens):
        # The last `window` tokens, and of those with j mod stride = stride - 1 the last `kept`.
        strided = [j for j in range(t + 1) if j % stride == stride - 1][-kept:]
        seen = sorted({*range(max(0, t - window + 1), t + 1), *strided})
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            p = softmax([scale * dot(q[t][h], k[j][kv]) for j in seen])
            row.append([dot(p, [v[j][kv][x] for j in seen]) for x in range(dv)])
        o.append(row)
    attributes = {"system": "cache_attention", "policy": "strided", "window": window, "stride": stride, "num_strided": kept,
                  "scale": scale, "num_heads": heads, "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    write(pathlib.Path(sys.argv[1]) / "cache.cache_attention.a.safetensors", "cache.cache_attention.a", "cache", attributes,
          [1, 4, 16, tokens], {"q": q, "k": k, "v": v, "o": o})


if __name__ == "__main__":
    main()
