#!/usr/bin/env python3
"""Makes the golden files of global rows: tokens that all others see, and that see all others (noncausal) or all before them (causal),
in the noncausal form also with projections of their own. make_global_rows.py OUT_DIR"""

import pathlib
import random
import sys

from golden_writer import dot, matrix, softmax, write


def attend(q, keys, k, v, scale, slope):
    """q: (position, row); keys: the positions that it sees."""
    at, row = q
    p = softmax([scale * dot(row, k[j]) - slope * abs(j - at) for j in keys])
    return [dot(p, [v[j][x] for j in keys]) for x in range(len(v[0]))]


def make(folder, case, seed, sizes, attributes):
    rng = random.Random(seed)
    tokens, heads, kv_heads, d, dv = sizes
    causal = case.startswith("cache")
    window, places = attributes["window"], attributes["global_positions"]
    slopes = attributes.get("distance_slopes", [0.0] * heads)
    full = not causal or attributes.get("global_full", False)

    def rows():
        return [matrix(rng, tokens, count, width) for count, width in ((heads, d), (kv_heads, d), (kv_heads, dv))]

    def seen(t, j):
        if causal:
            return j <= t and (t - window < j or j in places or (full and t in places))
        return abs(t - j) <= window // 2 or j in places or t in places

    local = rows()
    own = rows() if attributes.get("global_projections") else local
    o = []
    for t in range(tokens):
        q, k, v = own if full and t in places else local
        keys = [j for j in range(tokens) if seen(t, j)]
        of = [h * kv_heads // heads for h in range(heads)]
        o.append([attend((t, q[t][h]), keys, [row[of[h]] for row in k], [row[of[h]] for row in v], attributes["scale"], slopes[h])
                  for h in range(heads)])
    attributes = {**attributes, "num_heads": heads, "num_kv_heads": kv_heads, "head_dim": d, "value_dim": dv}
    tensors = dict(zip("qkv", local))
    if own is not local:
        tensors.update(zip(("q_global", "k_global", "v_global"), own))
    tensors["o"] = o
    write(pathlib.Path(folder) / f"{case}.safetensors", case, case.split(".")[0], attributes, [1, 7, 64, tokens] if causal else [],
          tensors)


def main():
    folder = sys.argv[1]
    whole = {"system": "l2g_window", "window": 20, "scale": 0.5}
    slopes = [0.5, 0.25, 0.125, 0.0]
    make(folder, "noncausal.l2g_window.a", 31, (150, 4, 4, 6, 5), {**whole, "global_positions": [0, 1, 2, 70, 149, 200]})
    make(folder, "noncausal.l2g_window.b", 32, (90, 4, 2, 7, 5), {**whole, "window": 1, "global_positions": [63, 64, 65]})
    own = {**whole, "global_projections": True}
    make(folder, "noncausal.l2g_projections.a", 33, (130, 4, 4, 6, 6), {**own, "global_positions": [0, 17]})
    make(folder, "noncausal.l2g_projections.b", 34, (70, 4, 2, 5, 9), {**own, "global_positions": [3, 4, 69], "distance_slopes": slopes})
    full = {"system": "l2g_window", "window": 9, "scale": 0.5, "global_full": True}
    make(folder, "cache.l2g_full.a", 35, (80, 4, 4, 6, 5), {**full, "global_positions": [0, 5, 30, 31]})
    make(folder, "cache.l2g_full.b", 36, (75, 4, 2, 7, 5), {**full, "global_positions": [40, 71, 500], "distance_slopes": slopes})


if __name__ == "__main__":
    main()
