"""Attention systems of reference_lm.py, each as its equations have it.

A class is one kv head: write(x, k, v), then read(q). x is the input of q_proj.
"""

import math
from functools import partial
from operator import mul

from lm_config import shared_prefix
from reference_layers import ACTIVATIONS, Linear, LogitLinear, add, add_outer, dot, scaled, sigmoid, softmax, weighted_rows, zeros


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
    reads ("renorm"). V~ may have logits of its own, and logits may be those of k and v.
    """

    def __init__(self, c, a, weights, layer, head):
        self.a, self.d, self.dv, n = a, c["head_dim"], c["value_head_dim"], a["num_slots"]
        owner = shared_prefix(layer) if a["control_sharing"] == "model" else layer
        names = [owner + name for name in ("control_proj", "value_control_proj")[: 1 + a["own_value_control"]]]
        if a["control_input"] == "layer":
            self.controls = [LogitLinear(weights, name, slice(head * n, (head + 1) * n)) for name in names]
        else:  # matrices that stay f32
            self.controls = [partial(lambda W, x: [dot(w, x) for w in W], weights.matrix(name + ".weight")) for name in names]
        self.reset()

    def reset(self):
        n = self.a["num_slots"]
        self.K, self.V, self.z = zeros(n, self.d), zeros(n, self.dv), zeros(len(self.controls), n)

    def write(self, x, k, v):
        lo, hi = self.a["logit_clamp"] or (-math.inf, math.inf)
        activation = {"exp": math.exp, "relu": ACTIVATIONS["relu"], "sigmoid": sigmoid}[self.a["activation"]]
        sources = (k, v) if self.a["control_input"] == "heads" else (x, x)
        alpha = [[activation(min(max(logit, lo), hi)) for logit in control(row)] for control, row in zip(self.controls, sources)]
        self.z = list(map(add, self.z, alpha))
        if self.a["normalization"] == "frozen":
            alpha = [[a / z if z > 0 else 0.0 for a, z in zip(*pair)] for pair in zip(alpha, self.z)]
        add_outer(self.K, alpha[0], k)
        add_outer(self.V, alpha[-1], v)

    def read(self, q):
        slots = [j for j, z in enumerate(self.z[0]) if z > 0 or not self.a["mask_empty"]]
        if not slots:
            return [0.0] * self.dv
        renorm = self.a["normalization"] == "renorm"
        weights = [[1 / z[j] if renorm and z[j] > 0 else 1.0 for j in slots] for z in self.z]
        p = softmax([self.a["scale"] * w * dot(self.K[j], q) for j, w in zip(slots, weights[0])])
        return weighted_rows(list(map(mul, p, weights[-1])), [self.V[j] for j in slots])


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


class Window(Softmax):
    """The last tokens; with a stride also the last of every stride-th token before them."""

    def __init__(self, c, a, weights, layer, head):
        super().__init__(c, {"max_context": math.inf, **a}, weights, layer, head)
        self.a = a

    def read(self, q):
        now, a = len(self.K), self.a
        strided = range(a["stride"] - 1, now, a["stride"])[-a["num_strided"] :] if "stride" in a else ()
        rows = sorted({*range(max(0, now - a["window"]), now), *strided})
        p = softmax([self.scale * dot(self.K[i], q) for i in rows])
        return weighted_rows(p, [self.V[i] for i in rows])


class LinearTransformer:
    """o = sum of s_i v_i / (sum of s_i + eps), s_i = phi(q) . phi(k_i), phi = elu + 1."""

    def __init__(self, c, a, weights, layer, head):
        self.a = a
        self.reset()

    def reset(self):
        self.phi, self.V = [], []

    def features(self, x):
        return [u + 1 if u > 0 else math.exp(u) for u in x]

    def write(self, x, k, v):
        self.phi.append(self.features(k))
        self.V.append(v)

    def read(self, q):
        s = [dot(self.features(q), phi) for phi in self.phi]
        return scaled(self.a["scale"] / (sum(s) + self.a["den_eps"]), weighted_rows(s, self.V))


class Delta:
    """S += beta phi(k) x (v - S^T phi(k)): DPFP features divided by their sum (delta_rule), or k / |k| (deltanet)."""

    def __init__(self, c, a, weights, layer, head):
        self.a, self.dv, self.rows = a, c["value_head_dim"], c["head_dim"] * 2 * a.get("nu", 0.5)
        self.beta = Linear(weights, layer + "b_proj", slice(head, head + 1))
        self.reset()

    def reset(self):
        self.S = zeros(int(self.rows), self.dv)

    def features(self, x):
        if self.a["system"] == "deltanet":
            return scaled(1 / math.sqrt(dot(x, x) + 1e-6), x)
        r = [max(u, 0.0) for u in x] + [max(-u, 0.0) for u in x]
        f = [r[i] * r[(i + j) % len(r)] for j in range(1, self.a["nu"] + 1) for i in range(len(r))]
        return scaled(1 / (sum(f) + 1e-6), f)

    def write(self, x, k, v):
        phi, beta = self.features(k), self.a["beta_scale"] * sigmoid(self.beta(x)[0])
        add_outer(self.S, phi, [beta * (new - old) for new, old in zip(v, weighted_rows(phi, self.S))])

    def read(self, q):
        return scaled(self.a["scale"], weighted_rows(self.features(q), self.S))


class GatedDelta(Delta):
    """The same with k / |k|, and before every write S <- exp(-exp(A_log) softplus(gate)) S."""

    def __init__(self, c, a, weights, layer, head):
        super().__init__(c, a, weights, layer, head)
        self.gate = Linear(weights, layer + "g_proj", slice(head, head + 1))
        self.rate = math.exp(weights.vector(layer + "A_log")[head])

    def features(self, x):
        return scaled(1 / math.sqrt(dot(x, x) + 1e-6), x)

    def write(self, x, k, v):
        decay = math.exp(-self.rate * math.log1p(math.exp(self.gate(x)[0])))
        self.S = [scaled(decay, row) for row in self.S]
        super().write(x, k, v)


class T2r(LinearTransformer):
    """phi = relu(W x + b) of k and of d^-1/2 q."""

    def __init__(self, c, a, weights, layer, head):
        super().__init__(c, a, weights, layer, head)
        M, self.q_scale = a["num_features"], c["head_dim"] ** -0.5
        self.W = weights.matrix(layer + "feature_weight")[head * M : (head + 1) * M]
        self.b = weights.matrix(layer + "feature_bias")[head]

    def features(self, x):
        return [max(dot(w, x) + b, 0.0) for w, b in zip(self.W, self.b)]

    def read(self, q):
        s = [dot(self.features(scaled(self.q_scale, q)), phi) for phi in self.phi]
        return scaled(self.a["scale"] / max(sum(s), self.a["den_eps"]), weighted_rows(s, self.V))


class RfaNormfree(Rfa):
    """RFA eq. 12: keys weigh exp(|sigma k|^2 / 2), here relative to the largest so far."""

    def __init__(self, c, a, weights, layer, head):
        self.sigma = weights.matrix(layer + "sigma")[head]
        super().__init__(c, a, weights, layer, head)

    def reset(self):
        super().reset()
        self.most = -math.inf

    def write(self, x, k, v):
        sk = list(map(mul, self.sigma, k))
        most, weight = self.most, dot(sk, sk) / 2
        self.most = max(most, weight)
        keep, phi = math.exp(most - self.most), scaled(math.exp(weight - self.most), self.features(k))
        self.S, self.z = [scaled(keep, row) for row in self.S], add(scaled(keep, self.z), phi)
        add_outer(self.S, phi, v)


class Gla:
    """S <- diag(a) S + k x v with a = sigmoid(gate)^(1/normalizer), o = scale S^T q."""

    def __init__(self, c, a, weights, layer, head):
        self.a, self.d, self.dv = a, c["head_dim"], c["value_head_dim"]
        self.prepare(weights, layer, head)
        self.reset()

    def prepare(self, weights, layer, head):
        self.gate = LogitLinear(weights, layer + "g_proj", slice(head * self.d, (head + 1) * self.d))

    def decay(self, x):
        return [sigmoid(g) ** (1 / self.a["gate_normalizer"]) for g in self.gate(x)]

    def reset(self):
        self.S = zeros(self.d, self.dv)

    def write(self, x, k, v):
        self.S = [scaled(f, row) for f, row in zip(self.decay(x), self.S)]
        add_outer(self.S, k, v)

    def read(self, q):
        return scaled(self.a["scale"], weighted_rows(q, self.S))


class RetNet(Gla):
    """All rows of head h decay by 1 - 2^(-5-h)."""

    def prepare(self, weights, layer, head):
        self.gamma = 1 - 2.0 ** (-5 - head)

    def decay(self, x):
        return [self.gamma] * self.d


class Slots:
    """o = V~^T softmax(scale K~ q) with K~ <- decay K~ + write x k, V~ alike: a system says decay and write of each slot."""

    def __init__(self, c, a, weights, layer, head):
        self.a, self.n, self.head, self.layer = a, a["num_slots"], head, int(layer.split("layers.")[1].split(".")[0])
        self.d, self.dv = c["head_dim"], c["value_head_dim"]
        self.rows = slice(head * self.n, (head + 1) * self.n)
        self.prepare(weights, layer)
        self.reset()

    def prepare(self, weights, layer):
        pass

    def reset(self):
        self.K, self.V, self.t = zeros(self.n, self.d), zeros(self.n, self.dv), 0

    def write(self, x, k, v):
        decay, *writes = self.control(x)
        self.K, self.V = ([scaled(f, row) for f, row in zip(decay, rows)] for rows in (self.K, self.V))
        add_outer(self.K, writes[0], k)
        add_outer(self.V, writes[-1], v)
        self.t += 1

    def read(self, q):
        return weighted_rows(softmax([self.a["scale"] * dot(row, q) for row in self.K]), self.V)


class Linformer(Slots):
    def prepare(self, weights, layer):
        names = ("linformer_weight", "linformer_value_weight")[: 1 + self.a["own_value_control"]]
        self.W = [weights.matrix(layer + name) for name in names]

    def control(self, x):
        return [1.0] * self.n, *([row[self.t] for row in W] for W in self.W)


class AbcRd(Slots):
    """(splitmix64(seed ^ layer << 48 ^ head << 32 ^ t) >> 11) mod n is the slot of token t."""

    def control(self, x):
        mask = (1 << 64) - 1
        z = ((self.a["seed"] ^ self.layer << 48 ^ self.head << 32 ^ self.t) + 0x9E3779B97F4A7C15) & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        slot = ((z ^ z >> 31) >> 11) % self.n
        return [1.0] * self.n, [float(j == slot) for j in range(self.n)]


class Gsa(Slots):
    """Decay f = sigmoid(gate)^(1/normalizer), write 1 - f."""

    def prepare(self, weights, layer):
        self.gate = LogitLinear(weights, layer + "g_proj", self.rows)

    def control(self, x):
        decay = [sigmoid(g) ** (1 / self.a["gate_normalizer"]) for g in self.gate(x)]
        return decay, [1 - f for f in decay]


class LunaCausal(Slots):
    """Means over all tokens of p x k and p x v, p = log2(1 + 2^logit)."""

    def prepare(self, weights, layer):
        self.logits = LogitLinear(weights, layer + "control_proj", self.rows)

    def control(self, x):
        p, t = [math.log2(1 + 2**logit) for logit in self.logits(x)], self.t
        return [t / (t + 1)] * self.n, scaled(1 / (t + 1), p)


SYSTEMS = {
    "rfa": Rfa, "rfa_normfree": RfaNormfree, "linear_transformer": LinearTransformer, "t2r": T2r, "delta_rule": Delta,
    "deltanet": Delta, "gated_deltanet": GatedDelta, "gla": Gla, "retnet": RetNet,
    "abc_mlp": AbcMlp, "linformer": Linformer, "abc_rd": AbcRd, "gsa": Gsa, "luna_causal": LunaCausal,
    "softmax": Softmax, "sliding_window": Window, "strided_window": Window,
}
