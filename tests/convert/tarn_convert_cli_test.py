"""tarn-convert from outside: what it writes, what it says, and how it ends."""

import json
import os
import re
import resource
import signal
import struct
import subprocess
import tempfile
import time
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


class TarnConvert(unittest.TestCase):
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

    def test_random_weights_are_the_same_every_time(self):
        files = []
        for seed, name in (("7", "a"), ("7", "b"), ("8", "c")):
            path = self.root / name
            done = self.run_tool("--random-weights", seed, self.config, "-o", path, "--quant", "f32")
            self.assertEqual(done.returncode, 0, done)
            files.append(path.read_bytes())
        self.assertEqual(files[0], files[1])
        self.assertNotEqual(files[0], files[2])

    def test_random_weights_of_a_directory_are_those_of_its_config(self):
        files = []
        for source in self.config, self.config.parent:
            done = self.run_tool("--random-weights", "7", source, "-o", self.out, "--name", "same")
            self.assertEqual(done.returncode, 0, done)
            files.append(self.out.read_bytes())
        self.assertEqual(*files)

    def test_help_has_examples(self):
        done = self.run_tool("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("tarn-convert --random-weights 1 config.json -o", done.stdout)

    def test_usage_errors(self):
        self.expect_failure(self.run_tool(), 2, "the input is missing, expected PATH (see tarn-convert --help)")
        self.expect_failure(self.run_tool(self.folder), 2, "--output is missing, expected --output FILE")
        self.expect_failure(self.run_tool(self.folder, "-o"), 2, "--output has no value, expected --output FILE")
        self.expect_failure(self.run_tool(self.folder, "-o", self.out, "--eval-begin", "1"), 2,
                            "--eval-begin is there without --eval, expected --eval FILE with it")
        self.expect_failure(self.run_tool(self.folder, "-o", self.out, "--quant", "int5"), 2, "int5")
        self.expect_failure(self.run_tool(self.folder, "-o", self.out, "--state", "int4"), 2, "int4")
        self.expect_failure(self.run_tool(self.folder, "-o", self.out, "--fast"), 2, "--fast")
        for seed in ("x", "-1", "9" * 23, ""):
            done = self.run_tool("--random-weights", seed, self.config, "-o", self.out)
            self.expect_failure(done, 2, f"--random-weights: is '{seed}'", "from 0 to 18446744073709551615")

    def test_chat_templates(self):
        def chat_of(*options, note=""):
            done = self.run_tool(self.folder, "-o", self.out, *options)
            self.assertEqual(done.returncode, 0, done)
            self.assertIn(note, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1 if note else 0, done.stderr)
            inspected = subprocess.run([BIN / "tarn", "inspect", "--json", self.out], capture_output=True, check=True).stdout
            return json.loads(inspected)["model"].get("chat_template")

        no_end = "no token ends an answer: the text behind it, "
        self.assertIsNone(chat_of())
        self.assertEqual(chat_of("--chat-template", "gemma", note='"gemma": ' + no_end + '"<end_of_turn>'),
                         {"name": "gemma", "takes_system": False, "end_tokens": []})
        template = self.folder / "chat_template.jinja"
        template.write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '\n' }}{% endfor %}")
        self.assertEqual(chat_of(note='"model": ' + no_end + r'"\nuser: "'),
                         {"name": "model", "takes_system": True, "end_tokens": []})
        template.write_text("{{ messages | frobnicate }}")
        self.assertIsNone(chat_of(note="chat_template.jinja is not supported: a conversation of user, assistant, user: line 1: "
                                       "the filter \"frobnicate\" is not supported; --chat-template NAME"))
        self.assertEqual(chat_of("--chat-template", "chatml", note=no_end)["name"], "chatml")
        self.out.unlink()
        self.expect_failure(self.run_tool(self.folder, "-o", self.out, "--chat-template", "chatlm"), 2, "chatlm", "chatml")
        self.config.write_text(json.dumps({**CONFIG, "tokenizer": "none"}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out, "--chat-template", "chatml"), 1,
                            "--chat-template: a model of task \"causal_lm\" with a tokenizer expected")

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

    def other_task(self, **fields):
        """Arguments for a random model of another task."""
        self.config.write_text(json.dumps({k: v for k, v in {**CONFIG, **fields}.items() if v is not None}))
        return "--random-weights", "1", self.config, "-o", self.out

    def test_tasks(self):
        softmax = {"system": "softmax", "max_context": 9}
        linear = {"system": "linear_transformer"}
        seq2seq = self.other_task(task="seq2seq", num_layers=None, attention=None, encoder_layers=1, decoder_layers=2,
                                  encoder_attention=softmax, decoder_attention=linear, cross_attention=linear)
        done = self.run_tool(*seq2seq, "--state", "int8")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("state decoder: f32 x 2; cross: int8 x 2, encoder: softmax x 1; decoder: linear_transformer x 2;", done.stdout)
        done = self.run_tool(*self.other_task(task="masked_lm", attention=softmax))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertIn("state none", done.stdout)
        self.out.unlink()
        masked_lm = self.other_task(task="masked_lm", attention=softmax)
        done = self.run_tool(*masked_lm, "--eval", self.config)
        self.expect_failure(done, 2, "--eval", "causal_lm")

    def test_systems(self):
        done = self.run_tool("--systems")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertTrue(done.stdout.startswith("| variant | family |"), done.stdout)
        self.assertIn("| `gla` | linear state | causal | token loop |", done.stdout)

    def wide(self, **fields):
        """Arguments for a random model whose rows are multiples of 32."""
        config = {**CONFIG, "hidden_size": 32, "intermediate_size": 64, **fields}
        self.config.write_text(json.dumps(config))
        return "--random-weights", "1", self.config, "-o", self.out

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

    def test_errors_name_the_culprit(self):
        self.expect_failure(self.run_tool(self.root / "none", "-o", self.out), 1, "none", "no such file or directory")
        self.expect_failure(self.run_tool(self.config, "-o", self.out), 1, "config.json", "not a directory (--random-weights")
        other = self.root / "model.gguf"
        other.write_bytes(b"GGUF")
        self.expect_failure(self.run_tool(other, "-o", self.out), 1, "not a directory with config.json; model.gguf is a GGUF file")

        self.weights.write_bytes(safetensors({k: v for k, v in SHAPES.items() if k != "model.norm.weight"}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, '"model.norm.weight": missing', lines=2)
        shapes = {**SHAPES, "surplus": [2], "model.norm.weight": [17]}
        del shapes["model.embeddings.weight"]
        self.weights.write_bytes(safetensors(shapes))
        done = self.run_tool(self.folder, "-o", self.out)
        self.expect_failure(done, 1, "tiny-model: 3 tensors do not fit config.json (missing: 1, different: 1, unknown: 1)", lines=4)
        self.assertEqual(done.stderr.splitlines()[1:],
                         ['  "model.embeddings.weight": missing, expected [256, 16]',
                          '  "model.norm.weight": found F32 [17] in model.safetensors, expected [16]',
                          '  "surplus": unknown, found F32 [2] in model.safetensors'])
        self.weights.write_bytes(safetensors(SHAPES, float("nan")))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, '"model.embeddings.weight"', "nan", "[0, 0]")
        self.weights.write_bytes(safetensors(SHAPES)[:-1])
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, "model.safetensors")

        self.weights.write_bytes(safetensors(SHAPES))
        self.config.write_text(json.dumps({**CONFIG, "hidden_sise": 3}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, "config.json",
                            'unknown field "hidden_sise" (did you mean hidden_size?)')

    def unknown(self, *parts, **fields):
        self.config.write_text(json.dumps({**CONFIG, **fields}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, *parts)

    def test_unknown_fields_say_where_they_belong(self):
        self.unknown('unknown field "num_labels"', 'it is read where "task" is "classification"', num_labels=2)
        self.unknown('unknown field "num_slots"', 'it is a field of attention objects, of "abc_mlp", "linformer", "compressive_mean" and',
                     " more", num_slots=2)
        self.unknown('unknown field "zzz"', "tarn-convert --list-fields config", zzz=2)
        rfa = {"system": "linear_attention", "feature_map": "identity", "zzz": 2}
        self.unknown('attention: unknown field "zzz"', "tarn-convert --list-fields linear_attention", attention=rfa)
        rfa = {"system": "linear_attention", "feature_map": "identity", "gate_normalizer": 2}
        self.unknown('unknown field "gate_normalizer"', 'it is read where "gate" is "vector"', attention=rfa)
        rfa = {"system": "rfa", "feature_map": "gaussian", "num_features": 8, "activation": "exp"}
        self.unknown('unknown field "activation": it is a field of "abc_mlp", "luna_causal" and "slot_attention"; ', attention=rfa)
        self.unknown('system: "rfaa" is unknown (did you mean rfa?)', attention={"system": "rfaa"})

    def test_a_misspelt_required_field_is_named(self):
        for misspelt, key, where in (("num_head", "num_heads", "config.json: "), ("attntion", "attention", "config.json: ")):
            config = {**CONFIG, misspelt: CONFIG[key]}
            del config[key]
            self.config.write_text(json.dumps(config))
            self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, f'{where}the field "{key}" is missing, expected ',
                                f'found the unknown field "{misspelt}": did you mean "{key}"?')
        self.unknown('attention: the field "max_context" is missing', 'did you mean "max_context"?',
                     attention={"system": "softmax", "max_contex": 8})
        # A known field is not taken for another one, however near it is.
        config = {**CONFIG, "num_kv_heads": 2}
        del config["num_heads"]
        self.config.write_text(json.dumps(config))
        done = self.run_tool(self.folder, "-o", self.out)
        self.expect_failure(done, 1, 'the field "num_heads" is missing')
        self.assertNotIn("did you mean", done.stderr)

    def test_a_pointer_of_git_lfs_is_named(self):
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1234567\n"
        for path in self.weights, self.config:
            path.write_text(pointer)
            self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1,
                                f"{path}: a Git LFS pointer, not the file: git lfs pull")

    def test_unknown_tensors_say_whose_they_are(self):
        prefix = "model.layers.0.attn."
        rfa = {"system": "rfa", "feature_map": "gaussian", "num_features": 8}
        shapes = {**SHAPES, prefix + "random_matrix": [2, 8, 8], prefix + "sigma": [2, 8], prefix + "g_proj.weight": [2, 16],
                  prefix + "control_proj.weight": [8, 16], prefix + "q_proj.bias": [16], "lm_head.bias": [256]}
        self.config.write_text(json.dumps({**CONFIG, "attention": rfa}))
        self.weights.write_bytes(safetensors(shapes))
        done = self.run_tool(self.folder, "-o", self.out)
        self.expect_failure(done, 1, "unknown: 4", lines=5)
        found = [line.rsplit("; ", 1)[1] for line in done.stderr.splitlines()[1:]]
        self.assertEqual(found[0], 'it is read where "lm_head_bias" is true')
        self.assertRegex(found[1], '^a tensor of attention "abc_mlp"')
        self.assertEqual(found[2], 'attention "rfa" has it where "gate" is "forget"')
        self.assertEqual(found[3], 'it is read where "attention_bias" is true')

    def test_list_of_fields(self):
        done = self.run_tool("--list-fields", "rfa")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        rows = {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines())}
        self.assertEqual(rows["num_features"][1], "required")
        self.assertEqual(rows["den_eps"][1], '0.01; "gate" is "forget": 0.001')
        self.assertEqual(rows["gate"][0], '"none", "forget" ("forget": causal)')
        self.assertEqual(rows["attn.g_proj.bias"], ["[num_kv_heads]", '"gate" is "forget"'])
        self.assertNotIn("vector", rows["gate"][2])
        for line in self.run_tool("--list-fields", "abc_mlp").stdout.splitlines():
            if "cross_control_proj" in line:
                self.assertTrue(line.endswith('"control_sharing" is "model", cross attention of seq2seq'), line)
        self.assertEqual(self.run_tool("--list-fields").stdout, self.run_tool("--list-fields", "config").stdout)
        for option in "--list-fields", "--systems", "--families", "--list-tensors":  # nothing would be written
            done = self.run_tool(option, "-o", self.root / "x.tarn")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{option} and --output are both there, expected one of them", done.stderr)
        everything = self.run_tool("--list-fields", "all").stdout
        for line in self.run_tool("--systems").stdout.splitlines()[2:]:
            self.assertIn(f"\n{line.split('`')[1]} (", everything)
        self.expect_failure(self.run_tool("--list-fields", "rfaa"), 2, "did you mean rfa?")

    def test_mistyped_options_get_a_suggestion(self):
        self.expect_failure(self.run_tool(self.folder, "-o", self.out, "--qaunt", "int8"), 2,
                            "unknown option '--qaunt' (did you mean --quant?)")

    def test_control_characters_are_shown(self):
        self.config.write_text(json.dumps({**CONFIG, "zz\n\x1b[2J": 3}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, r'unknown field "zz\n\u001b[2J"')
        self.config.write_text(json.dumps(CONFIG))
        self.weights.write_bytes(safetensors({**SHAPES, "sur\x1b[2Jplus": [2]}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, r'"sur\u001b[2Jplus"', lines=2)
        self.expect_failure(self.run_tool(self.root / "a\n\x1b[2J", "-o", self.out), 1, r"a\x0a\x1b[2J")
        self.expect_failure(self.run_tool(self.folder, "-o", self.out, "a\x1b[2J"), 2, r"a\x1b[2J")

    def test_version(self):
        done = self.run_tool("--version")
        tarn = subprocess.run([BIN / "tarn", "--version"], capture_output=True, text=True, check=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertEqual(done.stdout, tarn.stdout.replace("tarn ", "tarn-convert "))

    def test_list_of_tensors(self):
        for path in self.config, self.folder:
            done = self.run_tool("--list-tensors", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            listed = dict(line.split(" ", 1) for line in done.stdout.splitlines())
            self.assertEqual({name: json.loads(shape) for name, shape in listed.items()}, SHAPES)
        self.config.write_text(json.dumps({**CONFIG, "tie_word_embeddings": False}))
        self.assertIn("lm_head.weight [256, 16]\n", self.run_tool("--list-tensors", self.config).stdout)
        self.expect_failure(self.run_tool("--list-tensors", self.root / "none"), 1, "none")

    def test_a_tied_head_may_be_there(self):
        self.assertEqual(self.run_tool(self.folder, "-o", self.out).returncode, 0)
        before = self.out.read_bytes()
        self.weights.write_bytes(safetensors({**SHAPES, "lm_head.weight": [256, 16]}))
        done = self.run_tool(self.folder, "-o", self.out)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done)
        self.assertEqual(self.out.read_bytes(), before)

    def test_json_errors_say_where(self):
        for text, words in (('{\n "vocab_size": 256,\n}', "line 3, column 1: expected a key in double quotes, found '}'"),
                            ("", "line 1, column 1: expected a value, but the text ends"),
                            ('{"vocab_size": ' + "9" * 5_000_000 + "}", "a number that a double can hold"),
                            ('{"vocab_size": "' + "x" * 5_000_000, "a closing quote")):
            self.config.write_text(text)
            done = self.run_tool(self.folder, "-o", self.out)
            self.expect_failure(done, 1, "config.json: not valid JSON: ", words)
            self.assertNotIn("json.exception", done.stderr)
        self.config.write_text(json.dumps({**CONFIG, "hidden_act": "x" * 5_000_000}))
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, "hidden_act", "is not one of swiglu")
        self.config.write_text(" " * 16_000_001)
        self.expect_failure(self.run_tool(self.folder, "-o", self.out), 1, "16000001 bytes, expected at most 16000000")

    def test_many_tensors_take_no_longer_each(self):
        """80,000 tensors took two minutes of a processor and more than a second for each that came: far beyond this limit."""
        header = {f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(80_000)}
        text = json.dumps(header).encode()
        self.weights.write_bytes(struct.pack("<Q", len(text)) + text)
        done = self.run_tool(self.folder, "-o", self.out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)))
        self.expect_failure(done, 1, "80010 tensors do not fit", "unknown: 80000", "... and 79960 more", lines=52)

    def test_standard_output_that_cannot_be_written(self):
        commands = [("--help",), ("--version",), ("--systems",), ("--list-tensors", self.config), (self.folder, "-o", self.out)]
        for command in commands:
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([TOOL, *map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, 1, command)
            self.assertEqual(done.stderr, "tarn-convert: error: cannot write to standard output: No space left on device\n")
        # A reader that has seen enough is no failure.
        piped = subprocess.run(f"'{TOOL}' --help | true; exit ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash", check=False,
                               stderr=subprocess.PIPE)
        self.assertEqual((piped.returncode, piped.stderr), (0, b""))

    def test_closed_streams_do_not_become_the_file(self):
        done = subprocess.run(f"'{TOOL}' '{self.folder}' -o '{self.root}/closed.tarn' <&- >&- 2>&-", shell=True, check=False)
        self.assertEqual(done.returncode, 1)  # what is said at the end is lost
        self.assertEqual(self.run_tool(self.folder, "-o", self.out).returncode, 0)
        self.assertEqual((self.root / "closed.tarn").read_bytes(), self.out.read_bytes())

    def test_a_pipe_is_no_checkpoint(self):
        for path in self.weights, self.config:
            path.unlink()
            os.mkfifo(path)
            self.expect_failure(self.run_tool(self.folder, "-o", self.out, timeout=20), 1, path.name, "not a regular file")
        done = self.run_tool("--random-weights", "1", self.config, "-o", self.out, timeout=20)
        self.expect_failure(done, 1, "config.json", "not a regular file")

    def test_interrupt_leaves_no_file(self):
        large = {**CONFIG, "hidden_size": 2048, "intermediate_size": 8192, "num_heads": 16, "num_layers": 16}
        self.config.write_text(json.dumps(large))
        for kind in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = subprocess.Popen([TOOL, "--random-weights", "1", self.config, "-o", self.out], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(kind, signal.SIG_DFL))
            deadline = time.monotonic() + 60
            while not list(self.root.glob("out.tarn.tmp.*")):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            process.send_signal(kind)
            out, err = process.communicate(timeout=60)
            done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
            self.expect_failure(done, 128 + kind, "tarn-convert: error: interrupted\n")

    def test_output_is_not_an_input(self):
        before = self.weights.read_bytes()
        done = self.run_tool(self.folder, "-o", self.weights)
        self.expect_failure(done, 1, "model.safetensors", "overwritten")
        self.assertEqual(self.weights.read_bytes(), before)
        self.expect_failure(self.run_tool("--random-weights", "1", self.config, "-o", self.config), 1, "overwritten")

    def test_an_old_file_survives_a_failure(self):
        self.out.write_bytes(b"before")
        self.weights.write_bytes(safetensors(SHAPES, float("inf")))
        self.assertEqual(self.run_tool(self.folder, "-o", self.out).returncode, 1)
        self.assertEqual(self.out.read_bytes(), b"before")
        self.assertEqual([path.name for path in self.root.glob("out*")], ["out.tarn"])

    def test_no_room_on_the_disk(self):
        # A limit on the size of files fails where a full disk does.
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        done = self.run_tool(self.folder, "-o", self.out, preexec_fn=limit)
        self.expect_failure(done, 1, f"error: {self.out}: cannot be written: File too large")
        text = self.root / "text.txt"  # with a scratch file before the output
        text.write_bytes(b"to be or not")
        done = self.run_tool(self.folder, "-o", self.out, "--eval", text, "--eval-block", "8", preexec_fn=limit)
        self.expect_failure(done, 1, f"error: {self.out}: cannot be written: File too large")


if __name__ == "__main__":
    unittest.main()
