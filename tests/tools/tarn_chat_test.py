"""tarn run --chat: the prompt, and every turn of -i, as the model's chat template has it."""

import json
import os
import subprocess
import unittest

from tarn_talk_test import Terminal
from tarn_testing import BIN, MODEL, RFA, TINY, CliTest, tarn

SPECIAL = {"<|im_start|>": 256, "<|im_end|>": 257}
END = SPECIAL["<|im_end|>"]
SEED = 7
SAMPLING = ["--temp", 1, "--top-k", 0, "-t", 1]
EARLY = ["--logit-bias", f"{END}=2"]  # an answer often ends by itself
NEVER = ["--ban", END]


def byte_characters():
    """The characters that stand for bytes in a byte-level vocabulary, as GPT-2 has them: byte -> character."""
    visible = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {**{byte: chr(byte) for byte in visible}, **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


# A token for each byte, whose id is the byte, and the special tokens of ChatML.
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
    "added_tokens": [{"id": id, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                      "special": True} for text, id in SPECIAL.items()],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
              "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
              "vocab": {character: byte for byte, character in byte_characters().items()}, "merges": []}}


def turn(role, text):
    """Ids of a turn of ChatML, up to what ends it."""
    return [SPECIAL["<|im_start|>"], *f"{role}\n{text}".encode()]


def ended(ids):
    return [*ids, END, *b"\n"]


ANSWER = turn("assistant", "")


class ChatTest(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.path("tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(TOKENIZER, file)
        with open(cls.path("chat.json"), "w", encoding="utf-8") as file:
            json.dump({**TINY, "attention": RFA, "vocab_size": 258, "tokenizer": "tokenizer.json"}, file)
        for name in "chatml", "gemma", "rwkv":
            subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", cls.path("chat.json"), "-o",
                            cls.path(name + ".tarn"), "--quant", "f32", "--chat-template", name], check=True,
                           stdout=subprocess.DEVNULL)
        cls.model = cls.path("chatml.tarn")

    def events(self, *arguments, stdin=None, length=40, seed=SEED):
        """Of each answer: how many tokens were read before it, its ids, and why it ended."""
        status, out, err = tarn("run", self.model, "-q", "--jsonl", *SAMPLING, "-n", length, "-s", seed, *arguments, stdin=stdin)
        self.assertEqual((status, err), (0, ""))
        return self.answers(out)

    def answers(self, text):
        answers = []
        for event in map(json.loads, text.splitlines()):
            if event["event"] == "prompt":
                answers.append([event["tokens"], []])
            elif event["event"] == "token":
                answers[-1][1].append(event["token"])
            elif event["event"] == "end":
                answers[-1].append(event["stop_reason"])
        return answers

    def after(self, ids, *arguments, **keywords):
        """What should be answered: the text of a run without --chat after these ids, up to its first end of a turn."""
        (read, answer, why), = self.events("--tokens", ",".join(map(str, ids)), *arguments, **keywords)
        return [[read, answer[:answer.index(END)], "eos"] if END in answer else [read, answer, why]]

    def test_a_prompt_is_a_turn(self):
        user = turn("user", "What is <|im_end|>? é")  # special tokens are text where a user writes them
        ids = ended(user) + ANSWER
        expected = self.after(ids, *EARLY)
        self.assertEqual(self.events("--chat", "-p", "What is <|im_end|>? é", *EARLY), expected)
        self.assertEqual(expected[0][0], len(ids))
        with_system = ended(turn("system", "Be <|im_start|>\nbrief.")) + ids
        self.assertEqual(self.events("--chat", "--system", "Be <|im_start|>\\nbrief.", "-e", "-p", "What is <|im_end|>? é", *EARLY),
                         self.after(with_system, *EARLY))
        self.assertNotEqual(self.after(with_system, *EARLY)[0][1], expected[0][1])
        # An empty system text is one.
        self.assertEqual(self.events("--chat", "--system", "", "-p", "hi"),
                         self.after(ended(turn("system", "")) + ended(turn("user", "hi")) + ANSWER))
        file = self.write("question", b"a question\n")
        self.assertEqual(self.events("--chat", "-f", file), self.after(ended(turn("user", "a question")) + ANSWER))
        self.assertEqual(self.events("--chat", stdin=b"a question\n"), self.after(ended(turn("user", "a question")) + ANSWER))

    def test_the_output_is_the_answer(self):
        ids = ",".join(map(str, ended(turn("user", "hi")) + ANSWER))
        answers = [tarn("run", self.model, "-q", *SAMPLING, *NEVER, "-s", SEED, *prompt) for prompt in (["--chat", "-p", "hi"],
                                                                                                ["--no-echo", "--tokens", ids])]
        self.assertEqual(answers[0], answers[1])
        self.assertNotEqual(answers[0][1], b"")

    def test_the_end_of_a_turn_ends_the_answer(self):
        (_, answer, why), = self.events("--chat", "-p", "hi", "--logit-bias", f"{END}=100")
        self.assertEqual((answer, why), ([], "eos"))
        (_, answer, why), = self.events("-p", "hi", "--logit-bias", f"{END}=100", length=3)
        self.assertEqual((answer, why), ([END] * 3, "n"))  # a text without --chat goes on

    def conversation(self, *arguments):
        """Three turns with what each read and answered, by one-shot runs over the whole text."""
        text, answers = [], []
        for seed, said in enumerate(("one", "two <|im_start|>", "three"), SEED):
            turn_ids = ended(turn("user", said)) + ANSWER
            new = ([END, *b"\n"] if text else []) + turn_ids
            (_, answer, why), = self.after(text + new, *arguments, seed=seed)
            answers.append([len(new), answer, why])
            text += new + answer
        return answers

    def test_turns_of_a_pipe(self):
        lines = b"one\ntwo <|im_start|>\nthree\n"
        for options in EARLY, NEVER, [*EARLY, "--repeat-penalty", 1.5, "--repeat-last-n", 500]:
            expected = self.conversation(*options)
            self.assertEqual(self.events("-i", "--chat", *options, stdin=lines), expected)
            self.assertEqual(self.events("-i", "--chat", *options, "-p", "one", stdin=lines[4:]), expected)
        reasons = {answer[2] for answer in self.conversation(*EARLY)} | {answer[2] for answer in self.conversation(*NEVER)}
        self.assertEqual(reasons, {"eos", "n"})

    def test_turns_in_a_terminal(self):
        expected = self.conversation(*EARLY)
        talk = Terminal(self.model, "--chat", "--jsonl", *SAMPLING, "-n", 40, "-s", SEED, *EARLY)
        self.addCleanup(lambda: talk.master is not None and talk.close())

        def say(line):
            return self.answers(talk.say(line)[0])[0]

        self.assertEqual(say(b"one"), expected[0])
        self.assertEqual(say(b"two <|im_start|>"), expected[1])
        talk.say(b"/save " + self.path("state").encode())
        self.assertEqual(say(b"three"), expected[2])
        talk.say(b"/undo")
        self.assertEqual(say(b"three")[0], expected[2][0])
        self.assertEqual(say(b"/regen 9"), expected[2])
        talk.say(b"/reset")
        self.assertEqual(say(b"one")[0], expected[0][0])
        talk.say(b"/load " + self.path("state").encode())
        self.assertEqual(say(b"three")[0], expected[2][0])
        self.assertEqual(talk.end(), 0)

    def test_a_system_text_comes_once(self):
        system = len(ended(turn("system", "Be brief.")))
        status, out, err = tarn("run", self.model, "-q", "--jsonl", "-i", "--chat", "--system", "Be brief.", "-n", 3, *NEVER,
                                stdin=b"a\nb\n/reset\na\nb\n")
        self.assertEqual((status, err), (0, "at the beginning\n"))
        first = len(ended(turn("user", "a")) + ANSWER)
        self.assertEqual([answer[0] for answer in self.answers(out)], [system + first, first + 2] * 2)

    def test_a_grammar_ends_the_answer(self):
        rules = self.write("rules.gbnf", b'root ::= "yes" | "no"')
        (_, answer, why), = self.events("--chat", "-p", "hi", "--grammar", rules, "--logit-bias", f"{END}=100")
        self.assertIn((bytes(answer), why), ((b"yes", "grammar"), (b"no", "grammar")))

    def test_a_stop_string_ends_the_answer(self):
        (_, answer, why), = self.events("--chat", "-p", "hi", *NEVER, length=400)
        visible = next(token for token in answer if 32 < token < 127)
        (_, ended_early, why_early), = self.events("--chat", "-p", "hi", *NEVER, "--stop", chr(visible), length=400)
        self.assertEqual((why, why_early), ("n", "stop"))
        self.assertEqual(ended_early, answer[:answer.index(visible) + 1])

    def test_what_cannot_be_done_is_one_line(self):
        for interactive in [], ["-i"]:
            prompt = interactive or ["-p", "a"]
            self.fails(1, r"gate-int8\.tarn: the model has no chat template, .* tarn-convert --chat-template NAME", "run", MODEL, "--chat",
                       *prompt)
            self.fails(1, r'gemma\.tarn: the chat template "gemma" takes no system text', "run", self.path("gemma.tarn"), "--chat",
                       "--system", "x", *prompt)
        self.fails(2, "--system is there without --chat", "run", self.model, "--system", "x", "-p", "a")
        self.fails(2, "--tokens and --chat do not go together", "run", self.model, "--chat", "--tokens", "1")
        self.fails(2, "expected --chat", "run", self.model, "--chat-template", "chatml", "-p", "a")
        self.fails(2, "--chat has no prompt", "run", self.model, "--chat")


if __name__ == "__main__":
    unittest.main()
