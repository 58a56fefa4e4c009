#!/usr/bin/env python3
"""Writes the models of flash-linear-attention in tests/data/families, and the logits that it computes of them.

    fla_fixtures.py [NAME...]

As family_fixtures.py: three random configurations of each family, 200 tokens. Its kernels compute in float32 whatever the type of
a model is, here on the CPU, interpreted. Needs the packages of requirements-fla.txt; the last cases those of requirements-fla6.txt:
name them.
"""

import copy
import pathlib
import shutil
import sys
import warnings

import fla_on_cpu  # noqa: F401  before fla
import safetensors.torch
import torch

warnings.filterwarnings("ignore")

import fla.layers.mamba2  # noqa: E402
import fla.layers.rwkv7  # noqa: E402
import fla.models  # noqa: E402
from fla.ops.rwkv7 import fused_recurrent_rwkv7  # noqa: E402

# The chunks of rwkv7 gather across a block, which the interpreter cannot; fla's recurrent kernel computes the same.
fla.layers.rwkv7.chunk_rwkv7 = fused_recurrent_rwkv7
# The layers of mamba2 give their activation a slice, which fla's own reads as if its rows stood side by side. With groups of heads
# its PyTorch code and its kernels differ: transformers' makes those models (family_fixtures.py).
fla.layers.mamba2.ACT2FN = {"silu": torch.nn.functional.silu}

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "tests/data/families"
VOCAB, TOKENS = 41, 200
SMALL = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 40, "num_heads": 3}
DELTA = {**SMALL, "attn_mode": "fused_recurrent"}
HGRN2 = {**SMALL, "num_heads": None, "num_hidden_layers": 3}
MAMBA2 = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2}
RWKV7 = {**SMALL, "num_heads": None, "decay_low_rank_dim": 5, "gate_low_rank_dim": 7, "a_low_rank_dim": 4, "v_low_rank_dim": 3}

HGRN = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 3, "intermediate_size": 40}

# name -> (class, fields, dtype)
CASES = {
    "gla_a": ("GLA", {**SMALL, "num_heads": 4, "num_kv_heads": 2, "hidden_size": 32}, "bfloat16"),
    "gla_b": ("GLA", {**SMALL, "use_short_conv": True, "clamp_min": -0.05, "tie_word_embeddings": True, "expand_k": 1.0,
                      "expand_v": 2.0}, "float16"),
    "gla_c": ("GLA", {**SMALL, "num_hidden_layers": 3, "use_output_gate": False, "feature_map": "relu", "norm_eps": 1e-5,
                      "use_short_conv": True, "conv_size": 3, "attn_mode": "fused_recurrent"}, "float32"),
    "retnet_a": ("RetNet", SMALL, "bfloat16"),
    "retnet_b": ("RetNet", {**SMALL, "expand_k": 0.5, "expand_v": 1.0, "tie_word_embeddings": True, "feature_map": "swish",
                            "attn_mode": "fused_recurrent"}, "float16"),
    "retnet_c": ("RetNet", {**SMALL, "num_heads": 2, "use_output_gate": False, "norm_eps": 1e-5, "num_hidden_layers": 3,
                            "fuse_norm": False}, "float32"),
    "linear_attn_a": ("LinearAttention", {**SMALL, "feature_map": "elu", "norm_feature_map": True, "attn_mode": "chunk",
                                          "num_heads": 4, "num_kv_heads": 2}, "bfloat16"),
    "linear_attn_b": ("LinearAttention", {**SMALL, "feature_map": "relu", "norm_q": True, "norm_k": True, "expand_k": 2.0,
                                          "tie_word_embeddings": True, "attn_mode": "fused_recurrent"}, "float16"),
    "linear_attn_c": ("LinearAttention", {**SMALL, "feature_map": "dpfp", "expand_v": 2.0, "norm_eps": 1e-5, "attn_mode": "chunk"},
                      "float32"),
    "delta_net_a": ("DeltaNet", {**SMALL, "attn_mode": "fused_recurrent"}, "bfloat16"),
    "delta_net_b": ("DeltaNet", {**SMALL, "use_gate": True, "use_short_conv": False, "tie_word_embeddings": True, "expand_v": 2.0,
                                 "use_beta": False, "attn_mode": "fused_recurrent"}, "float16"),
    "delta_net_c": ("DeltaNet", {**SMALL, "qk_activation": "elu", "qk_norm": "sum", "conv_size": 2, "norm_eps": 1e-5,
                                 "num_hidden_layers": 3, "attn_mode": "fused_recurrent"}, "float32"),
    "gsa_a": ("GSA", {**SMALL, "num_slots": 8}, "bfloat16"),
    "gsa_b": ("GSA", {**SMALL, "num_heads": 4, "num_kv_heads": 2, "num_slots": 16, "use_short_conv": True, "feature_map": "relu",
                      "tie_word_embeddings": True}, "float16"),
    "gsa_c": ("GSA", {**SMALL, "num_slots": None, "gate_logit_normalizer": 4, "norm_eps": 1e-4, "num_hidden_layers": 3}, "float32"),
    "abc_a": ("ABC", {**SMALL, "num_slots": 8}, "bfloat16"),
    "abc_b": ("ABC", {**SMALL, "num_heads": 4, "num_slots": 16, "use_short_conv": True, "hidden_size": 32,
                      "tie_word_embeddings": True, "clamp_min": -0.5, "clamp_max": 1.5}, "float16"),
    "abc_c": ("ABC", {**SMALL, "use_rope": False, "num_slots": None, "norm_eps": 1e-5, "num_hidden_layers": 3}, "float32"),
    "gated_deltanet_a": ("GatedDeltaNet", {**DELTA, "head_dim": 8, "num_v_heads": 6}, "bfloat16"),
    "gated_deltanet_b": ("GatedDeltaNet", {**DELTA, "head_dim": 10, "expand_v": 1.0, "use_short_conv": False, "use_gate": False,
                                           "tie_word_embeddings": True, "allow_neg_eigval": True}, "float16"),
    "gated_deltanet_c": ("GatedDeltaNet", {**DELTA, "head_dim": 8, "expand_v": 1.5, "conv_size": 3, "norm_eps": 1e-5,
                                           "num_hidden_layers": 3}, "float32"),
    "kda_a": ("KDA", {**DELTA, "head_dim": 8}, "bfloat16"),
    "kda_b": ("KDA", {**DELTA, "head_dim": 16, "num_heads": 2, "expand_v": 0.5, "tie_word_embeddings": True,
                      "allow_neg_eigval": True}, "float16"),
    "kda_c": ("KDA", {**DELTA, "head_dim": 12, "expand_v": 0.5, "use_short_conv": False, "norm_eps": 1e-5,
                      "num_hidden_layers": 3}, "float32"),
    "hgrn2_a": ("HGRN2", {**HGRN2, "expand_ratio": 8}, "bfloat16"),
    "hgrn2_b": ("HGRN2", {**HGRN2, "expand_ratio": None, "num_heads": 2, "use_short_conv": True, "tie_word_embeddings": True,
                          "norm_eps": 1e-4}, "float16"),
    "hgrn2_c": ("HGRN2", {**HGRN2, "expand_ratio": 6, "use_lower_bound": False, "use_short_conv": True, "conv_size": 3,
                          "attn_mode": "fused_recurrent"}, "float32"),
    "transformer_a": ("Transformer", SMALL, "bfloat16"),
    "transformer_b": ("Transformer", {**SMALL, "num_heads": 4, "num_kv_heads": 2, "hidden_size": 32, "qkv_bias": True,
                                      "window_size": 16, "tie_word_embeddings": True}, "float16"),
    "transformer_c": ("Transformer", {**SMALL, "num_heads": 2, "qk_norm": True, "rope_theta": 500.0, "num_hidden_layers": 3},
                      "float32"),
    # Hybrids.
    "gla_d": ("GLA", {**SMALL, "num_hidden_layers": 3, "use_short_conv": True,
                      "attn": {"layers": [1], "num_heads": 2, "num_kv_heads": 1, "qkv_bias": True, "rope_theta": 500.0}}, "bfloat16"),
    "retnet_d": ("RetNet", {**SMALL, "num_hidden_layers": 3,
                            "attn": {"layers": [0, 2], "num_heads": 2, "window_size": 16, "rope_theta": 500.0}}, "float16"),
    "delta_net_d": ("DeltaNet", {**DELTA, "num_hidden_layers": 3, "use_beta": False, "use_gate": True,
                                 "attn": {"layers": [1], "num_heads": 4}}, "float32"),
    "hgrn2_d": ("HGRN2", {**HGRN2, "expand_ratio": 8, "attn": {"layers": [1], "num_heads": 4, "num_kv_heads": 2}}, "float32"),
    "mamba2_c": ("Mamba2", {**MAMBA2, "head_dim": 16, "state_size": 6, "tie_word_embeddings": True}, "float32"),
    "rwkv7_a": ("RWKV7", {**RWKV7, "head_dim": 8}, "bfloat16"),
    "rwkv7_b": ("RWKV7", {**RWKV7, "head_dim": None, "num_heads": 2, "fuse_norm": False, "tie_word_embeddings": True,
                          "intermediate_size": None}, "float16"),
    "rwkv7_c": ("RWKV7", {**RWKV7, "head_dim": 6, "norm_first": False, "norm_bias": False, "norm_eps": 1e-4,
                          "num_hidden_layers": 3}, "float32"),
    "hgrn_a": ("HGRN", HGRN, "bfloat16"),
    "hgrn_b": ("HGRN", {**HGRN, "use_short_conv": True, "conv_size": 3, "tie_word_embeddings": True, "norm_eps": 1e-4}, "float16"),
    "hgrn_c": ("HGRN", {**HGRN, "expand_ratio": 2, "use_lower_bound": False, "use_short_conv": True, "attn_mode": "chunk",
                        "fuse_norm": False}, "float32"),
    "hgrn_d": ("HGRN", {**HGRN, "use_short_conv": True, "attn": {"layers": [1], "num_heads": 4, "num_kv_heads": 2}}, "float32"),
    "linear_attn_d": ("LinearAttention", {**SMALL, "num_heads": 4, "num_kv_heads": 2, "attn_mode": "chunk"}, "bfloat16"),
    "linear_attn_e": ("LinearAttention", {**SMALL, "feature_map": "t2r", "norm_feature_map": True, "attn_mode": "chunk"}, "float32"),
    "linear_attn_f": ("LinearAttention", {**SMALL, "tie_feature_map_qk": True, "attn_mode": "fused_recurrent"}, "float32"),
    "linear_attn_g": ("LinearAttention", {**SMALL, "feature_map": "hedgehog", "norm_feature_map": True, "num_heads": 4,
                                          "num_kv_heads": 2, "attn_mode": "chunk"}, "float32"),
    "linear_attn_h": ("LinearAttention", {**SMALL, "feature_map": "hedgehog", "tie_feature_map_qk": True,
                                          "attn_mode": "fused_recurrent"}, "float32"),
    # With requirements-fla6.txt.
    "delta_net_e": ("DeltaNet", {**DELTA, "allow_neg_eigval": True, "qk_activation": "relu"}, "float32"),
    "gated_deltanet_d": ("GatedDeltaNet", {**DELTA, "head_dim": 8, "output_gate_activation": "sigmoid"}, "float32"),
}


def randomize(model, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim >= 2:
                values /= parameter.shape[-1] ** 0.5
            else:
                values = 0.2 * values + (1 if "norm" in name else 0)
            if name.endswith("dt_bias"):
                values = 5 * values - 3  # decays of single tokens and of hundreds
            parameter.copy_(values.to(dtype))
    return model.eval()


def write(name, seed):
    kind, fields, dtype = CASES[name]
    dtype = getattr(torch, dtype)
    config = getattr(fla.models, kind + "Config")(**fields, pad_token_id=0)
    model = randomize(getattr(fla.models, kind + "ForCausalLM")(config), dtype, seed)
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    saved = copy.deepcopy(model).to(dtype)
    if config.tie_word_embeddings:
        saved._dynamic_tied_weights_keys = ["lm_head.weight"]  # mamba2 does not say so
    # transformers refuses to write maps that q and k share as safetensors.
    saved.save_pretrained(folder, safe_serialization=not getattr(config, "tie_feature_map_qk", False))
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokens = torch.randint(4, VOCAB, (1, TOKENS), generator=torch.Generator().manual_seed(seed + 1000))
    with torch.no_grad():
        logits = model(tokens).logits[0].float().contiguous()
    safetensors.torch.save_file({"input_ids": tokens[0].int(), "logits": logits}, folder / "expected.safetensors")
    print(f"{name:<14} {sum(p.numel() for p in model.parameters()):>7} parameters, logits within {logits.abs().max():.2f}", flush=True)


if __name__ == "__main__":
    for number, case in enumerate(CASES):
        if not sys.argv[1:] or case in sys.argv[1:]:
            write(case, 100 + number)
