#!/usr/bin/env python3
"""Makes golden files of the general variant. make_linear_attention.py OUT_DIR

linear.linear_attention.a: features relu(Wx + b) and a forget gate. linear.linear_attention.b and noncausal.linear_attention.b: features
(Wx + b) (Ux + c), with weights of its own for q. *.c: features softmax([2y; -2y]), y = Wx + b, divided by their sum. *.d: features
relu(x) of q and k that are normalised, each with an eps of its own.
"""

import math
import pathlib
import random
import sys

from golden_writer import dot, matrix, softmax, write


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


def causal_and_whole(folder, letter, attributes, inputs, phi_q, phi_k, eps, scale, steps):
    """o_t = scale phi(q_t)^T S_t / (phi(q_t) . z_t + eps) with sums over the tokens up to t, and over all of them. Without eps
    nothing is divided."""
    q, k, v = (inputs[name] for name in "qkv")
    tokens, heads, kv_heads, dv = len(q), len(q[0]), len(k[0]), len(v[0][0])
    features = len(phi_k(0, k[0][0]))
    s = [[[0.0] * dv for _ in range(features)] for _ in range(kv_heads)]
    z = [[0.0] * features for _ in range(kv_heads)]

    def read(t):
        row = []
        for h in range(heads):
            kv = h * kv_heads // heads
            p = phi_q(kv, q[t][h])
            den = 1.0 if eps is None else dot(p, z[kv]) + eps
            row.append([scale * dot(p, [cells[j] for cells in s[kv]]) / den for j in range(dv)])
        return row

    o = []
    for t in range(tokens):
        for h in range(kv_heads):
            for i, p in enumerate(phi_k(h, k[t][h])):
                z[h][i] += p
                s[h][i] = [old + p * new for old, new in zip(s[h][i], v[t][h])]
        o.append(read(t))
    attributes = {**attributes, "system": "linear_attention", "scale": scale, "num_heads": heads, "num_kv_heads": kv_heads,
                  "head_dim": len(q[0][0]), "value_dim": dv}
    if eps is not None:
        attributes.update(den_mode="add", den_eps=eps)
    states = {"state_S": s} if eps is None else {"state_S": s, "state_z": z}
    name = f"linear_attention.{letter}"
    write(folder / f"linear.{name}.safetensors", f"linear.{name}", "linear", dict(attributes), steps, {**inputs, "o": o, **states})
    write(folder / f"noncausal.{name}.safetensors", f"noncausal.{name}", "noncausal", attributes, [],
          {**inputs, "o": [read(t) for t in range(tokens)]})


def hedgehog(folder):
    rng = random.Random(4)
    tokens, heads, kv_heads, d, dv, projections = 23, 4, 2, 7, 5, 9
    shapes = {"q": (heads, d), "k": (kv_heads, d), "v": (kv_heads, dv)}
    inputs = {name: matrix(rng, tokens, *shape) for name, shape in shapes.items()}
    weight = inputs["feature_weight"] = matrix(rng, kv_heads, projections, d, scale=d**-0.5)
    bias = inputs["feature_bias"] = matrix(rng, kv_heads, projections, scale=0.5)

    def phi(head, x):
        y = [dot(w, x) + b for w, b in zip(weight[head], bias[head])]
        return softmax([2 * a for a in y] + [-2 * a for a in y])

    causal_and_whole(folder, "c", {"feature_map": "hedgehog", "num_features": projections}, inputs, phi, phi, 1e-3, 0.8,
                     [1, 4, 16, tokens])


def norms_of_q_and_k(folder):
    rng = random.Random(5)
    tokens, heads, kv_heads, d, dv, k_eps, q_eps = 18, 4, 2, 6, 5, 0.5, 2.0
    shapes = {"q": (heads, d), "k": (kv_heads, d), "v": (kv_heads, dv)}
    inputs = {name: matrix(rng, tokens, *shape) for name, shape in shapes.items()}

    def phi(eps):
        return lambda head, x: [max(a / math.sqrt(dot(x, x) + eps), 0.0) for a in x]

    attributes = {"feature_map": "relu", "normalize_qk": True, "norm_eps_mode": "inside", "norm_eps": k_eps, "q_norm_eps": q_eps}
    causal_and_whole(folder, "d", attributes, inputs, phi(q_eps), phi(k_eps), None, 0.7, [1, 3, 16, tokens])


if __name__ == "__main__":
    for make in forget_gate, products, hedgehog, norms_of_q_and_k:
        make(pathlib.Path(sys.argv[1]))
