"""tarn run --speculate and --draft: the same text, and what the statistics say of it."""

import json
import os
import unittest

from tarn_testing import MODEL, CliTest, tarn

OTHER = os.path.join(os.path.dirname(MODEL), "shakespeare-abc-mlp-int8.tarn")
DRAFT = os.path.join(os.path.dirname(os.path.dirname(MODEL)), "drafts/shakespeare-draft-int8.tarn")
PROMPT = "First Citizen:\nBefore we proceed any further, hear me speak.\n\nFirst Citizen:\nBefore we proceed any"
SAMPLERS = [["--temp", 0], ["--temp", 0.7, "-s", 5], ["--temp", 0.5, "-s", 1, "--repeat-penalty", 1.1, "--mirostat", 2]]


class SpeculateTest(CliTest):
    def run_text(self, *arguments):
        length = [] if "-n" in arguments else ["-n", 250]
        status, out, err = tarn("run", MODEL, "-q", "-t", 1, "-p", PROMPT, *length, *arguments)
        self.assertEqual((status, err), (0, ""))
        return out

    def stats(self, *arguments):
        path = self.path("stats.json")
        text = self.run_text(*arguments, "--json-stats", path)
        with open(path) as file:
            return text, json.load(file)

    def test_the_text_is_the_same(self):
        for sampler in SAMPLERS:
            plain = self.run_text(*sampler)
            for how in ["--speculate", 8], ["--speculate", 1], ["--speculate", 63], ["--speculate", 63, "--chunk", 64], ["--draft", OTHER], ["--draft", MODEL], \
                    ["--draft", DRAFT]:
                with self.subTest(sampler=sampler, how=how):
                    self.assertEqual(self.run_text(*sampler, *how), plain)

    def test_the_statistics_add_up(self):
        text, stats = self.stats("--temp", 0, "--speculate", 8)
        self.assertEqual(stats["generated_tokens"], 250)
        # The first token is picked behind the prompt.
        self.assertEqual(stats["model_runs"] + stats["accepted_tokens"] + 1, 250)
        self.assertGreater(stats["accepted_tokens"], 0)
        self.assertLessEqual(stats["accepted_tokens"], stats["drafted_tokens"])
        self.assertGreater(stats["speculation_bytes"], 36 * 8192)
        # None: under a sanitizer they are not counted.
        self.assertIn(stats["allocations_after_creation"], (0, None))
        self.assertNotIn("model_runs", self.stats("--temp", 0)[1])

    def test_ends_are_those_of_single_steps(self):
        for end in ["--stop", "e"], ["-n", 3], ["-n", 17]:
            with self.subTest(end=end):
                plain, wanted = self.stats("--temp", 0, *end)
                text, stats = self.stats("--temp", 0, *end, "--speculate", 8)
                self.assertEqual(text, plain)
                for field in "stop_reason", "generated_tokens":
                    self.assertEqual(stats[field], wanted[field])

    def test_states_and_grammars_are_those_of_single_steps(self):
        rules = self.path("rules")
        with open(rules, "w") as file:
            file.write('root ::= ("the " ("cat" | "dog") " sat, "){5} "end"')
        for arguments in ["--grammar", rules], ["--logprobs", 2]:
            self.assertEqual(self.run_text("--temp", 0, *arguments, "--speculate", 8), self.run_text("--temp", 0, *arguments))
        states = []
        for how in [], ["--speculate", 8]:
            self.run_text("--temp", 0, "--stop", "any", "--save-state", self.path("state"), *how)
            with open(self.path("state"), "rb") as file:
                states.append(file.read())
        self.assertEqual(*states)

    def test_what_does_not_go_together_is_refused(self):
        self.fails(2, "-i and --speculate", "run", MODEL, "-i", "--speculate", 4)
        self.fails(1, "README.md", "run", MODEL, "-p", "A", "--draft", "README.md")
        self.fails(2, "--speculate", "run", MODEL, "-p", "A", "--speculate", 64)
        self.fails(2, "--chunk is 1, expected at least 2", "run", MODEL, "-p", "A", "--speculate", 4, "--chunk", 1)
        self.fails(2, "--speculate 0 guesses nothing", "run", MODEL, "-p", "A", "--speculate", 0, "--draft", OTHER)


if __name__ == "__main__":
    unittest.main()
