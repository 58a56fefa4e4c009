"""Causal language models in float64, one token at a time: what `tarn` has to compute, written to be read.

From the checkpoint format and the papers alone: random feature attention (RFA, Peng et al. 2021), attention with bounded-memory
control (ABC, Peng et al. 2022), softmax attention, and some relatives of each. No stabilised recurrences, no fused layers, no
tensor of more than two dimensions: sums are formed as the equations have them, float64 has the range for it.

    model = CausalLm(config, tensors)      # the dict of config.json; name -> Tensor
    logits = model.step(token)             # list of vocab_size floats; model.reset() begins a new sequence

`precision` ("f32", "f16", "int8", "int4") is that of dense layers and embeddings: weights are rounded to it, and activations of
int8 and int4 layers per token.
"""

import math

from lm_config import complete, tensor_shapes
from reference_attention import SYSTEMS
from reference_layers import Linear, Mlp, Norm, add, rounded_weights, scaled, split


def rope(x, position, theta):
    """Halves layout: (x1, x2) -> (x1 cos - x2 sin, x1 sin + x2 cos), angle of pair i = position theta^(-2i/d)."""
    half = len(x) // 2
    angles = [position * theta ** (-2 * i / len(x)) for i in range(half)]
    c, s = [math.cos(a) for a in angles], [math.sin(a) for a in angles]
    x1, x2 = x[:half], x[half:]
    return [a * p - b * q for a, b, p, q in zip(x1, x2, c, s)] + [a * q + b * p for a, b, p, q in zip(x1, x2, c, s)]


class Attention:
    def __init__(self, c, a, weights, layer):
        self.c = c
        self.q, self.k, self.v, self.o = (Linear(weights, f"{layer}{name}_proj") for name in "qkvo")
        self.heads = [SYSTEMS[a["system"]](c, a, weights, layer, h) for h in range(c["num_kv_heads"])]

    def __call__(self, x, position):
        H, Hkv = self.c["num_heads"], self.c["num_kv_heads"]
        q, k, v = split(self.q(x), H), split(self.k(x), Hkv), split(self.v(x), Hkv)
        if self.c["position_embedding"] == "rope":
            q, k = ([rope(head, position, self.c["rope_theta"]) for head in heads] for heads in (q, k))
        for head, head_k, head_v in zip(self.heads, k, v):
            head.write(x, head_k, head_v)
        return self.o([value for h in range(H) for value in self.heads[h // (H // Hkv)].read(q[h])])


# ---- The model ------------------------------------------------------------------------------------------------------


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

    def rounded_matrix(self, name):
        return [rounded_weights(row, self.precision) for row in self.matrix(name)]


class CausalLm:
    def __init__(self, config, tensors, precision="f32"):
        self.c = c = complete(config)
        weights = Weights(config, tensors, precision)
        self.embeddings = weights.rounded_matrix("model.embeddings.weight")
        if c["position_embedding"] == "learned":
            self.positions = weights.matrix("model.position_embeddings.weight")
        self.embedding_norm = Norm(c, weights, "model.embedding_norm") if c["embedding_norm"] else None
        self.blocks = []  # (norm, f)
        self.attention = []
        for i, a in enumerate(c["attention"]):
            layer = f"model.layers.{i}."
            self.attention.append(Attention(c, a, weights, layer + "attn."))
            mlp = Mlp(c, weights, layer + "mlp")
            self.blocks.append((Norm(c, weights, layer + "attn_norm"), self.attention[-1]))
            self.blocks.append((Norm(c, weights, layer + "mlp_norm"), lambda x, position, mlp=mlp: mlp(x)))
        self.norm = Norm(c, weights, "model.norm") if c["final_norm"] else None
        self.head = Linear(weights, "lm_head", weight_name="model.embeddings.weight" if c["tie_word_embeddings"] else None)
        self.reset()

    def reset(self):
        self.position = self.c["first_position"]
        for attention in self.attention:
            for head in attention.heads:
                head.reset()

    def embed(self, token):
        E, p = self.c["hidden_size"], self.position
        x = self.embeddings[token]
        if self.c["scale_embeddings"]:
            x = scaled(math.sqrt(E), x)
        if self.c["position_embedding"] == "learned":
            x = add(x, self.positions[p])
        if self.c["position_embedding"] == "sinusoidal":  # all sines, then all cosines
            angles = [p * math.exp(-i * math.log(10000) / (E / 2 - 1)) for i in range(E // 2)]
            x = add(x, [math.sin(a) for a in angles] + [math.cos(a) for a in angles])
        return self.embedding_norm(x) if self.embedding_norm else x

    def step(self, token):
        """The logits after one more token."""
        x = self.embed(token)
        for norm, f in self.blocks:
            x = add(x, f(norm(x), self.position)) if self.c["norm_position"] == "pre" else norm(add(x, f(x, self.position)))
        if self.norm:
            x = self.norm(x)
        self.position += 1
        return self.head(x)
