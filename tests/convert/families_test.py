"""Small checkpoints of published families (tests/data/families): the logits of their originals, states and tensors.

    python3 tests/convert/families_test.py [-v]
"""

import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from families_case import BIN, FIXTURES, TOLERANCE, TORCH, FamiliesCase, distance
from tarn_library import loads
from tensor_files import Tensor, read_safetensors

FIXTURE_COUNT = 182
PUBLISHED_CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "configs" / "published"
PUBLISHED = {"smollm2-360m": 362, "gla-340m": 342, "retnet-1.3b": 1352, "gated-deltanet-1.3b": 1387, "qwen2.5-3b": 3086,
             "falcon-h1-0.5b": 521, "firefox-tiny": 17, "firefox-base": 43, "rwkv7-0.4b": 451, "lfm2-350m": 354, "qwen3.5-0.8b": 752}

# With the first contexts alone, other angles.
OPTIONS = {"phi3_e": ("--max-context", "208")}


def mixer_elements(inner, groups, state, taps):
    """Of a layer of Mamba 2."""
    return inner * state + (taps - 1) * (inner + 2 * groups * state)


# Elements of the states of a layer of these, by the fields of config.json: docs/published-models.md.
STATES = {
    "abc": lambda c: c["H"] * c["n"] * (c["d"] + c["dv"] + 1),
    "delta_net": lambda c: c["H"] * c["d"] * c["dv"],
    "gated_deltanet": lambda c: c["H"] * c["d"] * c["dv"],
    "kda": lambda c: c["H"] * c["d"] * c["dv"],
    "gla": lambda c: c["Hkv"] * c["d"] * c["dv"],
    "gsa": lambda c: c["Hkv"] * c["n"] * (c["d"] + c["dv"]),
    "hgrn2": lambda c: c["H"] * c["d"] * c["dv"],
    "linear_attn": lambda c: c["Hkv"] * c["M"] * (c["dv"] + c["norm_feature_map"]),
    "retnet": lambda c: c["H"] * c["d"] * c["dv"],
}

# The same of hybrids: of a layer without softmax attention, by its own fields, which those of "text_config" may be.
HYBRIDS = {
    "lfm2": lambda c: (c["conv_L_cache"] - 1) * c["hidden_size"],
    "qwen3_next": lambda c: c["V"] * c["dk"] * c["dv"] + (c["linear_conv_kernel_dim"] - 1) * (2 * c["K"] * c["dk"] + c["V"] * c["dv"]),
    "recurrent_gemma": lambda c: c["conv1d_width"] * (c["lru_width"] or c["hidden_size"]),
}
HYBRIDS["falcon_h1"] = HYBRIDS["granitemoehybrid"] = lambda c: mixer_elements(
    c.get("mamba_d_ssm") or c["mamba_expand"] * c["hidden_size"], c["mamba_n_groups"], c["mamba_d_state"], c["mamba_d_conv"])
HYBRIDS["qwen3_5"] = HYBRIDS["qwen3_5_text"] = HYBRIDS["qwen3_next"]

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


class Families(FamiliesCase):
    @unittest.skipUnless(loads(), "the library cannot be loaded here")
    def test_logits_are_those_of_the_originals(self):
        names = sorted(path.name for path in FIXTURES.iterdir())
        self.assertEqual(len(names), FIXTURE_COUNT)
        for name in names:
            with self.subTest(name):
                self.convert(FIXTURES / name, "--quant", "f32", *OPTIONS.get(name, ()))
                tokens, logits = self.expected(name)
                differences = [distance(found, logits) for found in self.found(name, tokens, logits)]
                if "-v" in sys.argv:
                    print(f"{name:<14} " + " ".join(f"{difference:.1e}" for difference in differences))
                for difference in differences:  # no max(): it passes over a NaN
                    self.assertLess(difference, TOLERANCE)

    def test_files_of_torch(self):
        for name, family in (("zip", "gla_a"), ("old", "qwen2_a"), ("shards", "llama_a")):
            with self.subTest(name):
                self.convert(FIXTURES / family, "--name", "same")
                expected = self.model.read_bytes()
                self.convert(TORCH / name, "--name", "same")
                self.assertEqual(self.model.read_bytes(), expected)

    def test_a_file_of_torch_with_another_name(self):
        self.convert(FIXTURES / "gla_a", "--name", "same")
        expected = self.model.read_bytes()
        folder = self.torch_folder(TORCH / "zip" / "pytorch_model.bin")
        (folder / "pytorch_model.bin").rename(folder / "model.pt")
        self.convert(folder, "--name", "same")
        self.assertEqual(self.model.read_bytes(), expected)
        shutil.copy(TORCH / "views.pt", folder / "other.ckpt")
        self.refused(folder, "has model.pt and other.ckpt: which of them is the model?")
        shutil.copy(FIXTURES / "gla_a" / "model.safetensors", folder)  # is taken first
        self.convert(folder, "--name", "same")
        self.assertEqual(self.model.read_bytes(), expected)
        self.refused(folder / "model.pt", "model.pt: a file, expected the directory that holds it and config.json")

    @unittest.skipUnless(loads(), "the library cannot be loaded here")
    def test_windows_of_a_decoder_keep_distances(self):
        """A window as long as the text, and one with first tokens, give the logits of full attention."""
        tokens, logits = self.expected("bloom_a")
        for options in ("--window", "200"), ("--window", "198", "--sinks", "2"):
            self.convert(FIXTURES / "bloom_a", "--quant", "f32", *options)
            for chunk in 1, 7, 64:
                self.assertLess(distance(self.logits(tokens, chunk), logits), TOLERANCE)

    def test_what_other_families_of_fla_have(self):
        self.refused(self.copy("gla_a", model_type="rwkv6"), 'model_type: "rwkv6" is not supported: its layers mix')
        self.refused(self.copy("gla_a", elementwise_affine=False), "elementwise_affine: false is not supported")
        self.refused(self.copy("gla_a", hidden_act="gelu"), 'hidden_act: "gelu" is not supported, expected "swish"')
        self.refused(self.copy("gla_a", feature_map="hedgehog"), 'feature_map: "hedgehog" is not supported')
        self.refused(self.copy("gla_a", expand_k=0.3), "expand_k: ", "which num_heads = 4 does not divide")
        self.refused(self.copy("gla_a", num_kv_heads=3), "num_kv_heads: 3 does not divide num_heads = 4")
        self.refused(self.copy("gla_b", conv_size=9), "conv_size: 9 is outside 2 .. 8")
        self.refused(self.copy("gla_b", conv_size=3), '"model.layers.0.attn.k_conv1d.weight": found', "expected [24, 3]")
        self.refused(self.copy("gla_a", clamp_min=0.5), "gate_clamp_min", "is above 0")
        self.refused(self.copy("retnet_a", num_kv_heads=1), "num_kv_heads: every query head has a decay")
        self.refused(self.copy("linear_attn_a", feature_map="softmax"), 'feature_map: "softmax" is not')
        self.refused(self.copy("linear_attn_d", norm_q=True, norm_k=True), "norm_q: true is not supported for this feature_map")
        self.refused(self.copy("linear_attn_b", norm_k=False), "norm_q: a norm of q alone or k alone is not supported")
        self.refused(self.copy("linear_attn_c", norm_k=True, norm_q=True), 'norm_q: true is not supported for this feature_map')
        self.refused(self.copy("delta_net_a", qk_activation="elu"), 'qk_activation: "elu" is not supported with qk_norm "l2"')
        self.refused(self.copy("delta_net_c", qk_activation="silu"), 'qk_activation: "silu" is not supported with qk_norm "sum"')
        self.refused(self.copy("gsa_a", expand_v=2), "expand_v: only 1 is supported")
        self.refused(self.copy("gated_deltanet_a", num_v_heads=4), "num_v_heads: 4 is no multiple of num_heads = 3")
        self.refused(self.copy("gated_deltanet_a", expand_v=1.3), "expand_v: 1.3 makes no width of heads of head_dim = 8")
        self.refused(self.copy("gated_deltanet_c", conv_size=1), "conv_size: 1 is outside 2 .. 8")
        self.refused(self.copy("kda_b", num_v_heads=4), "num_v_heads: 4 is not supported, expected num_heads = 2")
        folder = self.copy("abc_a")
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**config, "clamp_max": None}), encoding="utf-8")
        self.refused(folder, "clamp_max: null is not supported")
        error = self.convert(FIXTURES / "gla_a", "--window", "16", status=2)
        self.assertIn("--window", error)

        def flatten(tensors):
            name = "model.layers.0.attn.q_conv1d.weight"
            tensors[name] = tensors[name]._replace(shape=(tensors[name].shape[0], 4))

        self.refused(self.retensor("gla_b", flatten), '"model.layers.0.attn.q_conv1d.weight": found F16 [24, 4]', "[columns, 1, taps]")

    def test_fields_of_fla_0_6(self):
        """At their defaults; other values are refused by name."""
        fields = {
            "delta_net_a": {"allow_neg_eigval": (False, True), "attnres_block_size": (None, 4)},
            "gated_deltanet_a": {"output_gate_activation": ("swish", "sigmoid"), "attnres_block_size": (None, 4)},
            "kda_a": {"safe_gate": (False, True), "lower_bound": (None, -5.0)},
            "mamba2_c": {"D_has_hdim": (False, True), "norm_before_gate": (False, True), "rmsnorm": (True, False)},
        }
        for name, values in fields.items():
            for field, (default, other) in values.items():
                with self.subTest(name, field=field):
                    self.convert(self.copy(name, **{field: default}))
                    self.refused(self.copy(name, **{field: other}), f"{field}: {json.dumps(other)} is not supported, expected ")
        self.convert(self.copy("gated_deltanet_a", output_gate_activation="silu"))
        older = dict.fromkeys(("rms_norm", "time_step_floor", "time_step_limit", "time_step_max", "time_step_min", "time_step_rank"))
        newer = {"A_init_range": [1, 16], "conv_init": 0.1, "dt_init_floor": 1e-4, "dt_max": 0.1, "dt_min": 0.001}
        self.same_logits("mamba2_c", self.copy("mamba2_c", **{**older, **newer}, dt_limit=[0.0, {"__float__": "Infinity"}]))
        # Steps that a limit cuts.
        self.same_logits("mamba2_b", self.copy("mamba2_b", **{**older, **newer}, dt_limit=[0.4, 0.9], layer_norm_epsilon=None, norm_eps=1e-4))
        self.refused(self.copy("mamba2_c", dt_limit=[0.0, 1.0]), 'unknown field "time_step_limit"')

    def test_states_of_constant_size(self):
        for folder in sorted(FIXTURES.iterdir()):
            family = folder.name.rpartition("_")[0]
            if family not in STATES:
                continue
            with self.subTest(folder.name):
                self.convert(folder)
                done = subprocess.run([BIN / "tarn", "inspect", self.model, "--json"], capture_output=True, text=True, check=True)
                config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
                hidden, heads = config["hidden_size"], config["num_heads"]
                if family == "hgrn2" and config["expand_ratio"]:
                    heads = hidden // config["expand_ratio"]
                sizes = {**config, "H": heads, "Hkv": config.get("num_kv_heads") or heads}
                if family == "hgrn2":
                    sizes.update(d=hidden // heads, dv=hidden // heads)
                elif "num_v_heads" in config:
                    sizes.update(H=config["num_v_heads"] or heads, d=config["head_dim"],
                                 dv=int(config["head_dim"] * config["expand_v"]))
                else:
                    sizes.update(d=int(hidden * config["expand_k"]) // heads, dv=int(hidden * config["expand_v"]) // heads)
                sizes["n"] = config.get("num_slots") or sizes["d"]
                sizes["M"] = {"dpfp": 8, "hedgehog": 2}.get(config.get("feature_map"), 1) * sizes["d"]
                elements = STATES[family](sizes)
                if config.get("use_short_conv") and family != "retnet":
                    width = (sizes["H"] + sizes["Hkv"]) * sizes["d"] + sizes["Hkv"] * sizes["dv"]
                    if "num_v_heads" in config:
                        width = 2 * heads * sizes["d"] + sizes["H"] * sizes["dv"]
                    elements += (config["conv_size"] - 1) * width
                held = sum(op["state_bytes"] for op in json.loads(done.stdout)["ops"])
                attn = config.get("attn") or {"layers": []}
                cached = len(attn["layers"])
                rows = attn.get("window_size") or config["max_position_embeddings"]
                cache = 2 * rows * attn["num_kv_heads"] * hidden // attn["num_heads"] if cached else 0
                self.assertEqual(held, 4 * (elements * (config["num_hidden_layers"] - cached) + cache * cached))

    def test_states_of_mixers(self):
        def held():
            done = subprocess.run([BIN / "tarn", "inspect", self.model, "--json"], capture_output=True, text=True, check=True)
            return sum(op["state_bytes"] for op in json.loads(done.stdout)["ops"])

        for name in "abc":
            with self.subTest(name):
                self.convert(FIXTURES / f"mamba2_{name}")
                c = json.loads((FIXTURES / f"mamba2_{name}/config.json").read_text(encoding="utf-8").replace("Infinity", "0"))
                elements = mixer_elements(c["expand"] * c["hidden_size"], c["n_groups"], c["state_size"], c["conv_kernel"])
                self.assertEqual(held(), 4 * elements * c["num_hidden_layers"])
                self.convert(FIXTURES / f"hgrn_{name}")
                c = json.loads((FIXTURES / f"hgrn_{name}/config.json").read_text(encoding="utf-8"))
                columns, taps = c["expand_ratio"] * c["hidden_size"], c["conv_size"] if c["use_short_conv"] else 1
                self.assertEqual(held(), 4 * (columns + (taps - 1) * 2 * columns) * c["num_hidden_layers"])
                self.convert(FIXTURES / f"rwkv7_{name}")
                c = json.loads((FIXTURES / f"rwkv7_{name}/config.json").read_text(encoding="utf-8"))
                width = c["head_dim"] or c["hidden_size"] // c["num_heads"]
                elements = (width + 2) * c["hidden_size"]
                self.assertEqual(held(), 4 * elements * c["num_hidden_layers"])

    def test_hybrids(self):
        note = self.convert(FIXTURES / "gla_d")
        self.assertIn("--max-context", note)
        tokens, logits = self.expected("gla_d")
        self.convert(FIXTURES / "gla_d", "--quant", "f32", "--max-context", "200")
        self.assertLess(distance(self.logits(tokens, 7), logits), TOLERANCE)
        # A window changes the layers with full attention alone.
        self.convert(FIXTURES / "gla_d", "--quant", "f32", "--window", "16")
        windowed = self.logits(tokens, 7)
        self.assertLess(distance(windowed[:16], logits[:16]), TOLERANCE)
        self.assertGreater(distance(windowed[100:], logits[100:]), 100 * TOLERANCE)
        self.assertIn("--window", self.convert(FIXTURES / "retnet_d", "--window", "16", status=2))

        def attn(**changes):
            config = json.loads((FIXTURES / "gla_d/config.json").read_text(encoding="utf-8"))
            return self.copy("gla_d", attn={**config["attn"], **changes})

        self.refused(attn(layers=None), "attn: layers: it is missing, expected a list of numbers")
        nulls = dict.fromkeys(("num_kv_heads", "qkv_bias", "window_size", "rope_theta"))
        self.same_logits("delta_net_d", self.copy("delta_net_d", attn={"layers": [1], "num_heads": 4, **nulls}))
        self.refused(attn(num_heads=5), "attn: num_heads: 5 heads of hidden_size = 24")
        self.refused(attn(num_kv_heads=3), "attn: num_heads: 2 heads of hidden_size = 24 and 3 of k and v")
        self.refused(attn(qk_norm=True), "attn", "qk_norm")
        self.refused(self.copy("rwkv7_a", attn={"layers": [1], "num_heads": 2}), "attn: layers with softmax attention")

    def test_states_of_hybrids(self):
        context = 32
        for folder in sorted(FIXTURES.iterdir()):
            family = folder.name.rpartition("_")[0]
            if family not in HYBRIDS:
                continue
            with self.subTest(folder.name):
                self.convert(folder, *(() if family == "recurrent_gemma" else ("--max-context", str(context))))
                config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
                config = config.get("text_config", config)
                heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
                head_dim = config.get("head_dim") or config["hidden_size"] // heads
                rows, types = context, config.get("layer_types")
                if family == "recurrent_gemma":
                    rows = config["attention_window_size"] + 1
                    types = ["full_attention" if kind == "attention" else kind for kind in config["block_types"] * layers][:layers]
                if family == "granitemoehybrid":
                    types = ["full_attention" if kind == "attention" else kind for kind in types]
                if family == "falcon_h1":  # both in every layer
                    types = ["full_attention", "mamba"] * layers
                sizes = dict(config)
                for short, key in (("V", "num_value_heads"), ("K", "num_key_heads"), ("dk", "key_head_dim"), ("dv", "value_head_dim")):
                    sizes[short] = config.get("linear_" + key)
                cache = 2 * (config.get("num_key_value_heads") or heads) * head_dim * rows
                elements = sum(cache if kind == "full_attention" else HYBRIDS[family](sizes) for kind in types)
                done = subprocess.run([BIN / "tarn", "inspect", self.model, "--json"], capture_output=True, text=True, check=True)
                self.assertEqual(sum(op["state_bytes"] for op in json.loads(done.stdout)["ops"]), 4 * elements)

    def test_tensors_are_named_as_in_the_folder(self):
        def drop(tensors):
            del tensors["model.layers.1.self_attn.k_proj.weight"]

        def reshape(tensors):
            up = tensors["model.layers.0.mlp.up_proj.weight"]
            tensors["model.layers.0.mlp.up_proj.weight"] = up._replace(shape=up.shape[::-1])

        def add(tensors):
            tensors["model.layers.0.self_attn.q_norm.weight"] = tensors["model.norm.weight"]

        def cut(tensors):
            name = "model.layers.0.self_attn.qkv_proj.weight"
            half = tensors[name].shape[0] // 2
            tensors[name] = tensors[name]._replace(shape=(half, 24), values=tensors[name].values[: half * 24])

        self.refused(self.retensor("llama_a", drop), '"model.layers.1.self_attn.k_proj.weight": missing, expected [8, 24]')
        self.refused(self.retensor("llama_a", reshape), '"model.layers.0.mlp.up_proj.weight": found F16 [24, 40]',
                     "expected [40, 24]")
        self.refused(self.retensor("llama_a", add), '"model.layers.0.self_attn.q_norm.weight": unknown')
        self.refused(self.retensor("phi3_a", cut), '"model.layers.0.self_attn.qkv_proj.weight"')

        def cut_and_drop(tensors):
            cut(tensors)
            del tensors["model.norm.weight"]

        def add_bias(tensors):
            tensors["model.layers.0.self_attn.q_proj.bias"] = tensors["model.norm.weight"]

        self.refused(self.retensor("phi3_a", cut_and_drop), "2 tensors do not fit config.json (missing: 1, different: 1, unknown: 0)",
                     '"model.layers.0.self_attn.qkv_proj.weight": found', '"model.norm.weight": missing')
        self.refused(self.retensor("llama_a", add_bias), '"model.layers.0.self_attn.q_proj.bias": unknown')

    def test_list_of_tensors_has_both_names(self):
        done = subprocess.run([BIN / "tarn-convert", "--list-tensors", FIXTURES / "llama_a"], capture_output=True, text=True,
                              check=True)
        self.assertIn("model.layers.1.attn.k_proj.weight [8, 24] from model.layers.1.self_attn.k_proj.weight\n", done.stdout)
        tensors = read_safetensors(FIXTURES / "llama_a" / "model.safetensors")
        names = {line.split(" from ")[-1].split(" [")[0] for line in done.stdout.splitlines()}
        self.assertEqual(names, set(tensors))

    def test_ranks_that_are_null(self):
        """As fla's RWKV7Attention computes them; 2.5 steps of 32 are two."""
        config = json.loads((FIXTURES / "rwkv7_a/config.json").read_text(encoding="utf-8"))
        config.update(dict.fromkeys(("decay_low_rank_dim", "a_low_rank_dim", "v_low_rank_dim", "gate_low_rank_dim", "value_dim"), None))
        path = self.work / "config.json"
        for hidden, width, ranks in ((1024, 64, [64, 64, 64, 160]), (2048, 128, [224, 224, 160, 224]), (24, 8, [32] * 4)):
            path.write_text(json.dumps({**config, "hidden_size": hidden, "head_dim": width, "num_heads": hidden // width}), encoding="utf-8")
            done = subprocess.run([BIN / "tarn-convert", "--list-tensors", path], capture_output=True, text=True, check=True)
            found = re.findall(rf"\[(\d+), {hidden}\] from model\.layers\.1\.attn\.([wavg])_lora\.lora\.0\.weight", done.stdout)
            self.assertEqual({letter: int(rank) for rank, letter in found}, dict(zip("wavg", ranks)))

    def test_published_configs_have_their_sizes(self):
        """examples/configs/published: millions of parameters, with a tied head once."""
        for name, millions in PUBLISHED.items():
            with self.subTest(name):
                done = subprocess.run([BIN / "tarn-convert", "--list-tensors", PUBLISHED_CONFIGS / f"{name}.json"],
                                      capture_output=True, text=True, check=True)
                shapes = re.findall(r" \[([\d, ]+)\]", done.stdout)
                total = sum(math.prod(map(int, shape.split(","))) for shape in shapes)
                self.assertEqual(round(total / 1e6), millions)
        self.assertEqual(set(PUBLISHED), {path.stem for path in PUBLISHED_CONFIGS.glob("*.json")})

    def test_copies_of_tied_tensors_are_compared(self):
        def copy_of(name, source, change):
            def add(tensors):
                values = list(tensors[source].values)
                values[-1] += change
                tensors[name] = tensors[source]._replace(values=values)
            return add

        for fixture, name, source in (("bart_a", "model.encoder.embed_tokens.weight", "model.shared.weight"),
                                      ("bert_a", "cls.predictions.decoder.bias", "cls.predictions.bias"),
                                      ("roberta_a", "lm_head.decoder.bias", "lm_head.bias")):
            self.convert(self.retensor(fixture, copy_of(name, source, 0.0)))
            self.refused(self.retensor(fixture, copy_of(name, source, 1.0)), f'tensor "{name}" is not the same as "{source}"')

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

    def test_parts_of_a_tensor_are_all_of_it(self):
        def resize(name, rows):
            def change(tensors):
                old = tensors[name]
                count = rows(old.shape[0]) * math.prod(old.shape[1:])
                tensors[name] = old._replace(shape=(rows(old.shape[0]), *old.shape[1:]), values=(list(old.values) * 2)[:count])
            return change

        for name in "self_attn.qkv_proj", "mlp.gate_up_proj":
            tensor = f"model.layers.0.{name}.weight"
            for rows in (lambda n: n - 1), (lambda n: 2 * n), (lambda n: n // 3):
                self.refused(self.retensor("phi3_b", resize(tensor, rows)), f'"{tensor}": found F16 [', "rows")
        self.refused(self.retensor("gpt2_a", resize("transformer.h.0.attn.c_attn.bias", lambda n: n // 3)), "expected 72 rows")

    def test_ends_of_texts(self):
        def special(name, **changes):
            self.convert(self.copy(name, **changes))
            done = subprocess.run([BIN / "tarn", "inspect", self.model, "--json"], capture_output=True, text=True, check=True)
            return [json.loads(done.stdout)["model"][key] for key in ("bos_token", "eos_token")]

        self.assertEqual(special("llama_c"), [1, 2])  # the first of [2, 3]
        self.assertEqual(special("llama_a", bos_token_id=40, eos_token_id=41), [40, -1])  # 41 tokens
        self.assertIn("eos_token_id: 41 is no token of the vocabulary of 41", self.convert(self.copy("llama_a", eos_token_id=41)))
        self.assertIn("eos_token_id: only the first of [2,3] is used", self.convert(FIXTURES / "llama_c"))
        self.assertEqual(special("bart_a"), [2, 2])
        self.assertEqual(special("bart_a", decoder_start_token_id=7), [7, 2])
        self.assertEqual(special("m2m_100_a", decoder_start_token_id=None), [2, 2])

    def test_a_tokenizer_of_rwkv(self):
        folder = self.copy("rwkv7_a")
        lines = "".join(f"{i} '{chr(96 + i)}' 1\n" for i in range(1, 27))
        (folder / "rwkv_vocab_v20230424.txt").write_text(lines, encoding="utf-8")
        self.assertIn("is read as rwkv_vocab.txt alone: copy it", self.convert(folder))
        (folder / "rwkv_vocab.txt").write_text(lines, encoding="utf-8")
        self.convert(folder)
        shown = subprocess.run([BIN / "tarn", "tokenize", self.model, "-p", "abz", "--ids"], check=True, capture_output=True, text=True)
        self.assertEqual(shown.stdout.split(), ["1", "2", "26"])

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

    def test_newer_rope_parameters(self):
        tokens, logits = self.expected("llama_a")
        folder = self.copy("llama_a", rope_theta=None, rope_parameters={"rope_type": "default", "rope_theta": 50000.0})
        self.convert(folder, "--quant", "f32")
        self.assertLess(distance(self.logits(tokens, 64), logits), TOLERANCE)

    def test_what_bounds_full_attention(self):
        def bytes_of_states():
            done = subprocess.run([BIN / "tarn", "inspect", self.model, "--json"], capture_output=True, text=True, check=True)
            return json.loads(done.stdout)["memory"]["state_bytes"]

        note = self.convert(FIXTURES / "llama_a")
        self.assertIn("--max-context", note)
        whole = bytes_of_states()
        self.assertNotIn("note", self.convert(FIXTURES / "llama_a", "--max-context", "64"))
        self.assertLess(bytes_of_states(), whole / 3)

        # A window makes of llama what mistral is.
        tokens, _ = self.expected("llama_a")
        self.convert(FIXTURES / "llama_a", "--quant", "f32", "--window", "16")
        windowed = self.logits(tokens, 7)
        self.convert(self.copy("llama_a", model_type="mistral", sliding_window=16, attention_bias=None, mlp_bias=None,
                               pretraining_tp=None), "--quant", "f32")
        self.assertEqual(windowed, self.logits(tokens, 7))

        # The first tokens, too: the same until a window has passed them, and another state then.
        self.convert(FIXTURES / "llama_a", "--quant", "f32", "--window", "16", "--sinks", "2")
        with_sinks = self.logits(tokens, 7)
        self.assertLess(distance(with_sinks[:16], windowed[:16]), TOLERANCE)
        self.assertGreater(distance(with_sinks[20:], windowed[20:]), 100 * TOLERANCE)

        for name in "bert_a", "mistral_a":
            error = self.convert(FIXTURES / name, "--max-context", "8", status=2)
            self.assertIn("no layer of a decoder with full attention", error)
        self.assertIn("209 is more than the 208 positions", self.convert(FIXTURES / "gpt2_a", "--max-context", "209", status=2))
        error = self.convert(FIXTURES / "llama_a", "--sinks", "2", status=2)
        self.assertIn("--window", error)
        own = self.work / "own.json"
        own.write_text(json.dumps({"vocab_size": 8}), encoding="utf-8")
        error = self.convert(own, "--random-weights", "1", "--window", "16", status=2)
        self.assertIn("model_type", error)

    def test_random_weights_of_a_published_config(self):
        self.convert(FIXTURES / "qwen2_b" / "config.json", "--random-weights", "1", "--quant", "int8")
        self.assertTrue(self.model.exists())

    def test_page_has_the_table_of_families(self):
        table = subprocess.run([BIN / "tarn-convert", "--families"], capture_output=True, text=True, check=True).stdout
        page = (FIXTURES.parents[2] / "docs" / "published-models.md").read_text(encoding="utf-8")
        shown = page.split("<!-- families -->")[1].split("<!-- /families -->")[0]
        self.assertEqual(shown.strip(), table.strip(), "docs/published-models.md: put there what `tarn-convert --families` prints")
        for line in table.splitlines()[2:]:
            name = line.split("`")[1]
            self.assertEqual(len(list(FIXTURES.glob(f"{name}_[abc]"))), 3, name)


if __name__ == "__main__":
    unittest.main()
