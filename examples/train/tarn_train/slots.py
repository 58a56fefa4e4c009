"""Slot memories, attention with bounded-memory control (ABC): K~ = sum of w_i x k_i, V~ alike, o = V~^T softmax(scale K~ q).

MATH 0.1, family F2, and MATH 1.8. The chunked form of all is one formula: at token t, token i has in a slot the weight
strength_i exp(write_i - read_t), all [B, H, T, n]:

    exp, renorm              strength 1        write s_i              read log of the sum of exp(s) so far
    relu, sigmoid, renorm    strength alpha_i  write 0                read log of the sum of alpha so far
    frozen                   strength 1 or alpha_i                    the read of token i is its write, for good
    gates (GSA)              strength 1        write log(1 - f) - c   read -c, c = cumulated log f in the chunk
    Linformer                strength W_i      write 0                read 0
    Luna                     strength p_i      write 0                read log t
"""

import math

import torch
from torch import nn

from .attention import Attention, until
from .dense import LogitLinear

CHUNK = 32  # [C, C, n] numbers
TINY = 1e-30  # in place of a sum of nothing, whose logarithm is infinite


class Slots(Attention):
    controlled_by = "control_proj"
    needs = ("num_slots",)

    def __init__(self, c, a):
        super().__init__(c, a)
        self.slots = a["num_slots"]

    def inherit(self, q, k, scale):
        """Which slots a token is written to depends on its key: random directions in the space of keys."""
        projection = getattr(self, self.controlled_by)
        if projection is not None:
            keys = self.k_proj.weight.unflatten(0, (self.kv_heads, self.d))
            directions = torch.randn(self.kv_heads, self.slots, self.d).to(keys) * self.d**-0.5
            projection.weight.data.copy_((directions @ keys).flatten(0, 1))

    def logs(self, control, carried):
        """strength, write, read of a chunk; what `read` is for the state before it; what the next chunk is to know."""
        raise NotImplementedError

    def decay_and_write(self, control, carried):
        """The recurrence: K~ <- decay K~ + write x k, each [B, H, n]; what the next token is to know."""
        raise NotImplementedError

    def attend(self, q, k, v, control):
        keys, values, carried, outputs = 0.0, 0.0, None, []
        for begin in range(0, q.shape[2], CHUNK):
            part = slice(begin, begin + CHUNK)
            cq, ck, cv = q[:, :, part], k[:, :, part], v[:, :, part]
            strength, write, read, before, carried = self.logs(control[:, :, part], carried)
            hidden = ~until(cq.shape[2], q.device)[:, :, None]
            weights = (write.unsqueeze(2) - read.unsqueeze(3)).masked_fill(hidden, -math.inf).exp() * strength.unsqueeze(2)
            logits = torch.einsum("bhti,bhtin->bhtn", cq @ ck.transpose(-1, -2), weights)
            faded = (before - read).exp()
            if begin:
                logits = logits + faded * (cq @ keys.transpose(-1, -2))
            p = (self.scale * logits).softmax(-1)
            o = torch.einsum("bhtn,bhtin->bhti", p, weights) @ cv
            outputs.append(o + (p * faded) @ values if begin else o)
            last = read[:, :, -1:]
            keep, left = (before - last).exp().transpose(-1, -2), (strength * (write - last).exp()).transpose(-1, -2)
            keys = (keep * keys if begin else 0.0) + left @ ck
            values = (keep * values if begin else 0.0) + left @ cv
        return torch.cat(outputs, 2)

    def recur(self, q, k, v, control, state):
        keys, values, carried = state or (0.0, 0.0, None)
        decay, write, carried = self.decay_and_write(control, carried)
        keys = decay.unsqueeze(-1) * keys + write.unsqueeze(-1) * k.unsqueeze(-2)
        values = decay.unsqueeze(-1) * values + write.unsqueeze(-1) * v.unsqueeze(-2)
        p = (self.scale * torch.einsum("bhnd,bhd->bhn", keys, q)).softmax(-1)
        return torch.einsum("bhn,bhnv->bhv", p, values), (keys, values, carried)


class AbcMlp(Slots):
    """MATH 1.8.1: a learned control, alpha = exp, relu or sigmoid of control_proj x.

    renorm: a slot holds the mean of what it took, by alpha. frozen: the sum, each token weighed as it was when it was written.
    """

    reads = ("activation", "normalization", "mask_empty", "control_sharing", "logit_clamp")
    values = {"activation": ("exp", "relu", "sigmoid"), "normalization": ("renorm", "frozen"), "mask_empty": (False,),
              "control_sharing": ("layer", "model")}

    def __init__(self, c, a):
        super().__init__(c, a)
        self.frozen, self.activation = a.get("normalization") == "frozen", a.get("activation", "exp")
        self.of_model = a.get("control_sharing", "layer") == "model"
        self.control_proj = None if self.of_model else self.projection(c)
        self.control = [self.control_proj]  # in a list, so that a projection of all layers is no parameter of this one

    def projection(self, c):
        return LogitLinear(c["hidden_size"], self.kv_heads * self.slots, bias=False)

    def controls(self, x):
        logits = self.per_head(self.control[0], x, self.slots)
        least, most = self.a.get("logit_clamp") or (-math.inf, math.inf)
        return logits.clamp(least, most)

    def alpha(self, control):
        return control.relu() if self.activation == "relu" else control.sigmoid()

    def logs(self, control, carried):
        if self.activation == "exp":
            strength, write, total = torch.ones_like(control), control, control.logcumsumexp(2)
            if carried is not None:
                total = torch.logaddexp(total, carried)
        else:
            strength, write = self.alpha(control), torch.zeros_like(control)
            total = strength.cumsum(2) + (0.0 if carried is None else carried.exp())
            total = total.clamp_min(TINY).log()
        last = total[:, :, -1:]
        if self.frozen:
            zeros = torch.zeros_like(total)
            return strength, write - total, zeros, zeros[:, :, :1], last
        return strength, write, total, total[:, :, :1] if carried is None else carried, last

    def decay_and_write(self, control, carried):
        if self.activation == "exp":
            carried = torch.full_like(control, -math.inf) if carried is None else carried
            write, after = (control - carried).sigmoid(), torch.logaddexp(carried, control)
        else:
            alpha = self.alpha(control)
            after = alpha if carried is None else carried + alpha
            write = alpha / after.clamp_min(TINY)
        return torch.ones_like(write) if self.frozen else 1 - write, write, after


class Gsa(Slots):
    """Gated slots, MATH 2.2: K~ <- f K~ + (1 - f) x k, f = sigmoid(g_proj x)^(1 / gate_normalizer) of each slot."""

    controlled_by = "g_proj"
    reads = ("gate_normalizer",)

    def __init__(self, c, a):
        super().__init__(c, a)
        self.g_proj = LogitLinear(c["hidden_size"], self.kv_heads * self.slots, bias=False)

    def default_scale(self):
        return 1.0

    def controls(self, x):
        return nn.functional.logsigmoid(self.per_head(self.g_proj, x, self.slots)) / self.a.get("gate_normalizer", 8)

    def logs(self, control, carried):
        read = -control.cumsum(2)
        write = (-torch.expm1(control)).clamp_min(TINY).log() + read
        return torch.ones_like(write), write, read, torch.zeros_like(read[:, :, :1]), None

    def decay_and_write(self, control, carried):
        return control.exp(), -torch.expm1(control), None


class Linformer(Slots):
    """MATH 1.8.2: K~ += W[:, t] x k. A sequence ends at max_len."""

    needs = ("num_slots", "max_len")

    def __init__(self, c, a):
        super().__init__(c, a)
        self.control_proj = None  # positions decide
        self.linformer_weight = nn.Parameter(torch.randn(self.slots, a["max_len"]) * a["max_len"] ** -0.5)

    def controls(self, x):
        if x.shape[1] > self.a["max_len"]:
            raise ValueError(f"linformer: {x.shape[1]} tokens, expected at most max_len = {self.a['max_len']}")
        return x.new_zeros(1, 1, x.shape[1], 1)  # says how many tokens there are, and nothing else

    def logs(self, control, carried):
        begin = carried or 0
        end = begin + control.shape[2]
        strength = self.linformer_weight[:, begin:end].transpose(0, 1)[None, None]
        zeros = torch.zeros_like(strength)
        return strength, zeros, zeros, zeros[:, :, :1], end

    def decay_and_write(self, control, carried):
        write = self.linformer_weight[:, carried or 0][None, None]
        return torch.ones_like(write), write, (carried or 0) + 1


class LunaCausal(Slots):
    """MATH 1.9.5: means over all tokens so far of p x k and p x v, p = log2(1 + 2^logit)."""

    def __init__(self, c, a):
        super().__init__(c, a)
        self.control_proj = LogitLinear(c["hidden_size"], self.kv_heads * self.slots, bias=False)

    def controls(self, x):
        return nn.functional.softplus(self.per_head(self.control_proj, x, self.slots), beta=math.log(2))

    def logs(self, control, carried):
        begin = carried or 0
        count = torch.arange(begin + 1, begin + control.shape[2] + 1, device=control.device)
        read = count.to(control).log()[:, None].expand_as(control)
        before = torch.full_like(read[:, :, :1], math.log(max(begin, 1)))
        return control, torch.zeros_like(control), read, before, begin + control.shape[2]

    def decay_and_write(self, control, carried):
        count = (carried or 0) + 1
        return torch.full_like(control, (count - 1) / count), control / count, count


SYSTEMS = {"abc_mlp": AbcMlp, "gsa": Gsa, "linformer": Linformer, "luna_causal": LunaCausal}
