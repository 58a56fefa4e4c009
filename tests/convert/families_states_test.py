"""The states of published families (tests/data/families): their sizes, and what bounds those of full attention.

    python3 tests/convert/families_states_test.py [-v]
"""

import json
import subprocess
import unittest

from families_case import BIN, FIXTURES, TOLERANCE, FamiliesCase, distance


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


class States(FamiliesCase):
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


if __name__ == "__main__":
    unittest.main()
