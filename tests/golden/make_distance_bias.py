#!/usr/bin/env python3
"""Makes the golden files of a bias by distance: T5's buckets and ALiBi's slopes, alone and together. make_distance_bias.py OUT_DIR"""

import math
import pathlib
import random
import sys

from golden_writer import dot, matrix, softmax, write


def bucket(distance, buckets, farthest):
    """Of one side, after Raffel et al. 2020: half of the buckets have one distance each, the others grow by a factor."""
    exact = buckets // 2
    if distance < exact:
        return distance
    return min(exact + int(math.log(distance / exact) / math.log(farthest / exact) * (buckets - exact)), buckets - 1)


def bias(distance, table, attributes, head, causal):
    """`distance`: how many tokens the key stands behind the query."""
    b = -attributes["distance_slopes"][head] * abs(distance) if "distance_slopes" in attributes else 0.0
    if table is None:
        return b
    side = len(table) if causal else len(table) // 2
    first = side if distance > 0 and not causal else 0
    return b + table[first + bucket(abs(distance), side, attributes["distance_max"])][head]


def make(folder, case, seed, sizes, attributes, seen, buckets=0):
    """seen(t, j): whether token t sees token j."""
    rng = random.Random(seed)
    tokens, heads, kv_heads, d, dv = sizes
    causal = case.startswith("cache")
    q, k, v = (matrix(rng, tokens, count, width) for count, width in ((heads, d), (kv_heads, d), (kv_heads, dv)))
    table = matrix(rng, buckets, heads, scale=2.0) if buckets else None
    o = []
    for t in range(tokens):
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            keys = [j for j in range(tokens) if seen(t, j)]
            p = softmax([attributes["scale"] * dot(q[t][h], k[j][kv]) + bias(j - t, table, attributes, h, causal) for j in keys])
            row.append([dot(p, [v[j][kv][x] for j in keys]) for x in range(dv)])
        o.append(row)
    attributes = {**attributes, "num_heads": heads, "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    tensors = {"q": q, "k": k, "v": v, "o": o}
    if table:
        attributes.update(distance_bias="model", distance_buckets=buckets)
        tensors["distance_bias"] = table
    write(pathlib.Path(folder) / f"{case}.safetensors", case, case.split(".")[0], attributes,
          [1, 7, 64, tokens] if causal else [], tensors)


def main():
    folder = sys.argv[1]
    slopes = [2.0 ** (-2 * (h + 1)) for h in range(4)]
    softmax_t5 = {"system": "softmax", "scale": 1.0, "distance_max": 40}
    make(folder, "cache.softmax_distance.a", 11, (90, 4, 4, 6, 5), softmax_t5, lambda t, j: j <= t, buckets=12)
    make(folder, "cache.softmax_alibi.b", 12, (75, 4, 2, 7, 5), {"system": "softmax", "scale": 0.4, "distance_slopes": slopes},
         lambda t, j: j <= t)
    window = {"system": "sliding_window", "window": 20, "scale": 0.7, "distance_max": 16, "distance_slopes": slopes}
    make(folder, "cache.sliding_window_distance.b", 13, (70, 4, 2, 5, 7), window, lambda t, j: t - 20 < j <= t, buckets=8)
    local = {"system": "cache_attention", "policy": "l2g", "window": 9, "global_positions": [0, 3], "scale": 0.7, "distance_max": 30}
    make(folder, "cache.l2g_distance.a", 14, (50, 4, 4, 5, 5), local, lambda t, j: j <= t and (t - 9 < j or j in (0, 3)), buckets=10)
    make(folder, "noncausal.softmax_distance.a", 15, (90, 4, 4, 6, 5), {**softmax_t5, "distance_slopes": slopes}, lambda t, j: True,
         buckets=12)
    make(folder, "noncausal.sliding_window_distance.b", 16, (70, 4, 2, 5, 7), window, lambda t, j: abs(t - j) <= 10, buckets=8)


if __name__ == "__main__":
    main()
