#!/usr/bin/env python3
"""Makes recurrence.*.safetensors: diagonal recurrences with every kind of decay and input, RG-LRU, and gated short convolutions.
make_recurrence.py OUT_DIR"""

import math
import pathlib
import random
import sys

from golden_writer import f32, matrix, write


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def heads(width):
    return {"num_heads": 1, "num_kv_heads": 1, "head_dim": width, "value_dim": width}


def save(folder, name, attributes, tensors):
    tokens = len(tensors["v"])
    write(folder / f"{name}.safetensors", name, "recurrence", attributes, [1, 2, 5, tokens], tensors)


def recurrence(decay, input_kind, constant, v, gate):
    """Rows h, from rows v and logits of the decay."""
    h, rows = [0.0] * len(v[0]), []
    for t, (values, logits) in enumerate(zip(v, gate)):
        for i, (value, logit) in enumerate(zip(values, logits)):
            a = math.exp(-constant[i] * sigmoid(logit)) if decay == "exponential" else constant[i] + (1 - constant[i]) * sigmoid(logit)
            scale = {"whole": 1.0, "complement": 1 - a, "root": math.sqrt(1 - a * a) if t > 0 else 1.0}[input_kind]
            h[i] = a * h[i] + scale * value
        rows.append(list(h))
    return rows


def diagonal(folder, name, seed, tokens, width, decay, input_kind, floor):
    rng = random.Random(seed)
    tensors = {"v": matrix(rng, tokens, width), "gate": matrix(rng, tokens, width, scale=3.0)}
    attributes = {"system": "diagonal_recurrence", "decay": decay, "input": input_kind, **heads(width)}
    constant = [0.0] * width
    if decay == "exponential":
        tensors["rate_logit"] = matrix(rng, width, scale=2.0)
        attributes["rate_scale"] = 3.0
        constant = [3.0 * softplus(x) for x in tensors["rate_logit"]]
    else:
        attributes["gate_floor"] = floor
        if floor:
            tensors["floor"] = constant = f32([rng.random() for _ in range(width)])
    rows = recurrence(decay, input_kind, constant, tensors["v"], tensors["gate"])
    save(folder, name, attributes, {**tensors, "o": rows, "state_h": rows[-1]})


def rg_lru(folder, name, seed, tokens, blocks, size):
    rng = random.Random(seed)
    width = blocks * size
    tensors = {"v": matrix(rng, tokens, width), "rate_logit": matrix(rng, width, scale=2.0)}
    for gate in "i", "g":
        tensors[f"{gate}_proj_weight"] = matrix(rng, blocks, size, size, scale=size**-0.5)
        tensors[f"{gate}_proj_bias"] = matrix(rng, width)

    def projected(gate, row):
        weight, bias = tensors[f"{gate}_proj_weight"], tensors[f"{gate}_proj_bias"]
        return [bias[b * size + j] + math.fsum(row[b * size + i] * weight[b][i][j] for i in range(size))
                for b in range(blocks) for j in range(size)]

    gated = [[value * sigmoid(x) for value, x in zip(row, projected("i", row))] for row in tensors["v"]]
    logits = [projected("g", row) for row in tensors["v"]]
    rows = recurrence("exponential", "root", [8.0 * softplus(x) for x in tensors["rate_logit"]], gated, logits)
    save(folder, name, {"system": "rg_lru", "gate_blocks": blocks, **heads(width)}, {**tensors, "o": rows, "state_h": rows[-1]})


def short_conv(folder, name, seed, tokens, width, taps, bias):
    rng = random.Random(seed)
    tensors = {part: matrix(rng, tokens, width) for part in "qkv"}
    weight = tensors["conv_weight"] = matrix(rng, width, taps, scale=taps**-0.5)
    shift = matrix(rng, width)
    if bias:
        tensors["conv_bias"] = shift
    written = [[k * v for k, v in zip(*rows)] for rows in zip(tensors["k"], tensors["v"])]
    o = []
    for t, row in enumerate(tensors["q"]):
        terms = [[weight[i][j] * written[t - taps + 1 + j][i] for j in range(taps) if t - taps + 1 + j >= 0] for i in range(width)]
        o.append([q * math.fsum([*some, shift[i] if bias else 0.0]) for i, (q, some) in enumerate(zip(row, terms))])
    attributes = {"system": "short_conv", "taps": taps, "bias": bias, **heads(width)}
    save(folder, name, attributes, {**tensors, "o": o, "state_rows": written[tokens - taps + 1 :]})


def main():
    folder = pathlib.Path(sys.argv[1])
    diagonal(folder, "recurrence.diagonal.a", 3, 21, 19, "sigmoid", "complement", False)
    diagonal(folder, "recurrence.diagonal.b", 4, 17, 37, "sigmoid", "whole", True)
    diagonal(folder, "recurrence.diagonal.c", 5, 23, 18, "exponential", "root", False)
    diagonal(folder, "recurrence.diagonal.d", 6, 19, 7, "exponential", "complement", False)
    rg_lru(folder, "recurrence.rg_lru.a", 7, 21, 3, 5)
    rg_lru(folder, "recurrence.rg_lru.b", 8, 13, 1, 18)
    short_conv(folder, "recurrence.short_conv.a", 9, 21, 19, 3, False)
    short_conv(folder, "recurrence.short_conv.b", 10, 17, 8, 5, True)


if __name__ == "__main__":
    main()
