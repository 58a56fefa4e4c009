#!/usr/bin/env python3
"""Makes the golden files of the compressive transformer whose memory is compressed by a convolution, or padded by a remainder.

make_compressive.py OUT_DIR

The expected rows follow the definition: hidden rows leave the memory, are compressed as hidden rows, and are projected anew for every
segment. What tarn reads are keys, values and the projections of the taps, rounded to f32.
"""

import pathlib
import random
import sys

from golden_writer import dot, matrix, softmax, write


def product(weight, row):
    return [dot(w, row) for w in weight]


def heads_of(row, count):
    size = len(row) // count
    return [row[i * size : (i + 1) * size] for i in range(count)]


class Case:
    def __init__(self, seed, tokens, heads, kv_heads, d, dv, width, **attributes):
        rng = random.Random(seed)
        self.heads, self.kv_heads, self.a = heads, kv_heads, attributes
        self.x = matrix(rng, tokens, width)
        self.q, self.k, self.v = (matrix(rng, rows, width, scale=width ** -0.5)
                                  for rows in (heads * d, kv_heads * d, kv_heads * dv))
        ratio = attributes["compression_ratio"]
        self.taps = matrix(rng, ratio, width, width, scale=(ratio * width) ** -0.5)
        self.bias = matrix(rng, width, scale=0.5)
        self.d, self.dv, self.scale = d, dv, d ** -0.5

    def compress(self, rows):
        ratio = self.a["compression_ratio"]
        rest = len(rows) % ratio
        pad = rest if self.a["pad"] == "left_remainder" else -rest % ratio
        rows = [[0.0] * len(self.bias)] * pad + rows
        groups = [rows[i : i + ratio] for i in range(0, len(rows) - ratio + 1, ratio)]
        if self.a["compression"] == "mean":
            return [[sum(column) / ratio for column in zip(*group)] for group in groups]
        return [[b + sum(dot(tap[i], row) for tap, row in zip(self.taps, group)) for i, b in enumerate(self.bias)]
                for group in groups]

    def outputs(self):
        compressed, memory, o = [], [], []
        length = self.a["segment_len"]
        for begin in range(0, len(self.x), length):
            segment = self.x[begin : begin + length]
            for t in range(len(segment)):
                rows = compressed + memory + segment[: t + 1]
                keys = [heads_of(product(self.k, row), self.kv_heads) for row in rows]
                values = [heads_of(product(self.v, row), self.kv_heads) for row in rows]
                out = []
                for head, q in enumerate(heads_of(product(self.q, segment[t]), self.heads)):
                    h = head * self.kv_heads // self.heads
                    p = softmax([self.scale * dot(q, key[h]) for key in keys])
                    out.append([dot(p, [value[h][e] for value in values]) for e in range(self.dv)])
                o.append(out)
            rows = memory + segment
            left = max(0, len(rows) - self.a["mem_len"])
            compressed = (compressed + self.compress(rows[:left]))[-self.a["cmem_len"] :]
            memory = rows[left:]
        return o

    def inputs(self):
        """What the op reads: linear in the hidden rows."""
        inputs = {name: [heads_of(product(weight, row), count) for row in self.x]
                  for name, weight, count in (("q", self.q, self.heads), ("k", self.k, self.kv_heads), ("v", self.v, self.kv_heads))}
        if self.a["compression"] == "conv":
            for name, weight in ("k", self.k), ("v", self.v):
                inputs[name + "_compress"] = [[y for tap in self.taps for y in product(weight, product(tap, row))] for row in self.x]
                inputs[name + "_compress_bias"] = product(weight, self.bias)
        return inputs

    def write(self, folder, name):
        attributes = {"system": "compressive_transformer", **self.a, "num_heads": self.heads, "num_kv_heads": self.kv_heads,
                      "head_dim": self.d, "value_dim": self.dv}
        write(folder / (name + ".safetensors"), name, "cache", attributes, [1, 4, 9, len(self.x)],
              {**self.inputs(), "o": self.outputs()})


def main():
    folder = pathlib.Path(sys.argv[1])
    Case(1, 47, 4, 2, 6, 5, 14, segment_len=6, mem_len=8, cmem_len=3, compression_ratio=4, compression="conv",
         pad="left_zero").write(folder, "cache.compressive_conv.a")
    Case(2, 53, 3, 3, 5, 7, 11, segment_len=5, mem_len=12, cmem_len=4, compression_ratio=3, compression="conv",
         pad="left_remainder").write(folder, "cache.compressive_conv.b")
    Case(3, 41, 2, 1, 7, 4, 9, segment_len=7, mem_len=4, cmem_len=2, compression_ratio=5, compression="mean",
         pad="left_remainder").write(folder, "cache.compressive_remainder.a")


if __name__ == "__main__":
    main()
