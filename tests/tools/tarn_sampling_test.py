"""tarn run: the options of the sampler, and --logprobs."""

import ast
import json
import math
import os
import struct
import subprocess
import unittest

from tarn_testing import BIN, MODEL, CliTest, tarn

PROMPT = "ROMEO:"
RUN = ["run", "-m", MODEL, "-p", PROMPT, "-s", 42, "-q"]


class SamplingTest(CliTest):
    def text(self, *arguments):
        status, out, err = tarn(*RUN, "-n", 120, "--no-echo", *arguments)
        self.assertEqual(status, 0, err)
        return out

    def test_every_option_counts(self):
        plain = self.text()
        for options in (["--frequency-penalty", 0.5], ["--presence-penalty", -1], ["--repeat-penalty", 1.3],
                        ["--dry-multiplier", 5, "--dry-allowed-length", 1], ["--top-n-sigma", 0.3], ["--typical-p", 0.3],
                        ["--xtc-probability", 1], ["--dynatemp-range", 0.7], ["--mirostat", 2], ["--top-k", 2], ["--top-p", 0.3],
                        ["--min-p", 0.5], ["--temp", 2]):
            self.assertNotEqual(self.text(*options), plain, options)
        for base, options in ((["--dry-multiplier", 0.3, "--dry-allowed-length", 1], ["--dry-base", 4]), (["--dry-multiplier", 1], ["--dry-allowed-length", 1]),
                              (["--dry-multiplier", 5, "--dry-allowed-length", 1], ["--dry-last-n", 2]),
                              (["--dry-multiplier", 5, "--dry-allowed-length", 1], ["--dry-breaker", 32, "--dry-breaker", 101]),
                              (["--xtc-probability", 1], ["--xtc-threshold", 0.3]),
                              (["--dynatemp-range", 0.7], ["--dynatemp-exponent", 3]), (["--mirostat", 2], ["--mirostat-tau", 1]),
                              (["--mirostat", 2, "--mirostat-tau", 1], ["--mirostat-eta", 1]), (["--frequency-penalty", 1], ["--repeat-last-n", 3])):
            self.assertNotEqual(self.text(*base, *options), self.text(*base), options)
        defaults = ["--mirostat", 0, "--typical-p", 1, "--xtc-probability", 0, "--top-n-sigma", 0, "--frequency-penalty", 0]
        self.assertEqual(self.text(*defaults), plain)

    def test_bans_and_biases(self):
        self.assertIn(b"e", self.text())
        self.assertNotRegex(self.text("--ban", 101, "--ban", 97), b"[ea]")
        self.assertEqual(self.text("--temp", 0, "--logit-bias", "90=200"), b"Z" * 120 + b"\n")
        self.assertEqual(self.text("--temp", 0, "--logit-bias", "90=200", "--logit-bias=89=300"), b"Y" * 120 + b"\n")

    def test_wrong_values_are_named(self):
        for option, value, words in (("--mirostat", "1", "expected 0 or 2"), ("--ban", "e", "expected an integer from 0"),
                                     ("--logit-bias", "5", "expected ID=BIAS"), ("--logit-bias", "5=", "expected ID=BIAS"),
                                     ("--logit-bias", "5=inf", "expected ID=BIAS"), ("--logit-bias", "5=1x", "expected ID=BIAS"),
                                     ("--logit-bias", "=1", "expected an integer from 0"),
                                     ("--typical-p", "0", "expected a number: above 0, at most 1"),
                                     ("--dry-base", "0.5", "expected a number: at least 1"),
                                     ("--dry-last-n", "0", "expected an integer from 1"),
                                     ("--frequency-penalty", "nan", "expected a number: -100 to 100"),
                                     ("--logprobs", "1001", "expected an integer from 0 to 1000"),
                                     ("--repeat-last-n", 4294967295, "expected an integer from 0 to 1048576"),
                                     ("--dry-last-n", 4294967295, "expected an integer from 1 to 1048576")):
            self.fails(2, f"{option}: is '.*', {words}", *RUN, option, value)
        for option, value in ("--ban", "256"), ("--logit-bias", "256=1"), ("--dry-breaker", "256"):
            self.fails(2, f"run: {option}: 256 is no token of .*tarn, expected 0 to 255", *RUN, "--dry-multiplier", 1, option,
                       "10=1" if "=" in value else 10, option, value)
        self.fails(2, "both write to standard output", *RUN, "--logprobs", 1, "--json-stats", "-")


def logits_of(path):
    """The rows of a .npy file of float32 [rows, columns]."""
    with open(path, "rb") as file:
        content = file.read()
    header_bytes = struct.unpack("<H", content[8:10])[0]
    rows, columns = ast.literal_eval(content[10:10 + header_bytes].decode())["shape"]
    numbers = struct.unpack(f"<{rows * columns}f", content[10 + header_bytes:])
    return [numbers[i * columns:(i + 1) * columns] for i in range(rows)]


class LogProbabilitiesTest(CliTest):
    def lines(self, *arguments):
        status, out, err = tarn(*RUN, "-n", 40, *arguments)
        self.assertEqual(status, 0, err)
        return [json.loads(line) for line in out.decode().splitlines()]

    def test_lines_are_the_tokens_of_the_text(self):
        status, text, _ = tarn(*RUN, "-n", 40, "--no-echo")
        self.assertEqual(status, 0)
        lines = self.lines("--logprobs", 4)
        self.assertEqual("".join(line["text"] for line in lines), text.decode().removesuffix("\n"))
        for line in lines:
            self.assertEqual(line["text"], chr(line["token"]))
            best = [one["logprob"] for one in line["top"]]
            self.assertEqual((len(best), best), (4, sorted(best, reverse=True)))
            self.assertLess(sum(math.exp(value) for value in best), 1 + 1e-6)
            found = [one for one in line["top"] if one["token"] == line["token"]]
            self.assertEqual([(one["text"], one["logprob"]) for one in found], [(line["text"], line["logprob"])] if found else [])
        for line in self.lines("--logprobs", 1, "--temp", 0):
            self.assertEqual(line["token"], line["top"][0]["token"])
        self.assertEqual([line["top"] for line in self.lines("--logprobs", 0)], [[]] * 40)
        self.assertAlmostEqual(sum(math.exp(one["logprob"]) for one in self.lines("--logprobs", 1000)[0]["top"]), 1, places=5)

    def test_values_are_those_of_the_logits(self):
        # Chunks of one token on both sides: others round in another order.
        lines = self.lines("--logprobs", 3, "--ban", 101, "--repeat-penalty", 1.5, "--chunk", 1)
        text = self.write("text.txt", PROMPT.encode() + bytes(line["token"] for line in lines))
        npy = self.path("logits.npy")
        self.assertEqual(tarn("eval", "-m", MODEL, "-f", text, "--logits", npy, "--chunk", 1)[0], 0)
        rows = logits_of(npy)
        for line, logits in zip(lines, rows[len(PROMPT) - 1:]):
            log_sum = math.log(sum(math.exp(logit) for logit in logits))
            self.assertAlmostEqual(line["logprob"], logits[line["token"]] - log_sum, delta=1e-5)
            for one in line["top"]:
                self.assertAlmostEqual(one["logprob"], logits[one["token"]] - log_sum, delta=1e-5)
            self.assertAlmostEqual(line["top"][0]["logprob"], max(logits) - log_sum, delta=1e-5)

    def test_allocates_nothing(self):
        stats_file = self.path("stats.json")
        self.lines("--logprobs", 1000, "--json-stats", stats_file)
        with open(stats_file) as file:
            stats = json.load(file)
        self.assertEqual(stats["generated_tokens"], 40)
        if stats["allocation_counter"] == "on":
            self.assertEqual(stats["allocations_after_creation"], 0)

    def test_model_without_tokenizer(self):
        status, out, _ = tarn("run", "-m", self.path("ids.tarn"), "--tokens", "1,2,3", "-n", 2, "-s", 1, "-q", "--logprobs", 1)
        self.assertEqual(status, 0)
        for line in out.decode().splitlines():
            self.assertEqual(set(json.loads(line)), {"token", "logprob", "top"})

    def test_a_reader_that_goes_ends_it_quietly(self):
        with subprocess.Popen([os.path.join(BIN, "tarn"), "run", "-m", MODEL, "-p", "a", "-n", "-1", "--logprobs", "3", "-q"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            running.stdout.readline()
            running.stdout.close()
            self.assertEqual((running.wait(60), running.stderr.read()), (0, b""))


if __name__ == "__main__":
    unittest.main()
