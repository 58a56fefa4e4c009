"""Vectors and layers of reference_lm.py: dense layers as models of every precision have them, norms, MLPs."""

import array
import math
import struct
from operator import mul

# ---- Vectors are lists, matrices lists of rows ----------------------------------------------------------------------


def dot(x, y):
    return sum(map(mul, x, y))


def add(x, y):
    return [a + b for a, b in zip(x, y)]


def scaled(factor, x):
    return [factor * a for a in x]


def add_outer(matrix, column, row):
    """matrix += column x row"""
    for i, factor in enumerate(column):
        if factor:
            matrix[i] = [m + factor * r for m, r in zip(matrix[i], row)]


def weighted_rows(weights, matrix):
    """weights^T matrix"""
    return [dot(weights, column) for column in zip(*matrix)]


def zeros(rows, columns):
    return [[0.0] * columns for _ in range(rows)]


def split(x, parts):
    size = len(x) // parts
    return [x[i * size : (i + 1) * size] for i in range(parts)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    total = sum(weights)
    return [w / total for w in weights]


# ---- Layers ---------------------------------------------------------------------------------------------------------


BLOCK = 32  # of int4


def rounded_weights(row, precision):
    """As a model of that precision has them, back as numbers. int4 needs whole blocks: other rows become int8."""
    if precision == "f16":
        return list(struct.unpack(f"<{len(row)}e", struct.pack(f"<{len(row)}e", *row)))
    if precision == "int4" and len(row) % BLOCK == 0:
        return [w for i in range(0, len(row), BLOCK) for w in rounded_block(row[i : i + BLOCK])]
    return rounded_row(row) if precision != "f32" else row


def rounded_block(block):
    """int4 with the bf16 scale next to max / 7. The converter looks for a better one, and has none to find once a block went
    through here: numbers that are on this grid have to stay what they are."""
    (bits,) = struct.unpack("<I", struct.pack("<f", max(map(abs, block)) / 7))
    (scale,) = struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16))
    return [scale * max(-8, min(7, round(w / scale))) for w in block] if scale else block


def rounded_row(row):
    """Symmetric int8, one scale for the row, in the float32 of the converter (its ties decide), back as numbers."""

    def f32(x):
        return array.array("f", [x])[0]

    largest = max(map(abs, row))
    scale = f32(largest / 127) if largest else 1.0
    return [scale * max(-127, min(127, round(f32(w / scale)))) for w in row]


def rounded_activations(x):
    """Asymmetric int8, one scale and one zero point for the token; 0 stays 0."""
    lo, hi = min(0.0, *x), max(0.0, *x)
    if lo == hi:
        return x
    scale = (hi - lo) / 255
    zero = max(-128, min(127, round(-128 - lo / scale)))
    return [scale * (max(-128, min(127, round(a / scale) + zero)) - zero) for a in x]


class Linear:
    """y = x W^T + b, W [out, in]; of a part of the rows if `rows` says so."""

    def __init__(self, weights, name, rows=slice(None), weight_name=None, precision=None):
        self.weight = weights.rounded_matrix(weight_name or name + ".weight", precision)[rows]
        self.bias = (weights.vector(name + ".bias") or [])[rows]
        self.rounds = weights.precision in ("int8", "int4")

    def __call__(self, x):
        if self.rounds:
            x = rounded_activations(x)
        y = [dot(row, x) for row in self.weight]
        return add(y, self.bias) if self.bias else y


class LogitLinear(Linear):
    """The logits of a gate or of a control, in a dense layer of their own: not below int8."""

    def __init__(self, weights, name, rows=slice(None)):
        super().__init__(weights, name, rows, precision="int8" if weights.precision == "int4" else None)


class Norm:
    def __init__(self, c, weights, name):
        self.kind, self.eps = c["norm"], c["norm_eps"]
        self.weight, self.bias = weights.vector(name + ".weight"), weights.vector(name + ".bias")

    def __call__(self, x):
        if self.kind == "rmsnorm":  # x rsqrt(mean(x^2) + eps) w
            factor = 1 / math.sqrt(dot(x, x) / len(x) + self.eps)
            return [a * factor * w for a, w in zip(x, self.weight)]
        mean = sum(x) / len(x)  # layernorm: biased variance, eps inside the root
        centred = [a - mean for a in x]
        factor = 1 / math.sqrt(dot(centred, centred) / len(x) + self.eps)
        return [a * factor * w + b for a, w, b in zip(centred, self.weight, self.bias)]


ACTIVATIONS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


class Mlp:
    """down(silu(gate x) * up x), or down(f(up x))"""

    def __init__(self, c, weights, name):
        self.act = c["hidden_act"]
        self.up, self.down = Linear(weights, name + ".up_proj"), Linear(weights, name + ".down_proj")
        self.gate = Linear(weights, name + ".gate_proj") if self.act == "swiglu" else None

    def __call__(self, x):
        if self.gate:
            return self.down([g * sigmoid(g) * u for g, u in zip(self.gate(x), self.up(x))])
        return self.down([ACTIVATIONS[self.act](u) for u in self.up(x)])
