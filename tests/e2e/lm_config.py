"""config.json of a causal language model: its defaults, and the tensors that belong to it."""

DEFAULTS = dict(
    task="causal_lm", norm_position="pre", final_norm=True, embedding_norm=False, attention_bias=False, mlp_bias=False,
    lm_head_bias=False, position_embedding="none", rope_theta=10000.0, first_position=0, scale_embeddings=False,
    tie_word_embeddings=True)
ATTENTION_DEFAULTS = dict(
    rfa=dict(gate="none", normalize_qk=True, norm_eps=1e-3, norm_eps_mode="outside", den_mode="clamp_min", scale=1.0),
    abc_mlp=dict(activation="exp", normalization="renorm", logit_clamp=None, mask_empty=False, control_sharing="layer"),
    softmax=dict(), sliding_window=dict(), strided_window=dict(),
    linear_transformer=dict(den_eps=1e-6, scale=1.0), delta_rule=dict(beta_scale=1.0, scale=1.0), deltanet=dict(beta_scale=1.0),
    rfa_normfree=dict(feature_map="gaussian", gate="none", normalize_qk=False, den_mode="clamp_min", den_eps=1e-2, scale=1.0),
    t2r=dict(den_eps=1e-2, scale=1.0), gla=dict(gate_normalizer=16.0), retnet=dict(), linformer=dict(), abc_rd=dict(seed=0),
    gsa=dict(gate_normalizer=8.0, scale=1.0), luna_causal=dict(), compressive_transformer=dict(), memory_compressed=dict())


def complete(config):
    """The config with every default filled in, and `attention` as a list."""
    c = {**DEFAULTS, **config}
    c.setdefault("num_kv_heads", c["num_heads"])
    c.setdefault("head_dim", c["hidden_size"] // c["num_heads"])
    c.setdefault("value_head_dim", c["head_dim"])
    attention = c["attention"] if isinstance(c["attention"], list) else [c["attention"]] * c["num_layers"]
    assert len(attention) == c["num_layers"]
    width = {"memory_compressed": c["hidden_size"]}  # whose root divides logits
    scale = [width.get(a["system"], c["head_dim"]) ** -0.5 for a in attention]
    c["attention"] = [{"scale": s, **ATTENTION_DEFAULTS[a["system"]], **a} for s, a in zip(scale, attention)]
    for a in c["attention"]:
        if a["system"] == "rfa":
            a.setdefault("den_eps", 1e-3 if a["gate"] == "forget" else 1e-2)
    return c


def tensor_shapes(config):
    """name -> shape of every tensor that a checkpoint of this config has, no more and no fewer."""
    c = complete(config)
    E, V, inner = c["hidden_size"], c["vocab_size"], c["intermediate_size"]
    H, Hkv, d, dv = c["num_heads"], c["num_kv_heads"], c["head_dim"], c["value_head_dim"]
    shapes = {}

    def linear(name, rows, columns, bias):
        shapes[name + ".weight"] = (rows, columns)
        if bias:
            shapes[name + ".bias"] = (rows,)

    def norm(name):
        shapes[name + ".weight"] = (E,)
        if c["norm"] == "layernorm":
            shapes[name + ".bias"] = (E,)

    shapes["model.embeddings.weight"] = (V, E)
    if c["position_embedding"] == "learned":
        shapes["model.position_embeddings.weight"] = (c["max_positions"], E)
    if c["embedding_norm"]:
        norm("model.embedding_norm")
    for i, a in enumerate(c["attention"]):
        layer = f"model.layers.{i}."
        norm(layer + "attn_norm")
        norm(layer + "mlp_norm")
        for name, rows in ("q_proj", H * d), ("k_proj", Hkv * d), ("v_proj", Hkv * dv):
            linear(layer + "attn." + name, rows, E, c["attention_bias"])
        linear(layer + "attn.o_proj", E, H * dv, c["attention_bias"])
        if a["system"] in ("rfa", "rfa_normfree"):
            shapes[layer + "attn.random_matrix"] = (Hkv, a["num_features"], d)
            shapes[layer + "attn.sigma"] = (Hkv, d)
            if a["gate"] == "forget":
                linear(layer + "attn.g_proj", Hkv, E, True)
        if a["system"] in ("delta_rule", "deltanet"):
            linear(layer + "attn.b_proj", Hkv, E, False)
        if a["system"] in ("gla", "gsa"):
            linear(layer + "attn.g_proj", Hkv * (d if a["system"] == "gla" else a["num_slots"]), E, False)
        if a["system"] == "linformer":
            shapes[layer + "attn.linformer_weight"] = (a["num_slots"], a["max_len"])
        if a["system"] == "t2r":
            shapes[layer + "attn.feature_weight"] = (Hkv, a["num_features"], d)
            shapes[layer + "attn.feature_bias"] = (Hkv, a["num_features"])
        if a["system"] == "luna_causal":
            linear(layer + "attn.control_proj", Hkv * a["num_slots"], E, False)
        if a["system"] == "memory_compressed":
            shapes[layer + "attn.conv_weight"] = (Hkv * d, d, a["compression_factor"])
            shapes[layer + "attn.conv_bias"] = (Hkv * d,)
            shapes[layer + "attn.null_k"] = shapes[layer + "attn.null_v"] = (Hkv, d)
        if a["system"] == "abc_mlp":
            owner = "model." if a["control_sharing"] == "model" else layer + "attn."
            linear(owner + "control_proj", Hkv * a["num_slots"], E, False)
        for name in ("gate_proj", "up_proj") if c["hidden_act"] == "swiglu" else ("up_proj",):
            linear(layer + "mlp." + name, inner, E, c["mlp_bias"])
        linear(layer + "mlp.down_proj", E, inner, c["mlp_bias"])
    if c["final_norm"]:
        norm("model.norm")
    if not c["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (V, E)
    if c["lm_head_bias"]:
        shapes["lm_head.bias"] = (V,)
    return shapes
