"""Checkpoints of published families as older and newer versions of transformers and fla write them.

    python3 tests/convert/families_versions_test.py [-v]
"""

import json
import math
import subprocess
import unittest

from families_case import BIN, FIXTURES, TOLERANCE, FamiliesCase, distance
from tarn_library import loads
from tensor_files import Tensor

# Fields that published config.json files have, and newer versions of transformers do not write.
OLDER_FIELDS = {
    "llama_a": {"is_llama_config": True, "rope_interleaved": False, "max_sequence_length": 2048, "transformers.js_config": {}},
    "mistral_a": {"attention_bias": False},
    "phi3_a": {"attention_bias": False, "original_max_position_embeddings": 256, "auto_map": {"AutoConfig": "x"}},
    "gpt2_a": {"n_ctx": 208, "n_special": 0, "predict_special_tokens": True, "task_specific_params": {}},
    "gpt_neo_a": {"gradient_checkpointing": False},
    "opt_a": {"activation_dropout": 0.0, "prefix": "</s>", "layerdrop": 0.0},
    "xglm_a": {"activation_dropout": 0, "decoder_start_token_id": 2},
    "bert_a": {"directionality": "bidi", "pooler_fc_size": 24, "pooler_type": "first_token_transform", "hidden_act": "gelu_python",
               "architectures": ["BertForPreTraining"]},
    "bert_b": {"num_labels": 5},
    "distilbert_a": {"tie_weights_": True, "qa_dropout": 0.1},
    "bart_a": {"_num_labels": 3, "force_bos_token_to_be_generated": True, "normalize_before": False, "output_past": True,
               "extra_pos_embeddings": 2, "static_position_embeddings": False, "architectures": ["BartModel"]},
    "marian_a": {"add_bias_logits": False, "add_final_layer_norm": False, "normalize_before": False, "normalize_embedding": False,
                 "static_position_embeddings": True, "extra_pos_embeddings": 41, "bos_token_id": 0, "num_hidden_layers": 2},
    "gla_a": {"use_gk": True, "rms_norm_eps": 1e-6, "norm_eps": None},
    "mamba2_a": {"rms_norm": True, "intermediate_size": 48, "norm_before_gate": True, "time_step_init_scheme": "random", "time_step_scale": 1.0},
    "rwkv7_a": {"hidden_ratio": 4.0},  # as fla's own converter writes it
    "gsa_a": {"expand_k": None, "exapnd_k": 1, "clamp_min": None, "use_output_gate": True},
    "abc_a": {"gate_low_rank_dim": 16, "exapnd_k": 0.7, "exapnd_v": 1},
    "m2m_100_a": {"early_stopping": True, "gradient_checkpointing": False},
    "m2m_100_b": {"max_length": 200, "tokenizer_class": "NllbTokenizer", "num_hidden_layers": 3, "bos_token_id": 0},  # of NLLB
    "t5_a": {"output_past": True, "task_specific_params": {}, "relative_attention_max_distance": None, "is_gated_act": None,
             "dense_act_fn": None, "num_decoder_layers": None, "gradient_checkpointing": False},
    "modernbert_a": {"layer_norm_eps": 1e-5, "position_embedding_type": "absolute", "gradient_checkpointing": False},
    "longformer_a": {"attention_mode": "longformer", "ignore_attention_mask": False, "gradient_checkpointing": False},  # as published
    "bloom_a": {"n_embed": 24, "hidden_size": None, "num_attention_heads": 3, "n_head": None, "n_inner": None, "offset_alibi": 100,
                "attention_softmax_in_fp32": True, "masked_softmax_fusion": True, "bias_dropout_fusion": True, "skip_bias_add": True,
                "skip_bias_add_qkv": False, "unk_token_id": 0, "seq_length": 2048},
    "lfm2_a": {"block_dim": 24, "block_mlp_init_scale": 1.0, "block_norm_eps": 1e-5, "block_out_init_scale": 1.0, "conv_dim": 24,
               "block_use_swiglu": True, "block_use_xavier_init": True, "conv_dim_out": 24, "conv_use_xavier_init": True,
               "num_heads": 3, "theta": 1e6, "use_pos_enc": True},
    "qwen3_next_a": {"use_sliding_window": False, "rope_scaling": None, "mlp_only_layers": []},
    "qwen3_5_text_a": {"attn_output_gate": True, "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1, "mlp_only_layers": [],
                       "mtp_use_dedicated_embeddings": False, "full_attention_interval": 4},
    "recurrent_gemma_a": {"w_init_variance_scale": 0.01, "final_w_init_variance_scale": 0.07, "lru_width": None,
                          "embeddings_scale_by_sqrt_dim": True},
    "falcon_h1_a": {"attn_layer_indices": None, "mamba_use_mlp": True, "mlp_expansion_factor": 8, "mamba_d_head": "auto"},
    "granitemoehybrid_a": {"normalization_function": "rmsnorm", "time_step_min": 0.001, "time_step_max": 0.1, "mamba_d_head": "auto",
                           "rope_parameters": None, "rope_scaling": None, "rope_theta": 1e4, "time_step_limit": None},
}


class Versions(FamiliesCase):
    def test_fields_of_fla_0_6(self):
        """At their defaults; other values are refused by name."""
        fields = {
            "delta_net_a": {"attnres_block_size": (None, 4)},
            "gated_deltanet_a": {"output_gate_activation": ("swish", "relu"), "attnres_block_size": (None, 4)},
            "kda_a": {"safe_gate": (False, True), "lower_bound": (None, -5.0)},
            "mamba2_c": {"D_has_hdim": (False, True), "norm_before_gate": (False, True), "rmsnorm": (True, False)},
        }
        for name, values in fields.items():
            for field, (default, other) in values.items():
                with self.subTest(name, field=field):
                    self.convert(self.copy(name, **{field: default}))
                    self.refused(self.copy(name, **{field: other}), f"{field}: {json.dumps(other)} is not supported, expected ")
        self.convert(self.copy("gated_deltanet_a", output_gate_activation="silu"))
        self.convert(self.copy("delta_net_b", allow_neg_eigval=False))
        self.refused(self.copy("delta_net_b", allow_neg_eigval=True), "allow_neg_eigval: true is not supported with use_beta false")
        older = dict.fromkeys(("rms_norm", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_rank"))
        newer = {"A_init_range": [1, 16], "conv_init": 0.1, "dt_init_floor": 1e-4, "dt_max": 0.1, "dt_min": 0.001}
        self.same_logits("mamba2_c", self.copy("mamba2_c", **{**older, **newer}, dt_limit=[0.0, {"__float__": "Infinity"}]))
        # Steps that a limit cuts.
        self.same_logits("mamba2_b", self.copy("mamba2_b", **{**older, **newer}, dt_limit=[0.4, 0.9], layer_norm_epsilon=None, norm_eps=1e-4))
        self.refused(self.copy("mamba2_c", dt_limit=[0.0, 1.0]), 'unknown field "time_step_limit"')

    def test_fields_of_older_versions(self):
        for name, fields in OLDER_FIELDS.items():
            with self.subTest(name):
                self.convert(self.copy(name, **fields), "--quant", "f32")
        self.same_logits("gpt_neox_b", self.copy("gpt_neox_b", rope_theta=None, partial_rotary_factor=None))
        self.same_logits("gemma2_a", self.copy("gemma2_a", layer_types=None, cache_implementation="hybrid", hidden_act="gelu"))
        self.same_logits("gemma3_text_a", self.copy("gemma3_text_a", layer_types=None, _sliding_window_pattern=None,
                                                    sliding_window_pattern=6, rope_theta=None))
        self.same_logits("smollm3_a", self.copy("smollm3_a", layer_types=None, no_rope_layers=None, rope_theta=None))
        # How configs said it before there were layer_types.
        self.same_logits("lfm2_a", self.copy("lfm2_a", layer_types=None, full_attn_idxs=[1], block_ff_dim=40, intermediate_size=7,
                                             rope_theta=None, tie_embedding=True))
        self.same_logits("lfm2_a", self.copy("lfm2_a", block_ff_dim=40, intermediate_size=None))
        self.same_logits("granitemoehybrid_a", self.copy("granitemoehybrid_a", layer_types=["mamba", "attention", "mamba"]))
        self.same_logits("recurrent_gemma_b", self.copy("recurrent_gemma_b", block_types=None, _block_types=["attention", "recurrent"]))
        self.same_logits("qwen3_next_a", self.copy("qwen3_next_a", layer_types=None, full_attention_interval=4))
        self.same_logits("qwen3_5_text_a", self.copy("qwen3_5_text_a", layer_types=None, rope_parameters=None, rope_theta=1e7,
                                                     partial_rotary_factor=0.25))
        # How configs said which layers have a window before there were layer_types.
        self.same_logits("qwen2_b", self.copy("qwen2_b", layer_types=None))
        self.same_logits("llama_f", self.copy("llama_f", rope_scaling={"type": "linear", "factor": 3.0, "finetuned": True,
                                                                        "attention_factor": None}))

    @unittest.skipUnless(loads(), "the library cannot be loaded here")
    def test_tensors_of_older_versions(self):
        def tensorflow_names(tensors):
            for name in list(tensors):
                older = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
                tensors[older] = tensors.pop(name)
            tensors["bert.embeddings.position_ids"] = Tensor("I64", (1, 2), [0, 1])

        def leftovers(tensors):
            for name in "roberta.pooler.dense", "lm_head.dense":
                tensors[name + ".weight"], tensors[name + ".bias"] = Tensor("F32", (1, 1), [0.0]), Tensor("F32", (1,), [0.0])

        def one_tensor_of_shifts(tensors):  # as fla's RWKV7Model.load_state_dict() takes it apart
            for name in [name for name in tensors if name.endswith(".attn.x_r")]:
                shifts = [tensors.pop(name[:-1] + letter) for letter in "rwkvag"]
                values = [value for shift in shifts for value in shift.values]
                tensors[name[:-1] + "x"] = shifts[0]._replace(shape=(6, len(values) // 6), values=values)

        def shifts_without_a_row(tensors):
            one_tensor_of_shifts(tensors)
            for name in [name for name in tensors if name.endswith(".x_x")]:
                rows, columns = tensors[name].shape
                tensors[name] = tensors[name]._replace(shape=(rows - 1, columns), values=tensors[name].values[columns:])

        self.same_logits("bert_a", self.retensor("bert_a", tensorflow_names))
        self.same_logits("rwkv7_a", self.retensor("rwkv7_a", one_tensor_of_shifts))
        self.refused(self.retensor("rwkv7_a", shifts_without_a_row), 'x_x": found BF16 [5, 24]', "expected 6 rows")
        self.same_logits("roberta_b", self.retensor("roberta_b", leftovers))
        without_bias = self.retensor("bart_a", lambda tensors: tensors.pop("final_logits_bias"))
        self.convert(without_bias, "--quant", "f32")

    def test_names_of_the_base_model(self):
        tokens, logits = self.expected("gpt2_a")

        def strip(tensors):
            for name in list(tensors):
                tensors[name.removeprefix("transformer.")] = tensors.pop(name)

        self.convert(self.retensor("gpt2_a", strip), "--quant", "f32")
        self.assertLess(distance(self.logits(tokens, 64), logits), TOLERANCE)

        def both(tensors):
            tensors["wte.weight"] = tensors["transformer.wte.weight"]

        self.refused(self.retensor("gpt2_a", both), "is the same as")

    @unittest.skipUnless(loads(), "the library cannot be loaded here")
    def test_names_of_the_text_alone(self):
        def shorten(tensors):
            for name in list(tensors):
                tensors[name.replace("model.language_model.", "model.")] = tensors.pop(name)

        self.same_logits("qwen3_5_text_a", self.retensor("qwen3_5_text_a", shorten))

    def test_fields_of_transformers_5(self):
        """As transformers 5.2.0 writes them."""
        kinds = {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "full_attention": {"rope_type": "default", "rope_theta": 1e6},
                 "rope_type": "default", "rope_theta": None}
        self.same_logits("gemma3_text_a", self.copy("gemma3_text_a", rope_theta=None, rope_local_base_freq=None, rope_scaling=None,
                                                    rope_parameters=kinds))
        kinds = {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                 "full_attention": {"rope_type": "default", "rope_theta": 160000.0}}
        layers = [("full" if layer % 3 == 0 else "sliding") + "_attention" for layer in range(4)]
        self.same_logits("modernbert_a", self.copy("modernbert_a", global_rope_theta=None, local_rope_theta=None, layer_types=layers,
                                                   rope_parameters=kinds))
        kinds["full_attention"]["factor"] = None
        self.same_logits("modernbert_a", self.copy("modernbert_a", global_rope_theta=None, local_rope_theta=None, rope_parameters=kinds))
        for name in "gemma3_text_a", "modernbert_a":
            self.refused(self.copy(name, rope_parameters={**kinds, "full_attention": None}), 'rope_parameters: unknown field "sliding_attention"')
        self.same_logits("bert_b", self.copy("bert_b", tie_word_embeddings=True))
        self.same_logits("gpt_neox_a", self.copy("gpt_neox_a", rotary_pct=None, partial_rotary_factor=None, rope_theta=None,
                                                 rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}))

    @unittest.skipUnless(loads(), "the library cannot be loaded here")
    def test_heads_of_transformers_5(self):
        """tie_word_embeddings is true whatever the head is, and what mt5's head reads is never scaled."""
        newer = {"tie_word_embeddings": True, "transformers_version": "5.24.0"}
        for name, tied in (("t5_a", True), ("t5_b", False), ("umt5_a", True), ("umt5_b", False)):
            self.assertEqual(json.loads((FIXTURES / name / "config.json").read_text()).get("tie_word_embeddings", True), tied)
            self.same_logits(name, self.copy(name, **newer, scale_decoder_outputs=tied))
        self.same_logits("mt5_a", self.copy("mt5_a", **newer))
        for name, more in (("t5_a", {"scale_decoder_outputs": False}), ("mt5_b", {})):  # tied, and not scaled
            folder = self.copy(name, **newer, **more)
            self.convert(folder, "--quant", "f32")
            tokens, logits = self.expected(name)
            width = json.loads((folder / "config.json").read_text())["d_model"]
            unscaled = [[math.sqrt(width) * logit for logit in row] for row in logits]
            for found in self.found(name, tokens, logits):
                self.assertLess(distance(found, unscaled), TOLERANCE)
        # Of version 4, the config says it alone.
        self.refused(self.copy("mt5_a", tie_word_embeddings=True), '"lm_head.weight": found', "to which config.json ties it")
        self.refused(self.copy("t5_a", tie_word_embeddings=False), '"lm_head.weight": missing')

    def test_growth_of_the_context_without_its_factor(self):
        lists = {"short_factor": [1.0, 1.1, 1.2, 1.5], "long_factor": [1.0, 1.5, 2.5, 7.0]}
        for rope in {"rope_type": "longrope", **lists}, {"rope_type": "yarn"}:
            rope["original_max_position_embeddings"] = 64
            models = []
            for factor in {}, {"factor": 4.0}, {"factor": 3.0}:
                self.convert(self.copy("llama_a", max_position_embeddings=256, rope_scaling={**rope, **factor}), "--name", "same")
                models.append(self.model.read_bytes())
            self.assertEqual(models[0], models[1])
            self.assertNotEqual(models[0], models[2])

    def test_layers_without_rope_have_no_factor_of_rope(self):
        yarn = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 128}
        folder = self.copy("smollm3_a", rope_scaling=yarn, max_position_embeddings=256, max_window_layers=28)
        subprocess.run([BIN / "tarn-convert", folder, "--write-checkpoint", "-o", self.work / "ours"], check=True, capture_output=True)
        config = json.loads((self.work / "ours" / "config.json").read_text(encoding="utf-8"))
        self.assertEqual(["scale" in layer for layer in config["attention"]], [rope is not False for rope in config["layer_rope"]])

    def test_newer_rope_parameters(self):
        tokens, logits = self.expected("llama_a")
        folder = self.copy("llama_a", rope_theta=None, rope_parameters={"rope_type": "default", "rope_theta": 50000.0})
        self.convert(folder, "--quant", "f32")
        self.assertLess(distance(self.logits(tokens, 64), logits), TOLERANCE)


if __name__ == "__main__":
    unittest.main()
