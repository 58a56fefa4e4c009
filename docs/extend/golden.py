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
    attributes = {"system": "linear_attention", "feature_map": "hedgehog", "num_features": features, "den_mode": "add",
                  "den_eps": eps, "num_heads": heads, "num_kv_heads": heads, "head_dim": d, "value_dim": dv}
    write(out / "linear.hedgehog.safetensors", "linear.hedgehog", "linear", attributes, [1, 4, tokens],
          {"q": q, "k": k, "v": v, "feature_weight": weight, "o": o, "state_S": s, "state_z": z})


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    feature_map(out)


if __name__ == "__main__":
    main()
