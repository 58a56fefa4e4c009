"""tarn-convert from outside: types of weights and states, and what they cost by `--eval`."""

import json
import struct
import subprocess
import unittest
from pathlib import Path

from tarn_convert_case import BIN, CONFIG, TarnConvertCase


class TarnConvertPrecision(TarnConvertCase):
    def test_converts_in_every_precision(self):
        sizes = {}
        for quant in ("f32", "f16", "int8"):
            done = self.run_tool(self.folder, "-o", self.out, "--quant", quant)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            self.assertEqual(done.stdout.count("\n"), 1)
            for part in (str(self.out), "parameters", quant, "softmax x 1"):
                self.assertIn(part, done.stdout)
            data = self.out.read_bytes()
            self.assertEqual(data[:8], b"TARN\r\n\x1a\n")
            graph, weights, length = struct.unpack_from("<IQQ", data, 12)
            self.assertEqual(weights + length, len(data))
            self.assertIn(b"tiny-model", data[64 : 64 + graph])
            self.assertIn(json.dumps(CONFIG).encode(), data[64 : 64 + graph])
            sizes[quant] = length
        self.assertLess(sizes["f16"], sizes["f32"] * 0.55)
        self.assertLess(sizes["int8"], sizes["f32"] / 3)
        self.assertEqual([path.name for path in self.root.glob("out*")], ["out.tarn"])

    def test_int8_is_the_default_and_a_name_can_be_given(self):
        self.run_tool(self.folder, "-o", self.out, "--name", "my model")
        self.assertIn(b"my model", self.out.read_bytes())
        self.assertIn(b"int8", self.out.read_bytes())

    def test_state_types(self):
        for state in ("f32", "f16", "int8"):
            done = self.run_tool(self.folder, "-o", self.out, "--state", state)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            self.assertIn(f"state {state}", done.stdout)
        self.out.unlink()
        self.config.write_text(json.dumps({**CONFIG, "attention": {"system": "linear_transformer"}}))
        done = self.run_tool(self.folder, "-o", self.out, "--state", "f16")
        self.expect_failure(done, 1, "--state f16", "layer 0 (linear_transformer)", "round away", "--force")
        done = self.run_tool(self.folder, "-o", self.out, "--state", "int8", "--force")
        self.expect_failure(done, 1, "--state int8", "linear_transformer", "--force is for f16 alone")
        done = self.run_tool(self.folder, "-o", self.out, "--state", "f16", "--force")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)

    def test_int4(self):
        done = self.run_tool(*self.wide(), "--quant", "int4")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("parameters, int4, state", done.stdout)
        self.assertIn(b"int4", self.out.read_bytes())
        # Rows that do not fill blocks are int8, and that is said.
        done = self.run_tool(*self.wide(intermediate_size=48), "--quant", "int4")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("tarn-convert: note: int8 instead of int4 for model.layers.0.mlp.down_proj.weight: ", done.stderr)
        self.assertIn("int4 (int8: model.layers.0.mlp.down_proj.weight)", done.stdout)

    def test_int3_and_int2(self):
        self.wide()
        checkpoint = self.folder / "wide"
        self.run_tool("--random-weights", "1", self.config, "--write-checkpoint", "-o", checkpoint)
        evaluation = ("--eval", __file__, "--eval-tokens", "600", "--eval-block", "9")
        for quant in ("int3", "int2"):
            refused = f"{quant} loses much more than int4: add --eval FILE, which shows how much"
            for options in (("--quant", quant), ("--keep", f"*mlp*={quant}")):
                self.expect_failure(self.run_tool(checkpoint, "-o", self.out, *options), 2, refused)
            done = self.run_tool(checkpoint, "-o", self.out, "--quant", quant, *evaluation)
            self.assertEqual(done.returncode, 0, done)
            self.assertIn(f" in {quant}: ", done.stdout)
            done = self.run_tool(*self.wide(), "--quant", quant)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            self.assertIn(f"parameters, {quant}, state", done.stdout)
            self.assertIn(quant.encode(), self.out.read_bytes())
            self.loss(self.out, "-f", Path(__file__), "--block", 9)
            done = self.run_tool(*self.wide(intermediate_size=48), "--quant", quant)
            self.assertIn(f"tarn-convert: note: int8 instead of {quant} for model.layers.0.mlp.down_proj.weight: ", done.stderr)
            self.out.unlink()

    def test_keep(self):
        done = self.run_tool(*self.wide(), "--quant", "int4", "--keep", "*embeddings*=int8", "--keep", "*q_proj*=f16")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("int4 (f16: model.layers.0.attn.qkv_proj.weight; int8: model.embeddings.weight)", done.stdout)
        self.out.unlink()
        for rule, words in (("embeddings", "PATTERN=TYPE"), ("*=int5", '"int5"')):
            self.expect_failure(self.run_tool(self.folder, "-o", self.out, "--keep", rule), 2, words, "--keep")
        self.expect_failure(self.run_tool(*self.wide(), "--keep", "lm_head*=f32"), 2, "--keep lm_head*=f32: matches none",
                            "model.embeddings.weight", "and 1 more")
        done = self.run_tool(*self.wide(hidden_size=48), "--keep", "*embeddings*=int4")
        self.expect_failure(done, 1, '"model.embeddings.weight"', "rows of 48", "--keep model.embeddings.weight=int8")

    def loss(self, model, *arguments):
        """Mean nats per token as `tarn eval` finds them, and the number of scored tokens."""
        done = subprocess.run([BIN / "tarn", "eval", "--json", "-m", model, *map(str, arguments)], capture_output=True, check=True)
        found = json.loads(done.stdout)
        return found["nats_per_token"], found["scored"]

    def test_eval_measures_what_the_precision_costs(self):
        text = self.root / "text.txt"
        text.write_bytes(bytes(range(32, 127)) * 3)
        wide = self.wide(attention={"system": "rfa", "feature_map": "gaussian", "num_features": 8})
        rest = ("--begin", 20, "--tokens", 150, "--block", 60)
        done = self.run_tool(*wide, "--quant", "int8", "--eval", text, *(str(part).replace("--", "--eval-") for part in rest))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        nats, scored = self.loss(self.out, "-f", text, *rest)
        graph = self.out.read_bytes()[64:16384]
        inspected = subprocess.run([BIN / "tarn", "inspect", "--json", self.out], capture_output=True, check=True).stdout
        self.run_tool(*wide, "--quant", "f32")
        nats_f32, _ = self.loss(self.out, "-f", text, *rest)
        self.assertEqual(scored, 147)
        self.assertIn(f"{text}: {nats_f32:.6f} nats/byte in f32, {nats:.6f} in int8: {nats - nats_f32:+.6f} (147 scored)\n",
                      done.stdout)
        self.assertEqual(json.loads(inspected)["model"]["eval"], {"scored": scored, "nats_per_token_f32": nats_f32, "nats_per_token": nats})
        self.assertIn(struct.pack("<Q", scored), graph)
        # The file has all bits, JSON twelve digits.
        doubles = [struct.unpack_from("<d", graph, at)[0] for at in range(0, len(graph) - 7, 4)]
        for loss in nats, nats_f32:
            self.assertIn(loss, [float(f"{value:.12g}") for value in doubles])
        self.assertEqual([path.name for path in self.root.glob("out*")], ["out.tarn"])
        # 256 at a time, if nobody says otherwise.
        done = self.run_tool(*wide, "--quant", "f16", "--eval", text)
        self.assertIn(f"({3 * 95 - 2} scored)", done.stdout)
        nats, _ = self.loss(self.out, "-f", text, "--block", 256)
        self.assertIn(f"{nats:.6f} in f16", done.stdout)

    def test_auto_chooses_by_measuring(self):
        text = self.root / "text.txt"
        text.write_bytes(bytes(range(32, 127)) * 5)
        # The weights of seed 5 lose by int4; those of other seeds win by chance.
        wide = "--random-weights", "5", *self.wide(attention={"system": "rfa", "feature_map": "gaussian", "num_features": 8})[2:]

        def auto(bound, *options):
            done = self.run_tool(*wide, "--quant", "auto", "--max-loss", str(bound), "--eval", text, *options)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            inspected = subprocess.run([BIN / "tarn", "inspect", "--json", self.out], capture_output=True, check=True).stdout
            loss = json.loads(inspected)["model"]["eval"]
            self.assertLessEqual(loss["nats_per_token"] - loss["nats_per_token_f32"], bound)
            self.assertEqual([path.name for path in self.root.glob("out*")], ["out.tarn"])
            return done.stdout, self.out.stat().st_size

        text_of_narrowest, narrowest = auto(100)
        for quant in ("int4", "int3", "int2"):
            self.assertEqual(text_of_narrowest.count(f"auto: {quant}: "), 1)
        self.assertNotIn(" alone in ", text_of_narrowest)
        self.assertIn("auto (int2: ", text_of_narrowest)
        text_of_exact, exact = auto(0)
        self.assertIn("auto: model.embeddings.weight alone in int8: ", text_of_exact)
        self.assertGreater(exact, narrowest)
        kept, _ = auto(0, "--keep", "*mlp*=f32", "--keep", "*embeddings*=f32")
        self.assertNotIn("auto: model.embeddings.weight", kept)
        self.assertNotIn("auto: model.layers.*.mlp", kept)

        self.out.unlink()
        self.expect_failure(self.run_tool(*wide, "--quant", "auto"), 2, "--quant auto is there without --max-loss")
        self.expect_failure(self.run_tool(*wide, "--max-loss", "1", "--eval", text), 2,
                            "--max-loss is there without --quant auto, expected --quant auto with it")
        self.expect_failure(self.run_tool(*wide, "--quant", "auto", "--max-loss", "1"), 2, "--max-loss is there without --eval")
        for bound in "-1", "101", "nan":
            self.expect_failure(self.run_tool(*wide, "--quant", "auto", "--max-loss", bound, "--eval", text), 2,
                                f"--max-loss: is '{bound}', expected a number: 0 to 100")

    def test_eval_compares_with_f32_states(self):
        text = self.root / "text.txt"
        text.write_bytes(bytes(range(32, 127)) * 3)
        attention = {"system": "rfa", "feature_map": "gaussian", "num_features": 8, "gate": "forget"}
        wide = self.wide(attention=attention)
        self.run_tool(*wide, "--quant", "f32")
        f32, scored = self.loss(self.out, "-f", text, "--block", 256)
        done = self.run_tool(*wide, "--quant", "f32", "--state", "f16", "--eval", text)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        f16, _ = self.loss(self.out, "-f", text, "--block", 256)
        self.assertNotEqual(f32, f16)
        self.assertIn(f"{f32:.6f} nats/byte in f32, {f16:.6f} in f32 with states in f16: {f16 - f32:+.6f} ({scored} scored)\n", done.stdout)

    def test_eval_refusals(self):
        text = self.root / "text.txt"
        text.write_bytes(b"x")
        wide = self.wide(attention={"system": "linear_transformer"})
        self.expect_failure(self.run_tool(*wide, "--eval", text), 1, "text.txt", "at least 2")
        self.expect_failure(self.run_tool(*wide, "--eval", text, "--eval-begin", "9"), 1, "text.txt", "more than 9")
        self.expect_failure(self.run_tool(*wide, "--eval", self.root / "none"), 1, "none")
        self.expect_failure(self.run_tool(*wide, "--eval", text, "--eval-block", "1"), 2, "--eval-block")
        wide = self.wide(tokenizer="none")
        self.expect_failure(self.run_tool(*wide, "--eval", text), 1, "text.txt", ".npy")
        self.out.write_bytes(b"before")
        done = self.run_tool(*wide, "--eval", self.out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("overwritten", done.stderr)
        # A model that ends at 8 tokens cannot take a block of 256.
        self.out.unlink()
        text.write_bytes(b"x" * 20)
        self.expect_failure(self.run_tool(*self.wide(), "--eval", text), 1, "8 tokens")
        self.assertEqual(self.run_tool(*self.wide(), "--eval", text, "--eval-block", "8").returncode, 0)


if __name__ == "__main__":
    unittest.main()
