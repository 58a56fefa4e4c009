#!/usr/bin/env python3
"""Writes the models of flash-linear-attention in tests/data/families, and the logits that it computes of them.

    fla_fixtures.py [NAME...]

As family_fixtures.py: three random configurations of each family, 200 tokens. Its kernels compute in float32 whatever the type of
a model is, here on the CPU, interpreted. Needs the packages of requirements-fla.txt.
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

import fla.models  # noqa: E402

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "tests/data/families"
VOCAB, TOKENS = 41, 200
SMALL = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 40, "num_heads": 3}
DELTA = {**SMALL, "attn_mode": "fused_recurrent"}

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
    copy.deepcopy(model).to(dtype).save_pretrained(folder)
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
