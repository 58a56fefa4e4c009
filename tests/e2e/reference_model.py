"""Parts of reference_lm.py and reference_encoder.py: weights, embeddings with positions, attention with its projections, blocks."""

import math

from lm_config import positions_of, tensor_shapes
from reference_attention import SYSTEMS
from reference_layers import ACTIVATIONS, Linear, Mlp, Norm, add, rounded_weights, scaled, split
from reference_memories import MEMORIES


def rope(x, position, theta):
    """Halves layout: (x1, x2) -> (x1 cos - x2 sin, x1 sin + x2 cos), angle of pair i = position theta^(-2i/d)."""
    half = len(x) // 2
    angles = [position * theta ** (-2 * i / len(x)) for i in range(half)]
    c, s = [math.cos(a) for a in angles], [math.sin(a) for a in angles]
    x1, x2 = x[:half], x[half:]
    return [a * p - b * q for a, b, p, q in zip(x1, x2, c, s)] + [a * q + b * p for a, b, p, q in zip(x1, x2, c, s)]


class Attention:
    """`layer` stands before the names of its tensors: "model.layers.0.attn."."""

    def __init__(self, c, a, weights, layer):
        self.c, self.rotates = c, "rope" in positions_of(c)
        self.q, self.k, self.v, self.o = (Linear(weights, f"{layer}{name}_proj") for name in "qkvo")
        self.heads = [{**SYSTEMS, **MEMORIES}[a["system"]](c, a, weights, layer, h) for h in range(c["num_kv_heads"])]

    def reset(self):
        for head in self.heads:
            head.reset()

    def rotated(self, heads, position):
        return [rope(head, position, self.c["rope_theta"]) for head in heads] if self.rotates else heads

    def write(self, x, position):
        Hkv = self.c["num_kv_heads"]
        k, v = self.rotated(split(self.k(x), Hkv), position), split(self.v(x), Hkv)
        for head, head_k, head_v in zip(self.heads, k, v):
            head.write(x, head_k, head_v)

    def read(self, x, position):
        H = self.c["num_heads"]
        q = self.rotated(split(self.q(x), H), position)
        return self.o([value for h in range(H) for value in self.heads[h // (H // len(self.heads))].read(q[h])])

    def __call__(self, x, position):
        self.write(x, position)
        return self.read(x, position)


class Weights:
    """Hands out the tensors of a checkpoint: all of them have to be there, and no others."""

    def __init__(self, config, tensors, precision):
        found = {name: tensor.shape for name, tensor in tensors.items()}
        wanted = tensor_shapes(config)
        if found != wanted:
            raise ValueError(f"tensors that differ: {set(found.items()) ^ set(wanted.items())}")
        self.tensors, self.precision = tensors, precision

    def vector(self, name):  # None if the model has no such tensor
        return list(self.tensors[name].values) if name in self.tensors else None

    def matrix(self, name):  # all dimensions but the last become rows
        tensor = self.tensors[name]
        return split(list(tensor.values), len(tensor.values) // tensor.shape[-1])

    def rounded_matrix(self, name, precision=None):  # None: that of the model
        return [rounded_weights(row, precision or self.precision) for row in self.matrix(name)]


class Embedder:
    """(token, position) -> row. `prefix`: "model.", or that of a stack."""

    def __init__(self, c, weights, prefix, table):
        self.c = c
        self.embeddings = weights.rounded_matrix(table)
        if "learned" in positions_of(c):
            self.positions = weights.matrix(prefix + "position_embeddings.weight")
        self.norm = Norm(c, weights, prefix + "embedding_norm") if c["embedding_norm"] else None

    def __call__(self, token, p):
        E, x = self.c["hidden_size"], self.embeddings[token]
        if self.c["scale_embeddings"]:
            x = scaled(math.sqrt(E), x)
        if "learned" in positions_of(self.c):
            x = add(x, self.positions[p])
        if "sinusoidal" in positions_of(self.c):  # all sines, then all cosines
            angles = [p * math.exp(-i * math.log(10000) / (E / 2 - 1)) for i in range(E // 2)]
            x = add(x, [math.sin(a) for a in angles] + [math.cos(a) for a in angles])
        return self.norm(x) if self.norm else x


class Block:
    """x + f(norm x), or norm(x + f x); `name`: "model.layers.0.attn"."""

    def __init__(self, c, weights, name):
        self.pre, self.norm = c["norm_position"] == "pre", Norm(c, weights, name + "_norm")

    def inner(self, x):
        """What f is given."""
        return self.norm(x) if self.pre else x

    def outer(self, x, fx):
        return add(x, fx) if self.pre else self.norm(add(x, fx))

    def __call__(self, x, f):
        return self.outer(x, f(self.inner(x)))


class Layer:
    """The parts of a layer, each with its block."""

    def __init__(self, c, weights, name, attention, cross=None):
        self.attention = Attention(c, attention, weights, name + "attn.")
        self.attention_block = Block(c, weights, name + "attn")
        self.mlp, self.mlp_block = Mlp(c, weights, name + "mlp"), Block(c, weights, name + "mlp")
        if cross:
            self.cross, self.cross_block = Attention(c, cross, weights, name + "cross_attn."), Block(c, weights, name + "cross_attn")
            self.cross.rotates = False  # source and target have no distance


class Head:
    """Logits of a row that has its final norm; a tied head has the weights of `table`."""

    def __init__(self, c, weights, table):
        self.transform = None
        if c["lm_head_transform"]:
            self.transform, self.norm = Linear(weights, "lm_head.dense"), Norm(c, weights, "lm_head.norm")
        self.head = Linear(weights, "lm_head", weight_name=table if c["tie_word_embeddings"] else None)

    def __call__(self, x):
        if self.transform:
            x = self.norm([ACTIVATIONS["gelu"](u) for u in self.transform(x)])
        return self.head(x)
