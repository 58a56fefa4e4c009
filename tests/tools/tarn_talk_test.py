"""tarn run -i in a terminal of its own: typing, Ctrl-C, the way back, files, new widths, and what no keyboard types."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from tarn_testing import BIN, MODEL, RFA, TINY, CliTest, tarn, wait_for

PASTE, END_PASTE = b"\x1b[200~", b"\x1b[201~"
PROMPT = b"\r> "


class Terminal:
    """A process at a terminal, its standard output apart: `shown` is what it draws, `text` what it writes."""

    def __init__(self, *arguments, columns=80, environment=None, stdout=subprocess.PIPE):
        self.master, self.slave = pty.openpty()
        self.resize(columns)
        self.before = termios.tcgetattr(self.slave)
        self.shown = self.text = b""
        self.status = None

        def own_terminal():
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        self.process = subprocess.Popen(
            [os.path.join(BIN, "tarn"), "run", "-i", *map(str, arguments)], stdin=self.slave, stderr=self.slave,
            stdout=self.slave if stdout is None else stdout, preexec_fn=own_terminal,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", **(environment or {})})

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def _read(self):
        files = [self.master] + ([self.process.stdout] if self.process.stdout else [])
        for file in select.select(files, [], [], 0.01)[0]:
            got = os.read(file if file == self.master else file.fileno(), 1 << 16)
            if file == self.master:
                self.shown += got
            else:
                self.text += got

    def send(self, data):
        """Waits for the reader, too: a terminal takes about four kilobytes."""
        os.set_blocking(self.master, False)
        while data:
            if select.select([], [self.master], [], 0.01)[1]:
                data = data[os.write(self.master, data[:2048]):]
            self._read()
        os.set_blocking(self.master, True)

    def until(self, condition, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, (self.shown[-500:], self.text[-500:])
            self._read()

    def ready(self):
        """The prompt is drawn, and nothing behind it."""
        self.until(lambda: self.shown.endswith(PROMPT + b"\x1b[K"))

    def say(self, line):
        """What standard output gets for a line, and what is drawn."""
        self.ready()
        self.shown = self.text = b""
        self.send(line + b"\r")
        self.until(lambda: self.shown.count(b"\x1b[?2004h") > 0)  # the next line begins
        self.ready()
        self._read()
        return self.text, self.shown

    def end(self, keys=b"\x04"):
        if keys:
            self.ready()
            self.send(keys)
        self.until(lambda: self.process.poll() is not None)
        self.after = termios.tcgetattr(self.slave)
        self.close()
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.wait()
        for file in self.master, self.slave:
            os.close(file)
        if self.process.stdout:
            self.process.stdout.close()
        self.master = None


class TalkTest(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make("quick", {**TINY, "attention": RFA})

    def terminal(self, *arguments, model=MODEL, **keywords):
        terminal = Terminal(model, "-t", 1, *arguments, **keywords)
        self.addCleanup(lambda: terminal.master is not None and terminal.close())
        return terminal

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def one_shot(self, prompt, *arguments):
        status, out, err = tarn("run", MODEL, "-p", prompt, "-q", "--no-echo", "-t", 1, *arguments)
        self.assertEqual(status, 0, err)
        return out

    def prompt_tokens(self, text):
        return [event["tokens"] for event in map(json.loads, text.splitlines()) if event["event"] == "prompt"]

    def test_turns_go_on_from_each_other(self):
        talk = self.terminal("-n", 20, "--temp", 0)
        first, _ = talk.say(b"ROMEO:")
        self.assertEqual(first, self.one_shot("ROMEO:", "-n", 20, "--temp", 0))
        second, _ = talk.say(b"JULIET:")
        so_far = "ROMEO:" + first[:-1].decode()
        turn = "JULIET:" if so_far.endswith("\n") else "\nJULIET:"
        self.assertEqual(second, self.one_shot(so_far + turn, "-n", 20, "--temp", 0))
        self.assertEqual(talk.end(), 0)
        self.assertEqual(talk.after, talk.before)  # the modes of the terminal

    def test_a_prompt_is_the_first_turn(self):
        talk = self.terminal("-n", 10, "-s", 3, "-p", "ROMEO:", "-q")
        talk.ready()
        talk.until(lambda: talk.text.endswith(b"\n"))
        self.assertEqual(talk.text, b"ROMEO:" + self.one_shot("ROMEO:", "-n", 10, "-s", 3))
        self.assertNotIn(b"seed", talk.shown)
        self.assertEqual(talk.end(b"/quit\r"), 0)

    def test_undo_gives_the_same_state(self):
        talk = self.terminal("-n", 12, "-s", 1)
        talk.say(b"ROMEO:")
        talk.say(b"/save " + self.path("before").encode())
        for steps in [b"And so?"], [b"/reset"], [b"/load " + self.path("before").encode()], [b"one", b"two", b"/reset", b"three"]:
            for step in steps:
                talk.say(step)
            for step in steps:
                self.assertIn(b"back at ", talk.say(b"/undo")[1])
            talk.say(b"/save " + self.path("after").encode())
            self.assertEqual(self.content("after"), self.content("before"), steps)
        talk.say(b"/undo")
        self.assertIn(b"tarn: error: there is nothing to take back", talk.say(b"/undo")[1])
        self.assertEqual(talk.end(), 0)

    def test_kept_steps_are_bounded(self):
        talk = self.terminal("-n", 1, model=self.path("quick.tarn"))
        for _ in range(40):
            talk.say(b"a")
        self.assertIn(b"cannot open", talk.say(b"/load " + self.path("nowhere").encode())[1])
        self.assertIn(b"error", talk.say(b"/load " + self.write("no state", b"no state").encode())[1])
        self.assertIn(b"undo        32 steps", talk.say(b"/stats")[1])
        for _ in range(32):
            talk.say(b"/undo")
        self.assertIn(b"there is nothing to take back", talk.say(b"/undo")[1])
        self.assertEqual(talk.end(), 0)

    def test_save_and_load(self):
        state = self.path("a state").encode()
        talk = self.terminal("-n", 15, "-s", 5)
        talk.say(b"ROMEO:")
        self.assertRegex(talk.say(b"/save " + state)[1], rb"saved \d+ tokens")
        expected, _ = talk.say(b"JULIET:")
        self.assertEqual(talk.end(), 0)
        other = self.terminal("-n", 15, "-s", 6)
        self.assertRegex(other.say(b"/load " + state)[1], rb"loaded \d+ tokens")
        self.assertEqual(other.say(b"JULIET:")[0], expected)
        other.say(b"/load " + state)
        other.say(b"/save " + self.path("again").encode())
        self.assertEqual(self.content("again"), self.content("a state"))
        damaged = bytearray(self.content("a state"))
        damaged[len(damaged) // 2] ^= 1
        self.write("damaged", bytes(damaged))
        self.write("long", bytes(1 << 22))
        for name, words in (("damaged", b"damaged: "), ("long", b"long: snapshot: magic is 0000000000000000,"),
                            ("nowhere", b"nowhere: cannot open"), ("", b"/load has no file")):
            self.assertIn(words, other.say(b"/load " + self.path(name).encode() if name else b"/load")[1])
        self.assertIn(b"is no regular file", other.say(b"/load /dev/zero")[1])
        self.assertIn(b"is an input of this command", other.say(b"/save " + MODEL.encode())[1])
        other.say(b"/save " + self.path("again").encode())
        self.assertEqual(self.content("again"), self.content("a state"))
        self.assertEqual(other.end(), 0)

    def test_regen(self):
        talk = self.terminal("-n", 40, "-s", 5)
        self.assertIn(b"there is no answer to take back", talk.say(b"/regen")[1])
        first, _ = talk.say(b"ROMEO:")
        second, _ = talk.say(b"/regen")
        self.assertNotEqual(second, first)
        self.assertEqual(talk.say(b"/regen 5")[0], first)
        self.assertEqual(talk.say(b"/regen")[0], second)  # with the seed after it
        self.assertIn(b"the seed is '-1', expected an integer", talk.say(b"/regen -1")[1])
        self.assertIn(b"seed        6\r\n", talk.say(b"/stats")[1])
        self.assertEqual(talk.end(), 0)

    def test_ctrl_c_stops_the_answer_alone(self):
        talk = self.terminal("-n", -1)
        for _ in range(2):
            talk.ready()
            talk.shown = talk.text = b""
            talk.send(b"ROMEO:\r")
            talk.until(lambda: len(talk.text) > 20)
            talk.send(b"\x03")
            talk.ready()
        talk.say(b"/save " + self.path("stopped").encode())
        self.assertIn(b"back at", talk.say(b"/undo")[1])
        self.assertEqual(talk.end(), 0)

    def blocked(self, *arguments, stdin=subprocess.DEVNULL):
        """A process that waits for the reader of its standard output, which holds one write, and the reader's end."""
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        process = subprocess.Popen([os.path.join(BIN, "tarn"), "run", MODEL, "-n", "-1", "-t", "1", *arguments], stdin=stdin, stdout=writer,
                                   stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        os.close(writer)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stderr.close(), os.close(reader)))
        if stdin == subprocess.PIPE:
            process.stdin.write(b"ROMEO:\n")
            process.stdin.flush()
        wait_for(lambda: int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), "little") > 0)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        return process, reader

    def test_ctrl_c_while_nobody_reads_the_text(self):
        stats = self.path("stats.json")
        process, _ = self.blocked("-p", "ROMEO:", "--json-stats", stats)
        err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"ended: interrupted", err)
        self.assertNotIn(b"error", err)
        self.assertEqual(json.loads(self.content("stats.json"))["stop_reason"], "interrupted")

    def test_ctrl_c_while_nobody_reads_the_answer(self):
        process, reader = self.blocked("-i", "-q", stdin=subprocess.PIPE)
        time.sleep(1.5)  # once, it waits as long as the reader does
        self.assertIsNone(process.poll())
        os.set_blocking(reader, False)
        process.stdin.write(b"/stats\n/undo\n/quit\n")
        process.stdin.close()
        process.stdin = None

        def has_ended():
            try:
                os.read(reader, 1 << 16)
            except BlockingIOError:
                pass
            return process.poll() is not None

        wait_for(has_ended)
        err = process.stderr.read()
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(err, rb"text +[1-9][0-9]* tokens")
        self.assertIn(b"ended: interrupted", err)
        self.assertIn(b"back at 0 tokens", err)
        self.assertNotIn(b"error", err)

    def test_ctrl_c_twice_while_nobody_reads_the_answer(self):
        process, _ = self.blocked("-i", "-q", stdin=subprocess.PIPE)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 130)
        process.stdin.close()

    def test_sudden_ends_leave_the_terminal_as_it_was(self):
        for kinds in (signal.SIGQUIT,), (signal.SIGTERM, signal.SIGTERM):
            for line in b"", b"ROMEO:\r":
                talk = self.terminal("-n", -1)
                talk.ready()
                talk.send(line)
                talk.until(lambda: not line or len(talk.text) > 20)
                for kind in kinds:
                    talk.process.send_signal(kind)
                self.assertIn(talk.end(keys=b""), (-kinds[0], 128 + kinds[0]))
                self.assertEqual(talk.after, talk.before)

    def test_ctrl_c_takes_back_a_turn_that_is_being_read(self):
        talk = self.terminal("-n", 5)
        talk.ready()
        talk.send(PASTE + b"To be, or not. " * 20000 + END_PASTE + b"\r")
        talk.until(lambda: b"/s" in talk.shown)  # the progress bar
        talk.send(b"\x03")
        talk.until(lambda: b"interrupted: the turn is taken back" in talk.shown)
        self.assertIn(b"text        0 tokens", talk.say(b"/stats")[1])
        self.assertEqual(talk.end(), 0)

    def test_ctrl_c_twice_at_the_prompt_ends_it(self):
        talk = self.terminal("-n", 3)
        talk.ready()
        talk.send(b"half a line\x03")
        talk.until(lambda: b"(Ctrl-C again ends tarn run" in talk.shown)
        self.assertNotEqual(talk.say(b"ROMEO:")[0], b"")
        talk.shown = b""
        talk.send(b"\x03")
        talk.until(lambda: b"(Ctrl-C again ends tarn run" in talk.shown)
        self.assertEqual(talk.end(b"\x03"), 130)
        self.assertEqual(talk.after, talk.before)

    def test_other_signals_end_it(self):
        for kind in signal.SIGTERM, signal.SIGHUP:
            for line in b"", b"ROMEO:\r":
                talk = self.terminal("-n", -1)
                talk.ready()
                talk.send(line)
                talk.until(lambda: not line or len(talk.text) > 20)
                talk.process.send_signal(kind)
                self.assertEqual(talk.end(keys=b""), 128 + kind)
                self.assertEqual(talk.after, talk.before)

    def test_a_terminal_that_goes_away(self):
        talk = self.terminal("-n", 3)
        talk.ready()
        for file in talk.master, talk.slave:
            os.close(file)
        self.assertIn(talk.process.wait(timeout=60), (0, 128 + signal.SIGHUP))
        talk.process.stdout.close()
        talk.master = None

    def test_keys(self):
        talk = self.terminal("-n", 0, "--jsonl", model=self.path("quick.tarn"))
        path = self.path("typed").encode()
        left, right, up, down, home, end, delete = (b"\x1b[" + key for key in (b"D", b"C", b"A", b"B", b"H", b"F", b"3~"))

        def state_of(keys):
            talk.say(keys)
            talk.say(b"/save " + path)
            talk.say(b"/undo")
            return self.content("typed")

        expected = state_of("aé漢z".encode())
        for keys in ("aéz" + "\x1b[D" + "漢", "aéQ漢z\x1b[D\x1b[D\x7f", "é漢z\x01a", "é漢\x1bOHa\x05z", "aé漢zrest\x1b[D\x1b[D\x1b[D\x1b[D\x0b",
                     "rest\x15aé漢z", "aé漢zb\x02\x04", "more words\x17\x17aé漢z", "\x02\x08aé漢z\x06\t\x7f"):
            self.assertEqual(state_of(keys.encode()), expected, keys)
        self.assertEqual(state_of(b"Q" + "é漢z".encode() + home + delete + b"a" + end + left + right), expected)
        # /undo, /save and the turn itself are in the history.
        self.assertEqual(state_of(up * 3), expected)
        self.assertEqual(state_of("aé漢z".encode() + up + up + down + down), expected)
        self.assertEqual(state_of(b"\x1b[1;5Z\x1bx" + "\x1béaé漢z".encode()), expected)  # keys that are none of ours
        self.assertEqual(state_of("aé漢zb\x1b\x1b[D\x04".encode()), expected)  # of two ESC the second one counts
        self.assertEqual(talk.end(), 0)

    def test_lines_that_go_on(self):
        talk = self.terminal("-n", 0, "--jsonl", model=self.path("quick.tarn"))
        talk.ready()
        talk.send(b"one\\\rtwo\r")
        talk.until(lambda: b'"end"' in talk.text)
        self.assertEqual(self.prompt_tokens(talk.text), [len("one\ntwo")])
        self.assertEqual(self.prompt_tokens(talk.say(PASTE + b"three\rfour\r" + END_PASTE)[0]), [len("\nthree\nfour\n")])
        self.assertEqual(self.prompt_tokens(talk.say(b"//quit")[0]), [len("\n/quit")])
        self.assertEqual(talk.end(), 0)

    def test_new_widths(self):
        talk = self.terminal("-n", 0, "--jsonl", model=self.path("quick.tarn"), columns=60)
        talk.ready()
        talk.send(b"x" * 50)
        talk.until(lambda: talk.shown.endswith(b"x" * 50 + b"\x1b[K"))
        for columns in 20, 8, 5, 3, 100:
            talk.shown = b""
            talk.resize(columns)
            talk.until(lambda: talk.shown.endswith(b"x\x1b[K"))
            drawn = talk.shown.split(b"\r")[-1].replace(b"\x1b[K", b"")
            self.assertLess(len(drawn), columns)
        self.assertEqual(drawn, b"> " + b"x" * 50)
        talk.send(b"\r")
        talk.until(lambda: b'"end"' in talk.text)
        self.assertEqual(self.prompt_tokens(talk.text), [50])
        self.assertEqual(talk.end(), 0)

    def test_columns_of_characters(self):
        talk = self.terminal("-n", 0, "--jsonl", model=self.path("quick.tarn"), columns=20)
        for text, columns in (("ab", 2), ("漢字", 4), ("✅⭐⚡☕🟢🥇", 12), ("가나", 4), ("ทั้ง", 2), ("हिं", 2), ("e\u0301", 1), ("①", 1), ("۝", 1)):
            talk.ready()
            talk.shown = b""
            talk.send(text.encode())
            talk.until(lambda: text.encode() + b"\x1b[K" in talk.shown)
            talk.shown = b""
            talk.send(b"\x01")
            talk.until(lambda: talk.shown.endswith(f"{text}\x1b[K\x1b[{columns}D".encode()))
            talk.send(b"\x0b")
        talk.send("✅".encode() * 16)  # more than a row
        talk.until(lambda: len(talk.shown) > 0 and talk.shown.endswith(b"\x1b[K"))
        talk.shown = b""
        talk.send(b"a")
        talk.until(lambda: talk.shown.endswith(b"a\x1b[K"))
        drawn = talk.shown.split(b"\r")[-1].decode().removeprefix("> ").removesuffix("\x1b[K")
        self.assertLess(2 + 2 * drawn.count("✅") + 1, 20)
        talk.send(b"\x15")
        self.assertEqual(talk.end(), 0)

    def test_a_megabyte(self):
        size = 1 << 20
        talk = self.terminal("-n", 1, "--jsonl", model=self.path("quick.tarn"))
        lines = b"0123456789abcde\r" * (size // 16)
        self.assertEqual(self.prompt_tokens(talk.say(PASTE + lines + END_PASTE)[0]), [size])
        self.assertEqual(self.prompt_tokens(talk.say(b"x" * size)[0]), [size + 1])  # without the sequences of a paste
        self.assertEqual(talk.end(), 0)

    def test_bytes_that_are_no_text(self):
        talk = self.terminal("-n", 0, "--jsonl", model=self.path("quick.tarn"))
        for data in b"\xff\xfea\x80", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc3":
            talk.say(b"/reset")
            text, shown = talk.say(data)
            self.assertEqual(self.prompt_tokens(text), [len(data)])
            shown.decode()  # what is drawn is UTF-8
        text, shown = talk.say(PASTE + b"\x1b[2J\x07" + END_PASTE)
        self.assertEqual(self.prompt_tokens(text), [len("\n\x1b[2J\x07")])
        self.assertNotIn(b"\x1b[2J", shown)
        self.assertEqual(talk.end(), 0)

    def test_what_cannot_be_done_is_one_line(self):
        talk = self.terminal("-n", 1, model=self.path("bounded.tarn"))
        for line, words in ((b"/sing", rb"the command is '/sing', expected /save, .*//TEXT says /TEXT"), (b"/undo now", rb"/undo takes nothing"),
                            (b"/sav a file", rb"the command is '/sav', .*did you mean '?/save"), (b"/ stats", rb"the command is '/'"),
                            (b"a" * 33, rb"the turn has 33 tokens, the context has room for 32 of its 32: /undo or /reset")):
            self.assertRegex(talk.say(line)[1], rb"tarn: error: " + words)
        self.assertIn(b"/regen [SEED]", talk.say(b"/help")[1])
        self.assertNotIn(b"error", talk.say(b"a" * 32)[1])
        self.assertIn(b"has room for 0 of its 32", talk.say(b"a")[1])
        self.assertIn(b"text        32 of 32 tokens", talk.say(b"/stats")[1])
        talk.say(b"/undo")
        self.assertNotIn(b"error", talk.say(b"a")[1])
        self.assertEqual(talk.end(), 0)
        self.fails(1, "has no tokenizer, which -i needs", "run", "-i", self.path("ids.tarn"))
        self.fails(2, "-i and --logprobs do not go together", "run", "-i", MODEL, "--logprobs", 1)
        self.fails(2, "-i reads the turns from standard input", "run", "-i", MODEL, "-f", "-")

    def test_lines_of_a_pipe(self):
        status, out, err = tarn("run", "-i", MODEL, "-n", 10, "--temp", 0, "-q", stdin=b"ROMEO:\n\n/stats\nno line end")
        self.assertEqual(status, 0, err)
        self.assertTrue(out.startswith(self.one_shot("ROMEO:", "-n", 10, "--temp", 0)))
        self.assertIn("text        16 tokens", err)
        status, out, err = tarn("run", "-i", MODEL, "-n", 4, "--jsonl", "-q", "--stop", "e", stdin=b"ROM\\\nEO:\n/regen\n")
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((status, self.prompt_tokens(out), err), (0, [7, 7], ""))
        self.assertEqual([event["event"] for event in events].count("end"), 2)
        self.assertEqual(events[-1]["allocations_after_creation"] or 0, 0)
        status, out, err = tarn("run", "-i", MODEL, "-n", 4, "--jsonl", "-q", stdin=b"/sing\r\nROMEO:\r\n")
        events = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((status, events[0]["event"]), (0, "error"))
        self.assertIn("'/sing', expected", events[0]["message"])
        self.assertEqual(self.prompt_tokens(out), [len("ROMEO:")])
        self.assertEqual(events[-1]["event"], "end")

    def test_colours_are_for_terminals(self):
        for environment, colours in ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": "", "TERM": "dumb"}, False):
            talk = self.terminal("-n", 3, "-p", "ROMEO:", environment=environment, stdout=None)
            talk.until(lambda: b"> " in talk.shown)
            talk._read()
            self.assertEqual(b"\x1b[36mROMEO:\x1b[0m" in talk.shown, colours, environment)
            self.assertEqual(b"\x1b[32m> \x1b[0m" in talk.shown, colours, environment)
            talk.close()


if __name__ == "__main__":
    unittest.main()
