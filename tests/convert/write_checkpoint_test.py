"""tarn-convert --write-checkpoint: a published checkpoint in tarn's own layout is the same model.

    python3 tests/convert/write_checkpoint_test.py [-v]
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from tensor_files import read_safetensors, write_npy_i32  # noqa: E402

BIN = pathlib.Path(os.environ.get("TARN_BUILD", "build")).resolve() / "bin"
TOKENIZERS = pathlib.Path(__file__).resolve().parents[1] / "data" / "tokenizers"
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "data" / "families"
CONFIG = {"vocab_size": 40, "hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24, "hidden_act": "swiglu",
          "norm": "rmsnorm", "norm_eps": 1e-5, "tokenizer": "none", "attention": {"system": "gla"}}


class WriteCheckpointTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)

    def convert(self, *arguments, status=0):
        done = subprocess.run([BIN / "tarn-convert", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout, done.stderr

    def logits(self, folder):
        """The bytes of the logits of 40 tokens, in f32"""
        model, tokens, out = (self.scratch / name for name in ("model.tarn", "tokens.npy", "logits.npy"))
        self.convert(folder, "-o", model, "--quant", "f32")
        write_npy_i32(tokens, [3 * i % 40 for i in range(40)])
        subprocess.run([BIN / "tarn", "eval", model, "-f", tokens, "--logits", out, "-t", "1"], check=True, capture_output=True)
        return out.read_bytes()

    def test_the_copy_is_the_same_model(self):
        for name in "gpt2_a", "llama_b", "qwen3_a", "gemma2_a", "gpt_neox_a", "phi3_b", "gla_b", "gated_deltanet_a":
            with self.subTest(name):
                out, _ = self.convert(FIXTURES / name, "--write-checkpoint", "-o", self.scratch / name)
                self.assertRegex(out, r"\d+ tensors, .* parameters, F32\n$")
                self.assertEqual(self.logits(self.scratch / name), self.logits(FIXTURES / name))
                self.assertNotIn("model_type", json.loads((self.scratch / name / "config.json").read_text()))

    def test_random_weights_and_the_copy_of_a_copy(self):
        (self.scratch / "config.json").write_text(json.dumps(CONFIG))
        first, second = self.scratch / "first", self.scratch / "second"
        self.convert("--random-weights", 7, self.scratch / "config.json", "--write-checkpoint", "-o", first)
        self.convert(first, "--write-checkpoint", "-o", second)
        for name in "config.json", "model.safetensors":
            self.assertEqual((first / name).read_bytes(), (second / name).read_bytes())
        shapes = {name: list(tensor.shape) for name, tensor in read_safetensors(first / "model.safetensors").items()}
        self.assertEqual(shapes["model.layers.1.attn.g_proj.weight"], [16, 16])

    def test_tokenizer_files_come_along(self):
        source = self.scratch / "source"
        self.convert("--random-weights", 1, self.write_config(), "--write-checkpoint", "-o", source)
        (source / "tokenizer_config.json").write_text("{}")
        (source / "added_tokens.json").write_text("{}")
        (source / "README.md").write_text("no part of the model")
        self.convert(source, "--write-checkpoint", "-o", self.scratch / "copy")
        self.assertEqual(sorted(path.name for path in (self.scratch / "copy").iterdir()),
                         ["added_tokens.json", "config.json", "model.safetensors", "tokenizer_config.json"])

    def test_a_checkpoint_with_any_tokenizer_can_be_converted(self):
        for kind in "rwkv", "characters", "sentencepiece_m2m100", "sentencepiece_unigram", "gpt2":
            source = self.scratch / kind
            shutil.copytree(TOKENIZERS / kind, source)
            tokenizer = {"rwkv": "rwkv", "characters": "characters"}.get(kind, "tokenizer.json")
            (source / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": 66000, "tokenizer": tokenizer}))
            self.convert("--random-weights", 1, source / "config.json", "--write-checkpoint", "-o", self.scratch / (kind + ".copy"))
            self.convert(self.scratch / (kind + ".copy"), "-o", self.scratch / (kind + ".tarn"))

    def test_the_class_of_a_tokenizer_comes_along(self):
        source, copy = self.scratch / "t5", self.scratch / "copy"
        shutil.copytree(FIXTURES / "t5_a", source)
        shutil.copy(TOKENIZERS / "sentencepiece_unigram" / "tokenizer.model", source / "spiece.model")
        config = json.loads((source / "config.json").read_text())
        (source / "config.json").write_text(json.dumps({**config, "vocab_size": 1000}))
        self.convert("--random-weights", 1, source / "config.json", "--write-checkpoint", "-o", copy)
        self.assertEqual(json.loads((copy / "tokenizer_config.json").read_text()), {"tokenizer_class": "T5Tokenizer"})
        self.convert(copy, "-o", self.scratch / "copy.tarn")
        ids = subprocess.run([BIN / "tarn", "tokenize", "--ids", self.scratch / "copy.tarn", "-p", "hello"], capture_output=True, text=True)
        self.assertEqual(ids.stdout.split(), ["30", "78", "17", "2"], ids.stderr)

    def write_config(self):
        path = self.scratch / "config.json"
        path.write_text(json.dumps(CONFIG))
        return path

    def test_refusals(self):
        folder = FIXTURES / "llama_a"
        self.convert(folder, "--write-checkpoint", "-o", self.scratch / "copy")
        before = (self.scratch / "copy" / "config.json").read_bytes()
        _, error = self.convert(folder, "--write-checkpoint", "-o", self.scratch / "copy", status=1)
        self.assertIn("config.json: exists; name another directory", error)
        self.assertEqual((self.scratch / "copy" / "config.json").read_bytes(), before)
        _, error = self.convert(folder, "--write-checkpoint", "-o", self.scratch / "b", "--quant", "int8", status=2)
        self.assertIn("--quant and --write-checkpoint are both there", error)
        (self.scratch / "weights").mkdir()
        (self.scratch / "weights" / "model.safetensors").write_text("precious")
        _, error = self.convert(folder, "--write-checkpoint", "-o", self.scratch / "weights", status=1)
        self.assertIn("model.safetensors: exists; name another directory", error)
        self.assertEqual((self.scratch / "weights" / "model.safetensors").read_text(), "precious")
        self.assertFalse((self.scratch / "b").exists())
        (self.scratch / "file").write_text("")
        _, error = self.convert(folder, "--write-checkpoint", "-o", self.scratch / "file", status=1)
        self.assertIn("file: cannot be made: ", error)


if __name__ == "__main__":
    unittest.main()
