"""The causal language model of a config.json. Names and shapes of the parameters are those of the checkpoint (docs/models.md)."""

import math

import torch
from torch import nn

from . import cache, linear, slots
from .attention import expect
from .dense import Embedding, Linear, product
from .norms import norm
from .positions import sinusoidal

SYSTEMS = {**linear.SYSTEMS, **slots.SYSTEMS, **cache.SYSTEMS}
GATED = {"swiglu": nn.functional.silu, "geglu": nn.functional.gelu}
ACTIVATIONS = {
    **GATED, "relu": nn.functional.relu, "gelu": nn.functional.gelu, "silu": nn.functional.silu,
    "gelu_tanh": lambda x: nn.functional.gelu(x, approximate="tanh"), "relu_squared": lambda x: x.relu().square(),
}
REQUIRED = ("vocab_size", "hidden_size", "num_layers", "num_heads", "intermediate_size", "hidden_act", "norm", "norm_eps",
            "tokenizer", "attention")
OPTIONAL = ("task", "num_kv_heads", "head_dim", "value_head_dim", "attention_bias", "mlp_bias", "tie_word_embeddings",
            "position_embedding", "max_positions", "rope_theta", "rope_frequencies", "scale_embeddings", "embedding_scale", "qk_norm",
            "norm_position", "parallel", "lm_head_bias", "final_norm", "first_position", "bos_token_id", "eos_token_id", "pad_token_id")
FIXED = {"task": "causal_lm", "norm_position": "pre", "parallel": False, "lm_head_bias": False, "final_norm": True,
         "first_position": 0}


def checked(c):
    """The config, or a ValueError of one line: modules are here for a part of what tarn-convert reads."""
    for name in REQUIRED:
        if name not in c:
            raise ValueError(f"config: {name} is missing")
    for name in c:
        expect(name, REQUIRED + OPTIONAL, "config: a field")
    for name, value in FIXED.items():
        expect(c.get(name, value), [value], name)
    expect(c["hidden_act"], ACTIVATIONS, "hidden_act")
    expect(c["norm"], ["rmsnorm", "layernorm"], "norm")
    expect(c.get("position_embedding", "none"), ["none", "sinusoidal", "learned", "rope"], "position_embedding")
    expect(c.get("qk_norm", "none"), ["none", "head"], "qk_norm")
    if isinstance(c["attention"], list) and len(c["attention"]) != c["num_layers"]:
        raise ValueError(f"attention has {len(c['attention'])} objects, expected num_layers = {c['num_layers']}")
    for a in attention_objects(c):
        if not isinstance(a, dict):
            raise ValueError(f"attention: {a!r} is no object")
        expect(a.get("system"), SYSTEMS, "attention: system")
        if a.get("distance_bias", "none") != "none" or a.get("distance_slopes") is not None:
            raise ValueError("attention: a bias by distance (distance_bias, distance_slopes): there is no module for it")
    return c


def attention_objects(c):
    return c["attention"] if isinstance(c["attention"], list) else [c["attention"]] * c["num_layers"]


def longest(c):
    """The most tokens that a sequence can have"""
    bounds = [a[name] for a in attention_objects(c) for name in ("max_context", "max_len") if name in a]
    return min([*bounds, *([c["max_positions"]] if c.get("position_embedding") == "learned" else [])], default=math.inf)


def check_context(c, context, name):
    """`c`: the config of the model `name`"""
    if context > longest(c):
        raise ValueError(f"context is {context}, expected at most {longest(c)}: {name} takes no longer sequences "
                         "(max_positions, max_context, max_len)")


class Mlp(nn.Module):
    """down(f(up x)), or down(f(gate x) * up x)"""

    def __init__(self, c):
        super().__init__()
        width, inner, bias = c["hidden_size"], c["intermediate_size"], c.get("mlp_bias", False)
        self.act = ACTIVATIONS[c["hidden_act"]]
        self.gate_proj = Linear(width, inner, bias=bias) if c["hidden_act"] in GATED else None
        self.up_proj, self.down_proj = Linear(width, inner, bias=bias), Linear(inner, width, bias=bias)

    def forward(self, x):
        up = self.up_proj(x)
        return self.down_proj(self.act(up) if self.gate_proj is None else self.act(self.gate_proj(x)) * up)


class Block(nn.Module):
    """x + f(norm x), for attention and for the MLP"""

    def __init__(self, c, a):
        super().__init__()
        self.attn_norm, self.attn = norm(c, c["hidden_size"]), SYSTEMS[a["system"]](c, a)
        self.mlp_norm, self.mlp = norm(c, c["hidden_size"]), Mlp(c)
        self.dropout = nn.Dropout(0.0)  # LanguageModel.drop

    def forward(self, x):
        x = x + self.dropout(self.attn(self.attn_norm(x)))
        return x + self.dropout(self.mlp(self.mlp_norm(x)))

    def step(self, x, state, position):
        o, state = self.attn.step(self.attn_norm(x), state, position)
        x = x + o
        return x + self.mlp(self.mlp_norm(x)), state


class Stack(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embeddings = Embedding(c["vocab_size"], c["hidden_size"])
        learned = c.get("position_embedding") == "learned"
        self.position_embeddings = nn.Embedding(c["max_positions"], c["hidden_size"]) if learned else None
        self.layers = nn.ModuleList(Block(c, a) for a in attention_objects(c))
        self.norm = norm(c, c["hidden_size"])
        sharing = [layer.attn for layer in self.layers if getattr(layer.attn, "of_model", False)]
        if sharing:  # ABC with one control for all layers, as in its paper
            self.control_proj = sharing[0].projection(c)
            for attn in sharing:
                attn.control = [self.control_proj]


class LanguageModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.model = checked(c), Stack(c)
        tied = c.get("tie_word_embeddings", True)
        self.lm_head = None if tied else Linear(c["hidden_size"], c["vocab_size"], bias=False)
        self.scale = c.get("embedding_scale", math.sqrt(c["hidden_size"]) if c.get("scale_embeddings", False) else 1.0)
        self.initialize()

    def initialize(self):
        """Rows of matrices of length about 1; what is added to the residual starts smaller, by the number of layers."""
        nn.init.normal_(self.model.embeddings.weight, std=self.c["hidden_size"] ** -0.5)
        if self.model.position_embeddings is not None:
            nn.init.normal_(self.model.position_embeddings.weight, std=self.c["hidden_size"] ** -0.5)
        for name, weight in self.named_parameters():
            if name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight", "up_proj.weight", "gate_proj.weight")):
                nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                nn.init.normal_(weight, std=(2 * self.c["num_layers"] * weight.shape[1]) ** -0.5)

    def drop(self, share):
        """In training, each number that a layer adds to the residual is 0 with this probability (Srivastava et al. 2014)."""
        for layer in self.model.layers:
            layer.dropout.p = share

    def embed(self, tokens, first):
        x = self.model.embeddings(tokens) * self.scale
        if self.model.position_embeddings is not None:
            return x + self.model.position_embeddings(torch.arange(first, first + tokens.shape[1], device=x.device))
        if self.c.get("position_embedding") != "sinusoidal":
            return x
        return x + sinusoidal(tokens.shape[1], x.shape[-1], x, first)

    def head(self, x):
        x = self.model.norm(x)
        return product(x, self.model.embeddings) if self.lm_head is None else self.lm_head(x)

    def forward(self, tokens):
        """tokens [B, T], each sequence from a reset -> logits [B, T, V] of the token after each; the chunked form"""
        x = self.embed(tokens, 0)
        for layer in self.model.layers:
            x = layer(x)
        return self.head(x)

    def step(self, tokens, states, position):
        """tokens [B, 1] at `position`, states of all layers or None -> logits [B, 1, V], states; the recurrent form"""
        x, after = self.embed(tokens, position), []
        for layer, state in zip(self.model.layers, states or [None] * len(self.model.layers)):
            x, state = layer.step(x, state, position)
            after.append(state)
        return self.head(x), after
