"""Models that encode, on the command line: run, classify, fill, eval and bench agree with themselves and with each other."""

import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from tarn_testing import BIN, CLASSIFICATION, MASKED_LM, MODEL, SEQ2SEQ, CliTest, start, tarn

TOKENIZERS = pathlib.Path(__file__).resolve().parents[1] / "data" / "tokenizers"
LINES = [b"to be", b"or not", b"x", b"that is the question", b"whether"]


class TasksTest(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make("translation", SEQ2SEQ)
        # A vocabulary so small that outputs end by themselves.
        cls.make("short", {**SEQ2SEQ, "vocab_size": 6, "tokenizer": "none"})
        cls.make("classifier", CLASSIFICATION)
        cls.make("masked", MASKED_LM)
        cls.translation, cls.short, cls.classifier, cls.masked = (
            cls.path(name + ".tarn") for name in ("translation", "short", "classifier", "masked"))

    def out(self, *arguments):
        status, out, err = tarn(*arguments)
        self.assertEqual(status, 0, err)
        return out

    def json(self, *arguments):
        return json.loads(self.out(*arguments, "--json"))


class RunTest(TasksTest):
    def test_a_source_alone_is_as_in_a_batch(self):
        lines = self.write("sources.txt", b"\n".join(LINES))
        for beam in 1, 3:
            alone = [self.out("run", "-m", self.translation, "-p", line.decode(), "-n", 12, "--beam", beam) for line in LINES]
            for batch in 1, 2, 8:
                found = self.out("run", "-m", self.translation, "-f", lines, "-n", 12, "--beam", beam, "--batch", batch)
                self.assertEqual(found, b"".join(alone), (beam, batch))

    def test_outputs_end_with_the_end_token_or_where_they_are_cut(self):
        sources = self.write("ids.txt", b"".join(b"%d %d\n" % (i, j) for i in range(6) for j in range(6)))
        lengths = set()
        for line in self.out("run", "-m", self.short, "-f", sources, "-n", 9, "--batch", 7).splitlines():
            tokens = [int(token) for token in line.split()]
            self.assertTrue(all(token in range(6) and token != 1 for token in tokens), tokens)
            lengths.add(len(tokens))
        self.assertLessEqual(max(lengths), 9)
        self.assertLess(min(lengths), 9)

    def test_what_is_streamed_is_the_output(self):
        for cut in 1, 2, 5, 30:
            for source in "2,3", "5", "4,4,4":
                streamed = self.out("run", "-m", self.short, "--tokens", source, "-n", cut)
                twice = self.write("twice.txt", (source + "\n" + source + "\n").encode())
                self.assertEqual(self.out("run", "-m", self.short, "-f", twice, "-n", cut), 2 * streamed)

    def test_stats(self):
        stats_file = self.path("stats.json")
        out = self.out("run", "-m", self.translation, "-p", "to be", "-n", 20, "--beam", 4, "-t", 1, "--json-stats", stats_file)
        with open(stats_file) as file:
            stats = json.load(file)
        self.assertEqual((stats["prompt_tokens"], stats["seed"]), (5, None))
        self.assertLessEqual(stats["generated_tokens"], 20)
        self.assertTrue(out.endswith(b"\n"))
        self.assertEqual(stats["encode_seconds"], stats["prompt_seconds"])
        for key in "encode_seconds", "generate_seconds", "first_1000_median_us":
            self.assertGreater(stats[key], 0)
        if stats["allocation_counter"] == "on":
            self.assertEqual(stats["allocations_after_creation"], 0)

    def test_refusals(self):
        for option in ["--temp", 1], ["-s", 1], ["--top-k", 3]:
            self.fails(2, f"{option[0].lstrip('-')}.* is for causal_lm models, this one is seq2seq", "run", "-m", self.translation,
                       "-p", "a", *option)
        for option in ["--beam", 2], ["--length-penalty", 1], ["--batch", 2]:
            self.fails(2, f"{option[0]} is for seq2seq models, this one is causal_lm", "run", "-m", MODEL, "-p", "a", *option)
        self.fails(2, "-n is -1, must be from 1", "run", "-m", self.translation, "-p", "a", "-n", -1)
        self.fails(2, "run: no source, expected one of -p, -f and --tokens", "run", "-m", self.translation)
        self.fails(1, "the source is empty", "run", "-m", self.translation, "-p", "")
        self.fails(1, "lines.txt: line 2 is empty", "run", "-m", self.translation, "-f", self.write("lines.txt", b"a\n\nb\n"))
        self.fails(1, "lines.txt: line 1: id 2 is 'x'", "run", "-m", self.short, "-f", self.write("lines.txt", b"1 x\n"))
        self.fails(2, "--length-penalty: is .-1., expected a number: at least 0", "run", "-m", self.translation, "-p", "a", "--length-penalty", -1)

    def test_commands_of_other_tasks_are_named(self):
        for command, model, found, wanted, use in (
                (["run", "-p", "a"], self.classifier, "classification", "causal_lm or seq2seq", "classify"),
                (["run", "-p", "a"], self.masked, "masked_lm", "causal_lm or seq2seq", "fill"),
                (["classify", "-p", "a"], self.masked, "masked_lm", "classification", "fill"),
                (["classify", "-p", "a"], MODEL, "causal_lm", "classification", "run"),
                (["fill", "-p", "a"], self.translation, "seq2seq", "masked_lm", "run")):
            self.fails(1, rf"the task of .*\.tarn is {found}, expected {wanted}: use `tarn {use}`$", *command, "-m", model)


class ClassifyTest(TasksTest):
    def test_probabilities(self):
        text = self.out("classify", "-m", self.classifier, "-p", "to be").decode().rstrip("\n").split("\t")
        labels, probabilities = [int(label) for label in text[::2]], [float(value) for value in text[1::2]]
        self.assertEqual(sorted(labels), [0, 1, 2])
        self.assertEqual(probabilities, sorted(probabilities, reverse=True))
        self.assertAlmostEqual(sum(probabilities), 1, 3)
        found = self.json("classify", "-m", self.classifier, "--tokens", ",".join(map(str, b"to be")), "-k", 2)["texts"]
        self.assertEqual([item["label"] for item in found[0]["labels"]], labels[:2])

    def test_a_text_alone_is_as_in_a_batch_and_labels_are_ignored(self):
        alone = b"".join(self.out("classify", "-m", self.classifier, "-p", line.decode()) for line in LINES)
        for prefix in b"", b"2\t":
            lines = self.write("texts.txt", b"".join(prefix + line + b"\r\n" for line in LINES))
            for batch in 1, 3, 16:
                self.assertEqual(self.out("classify", "-m", self.classifier, "-f", lines, "--batch", batch), alone)

    def test_accuracy(self):
        texts = self.write("texts.txt", b"\n".join(LINES))
        found = self.json("classify", "-m", self.classifier, "-f", texts)["texts"]
        labels = [text["labels"][0]["label"] for text in found]
        right = self.write("right.tsv", b"".join(b"%d\t%s\n" % pair for pair in zip(labels, LINES)))
        result = self.json("eval", "-m", self.classifier, "-f", right, "--batch", 2)
        self.assertEqual((result["lines"], result["correct"], result["accuracy"]), (5, 5, 1))
        nats = [-math.log(text["labels"][0]["probability"]) for text in found]
        self.assertAlmostEqual(result["nats_per_label"], sum(nats) / 5, 5)
        labels[3] = (labels[3] + 1) % 3
        wrong = self.write("wrong.tsv", b"".join(b"%d\t%s\n" % pair for pair in zip(labels, LINES)))
        self.assertEqual(self.json("eval", "-m", self.classifier, "-f", wrong)["accuracy"], 0.8)
        self.assertRegex(self.out("eval", "-m", self.classifier, "-f", wrong).decode(), r"(?m)^accuracy +0\.8000$")

    def test_a_long_op_hears_signals(self):
        # A text of 512 bytes would take minutes, in one op.
        self.make("rounds", {**CLASSIFICATION, "position_embedding": "sinusoidal",
                             "attention": {"system": "kv_clustering", "num_slots": 65536, "iterations": 1000}})
        self.fails(1, r"a token takes about \d+ .*--max-work", "classify", self.path("rounds.tarn"), "-p", 512 * "x")
        for kind in signal.SIGINT, signal.SIGTERM:
            process = start("classify", self.path("rounds.tarn"), "-p", 512 * "x", "--max-work", str(2 ** 63))
            time.sleep(0.5)  # it computes, or is on its way there: both end
            process.send_signal(kind)
            out, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, out, err), (128 + kind, b"", b"tarn: error: interrupted\n"))

    def test_refusals(self):
        for words, content in (("line 2 has no tab, expected LABEL<tab>TEXT", b"0\ta\nb\n"),
                               ("line 1: the label is '3', expected an integer from 0 to 2", b"3\ta\n"),
                               ("line 1 is empty", b"0\t\n"), ("is empty, expected at least one line", b"")):
            self.fails(1, words, "eval", "-m", self.classifier, "-f", self.write("bad.tsv", content))
        self.fails(2, "classify: no text, expected one of -p, -f and --tokens", "classify", "-m", self.classifier)
        self.make("score", {**CLASSIFICATION, "num_labels": 1})
        for command in ["classify", "-p", "a"], ["eval", "-f", self.write("score.tsv", b"0\ta\n")]:
            self.fails(1, r"score\.tarn has 1 label, expected 2 or more: its logit is a score and no probability", *command, "-m",
                       self.path("score.tarn"))
        self.fails(2, "--block is for causal_lm or masked_lm models, this one is classification", "eval", "-m", self.classifier,
                   "-f", self.write("right.tsv", b"0\ta\n"), "--block", 9)


class FillTest(TasksTest):
    def test_gaps(self):
        found = self.json("fill", "-m", self.masked, "-p", "to b_ or n_t", "-k", 256)
        self.assertEqual([gap["position"] for gap in found["gaps"]], [4, 10])
        best = [gap["fillings"][0] for gap in found["gaps"]]
        self.assertEqual([found["tokens"][gap["position"]] for gap in found["gaps"]], [filling["token"] for filling in best])
        for gap in found["gaps"]:
            self.assertEqual(len(gap["fillings"]), 256)
            self.assertAlmostEqual(sum(filling["probability"] for filling in gap["fillings"]), 1, 6)
        # The mask token itself, by its id, and another character, are the same gaps.
        ids = list(b"to b_ or n_t")
        ids[4] = ids[10] = 0
        self.assertEqual(self.json("fill", "-m", self.masked, "--tokens", ",".join(map(str, ids)), "-k", 256), found)
        self.assertEqual(self.json("fill", "-m", self.masked, "-p", "to b? or n?t", "--mask", "?", "-k", 256), found)
        table = self.out("fill", "-m", self.masked, "-p", "to b_ or n_t", "-k", 2).decode()
        self.assertRegex(table, rf"(?m)^ +4 +{best[0]['token']} ")

    def test_gaps_of_tokenizers_with_a_template(self):
        for kind in "bert_words", "roberta":
            folder = self.path(kind)
            os.makedirs(folder)
            shutil.copy(TOKENIZERS / kind / "tokenizer.json", folder)
            with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
                tokenizer = json.load(file)
            ids = [*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])]
            (mask_id,) = (token["id"] for token in tokenizer["added_tokens"] if token["content"] == "<mask>")
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
                json.dump({**MASKED_LM, "vocab_size": max(ids) + 1, "tokenizer": "tokenizer.json", "mask_token_id": mask_id}, file)
            model = self.path(kind + ".tarn")
            subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", os.path.join(folder, "config.json"), "-o",
                            model, "--quant", "f32"], check=True, stdout=subprocess.DEVNULL)
            found = self.json("fill", "-m", model, "-p", "a <mask> b")
            (gap,) = found["gaps"]
            self.assertEqual(found["tokens"][gap["position"]], gap["fillings"][0]["token"])
            for how in ("--mask", "<mask>"), ("--mask", mask_id):
                self.assertEqual(self.json("fill", "-m", model, "-p", "a <mask> b", *how), found, (kind, how))

    def test_unknown_words_are_no_gaps(self):
        folder = self.path("unknown")
        os.makedirs(folder)
        shutil.copy(TOKENIZERS / "wordpiece" / "tokenizer.json", folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({**MASKED_LM, "vocab_size": 403, "tokenizer": "tokenizer.json", "mask_token_id": 400}, file)
        subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", os.path.join(folder, "config.json"), "-o",
                        self.path("unknown.tarn")], check=True, stdout=subprocess.DEVNULL)
        found = self.json("fill", "-m", self.path("unknown.tarn"), "-p", "the \u2603 of <|sep|>")
        self.assertEqual(len(found["gaps"]), 1)
        self.fails(2, "expected one token of the model's tokenizer", "fill", self.path("unknown.tarn"), "-p", "a \u2603", "--mask",
                   "\u2602")

    def test_refusals(self):
        self.fails(1, "nothing to fill", "fill", "-m", self.masked, "-p", "to be")
        self.fails(2, "expected one token of the model's tokenizer, or an id", "fill", "-m", self.masked, "-p", "to be", "--mask", "\u00e9")
        self.fails(2, "expected one token of the model's tokenizer, or an id", "fill", "-m", self.masked, "-p", "to be", "--mask", "-1")
        self.fails(2, "fill: no text, expected one of -p, -f and --tokens", "fill", "-m", self.masked)

    def test_loss_of_hidden_tokens(self):
        text = self.write("text.txt", bytes(range(97, 117)) * 21)  # 420 bytes
        first = self.json("eval", "-m", self.masked, "-f", text, "--block", 100)
        # 15 % of 100, four times, and of 20.
        self.assertEqual((first["tokens"], first["scored"]), (420, 4 * 15 + 3))
        self.assertGreater(first["nats_per_token"], 1)
        self.assertAlmostEqual(first["perplexity"], math.exp(first["nats_per_token"]), 6)
        again = self.json("eval", "-m", self.masked, "-f", text, "--block", 100, "-s", 42)
        self.assertEqual(again["nats_per_token"], first["nats_per_token"])
        other = self.json("eval", "-m", self.masked, "-f", text, "--block", 100, "-s", 43)
        self.assertNotEqual(other["nats_per_token"], first["nats_per_token"])
        self.assertEqual(self.json("eval", "-m", self.masked, "-f", text)["scored"], 63)

    def test_one_hidden_token_is_scored_as_filled(self):
        # Of three tokens one is hidden: one of the three losses that fill tells.
        text = b"abc"
        losses = []
        for at in range(3):
            gaps = self.json("fill", "-m", self.masked, "-p", (text[:at] + b"_" + text[at + 1:]).decode(), "-k", 256)["gaps"]
            losses += [-math.log(filling["probability"]) for filling in gaps[0]["fillings"] if filling["token"] == text[at]]
        found = self.json("eval", "-m", self.masked, "-f", self.write("abc.txt", text))["nats_per_token"]
        self.assertLess(min(abs(found - loss) for loss in losses), 1e-6)


class EvalTranslationTest(TasksTest):
    def test_exact_match(self):
        sources = self.write("sources.txt", b"\n".join(LINES))
        for beam in 1, 3:
            outputs = self.out("run", "-m", self.short, "-f", self.write("ids.txt", b"2 3\n4\n5 5 5\n"), "-n", 7, "--beam", beam)
            pairs = [b"%s\t%s\n" % pair for pair in zip((b"2 3", b"4", b"5 5 5"), outputs.split(b"\n"))]
            right = self.json("eval", "-m", self.short, "-f", self.write("pairs.tsv", b"".join(pairs)), "-n", 7, "--beam", beam,
                              "--batch", 2)
            self.assertEqual((right["lines"], right["exact"], right["exact_match"]), (3, 3, 1))
            pairs[1] = b"4\t2 2 2 2 2 2 2 2 2\n"
            wrong = self.json("eval", "-m", self.short, "-f", self.write("pairs.tsv", b"".join(pairs)), "-n", 7, "--beam", beam)
            self.assertEqual(wrong["exact"], 2)
        self.fails(1, "line 1 has no tab, expected SOURCE<tab>TARGET", "eval", "-m", self.translation, "-f", sources)


class BenchTest(TasksTest):
    def rows(self, model, *arguments):
        return json.loads(self.out("bench", "--memory-mib", 16, "-m", model, "-o", "json", "-p", 6, "-n", 3, "-r", 2, "-t", 1,
                                   *arguments))

    def test_rows(self):
        for model, tests in ((self.translation, ["enc6", "dec3"]), (self.classifier, ["enc6"]), (self.masked, ["enc6"])):
            for batch in 1, 4:
                rows = self.rows(model, "--batch", batch)
                self.assertEqual([(row["test"], row["batch"]) for row in rows], [(test, batch) for test in tests])
                for row in rows:
                    self.assertGreater(row["t_s_mean"], 0)
                self.assertAlmostEqual(rows[0]["first_token_ms"] * rows[0]["t_s_median"] / (6000 * batch), 1)
        one, four = (self.rows(self.translation, "--batch", batch)[0]["state_bytes"] for batch in (1, 4))
        self.assertAlmostEqual(four / one, 4, 0)  # but for alignment

    def test_profile_has_both_programs(self):
        kinds = [{op["kind"] for op in row["profile"]["ops"] if op["runs"] > 0} for row in self.rows(self.translation, "--profile")]
        self.assertIn("noncausal_cache", kinds[0])
        self.assertIn("linear_state", kinds[1])

    def test_refusals(self):
        # The model is opened when the table has begun.
        for model, words, option in ((self.translation, "--n-depth is for causal_lm models", "-d"),
                                     (MODEL, "--batch is for seq2seq or classification or masked_lm models", "--batch")):
            status, _, err = tarn("bench", "--memory-mib", 16, "-m", model, option, 4)
            self.assertEqual(status, 2)
            self.assertIn("tarn: error: bench: " + words, err)


if __name__ == "__main__":
    unittest.main()
