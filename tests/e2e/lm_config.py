"""config.json of a model: its defaults, and the tensors that belong to it."""

DEFAULTS = dict(
    task="causal_lm", norm_position="pre", final_norm=True, embedding_norm=False, attention_bias=False, mlp_bias=False,
    lm_head_bias=False, position_embedding="none", rope_theta=10000.0, first_position=0, scale_embeddings=False,
    tie_word_embeddings=True, share_embeddings=False, lm_head_transform=False, classifier_transform=False)
ATTENTION_DEFAULTS = dict(
    rfa=dict(gate="none", normalize_qk=True, norm_eps=1e-3, norm_eps_mode="outside", den_mode="clamp_min", scale=1.0),
    abc_mlp=dict(activation="exp", normalization="renorm", logit_clamp=None, mask_empty=False, control_sharing="layer",
                 own_value_control=False, control_input="layer"),
    softmax=dict(), sliding_window=dict(), strided_window=dict(),
    linear_transformer=dict(den_eps=1e-6, scale=1.0), delta_rule=dict(beta_scale=1.0, scale=1.0), deltanet=dict(beta_scale=1.0),
    gated_deltanet=dict(beta_scale=1.0),
    rfa_normfree=dict(feature_map="gaussian", gate="none", normalize_qk=False, den_mode="clamp_min", den_eps=1e-2, scale=1.0),
    t2r=dict(den_eps=1e-2, scale=1.0), gla=dict(gate_normalizer=16.0), retnet=dict(), linformer=dict(own_value_control=False), abc_rd=dict(seed=0),
    gsa=dict(gate_normalizer=8.0, scale=1.0), luna_causal=dict(), compressive_transformer=dict(compression="mean", pad="left_zero"), memory_compressed=dict())
# The fields that hold attention objects, and those that say for how many layers.
ATTENTION_FIELDS = {"attention": "num_layers", "encoder_attention": "encoder_layers", "decoder_attention": "decoder_layers",
                    "cross_attention": "decoder_layers"}


def complete(config):
    """The config with every default filled in, and attention as lists."""
    c = {**DEFAULTS, **config}
    c.setdefault("num_kv_heads", c["num_heads"])
    c.setdefault("head_dim", c["hidden_size"] // c["num_heads"])
    c.setdefault("value_head_dim", c["head_dim"])
    c.setdefault("source_vocab_size", c["vocab_size"])
    for field, layers in ATTENTION_FIELDS.items():
        if field in c:
            c[field] = complete_attention(c, c[field] if isinstance(c[field], list) else [c[field]] * c[layers])
            assert len(c[field]) == c[layers]
    return c


def complete_attention(c, attention):
    width = {"memory_compressed": c["hidden_size"]}  # whose root divides logits
    scale = [width.get(a["system"], c["head_dim"]) ** -0.5 for a in attention]
    attention = [{"scale": s, **ATTENTION_DEFAULTS[a["system"]], **a} for s, a in zip(scale, attention)]
    for a in attention:
        if a["system"] == "rfa":
            a.setdefault("den_eps", 1e-3 if a["gate"] == "forget" else 1e-2)
    return attention


def shared_prefix(layer):
    """What stands before the name of a projection that all layers share, instead of `layer`, "model.decoder.layers.3.cross_attn."."""
    return layer.split("layers.")[0] + ("cross_" if "cross_attn" in layer else "")


def positions_of(c):
    """The kinds of positions: of one name, or of a list."""
    kinds = c["position_embedding"]
    return kinds if isinstance(kinds, list) else [kinds]


class Shapes:
    """name -> shape of tensors, as parts of a model add them."""

    def __init__(self, c):
        self.c, self.shapes = c, {}

    def linear(self, name, rows, columns, bias):
        self.shapes[name + ".weight"] = (rows, columns)
        if bias:
            self.shapes[name + ".bias"] = (rows,)

    def biased(self, part):
        some = self.c["attention_bias"]
        return part in some if isinstance(some, list) else some

    def norm(self, name):
        self.shapes[name + ".weight"] = (self.c["hidden_size"],)
        if self.c["norm"] == "layernorm":
            self.shapes[name + ".bias"] = (self.c["hidden_size"],)

    def embeddings(self, prefix, table, vocab_size):
        c = self.c
        self.shapes[table] = (vocab_size, c["hidden_size"])
        if "learned" in positions_of(c):
            self.shapes[prefix + "position_embeddings.weight"] = (c["max_positions"], c["hidden_size"])
        if c["embedding_norm"]:
            self.norm(prefix + "embedding_norm")

    def stack(self, prefix, attention, cross=()):
        c = self.c
        for i, a in enumerate(attention):
            layer = f"{prefix}layers.{i}."
            attentions = {"attn": a, "cross_attn": cross[i]} if cross else {"attn": a}
            for part in (*attentions, "mlp"):
                self.norm(f"{layer}{part}_norm")
            for part, each in attentions.items():
                self.attention(f"{layer}{part}.", each)
            for name in ("gate_proj", "up_proj") if c["hidden_act"] == "swiglu" else ("up_proj",):
                self.linear(layer + "mlp." + name, c["intermediate_size"], c["hidden_size"], c["mlp_bias"])
            self.linear(layer + "mlp.down_proj", c["hidden_size"], c["intermediate_size"], c["mlp_bias"])
        if c["final_norm"]:
            self.norm(prefix + "norm")

    def attention(self, layer, a):
        c, shapes = self.c, self.shapes
        E, H, Hkv, d, dv = (c[key] for key in ("hidden_size", "num_heads", "num_kv_heads", "head_dim", "value_head_dim"))
        for part, rows in ("q_proj", H * d), ("k_proj", Hkv * d), ("v_proj", Hkv * dv):
            self.linear(layer + part, rows, E, self.biased(part[0]))
        self.linear(layer + "o_proj", E, H * dv, self.biased("o"))
        if a["system"] in ("rfa", "rfa_normfree"):
            shapes[layer + "random_matrix"] = (Hkv, a["num_features"], d)
            shapes[layer + "sigma"] = (Hkv, d)
            if a["gate"] == "forget":
                self.linear(layer + "g_proj", Hkv, E, a.get("gate_bias", True))
        if a["system"] == "gated_deltanet":
            self.linear(layer + "g_proj", Hkv, E, a.get("gate_bias", True))
            shapes[layer + "A_log"] = (Hkv,)
        if a["system"] in ("delta_rule", "deltanet", "gated_deltanet"):
            self.linear(layer + "b_proj", Hkv, E, a.get("beta_bias", False))
        if a["system"] in ("gla", "gsa"):
            self.linear(layer + "g_proj", Hkv * (d if a["system"] == "gla" else a["num_slots"]), E, a.get("gate_bias", False))
        if a["system"] == "linformer":
            shapes[layer + "linformer_weight"] = (a["num_slots"], a["max_len"])
            if a["own_value_control"]:
                shapes[layer + "linformer_value_weight"] = (a["num_slots"], a["max_len"])
        if a["system"] == "t2r":
            shapes[layer + "feature_weight"] = (Hkv, a["num_features"], d)
            shapes[layer + "feature_bias"] = (Hkv, a["num_features"])
        if a["system"] == "luna_causal":
            self.linear(layer + "control_proj", Hkv * a["num_slots"], E, a.get("control_bias", False))
        if a["system"] == "memory_compressed":
            shapes[layer + "conv_weight"] = (Hkv * d, d, a["compression_factor"])
            shapes[layer + "conv_bias"] = (Hkv * d,)
            shapes[layer + "null_k"] = shapes[layer + "null_v"] = (Hkv, d)
        if a["system"] == "abc_mlp":
            owner = shared_prefix(layer) if a["control_sharing"] == "model" else layer
            for name, size in (("control_proj", d), ("value_control_proj", dv))[: 1 + a["own_value_control"]]:
                of_heads = a["control_input"] == "heads"
                self.linear(owner + name, *((a["num_slots"], size) if of_heads else (Hkv * a["num_slots"], E)), a.get("control_bias", False))
        if a["system"] == "compressive_transformer" and a["compression"] == "conv":
            for name, size in ("k", d), ("v", dv):
                self.linear(layer + name + "_compress_proj", a["compression_ratio"] * Hkv * size, E, False)
                shapes[layer + name + "_compress_bias"] = (Hkv * size,)

    def lm_head(self):
        c = self.c
        if c["lm_head_transform"]:
            self.linear("lm_head.dense", c["hidden_size"], c["hidden_size"], True)
            self.norm("lm_head.norm")
        if not c["tie_word_embeddings"]:
            self.shapes["lm_head.weight"] = (c["vocab_size"], c["hidden_size"])
        if c["lm_head_bias"]:
            self.shapes["lm_head.bias"] = (c["vocab_size"],)

    def classifier(self):
        c = self.c
        if c["classifier_transform"]:
            self.linear("classifier.dense", c["hidden_size"], c["hidden_size"], True)
        self.linear("classifier", c["num_labels"], c["hidden_size"], True)


def embedding_tables(c):
    """Names of the tables of source and target of a seq2seq model."""
    if c["share_embeddings"]:
        return ["model.embeddings.weight"] * 2
    return ["model.encoder.embeddings.weight", "model.decoder.embeddings.weight"]


def tensor_shapes(config):
    """name -> shape of every tensor that a checkpoint of this config has, no more and no fewer."""
    c = complete(config)
    shapes = Shapes(c)
    if c["task"] == "seq2seq":
        source_table, table = embedding_tables(c)
        shapes.embeddings("model.encoder.", source_table, c["source_vocab_size"])
        shapes.stack("model.encoder.", c["encoder_attention"])
        shapes.embeddings("model.decoder.", table, c["vocab_size"])
        shapes.stack("model.decoder.", c["decoder_attention"], c["cross_attention"])
    else:
        shapes.embeddings("model.", "model.embeddings.weight", c["vocab_size"])
        shapes.stack("model.", c["attention"])
    if c["task"] == "classification":
        shapes.classifier()
    else:
        shapes.lm_head()
    return shapes.shapes
