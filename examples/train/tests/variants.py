"""Small models of every attention variant, with weights for which attention matters to the logits."""

import torch

from tarn_train.model import LanguageModel

TINY = dict(vocab_size=256, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=48, hidden_act="swiglu", norm="rmsnorm",
            norm_eps=1e-5, tokenizer="bytes")
GROUPED = dict(num_kv_heads=2, value_head_dim=12, position_embedding="rope")
LAYERNORM = dict(norm="layernorm", hidden_act="gelu", attention_bias=True, mlp_bias=True, position_embedding="sinusoidal",
                 scale_embeddings=True)


def case(system, shape={}, **attention):
    return {**TINY, **shape, "attention": {"system": system, **attention}}


CASES = {
    "rfa_gaussian": case("rfa", feature_map="gaussian", num_features=16),
    "rfa_gaussian_forget": case("rfa", GROUPED, feature_map="gaussian", num_features=16, gate="forget"),
    "rfa_arccos": case("rfa", LAYERNORM, feature_map="arccos", num_features=24, norm_eps_mode="inside", den_eps=0.1),
    "rfa_arccos_forget": case("rfa", dict(LAYERNORM, tie_word_embeddings=False), feature_map="arccos", num_features=24,
                              gate="forget"),
    "rfa_undivided": case("rfa", feature_map="gaussian", num_features=16, den_mode="none", scale=0.2, normalize_qk=False),
    "rfa_normfree": case("rfa_normfree", GROUPED, num_features=16, den_eps=0.3),
    "linear_transformer": case("linear_transformer", GROUPED),
    "dpfp": case("dpfp", dict(hidden_act="relu_squared"), nu=2),
    "t2r": case("t2r", GROUPED, num_features=16),
    "t2r_normalized": case("t2r", LAYERNORM, num_features=16, normalize_qk=True, den_eps=0.1),
    "gla": case("gla", GROUPED, gate_normalizer=4),
    "gla_clamped": case("gla", gate_normalizer=2, gate_clamp_min=-0.2),
    "retnet": case("retnet", dict(position_embedding="rope", value_head_dim=16)),
    "retnet_decay": case("retnet", decay=[0.5, 0.9, 0.99, 1.0]),
    "delta_rule": case("delta_rule", GROUPED, nu=2, beta_scale=1.5),
    "delta_rule_elu": case("delta_rule", LAYERNORM, feature_map="elu_plus_one"),
    "deltanet": case("deltanet", GROUPED),
    "gated_deltanet": case("gated_deltanet", GROUPED),
    "abc_exp": case("abc_mlp", GROUPED, num_slots=8),
    "abc_exp_frozen": case("abc_mlp", LAYERNORM, num_slots=8, normalization="frozen"),
    "abc_exp_clamped": case("abc_mlp", num_slots=8, logit_clamp=[-1.0, 1.5]),
    "abc_relu": case("abc_mlp", GROUPED, num_slots=8, activation="relu"),
    "abc_relu_frozen": case("abc_mlp", num_slots=8, activation="relu", normalization="frozen"),
    "abc_sigmoid": case("abc_mlp", LAYERNORM, num_slots=8, activation="sigmoid"),
    "abc_sigmoid_frozen": case("abc_mlp", num_slots=8, activation="sigmoid", normalization="frozen"),
    "abc_shared": case("abc_mlp", GROUPED, num_slots=8, control_sharing="model"),
    "gsa": case("gsa", GROUPED, num_slots=8),
    "linformer": case("linformer", num_slots=8, max_len=128),
    "luna_causal": case("luna_causal", GROUPED, num_slots=8),
    "softmax": case("softmax", GROUPED, max_context=128),
    "softmax_capped": case("softmax", LAYERNORM, max_context=128, soft_cap=2.0),
    "sliding_window": case("sliding_window", GROUPED, window=9),
    "dilated_window": case("dilated_window", window=5, dilation=3),
    "strided_window": case("strided_window", GROUPED, window=5, stride=4, num_strided=6),
    "l2g_window": case("l2g_window", window=7, global_positions=[0, 3, 40]),
    "hybrid": {**TINY, "num_layers": 3, "attention": [
        {"system": "sliding_window", "window": 16}, {"system": "gsa", "num_slots": 8},
        {"system": "rfa", "feature_map": "gaussian", "num_features": 16, "gate": "forget"}]},
}


def random_model(config, seed):
    """Sigma is 1, biases and norms vary, and controls are large enough to prefer some slots."""
    torch.manual_seed(seed)
    model = LanguageModel(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("g_proj.weight", "b_proj.weight", "control_proj.weight")):
                weight.normal_(std=2 * weight.shape[1] ** -0.5)
            elif name.endswith("sigma"):
                weight.uniform_(0.8, 1.2)
            elif name.endswith("bias") and not name.endswith("g_proj.bias"):
                weight.normal_(std=0.2)
            elif "norm" in name:
                weight.uniform_(0.8, 1.2)
    return model
