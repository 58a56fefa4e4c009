#!/usr/bin/env python3
"""Writes tests/data/families: small checkpoints of published families, and the logits that transformers computes of them.

    family_fixtures.py [NAME...]

Three random configurations of each family; every parameter is random, biases and norms too, and is a number that its stored type
holds. expected.safetensors has 200 tokens and their logits, computed in float64 from a reset (of a classifier: of the text). Needs the packages of
requirements-models.txt; of mamba2 and gemma_b, those of requirements-mixers.txt: older versions norm all groups of heads together, and
mamba_ssm does not; they take "gelu" of gemma for the exact function, in place of which 5.24 writes its own name: keep "gelu". Name these
cases.
"""

import contextlib
import copy
import pathlib
import shutil
import sys

import safetensors.torch
import torch
import transformers as tf

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "tests/data/families"
VOCAB, TOKENS, SOURCE = 41, 200, 150

SMALL = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
OPT = {"vocab_size": VOCAB, "hidden_size": 24, "word_embed_proj_dim": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 40}
XGLM = {"vocab_size": VOCAB, "d_model": 24, "num_layers": 2, "attention_heads": 3, "ffn_dim": 40}
GPT2 = {"vocab_size": VOCAB, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 208}
VISION = {"mm_tokens_per_image": 1, "vision_config": {"hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1,
                                                      "num_attention_heads": 1, "image_size": 8, "patch_size": 8}}
GPTJ = {"vocab_size": VOCAB, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 208}
NEO = {"vocab_size": VOCAB, "hidden_size": 24, "num_layers": 3, "num_heads": 3, "max_position_embeddings": 200}

ENCODER = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
DISTIL = {"vocab_size": VOCAB, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40}
BART = {"vocab_size": VOCAB, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3,
        "decoder_attention_heads": 3, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "max_position_embeddings": 208}
MARIAN = {"pad_token_id": 3, "decoder_start_token_id": 3, "eos_token_id": 0}
T5 = {"vocab_size": VOCAB, "d_model": 24, "d_kv": 10, "d_ff": 40, "num_layers": 2, "num_heads": 3}
MODERN = {**ENCODER, "pad_token_id": 3, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
          "max_position_embeddings": 256, "reference_compile": False}
LONG = {**ENCODER, "type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-5}
BLOOM = {"vocab_size": VOCAB, "hidden_size": 24, "n_layer": 2, "n_head": 3}
MASKED, LABELS, SEQ2SEQ = "ForMaskedLM", "ForSequenceClassification", "ForConditionalGeneration"

# name -> (class of the config, of the model, fields, dtype)
CASES = {
    "llama_a": ("Llama", {**SMALL, "num_key_value_heads": 1, "rope_theta": 50000.0, "max_position_embeddings": 256}, "float16"),
    "llama_b": ("Llama", {**SMALL, "head_dim": 10, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True,
                          "rms_norm_eps": 1e-5}, "bfloat16"),
    "llama_c": ("Llama", {**SMALL, "num_attention_heads": 6, "num_key_value_heads": 2, "num_hidden_layers": 3, "hidden_size": 36,
                          "bos_token_id": 1, "eos_token_id": [2, 3]}, "float32"),
    "llama_d": ("Llama", {**SMALL, "head_dim": 16, "max_position_embeddings": 256, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}}, "float32"),
    "llama_e": ("Llama", {**SMALL, "head_dim": 16, "max_position_embeddings": 256, "rope_scaling": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 16.0}}, "float32"),
    "llama_f": ("Llama", {**SMALL, "head_dim": 16, "max_position_embeddings": 256, "rope_scaling": {
        "rope_type": "linear", "factor": 3.0}}, "float32"),
    "mistral_a": ("Mistral", {**SMALL, "num_key_value_heads": 1, "sliding_window": 16}, "bfloat16"),
    "mistral_b": ("Mistral", {**SMALL, "num_key_value_heads": 3, "sliding_window": None, "tie_word_embeddings": True,
                              "max_position_embeddings": 256}, "float16"),
    "mistral_c": ("Mistral", {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 14, "sliding_window": 37,
                              "rope_theta": 1e6, "rms_norm_eps": 1e-5}, "float32"),
    "qwen2_a": ("Qwen2", {**SMALL, "num_key_value_heads": 1, "tie_word_embeddings": True, "max_position_embeddings": 256}, "bfloat16"),
    "qwen2_b": ("Qwen2", {**SMALL, "num_key_value_heads": 3, "use_sliding_window": True, "sliding_window": 20, "max_window_layers": 1,
                          "num_hidden_layers": 3, "max_position_embeddings": 256}, "float16"),
    "qwen2_c": ("Qwen2", {**SMALL, "num_key_value_heads": 3, "rope_theta": 1e6, "rms_norm_eps": 1e-5, "hidden_size": 30,
                          "max_position_embeddings": 256}, "float32"),
    "phi3_a": ("Phi3", {**SMALL, "num_key_value_heads": 1, "max_position_embeddings": 256, "pad_token_id": 0}, "bfloat16"),
    "phi3_b": ("Phi3", {**SMALL, "num_key_value_heads": 3, "sliding_window": 24, "tie_word_embeddings": True, "pad_token_id": 0}, "float16"),
    "phi3_c": ("Phi3", {**SMALL, "num_attention_heads": 6, "num_key_value_heads": 2, "hidden_size": 36, "rms_norm_eps": 1e-6,
                        "max_position_embeddings": 256, "pad_token_id": 0}, "float32"),
    "gpt2_a": ("GPT2", GPT2, "float16"),
    "gpt2_b": ("GPT2", {**GPT2, "n_inner": 52, "activation_function": "relu", "tie_word_embeddings": False,
                        "scale_attn_by_inverse_layer_idx": True}, "bfloat16"),
    "gpt2_c": ("GPT2", {**GPT2, "n_layer": 3, "n_head": 2, "activation_function": "gelu", "scale_attn_weights": False,
                        "layer_norm_epsilon": 1e-6}, "float32"),
    "gpt_neo_a": ("GPTNeo", {**NEO, "num_layers": 4, "attention_types": [[["global", "local"], 2]], "window_size": 24}, "float16"),
    "gpt_neo_b": ("GPTNeo", {**NEO, "attention_types": [[["local"], 2], [["global"], 1]], "window_size": 9, "intermediate_size": 52,
                             "activation_function": "gelu"}, "bfloat16"),
    "gpt_neo_c": ("GPTNeo", {**NEO, "num_heads": 2, "attention_types": [[["global"], 3]], "activation_function": "relu",
                             "tie_word_embeddings": False, "layer_norm_epsilon": 1e-6}, "float32"),
    "opt_a": ("OPT", {**OPT, "max_position_embeddings": 200}, "float16"),
    "opt_b": ("OPT", {**OPT, "num_hidden_layers": 3, "num_attention_heads": 2, "max_position_embeddings": 256,
                      "tie_word_embeddings": False}, "float32"),
    "opt_c": ("OPT", {**OPT, "do_layer_norm_before": False, "activation_function": "gelu", "max_position_embeddings": 208}, "bfloat16"),
    "bert_a": ("Bert" + MASKED, {**ENCODER, "max_position_embeddings": 200}, "float16"),
    "bert_b": ("Bert" + LABELS, {**ENCODER, "num_labels": 5, "hidden_act": "relu", "max_position_embeddings": 210}, "bfloat16"),
    "bert_c": ("Bert" + MASKED, {**ENCODER, "num_hidden_layers": 3, "num_attention_heads": 2, "type_vocab_size": 3, "layer_norm_eps": 1e-6,
                                 "max_position_embeddings": 256}, "float32"),
    "roberta_a": ("Roberta" + MASKED, {**ENCODER, "type_vocab_size": 1, "max_position_embeddings": 202}, "float16"),
    "roberta_b": ("Roberta" + LABELS, {**ENCODER, "num_labels": 3, "max_position_embeddings": 210}, "bfloat16"),
    "roberta_c": ("Roberta" + MASKED, {**ENCODER, "num_hidden_layers": 3, "num_attention_heads": 2, "layer_norm_eps": 1e-5,
                                       "max_position_embeddings": 256}, "float32"),
    "xlm-roberta_a": ("XLMRoberta" + MASKED, {**ENCODER, "type_vocab_size": 1, "max_position_embeddings": 202}, "float16"),
    "xlm-roberta_b": ("XLMRoberta" + LABELS, {**ENCODER, "num_labels": 2, "max_position_embeddings": 210}, "bfloat16"),
    "xlm-roberta_c": ("XLMRoberta" + MASKED, {**ENCODER, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 256},
                      "float32"),
    "bart_a": ("Bart" + SEQ2SEQ, BART, "float16"),
    "bart_b": ("Bart" + SEQ2SEQ, {**BART, "encoder_layers": 3, "scale_embedding": True, "activation_function": "relu"}, "bfloat16"),
    "bart_c": ("Bart" + SEQ2SEQ, {**BART, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}, "float32"),
    "m2m_100_a": ("M2M100" + SEQ2SEQ, BART, "float16"),
    "m2m_100_b": ("M2M100" + SEQ2SEQ, {**BART, "encoder_layers": 3, "scale_embedding": False, "activation_function": "gelu"}, "bfloat16"),
    "m2m_100_c": ("M2M100" + SEQ2SEQ, {**BART, "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4}, "float32"),
    "xglm_a": ("XGLM", {**XGLM, "max_position_embeddings": 256}, "float16"),
    "xglm_b": ("XGLM", {**XGLM, "scale_embedding": False, "num_layers": 3, "attention_heads": 2}, "bfloat16"),
    "xglm_c": ("XGLM", {**XGLM, "activation_function": "relu", "d_model": 28, "attention_heads": 7, "tie_word_embeddings": False}, "float32"),
    "qwen3_a": ("Qwen3", {**SMALL, "num_key_value_heads": 1, "head_dim": 10, "tie_word_embeddings": True, "max_position_embeddings": 256},
                "bfloat16"),
    "qwen3_b": ("Qwen3", {**SMALL, "num_key_value_heads": 3, "head_dim": 16, "attention_bias": True, "use_sliding_window": True,
                          "sliding_window": 20, "max_window_layers": 1, "num_hidden_layers": 3, "max_position_embeddings": 256}, "float16"),
    "qwen3_c": ("Qwen3", {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "rope_theta": 1e6, "rms_norm_eps": 1e-5,
                          "max_position_embeddings": 256}, "float32"),
    "olmo2_a": ("Olmo2", {**SMALL, "num_key_value_heads": 1, "max_position_embeddings": 256, "eos_token_id": 3}, "float16"),
    "olmo2_b": ("Olmo2", {**SMALL, "attention_bias": True, "tie_word_embeddings": True, "num_hidden_layers": 3, "rope_theta": 5e5,
                          "eos_token_id": None}, "bfloat16"),
    "olmo2_c": ("Olmo2", {**SMALL, "hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 2, "rms_norm_eps": 1e-6,
                          "eos_token_id": 3}, "float32"),
    "olmo_a": ("Olmo", {**SMALL, "num_key_value_heads": 1, "max_position_embeddings": 256, "eos_token_id": 3}, "float16"),
    "olmo_b": ("Olmo", {**SMALL, "attention_bias": True, "tie_word_embeddings": True, "num_hidden_layers": 3, "eos_token_id": 3}, "bfloat16"),
    "olmo_c": ("Olmo", {**SMALL, "hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 2, "rope_theta": 5e5,
                        "eos_token_id": 3}, "float32"),
    "gemma_a": ("Gemma", {**SMALL, "num_key_value_heads": 1, "head_dim": 10, "max_position_embeddings": 256}, "bfloat16"),
    "gemma_b": ("Gemma", {**SMALL, "num_key_value_heads": 3, "head_dim": 8, "hidden_act": "gelu", "tie_word_embeddings": False,
                          "max_position_embeddings": 256}, "float16"),
    "gemma_c": ("Gemma", {**SMALL, "hidden_size": 30, "num_key_value_heads": 3, "head_dim": 12, "attention_bias": True, "rms_norm_eps": 1e-5,
                          "max_position_embeddings": 256}, "float32"),
    "gemma2_a": ("Gemma2", {**SMALL, "num_key_value_heads": 1, "head_dim": 10, "sliding_window": 24, "query_pre_attn_scalar": 14,
                            "attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.0, "max_position_embeddings": 256}, "bfloat16"),
    "gemma2_b": ("Gemma2", {**SMALL, "num_key_value_heads": 3, "head_dim": 8, "num_hidden_layers": 3, "sliding_window": 33,
                            "attn_logit_softcapping": None, "final_logit_softcapping": None, "tie_word_embeddings": False,
                            "max_position_embeddings": 256}, "float16"),
    "gemma2_c": ("Gemma2", {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12, "attention_bias": True,
                            "layer_types": ["full_attention", "sliding_attention"], "sliding_window": 7, "hidden_activation": "gelu",
                            "max_position_embeddings": 256}, "float32"),
    "gemma3_text_a": ("Gemma3Text", {**SMALL, "num_key_value_heads": 1, "head_dim": 10, "num_hidden_layers": 7, "sliding_window": 24,
                                     "query_pre_attn_scalar": 14, "max_position_embeddings": 256}, "bfloat16"),
    "gemma3_text_b": ("Gemma3Text", {**SMALL, "num_key_value_heads": 3, "head_dim": 8, "num_hidden_layers": 3, "sliding_window": 16,
                                     "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                                     "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "max_position_embeddings": 256}, "float16"),
    "gemma3_text_c": ("Gemma3Text", {**SMALL, "num_key_value_heads": 3, "head_dim": 12, "sliding_window": 9, "attention_bias": True,
                                     "rope_local_base_freq": 500.0, "final_logit_softcapping": 3.0,
                                     "layer_types": ["full_attention", "sliding_attention"], "tie_word_embeddings": False,
                                     "max_position_embeddings": 256}, "float32"),
    "gpt_neox_a": ("GPTNeoX", {**SMALL, "rotary_pct": 0.5, "max_position_embeddings": 256}, "float16"),
    "gpt_neox_b": ("GPTNeoX", {**SMALL, "num_attention_heads": 2, "rotary_pct": 1.0, "use_parallel_residual": False, "hidden_act": "gelu_new",
                               "tie_word_embeddings": True, "rotary_emb_base": 5000, "max_position_embeddings": 256}, "bfloat16"),
    "gpt_neox_c": ("GPTNeoX", {**SMALL, "hidden_size": 36, "rotary_pct": 0.34, "attention_bias": False, "layer_norm_eps": 1e-6,
                               "max_position_embeddings": 256}, "float32"),
    "phi_a": ("Phi", {**SMALL, "max_position_embeddings": 256}, "float16"),
    "phi_b": ("Phi", {**SMALL, "hidden_size": 30, "num_key_value_heads": 1, "partial_rotary_factor": 0.4, "tie_word_embeddings": True,
                      "qk_layernorm": True, "max_position_embeddings": 256}, "bfloat16"),
    "phi_c": ("Phi", {**SMALL, "num_attention_heads": 2, "partial_rotary_factor": 1.0, "hidden_act": "gelu", "rope_theta": 5e4,
                      "layer_norm_eps": 1e-6, "max_position_embeddings": 256}, "float32"),
    "stablelm_a": ("StableLm", {**SMALL, "num_key_value_heads": 1, "partial_rotary_factor": 0.5, "max_position_embeddings": 256}, "float16"),
    "stablelm_b": ("StableLm", {**SMALL, "num_key_value_heads": 3, "use_qkv_bias": True, "use_parallel_residual": True,
                                "tie_word_embeddings": True, "max_position_embeddings": 256}, "bfloat16"),
    "stablelm_c": ("StableLm", {**SMALL, "hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 2, "partial_rotary_factor": 0.34,
                                "rope_theta": 5e4, "layer_norm_eps": 1e-6, "max_position_embeddings": 256}, "float32"),
    "gptj_a": ("GPTJ", {**GPTJ, "rotary_dim": 4}, "float16"),
    "gptj_b": ("GPTJ", {**GPTJ, "rotary_dim": 6, "n_inner": 52, "n_layer": 3, "activation_function": "relu"}, "bfloat16"),
    "gptj_c": ("GPTJ", {**GPTJ, "n_head": 2, "rotary_dim": 12, "layer_norm_epsilon": 1e-6}, "float32"),
    "smollm3_a": ("SmolLM3", {**SMALL, "num_key_value_heads": 1, "num_hidden_layers": 4, "max_position_embeddings": 256, "pad_token_id": 0},
                  "bfloat16"),
    "smollm3_b": ("SmolLM3", {**SMALL, "num_key_value_heads": 3, "num_hidden_layers": 3, "no_rope_layers": [1, 0, 1], "mlp_bias": True,
                              "use_sliding_window": True, "sliding_window": 20, "max_position_embeddings": 256, "pad_token_id": 0}, "float16"),
    "smollm3_c": ("SmolLM3", {**SMALL, "num_attention_heads": 4, "num_key_value_heads": 2, "attention_bias": True, "no_rope_layer_interval": 2,
                              "rope_theta": 1e4, "tie_word_embeddings": False, "max_position_embeddings": 256, "pad_token_id": 0}, "float32"),
    "granite_a": ("Granite", {**SMALL, "num_key_value_heads": 1, "embedding_multiplier": 12.0, "logits_scaling": 8.0,
                              "residual_multiplier": 0.22, "attention_multiplier": 0.125, "max_position_embeddings": 256}, "bfloat16"),
    "granite_b": ("Granite", {**SMALL, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "residual_multiplier": 1.5,
                              "max_position_embeddings": 256}, "float16"),
    "granite_c": ("Granite", {**SMALL, "hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 2, "logits_scaling": 0.5,
                              "embedding_multiplier": 0.3, "max_position_embeddings": 256}, "float32"),
    "gemma3_a": ("Gemma3" + SEQ2SEQ, {**VISION, "text_config": {**SMALL, "num_key_value_heads": 1, "head_dim": 10, "sliding_window": 24,
                                                                "max_position_embeddings": 256}}, "bfloat16"),
    "gemma3_b": ("Gemma3" + SEQ2SEQ, {**VISION, "text_config": {
        **SMALL, "num_key_value_heads": 3, "head_dim": 8, "num_hidden_layers": 3, "sliding_window": 16, "query_pre_attn_scalar": 10,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "max_position_embeddings": 256}}, "float16"),
    "gemma3_c": ("Gemma3" + SEQ2SEQ, {**VISION, "text_config": {
        **SMALL, "num_key_value_heads": 3, "head_dim": 12, "sliding_window": 9, "rope_theta": 1e4, "rms_norm_eps": 1e-5,
        "layer_types": ["full_attention", "sliding_attention"], "max_position_embeddings": 256}}, "float32"),
    "phi3_d": ("Phi3", {**SMALL, "num_key_value_heads": 1, "max_position_embeddings": 256, "original_max_position_embeddings": 64,
                        "pad_token_id": 0, "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.7],
                                                            "long_factor": [1.0, 1.5, 3.0, 6.5]}}, "float32"),
    "phi3_e": ("Phi3", {**SMALL, "num_key_value_heads": 1, "max_position_embeddings": 832, "original_max_position_embeddings": 208,
                        "pad_token_id": 0, "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.7],
                                                            "long_factor": [1.0, 1.5, 3.0, 6.5]}}, "float32"),
    "distilbert_a": ("DistilBert" + MASKED, {**DISTIL, "max_position_embeddings": 200}, "float16"),
    "distilbert_b": ("DistilBert" + LABELS, {**DISTIL, "num_labels": 5, "activation": "relu", "max_position_embeddings": 210}, "bfloat16"),
    "distilbert_c": ("DistilBert" + MASKED, {**DISTIL, "n_layers": 3, "n_heads": 2, "activation": "relu", "max_position_embeddings": 256},
                     "float32"),
    "marian_a": ("Marian" + SEQ2SEQ, {**BART, **MARIAN, "activation_function": "swish", "scale_embedding": True}, "float16"),
    "marian_b": ("Marian" + SEQ2SEQ, {**BART, **MARIAN, "encoder_layers": 3, "activation_function": "relu"}, "bfloat16"),
    "marian_c": ("Marian" + SEQ2SEQ, {**BART, **MARIAN, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2},
                 "float32"),
    "t5_a": ("T5" + SEQ2SEQ, {**T5, "n_positions": 208}, "float16"),
    "t5_b": ("T5" + SEQ2SEQ, {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "num_decoder_layers": 3,
                              "relative_attention_num_buckets": 16, "relative_attention_max_distance": 40}, "bfloat16"),
    "t5_c": ("T5" + SEQ2SEQ, {**T5, "num_heads": 4, "d_kv": 6, "num_layers": 3, "num_decoder_layers": 1, "layer_norm_epsilon": 1e-5,
                              "feed_forward_proj": "gated-silu", "relative_attention_num_buckets": 10,
                              "relative_attention_max_distance": 30, "decoder_start_token_id": 5}, "float32"),
    "mt5_a": ("MT5" + SEQ2SEQ, T5, "float16"),
    "mt5_b": ("MT5" + SEQ2SEQ, {**T5, "tie_word_embeddings": True, "feed_forward_proj": "relu", "num_decoder_layers": 1}, "bfloat16"),
    "mt5_c": ("MT5" + SEQ2SEQ, {**T5, "num_heads": 2, "d_kv": 12, "num_layers": 3, "relative_attention_num_buckets": 12}, "float32"),
    "umt5_a": ("UMT5" + SEQ2SEQ, T5, "float16"),
    "umt5_b": ("UMT5" + SEQ2SEQ, {**T5, "tie_word_embeddings": False, "num_decoder_layers": 3, "relative_attention_num_buckets": 20,
                                  "relative_attention_max_distance": 50}, "bfloat16"),
    "umt5_c": ("UMT5" + SEQ2SEQ, {**T5, "num_heads": 4, "d_kv": 7, "num_layers": 3, "feed_forward_proj": "relu",
                                  "layer_norm_epsilon": 1e-5}, "float32"),
    "modernbert_a": ("ModernBert" + MASKED, {**MODERN, "num_hidden_layers": 4, "local_attention": 16}, "float16"),
    "modernbert_b": ("ModernBert" + LABELS, {**MODERN, "num_labels": 5, "num_hidden_layers": 3, "global_attn_every_n_layers": 2,
                                             "classifier_pooling": "mean", "norm_bias": True, "attention_bias": True, "mlp_bias": True,
                                             "classifier_bias": True, "local_attention": 30}, "bfloat16"),
    "modernbert_c": ("ModernBert" + MASKED, {**MODERN, "num_hidden_layers": 5, "num_attention_heads": 2, "local_attention": 37,
                                             "decoder_bias": False, "classifier_activation": "relu", "hidden_activation": "silu",
                                             "local_rope_theta": None, "norm_eps": 1e-6}, "float32"),
    "modernbert_d": ("ModernBert" + LABELS, {**MODERN, "num_labels": 2, "local_attention": 48}, "float32"),
    "bloom_a": ("Bloom", BLOOM, "float16"),
    "bloom_b": ("Bloom", {**BLOOM, "n_layer": 3, "n_head": 4, "tie_word_embeddings": False}, "bfloat16"),
    "bloom_c": ("Bloom", {**BLOOM, "n_head": 6, "hidden_size": 36, "layer_norm_epsilon": 1e-6}, "float32"),
    "mamba2_a": ("Mamba2", {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 2, "head_dim": 8, "num_heads": 6, "n_groups": 2,
                            "state_size": 10}, "bfloat16"),
    "mamba2_b": ("Mamba2", {"vocab_size": VOCAB, "hidden_size": 16, "num_hidden_layers": 3, "expand": 3, "head_dim": 12, "num_heads": 4,
                            "n_groups": 4, "state_size": 16, "conv_kernel": 3, "use_conv_bias": False, "layer_norm_epsilon": 1e-4,
                            "time_step_limit": (0.4, 0.9)}, "float16"),
    "mamba2_d": ("Mamba2", {"vocab_size": VOCAB, "hidden_size": 16, "num_hidden_layers": 2, "head_dim": 8, "num_heads": 4, "n_groups": 2,
                            "state_size": 6, "use_bias": True}, "float32"),
    "longformer_a": ("Longformer" + MASKED, {**LONG, "attention_window": 16, "max_position_embeddings": 202}, "float16"),
    "longformer_b": ("Longformer" + LABELS, {**LONG, "num_labels": 5, "num_hidden_layers": 3, "attention_window": [8, 16, 32],
                                             "max_position_embeddings": 226}, "bfloat16"),
    "longformer_c": ("Longformer" + LABELS, {**LONG, "num_labels": 3, "num_attention_heads": 2, "attention_window": 64, "type_vocab_size": 2,
                                             "hidden_act": "relu", "max_position_embeddings": 256, "layer_norm_eps": 1e-6}, "float32"),
}


def randomize(model, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:  # sinusoids
                continue
            values = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim >= 2:
                values /= parameter.shape[-1] ** 0.5
            else:
                one = name.endswith("weight") and ("norm" in name or "ln_" in name)
                values = 0.2 * values + (1 if one else 0)
            parameter.copy_(values.to(dtype))
    return model.eval()


@contextlib.contextmanager
def no_casts_to_float32():
    """Norms and angles that the library computes in float32 whatever the model's type are computed in float64."""
    saved = torch.Tensor.float
    torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.Tensor.float = saved


def model_of(name):
    kind, fields, dtype = CASES[name]
    family = next((kind[: -len(head)] for head in (MASKED, LABELS, SEQ2SEQ) if kind.endswith(head)), kind)
    config = getattr(tf, family + "Config")(**fields, attn_implementation="eager")
    head = kind.replace("Marian" + SEQ2SEQ, "MarianMTModel") if family != kind else {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM"}.get(kind, kind + "ForCausalLM")
    return getattr(tf, head)(config), getattr(torch, dtype)


def write(name, seed):
    model, dtype = model_of(name)
    model = randomize(model, dtype, seed)
    if hasattr(model, "final_logits_bias"):  # no parameter: it is not trained
        model.final_logits_bias.copy_(torch.randn(model.final_logits_bias.shape, generator=torch.Generator().manual_seed(seed)).to(dtype))
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    copy.deepcopy(model).to(dtype).save_pretrained(folder)  # a copy: the table of angles must not be rounded
    (folder / "generation_config.json").unlink(missing_ok=True)

    generator = torch.Generator().manual_seed(seed + 1000)
    tokens = torch.randint(4, VOCAB, (1, TOKENS), generator=generator)  # the first ones are special: padding is passed over
    given = {"input_ids": tokens}
    if model.config.is_encoder_decoder:
        given = {"input_ids": torch.randint(4, VOCAB, (1, SOURCE), generator=generator), "decoder_input_ids": tokens}
    double = type(model).__name__ not in ("XGLMForCausalLM", "M2M100ForConditionalGeneration")  # their masks or sinusoids are float32
    if double:
        model = model.double()
    with torch.no_grad(), no_casts_to_float32() if double else contextlib.nullcontext():
        logits = model(**given).logits[0]
    tensors = {key: value[0].int() for key, value in given.items()}
    logits = logits.reshape(-1, logits.shape[-1]).float().contiguous()
    safetensors.torch.save_file({**tensors, "logits": logits}, folder / "expected.safetensors")
    print(f"{name:<14} {sum(p.numel() for p in model.parameters()):>7} parameters, logits within {logits.abs().max():.2f}")


if __name__ == "__main__":
    for number, case in enumerate(CASES):
        if not sys.argv[1:] or case in sys.argv[1:]:
            write(case, number)
