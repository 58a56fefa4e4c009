"""Causal language models in float64, one token at a time: what `tarn` has to compute, written to be read.

From the checkpoint format and the papers alone: random feature attention (RFA, Peng et al. 2021), attention with bounded-memory
control (ABC, Peng et al. 2022), softmax attention. No stabilised recurrences, no fused layers, no tensor of more than two
dimensions: sums are formed as the equations have them, float64 has the range for it.

    model = CausalLm(config, tensors)      # the dict of config.json; name -> Tensor
    logits = model.step(token)             # list of vocab_size floats; model.reset() begins a new sequence

With int8=True dense layers and embeddings are those of an int8 model: weights rounded per output row, activations per token.
"""

import array
import math
from operator import mul

from lm_config import complete, tensor_shapes

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


def rounded_weights(row):
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

    def __init__(self, weights, name, rows=slice(None), weight_name=None):
        self.weight = weights.rounded_matrix(weight_name or name + ".weight")[rows]
        self.bias = (weights.vector(name + ".bias") or [])[rows]
        self.int8 = weights.int8

    def __call__(self, x):
        if self.int8:
            x = rounded_activations(x)
        y = [dot(row, x) for row in self.weight]
        return add(y, self.bias) if self.bias else y


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


# ---- Attention of one kv head: write(x, k, v), then read(q). x is the input of q_proj. ----------------------------------


class Rfa:
    """RFA eq. 6, with a forget gate eq. 7; features: section 3.1 (Gaussian) and 3.2 (arc-cosine)."""

    def __init__(self, c, a, weights, layer, head):
        self.a, self.dv = a, c["value_head_dim"]
        sigma = weights.matrix(layer + "sigma")[head]
        D = a["num_features"]
        rows = weights.matrix(layer + "random_matrix")[head * D : (head + 1) * D]
        self.projection = [list(map(mul, sigma, row)) for row in rows]  # eq. 8: w = sigma * w~
        self.gate = Linear(weights, layer + "g_proj", slice(head, head + 1)) if a["gate"] == "forget" else None
        self.rows = 2 * D if a["feature_map"] == "gaussian" else D
        self.reset()

    def reset(self):
        self.S, self.z = zeros(self.rows, self.dv), [0.0] * self.rows

    def features(self, x):
        a = self.a
        if a["normalize_qk"]:
            squares = dot(x, x)
            inside = a["norm_eps_mode"] == "inside"
            x = scaled(1 / (math.sqrt(squares + a["norm_eps"]) if inside else math.sqrt(squares) + a["norm_eps"]), x)
        p = [dot(w, x) for w in self.projection]
        f = [math.sin(u) for u in p] + [math.cos(u) for u in p] if a["feature_map"] == "gaussian" else [max(u, 0.0) for u in p]
        return scaled(a["num_features"] ** -0.5, f)

    def write(self, x, k, v):
        phi = self.features(k)
        if self.gate:  # S <- g S + (1 - g) phi(k) x v, z alike
            g = sigmoid(self.gate(x)[0])
            self.S, self.z, phi = [scaled(g, row) for row in self.S], scaled(g, self.z), scaled(1 - g, phi)
        add_outer(self.S, phi, v)
        self.z = add(self.z, phi)

    def read(self, q):
        phi = self.features(q)
        s, eps = dot(phi, self.z), self.a["den_eps"]
        den = {"none": 1.0, "add": s + eps, "clamp_min": max(s, eps), "abs_clamp_min": max(abs(s), eps)}[self.a["den_mode"]]
        return scaled(self.a["scale"] / den, weighted_rows(phi, self.S))


class AbcMlp:
    """ABC eqs. 3-5 with a learned control, section 4: K~ = sum of phi_i x k_i, V~ alike, o = V~^T softmax(scale K~ q).

    phi_i = alpha_i / z_i with z_i = alpha_1 + ... + alpha_i where it was written ("frozen"), or alpha_i / z_t at the token t that
    reads ("renorm").
    """

    def __init__(self, c, a, weights, layer, head):
        self.a, self.d, self.dv, n = a, c["head_dim"], c["value_head_dim"], a["num_slots"]
        owner = "model." if a["control_sharing"] == "model" else layer
        self.control = Linear(weights, owner + "control_proj", slice(head * n, (head + 1) * n))
        self.reset()

    def reset(self):
        n = self.a["num_slots"]
        self.K, self.V, self.z = zeros(n, self.d), zeros(n, self.dv), [0.0] * n

    def write(self, x, k, v):
        lo, hi = self.a["logit_clamp"] or (-math.inf, math.inf)
        activation = {"exp": math.exp, "relu": ACTIVATIONS["relu"], "sigmoid": sigmoid}[self.a["activation"]]
        alpha = [activation(min(max(logit, lo), hi)) for logit in self.control(x)]
        self.z = add(self.z, alpha)
        if self.a["normalization"] == "frozen":
            alpha = [a / z if z > 0 else 0.0 for a, z in zip(alpha, self.z)]
        add_outer(self.K, alpha, k)
        add_outer(self.V, alpha, v)

    def read(self, q):
        slots = [j for j, z in enumerate(self.z) if z > 0 or not self.a["mask_empty"]]
        if not slots:
            return [0.0] * self.dv
        renorm = self.a["normalization"] == "renorm"
        weight = [1 / self.z[j] if renorm and self.z[j] > 0 else 1.0 for j in slots]
        p = softmax([self.a["scale"] * w * dot(self.K[j], q) for j, w in zip(slots, weight)])
        return weighted_rows(list(map(mul, p, weight)), [self.V[j] for j in slots])


class Softmax:
    """RFA eq. 1 over all tokens so far"""

    def __init__(self, c, a, weights, layer, head):
        self.scale, self.max_context = a["scale"], a["max_context"]
        self.reset()

    def reset(self):
        self.K, self.V = [], []

    def write(self, x, k, v):
        assert len(self.K) < self.max_context
        self.K.append(k)
        self.V.append(v)

    def read(self, q):
        return weighted_rows(softmax([self.scale * dot(k, q) for k in self.K]), self.V)


SYSTEMS = {"rfa": Rfa, "abc_mlp": AbcMlp, "softmax": Softmax}


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

    def __init__(self, config, tensors, int8):
        found = {name: tensor.shape for name, tensor in tensors.items()}
        wanted = tensor_shapes(config)
        if found != wanted:
            raise ValueError(f"tensors that differ: {set(found.items()) ^ set(wanted.items())}")
        self.tensors, self.int8 = tensors, int8

    def vector(self, name):  # None if the model has no such tensor
        return list(self.tensors[name].values) if name in self.tensors else None

    def matrix(self, name):  # all dimensions but the last become rows
        tensor = self.tensors[name]
        return split(list(tensor.values), len(tensor.values) // tensor.shape[-1])

    def rounded_matrix(self, name):
        rows = self.matrix(name)
        return [rounded_weights(row) for row in rows] if self.int8 else rows


class CausalLm:
    def __init__(self, config, tensors, int8=False):
        self.c = c = complete(config)
        weights = Weights(config, tensors, int8)
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
