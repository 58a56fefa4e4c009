#!/usr/bin/env python3
"""Writes the hybrid models in tests/data/families, and the logits that transformers computes of them.

    hybrid_fixtures.py [NAME...]

As family_fixtures.py: three random configurations of each family, 200 tokens, in float64. qwen3_5 and qwen3_5_text need the packages of
requirements-models5.txt; granitemoehybrid with more than one group (a, c) those of requirements-mixers.txt, as mamba2 does; the others
those of requirements-models.txt: name the cases.
"""

import contextlib
import copy
import shutil
import sys

import safetensors.torch
import torch
import transformers as tf
from family_fixtures import FIXTURES, SEQ2SEQ, SMALL, TOKENS, VOCAB, randomize

NEXT = {**SMALL, "head_dim": 16, "num_key_value_heads": 1, "num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
        "linear_key_head_dim": 8, "linear_value_head_dim": 6, "max_position_embeddings": 256}
ROPE = {"rope_type": "default", "mrope_section": [1, 1, 0], "mrope_interleaved": True}
VISION = {"vision_config": {"depth": 1, "hidden_size": 8, "num_heads": 1, "intermediate_size": 8, "out_hidden_size": 24, "patch_size": 2,
                            "num_position_embeddings": 4}}

FALCON = {**SMALL, "max_position_embeddings": 256, "mamba_chunk_size": 64, "embedding_multiplier": 3.7, "lm_head_multiplier": 0.3,
          "mlp_multipliers": [0.9, 0.6], "key_multiplier": 0.4, "attention_out_multiplier": 0.8, "attention_in_multiplier": 1.3,
          "ssm_multipliers": [0.35, 0.7, 0.55, 1.2, 0.8], "ssm_in_multiplier": 1.25, "ssm_out_multiplier": 0.45}

GRANITE = {**SMALL, "max_position_embeddings": 256, "num_local_experts": 0, "shared_intermediate_size": 40, "mamba_chunk_size": 64,
           "embedding_multiplier": 3.0, "attention_multiplier": 0.2, "residual_multiplier": 0.4, "logits_scaling": 2.5}

# name -> (class of the config, fields, dtype)
CASES = {
    "lfm2_a": ("Lfm2", {**SMALL, "num_hidden_layers": 3, "num_key_value_heads": 1, "layer_types": ["conv", "full_attention", "conv"],
                        "block_multiple_of": 8, "max_position_embeddings": 256}, "bfloat16"),
    "lfm2_b": ("Lfm2", {**SMALL, "num_key_value_heads": 3, "layer_types": ["full_attention", "conv"], "conv_bias": True, "conv_L_cache": 4,
                        "block_auto_adjust_ff_dim": False, "tie_word_embeddings": False, "max_position_embeddings": 256}, "float16"),
    "lfm2_c": ("Lfm2", {**SMALL, "hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 4,
                        "layer_types": ["conv", "conv", "full_attention", "conv"], "conv_L_cache": 2, "block_ffn_dim_multiplier": 1.3,
                        "block_multiple_of": 3, "norm_eps": 1e-6, "rope_theta": 5e4, "max_position_embeddings": 256}, "float32"),
    "qwen3_next_a": ("Qwen3Next", {**NEXT, "num_experts": 0}, "bfloat16"),
    "qwen3_next_b": ("Qwen3Next", {**NEXT, "num_experts": 0, "num_key_value_heads": 3, "num_hidden_layers": 3, "attention_bias": True,
                                   "layer_types": ["linear_attention", "full_attention", "linear_attention"], "tie_word_embeddings": True,
                                   "partial_rotary_factor": 0.5, "linear_num_value_heads": 2, "linear_conv_kernel_dim": 3}, "float16"),
    "qwen3_next_c": ("Qwen3Next", {**NEXT, "num_experts": 4, "mlp_only_layers": [1], "decoder_sparse_step": 2, "num_hidden_layers": 2,
                                   "layer_types": ["linear_attention", "full_attention"], "hidden_size": 36, "num_attention_heads": 4,
                                   "num_key_value_heads": 2, "head_dim": 24, "linear_num_key_heads": 3, "linear_num_value_heads": 9,
                                   "linear_value_head_dim": 10, "rope_theta": 1e6, "rms_norm_eps": 1e-5}, "float32"),
    "qwen3_5_text_a": ("Qwen3_5Text", {**NEXT, "rope_parameters": {**ROPE, "rope_theta": 1e7, "partial_rotary_factor": 0.25}}, "bfloat16"),
    "qwen3_5_text_b": ("Qwen3_5Text", {**NEXT, "num_key_value_heads": 3, "num_hidden_layers": 3, "attention_bias": True,
                                       "layer_types": ["linear_attention", "full_attention", "linear_attention"], "tie_word_embeddings": True,
                                       "linear_num_value_heads": 2, "linear_conv_kernel_dim": 3,
                                       "rope_parameters": {**ROPE, "rope_theta": 1e4, "partial_rotary_factor": 0.5}}, "float16"),
    "qwen3_5_text_c": ("Qwen3_5Text", {**NEXT, "hidden_size": 36, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24,
                                       "linear_num_key_heads": 3, "linear_num_value_heads": 9, "linear_value_head_dim": 10,
                                       "num_hidden_layers": 2, "layer_types": ["full_attention", "linear_attention"], "rms_norm_eps": 1e-5,
                                       "rope_parameters": {**ROPE, "rope_theta": 1e6, "partial_rotary_factor": 0.25}}, "float32"),
    "qwen3_5_a": ("Qwen3_5" + SEQ2SEQ, {**VISION, "text_config": {
        **NEXT, "rope_parameters": {**ROPE, "rope_theta": 1e7, "partial_rotary_factor": 0.25}}}, "bfloat16"),
    "qwen3_5_b": ("Qwen3_5" + SEQ2SEQ, {**VISION, "tie_word_embeddings": True, "text_config": {
        **NEXT, "num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"], "linear_num_value_heads": 2,
        "tie_word_embeddings": True, "rope_parameters": {**ROPE, "rope_theta": 1e4, "partial_rotary_factor": 0.5}}}, "float16"),
    "qwen3_5_c": ("Qwen3_5" + SEQ2SEQ, {**VISION, "text_config": {
        **NEXT, "num_key_value_heads": 3, "num_hidden_layers": 2, "layer_types": ["full_attention", "linear_attention"],
        "linear_num_key_heads": 4, "rope_parameters": {**ROPE, "rope_theta": 1e6, "partial_rotary_factor": 0.25}}}, "float32"),
    "recurrent_gemma_a": ("RecurrentGemma", {**SMALL, "num_hidden_layers": 3, "num_key_value_heads": 1}, "bfloat16"),
    "recurrent_gemma_b": ("RecurrentGemma", {**SMALL, "num_hidden_layers": 3, "block_types": ["attention", "recurrent"], "lru_width": 36,
                                             "attention_bias": True, "hidden_activation": "gelu", "tie_word_embeddings": False,
                                             "logits_soft_cap": 2.0, "intermediate_size": 42, "pad_token_id": 3}, "float16"),
    "recurrent_gemma_c": ("RecurrentGemma", {**SMALL, "hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
                                             "num_hidden_layers": 4, "conv1d_width": 2, "attention_window_size": 24, "rms_norm_eps": 1e-5,
                                             "rope_theta": 5e4}, "float32"),
    "falcon_h1_a": ("FalconH1", {**FALCON, "num_key_value_heads": 1, "mamba_d_ssm": 48, "mamba_n_heads": 6, "mamba_d_state": 10,
                                 "rope_theta": 5e4}, "bfloat16"),
    "falcon_h1_b": ("FalconH1", {**FALCON, "num_key_value_heads": 3, "head_dim": 10, "mamba_d_ssm": None, "mamba_n_heads": 4, "mamba_n_groups": 2,
                                 "mamba_d_state": 16, "mamba_rms_norm": True, "mamba_conv_bias": False, "mamba_d_conv": 3,
                                 "mamba_proj_bias": True, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}, "float16"),
    "falcon_h1_c": ("FalconH1", {**FALCON, "hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 3,
                                 "mamba_d_ssm": 40, "mamba_n_heads": 8, "mamba_n_groups": 4, "mamba_d_state": 7, "mamba_rms_norm": True,
                                 "mamba_norm_before_gate": False, "projectors_bias": True, "rms_norm_eps": 1e-6}, "float32"),
    "granitemoehybrid_a": ("GraniteMoeHybrid", {**GRANITE, "num_hidden_layers": 3, "num_key_value_heads": 1, "mamba_n_heads": 6,
                                                "layer_types": ["mamba", "attention", "mamba"], "mamba_n_groups": 2, "mamba_d_state": 10,
                                                "position_embedding_type": "nope"}, "bfloat16"),
    "granitemoehybrid_b": ("GraniteMoeHybrid", {**GRANITE, "num_key_value_heads": 3, "layer_types": ["attention", "mamba"],
                                                "mamba_n_heads": 4, "mamba_d_state": 16, "mamba_conv_bias": False, "mamba_proj_bias": True,
                                                "attention_bias": True, "tie_word_embeddings": True, "rope_theta": 5e4,
                                                "position_embedding_type": "rope"}, "float16"),
    "granitemoehybrid_c": ("GraniteMoeHybrid", {**GRANITE, "hidden_size": 36, "num_attention_heads": 4, "num_key_value_heads": 2,
                                                "num_hidden_layers": 4, "layer_types": ["mamba", "mamba", "attention", "mamba"],
                                                "mamba_expand": 3, "mamba_n_heads": 9, "mamba_n_groups": 3, "mamba_d_state": 7,
                                                "mamba_d_conv": 2, "shared_intermediate_size": 30, "rms_norm_eps": 1e-5}, "float32"),
}


@contextlib.contextmanager
def no_casts_to_float32():
    """What the library computes in float32 whatever the model's type is computed in float64."""
    saved = {name: getattr(torch.Tensor, name) for name in ("float", "to", "type")}

    def widened(method):
        def call(tensor, *args, **kwargs):
            wide = [torch.float64 if arg is torch.float32 else arg for arg in args]
            return method(tensor, *wide, **{k: torch.float64 if v is torch.float32 else v for k, v in kwargs.items()})
        return call

    torch.Tensor.float = torch.Tensor.double
    for name in ("to", "type"):
        setattr(torch.Tensor, name, widened(saved[name]))
    try:
        yield
    finally:
        for name, method in saved.items():
            setattr(torch.Tensor, name, method)


def model_of(name):
    kind, fields, dtype = CASES[name]
    family = kind.removesuffix(SEQ2SEQ)
    config = getattr(tf, family + "Config")(**fields, attn_implementation="eager")
    head = {"Qwen3_5Text": "Qwen3_5ForCausalLM"}.get(kind, kind if family != kind else kind + "ForCausalLM")
    return getattr(tf, head)(config), getattr(torch, dtype)


def spread_decays(model, dtype):
    """Decays of single tokens and of hundreds."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            factor = {"dt_bias": 5, "recurrent_param": 10}.get(name.rpartition(".")[2])
            if factor:
                parameter.copy_((factor * parameter - 3).to(dtype))


def windowed_mask(window):
    """Of recurrent_gemma: a token and `window` before it, as in the authors' code. The library's mask for many tokens has no window."""
    def mask(_, inputs, positions):
        seen = (positions[None] <= positions[:, None]) & (positions[:, None] <= positions[None] + window)
        return torch.zeros(seen.shape, dtype=inputs.dtype).masked_fill(~seen, torch.finfo(inputs.dtype).min)[None, None]
    return mask


def write(name, seed):
    model, dtype = model_of(name)
    model = randomize(model, dtype, seed)
    spread_decays(model, dtype)
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    copy.deepcopy(model).to(dtype).save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokens = torch.randint(4, VOCAB, (1, TOKENS), generator=torch.Generator().manual_seed(seed + 1000))
    if name.startswith("recurrent_gemma"):
        model.model._update_causal_mask = windowed_mask(model.config.attention_window_size)
    model = model.double()
    with torch.no_grad(), no_casts_to_float32():
        logits = model(tokens, use_cache=False).logits[0]
    logits = logits.float().contiguous()
    safetensors.torch.save_file({"input_ids": tokens[0].int(), "logits": logits}, folder / "expected.safetensors")
    print(f"{name:<17} {sum(p.numel() for p in model.parameters()):>7} parameters, logits within {logits.abs().max():.2f}", flush=True)


if __name__ == "__main__":
    for number, case in enumerate(CASES):
        if not sys.argv[1:] or case in sys.argv[1:]:
            write(case, 200 + number)
