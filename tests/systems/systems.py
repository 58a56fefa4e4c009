"""Every causal attention system: a configuration of it for a language model, and the state that MATH 4.1 says one key/value head has.

Used by systems_test.py (small models) and by systems_full.py (lm-small).
"""

import collections

# attention: the object of config.json. elements(d, dv): floats of one key/value head. counters: floats of one head that MATH 4.1 counts apart
# or not at all (members of slots). bound: tokens from a reset on, or None.
System = collections.namedtuple("System", "name attention elements bound")


def _linear(features, extra=0, z=True):
    return lambda d, dv: features(d) * (dv + (1 if z else 0)) + extra


def _slots(n, extra=0):
    return lambda d, dv: n * (d + dv) + extra


def systems(max_context):
    """`max_context` bounds those that must have a bound."""
    D, n, w = 64, 32, 64
    return [
        System("rfa_gaussian", {"system": "rfa", "feature_map": "gaussian", "num_features": D}, _linear(lambda d: 2 * D), None),
        System("rfa_arccos", {"system": "rfa", "feature_map": "arccos", "num_features": D}, _linear(lambda d: D), None),
        System("rfa_gate", {"system": "rfa", "feature_map": "gaussian", "num_features": D, "gate": "forget"}, _linear(lambda d: 2 * D), None),
        System("rfa_normfree", {"system": "rfa_normfree", "num_features": D}, _linear(lambda d: 2 * D, extra=1), None),
        System("linear_transformer", {"system": "linear_transformer"}, _linear(lambda d: d), None),
        System("performer_trig", {"system": "performer_trig", "num_features": D}, _linear(lambda d: 2 * D, extra=1), None),
        System("performer_positive", {"system": "performer_positive", "num_features": 128}, _linear(lambda d: 128, extra=1), None),
        System("performer_relu", {"system": "performer_relu"}, _linear(lambda d: d), None),
        System("performer_relu_projection", {"system": "performer_relu", "projection": True, "num_features": D}, _linear(lambda d: D), None),
        System("dpfp", {"system": "dpfp", "nu": 2}, _linear(lambda d: 4 * d), None),
        System("dpfp_fla", {"system": "dpfp", "nu": 1, "dpfp_variant": "fla"}, _linear(lambda d: 2 * d), None),
        System("delta_rule", {"system": "delta_rule", "nu": 1}, _linear(lambda d: 2 * d, z=False), None),
        System("delta_rule_attn_norm", {"system": "delta_rule", "nu": 1, "attention_normalized": True}, _linear(lambda d: 2 * d), None),
        System("deltanet", {"system": "deltanet"}, _linear(lambda d: d, z=False), None),
        System("gated_deltanet", {"system": "gated_deltanet"}, _linear(lambda d: d, z=False), None),
        System("gated_deltanet_vector", {"system": "gated_deltanet", "gate": "softplus_vector"}, _linear(lambda d: d, z=False), None),
        System("t2r", {"system": "t2r", "num_features": 32}, _linear(lambda d: 32), None),
        System("gla", {"system": "gla"}, _linear(lambda d: d, z=False), None),
        System("retnet", {"system": "retnet"}, _linear(lambda d: d, z=False), None),
        System("hgrn2", {"system": "hgrn2"}, _linear(lambda d: d, z=False), None),
        System("mamba2", {"system": "mamba2"}, _linear(lambda d: d, z=False), None),
        System("rwkv7", {"system": "rwkv7"}, _linear(lambda d: d, z=False), None),
        System("short_conv", {"system": "short_conv", "taps": 4}, lambda d, dv: 3 * dv, None),
        System("rg_lru", {"system": "rg_lru"}, lambda d, dv: dv, None),
        System("diagonal_recurrence", {"system": "diagonal_recurrence"}, lambda d, dv: dv, None),
        System("diagonal_recurrence_root", {"system": "diagonal_recurrence", "decay": "exponential", "input": "root"},
               lambda d, dv: dv, None),
        System("linear_attention", {"system": "linear_attention", "feature_map": "mlp_relu", "num_features": D, "gate": "forget",
                                    "den_mode": "add"}, _linear(lambda d: D), None),
        System("abc_mlp", {"system": "abc_mlp", "num_slots": n}, _slots(n, extra=n), None),
        System("abc_relu_masked", {"system": "abc_mlp", "num_slots": n, "activation": "relu", "mask_empty": True}, _slots(n, extra=n), None),
        System("linformer", {"system": "linformer", "num_slots": n, "max_len": max_context}, _slots(n), max_context),
        System("linformer_values", {"system": "linformer", "num_slots": n, "max_len": max_context, "own_value_control": True},
               _slots(n), max_context),
        System("abc_of_heads", {"system": "abc_mlp", "num_slots": n, "own_value_control": True, "control_input": "heads"},
               _slots(n, extra=2 * n), None),
        System("abc_rd", {"system": "abc_rd", "num_slots": n}, _slots(n), None),
        System("compressive_mean", {"system": "compressive_mean", "num_slots": n, "max_len": max_context}, _slots(n, extra=n), max_context),
        System("l2g_global", {"system": "l2g_global", "global_positions": [0, 5, 40, 300]}, _slots(4), None),
        System("clustering_online", {"system": "clustering_online", "num_slots": n}, _slots(n, extra=n), None),
        System("gsa", {"system": "gsa", "num_slots": n}, _slots(n), None),
        System("luna_causal", {"system": "luna_causal", "num_slots": n}, _slots(n), None),
        System("slot_attention", {"system": "slot_attention", "control": "gsa", "num_slots": n}, _slots(n), None),
        System("slot_attention_counts", {"system": "slot_attention", "control": "assigned", "num_slots": n, "mask_empty": True},
               _slots(n, extra=n), None),
        System("softmax", {"system": "softmax", "max_context": max_context}, _slots(max_context), max_context),
        System("sliding_window", {"system": "sliding_window", "window": w}, _slots(w), None),
        System("sliding_window_literal", {"system": "sliding_window", "window": w, "mask_empty": False}, _slots(w), None),
        System("dilated_window", {"system": "dilated_window", "window": w, "dilation": 3}, _slots(3 * w), None),
        System("strided_window", {"system": "strided_window", "window": w, "stride": 8, "num_strided": 24}, _slots(w + 24), None),
        System("cache_attention", {"system": "cache_attention", "policy": "window", "window": w, "dilation": 2}, _slots(2 * w), None),
        System("l2g_window", {"system": "l2g_window", "window": w, "global_positions": [0, 7, 100]}, _slots(w + 3), None),
        System("compressive_transformer", {"system": "compressive_transformer", "segment_len": 32, "mem_len": 48, "cmem_len": 40,
                                           "compression_ratio": 4}, _slots(32 + 48 + 40), None),
        System("compressive_conv", {"system": "compressive_transformer", "segment_len": 32, "mem_len": 48, "cmem_len": 40,
                                    "compression_ratio": 4, "compression": "conv"}, _slots(32 + 48 + 40 + 3 * 8 + 1), None),
        System("memory_compressed", {"system": "memory_compressed", "compression_factor": 3, "max_context": max_context},
               _slots(max_context // 3 + 2), max_context),
    ]


def config(attention, hidden=64, layers=2, heads=2, kv_heads=None, vocab=256, intermediate=128):
    return {"task": "causal_lm", "vocab_size": vocab, "hidden_size": hidden, "num_layers": layers, "num_heads": heads,
            "num_kv_heads": kv_heads or heads, "intermediate_size": intermediate, "hidden_act": "relu", "norm": "layernorm",
            "norm_eps": 1e-5, "norm_position": "pre", "final_norm": True, "attention_bias": False, "mlp_bias": True,
            "position_embedding": "sinusoidal", "scale_embeddings": True, "tie_word_embeddings": True, "tokenizer": "none",
            "attention": attention}
