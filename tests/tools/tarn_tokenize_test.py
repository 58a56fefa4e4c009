#!/usr/bin/env python3
"""`tarn tokenize`, and text in and out of `run` and `eval`, with the tokenizers of tests/data."""

import json
import os
import resource
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tarn_testing import BIN, MODEL, TINY, CliTest, tarn

FIXTURES = os.path.join(os.environ["TARN_SOURCE"], "tests", "data", "tokenizers")


def answers(name):
    with open(os.path.join(FIXTURES, name, "answers.jsonl"), encoding="ascii") as file:
        return [json.loads(line) for line in file]


class TokenizeTest(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("llama3", "gpt2", "llama2"):
            os.makedirs(cls.path(name), exist_ok=True)
            shutil.copy(os.path.join(FIXTURES, name, "tokenizer.json"), cls.path(name))
            cls.make(os.path.join(name, "config"), {**TINY, "vocab_size": 700, "tokenizer": "tokenizer.json"})

    def model(self, name):
        return self.path(os.path.join(name, "config.tarn"))

    def lines(self, model, lines, *options):
        path = self.write("lines.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
        status, out, err = tarn("tokenize", "-m", model, "-f", path, "--jsonl", *options)
        self.assertEqual((status, err), (0, ""))
        return [json.loads(line) for line in out.decode().splitlines()]

    def test_lines_are_those_of_the_package(self):
        for name in ("llama3", "gpt2"):
            for template, plain in (True, False), (False, False), (True, True), (False, True):
                texts = [one for one in answers(name) if "offsets" in one and (one["template"], one["plain"]) == (template, plain)]
                options = ([] if template else ["--no-special"]) + (["--plain"] if plain else [])
                found = self.lines(self.model(name), [{"text": one["text"]} for one in texts], *options)
                self.assertEqual(found, [{"ids": one["ids"], "offsets": one["offsets"]} for one in texts])
            for keep in (True, False):
                lists = [answer for answer in answers(name) if answer.get("keep") == keep]
                found = self.lines(self.model(name), [{"ids": one["ids"]} for one in lists], "--detokenize",
                                   *(["--keep-special"] if keep else []))
                self.assertEqual(found, [{"text": one["text"]} for one in lists])

    def test_a_word_that_is_longer_than_the_text(self):
        """Normalized, as every one of these characters is two."""
        name = "clip"
        os.makedirs(self.path(name), exist_ok=True)
        shutil.copy(os.path.join(FIXTURES, name, "tokenizer.json"), self.path(name))
        self.make(os.path.join(name, "config"), {**TINY, "vocab_size": 700, "tokenizer": "tokenizer.json"})
        text, ids = self.path("long.txt"), {}
        for count in 30_000, 3:
            with open(text, "w", encoding="utf-8") as file:
                file.write("\u0344" * count)
            status, out, err = tarn("tokenize", "-m", self.model(name), "-f", text, "--ids", "--no-special")
            self.assertEqual((status, err), (0, ""))
            ids[count] = len(out.split())
        self.assertGreaterEqual(ids[30_000], 30_000)

    def test_a_prompt_that_ends_in_tokens_for_bytes(self):
        prompt = "a \U0001f600"
        run = ("run", self.model("llama2"), "-p", prompt, "-n", 3, "-q", "--temp", 0)
        self.assertEqual(tarn(*run)[1], prompt.encode() + tarn(*run, "--no-echo")[1])

    def test_special_tokens_in_a_prompt(self):
        text = "a<|sep|>b"
        counts = {}
        for options in (), ("--plain",):
            stats = self.path("stats.json")
            command = ["run", self.model("gpt2"), "-p", text, "-n", 1, "-q", "--json-stats", stats, *options]
            self.assertEqual(tarn(*command)[0], 0)
            with open(stats, encoding="utf-8") as file:
                counts[options] = json.load(file)["prompt_tokens"]
            ids = self.lines(self.model("gpt2"), [{"text": text}], *options)[0]["ids"]
            self.assertEqual(counts[options], len(ids))
            said = tarn("run", self.model("gpt2"), "-i", "-n", 1, "--jsonl", *options, stdin=text.encode() + b"\n")[1].decode()
            self.assertEqual([line for line in said.splitlines() if '"prompt"' in line], ['{"event":"prompt","tokens":%d}' % len(ids)])
        self.assertGreater(counts[("--plain",)], counts[()])

    def test_log_probabilities_show_tokens_as_they_go_on(self):
        """As the text of all of them behind a prompt."""
        for name in "gpt2", "llama2":
            model = self.model(name)
            command = ["run", model, "-p", "To be", "-n", 20, "-q", "-s", 3, "--ban", 0, "--ban", 1, "--ban", 2]
            lines = [json.loads(line) for line in tarn(*command, "--logprobs", 700)[1].decode().splitlines()]
            self.assertEqual(len(lines), 20)
            texts = {one["token"]: one["text"] for one in lines[0]["top"]}
            vocabulary = self.vocabulary(name)
            begin = [token for token, piece in vocabulary.items() if piece.startswith(("\u2581", "\u0120")) and piece[1:].isascii()]
            self.assertGreater(len(begin), 20)
            for token in begin:
                self.assertEqual(texts[token], vocabulary[token].replace("\u2581", " ").replace("\u0120", " "))
            for line in lines:
                self.assertEqual(line["text"], texts[line["token"]])

    def vocabulary(self, name):
        with open(os.path.join(FIXTURES, name, "tokenizer.json"), encoding="utf-8") as file:
            found = json.load(file)
        added = {one["id"] for one in found["added_tokens"]}
        return {token: piece for piece, token in found["model"]["vocab"].items() if token not in added}

    def test_ids_beyond_the_vocabulary_are_left_out(self):
        self.assertEqual(self.lines(self.model("gpt2"), [{"ids": [699, 12345, 0]}], "--detokenize"), [{"text": ""}])

    def test_a_normalized_special_token_is_left_out(self):
        """Of version 0.23 of the package skip_special_tokens keeps it: that looks for "[cls]" among the contents, "[CLS]"."""
        os.makedirs(self.path("lower"), exist_ok=True)
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}
        added = [{"id": 1, "content": "[CLS]", "special": True, **flags}, {"id": 2, "content": "Foo", "special": False, **flags}]
        model = {"type": "WordLevel", "vocab": {"<unk>": 0, "[CLS]": 1, "Foo": 2, "a": 3}, "unk_token": "<unk>"}
        with open(self.path("lower/tokenizer.json"), "w") as file:
            json.dump({"added_tokens": added, "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
                       "model": model}, file)
        self.make("lower/config", {**TINY, "vocab_size": 4, "tokenizer": "tokenizer.json"})
        ids = [{"ids": [3, 1, 2, 3]}]
        self.assertEqual(self.lines(self.model("lower"), ids, "--detokenize"), [{"text": "a foo a"}])
        self.assertEqual(self.lines(self.model("lower"), ids, "--detokenize", "--keep-special"), [{"text": "a [cls] foo a"}])
        self.assertEqual(self.lines(self.model("lower"), [{"text": "a [CLS] Foo"}])[0]["ids"], [3, 1, 2])

    def test_a_long_word(self):
        word = "e" * 200000
        found = self.lines(self.model("gpt2"), [{"text": word}])[0]
        self.assertEqual(found["offsets"][-1][1], len(word))
        self.assertEqual(self.lines(self.model("gpt2"), [{"ids": found["ids"]}], "--detokenize"), [{"text": word}])

    def test_forms_of_the_output(self):
        ids = self.lines(self.model("gpt2"), [{"text": "To be"}])[0]["ids"]
        status, out, _ = tarn("tokenize", self.model("gpt2"), "-p", "To be", "--ids")
        self.assertEqual((status, out.decode()), (0, " ".join(map(str, ids)) + "\n"))
        status, out, _ = tarn("tokenize", self.model("gpt2"), "-p", "To be", "--json")
        self.assertEqual(json.loads(out)["ids"], ids)
        status, out, _ = tarn("tokenize", MODEL, "-p", "T\n", "--offsets")
        self.assertEqual((status, out.decode()), (0, '84\t0\t1\t"T"\n10\t1\t2\t"\\n"\n'))
        status, out, _ = tarn("tokenize", MODEL, "--detokenize", "--tokens", "84,111")
        self.assertEqual((status, out.decode()), (0, "To\n"))
        for ids in b"84,111\n", b" 84 , 111 ", b"84  111", b"84\n111\n":
            self.assertEqual(tarn("tokenize", MODEL, "--detokenize", "-f", "-", stdin=ids)[:2], (0, out), ids)
        self.assertEqual(tarn("tokenize", MODEL, "--detokenize", "-f", "-", stdin=b"\n")[0], 0)
        self.fails(2, "--tokens: there is no id, expected at least one", "tokenize", MODEL, "--detokenize", "--tokens", " ")
        status, _, err = tarn("tokenize", MODEL, "--detokenize", "--tokens", "84,256")
        self.assertEqual(status, 2)
        self.assertRegex(err, r"tokenize: --tokens: 256 is no token of .*, expected 0 to 255\n")

    def test_lines_of_tokens_are_the_text(self):
        """What the tokens add to the text is the text of all ids together, and their forms agree."""
        for name in ("gpt2", "llama2", "llama3"):
            model = self.model(name)
            for text in ("To be, or not to be", "  two  spaces ", "caf\u00e9 \U0001f642\u4e2d\n", "a<|sep|>b", ""):
                path = self.write("text.txt", text.encode())
                lines = tarn("tokenize", model, "-f", path, "--offsets")[1].decode().splitlines()
                rows = [line.split("\t") for line in lines]
                found = self.lines(model, [{"text": text}])[0]
                self.assertEqual([[int(row[0]), [int(row[1]), int(row[2])]] for row in rows],
                                 [list(pair) for pair in zip(found["ids"], found["offsets"])])
                decoded = self.lines(model, [{"ids": found["ids"]}], "--detokenize", "--keep-special")[0]["text"]
                self.assertEqual("".join(json.loads(row[3]) for row in rows), decoded)
                self.assertEqual(tarn("tokenize", model, "-f", path, "--json")[1].decode(), json.dumps(found, indent=2) + "\n")
                ids = self.write("ids.txt", " ".join(map(str, found["ids"])).encode() + b"\n")
                if found["ids"]:
                    shown = tarn("tokenize", model, "--detokenize", "--keep-special", "--json", "-f", ids)[1].decode()
                    self.assertEqual(shown, json.dumps({"text": decoded}, indent=2) + "\n")
        lines = tarn("tokenize", self.model("llama2"), "-p", "a a", "--no-special")[1].decode().splitlines()
        self.assertEqual([json.loads(line.split("\t")[1]) for line in lines], ["a", " a"])

    def test_memory_does_not_grow_with_the_text(self):
        """The process may have 8 MiB that are its own: a tokenizer takes 4 MiB (51 bytes for each of 65,536, 64 for each of 4,096 words),
        the tokens of the text and their ranges would take more than 20 bytes for every 4 of its 4 MiB."""
        unit = b"To be, or not to be: that is the question. na\xc3\xafve \xf0\x9f\x99\x82\n"
        count = (4 << 20) // len(unit)
        bound = 8 << 20

        def limited(*arguments, stdin=None):
            out = self.path("out")
            with open(out, "wb") as file:
                status, _, err = tarn("tokenize", *arguments, stdout=file, stdin=stdin,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (bound, bound)))
            self.assertEqual((status, err), (0, ""))
            return out

        if self.has_sanitizer():
            self.skipTest("AddressSanitizer has memory of its own")
        for name in ("gpt2", "llama2"):
            model, path = self.model(name), self.write("long.txt", unit * count)
            self.assertGreater(os.path.getsize(limited(model, "-f", path, "--offsets")), 4 << 20)
            self.assertGreater(os.path.getsize(limited(model, "-f", path, "--json")), 4 << 20)
            ids = self.path("ids.txt")
            os.replace(limited(model, "-f", path, "--ids", "--no-special"), ids)
            with open(limited(model, "--detokenize", "-f", ids), "rb") as file:
                self.assertEqual(file.read(), unit * count + b"\n")
            self.assertGreater(os.path.getsize(limited(model, "--offsets", stdin=unit * count)), 4 << 20)
            line = (json.dumps({"text": unit.decode()}) + "\n").encode()
            for arguments in {"stdin": line * count}, {}:
                lines = [] if arguments else ["-f", self.write("long.jsonl", line * count)]
                self.assertGreater(os.path.getsize(limited(model, *lines, "--jsonl", **arguments)), 4 << 20)

    def test_standard_input_of_any_length(self):
        """A pipe, also one that is kept in a file, and a file that somebody has begun to read; without a place for a file; a long line."""
        model = self.model("gpt2")
        text = b"To be, or not to be. na\xc3\xafve \xf0\x9f\x99\x82\n" * 50000
        self.assertGreater(len(text), 3 << 19)
        path = self.write("text.txt", text)
        expected = tarn("tokenize", model, "-f", path, "--ids")
        self.assertEqual(expected[0], 0)
        for environment in {}, {"TMPDIR": self.path("nowhere")}, {"TMPDIR": self.path("")}:
            before = sorted(os.listdir(self.path("")))
            self.assertEqual(tarn("tokenize", model, "--ids", stdin=text, environment=environment), expected)
            self.assertEqual(sorted(os.listdir(self.path(""))), before)
        with open(path, "rb") as file:
            os.lseek(file.fileno(), 7, os.SEEK_SET)
            done = subprocess.run([os.path.join(BIN, "tarn"), "tokenize", model, "--ids"], stdin=file, stdout=subprocess.PIPE, check=True)
            self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_CUR), len(text))
        self.assertEqual(done.stdout, tarn("tokenize", model, "--ids", stdin=text[7:])[1])
        line = tarn("tokenize", model, "--jsonl", stdin=json.dumps({"text": text.decode()}).encode())[1]
        self.assertEqual(" ".join(map(str, json.loads(line)["ids"])).encode() + b"\n", expected[1])
        begin, end = json.loads(line)["offsets"][-1]
        self.assertEqual((begin < end, end), (True, len(text)))

    def test_lines_of_a_pipe_are_answered_as_they_come(self):
        process = subprocess.Popen([os.path.join(BIN, "tarn"), "tokenize", self.model("gpt2"), "--jsonl"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        for text in "To be", "caf\u00e9":
            process.stdin.write(json.dumps({"text": text}).encode() + b"\n")
            process.stdin.flush()
            self.assertEqual(json.loads(process.stdout.readline())["offsets"][-1][1], len(text.encode()))
        process.stdin.write(b'{"text": "no newline"}')
        process.stdin.close()
        self.assertEqual(json.loads(process.stdout.readline())["offsets"][-1][1], 10)
        self.assertEqual(process.stdout.read(), b"")
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        self.assertRegex(tarn("tokenize", self.model("gpt2"), "--jsonl", stdin=b"")[2], "standard input is empty, expected at least one line")

    @staticmethod
    def has_sanitizer():
        with open(os.path.join(os.environ["TARN_BUILD"], "bin", "tarn"), "rb") as file:
            return b"__asan_init" in file.read()

    def test_refusals(self):
        ids = self.path("ids.tarn")
        self.fails(1, "no tokenizer", "tokenize", "-m", ids, "-p", "a")
        self.fails(2, "--ids and --json are both there", "tokenize", "-m", MODEL, "-p", "a", "--ids", "--json")
        self.fails(2, "--jsonl reads lines of a file", "tokenize", "-m", MODEL, "-p", "a", "--jsonl")
        self.fails(2, "--tokens is for --detokenize", "tokenize", "-m", MODEL, "--tokens", "1")
        for option in "--ids", "--offsets":
            self.fails(2, "--detokenize gives text", "tokenize", "-m", MODEL, "--tokens", "1", "--detokenize", option)
        for line, words in ((b"{", "line 1: '{' is no JSON of UTF-8"), (b"[]", 'line 1: is an array of 0, expected an object with "text"'),
                            (b'{"text": "\xff"}', "is no JSON of UTF-8"), (b'{"text": 1}', 'line 1: "text" is 1, expected a string')):
            self.fails(1, words, "tokenize", "-m", MODEL, "-f", self.write("bad.jsonl", line), "--jsonl")
        self.fails(1, "an id is -1, expected a token id", "tokenize", "-m", MODEL, "--detokenize", "--jsonl", "-f",
                   self.write("bad.jsonl", b'{"ids": [-1]}'))

    def test_run_and_eval_take_text(self):
        text = "To be, or not to be, that is the question. " * 3
        status, out, err = tarn("run", self.model("llama3"), "-p", "To b\u00e9", "-n", "3", "-q", "-s", "1")
        self.assertEqual(status, 0, err)
        self.assertTrue(out.decode().startswith("To b\u00e9"), out)
        path = self.write("text.txt", text.encode())
        status, out, err = tarn("eval", self.model("gpt2"), "-f", path, "--block", "16", "--json")
        self.assertEqual(status, 0, err)
        found = json.loads(out)
        encoding = self.lines(self.model("gpt2"), [{"text": text}])[0]
        self.assertEqual(found["tokens"], len(encoding["ids"]))
        scored = [i for i in range(len(encoding["ids"])) if i % 16]
        self.assertEqual(found["scored"], len(scored))
        scored_bytes = sum(encoding["offsets"][i][1] - encoding["offsets"][i][0] for i in scored)
        self.assertAlmostEqual(found["nats_per_byte"] * scored_bytes, found["nats_per_token"] * len(scored), places=6)
        self.assertLess(scored_bytes, len(text))


if __name__ == "__main__":
    unittest.main()
