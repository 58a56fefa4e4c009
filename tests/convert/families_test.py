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
from tensor_files import read_safetensors

FIXTURE_COUNT = 184
PUBLISHED_CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "configs" / "published"
PUBLISHED = {"smollm2-360m": 362, "gla-340m": 342, "retnet-1.3b": 1352, "gated-deltanet-1.3b": 1387, "qwen2.5-3b": 3086,
             "falcon-h1-0.5b": 521, "firefox-tiny": 17, "firefox-base": 43, "rwkv7-0.4b": 451, "lfm2-350m": 354, "qwen3.5-0.8b": 752}

# With the first contexts alone, other angles.
OPTIONS = {"phi3_e": ("--max-context", "208")}


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
