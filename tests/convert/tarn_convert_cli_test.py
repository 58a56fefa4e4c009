"""tarn-convert from outside: its options, what it writes, and how it ends."""

import json
import os
import resource
import signal
import subprocess
import time
import unittest

from tarn_convert_case import BIN, CONFIG, SHAPES, TOOL, TarnConvertCase, safetensors


class TarnConvert(TarnConvertCase):
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
