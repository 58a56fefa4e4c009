"""The tarn command line: what it prints, where, and with which exit status. Standard library only."""

import json
import math
import os
import re
import signal
import struct
import subprocess
import tempfile
import unittest

BIN = os.path.join(os.environ["TARN_BUILD"], "bin")
MODELS = os.path.join(os.environ["TARN_SOURCE"], "examples", "models")
MODEL = os.path.join(MODELS, "shakespeare-rfa-gate-int8.tarn")
MEMORY = ["mapped_bytes", "packed_file_bytes", "packed_anonymous_bytes", "model_bytes", "session_bytes", "state_bytes",
          "arena_bytes", "scratch_bytes", "program_bytes"]
# A model in a moment: 256 ids, a context of 32 tokens.
TINY = {"task": "causal_lm", "vocab_size": 256, "hidden_size": 32, "num_layers": 1, "num_heads": 2, "intermediate_size": 64,
        "hidden_act": "swiglu", "norm": "rmsnorm", "norm_eps": 1e-5, "norm_position": "pre", "final_norm": True,
        "attention_bias": False, "mlp_bias": False, "position_embedding": "none", "first_position": 0,
        "scale_embeddings": False, "tie_word_embeddings": True, "tokenizer": "bytes",
        "attention": {"system": "softmax", "max_context": 32}}


def tarn(*arguments, environment=None, stdout=subprocess.PIPE):
    """Status, standard output (bytes) and standard error (text)."""
    done = subprocess.run([os.path.join(BIN, "tarn"), *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE,
                          env={**os.environ, **(environment or {})}, timeout=120)
    return done.returncode, done.stdout, done.stderr.decode()


def npy(ids, descr="<i4", shape=None, version=1):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape or "(%d,)" % len(ids))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + struct.pack("<%di" % len(ids), *ids)


def read_logits(path):
    """Rows of a float32 .npy file; checks its header."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    size, = struct.unpack("<H", data[8:10])
    assert (10 + size) % 64 == 0 and data[9 + size:10 + size] == b"\n"
    header = eval(data[10:10 + size].decode(), {})  # a literal of our own making
    assert header["descr"] == "<f4" and header["fortran_order"] is False, header
    rows, columns = header["shape"]
    values = struct.unpack("<%df" % (rows * columns), data[10 + size:])
    return [values[row * columns:(row + 1) * columns] for row in range(rows)]


def loss(logits, target):
    largest = max(logits)
    return largest + math.log(sum(math.exp(value - largest) for value in logits)) - logits[target]


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, tokenizer in ("bounded", "bytes"), ("ids", "none"):
            config = cls.path(name + ".json")
            with open(config, "w") as file:
                json.dump({**TINY, "tokenizer": tokenizer}, file)
            subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", config, "-o",
                            cls.path(name + ".tarn"), "--quant", "f32"], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def fails(self, status, words, *arguments, **keywords):
        """One line of error with these words, this exit status, nothing on standard output."""
        found, out, err = tarn(*arguments, **keywords)
        lines = [line for line in err.splitlines() if line.startswith("tarn: error: ")]
        self.assertEqual((found, out or b"", len(lines)), (status, b"", 1), err)
        self.assertRegex(lines[0], words)

    def run_json(self, *arguments):
        stats = self.path("stats.json")
        status, _, err = tarn("run", "-m", MODEL, "-p", "ROMEO:", "--json-stats", stats, *arguments)
        self.assertEqual(status, 0, err)
        with open(stats) as file:
            return json.load(file)

    def eval_json(self, *arguments):
        status, out, err = tarn("eval", "--json", *arguments)
        self.assertEqual(status, 0, err)
        return json.loads(out)


class UsageTest(CliTest):
    def test_wrong_command_lines(self):
        self.fails(2, "subcommand is required")
        self.fails(2, "subcommand is required", "frobnicate")
        self.fails(2, "--model is required", "run", "-p", "a")
        self.fails(2, "--n-predict = many", "run", "-m", MODEL, "-p", "a", "-n", "many")
        self.fails(2, "-n is -2", "run", "-m", MODEL, "-p", "a", "-n", "-2")
        self.fails(2, "--seed: is -1", "run", "-m", MODEL, "-p", "a", "-s", "-1")
        self.fails(2, "more than one prompt", "run", "-m", MODEL, "-p", "a", "--tokens", "1,2")
        self.fails(2, "--file is required", "eval", "-m", MODEL)
        self.fails(2, "wanted a model file, or --cpu", "inspect")

    def test_version_and_help(self):
        self.assertRegex(tarn("--version")[1].decode(), r"^tarn \d+\.\d+\.\d+\n$")
        for command in [], ["run"], ["eval"], ["inspect"]:
            status, out, _ = tarn(*command, "--help")
            self.assertEqual(status, 0)
            self.assertIn(b"Examples:", out)

    def test_files_and_names_that_are_not_there(self):
        for command in ["run", "-p", "a"], ["eval", "-f", __file__], ["inspect"]:
            self.fails(1, "nowhere.tarn", *command, "-m", self.path("nowhere.tarn"))
        self.fails(1, "nothing.txt", "eval", "-m", MODEL, "-f", self.path("nothing.txt"))
        self.fails(1, "nothing.txt", "run", "-m", MODEL, "-f", self.path("nothing.txt"))
        self.fails(1, "'NEON9'", "inspect", MODEL, "--isa", "NEON9")
        self.fails(1, "'NEON9'", "inspect", MODEL, environment={"TARN_ISA": "NEON9"})
        self.fails(1, "no/folder", "run", "-m", MODEL, "-p", "a", "--json-stats", self.path("no/folder/stats.json"))

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.fails(1, "standard output: No space", "run", "-m", MODEL, "-p", "a", stdout=full)
            self.fails(1, "standard output: No space", "inspect", MODEL, stdout=full)
            self.fails(1, "standard output: No space", "--help", stdout=full)
        status, _, err = tarn("run", "-m", MODEL, "-p", "a", "-n", "2", "--json-stats", "/dev/full")
        self.assertEqual(status, 1)
        self.assertIn("tarn: error: /dev/full: cannot write: No space", err)


class RunTest(CliTest):
    def text(self, *arguments, **keywords):
        status, out, err = tarn("run", "-m", MODEL, "-p", "ROMEO:", "-n", 60, *arguments, **keywords)
        self.assertEqual(status, 0, err)
        return out, err

    def test_same_seed_same_text(self):
        first, _ = self.text("-s", 42)
        self.assertTrue(first.startswith(b"ROMEO:") and first.endswith(b"\n") and len(first) > 40, first)
        self.assertEqual(self.text("-s", 42, "-t", 1)[0], first)
        self.assertNotEqual(self.text("-s", 43)[0], first)

    def test_random_seed_is_printed_and_repeats(self):
        first, err = self.text()
        seed = re.search(r"^seed (\d+),", err).group(1)
        self.assertEqual(self.text("-s", seed)[0], first)

    def test_greedy_needs_no_seed(self):
        self.assertEqual(self.text("--temp", 0)[0], self.text("--temp", 0)[0])

    def test_prompt_from_file_and_ids(self):
        expected, _ = self.text("-s", 1)
        prompt = self.write("prompt.txt", b"ROMEO:")
        for source in ["-f", prompt], ["--tokens", ",".join(str(byte) for byte in b"ROMEO:")]:
            status, out, _ = tarn("run", "-m", MODEL, *source, "-n", 60, "-s", 1)
            self.assertEqual((status, out), (0, expected))

    def test_output_is_utf8(self):
        prompt = self.write("prompt.txt", b"caf\xc3\xa9 \xff \xe2\x82")
        status, out, _ = tarn("run", "-m", self.path("bounded.tarn"), "-f", prompt, "-n", 20, "-s", 1, "--temp", 5,
                              "--top-k", 0)
        self.assertEqual(status, 0)
        self.assertTrue(out.decode().startswith("caf\u00e9 \ufffd "), out)

    def test_empty_prompt(self):
        self.fails(1, "prompt is empty", "run", "-m", MODEL, "-p", "")
        self.fails(1, "prompt is empty", "run", "-m", MODEL)

    def test_wrong_values_are_named(self):
        self.fails(1, "temperature is -1", "run", "-m", MODEL, "-p", "a", "--temp", "-1")
        self.fails(1, "top_p is 2", "run", "-m", MODEL, "-p", "a", "--top-p", "2")
        self.fails(1, "token is 300", "run", "-m", MODEL, "--tokens", "300")

    def test_model_without_tokenizer(self):
        ids = self.path("ids.tarn")
        status, out, _ = tarn("run", "-m", ids, "--tokens", "1,2,3", "-n", 4, "-s", 1)
        self.assertEqual(status, 0)
        self.assertRegex(out.decode(), r"^1 2 3( \d+){4}\n$")
        self.fails(1, "no tokenizer", "run", "-m", ids, "-p", "a")

    def test_bounded_context_ends_with_a_clear_line(self):
        status, out, err = tarn("run", "-m", self.path("bounded.tarn"), "-p", "abcd", "-n", 100, "-s", 1)
        self.assertEqual(status, 1)
        self.assertIn("generation", err)
        # 4 + 28 tokens fill the 32; the 29th is drawn from the last logits and cannot be fed.
        self.assertRegex(err.splitlines()[-1], r"^tarn: error: after 29 generated tokens: .*\b32\b")
        status, _, err = tarn("run", "-m", self.path("bounded.tarn"), "-p", "a" * 33)
        self.assertEqual(status, 1)
        self.assertRegex(err.splitlines()[-1], r"^tarn: error: prompt: .*\b32\b")

    def test_stats(self):
        stats = self.run_json("-n", 50, "-s", 7, "-t", 1)
        for key in ("prompt_seconds", "generate_seconds", "first_1000_median_us", "last_1000_median_us", "tokens_per_second"):
            self.assertGreater(stats[key], 0, key)
        self.assertEqual([stats[key] for key in ("prompt_tokens", "generated_tokens", "seed", "threads", "rss_anon_growth_pages")],
                         [6, 50, 7, 1, 0])
        self.assertEqual(list(stats["memory"]), MEMORY)
        memory = stats["memory"]
        self.assertEqual(memory["session_bytes"], sum(memory[key] for key in MEMORY[5:]))
        self.assertEqual([name for name in os.listdir(self.folder.name) if ".tmp" in name], [])

    def test_nothing_is_allocated_and_the_counter_is_alive(self):
        stats = self.run_json("-n", 300)
        if stats["allocation_counter"] != "on":
            self.assertIsNone(stats["allocations_after_creation"])
            self.skipTest(stats["allocation_counter"])
        self.assertEqual(stats["allocations_after_creation"], 0)
        # malloc, operator new and mmap, once each.
        self.assertEqual(self.run_json("-n", 300, "--test-allocate")["allocations_after_creation"], 3)

    def test_table(self):
        _, err = self.text()
        for word in ("prompt", "generation", "first token", "model file", "packed weights", "state", "arena", "scratch", "program"):
            self.assertRegex(err, r"(?m)^ *%s  " % word)

    def start_endless(self, *arguments):
        return subprocess.Popen([os.path.join(BIN, "tarn"), "run", "-m", MODEL, "-p", "A", "-n", "-1", *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_interrupt_ends_cleanly(self):
        process = self.start_endless("--json-stats", self.path("interrupted.json"))
        process.stdout.read(100)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"generation", err)
        with open(self.path("interrupted.json")) as file:
            self.assertGreater(json.load(file)["generated_tokens"], 50)

    def test_closed_pipe_ends_cleanly(self):
        process = self.start_endless()
        process.stdout.read(100)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertNotIn(b"error", err)


class EvalTest(CliTest):
    TEXT = "ROMEO:\nIs the day so young?\n\nBENVOLIO:\nBut new struck nine.\n".encode() + bytes(range(100, 140))

    def test_loss_is_that_of_the_logits(self):
        text = self.write("text.txt", self.TEXT)
        logits_file = self.path("logits.npy")
        size = len(self.TEXT)
        for block in 0, 1000, 50, 7:
            found = self.eval_json("-m", MODEL, "-f", text, "--logits", logits_file, *(["--block", block] if block else []))
            rows = read_logits(logits_file)
            self.assertEqual((len(rows), len(rows[0])), (size, 256))
            losses = [loss(rows[i], self.TEXT[i + 1]) for i in range(size - 1) if not block or (i + 1) % block != 0]
            mean = sum(losses) / len(losses)
            self.assertEqual((found["tokens"], found["scored"]), (size, len(losses)))
            self.assertAlmostEqual(found["nats_per_token"], mean, 9)
            self.assertEqual(found["nats_per_byte"], found["nats_per_token"])
            self.assertAlmostEqual(found["perplexity"], math.exp(mean), 6)

    def test_blocks_start_anew(self):
        text = self.write("text.txt", self.TEXT[:20] * 2)
        self.eval_json("-m", MODEL, "-f", text, "--block", 20, "--logits", self.path("logits.npy"))
        rows = read_logits(self.path("logits.npy"))
        self.assertEqual(rows[:20], rows[20:])

    def test_range_of_tokens(self):
        text = self.write("text.txt", self.TEXT)
        part = self.write("part.txt", self.TEXT[10:40])
        expected = self.eval_json("-m", MODEL, "-f", part)
        found = self.eval_json("-m", MODEL, "-f", text, "--begin", 10, "--tokens", 30)
        for key in "tokens", "scored", "nats_per_token":
            self.assertEqual(found[key], expected[key])
        self.fails(1, "--begin", "eval", "-m", MODEL, "-f", text, "--begin", 1000)

    def test_chunks_and_threads_change_little_or_nothing(self):
        text = self.write("text.txt", self.TEXT)
        expected = self.eval_json("-m", MODEL, "-f", text, "-t", 1)["nats_per_token"]
        self.assertEqual(self.eval_json("-m", MODEL, "-f", text, "-t", 3)["nats_per_token"], expected)
        # int8 activations round differently when sums are taken in another order.
        self.assertAlmostEqual(self.eval_json("-m", MODEL, "-f", text, "--chunk", 5)["nats_per_token"], expected, 2)

    def test_too_little_to_score(self):
        self.fails(1, "wanted at least 2", "eval", "-m", MODEL, "-f", self.write("one.txt", b"a"))
        self.fails(1, "empty.txt", "eval", "-m", MODEL, "-f", self.write("empty.txt", b""))

    def test_bounded_model(self):
        text = self.write("text.txt", self.TEXT)
        bounded = self.path("bounded.tarn")
        self.assertEqual(self.eval_json("-m", bounded, "-f", text, "--block", 33)["tokens"], len(self.TEXT))
        self.fails(1, r"\b32\b", "eval", "-m", bounded, "-f", text)

    def test_token_files(self):
        ids = self.path("ids.tarn")
        for version in 1, 2:
            tokens = self.write("tokens.npy", npy(list(range(30)), version=version))
            found = self.eval_json("-m", ids, "-f", tokens)
            self.assertEqual((found["tokens"], found["scored"], found["nats_per_byte"]), (30, 29, None))
        good = npy([1, 2, 3])
        for words, content in (
                ("not a .npy file", b"hello"),
                ("version 3", npy([1, 2], version=3)),
                ("wanted '<i4'", npy([1, 2], descr="<i8")),
                ("wanted one dimension", npy([1, 2], shape="(1, 2)")),
                ("wanted one dimension", npy([1, 2], shape="()")),
                ("bytes of data", npy([1, 2], shape="(3,)")),
                ("bytes of data", good + b"\0"),
                ("header alone needs", good[:40]),
                ("header alone needs", good[:9]),
                ("no dictionary", good.replace(b"descr", b"desks")),
                ("no dictionary", good.replace(b"{", b"[")),
                ("fortran_order is True", good.replace(b"False", b"True ")),
                ("token 1 is 256", npy([1, 256])),
                ("token 0 is -1", npy([-1, 2]))):
            self.fails(1, words, "eval", "-m", ids, "-f", self.write("bad.npy", content))

    def test_table(self):
        status, out, _ = tarn("eval", "-m", MODEL, "-f", self.write("text.txt", self.TEXT))
        self.assertEqual(status, 0)
        self.assertRegex(out.decode(), r"(?s)tokens +\d+\nscored +\d+\nnats/token +[\d.]+\nnats/byte +[\d.]+\nperplexity")


class InspectTest(CliTest):
    def json(self, *arguments):
        status, out, err = tarn("inspect", "--json", *arguments)
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def test_everything(self):
        found = self.json(MODEL)
        self.assertEqual(list(found), ["model", "session", "memory", "ops", "states", "tensors"])
        self.assertRegex(found["model"]["fingerprint"], r"^[0-9a-f]{64}$")
        self.assertEqual((found["model"]["vocab_size"], found["model"]["tokenizer"], found["model"]["max_tokens"]),
                         (256, "bytes", None))
        self.assertEqual(list(found["memory"]), MEMORY)
        self.assertEqual(found["memory"]["mapped_bytes"], os.path.getsize(MODEL))
        attention = [op for op in found["ops"] if op["kind"] == "linear_state"]
        self.assertEqual(len(attention), 4)
        self.assertTrue(all(op["state_bytes"] > 0 and op["kv_break_even_tokens"] > 0 for op in attention))
        self.assertLessEqual(sum(state["bytes"] for state in found["states"]), found["memory"]["state_bytes"])
        for tensor in found["tensors"]:
            self.assertEqual(tensor["bytes"], math.prod(tensor["shape"]) * {"i8": 1, "f32": 4}[tensor["dtype"]])

    def test_tables_hold_what_json_holds(self):
        status, out, _ = tarn("inspect", MODEL)
        self.assertEqual(status, 0)
        found = self.json(MODEL)
        for section in "ops", "states", "tensors":
            for item in found[section]:
                self.assertRegex(out.decode(), r"(?m)^  %s  " % re.escape(item["name"]))
        self.assertIn(found["model"]["fingerprint"], out.decode())

    def test_sections(self):
        self.assertEqual(list(self.json(MODEL, "--states")), ["model", "session", "memory", "states"])
        self.assertEqual(list(self.json(MODEL, "--cpu", "--tensors")), ["cpu", "model", "session", "memory", "tensors"])

    def test_session_numbers_change_the_memory(self):
        found = self.json(MODEL, "-t", 1, "--chunk", 16)
        one = found["memory"]
        two = self.json(MODEL, "-t", 1, "--chunk", 16, "--batch", 2)["memory"]
        self.assertEqual(two["state_bytes"] - one["state_bytes"], sum(state["bytes"] for state in found["states"]))
        self.assertGreater(self.json(MODEL, "-t", 1, "--chunk", 64)["memory"]["arena_bytes"], one["arena_bytes"])

    def test_cpu_needs_no_model(self):
        found = self.json("--cpu")["cpu"]
        self.assertEqual(found["kernels"][-1], "reference")
        self.assertGreaterEqual(found["fast_cores"], 1)
        self.assertIn(b"reference", tarn("inspect", "--cpu")[1])

    def test_bound_is_shown(self):
        self.assertEqual(self.json(self.path("bounded.tarn"))["model"]["max_tokens"], 32)

    def test_isa_is_chosen(self):
        self.assertEqual(self.json(MODEL, "--isa", "reference")["model"]["isa"], "reference")
        status, out, _ = tarn("inspect", "--json", MODEL, environment={"TARN_ISA": "reference"})
        self.assertEqual((status, json.loads(out)["model"]["isa"]), (0, "reference"))
        self.assertEqual(self.json(MODEL, "--portable-dense")["model"]["dense"], "portable")


if __name__ == "__main__":
    unittest.main()
