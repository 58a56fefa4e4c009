"""tarn run: states in files, and the cache of prompts."""

import json
import os
import signal
import unittest

from tarn_testing import MODEL, TINY, CliTest, start, tarn

GREEDY = ["-q", "--temp", 0, "-t", 1]
# Longer than two chunks, with a common begin of more than one.
SYSTEM = "You are a clerk of the court of Verona. Answer as such, in verse, and never name the prince by name, my lord. " * 3
FIRST, SECOND = SYSTEM + "ROMEO:", SYSTEM + "JULIET, who comes late:"


class StateTest(CliTest):
    def run_text(self, *arguments, stdin=None):
        status, out, err = tarn("run", MODEL, *GREEDY, *arguments, stdin=stdin)
        self.assertEqual((status, err), (0, ""))
        return out

    def test_a_text_goes_on_from_a_file(self):
        state = self.path("state")
        # The chunks of a prompt are part of the result: both read it in the same ones.
        whole = self.run_text("-p", "ROMEO:", "-n", 61)
        first = self.run_text("-p", "ROMEO:", "-n", 30, "--save-state", state)
        byte = whole[len(first) - 1:len(first)]
        rest = self.run_text("-p", byte.decode(), "--no-echo", "-n", 30, "--load-state", state)
        self.assertEqual((first[:-1] + byte + rest)[:66], whole[:66])

    def test_files_are_those_of_the_interactive_mode(self):
        state, other = self.path("state"), self.path("other")
        self.run_text("-p", "ROMEO:", "-n", 30, "--save-state", state)
        status, out, err = tarn("run", MODEL, *GREEDY, "-i", "--load-state", state, "--save-state", other,
                                stdin=b"/save " + self.path("third").encode())
        self.assertEqual((status, out, err), (0, b"", "saved 36 tokens\n"))
        with open(state, "rb") as a, open(other, "rb") as b, open(self.path("third"), "rb") as c:
            content = a.read()
            self.assertEqual(content, b.read())
            self.assertEqual(content, c.read())
        texts = {self.run_text("-p", "A", "-n", 8, "--load-state", path) for path in (state, other)}
        self.assertEqual(len(texts), 1)

    def test_what_is_no_state_is_named(self):
        wrong = self.path("wrong")
        with open(wrong, "wb") as file:
            file.write(b"x" * 500)
        self.fails(1, "wrong: snapshot: magic is 7878", "run", MODEL, "-p", "A", "--load-state", wrong)
        self.fails(1, "nowhere/state: cannot be created", "run", MODEL, "-p", "A", "--save-state", self.path("nowhere/state"))
        self.fails(1, "would be overwritten", "run", MODEL, "-p", "A", "--save-state", MODEL)
        self.fails(1, "no-such: cannot", "run", MODEL, "-p", "A", "--load-state", self.path("no-such"))
        self.fails(1, "the prompt is empty, and a saved state has no logits", "run", MODEL, "-p", "", "--load-state", self.save())
        empty = self.path("empty")
        with open(empty, "wb"):
            pass
        self.fails(1, "empty: the prompt is empty, and a saved state", "run", MODEL, "-f", empty, "--load-state", self.save())

    def test_a_file_may_be_called_like_standard_input(self):
        folder = self.path("dash")
        os.makedirs(folder)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(folder)
        status, out, err = tarn("run", os.path.join(before, MODEL), *GREEDY, "-i", "-n", 3, "-p", "ROMEO:", "--no-echo",
                                stdin=b"/save -\n/reset\n/load -\n/save again\n")
        self.assertEqual(status, 0)
        self.assertIn("loaded 9 tokens", err)
        with open("-", "rb") as saved, open("again", "rb") as again:
            self.assertEqual(saved.read(), again.read())

    def test_a_signal_ends_the_text_and_not_the_state(self):
        state, stats = self.path("interrupted"), self.path("interrupted.json")
        process = start("run", MODEL, *map(str, GREEDY), "-p", "ROMEO:", "-n", "-1", "--save-state", state, "--json-stats", stats)
        self.addCleanup(process.kill)
        shown = process.stdout.read(40)  # the prompt, and some of the text
        process.send_signal(signal.SIGTERM)
        shown += process.stdout.read()
        self.assertEqual((process.wait(), process.stderr.read()), (143, b""))
        with open(stats) as file:
            count = json.load(file)["generated_tokens"]
        whole = self.run_text("-p", "ROMEO:", "-n", count + 9)
        self.assertEqual(whole[:len(shown) - 1] + b"\n", shown)
        rest = self.run_text("-p", chr(whole[len("ROMEO:") + count]), "--no-echo", "-n", 8, "--load-state", state)
        self.assertEqual(rest, whole[len("ROMEO:") + count + 1:])

    def test_the_interactive_mode_says_first_that_a_state_cannot_be_written(self):
        status, out, err = tarn("run", MODEL, *GREEDY, "-i", "--save-state", self.path("nowhere/state"), stdin=b"A\n")
        self.assertEqual((status, out), (1, b""))
        self.assertIn("nowhere/state: cannot be created", err)

    def test_a_compact_state_is_smaller_and_goes_on(self):
        exact, compact, again = self.path("exact"), self.path("compact"), self.path("again")
        text = self.run_text("-p", "ROMEO:", "-n", 50, "--save-state", exact)
        self.assertEqual(self.run_text("-p", "ROMEO:", "-n", 50, "--save-state", compact, "--compact-state"), text)
        self.assertLess(3 * os.path.getsize(compact), 1.01 * os.path.getsize(exact))
        self.assertEqual(len(self.run_text("-p", "A", "--no-echo", "-n", 20, "--load-state", compact)), 21)
        status, out, err = tarn("run", MODEL, *GREEDY, "-i", "-n", 3, "--load-state", compact, "--compact-state",
                                stdin=b"/save " + again.encode() + b"\n")
        self.assertEqual(status, 0, err)
        with open(compact, "rb") as first, open(again, "rb") as second:
            self.assertEqual(len(first.read()), len(second.read()))
        status, out, err = tarn("state", "info", compact, "-m", MODEL)
        self.assertEqual(status, 0, err)
        self.assertIn("compact snapshot, version 4", out.decode())
        self.fails(2, "--compact-state saves nothing, expected --save-state", "run", MODEL, "-p", "A", "--compact-state")

    def save(self):
        state = self.path("saved")
        self.run_text("-p", "A", "-n", 1, "--save-state", state)
        return state


class CacheTest(CliTest):
    def setUp(self):
        super().setUp()
        self.cache = self.path(f"cache-{self.id()}")

    def ask(self, prompt, *arguments, errors=""):
        """The text, and how many tokens came from the cache."""
        stats = self.path("stats.json")
        status, out, err = tarn("run", MODEL, *GREEDY, "-p", prompt, "-n", 40, "--prompt-cache", self.cache, "--json-stats", stats,
                                *arguments)
        self.assertEqual(status, 0, err)
        self.assertRegex(err, errors or "^$")
        with open(stats) as file:
            found = json.load(file)
        self.assertEqual(found["prompt_tokens"], len(prompt))
        return out, found["prompt_cached"]

    def files(self):
        return sorted(os.listdir(self.cache))

    def test_a_prompt_is_read_once(self):
        text, cached = self.ask(FIRST)
        self.assertEqual(cached, 0)
        count = len(FIRST)
        self.assertEqual([int(name.split("-")[1].split(".")[0]) for name in self.files() if f"-{count - 1}." in name], [count - 1])
        self.assertEqual(self.ask(FIRST), (text, count - 1))
        # Another question: the chunks that they share, and from there on the same text as without a cache of others.
        empty, self.cache = self.cache, self.path("another")
        alone, cached = self.ask(SECOND)
        self.assertEqual(cached, 0)
        self.cache = empty
        shared, cached = self.ask(SECOND)
        self.assertEqual(shared, alone)
        self.assertEqual(cached % 64, 0)
        self.assertGreaterEqual(cached, len(SYSTEM) // 64 * 64 - 64)
        self.assertEqual(self.ask(SECOND)[1], len(SECOND) - 1)
        # With other chunks or other kernels it is another state.
        for other in ["--chunk", 32], ["--isa", "reference"], ["--portable-dense"]:
            self.assertEqual(self.ask(FIRST, *other)[1], 0)
            self.assertEqual(self.ask(FIRST, *other)[1], count - 1)

    def test_short_prompts(self):
        for prompt in "A", "AB":
            text = self.ask(prompt)[0]
            self.assertEqual(self.ask(prompt), (text, len(prompt) - 1))

    def test_damaged_files_are_removed(self):
        text, _ = self.ask(FIRST)
        for damage in lambda content: content[:-1], lambda content: content[:-20] + b"?" + content[-19:], \
                lambda content: b"", lambda content: content[:75] + b"?" + content[76:], lambda content: b"?" + content[1:]:
            for name in self.files():
                path = os.path.join(self.cache, name)
                with open(path, "rb") as file:
                    content = file.read()
                with open(path, "wb") as file:
                    file.write(damage(content))
            found, cached = self.ask(FIRST, errors=r"^(tarn: prompt cache: \S+\.prompt is damaged, and is removed: .*\n)+$")
            self.assertEqual((found, cached), (text, 0))
            self.assertEqual(self.ask(FIRST), (text, len(FIRST) - 1))

    def test_files_that_are_not_of_the_cache(self):
        text, _ = self.ask(FIRST)
        names = self.files()
        victim = self.write("victim.txt", b"not of the cache")
        for name in names:
            os.unlink(os.path.join(self.cache, name))
            os.symlink(victim, os.path.join(self.cache, name))
        # What a link leads to is read, is no state, and stays.
        self.ask(FIRST, errors="is damaged, and is removed")
        with open(victim, "rb") as file:
            self.assertEqual(file.read(), b"not of the cache")
        self.assertEqual(self.ask(FIRST), (text, len(FIRST) - 1))
        # What cannot be read is not damaged.
        for name in self.files():
            os.unlink(os.path.join(self.cache, name))
            os.mkdir(os.path.join(self.cache, name))
        self.assertEqual(self.ask(FIRST)[0], text)
        self.assertEqual(self.files(), names)

    def test_the_budget_holds(self):
        self.ask("ROMEO:")
        size = os.path.getsize(os.path.join(self.cache, self.files()[0]))
        first = self.files()
        for i, prompt in enumerate(("JULIET:", "NURSE:")):
            os.utime(os.path.join(self.cache, first[0]), (1000 + i, 1000 + i))
            self.ask(prompt, "--prompt-cache-bytes", 2 * size + 5000)
        self.assertEqual(len(self.files()), 2)
        self.assertNotIn(first[0], self.files())
        self.assertEqual(self.ask("NURSE:")[1], 5)
        # Being used counts as being new.
        for name in self.files():
            os.utime(os.path.join(self.cache, name), (1000, 1000))
        with open(os.path.join(self.cache, "0123456789abcdef-5.prompt.tmp.1"), "wb") as stale:
            stale.write(b"x" * 100)
        os.utime(stale.name, (500, 500))
        self.ask("JULIET:")
        self.ask("PARIS:", "--prompt-cache-bytes", 2 * size + 5000)
        self.assertEqual(self.ask("JULIET:")[1], 6)
        self.assertFalse(os.path.exists(stale.name))
        # What a link leads to takes nothing of the budget.
        kept = self.files()
        os.symlink(self.write("large", b"x" * 10 * size), os.path.join(self.cache, "0123456789abcdef-7.prompt"))
        self.ask("PARIS:")
        self.ask("A longer prompt:", "--prompt-cache-bytes", 3 * size + 9000)
        self.assertEqual(len(self.files()), len(kept) + 2)
        # A prompt that is cached writes nothing, and the budget holds after it.
        self.ask("A longer prompt:", "--prompt-cache-bytes", 2 * size + 5000)
        self.assertEqual(len(self.files()), 3)  # and the link
        # What is larger than all of it is not written.
        self.cache = self.path("small")
        err = tarn("run", MODEL, *GREEDY, "-p", "A" * 300, "-n", 1, "--prompt-cache", self.cache, "--prompt-cache-bytes", 100)[2]
        self.assertEqual(err.count("more than --prompt-cache-bytes: it is not kept"), 1)
        self.assertEqual(self.files(), [])

    def test_in_conversations(self):
        before = None
        for cached in False, True:
            status, out, err = tarn("run", MODEL, *GREEDY, "-i", "-n", 20, "--prompt-cache", self.cache, "-p", FIRST, "--no-echo",
                                    stdin=b"And then?\n/stats\n/reset\n")
            self.assertEqual(status, 0, err)
            if cached:
                self.assertEqual(out, before)
            before = out
        _, _, err = tarn("run", MODEL, *GREEDY, "-i", "-n", 20, "--prompt-cache", self.cache, "-p", FIRST, stdin=b"/stats\n")
        self.assertIn("from cache", err)

    def test_a_turn_without_tokens_is_named(self):
        self.write("characters.json", b'["a", "b", "\\n"]')
        self.make("letters", {**TINY, "vocab_size": 3, "tokenizer": "characters"})
        for cache in [], ["--prompt-cache", self.cache]:
            status, out, err = tarn("run", self.path("letters.tarn"), *GREEDY, "-i", "-n", 3, *cache, stdin="\u20ac\u20ac\nab\n".encode())
            self.assertEqual(status, 0, err)
            self.assertIn("the turn has no tokens", err)
            self.assertTrue(out)

    def test_states_of_one_prompt_share_the_budget(self):
        self.ask("A" * 200, "--chunk", 8)
        size = os.path.getsize(os.path.join(self.cache, self.files()[0]))
        kept = len(self.files())
        self.assertGreater(kept, 3)
        self.cache = self.path("two")
        self.ask("A" * 200, "--chunk", 8, "--prompt-cache-bytes", 2 * size + 3000)
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(self.ask("A" * 200, "--chunk", 8, "--prompt-cache-bytes", 2 * size + 3000)[1], 199)

    def test_what_does_not_go_together(self):
        self.fails(2, "--load-state and --prompt-cache are both there", "run", MODEL, "-p", "A", "--prompt-cache", "x", "--load-state", "y")
        self.fails(2, "--prompt-cache-bytes is there without --prompt-cache", "run", MODEL, "-p", "A", "--prompt-cache-bytes", 5)
        self.fails(1, "is no directory", "run", MODEL, "-p", "A", "--prompt-cache", MODEL)
        self.fails(1, "cannot be created", "run", MODEL, "-p", "A", "--prompt-cache", self.path("no/where"))


if __name__ == "__main__":
    unittest.main()
