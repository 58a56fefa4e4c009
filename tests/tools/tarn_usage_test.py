"""A first hour with the tarn command line: where text comes from, how it ends, what a slip of the finger is told."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
import unittest

from tarn_testing import BIN, CLASSIFICATION, MASKED_LM, MODEL, RFA, SEQ2SEQ, CliTest, start, tarn, wait_for

GREEDY = ["-q", "--temp", 0, "-t", 1]


class NamesTest(CliTest):
    def test_typos_get_a_suggestion(self):
        self.fails(2, r"run: unknown option '--tmp' \(did you mean --temp\?\)$", "run", MODEL, "-p", "a", "--tmp", "0.5")
        self.fails(2, r"run: unknown option '--tmp'", "run", "-p", "a", "--tmp=0.5", MODEL)
        self.fails(2, r"run: unknown option '--tmp' \(did you mean --temp\?\)$", "run", "--tmp", "0.5")  # before what is missing
        self.fails(2, r"bench: unknown option '--thraeds' \(did you mean --threads\?\)$", "bench", MODEL, "--thraeds", "1")
        self.fails(2, r"run: unknown option '--gpu'$", "run", MODEL, "--gpu")
        self.fails(2, r"'evl', expected .* \(did you mean eval\?\)$", "evl", MODEL)
        self.fails(2, r"'inspct', expected .* \(did you mean inspect\?\)$", "help", "inspct")
        self.fails(2, r"--output: is 'jsonn', expected md, csv, json or jsonl \(did you mean json\?\)$", "bench", MODEL, "-o", "jsonn")
        self.fails(2, r"--isa is 'referense', expected .*\(did you mean reference\?\)$", "inspect", MODEL, "--isa", "referense")

    def test_every_slip_names_the_option_and_what_it_wants(self):
        self.fails(2, r"run: --prompt has no value, expected --prompt TEXT$", "run", MODEL, "-p")
        self.fails(2, r"run: --temp has no value, expected --temp T$", "run", MODEL, "-p", "a", "--temp")
        self.fails(2, r"run: --seed is there more than once, expected once$", "run", MODEL, "-s", 1, "-s", 2)
        self.fails(2, r"run: --quiet is 'maybe', expected no value$", "run", MODEL, "--quiet=maybe")
        self.fails(2, r"run: --threads: is 'two', expected an integer from 0 to", "run", MODEL, "-t", "two")
        self.fails(2, r"inspect: --(no-)?verify and --(no-)?verify are both there, expected one of them$", "inspect", MODEL,
                   "--verify", "--no-verify")
        self.fails(2, r"eval: --file is missing, expected --file FILE or --choices FILE$", "eval", MODEL)

    def test_an_empty_path_is_none(self):
        run = ["run", MODEL, "-p", "a", "-n", 1]
        for option in "--grammar", "--json-schema", "--save-state", "--load-state", "--json-stats", "--draft", "--file":
            self.fails(2, f"{option}: is '', expected a file$", *run, option, "")
        for option in "--prompt-cache", "--packed-cache":
            self.fails(2, f"{option}: is '', expected a directory$", *run, option, "")
        self.fails(2, "--logits: is '', expected a file$", "eval", MODEL, "-f", MODEL, "--logits", "")
        self.fails(2, "--plot: is '', expected a file$", "bench", MODEL, "--plot", "")
        self.fails(2, "--graph: is '', expected a file$", "inspect", MODEL, "--graph", "")
        self.fails(2, "--model: is '', expected a file$", "inspect", "")

    def test_no_output_is_named_as_standard_output(self):
        os.chdir(self.folder.name)
        for arguments in (["run", MODEL, "-p", "a", "-n", 1, "--save-state"], ["bench", MODEL, "--plot"],
                          ["eval", MODEL, "-f", MODEL, "--logits"], ["inspect", MODEL, "--graph"]):
            self.fails(2, f"{arguments[-1]}: is '-', expected a file \\(./- is a file of that name\\)$", *arguments, "-")
        self.assertFalse(os.path.exists("-"))

    def test_options_that_would_have_no_effect_are_refused(self):
        run = ["run", MODEL, "-p", "a", "-n", 1]
        for option, value, other in (("--xtc-threshold", 0.2, "--xtc-probability"), ("--dry-base", 2, "--dry-multiplier"),
                                     ("--dry-breaker", 10, "--dry-multiplier"), ("--dry-last-n", 10, "--dry-multiplier"),
                                     ("--dry-allowed-length", 3, "--dry-multiplier"), ("--mirostat-tau", 3, "--mirostat"),
                                     ("--mirostat-eta", 0.2, "--mirostat"), ("--dynatemp-exponent", 2, "--dynatemp-range")):
            self.fails(2, f"run: {option} is there without {other}, expected {other}", *run, option, value)
        for option in "--grammar-states", "--grammar-work":
            self.fails(2, f"{option} is there without --grammar and --json-schema, expected one of them", *run, option, 9)
        schema = self.write("schema.json", b"{}")
        self.fails(2, "--print-grammar writes the rules alone", *run, "--json-schema", schema, "--print-grammar",
                   "--save-state", self.path("state"))

    def test_ids_out_of_range_name_their_option(self):
        self.make("classifier", CLASSIFICATION)
        self.make("masked", MASKED_LM)
        classifier, masked = self.path("classifier.tarn"), self.path("masked.tarn")
        self.fails(2, "classify: --tokens: 300 is no token of .*, expected 0 to 255$", "classify", classifier, "--tokens", "1,300")
        self.fails(2, "fill: --tokens: 300 is no token of .*, expected 0 to 255$", "fill", masked, "--tokens", "0,300")
        self.fails(2, "fill: --mask: 999 is no token of .*, expected 0 to 255$", "fill", masked, "--tokens", "0,1", "--mask", 999)
        self.fails(2, "eval: --mask: 999 is no token of .*, expected 0 to 255$", "eval", masked, "-f", MODEL, "--tokens", 50,
                   "--mask", 999)

    def test_unexpected_arguments_come_in_their_order(self):
        self.fails(2, r"run: unexpected arguments 'to' 'be' 'or' \(", "run", MODEL, "to", "be", "-n", "3", "or")
        self.fails(2, r"run: unexpected argument 'b' \(a text with spaces needs quotes\)", "run", "-m", MODEL, "-p", "a", "b")
        self.fails(2, r"run: unexpected argument 'to be' \(a prompt needs -p\)", "run", MODEL, "to be", "-n", "3")

    def test_help(self):
        for command in "run", "classify", "fill", "eval", "bench", "inspect", "state", "help":
            self.assertEqual(tarn("help", command), tarn(command, "--help"))
        self.assertEqual(tarn("help"), tarn("--help"))
        self.assertIn(b"Exit status: 0 success", tarn("help")[1])
        self.fails(2, "the command is 'sing', expected run, ", "help", "sing")

    def test_the_model_may_stand_by_itself(self):
        self.make("classifier", CLASSIFICATION)
        self.make("masked", MASKED_LM)
        text = self.write("text.txt", b"to be")
        for command, model, arguments in (("run", MODEL, ["-p", "a", "-n", 3, *GREEDY]), ("eval", MODEL, ["-f", text]),
                                          ("classify", self.path("classifier.tarn"), ["-p", "a"]),
                                          ("fill", self.path("masked.tarn"), ["-p", "a_"]), ("inspect", MODEL, ["--ops"])):
            for place in [command, model, *arguments], [command, *arguments, model]:
                status, out, err = tarn(*place)
                self.assertEqual(status, 0, err)
                if command != "eval":  # which says how fast it was
                    self.assertEqual(out, tarn(command, "-m", model, *arguments)[1])
        self.fails(2, "run: the model is missing, expected FILE or --model FILE$", "run", "-p", "a")

    def test_isa_in_any_case(self):
        for name in "REFERENCE", "Reference":
            found = json.loads(tarn("inspect", MODEL, "--json", environment={"TARN_ISA": name})[1])
            self.assertEqual(found["model"]["isa"], "reference")
            found = json.loads(tarn("inspect", MODEL, "--json", "--isa", name)[1])
            self.assertEqual(found["model"]["isa"], "reference")

    def test_no_threads_are_the_default(self):
        self.assertRegex(tarn("help", "run")[1].decode(), r"--threads N +Threads; 0: ")
        default = json.loads(tarn("inspect", "--cpu", "--json")[1])["cpu"]["default_threads"]
        found = json.loads(tarn("inspect", MODEL, "-t", 0, "--json")[1])
        self.assertEqual(found["session"]["threads"], default)


class InputTest(CliTest):
    def run_text(self, *arguments, stdin=None):
        status, out, err = tarn("run", MODEL, *GREEDY, "-n", 8, *arguments, stdin=stdin)
        self.assertEqual((status, err), (0, ""))
        return out

    def test_standard_input(self):
        expected = self.run_text("-p", "ROMEO:")
        for arguments in ["-f", "-"], ["-p", "-"], []:
            self.assertEqual(self.run_text(*arguments, stdin=b"ROMEO:"), expected)
        with open(self.write("prompt.txt", b"ROMEO:"), "rb") as file:  # as `< prompt.txt`
            done = subprocess.run([os.path.join(BIN, "tarn"), "run", MODEL, *map(str, GREEDY), "-n", "8"], stdin=file,
                                  stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, expected)
        self.assertEqual(self.run_text("-p", "ROMEO:", stdin=b"not read"), expected)
        self.fails(1, "prompt is empty", "run", MODEL, stdin=b"")
        self.fails(1, "standard input: cannot read", "run", MODEL, "-f", "-", preexec_fn=lambda: os.close(0))

    def test_every_command_reads_standard_input(self):
        self.make("classifier", CLASSIFICATION)
        self.make("masked", MASKED_LM)
        self.make("translation", SEQ2SEQ)
        for command, model, text in (("classify", "classifier", b"to be\nor not\n"), ("run", "translation", b"to be\nor not\n"),
                                     ("fill", "masked", b"to_be")):
            model = self.path(model + ".tarn")
            status, expected, err = tarn(command, model, "-f", self.write("text.txt", text))
            self.assertEqual(status, 0, err)
            self.assertEqual(tarn(command, model, "-f", "-", stdin=text)[:2], (0, expected))
            self.assertEqual(tarn(command, model, stdin=text)[:2], (0, expected))
        self.fails(1, "standard input: line 2 is empty", "classify", self.path("classifier.tarn"), stdin=b"a\n\nb\n")
        for arguments in ["-f", "-"], []:
            status, out, err = tarn("eval", MODEL, *arguments, "--json", stdin=b"to be or not")
            self.assertEqual((status, json.loads(out)["tokens"]), (0, 12), err)

    def test_standard_input_is_read_once(self):
        rules = b'root ::= "a"'
        self.fails(2, "run: --grammar - and the prompt both read standard input", "run", MODEL, "--grammar", "-", stdin=rules)
        self.fails(2, "run: --json-schema - and the prompt both", "run", MODEL, "-f", "-", "--json-schema", "-", stdin=b"{}")
        self.fails(2, "run: -i and --grammar, --json-schema or --print-grammar do not go together", "run", MODEL, "-i", "--grammar", "-", stdin=rules)
        status, out, err = tarn("run", MODEL, "-p", "b", "--no-echo", "-n", 5, *GREEDY, "--grammar", "-", stdin=rules)
        self.assertEqual((status, out), (0, b"a\n"), err)
        self.fails(2, "eval: - is there more than once", "eval", MODEL, "-f", "-", "-f", "-", stdin=b"ab")

    def test_a_prompt_that_does_not_fit_behind_a_state(self):
        bounded, state = self.path("bounded.tarn"), self.path("twenty")
        status, _, err = tarn("run", bounded, "-p", "a" * 19, "-n", 1, "-q", "--save-state", state)
        self.assertEqual(status, 0, err)
        self.fails(1, "the prompt has 20 tokens, expected at most 12 tokens, the context of .* less the 20 of the state: shorten it by 8",
                   "run", bounded, "-p", "a" * 20, "--load-state", state)

    def test_turns_end_with_a_lost_output(self):
        with open("/dev/full", "wb") as full:
            self.fails(1, "cannot write to standard output", "run", MODEL, "-i", "-n", 3, "-q", stdin=b"a\nb\n", stdout=full)

    def test_a_source_that_is_too_long_is_named(self):
        self.make("translation", {**SEQ2SEQ, "encoder_attention": RFA})
        text = self.write("long.txt", b"a\n" + b"b" * 70000 + b"\n")
        self.fails(1, "long.txt: line 2: 70000 tokens, expected at most 65536", "run", self.path("translation.tarn"), "-f", text)

    def test_interrupt_while_a_file_does_not_end(self):
        process = start("run", MODEL, "-f", "/dev/zero", "-n", "1")
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        self.assertIn(process.wait(timeout=60), (143, -signal.SIGTERM))
        for stream in process.stdout, process.stderr:
            stream.close()

    def test_two_signals_at_once_leave_no_file(self):
        process = start("run", MODEL, "-p", "A", "-n", "-1", "-q", "--save-state", self.path("unfinished"))
        wait_for(lambda: any(name.startswith("unfinished") for name in os.listdir(self.folder.name)))
        process.stdout.read(10)
        for kind in signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT:  # both wait when it goes on
            process.send_signal(kind)
        process.stdout.read()
        self.assertIn(process.wait(timeout=60), (-signal.SIGINT, -signal.SIGTERM))
        process.stdout.close()
        process.stderr.close()
        self.assertEqual([name for name in os.listdir(self.folder.name) if name.startswith("unfinished")], [])

    def test_two_signals_end_the_first_process_of_a_container(self):
        contained = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
        if shutil.which("unshare") is None or subprocess.run([*contained, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespaces")
        read = self.path("its_output")
        with open(read, "wb") as out:
            process = subprocess.Popen([*contained, os.path.join(BIN, "tarn"), "run", MODEL, "-p", "A", "-n", "-1", "-q",
                                        "--save-state", self.path("contained")], stdout=out, stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.getsize(read) > 0)
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as children:
            child = int(children.read())
        for kind in signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT:
            os.kill(child, kind)
        self.assertIn(process.wait(timeout=60), (128 + signal.SIGINT, 128 + signal.SIGTERM))
        self.assertEqual([name for name in os.listdir(self.folder.name) if name.startswith("contained")], [])

    def test_one_newline_at_the_end_is_left_out(self):
        expected, newline = self.run_text("-p", "ROMEO:"), self.run_text("-p", "ROMEO:\n")
        self.assertNotEqual(expected, newline)
        for ending, out in (b"", expected), (b"\n", expected), (b"\r\n", expected), (b"\n\n", newline):
            self.assertEqual(self.run_text("-f", self.write("prompt.txt", b"ROMEO:" + ending)), out)
            self.assertEqual(self.run_text(stdin=b"ROMEO:" + ending), out)
        self.assertEqual(self.run_text("--raw", stdin=b"ROMEO:\n"), newline)

    def test_interrupt_while_it_waits_for_input(self):
        for kind in signal.SIGINT, signal.SIGTERM:
            process = subprocess.Popen([os.path.join(BIN, "tarn"), "run", MODEL, "-f", "-"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            time.sleep(0.2)  # it waits, or is on its way there: both end
            process.send_signal(kind)
            self.assertIn(process.wait(timeout=60), (128 + kind, -kind))
            for stream in process.stdin, process.stdout, process.stderr:
                stream.close()

    def test_interrupt_while_a_pipe_has_nobody_at_its_other_end(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for held_open in False, True:  # waits for one who writes, and for what he writes
            with subprocess.Popen([os.path.join(BIN, "tarn"), "run", MODEL, "-f", fifo], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) as process:
                writer = os.open(fifo, os.O_WRONLY) if held_open else None
                time.sleep(0.5)
                process.terminate()
                self.assertIn(process.wait(timeout=60), (128 + signal.SIGTERM, -signal.SIGTERM))
                if writer is not None:
                    os.close(writer)

    def test_interrupt_while_nobody_reads_the_output(self):
        with subprocess.Popen([os.path.join(BIN, "tarn"), "run", MODEL, "-p", "A", "-n", "10000000"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            time.sleep(1)  # the pipe is full
            process.terminate()
            self.assertEqual(process.wait(timeout=60), 128 + signal.SIGTERM)


class OutputTest(CliTest):
    def test_quiet_and_no_echo(self):
        status, out, err = tarn("run", MODEL, "-p", "ROMEO:", "-n", 8, "--temp", 0)
        self.assertEqual(status, 0)
        self.assertIn("memory", err)
        self.assertEqual(tarn("run", MODEL, "-p", "ROMEO:", "-n", 8, "--temp", 0, "-q"), (0, out, ""))
        self.assertEqual(tarn("run", MODEL, "-p", "ROMEO:", "-n", 8, "--temp", 0, "-q", "--no-echo"), (0, out[len("ROMEO:"):], ""))

    def test_statistics_on_standard_output(self):
        status, out, err = tarn("run", MODEL, "-p", "ROMEO:", "-n", 8, "--json-stats", "-")
        self.assertEqual(status, 0, err)
        stats = json.loads(out)  # and no text beside it
        self.assertEqual((stats["prompt_tokens"], stats["generated_tokens"], stats["stop_reason"]), (6, 8, "n"))
        self.assertFalse(os.path.exists("-"))
        with open("/dev/full", "wb") as full:
            self.fails(1, "standard output: No space", "run", MODEL, "-p", "a", "-n", 1, "--json-stats", "-", stdout=full)

    def test_a_prompt_that_is_too_long(self):
        self.fails(1, r"the prompt has 33 tokens, expected at most 32 tokens, the context of .*bounded.tarn: shorten it by 1, or ",
                   "run", self.path("bounded.tarn"), "-p", "a" * 33)

    def test_a_full_context_is_an_end(self):
        status, out, err = tarn("run", self.path("bounded.tarn"), "-p", "abcd", "-n", 100, "-s", 1, "--json-stats",
                                self.path("stats.json"))
        self.assertEqual(status, 0, err)
        self.assertTrue(out.startswith(b"abcd"))
        self.assertRegex(err, r"(?m)^ended: the model's context of 32 tokens is full$")
        with open(self.path("stats.json")) as file:
            stats = json.load(file)
        # 4 + 28 tokens fill the 32; the 29th is drawn from the last logits and cannot be fed.
        self.assertEqual((stats["stop_reason"], stats["generated_tokens"]), ("max_context", 29))
        for count, reason in (29, "n"), (30, "max_context"):
            stats = json.loads(tarn("run", self.path("bounded.tarn"), "-p", "abcd", "-n", count, "--json-stats", "-")[1])
            self.assertEqual((stats["stop_reason"], stats["generated_tokens"]), (reason, 29))

    def test_outputs_of_sources_say_why_they_end(self):
        self.make("short", {**SEQ2SEQ, "vocab_size": 6, "tokenizer": "none"})
        reasons = {length: json.loads(tarn("run", self.path("short.tarn"), "--tokens", "2,3", "-n", length, "--json-stats", "-")[1])
                   for length in (1, 200)}
        self.assertEqual([reasons[length]["stop_reason"] for length in (1, 200)], ["n", "eos"])

    def test_length_penalty_is_what_was_asked_for(self):
        self.make("translation", SEQ2SEQ)
        _, out, _ = tarn("eval", self.path("translation.tarn"), "-f", "-", "-n", 2, "--length-penalty", 0.7, "--json", stdin=b"a\tb\n")
        self.assertRegex(out.decode(), r'"length_penalty": 0\.7,')


class InterruptTest(CliTest):
    def long_prompt(self):
        return self.write("long.txt", b"To be, or not to be, that is the question. " * 100000)

    def test_a_prompt_that_is_cut_reports_what_it_read(self):
        stats_file = self.path("stats.json")
        terminal, other = pty.openpty()
        process = subprocess.Popen([os.path.join(BIN, "tarn"), "run", MODEL, "-f", self.long_prompt(), "-t", "1", "--json-stats",
                                    stats_file], stdout=subprocess.PIPE, stderr=other, stdin=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        os.close(other)
        shown = b""
        while b"/s" not in shown and select.select([terminal], [], [], 60)[0]:
            shown += os.read(terminal, 1 << 16)
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
        process.stdout.close()
        self.assertEqual((process.wait(timeout=60), out), (130, b""))
        os.close(terminal)
        self.assertRegex(shown.decode(), r"\rprompt \[[#.]{12}\] +\d+ %  (\d+ h )?(\d+ min )?(\d+ s )?left  \d+/4300000 tokens, [\d.]+/s")
        with open(stats_file) as file:
            stats = json.load(file)
        self.assertEqual((stats["prompt_length"], stats["generated_tokens"], stats["stop_reason"]), (4300000, 0, "interrupted"))
        self.assertGreater(stats["prompt_tokens"], 0)
        self.assertLess(stats["prompt_tokens"], stats["prompt_length"])
        self.assertAlmostEqual(stats["prompt_tokens_per_second"] * stats["prompt_seconds"] / stats["prompt_tokens"], 1, 6)
        self.assertEqual(stats["allocations_after_creation"] or 0, 0)

    def test_progress_is_for_terminals(self):
        for command in ["run", "-q"], ["eval"]:
            process = start(*command, MODEL, "-f", self.long_prompt(), "-t", "1")
            try:
                _, err = process.communicate(timeout=4)
            except subprocess.TimeoutExpired:
                process.terminate()
                _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 143)
            self.assertIn(err, (b"", b"tarn: error: interrupted\n"))

    def test_bench_ends_within_a_prompt(self):
        for kind in signal.SIGINT, signal.SIGTERM:
            process = start("bench", MODEL, "-p", "1048576", "-n", "0", "-t", "1", "--memory-mib", "16")
            process.stdout.read(20)
            time.sleep(0.2)
            process.send_signal(kind)
            _, err = process.communicate(timeout=15)
            self.assertEqual(process.returncode, 128 + kind)
            self.assertIn(b"interrupted", err)

    def test_a_second_signal_ends_at_once(self):
        # A process that is stopped looks at no flag; both signals are there when it goes on.
        for first, second in (signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGHUP):
            process = start("run", MODEL, "-p", "A", "-n", "-1", "-t", "1")
            process.stdout.read(100)
            process.send_signal(signal.SIGSTOP)
            process.send_signal(first)
            process.send_signal(second)
            process.send_signal(signal.SIGCONT)
            process.communicate(timeout=60)
            self.assertIn(process.returncode, (-first, -second))


if __name__ == "__main__":
    unittest.main()
