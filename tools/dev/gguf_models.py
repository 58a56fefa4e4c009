"""What llama.cpp wants of a model of one of our configs: metadata, and names and shapes of tensors, for write_gguf.py.

An architecture is one function. It returns llama.cpp's name of the architecture, its metadata without the name as prefix, and its
tensors: name and shape, inputs first. Names and shapes are those that llama.cpp asks for when it loads a model.
"""

BLOCK = 32  # elements that share a scale
CONTEXT = 1 << 20


def in_terms_of_llama(config):
    """One of our own configs. Its feed-forward layers have two matrices, llama's have three: two thirds as wide, as many parameters."""
    return {"model_type": "llama", "vocab_size": config["vocab_size"], "hidden_size": config["hidden_size"],
            "num_hidden_layers": config["num_layers"], "num_attention_heads": config["num_heads"],
            "num_key_value_heads": config["num_heads"], "intermediate_size": round(config["intermediate_size"] * 2 / 3 / BLOCK) * BLOCK,
            "rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": config["tie_word_embeddings"]}


def common_metadata(config, inner):
    return {"vocab_size": config["vocab_size"], "context_length": CONTEXT, "embedding_length": config["hidden_size"],
            "block_count": config["num_hidden_layers"], "feed_forward_length": inner}


def attention_metadata(config, head, theta, rotated, epsilon, kv_heads=None):
    return {"attention.head_count": config["num_attention_heads"],
            "attention.head_count_kv": config["num_key_value_heads"] if kv_heads is None else kv_heads,
            "attention.key_length": head, "attention.value_length": head, "attention.layer_norm_rms_epsilon": float(epsilon),
            "rope.dimension_count": rotated, "rope.freq_base": float(theta)}


def attention(config, head, q_parts=1):
    width, heads, kv_heads = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    return {"attn_q": (width, heads * head * q_parts), "attn_k": (width, kv_heads * head), "attn_v": (width, kv_heads * head),
            "attn_output": (heads * head, width)}


def head_norms(head):
    return {"attn_q_norm": (head,), "attn_k_norm": (head,)}


def feed_forward(width, inner):
    return {"ffn_gate": (width, inner), "ffn_up": (width, inner), "ffn_down": (inner, width)}


def layer_norm(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def tensors(config, tied, outside, layers):
    embedding = (config["hidden_size"], config["vocab_size"])
    shapes = {"token_embd": embedding, **outside, **({} if tied else {"output": embedding})}
    for number, layer in enumerate(layers):
        shapes.update({f"blk.{number}.{name}": shape for name, shape in layer.items()})
    bare = ".weight", ".bias", ".ssm_a"
    return {name if name.endswith(bare) else f"{name}.weight": shape for name, shape in shapes.items()}


def llama(config):
    width, inner = config["hidden_size"], config["intermediate_size"]
    head = width // config["num_attention_heads"]
    layer = {"attn_norm": (width,), **attention(config, head), "ffn_norm": (width,), **feed_forward(width, inner)}
    metadata = common_metadata(config, inner)
    metadata |= attention_metadata(config, head, config["rope_theta"], head, config["rms_norm_eps"])
    return "llama", metadata, tensors(config, config["tie_word_embeddings"], {"output_norm": (width,)},
                                      [layer] * config["num_hidden_layers"])


def lfm2_inner(config):
    inner, step = config["block_ff_dim"], config["block_multiple_of"]
    if not config["block_auto_adjust_ff_dim"]:
        return inner
    return -(-int(config["block_ffn_dim_multiplier"] * int(2 * inner / 3)) // step) * step


def lfm2(config):
    """A layer without heads of k and v is a short convolution."""
    width, inner, head = config["hidden_size"], lfm2_inner(config), config["hidden_size"] // config["num_attention_heads"]
    full = [number in config["full_attn_idxs"] for number in range(config["num_hidden_layers"])]
    convolution = {"shortconv.in_proj": (width, 3 * width), "shortconv.conv": (config["conv_L_cache"], width),
                   "shortconv.out_proj": (width, width)}
    both = {"attn_norm": (width,), "ffn_norm": (width,), **feed_forward(width, inner)}
    layers = [both | (attention(config, head) | head_norms(head) if there else convolution) for there in full]
    metadata = common_metadata(config, inner) | {"shortconv.l_cache": config["conv_L_cache"]}
    metadata |= attention_metadata(config, head, config["rope_theta"], head, config["norm_eps"],
                                   [config["num_key_value_heads"] * there for there in full])
    return "lfm2", metadata, tensors(config, config["tie_embedding"], {"token_embd_norm": (width,)}, layers)


def qwen35(config):
    """Gated DeltaNet, and in every full_attention_interval-th layer attention, whose queries come with as wide a gate."""
    width, inner, head, rope = config["hidden_size"], config["intermediate_size"], config["head_dim"], config["rope_parameters"]
    key_heads, value_heads, size = config["linear_num_key_heads"], config["linear_num_value_heads"], config["linear_value_head_dim"]
    keys, values = key_heads * config["linear_key_head_dim"], value_heads * size
    taps, interval = config["linear_conv_kernel_dim"], config["full_attention_interval"]
    full = attention(config, head, q_parts=2) | head_norms(head)
    linear = {"attn_qkv": (width, 2 * keys + values), "attn_gate": (width, values), "ssm_conv1d": (taps, 2 * keys + values),
              "ssm_dt.bias": (value_heads,), "ssm_a": (value_heads,), "ssm_beta": (width, value_heads),
              "ssm_alpha": (width, value_heads), "ssm_norm": (size,), "ssm_out": (values, width)}
    both = {"attn_norm": (width,), "post_attention_norm": (width,), **feed_forward(width, inner)}
    layers = [both | (linear if (number + 1) % interval else full) for number in range(config["num_hidden_layers"])]
    metadata = common_metadata(config, inner) | {
        "full_attention_interval": interval, "ssm.conv_kernel": taps, "ssm.inner_size": values, "ssm.state_size": size,
        "ssm.time_step_rank": value_heads, "ssm.group_count": key_heads, "rope.dimension_sections": rope["mrope_section"] + [0]}
    metadata |= attention_metadata(config, head, rope["rope_theta"], int(head * rope["partial_rotary_factor"]), config["rms_norm_eps"])
    return "qwen35", metadata, tensors(config, config["tie_word_embeddings"], {"output_norm": (width,)}, layers)


def rwkv7(config):
    """All its matrices are quantized, as tarn's are; llama.cpp's quantizer would leave those of low rank as they are."""
    width, inner = config["hidden_size"], config["intermediate_size"]
    ranks = {letter: config[f"{name}_low_rank_dim"] for letter, name in
             {"w": "decay", "a": "a", "v": "v", "g": "gate"}.items()}
    layers = []
    for number in range(config["num_hidden_layers"]):
        layer = {**layer_norm("attn_norm", width), **layer_norm("attn_norm_2", width), **layer_norm("time_mix_ln", width),
                 "time_mix_lerp_fused": (width, 1, 1, 6), "channel_mix_lerp_k": (width,)}
        for letter, rank in ranks.items():
            # The first layer computes no residual of v. llama.cpp wants its tensors all the same, with the rank of a.
            rank = ranks["a"] if (letter, number) == ("v", 0) else rank
            layer |= {f"time_mix_{letter}1": (width, rank), f"time_mix_{letter}2": (rank, width)}
        layer |= {f"time_mix_{name}": (width,) for name in ("w0", "a0", "v0", "k_k", "k_a", "r_k")}
        layer |= {f"time_mix_{name}": (width, width) for name in ("receptance", "key", "value", "output")}
        layers.append(layer | {"channel_mix_key": (width, inner), "channel_mix_value": (inner, width)})
    metadata = common_metadata(config, inner) | {
        "attention.head_count": 0, "attention.layer_norm_epsilon": float(config["norm_eps"]), "wkv.head_size": config["head_dim"],
        "attention.decay_lora_rank": ranks["w"], "attention.iclr_lora_rank": ranks["a"],
        "attention.value_residual_mix_lora_rank": ranks["v"], "attention.gate_lora_rank": ranks["g"]}
    # It has no way to tie the head.
    return "rwkv7", metadata, tensors(config, False, layer_norm("token_embd_norm", width) | layer_norm("output_norm", width), layers)


ARCHITECTURES = {"llama": llama, "lfm2": lfm2, "qwen3_5_text": qwen35, "rwkv7": rwkv7}


def known(config):
    return "model_type" not in config or config["model_type"] in ARCHITECTURES


def describe(config):
    """Name of the architecture, metadata, tensors."""
    if "model_type" not in config:
        config = in_terms_of_llama(config)
    name, metadata, shapes = ARCHITECTURES[config["model_type"]](config)
    return name, {f"{name}.{key}": value for key, value in metadata.items()}, shapes
