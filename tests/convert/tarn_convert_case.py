"""A checkpoint of one layer and tarn-convert, for the tests of that tool from outside."""

import json
import os
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ["TARN_BUILD"]) / "bin"
TOOL = BIN / "tarn-convert"

CONFIG = {
    "vocab_size": 256,
    "hidden_size": 16,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_size": 24,
    "hidden_act": "relu",
    "norm": "rmsnorm",
    "norm_eps": 1e-5,
    "tokenizer": "bytes",
    "attention": {"system": "softmax", "max_context": 8},
}
SHAPES = {
    "model.embeddings.weight": [256, 16],
    "model.norm.weight": [16],
    "model.layers.0.attn_norm.weight": [16],
    "model.layers.0.mlp_norm.weight": [16],
    "model.layers.0.attn.q_proj.weight": [16, 16],
    "model.layers.0.attn.k_proj.weight": [16, 16],
    "model.layers.0.attn.v_proj.weight": [16, 16],
    "model.layers.0.attn.o_proj.weight": [16, 16],
    "model.layers.0.mlp.up_proj.weight": [24, 16],
    "model.layers.0.mlp.down_proj.weight": [16, 24],
}


def safetensors(shapes: dict, value: float = 0.5) -> bytes:
    header, data = {}, b""
    for name, shape in shapes.items():
        count = 1
        for dimension in shape:
            count *= dimension
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack("<f", value) * count
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class TarnConvertCase(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        self.folder = self.root / "tiny-model"
        self.folder.mkdir()
        self.config = self.folder / "config.json"
        self.config.write_text(json.dumps(CONFIG))
        self.weights = self.folder / "model.safetensors"
        self.weights.write_bytes(safetensors(SHAPES))
        self.out = self.root / "out.tarn"

    def run_tool(self, *arguments, **options):
        return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, **options)

    def expect_failure(self, done, status, *parts, lines=1):
        self.assertEqual(done.returncode, status, done)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), lines, done.stderr)
        for line in done.stderr.splitlines():
            self.assertLess(len(line), 1200)
        self.assertTrue(done.stderr.startswith("tarn-convert: error: "), done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertEqual(list(self.root.glob("out.tarn*")), [])

    def other_task(self, **fields):
        """Arguments for a random model of another task."""
        self.config.write_text(json.dumps({k: v for k, v in {**CONFIG, **fields}.items() if v is not None}))
        return "--random-weights", "1", self.config, "-o", self.out

    def wide(self, **fields):
        """Arguments for a random model whose rows are multiples of 32."""
        config = {**CONFIG, "hidden_size": 32, "intermediate_size": 64, **fields}
        self.config.write_text(json.dumps(config))
        return "--random-weights", "1", self.config, "-o", self.out
