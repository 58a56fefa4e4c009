"""The tarn command line: what it prints, where, and with which exit status; tarn_eval_test.py has the rest."""

import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import unittest

from tarn_testing import BIN, MASKED_LM, MEMORY, MODEL, RFA, TINY, CliTest, start, tarn


class UsageTest(CliTest):
    def test_wrong_command_lines(self):
        self.fails(2, "no command, expected run, classify, fill, eval, bench, tokenize, inspect, state or help")
        self.fails(2, "the command is 'sing', expected run, classify, fill, eval, bench, tokenize, inspect, state or help$", "sing")
        self.fails(2, "the command is ''", "")
        self.fails(2, "the model is missing", "run", "-p", "a")
        self.fails(2, "more than one input, expected one of -p, -f and --tokens", "run", "-m", MODEL, "-p", "a", "--tokens", "1,2")
        self.fails(2, "--file is missing", "eval", "-m", MODEL)
        self.fails(2, "no model, expected `tarn inspect MODEL`", "inspect")

    def test_integers_are_whole_and_within_their_range(self):
        huge = "9" * 23
        for value in "many", "-2", huge, "1.5", "0x10", "":
            self.fails(2, f"--n-predict: is '{value}', expected an integer from -1 to 9223372036854775807",
                       "run", "-m", MODEL, "-p", "a", "-n", value)
        for option, largest in ("-s", 2**64 - 1), ("-t", 256), ("--top-k", 2**32 - 1):
            for value in "-1", huge, "+1":
                self.fails(2, rf"is '{re.escape(value)}', expected an integer from 0 to {largest}",
                           "run", "-m", MODEL, "-p", "a", option, value)
        self.fails(2, "--tokens: there is no id, expected at least one", "run", "-m", MODEL, "--tokens", "")
        for place, ids in (2, "1,,2"), (3, "1,2,"), (1, "-1,2"), (2, "1,2147483648"), (1, "1 2"):
            self.fails(2, f"--tokens: id {place} is '", "run", "-m", MODEL, "--tokens", ids)
        self.fails(2, "--batch: is '0', expected an integer from 1", "inspect", MODEL, "--batch", 0)

    def test_version_and_help(self):
        self.assertRegex(tarn("--version")[1].decode(), r"^tarn \d+\.\d+\.\d+\n$")
        for command in [], ["run"], ["classify"], ["fill"], ["eval"], ["bench"], ["inspect"], ["state"], ["help"]:
            status, out, _ = tarn(*command, "--help")
            self.assertEqual(status, 0)
            self.assertIn(b"\nExamples", out)

    def test_files_and_names_that_are_not_there(self):
        for command in ["run", "-p", "a"], ["eval", "-f", __file__], ["inspect"]:
            self.fails(1, "nowhere.tarn", *command, "-m", self.path("nowhere.tarn"))
        self.fails(1, "nothing.txt", "eval", "-m", MODEL, "-f", self.path("nothing.txt"))
        self.fails(1, "nothing.txt", "run", "-m", MODEL, "-f", self.path("nothing.txt"))
        names = "expected .* or reference"
        self.fails(2, "error: --isa is 'NEON9', " + names, "inspect", MODEL, "--isa", "NEON9", environment={"TARN_ISA": "x"})
        self.fails(1, "error: TARN_ISA of the environment is 'NEON9', " + names, "inspect", MODEL,
                   environment={"TARN_ISA": "NEON9"})
        self.fails(1, "no/folder", "run", "-m", MODEL, "-p", "a", "--json-stats", self.path("no/folder/stats.json"))

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.fails(1, "standard output: No space", "run", "-m", MODEL, "-p", "a", stdout=full)
            self.fails(1, "standard output: No space", "inspect", MODEL, stdout=full)
            self.fails(1, "standard output: No space", "--help", stdout=full)
        # A limit on the size of files fails where a full disk does.
        stats = self.path("full.json")
        status, _, err = tarn("run", "-m", MODEL, "-p", "a", "-n", "2", "--json-stats", stats,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16)))
        self.assertEqual(status, 1)
        self.assertIn(f"tarn: error: {stats}: cannot be written: File too large", err)
        self.assertEqual([name for name in os.listdir(self.folder.name) if name.startswith("full.json")], [])

    def test_outputs_replace_nothing_that_matters(self):
        model, text = shutil.copy(MODEL, self.path("model.tarn")), self.write("text.txt", b"some text")
        link = self.path("link.tarn")
        os.link(model, link)
        for output in model, link, text:
            self.fails(1, f"{output}: is an input of this command", "run", "-m", model, "-f", text, "--json-stats", output)
            self.fails(1, f"{output}: is an input of this command", "eval", "-m", model, "-f", text, "--logits", output)
        self.fails(1, "/dev/full: exists and is not a regular file", "run", "-m", model, "-p", "a", "--json-stats", "/dev/full")
        out = self.path("out.txt")
        with open(out, "wb") as stdout:
            self.fails(1, "standard output goes", "run", "-m", model, "-p", "a", "--json-stats", out, stdout=stdout)
        with open(model, "rb") as copied, open(MODEL, "rb") as original:
            self.assertEqual(copied.read(), original.read())

    def test_outputs_of_run_replace_no_input_of_it(self):
        draft, text = shutil.copy(MODEL, self.path("draft.tarn")), self.write("prompt.txt", b"some text")
        rules, schema = self.write("rules.txt", b'root ::= "a"'), self.write("schema.json", b'{"const": 1}')
        for path, how in ((draft, ("--draft", draft, "-p", "a")), (text, ("-f", text)), (rules, ("--grammar", rules, "-p", "a")),
                          (schema, ("--json-schema", schema, "-p", "a"))):
            with open(path, "rb") as file:
                before = file.read()
            for option in "--save-state", "--json-stats":
                self.fails(1, f"{path}: is an input of this command", "run", MODEL, *how, "-n", 1, option, path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before)
        state = self.path("state")
        for _ in range(2):  # a state may go on in its file
            begin = ("--load-state", state) if os.path.exists(state) else ()
            self.assertEqual(tarn("run", MODEL, "-p", "a", "-n", "1", "-q", *begin, "--save-state", state)[0], 0)
        self.fails(1, "is an input of this command", "run", MODEL, "-p", "a", "-n", 1, "--load-state", state, "--json-stats", state)
        self.fails(2, f"--json-stats and --save-state both write {state}", "run", MODEL, "-p", "a", "--save-state", state,
                   "--json-stats", os.path.join(self.folder.name, ".", "state"))
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder.name)
        self.fails(2, "--json-stats and --save-state both write ./new", "run", MODEL, "-p", "a", "--save-state", "./new", "--json-stats",
                   "new")
        self.fails(1, "cannot be created: File name too long", "run", MODEL, "-p", "a", "--save-state", "x" * 300, "--json-stats", "new")
        self.fails(2, "--load-state and --system do not go together", "run", MODEL, "-p", "a", "--chat", "--system", "b",
                   "--load-state", state)

    def test_control_characters_are_shown(self):
        evil = "e\n\x1b[2J\x7f"
        model = self.path("evil.tarn")
        subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", self.path("bounded.json"), "-o", model,
                        "--name", evil], check=True, stdout=subprocess.DEVNULL)
        status, out, _ = tarn("inspect", model)
        self.assertEqual(status, 0)
        self.assertRegex(out.decode(), r"(?m)^name +e\\x0a\\x1b\[2J\\x7f$")
        status, out, _ = tarn("inspect", "--json", model)
        self.assertEqual(json.loads(out)["model"]["name"], evil)
        self.assertEqual([byte for byte in out if byte < 0x20 and byte != 10 or byte >= 0x7f], [])
        self.fails(2, r"the command is 'a\\x1b\[2Jb'", "a\x1b[2Jb")
        self.fails(1, r"a\\x1b\[2Jb", "run", "-m", MODEL, "-f", self.path("a\x1b[2Jb"))


class RunTest(CliTest):
    def run_json(self, *arguments):
        stats = self.path("stats.json")
        status, _, err = tarn("run", "-m", MODEL, "-p", "ROMEO:", "--json-stats", stats, *arguments)
        self.assertEqual(status, 0, err)
        with open(stats) as file:
            return json.load(file)

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
        self.fails(2, "--temp: is .-1., expected a number: at least 0", "run", "-m", MODEL, "-p", "a", "--temp", "-1")
        self.fails(2, "--top-p: is .2., expected a number: above 0, at most 1", "run", "-m", MODEL, "-p", "a", "--top-p", "2")
        self.fails(2, "--tokens: 300 is no token", "run", "-m", MODEL, "--tokens", "300")

    def test_model_without_tokenizer(self):
        ids = self.path("ids.tarn")
        status, out, _ = tarn("run", "-m", ids, "--tokens", "1,2,3", "-n", 4, "-s", 1)
        self.assertEqual(status, 0)
        self.assertRegex(out.decode(), r"^1 2 3( \d+){4}\n$")
        self.fails(1, "no tokenizer", "run", "-m", ids, "-p", "a")

    def test_stats(self):
        stats = self.run_json("-n", 50, "-s", 7, "-t", 1)
        for key in ("prompt_seconds", "generate_seconds", "first_1000_median_us", "last_1000_median_us", "tokens_per_second"):
            self.assertGreater(stats[key], 0, key)
        self.assertEqual([stats[key] for key in ("prompt_tokens", "generated_tokens", "seed", "threads", "rss_anon_growth_pages")],
                         [6, 50, 7, 1, 0])
        self.assertEqual(list(stats["memory"]), MEMORY)
        memory = stats["memory"]
        self.assertEqual(memory["session_bytes"], sum(memory[key] for key in MEMORY[6:]))
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

    def start_endless(self, *arguments, hangup=signal.SIG_DFL):
        return start("run", "-m", MODEL, "-p", "A", "-n", "-1", *arguments, hangup=hangup)

    def test_interrupt_ends_cleanly(self):
        for kind in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = self.start_endless("--json-stats", self.path("interrupted.json"))
            process.stdout.read(100)
            process.send_signal(kind)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + kind)
            self.assertIn(b"generation", err)
            with open(self.path("interrupted.json")) as file:
                self.assertGreater(json.load(file)["generated_tokens"], 50)

    def test_nohup_is_left_alone(self):
        process = self.start_endless(hangup=signal.SIG_IGN)
        process.stdout.read(100)
        process.send_signal(signal.SIGHUP)
        process.stdout.read(500)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)

    def test_closed_pipe_ends_cleanly(self):
        process = self.start_endless()
        process.stdout.read(100)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertNotIn(b"error", err)

    def test_closed_streams_do_not_become_a_file(self):
        stats = self.path("closed.json")
        for closed in (1,), (0, 1, 2):
            done = subprocess.run([os.path.join(BIN, "tarn"), "run", MODEL, "-p", "A", "-n", "2", "--json-stats", stats],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
                                  preexec_fn=lambda: [os.close(fd) for fd in closed])
            self.assertEqual(done.returncode, 1)
            if 2 not in closed:
                self.assertRegex(done.stderr.decode(), r"(?m)^tarn: error: cannot write to standard output: Bad file descriptor$")
            self.assertFalse(os.path.exists(stats))


class InspectTest(CliTest):
    def json(self, *arguments):
        status, out, err = tarn("inspect", "--json", *arguments)
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def test_everything(self):
        found = self.json(MODEL)
        self.assertEqual(list(found), ["model", "session", "memory", "ops", "states", "tensors"])
        self.assertRegex(found["model"]["fingerprint"], r"^[0-9a-f]{64}$")
        self.assertEqual((found["model"]["format_version"], found["model"]["weights_verified"]), ("1.0", True))
        self.assertIs(self.json(MODEL, "--no-verify")["model"]["weights_verified"], False)
        self.assertEqual((found["model"]["vocab_size"], found["model"]["tokenizer"], found["model"]["max_context"]),
                         (256, "bytes", None))
        self.assertEqual(list(found["memory"]), MEMORY)
        self.assertEqual(found["memory"]["mapped_bytes"], os.path.getsize(MODEL))
        attention = [op for op in found["ops"] if op["kind"] == "linear_state"]
        self.assertEqual(len(attention), 4)
        self.assertTrue(all(op["state_bytes"] > 0 and op["kv_break_even_tokens"] > 0 for op in attention))
        self.assertLessEqual(sum(state["bytes"] for state in found["states"]), found["memory"]["state_bytes"])
        for tensor in found["tensors"]:
            self.assertEqual(tensor["bytes"], math.prod(tensor["shape"]) * {"i8": 1, "f32": 4}[tensor["dtype"]])

    def test_special_tokens_are_shown(self):
        self.make("special", {**TINY, "bos_token_id": 3, "eos_token_id": 4})
        text = tarn("inspect", self.path("special.tarn"))[1].decode()
        self.assertRegex(text, r"(?m)^begin token +3\nend token +4\n")
        self.make("masked", MASKED_LM)
        self.assertRegex(tarn("inspect", self.path("masked.tarn"))[1].decode(), r"(?m)^mask token +0$")
        self.assertNotRegex(tarn("inspect", MODEL)[1].decode(), "(?m)^(begin|end|mask) token")

    def test_features_are_those_of_a_head(self):
        for attention, features in (({"system": "linear_transformer"}, 16), ({"system": "dpfp", "nu": 3}, 96), (RFA, 16)):
            self.make("features", {**TINY, "attention": attention})
            found = self.json(self.path("features.tarn"), "--ops", "--states")
            (detail,) = (op["detail"] for op in found["ops"] if op["kind"] == "linear_state")
            self.assertIn(f" features {features}, gate none", detail)
            self.assertEqual({state["shape"][1] for state in found["states"]}, {features})

    def test_attributes_of_a_cache_are_shown(self):
        compressive = {"system": "compressive_transformer", "segment_len": 8, "mem_len": 6, "cmem_len": 4, "compression_ratio": 2,
                       "compression": "conv"}
        for attention, expected in (
                ({"system": "softmax", "max_context": 32}, "softmax: full, capacity 32, heads"),
                ({"system": "softmax", "max_context": 32, "soft_cap": 30.5}, "softmax: full, capacity 32, soft_cap 30.5, heads"),
                ({"system": "cache_attention", "policy": "window", "window": 6, "dilation": 2},
                 "cache_attention: window, window 6, dilation 2, heads"),
                ({"system": "l2g_window", "window": 6, "global_positions": [0, 3], "global_full": True},
                 "l2g_window: l2g, window 6, 2 positions, global_full true, heads"),
                (compressive, "compressive_transformer: compressive, segment_len 8, mem_len 6, cmem_len 4, compression_ratio 2, "
                 "compression conv, heads")):
            self.make("cache", {**TINY, "attention": attention})
            details = [op["detail"] for op in self.json(self.path("cache.tarn"), "--ops")["ops"] if op["kind"] == "cache_attention"]
            self.assertTrue(details[0].startswith(expected), details[0])

    def test_the_graph_is_shown(self):
        ops = self.json(MODEL, "--ops")["ops"]
        operands = {op["name"]: (op["inputs"], op["outputs"]) for op in ops}
        qkvg = "layers.0.attn.qkvg_proj"
        columns = ", ".join(f"{qkvg}[{part}]" for part in ("0:256", "256:512", "512:768", "768:772"))
        self.assertEqual(operands["layers.0.attn"], (columns, "layers.0.attn"))
        known = {"tokens"}
        for op in ops:
            for name in op["inputs"].split(", "):
                self.assertIn(re.sub(r"\[\d+:\d+\]$", "", name), known)
            known.update(op["outputs"].split(", "))
        table = tarn("inspect", MODEL, "--ops")[1].decode()
        for name, (inputs, outputs) in operands.items():
            self.assertRegex(table, rf"(?m)^  {re.escape(name)} +{re.escape(inputs)} +{re.escape(outputs)}$")
        linked = "Embedding,Norm,FullyConnected,LinearState,Add,SiluMul,SelectOutputs"
        self.assertTrue(table.endswith(f"\na library that links only these ops: -DTARN_OPS={linked}\n"))

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
        self.assertEqual(found["default_threads"], min(found["fast_cores"], len(os.sched_getaffinity(0))))
        self.assertIn(b"reference", tarn("inspect", "--cpu")[1])

    def test_threads_are_those_that_may_run(self):
        one = min(os.sched_getaffinity(0))
        status, out, err = tarn("inspect", "--cpu", "--json", preexec_fn=lambda: os.sched_setaffinity(0, {one}))
        self.assertEqual(status, 0, err)
        self.assertEqual(json.loads(out)["cpu"]["default_threads"], 1)

    def test_bound_is_shown(self):
        self.assertEqual(self.json(self.path("bounded.tarn"))["model"]["max_context"], 32)

    def test_isa_is_chosen(self):
        self.assertEqual(self.json(MODEL, "--isa", "reference")["model"]["isa"], "reference")
        status, out, _ = tarn("inspect", "--json", MODEL, environment={"TARN_ISA": "reference"})
        self.assertEqual((status, json.loads(out)["model"]["isa"]), (0, "reference"))
        self.assertEqual(self.json(MODEL, "--portable-dense")["model"]["dense"], "portable")


if __name__ == "__main__":
    unittest.main()
