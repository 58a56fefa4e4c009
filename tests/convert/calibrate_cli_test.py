"""tarn-convert --calibrate from outside: the model is closer to f32 than without, on a text that it did not see."""

import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BIN = Path(os.environ["TARN_BUILD"]) / "bin"

CONFIG = {
    "vocab_size": 256,
    "hidden_size": 64,
    "num_layers": 2,
    "num_heads": 2,
    "intermediate_size": 128,
    "hidden_act": "relu",
    "norm": "layernorm",
    "norm_eps": 1e-5,
    "tie_word_embeddings": True,
    "tokenizer": "bytes",
    # A matrix that both layers share, with two inputs.
    "attention": {"system": "abc_mlp", "num_slots": 32, "control_sharing": "model"},
}


def text(seed: int, count: int) -> bytes:
    """Words in which a letter depends on the one before."""
    draw = random.Random(seed)
    letters = [draw.choice(b"etaoinshr ")]
    while len(letters) < count:
        letters.append(32 + (letters[-1] * 7 + draw.choice((1, 2, 3, 11, 40))) % 90)
    return bytes(letters)


class Calibrate(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        self.config = self.root / "config.json"
        self.config.write_text(json.dumps(CONFIG))
        self.text = self.root / "text.txt"
        self.text.write_bytes(text(1, 9000))
        self.unseen = self.root / "unseen.txt"
        self.unseen.write_bytes(text(2, 2000))

    def convert(self, out, *options, **run_options):
        command = (BIN / "tarn-convert", "--random-weights", "3", self.config, "-o", self.root / out, *options)
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **run_options)

    def converted(self, out, *options) -> Path:
        done = self.convert(out, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        return self.root / out

    def divergence(self, model) -> float:
        command = (BIN / "tarn", "eval", model, "-f", self.unseen, "--block", "256", "--against", self.root / "f32.tarn", "--json")
        return json.loads(subprocess.run(list(map(str, command)), capture_output=True, check=True).stdout)["kl_mean"]

    def expect_refusal(self, done, status, *parts):
        self.assertEqual(done.returncode, status, done)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertEqual(list(self.root.glob("out.tarn*")), [])

    def test_it_is_closer_to_f32(self):
        self.converted("f32.tarn", "--quant", "f32")
        plain = self.converted("plain.tarn", "--quant", "int4")
        calibrated = self.converted("calibrated.tarn", "--quant", "int4", "--calibrate", self.text)
        self.assertEqual(calibrated.stat().st_size, plain.stat().st_size)
        self.assertLess(self.divergence(calibrated), self.divergence(plain) / 2)
        self.assertEqual(sorted(path.name for path in self.root.glob("*tarn*")), ["calibrated.tarn", "f32.tarn", "plain.tarn"])
        wider = self.divergence(plain)
        for quant in ("int3", "int2"):
            found = self.divergence(self.converted(f"{quant}.tarn", "--quant", quant))
            self.assertLess(wider, found)
            calibrated = self.converted("calibrated.tarn", "--quant", quant, "--calibrate", self.text)
            self.assertLess(self.divergence(calibrated), found / 2)
            wider = found

    def test_int8_and_what_keep_says(self):
        self.converted("f32.tarn", "--quant", "f32")
        options = ("--quant", "int8", "--keep", "*mlp*=int4", "--keep", "*o_proj*=f16")
        plain = self.divergence(self.converted("plain.tarn", *options))
        self.assertLess(self.divergence(self.converted("calibrated.tarn", *options, "--calibrate", self.text)), plain)

    def test_the_file_does_not_depend_on_threads(self):
        files = [self.converted(f"{threads}.tarn", "--quant", "int4", "--calibrate", self.text, "--calibrate-tokens", 600,
                                "--name", "same", "-t", threads).read_bytes() for threads in (1, 3)]
        self.assertEqual(files[0], files[1])

    def test_ids_of_a_model_without_tokenizer(self):
        self.config.write_text(json.dumps({**CONFIG, "tokenizer": "none", "tie_word_embeddings": False}))
        data = self.text.read_bytes()[:600]
        header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }" % len(data)
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        ids = b"".join(byte.to_bytes(4, "little") for byte in data)
        self.text.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + ids)
        self.converted("out.tarn", "--quant", "int4", "--calibrate", self.text)

    def test_eval_measures_what_is_written(self):
        done = self.convert("out.tarn", "--quant", "int4", "--calibrate", self.text, "--eval", self.unseen)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        command = (BIN / "tarn", "eval", self.root / "out.tarn", "-f", self.unseen, "--block", "256", "--json")
        found = json.loads(subprocess.run(list(map(str, command)), capture_output=True, check=True).stdout)
        self.assertIn(f"{found['nats_per_token']:.6f} in int4", done.stdout)

    def test_refusals(self):
        calibrate = ("--calibrate", self.text)
        self.expect_refusal(self.convert("out.tarn", "--quant", "f16", *calibrate), 2, "--calibrate: no dense layer is int8, int4, int3 or int2")
        self.expect_refusal(self.convert("out.tarn", "--calibrate", self.root / "none"), 1, "none")
        self.expect_refusal(self.convert("out.tarn", "--calibrate-tokens", 600), 2, "--calibrate-tokens", "--calibrate FILE")
        self.expect_refusal(self.convert("out.tarn", "--threads", 2), 2, "--threads", "--eval or --calibrate")
        self.expect_refusal(self.convert("out.tarn", *calibrate, "--calibrate-tokens", 255), 2, "--calibrate-tokens")
        self.text.write_bytes(b"x" * 255)
        self.expect_refusal(self.convert("out.tarn", *calibrate), 1, "255 tokens", "at least 256")
        masked = {key: value for key, value in CONFIG.items() if key != "attention"}
        masked.update(task="masked_lm", attention={"system": "softmax", "max_context": 64})
        self.config.write_text(json.dumps(masked))
        self.expect_refusal(self.convert("out.tarn", *calibrate), 2, "--calibrate", "causal_lm")

    def test_ctrl_c_leaves_no_file(self):
        self.text.write_bytes(text(1, 400000))
        command = (BIN / "tarn-convert", "--random-weights", "3", self.config, "-o", self.root / "out.tarn", "--quant", "int4",
                   "--calibrate", self.text, "--calibrate-tokens", 400000)
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not list(self.root.glob("out.tarn*")):
                time.sleep(0.01)
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            process.communicate()
            self.assertEqual(process.returncode, 130)
        self.assertEqual(list(self.root.glob("out.tarn*")), [])


if __name__ == "__main__":
    unittest.main()
