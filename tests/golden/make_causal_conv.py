#!/usr/bin/env python3
"""Makes conv.causal_conv.a and .b: the causal convolution of columns, with bias and silu, and with neither. make_causal_conv.py OUT_DIR"""

import math
import pathlib
import random
import sys

from golden_writer import matrix, write


def make(folder, name, seed, tokens, width, taps, bias, silu):
    rng = random.Random(seed)
    x, weight, shift = matrix(rng, tokens, width), matrix(rng, width, taps, scale=taps**-0.5), matrix(rng, width)
    o = []
    for t in range(tokens):
        row = []
        for column in range(width):
            # y_t = sum_j w_j x_(t - taps + 1 + j)
            terms = [weight[column][j] * x[t - taps + 1 + j][column] for j in range(taps) if t - taps + 1 + j >= 0]
            y = math.fsum([*terms, shift[column] if bias else 0.0])
            row.append(y / (1 + math.exp(-y)) if silu else y)
        o.append(row)
    tensors = {"x": x, "conv_weight": weight, "o": o, "state_rows": x[tokens - taps + 1 :]}
    if bias:
        tensors["conv_bias"] = shift
    attributes = {"system": "causal_conv", "taps": taps, "bias": bias, "silu": silu}
    write(folder / f"{name}.safetensors", name, "conv", attributes, [1, 2, 5, tokens], tensors)


def main():
    folder = pathlib.Path(sys.argv[1])
    make(folder, "conv.causal_conv.a", 3, 21, 19, 4, True, True)
    make(folder, "conv.causal_conv.b", 4, 17, 37, 8, False, False)


if __name__ == "__main__":
    main()
