#!/usr/bin/env python3
"""tarn eval of several files, in overlapping blocks, against another model, and of questions: its numbers are those of the logits."""

import json
import math
import os
import pty
import random
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tarn_eval_test import loss, npy, read_logits
from tarn_testing import BIN, CLASSIFICATION, MASKED_LM, MODEL, RFA, SEQ2SEQ, TINY, CliTest, tarn

FIXTURES = os.path.join(os.environ["TARN_SOURCE"], "tests", "data", "tokenizers")
TEXT = "ROMEO:\nIs the day so young?\n\nBENVOLIO:\nBut new struck nine.\n".encode() + bytes(range(100, 140))


def probabilities(logits):
    largest = max(logits)
    weights = [math.exp(value - largest) for value in logits]
    total = sum(weights)
    return [weight / total for weight in weights]


def divergence(logits, against):
    return sum(q * math.log(q / p) for q, p in zip(probabilities(against), probabilities(logits)))


class CompareTest(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make("rfa", {**TINY, "attention": RFA})
        cls.float = cls.path("rfa.tarn")
        cls.small = cls.path("small.tarn")
        subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", cls.path("rfa.json"), "-o", cls.small, "--quant",
                        "int4"], check=True, stdout=subprocess.DEVNULL)

    def eval_json(self, *arguments):
        status, out, err = tarn("eval", "--json", *arguments)
        self.assertEqual((status, err), (0, ""))
        return json.loads(out)

    def logits(self, model, *arguments):
        self.eval_json("-m", model, "--logits", self.path("logits.npy"), *arguments)
        return read_logits(self.path("logits.npy"))

    # ---- stride ----

    def windows(self, size, block, stride):
        """Of a perplexity with stride: (begin, first target, end) of each window. A token is a target of the first that has it."""
        found, scored = [], 0
        for begin in range(0, size, stride):
            end = min(begin + block, size)
            found.append((begin, max(scored, begin + 1), end))
            scored = end
            if end == size:
                return found

    def test_stride_is_that_of_its_windows(self):
        text = self.write("text.txt", TEXT)
        for block, stride in (40, 10), (40, 39), (30, 7), (30, 30), (9, 4), (200, 3), (99, 50), (100, 64):
            options = ["--block", block, "--stride", stride]
            # A chunk that ends elsewhere sums in another order: this one holds all of a window.
            found = self.eval_json("-m", self.float, "-f", text, *options)
            rows = self.logits(self.float, "-f", text, *options)
            self.assertEqual(len(rows), len(TEXT))
            losses = []
            for begin, first, end in self.windows(len(TEXT), block, stride):
                window = self.logits(self.float, "-f", text, "--begin", begin, "--tokens", end - begin)
                for target in range(first, end):
                    losses.append(loss(window[target - 1 - begin], TEXT[target]))
                    self.assertEqual(rows[target - 1], window[target - 1 - begin], (block, stride, target))
            self.assertEqual(found["scored"], len(losses))
            self.assertAlmostEqual(found["nats_per_token"], sum(losses) / len(losses), 9)
        self.assertEqual(len(losses), len(TEXT) - 1)  # overlapping blocks score every token but the first

    def test_context_that_is_skipped_changes_nothing(self):
        text = self.write("text.txt", TEXT)
        whole = self.logits(self.float, "-f", text, "--chunk", 8, "--begin", 30, "--tokens", 60)
        rows = self.logits(self.float, "-f", text, "--chunk", 8, "--block", 60, "--stride", 30)
        self.assertEqual(rows[60:89], whole[30:59])

    def test_stride_of_a_bounded_model(self):
        text, bounded = self.write("text.txt", TEXT), self.path("bounded.tarn")  # 32 tokens
        self.assertEqual(self.eval_json("-m", bounded, "-f", text, "--block", 33, "--stride", 16)["scored"], len(TEXT) - 1)
        self.fails(1, "a block of 34 tokens, expected at most 33", "eval", "-m", bounded, "-f", text, "--block", 34, "--stride", 16)

    def test_stride_needs_a_block(self):
        self.fails(2, "--stride is there without --block", "eval", "-m", self.float, "-f", __file__, "--stride", 5)
        self.fails(2, "--stride: is '0', expected an integer from 1", "eval", "-m", self.float, "-f", __file__, "--block", 9, "--stride", 0)
        self.fails(2, "--stride: is '10', expected at most 9", "eval", "-m", self.float, "-f", __file__, "--block", 9, "--stride", 10)

    # ---- several files ----

    def test_files_add_up(self):
        files = [self.write("a.txt", TEXT[:50]), self.write("b.txt", TEXT[20:])]
        found = self.eval_json("-m", self.float, "-f", files[0], "-f", files[1])
        alone = [self.eval_json("-m", self.float, "-f", file) for file in files]
        self.assertEqual([row["file"] for row in found["files"]], files)
        for row, one in zip(found["files"], alone):
            for key in "tokens", "scored", "nats_per_token", "nats_per_byte", "perplexity":
                self.assertEqual(row[key], one[key])
        self.assertEqual(found["tokens"], sum(one["tokens"] for one in alone))
        mean = sum(one["nats_per_token"] * one["scored"] for one in alone) / found["scored"]
        self.assertAlmostEqual(found["nats_per_token"], mean, 9)
        self.assertNotIn("files", alone[0])

    def test_table_of_files(self):
        files = [self.write("a.txt", TEXT[:50]), self.write("b\x1b.txt", TEXT[20:])]
        status, out, _ = tarn("eval", "-m", self.float, "-f", files[0], "-f", files[1])
        lines = out.decode().splitlines()
        self.assertEqual((status, len(lines)), (0, 4))
        self.assertRegex(lines[0], "^file +tokens +scored +nats/token +nats/byte +perplexity +tokens/s$")
        self.assertIn(r"b\x1b.txt", lines[2])
        self.assertRegex(lines[3], f"^total +{30 + len(TEXT)} +{28 + len(TEXT)} ")

    def test_files_of_other_tasks(self):
        self.make("classifier", CLASSIFICATION)
        self.make("masked", MASKED_LM)
        self.make("seq2seq", SEQ2SEQ)
        labelled = [self.write("a.tsv", b"0\tabc\n1\tde\n"), self.write("b.tsv", b"2\tabcd\n")]
        found = self.eval_json("-m", self.path("classifier.tarn"), "-f", labelled[0], "-f", labelled[1])
        self.assertEqual((found["lines"], [row["lines"] for row in found["files"]]), (3, [2, 1]))
        self.assertEqual(found["correct"], sum(row["correct"] for row in found["files"]))
        found = self.eval_json("-m", self.path("masked.tarn"), "-f", self.write("a.txt", TEXT), "-f", self.write("b.txt", TEXT[:20]))
        self.assertEqual((found["tokens"], found["scored"]), (len(TEXT) + 20, round(0.15 * len(TEXT)) + 3))
        found = self.eval_json("-m", self.path("seq2seq.tarn"), "-f", self.write("c.tsv", b"ab\tc\n"), "-f", self.write("d.tsv", b"a\tb\n"))
        self.assertEqual(found["lines"], 2)

    def test_logits_are_of_one_file(self):
        file = self.write("text.txt", TEXT)
        self.fails(2, "--logits is the output of one --file", "eval", "-m", self.float, "-f", file, "-f", file, "--logits", "x.npy")

    def test_progress_on_a_terminal(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([os.path.join(BIN, "tarn"), "eval", MODEL, "-f", self.write("long.txt", TEXT * 1000), "--block", "99"],
                                   stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = b""
        while not re.search(rb"eval \[#*\.*\] +\d+ %  \d+ s left  \d\.\d{4} nats/token  \d+/\d+", shown):
            shown += os.read(ours, 4096)  # fails where the process has ended
        process.kill()
        process.wait()
        os.close(ours)

    # ---- against ----

    def test_against_is_what_the_logits_say(self):
        text = self.write("text.txt", TEXT * 3)
        tokens = TEXT * 3
        for options in [], ["--block", 90, "--stride", 40]:
            found = self.eval_json("-m", self.small, "-f", text, "--against", self.float, *options)
            rows, others = self.logits(self.small, "-f", text, *options), self.logits(self.float, "-f", text, *options)
            count = len(tokens) - 1
            divergences = sorted(divergence(rows[i], others[i]) for i in range(count))
            mine = sum(loss(rows[i], tokens[i + 1]) for i in range(count)) / count
            other = sum(loss(others[i], tokens[i + 1]) for i in range(count)) / count
            same = sum(rows[i].index(max(rows[i])) == others[i].index(max(others[i])) for i in range(count))
            self.assertEqual((found["scored"], found["against"]), (count, "rfa"))
            self.assertAlmostEqual(found["nats_per_token"], mine, 9)
            self.assertAlmostEqual(found["against_nats_per_token"], other, 9)
            self.assertAlmostEqual(found["nats_difference"], mine - other, 9)
            self.assertAlmostEqual(found["kl_mean"], sum(divergences) / count, 9)
            self.assertAlmostEqual(found["kl_max"], divergences[-1], 9)
            for key, share in ("kl_p50", 0.5), ("kl_p90", 0.9), ("kl_p95", 0.95), ("kl_p99", 0.99), ("kl_p99_9", 0.999):
                exact = divergences[math.ceil(share * count) - 1]
                self.assertLess(abs(found[key] / exact - 1), 0.001, key)
            self.assertAlmostEqual(found["top1_agreement"], same / count, 9)
            self.assertGreater(found["kl_p50"], 0)
            self.assertLess(found["top1_agreement"], 1)

    def test_against_itself(self):
        found = self.eval_json("-m", self.float, "-f", self.write("text.txt", TEXT), "--against", self.float)
        self.assertLess(found["kl_max"], 1e-12)
        self.assertEqual((found["nats_difference"], found["top1_agreement"]), (0, 1))

    def test_against_adds_up_over_files(self):
        files = [self.write("a.txt", TEXT[:50]), self.write("b.txt", TEXT[20:])]
        found = self.eval_json("-m", self.small, "-f", files[0], "-f", files[1], "--against", self.float)
        for key in "kl_mean", "top1_agreement", "against_nats_per_token":
            mean = sum(row[key] * row["scored"] for row in found["files"]) / found["scored"]
            self.assertAlmostEqual(found[key], mean, 9)
        self.assertEqual(found["kl_max"], max(row["kl_max"] for row in found["files"]))

    def test_against_what_does_not_compare(self):
        text = self.write("text.txt", TEXT)
        self.make("wide", {**TINY, "attention": RFA, "vocab_size": 300, "tokenizer": "none"})
        self.make("seq2seq", SEQ2SEQ)
        self.fails(1, "wide.tarn: a vocabulary of 300, expected 256 as", "eval", "-m", self.float, "-f", text, "--against", self.path("wide.tarn"))
        self.fails(1, "its task is seq2seq, expected causal_lm", "eval", "-m", self.float, "-f", text, "--against", self.path("seq2seq.tarn"))
        self.fails(1, "one of the models has a tokenizer", "eval", "-m", self.float, "-f", text, "--against", self.path("ids.tarn"))
        self.fails(1, "No such file", "eval", "-m", self.float, "-f", text, "--against", self.path("none.tarn"))
        # A bounded model holds fewer tokens than the other reads.
        self.fails(1, "expected at most 33 with the model's context of 32", "eval", "-m", self.float, "-f", text, "--against",
                   self.path("bounded.tarn"))

    def test_against_another_tokenizer(self):
        for name in "llama3", "gpt2":
            os.makedirs(self.path(name), exist_ok=True)
            shutil.copy(os.path.join(FIXTURES, name, "tokenizer.json"), self.path(name))
            self.make(os.path.join(name, "config"), {**TINY, "attention": RFA, "vocab_size": 700, "tokenizer": "tokenizer.json"})
        self.fails(1, r"text.txt: token \d+ is \w+, and \w+ with --against .*expected models with the same tokenizer", "eval", "-m",
                   self.path("gpt2/config.tarn"), "-f", self.write("text.txt", TEXT[:60]), "--against", self.path("llama3/config.tarn"))

    # ---- choices ----

    def encode(self, model, text):
        if model == self.float:  # its tokens are bytes
            return list(text.encode())
        status, out, err = tarn("tokenize", "-m", model, "-p", text, "--ids", "--no-special")
        self.assertEqual((status, err), (0, ""))
        return [int(one) for one in out.split()]

    def log_probability(self, model, context, choice, begin):
        """Of a continuation, as a request loglikelihood of lm-evaluation-harness."""
        spaces = len(context) - len(context.rstrip())
        context, choice = context[:len(context) - spaces], context[len(context) - spaces:] + choice
        read = self.encode(model, context) if context else []
        tokens = self.encode(model, context + choice)[len(read):]
        ids = begin + read + tokens
        rows = self.logits(model, "-f", self.write("ids.npy", npy(ids)))
        return -sum(loss(rows[i - 1], ids[i]) for i in range(len(ids) - len(tokens), len(ids)))

    def questions(self, count):
        draw = random.Random(1)
        words = ["To be", "or not", "the day", "is young", "Ach\u00e9", "\u4eca\u65e5", "nine", "a", "But new struck"]
        for i in range(count):
            context = " ".join(draw.sample(words, 3)) + draw.choice(["", ":", " ", "\n", "?"])
            yield {"context": context, "choices": [" ".join(draw.sample(words, draw.randint(1, 3))) for _ in range(2 + i % 3)], "answer": i % 2}

    def check_choices(self, model, questions, begin):
        right = [0, 0]
        for one in questions:
            joint = "" if one["context"][-1:].isspace() else " "
            scores = [self.log_probability(model, one["context"], joint + choice, begin) for choice in one["choices"]]
            lengths = [score / len(choice) for score, choice in zip(scores, one["choices"])]
            right[0] += scores.index(max(scores)) == one["answer"]
            right[1] += lengths.index(max(lengths)) == one["answer"]
        path = self.write("questions.jsonl", "".join(json.dumps(one) + "\n" for one in questions).encode())
        found = self.eval_json("-m", model, "--choices", path)
        self.assertEqual((found["questions"], found["cut_contexts"]), (len(questions), 0))
        self.assertAlmostEqual(found["acc"], right[0] / len(questions), 9)
        self.assertAlmostEqual(found["acc_norm"], right[1] / len(questions), 9)
        return right

    def test_choices_are_those_of_the_log_probabilities(self):
        questions = list(self.questions(24))
        right = self.check_choices(self.float, questions, [])
        self.assertNotEqual(right[0], right[1])  # else the normalisation would not show

    def test_choices_of_a_subword_tokenizer(self):
        os.makedirs(self.path("llama3"), exist_ok=True)
        shutil.copy(os.path.join(FIXTURES, "llama3", "tokenizer.json"), self.path("llama3"))
        self.make(os.path.join("llama3", "config"), {**TINY, "attention": RFA, "vocab_size": 700, "tokenizer": "tokenizer.json"})
        model = self.path("llama3/config.tarn")
        status, out, _ = tarn("tokenize", "-m", model, "-p", "a", "--ids")
        begin = [int(one) for one in out.split()][:-len(self.encode(model, "a"))]
        self.check_choices(model, list(self.questions(6)), begin)

    def test_a_choice_that_begins_with_a_space_has_it_once(self):
        questions = [{**one, "context": one["context"].rstrip()} for one in self.questions(8)]
        self.check_choices(self.float, questions, [])
        # Their text is the same, their length is not.
        spaced = [{**one, "choices": [" " + choice for choice in one["choices"]]} for one in questions]
        found = [self.eval_json("-m", self.float, "--choices", self.write("one.jsonl", "\n".join(map(json.dumps, lines)).encode()))["acc"]
                 for lines in (questions, spaced)]
        self.assertEqual(found[0], found[1])

    def test_context_of_a_bounded_model_is_cut_at_its_begin(self):
        long, short = "x" * 40 + "To be, or not to be, that", "To be, or not to be, that"
        for context, cut in (long, 2), (short, 0):
            path = self.write("cut.jsonl", json.dumps({"context": context, "choices": ["is so", "is no"], "answer": 0}).encode())
            self.assertEqual(self.eval_json("-m", self.path("bounded.tarn"), "--choices", path)["cut_contexts"], cut)
        path = self.write("long.jsonl", json.dumps({"context": "a", "choices": ["x" * 40, "b"], "answer": 0}).encode())
        self.fails(1, r"line 1: choice 0: 41 tokens, expected at most 32", "eval", "-m", self.path("bounded.tarn"), "--choices", path)

    def test_several_files_of_questions(self):
        line = json.dumps({"context": "To be", "choices": ["or not", "young day"], "answer": 0}).encode() + b"\n"
        files = [self.write("one.jsonl", line), self.write("two.jsonl", line * 2)]
        found = self.eval_json("-m", self.float, "--choices", files[0], "--choices", files[1])
        self.assertEqual((found["questions"], [row["questions"] for row in found["files"]]), (3, [1, 2]))

    def test_bad_questions(self):
        good = {"context": "To be", "choices": ["a", "b"], "answer": 0}
        for words, line in (
                ("is no JSON of UTF-8", "{"),
                ('expected an object with "context"', "[]"),
                ('"context" is 1, expected a string', json.dumps({**good, "context": 1})),
                ('expected an object with "choices"', json.dumps({"context": "a", "answer": 0})),
                ('"choices" has 1 texts, expected two or more', json.dumps({**good, "choices": ["a"]})),
                ('"choices" is "ab", expected a list of texts', json.dumps({**good, "choices": "ab"})),
                ('choice 1 is "", expected a string that is not empty', json.dumps({**good, "choices": ["a", ""]})),
                ("choice 0 is null, expected", json.dumps({**good, "choices": [None, "a"]})),
                ('"answer" is 2, expected the number of a choice, from 0 to 1', json.dumps({**good, "answer": 2})),
                ('"answer" is -1, expected', json.dumps({**good, "answer": -1})),
                ('"answer" is "a", expected', json.dumps({**good, "answer": "a"})),
                ('"answer" is an array of 1, expected', '{"context": "a", "choices": ["a", "b"], "answer": [' + "[" * 99999 + "]" * 99999 + "]}"),
                ("is empty, expected an object", "\n"),
                ('"answer" is 0.5, expected', json.dumps({**good, "answer": 0.5})),
                ("the context has no tokens, and the model no begin token", json.dumps({**good, "context": ""}))):
            path = self.write("bad.jsonl", json.dumps(good).encode() + b"\n" + line.encode())
            self.fails(1, "bad.jsonl: line 2.*" + words, "eval", "-m", self.float, "--choices", path)
        path = self.write("good.jsonl", json.dumps(good).encode())
        self.fails(1, "has no tokenizer, expected one", "eval", "-m", self.path("ids.tarn"), "--choices", path)
        self.fails(2, "--block is for texts, not for --choices", "eval", "-m", self.float, "--choices", path, "--block", 9)
        self.fails(2, "--file and --choices are both there", "eval", "-m", self.float, "--choices", path, "-f", path)
        self.fails(2, "--against is ''", "eval", "-m", self.float, "-f", path, "--against", "")
        self.fails(2, "--file is missing, expected --file FILE or --choices FILE", "eval", "-m", self.float)
        self.make("masked", MASKED_LM)
        self.fails(2, "--choices is for causal_lm models", "eval", "-m", self.path("masked.tarn"), "--choices", path)


if __name__ == "__main__":
    unittest.main()
