"""tarn run: stop strings, escape sequences, events, defaults of the environment, options of other programs."""

import json
import unittest

from tarn_testing import MODEL, TINY, CliTest, tarn

GREEDY = ["-q", "--temp", 0, "-t", 1]


class StopTest(CliTest):
    def text(self, *arguments, **keywords):
        status, out, err = tarn("run", MODEL, "-p", "ROMEO:", "--no-echo", *GREEDY, *arguments, **keywords)
        self.assertEqual((status, err), (0, ""))
        return out[:-1].decode()

    def test_the_text_ends_before_the_first_stop_string(self):
        whole = self.text("-n", 80)
        for begin in range(5, 60, 9):
            for size in 1, 2, 5:
                stop = whole[begin:begin + size]
                self.assertEqual(self.text("-n", 80, "--stop", stop), whole[:whole.find(stop)])
                stops = ["--stop", "nowhere in it", "--stop", stop, "--stop", whole[begin + 8:begin + 12]]
                self.assertEqual(self.text("-n", 80, *stops), whole[:min(whole.find(stop), whole.find(stops[-1]))])
        cut = whole[:20]
        self.assertEqual(self.text("-n", 20, "--stop", cut[-3:] + "\x01"), cut)  # what waits comes out at the end

    def test_it_is_the_reason_of_the_end(self):
        whole, stats = self.text("-n", 40), self.path("stats.json")
        self.text("-n", 40, "--stop", whole[10:14], "--json-stats", stats)
        with open(stats) as file:
            found = json.load(file)
        self.assertEqual((found["stop_reason"], found["allocations_after_creation"] or 0), ("stop", 0))
        self.assertEqual(found["generated_tokens"], whole.find(whole[10:14]) + 4)  # of a model whose tokens are bytes
        status, out, _ = tarn("run", MODEL, "-p", "ROMEO:", *GREEDY, "-n", 40, "--stop", whole[10:14], "--logprobs", 0)
        self.assertEqual((status, len(out.splitlines())), (0, found["generated_tokens"]))

    def test_the_prompt_is_not_searched(self):
        status, out, _ = tarn("run", MODEL, "-p", "ROMEO:", *GREEDY, "-n", 5, "--stop", "ROMEO", "--stop", "O:")
        self.assertEqual((status, out[:6], len(out)), (0, b"ROMEO:", 12))

    def test_what_cannot_be_a_stop_string(self):
        self.fails(2, "--stop: stop string 0 has 0 bytes", "run", MODEL, "-p", "a", "--stop", "")
        self.fails(2, "--stop: stop string 1 is not UTF-8", "run", MODEL, "-p", "a", "--stop", "a", "-e", "--stop", r"\xff")
        self.fails(2, "--stop needs a model with a tokenizer", "run", self.path("ids.tarn"), "--tokens", "1", "--stop", "a")

    def test_a_backslash_in_a_stop_string_without_e_is_remarked(self):
        def errors(*arguments):
            return tarn("run", MODEL, "-p", "a", "-n", 2, "--temp", 0, "--stop", r"\n", *arguments)[2]

        remark = "--stop '\\n': without -e, a backslash stands for itself"
        self.assertIn(remark, errors())
        self.assertNotIn(remark, errors("-e"))
        self.assertEqual(errors("-q"), "")

    def test_escapes(self):
        typed, meant = r"A\n\t\\\"\'\x41\u00e9\u20ac", "A\n\t\\\"'A\u00e9\u20ac"
        expected = tarn("run", MODEL, "-p", meant, "-n", 4, *GREEDY)[1]
        self.assertTrue(expected.startswith(meant.encode()))
        self.assertEqual(tarn("run", MODEL, "-e", "-p", typed, "-n", 4, *GREEDY)[1], expected)
        self.assertTrue(tarn("run", MODEL, "-p", typed, "-n", 4, *GREEDY)[1].startswith(typed.encode()))
        whole = self.text("-n", 80)
        self.assertIn("\n", whole)
        self.assertTrue(tarn("run", MODEL, "-e", "-p", r"\x2d", "-n", 4, *GREEDY, stdin=b"ROMEO:")[1].startswith(b"-"))
        self.assertEqual(self.text("-n", 80, "-e", "--stop", r"\n"), whole[:whole.find("\n")])
        self.fails(2, "-e is there without -p, --stop and --system", "run", MODEL, "-e", "-f", MODEL)
        for bad in r"a\q", "a\\", r"\x4", r"\xg0", r"\u12", r"\ud800":
            self.fails(2, "--prompt: '.*' is no escape sequence, expected", "run", MODEL, "-e", "-p", bad)


class EventsTest(CliTest):
    def test_a_line_for_each_event(self):
        arguments = ["-p", "ROMEO:", "-n", 30, "--temp", 0, "-t", 1, "-q"]
        status, out, err = tarn("run", MODEL, *arguments, "--jsonl", "--stop", "\x01\x02")
        self.assertEqual((status, err), (0, ""))
        events = [json.loads(line) for line in out.splitlines()]
        kinds = [event["event"] for event in events]
        self.assertEqual(kinds, ["prompt", *["token"] * 30, "end"])
        self.assertEqual(events[0], {"event": "prompt", "tokens": 6})
        text = "".join(event.get("text", "") for event in events)
        self.assertEqual("ROMEO:" + text + "\n", tarn("run", MODEL, *arguments)[1].decode())
        self.assertEqual(bytes(event["token"] for event in events[1:-1]).decode(), text)
        end = events[-1]
        self.assertEqual((end["stop_reason"], end["generated_tokens"], end["allocations_after_creation"] or 0), ("n", 30, 0))

    def test_text_that_waits(self):
        # A byte that begins a character, again and again.
        status, out, _ = tarn("run", MODEL, "-p", "a", "-n", 2, "-q", "--jsonl", "--logit-bias", "195=1e9")
        self.assertEqual((status, [json.loads(line) for line in out.splitlines()[1:-1]]),
                         (0, [{"event": "token", "token": 195, "text": ""}, {"event": "token", "token": 195, "text": "\ufffd"},
                              {"event": "text", "text": "\ufffd"}]))
        status, out, _ = tarn("run", self.path("ids.tarn"), "--tokens", "1,2", "-n", 2, "-q", "--jsonl")
        self.assertEqual([sorted(json.loads(line)) for line in out.splitlines()[:2]], [["event", "tokens"], ["event", "token"]])

    def test_one_output_at_a_time(self):
        self.fails(2, "--jsonl and --logprobs both write", "run", MODEL, "-p", "a", "--jsonl", "--logprobs", 1)
        self.fails(2, "--jsonl and --json-stats - both write", "run", MODEL, "-p", "a", "--jsonl", "--json-stats", "-")


class DefaultsTest(CliTest):
    def test_model_and_threads_of_the_environment(self):
        text = self.write("text.txt", b"to be")
        model = {"TARN_MODEL": MODEL}
        self.assertEqual(tarn("run", "-p", "A", "-n", 3, *GREEDY, environment=model),
                         tarn("run", MODEL, "-p", "A", "-n", 3, *GREEDY))
        for command in ["eval", "-f", text], ["inspect"], ["tokenize", "-p", "a"], ["bench", "-p", 8, "-n", 1, "-r", 1, "--memory-mib", 16]:
            status, _, err = tarn(*command, environment=model)
            self.assertEqual(status, 0, err)
        self.assertEqual(tarn("inspect", "--cpu", environment=model), tarn("inspect", "--cpu"))
        found = json.loads(tarn("inspect", self.path("bounded.tarn"), "--json", environment={**model, "TARN_THREADS": "3"})[1])
        self.assertEqual((found["model"]["name"], found["session"]["threads"]), ("bounded", 3))  # what is given counts
        found = json.loads(tarn("inspect", MODEL, "--json", "-t", 1, environment={"TARN_THREADS": "3"})[1])
        self.assertEqual(found["session"]["threads"], 1)
        default = json.loads(tarn("inspect", "--cpu", "--json")[1])["cpu"]["default_threads"]
        found = json.loads(tarn("inspect", MODEL, "--json", "-t", 0, environment={"TARN_THREADS": "3"})[1])
        self.assertEqual(found["session"]["threads"], default)
        for value in "many", "-1", "257":
            self.fails(1, f"TARN_THREADS of the environment is '{value}', expected an integer from 0 to 256", "run", MODEL, "-p",
                       "a", environment={"TARN_THREADS": value})
        self.fails(2, "the model is missing", "run", "-p", "a", environment={"TARN_MODEL": ""})


class BeginTokenTest(CliTest):
    def test_an_empty_prompt_starts_from_it(self):
        self.make("begins", {**TINY, "bos_token_id": 65})
        status, out, _ = tarn("run", self.path("begins.tarn"), "-p", "", "-n", 4, *GREEDY)
        self.assertEqual((status, out), tarn("run", self.path("begins.tarn"), "-p", "A", "-n", 4, *GREEDY)[:2])
        self.assertEqual((status, out[:1]), (0, b"A"))


class HabitsTest(CliTest):
    def test_options_of_other_programs_get_an_answer(self):
        for arguments, words in ((["-c", 4096], "-c: there is no context to size"), (["--ctx-size", 9], "--ctx-size: there is no"),
                                 (["-ngl", 99], "-ngl: tarn runs on the CPU"), (["--n-gpu-layers=9"], "--n-gpu-layers: tarn runs"),
                                 (["-r", "User:"], "-r: expected --stop TEXT"), (["-b", 512], "-b: expected --chunk N"),
                                 (["--temperature", 1], "expected --temp T"), (["--max-tokens", 5], "expected -n N"),
                                 (["-cnv"], "-cnv: expected -i"), (["-ins"], "-ins: expected -i"), (["--mlock"], "leave it out"),
                                 (["-tb", 2], "-tb: prompt and generation"), (["--no-display-prompt"], "expected --no-echo"),
                                 (["-nkvo"], "there is no KV cache of that kind"), (["--color"], "colours are on where")):
            self.fails(2, "run: .*" + words, "run", MODEL, "-p", "a", *arguments)
        self.fails(2, "bench: -ngl: tarn runs on the CPU", "bench", MODEL, "-ngl", 9)
        self.fails(2, r"--repetitions: is 'x'", "bench", MODEL, "-r", "x")  # which is an option there
        self.fails(2, r"run: --temp: is 'x'", "run", MODEL, "-p", "a", "--temp", "x")
        self.fails(2, "unknown option '--tpo-k'", "run", MODEL, "-p", "-c", "--tpo-k", 3)  # -c is a value
        status, out, _ = tarn("run", MODEL, "-p", "-c", "-n", 1, *GREEDY)  # a value
        self.assertEqual((status, out[:2]), (0, b"-c"))


if __name__ == "__main__":
    unittest.main()
