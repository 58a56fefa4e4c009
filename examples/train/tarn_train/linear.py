"""Linear states: S <- A S + phi(k) x u, o = phi(q)^T S / den (MATH 0.1, family F1).

The chunked form of all but the delta rule is one formula. Token i has in the state at token t the weight exp(write_i - read_t),
with logarithms that a variant chooses:

    no gate          write_i = 0                      read_t = 0
    decay a_t        write_i = log b_i - c_i          read_t = -c_t         c = cumulated log a in the chunk, b_i what i writes
    running maximum  write_i = log weight of key i    read_t = the largest so far

Only the difference of the two is exponentiated, and only for i <= t: exp(-c_i) alone overflows (MATH 0.2).
"""

import math

import torch
from torch import nn

from . import features
from .attention import Attention, until
from .dense import Linear, LogitLinear

CHUNK = 64
SIGMAS = (0.5, 2.0)  # to begin with: the variance of the estimate grows with exp(sigma^2)
VECTOR_CHUNK = 16  # with a decay for each feature: [C, C, M] numbers
QK_NORM = ("normalize_qk", "norm_eps", "norm_eps_mode")
QK_VALUES = {"normalize_qk": (True, False), "norm_eps_mode": ("outside", "inside")}


def divided(numerator, sum_of_features, a, mode, eps):
    """MATH 1.2.6: the denominator phi(q) . z with its guard"""
    mode = a.get("den_mode", mode)
    eps = a.get("den_eps", eps)
    if mode == "none":
        return numerator
    s = sum_of_features.unsqueeze(-1)
    return numerator / {"add": lambda: s + eps, "clamp_min": lambda: s.clamp_min(eps),
                        "abs_clamp_min": lambda: s.abs().clamp_min(eps)}[mode]()


class LinearState(Attention):
    """Sum rule without a gate. A variant has features, and may have logarithms of weights (`control`) [B, H, T, 1 or M]."""

    reads, values = ("den_mode", "den_eps"), {"den_mode": ("none", "add", "clamp_min", "abs_clamp_min")}
    den_mode, den_eps, chunk = "none", 0.0, CHUNK

    def default_scale(self):
        return 1.0

    def features(self, q, k):
        return q, k

    def logs(self, k, control, carried):
        """write, read of a chunk; what `read` is for the state before it; what the next chunk is to know."""
        zeros = k.new_zeros(*k.shape[:3], 1)
        return zeros, zeros, zeros[:, :, :1], None

    def decay_and_write(self, k, control, carried):
        """The recurrence: S <- decay S + write phi(k) x v, decay and write [B, H, 1 or M]; what the next token is to know."""
        ones = k.new_ones(*k.shape[:2], 1)
        return ones, ones, None

    def result(self, numerator, sum_of_features):
        return self.scale * divided(numerator, sum_of_features, self.a, self.den_mode, self.den_eps)

    def attend(self, q, k, v, control):
        phi_q, phi_k = self.features(q, k)
        S, z, carried, outputs = 0.0, 0.0, None, []
        for begin in range(0, q.shape[2], self.chunk):
            part = slice(begin, begin + self.chunk)
            fq, fk, u = phi_q[:, :, part], phi_k[:, :, part], v[:, :, part]
            write, read, before, carried = self.logs(k[:, :, part], None if control is None else control[:, :, part], carried)
            scores = self.scores(fq, fk, write, read)
            numerator, total = scores @ u, scores.sum(-1)
            if begin:
                faded = fq * (before - read).exp()
                numerator, total = numerator + faded @ S, total + (faded @ z.unsqueeze(-1)).squeeze(-1)
            outputs.append(self.result(numerator, total))
            last = read[:, :, -1:]
            keep, left = (before - last).exp().transpose(-1, -2), fk * (write - last).exp()
            S = (keep * S if begin else 0.0) + left.transpose(-1, -2) @ u
            z = (keep.squeeze(-1) * z if begin else 0.0) + left.sum(-2)
        return torch.cat(outputs, 2)

    def scores(self, fq, fk, write, read):
        """[B, H, C, C]: phi(q_t) . phi(k_i), with what is left of i at t; 0 for i > t"""
        hidden = ~until(fq.shape[2], fq.device)
        if write.shape[-1] == 1:
            weights = (write.transpose(-1, -2) - read).masked_fill(hidden, -math.inf).exp()
            return (fq @ fk.transpose(-1, -2)) * weights
        weights = (write.unsqueeze(2) - read.unsqueeze(3)).masked_fill(hidden[:, :, None], -math.inf).exp()
        return torch.einsum("bhtm,bhim,bhtim->bhti", fq, fk, weights)

    def recur(self, q, k, v, control, state):
        phi_q, phi_k = self.features(q, k)
        S, z, carried = state or (0.0, 0.0, None)
        decay, write, carried = self.decay_and_write(k, control, carried)
        phi_k = write * phi_k
        S = decay.unsqueeze(-1) * S + phi_k.unsqueeze(-1) * v.unsqueeze(-2)
        z = decay * z + phi_k
        o = self.result(torch.einsum("bhm,bhmv->bhv", phi_q, S), (phi_q * z).sum(-1))
        return o, (S, z, carried)


def gated(log_decay, log_write):
    """The logarithms of LinearState for a decay [B, H, C, 1 or M] within a chunk"""
    read = -log_decay.cumsum(2)
    return log_write + read, read, torch.zeros_like(read[:, :, :1]), None


class Rfa(LinearState):
    """Random feature attention, MATH 1.2: W = sigma * random_matrix, sigma is learned, the matrix stays as it was drawn.

    With the forget gate (MATH 1.2.4) g = sigmoid(g_proj x) of a head: S <- g S + (1 - g) phi(k) x v, z alike.
    """

    needs, reads = ("feature_map", "num_features"), (*LinearState.reads, "gate", *QK_NORM)
    values = {**LinearState.values, **QK_VALUES, "feature_map": ("gaussian", "arccos"), "gate": ("none", "forget")}
    den_mode = "clamp_min"
    normalize = True

    def __init__(self, c, a):
        super().__init__(c, a)
        self.gate = a.get("gate", "none") == "forget"
        self.den_eps = 1e-3 if self.gate else 1e-2
        self.register_buffer("random_matrix", torch.randn(self.kv_heads, a["num_features"], self.d))
        self.sigma = nn.Parameter(torch.full((self.kv_heads, self.d), 1.5))
        self.map = features.arccos if a.get("feature_map") == "arccos" else features.gaussian
        if self.gate:
            self.g_proj = Linear(c["hidden_size"], self.kv_heads)
            nn.init.zeros_(self.g_proj.weight)
            self.g_proj.bias.data = torch.linspace(1, 5, self.kv_heads)

    def features(self, q, k):
        matrix = self.shared(self.sigma[:, None] * self.random_matrix, 0)
        if self.a.get("normalize_qk", self.normalize):
            eps, mode = self.a.get("norm_eps", 1e-3), self.a.get("norm_eps_mode", "outside")
            q, k = features.l2_normalized(q, eps, mode), features.l2_normalized(k, eps, mode)
        return self.map(features.projected(q, matrix)), self.map(features.projected(k, matrix))

    def inherit(self, q, k, scale):
        """The features estimate exp(sigma^2 q . k) of rows of length 1: sigma^2 is what the lengths and the scale were (MATH 1.2.2)."""
        product = scale * q.norm(dim=-1).mean((0, 2)) * k.norm(dim=-1).mean((0, 2))
        self.sigma.data.copy_(product.view(self.kv_heads, -1).mean(1).sqrt().clamp(*SIGMAS)[:, None].expand_as(self.sigma))

    def controls(self, x):
        return self.per_head(self.g_proj, x, 1) if self.gate else None

    def logs(self, k, control, carried):
        if not self.gate:
            return super().logs(k, control, carried)
        return gated(nn.functional.logsigmoid(control), nn.functional.logsigmoid(-control))

    def decay_and_write(self, k, control, carried):
        if not self.gate:
            return super().decay_and_write(k, control, carried)
        return control.sigmoid(), (-control).sigmoid(), None


class RfaNormfree(Rfa):
    """MATH 1.2.3: keys are not normalised and weigh exp(|sigma k|^2 / 2), relative to the largest so far."""

    needs, reads = ("num_features",), (*Rfa.reads, "feature_map")
    values = {**Rfa.values, "feature_map": ("gaussian",), "gate": ("none",), "normalize_qk": (False,),
              "den_mode": ("add", "clamp_min", "abs_clamp_min")}  # a running maximum cancels in a quotient alone
    normalize = False

    def inherit(self, q, k, scale):
        self.sigma.data.fill_(scale**0.5)

    def key_log(self, k):
        sigma = self.shared(self.sigma, 0)
        return (sigma[:, None] * k if k.dim() == 4 else sigma * k).square().sum(-1, keepdim=True) / 2

    def logs(self, k, control, carried):
        write = self.key_log(k)
        most = write.cummax(2).values
        if carried is None:
            return write, most, most[:, :, :1], most[:, :, -1:]
        read = torch.maximum(most, carried)
        return write, read, carried, read[:, :, -1:]

    def decay_and_write(self, k, control, carried):
        log = self.key_log(k)
        most = log if carried is None else torch.maximum(log, carried)
        decay = torch.ones_like(log) if carried is None else (carried - most).exp()
        return decay, (log - most).exp(), most


class LinearTransformer(LinearState):
    """MATH 1.3: phi = elu + 1"""

    den_mode, den_eps = "add", 1e-6

    def features(self, q, k):
        return features.elu_plus_one(q), features.elu_plus_one(k)


class Dpfp(LinearTransformer):
    """MATH 1.5"""

    needs = ("nu",)

    def features(self, q, k):
        return features.dpfp(q, self.a["nu"]), features.dpfp(k, self.a["nu"])


class T2r(LinearState):
    """MATH 1.7: phi = relu(W x + b) of k and of q_input_scale q, W and b are learned."""

    needs, reads = ("num_features",), (*LinearState.reads, "q_input_scale", *QK_NORM)
    values = {**LinearState.values, **QK_VALUES}
    den_mode, den_eps = "clamp_min", 1e-2

    def __init__(self, c, a):
        super().__init__(c, a)
        count = a["num_features"]
        self.feature_weight = nn.Parameter(torch.randn(self.kv_heads, count, self.d) * self.d**-0.5)
        self.feature_bias = nn.Parameter(torch.zeros(self.kv_heads, count))

    def features(self, q, k):
        weight, bias = self.shared(self.feature_weight, 0), self.shared(self.feature_bias, 0)
        bias = bias[:, None] if q.dim() == 4 else bias
        if self.a.get("normalize_qk", False):
            eps, mode = self.a.get("norm_eps", 1e-3), self.a.get("norm_eps_mode", "outside")
            q, k = features.l2_normalized(q, eps, mode), features.l2_normalized(k, eps, mode)
        q = q * self.a.get("q_input_scale", self.d**-0.5)
        return (features.projected(q, weight) + bias).relu(), (features.projected(k, weight) + bias).relu()


class Gla(LinearState):
    """A decay for each feature, sigmoid(g_proj x)^(1 / gate_normalizer); the features are q and k (MATH 0.1, 2.2)."""

    reads = (*LinearState.reads, "gate_normalizer", "gate_clamp_min")
    chunk = VECTOR_CHUNK

    def __init__(self, c, a):
        super().__init__(c, a)
        self.g_proj = LogitLinear(c["hidden_size"], self.kv_heads * self.d, bias=False)

    def default_scale(self):
        return self.d**-0.5

    def controls(self, x):
        log = nn.functional.logsigmoid(self.per_head(self.g_proj, x, self.d)) / self.a.get("gate_normalizer", 16)
        least = self.a.get("gate_clamp_min")
        return log if least is None else log.clamp_min(least)

    def logs(self, k, control, carried):
        return gated(control, torch.zeros_like(control))

    def decay_and_write(self, k, control, carried):
        return control.exp(), torch.ones_like(control), None


class RetNet(LinearState):
    """A constant decay of each head, 1 - 2^(-5 - h) if `decay` does not say otherwise; the features are q and k."""

    reads = (*LinearState.reads, "decay")

    def __init__(self, c, a):
        super().__init__(c, a)
        if self.kv_heads != self.heads:
            raise ValueError(f"retnet: num_kv_heads is {self.kv_heads}, expected num_heads = {self.heads}")
        decay = a.get("decay", [1 - 2.0 ** (-5 - head) for head in range(self.heads)])
        self.register_buffer("log_decay", torch.tensor(decay, dtype=torch.float64).log()[None, :, None], persistent=False)

    def default_scale(self):
        return self.d**-0.5

    def logs(self, k, control, carried):
        log = self.log_decay.to(k).unsqueeze(-1).expand(*k.shape[:3], 1)
        return gated(log, torch.zeros_like(log))

    def decay_and_write(self, k, control, carried):
        decay = self.log_decay.to(k).exp()
        return decay, torch.ones_like(decay), None


class Delta(Attention):
    """MATH 1.6: S <- g S, S += beta phi(k) x (v - S^T phi(k)), o = S^T phi(q), beta = beta_scale sigmoid(b_proj x).

    The control is [beta, log g]; g is 1 where a variant has no decay.
    """

    reads = ("beta_scale",)

    def __init__(self, c, a):
        super().__init__(c, a)
        self.b_proj = Linear(c["hidden_size"], self.kv_heads, bias=False)

    def log_decay(self, x, beta):
        return torch.zeros_like(beta)

    def controls(self, x):
        beta = self.a.get("beta_scale", 1.0) * self.per_head(self.b_proj, x, 1).sigmoid()
        return torch.cat([beta, self.log_decay(x, beta)], -1)

    def attend(self, q, k, v, control):
        """The WY form of MATH 0.2: what the tokens of a chunk write is the solution of a triangular system."""
        phi_q, phi_k = self.features(q), self.features(k)
        S, outputs = v.new_zeros(*phi_k.shape[:2], phi_k.shape[-1], v.shape[-1]), []
        for begin in range(0, q.shape[2], CHUNK):
            part = slice(begin, begin + CHUNK)
            fq, fk, beta, c = phi_q[:, :, part], phi_k[:, :, part], control[:, :, part, :1], control[:, :, part, 1:].cumsum(2)
            hidden = ~until(fq.shape[2], fq.device)
            L = (c - c.transpose(-1, -2)).masked_fill(hidden, -math.inf).exp()
            system = (beta * (fk @ fk.transpose(-1, -2)) * L).tril(-1)
            wanted = v[:, :, part] - c.exp() * (fk @ S)
            written = torch.linalg.solve_triangular(system, beta * wanted, upper=False, unitriangular=True)
            outputs.append(c.exp() * (fq @ S) + ((fq @ fk.transpose(-1, -2)) * L) @ written)
            last = c[:, :, -1:]
            S = last.exp() * S + (fk * (last - c).exp()).transpose(-1, -2) @ written
        return self.scale * torch.cat(outputs, 2)

    def recur(self, q, k, v, control, state):
        phi_q, phi_k = self.features(q), self.features(k)
        beta, decay = control[..., :1], control[..., 1:].exp()
        S = v.new_zeros(*phi_k.shape, v.shape[-1]) if state is None else decay.unsqueeze(-1) * state
        stored = torch.einsum("bhm,bhmv->bhv", phi_k, S)
        S = S + phi_k.unsqueeze(-1) * (beta * (v - stored)).unsqueeze(-2)
        return self.scale * torch.einsum("bhm,bhmv->bhv", phi_q, S), S


class DeltaRule(Delta):
    """Features are DPFP or elu + 1, divided by their sum."""

    reads, values = (*Delta.reads, "feature_map", "nu", "sum_norm_eps"), {"feature_map": ("dpfp", "elu_plus_one")}

    def __init__(self, c, a):
        self.elu = a.get("feature_map", "dpfp") == "elu_plus_one"
        self.needs = () if self.elu else ("nu",)
        super().__init__(c, a)

    def default_scale(self):
        return 1.0

    def features(self, x):
        phi = features.elu_plus_one(x) if self.elu else features.dpfp(x, self.a["nu"])
        return phi / (phi.sum(-1, keepdim=True) + self.a.get("sum_norm_eps", 1e-6))


class DeltaNet(Delta):
    """Features are q and k, each divided by its norm."""

    reads, values = (*Delta.reads, *QK_NORM), QK_VALUES

    def features(self, x):
        if not self.a.get("normalize_qk", True):
            return x
        return features.l2_normalized(x, self.a.get("norm_eps", 1e-6), self.a.get("norm_eps_mode", "inside"))


class GatedDeltaNet(DeltaNet):
    """A decay of each head before it is written, log g = -exp(A_log) softplus(g_proj x)."""

    reads, values = (*DeltaNet.reads, "gate"), {**DeltaNet.values, "gate": ("softplus",)}

    def __init__(self, c, a):
        super().__init__(c, a)
        self.g_proj = Linear(c["hidden_size"], self.kv_heads)
        self.A_log = nn.Parameter(torch.zeros(self.kv_heads))
        self.g_proj.bias.data = torch.linspace(-5, -1, self.kv_heads)  # decays from 0.99 to 0.7

    def log_decay(self, x, beta):
        return -self.shared(self.A_log.exp(), 0)[:, None, None] * nn.functional.softplus(self.per_head(self.g_proj, x, 1))


SYSTEMS = {
    "rfa": Rfa, "rfa_normfree": RfaNormfree, "linear_transformer": LinearTransformer, "dpfp": Dpfp, "t2r": T2r, "gla": Gla,
    "retnet": RetNet, "delta_rule": DeltaRule, "deltanet": DeltaNet,
    "gated_deltanet": GatedDeltaNet,
}
