"""tarn eval: its numbers are those of the logits, its errors name the culprit."""

import json
import math
import os
import re
import signal
import struct
import unittest

from tarn_testing import MODEL, CliTest, start, tarn, wait_for


def npy(ids, descr="<i4", shape=None, version=1):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape or "(%d,)" % len(ids))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + struct.pack("<%di" % len(ids), *ids)


def read_logits(path):
    """Rows of a float32 .npy file; checks its header."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    size, = struct.unpack("<H", data[8:10])
    assert (10 + size) % 64 == 0 and data[9 + size:10 + size] == b"\n"
    header = eval(data[10:10 + size].decode(), {})  # a literal of our own making
    assert header["descr"] == "<f4" and header["fortran_order"] is False, header
    rows, columns = header["shape"]
    values = struct.unpack("<%df" % (rows * columns), data[10 + size:])
    return [values[row * columns:(row + 1) * columns] for row in range(rows)]


def loss(logits, target):
    largest = max(logits)
    return largest + math.log(sum(math.exp(value - largest) for value in logits)) - logits[target]


class EvalTest(CliTest):
    TEXT = "ROMEO:\nIs the day so young?\n\nBENVOLIO:\nBut new struck nine.\n".encode() + bytes(range(100, 140))

    def eval_json(self, *arguments):
        status, out, err = tarn("eval", "--json", *arguments)
        self.assertEqual(status, 0, err)
        return json.loads(out)

    def test_loss_is_that_of_the_logits(self):
        text = self.write("text.txt", self.TEXT)
        logits_file = self.path("logits.npy")
        size = len(self.TEXT)
        for block in 0, 1000, 50, 7:
            found = self.eval_json("-m", MODEL, "-f", text, "--logits", logits_file, *(["--block", block] if block else []))
            rows = read_logits(logits_file)
            self.assertEqual((len(rows), len(rows[0])), (size, 256))
            losses = [loss(rows[i], self.TEXT[i + 1]) for i in range(size - 1) if not block or (i + 1) % block != 0]
            mean = sum(losses) / len(losses)
            self.assertEqual((found["tokens"], found["scored"]), (size, len(losses)))
            self.assertAlmostEqual(found["nats_per_token"], mean, 9)
            self.assertEqual(found["nats_per_byte"], found["nats_per_token"])
            self.assertAlmostEqual(found["perplexity"], math.exp(mean), 6)

    def test_blocks_start_anew(self):
        text = self.write("text.txt", self.TEXT[:20] * 2)
        self.eval_json("-m", MODEL, "-f", text, "--block", 20, "--logits", self.path("logits.npy"))
        rows = read_logits(self.path("logits.npy"))
        self.assertEqual(rows[:20], rows[20:])

    def test_range_of_tokens(self):
        text = self.write("text.txt", self.TEXT)
        part = self.write("part.txt", self.TEXT[10:40])
        expected = self.eval_json("-m", MODEL, "-f", part)
        found = self.eval_json("-m", MODEL, "-f", text, "--begin", 10, "--tokens", 30)
        for key in "tokens", "scored", "nats_per_token":
            self.assertEqual(found[key], expected[key])
        self.fails(1, "expected more than 1000", "eval", "-m", MODEL, "-f", text, "--begin", 1000)

    def test_chunks_and_threads_change_little_or_nothing(self):
        text = self.write("text.txt", self.TEXT)
        expected = self.eval_json("-m", MODEL, "-f", text, "-t", 1)["nats_per_token"]
        self.assertEqual(self.eval_json("-m", MODEL, "-f", text, "-t", 3)["nats_per_token"], expected)
        # int8 activations round differently when sums are taken in another order.
        self.assertAlmostEqual(self.eval_json("-m", MODEL, "-f", text, "--chunk", 5)["nats_per_token"], expected, 2)

    def test_too_little_to_score(self):
        for value in 0, 1:
            self.fails(2, f"--block: is '{value}', expected an integer from 2", "eval", "-m", MODEL, "-f", __file__,
                       "--block", value)
        self.fails(1, "expected at least 2", "eval", "-m", MODEL, "-f", self.write("one.txt", b"a"))
        self.fails(1, "empty.txt", "eval", "-m", MODEL, "-f", self.write("empty.txt", b""))

    def test_numbers_are_without_noise(self):
        status, out, err = tarn("eval", MODEL, "-f", "-", "--json", stdin=self.TEXT)
        self.assertEqual(status, 0, err)
        for key in "nats_per_token", "perplexity", "seconds":
            digits = re.search(rf'"{key}": ([\d.]+)', out.decode()).group(1)
            self.assertLessEqual(len(digits.replace(".", "").lstrip("0")), 12, key)

    def test_interrupt_leaves_no_file(self):
        text = self.write("long.txt", self.TEXT * 20000)
        for kind in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = start("eval", "-m", MODEL, "-f", text, "--logits", self.path("interrupted.npy"))
            wait_for(lambda: [name for name in os.listdir(self.folder.name) if name.startswith("interrupted.npy.tmp")])
            process.send_signal(kind)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (128 + kind, b""))
            self.assertRegex(err, rb"(?m)^tarn: error: interrupted$")
            self.assertEqual([name for name in os.listdir(self.folder.name) if name.startswith("interrupted.npy")], [])

    def test_bounded_model(self):
        text = self.write("text.txt", self.TEXT)
        bounded = self.path("bounded.tarn")
        self.assertEqual(self.eval_json("-m", bounded, "-f", text, "--block", 33)["tokens"], len(self.TEXT))
        # What cannot fit is refused before anything is read.
        for most, arguments in (33, []), (33, ["--block", 34]), (32, ["--logits", self.path("logits.npy")]):
            size = 34 if "--block" in arguments else len(self.TEXT)
            self.fails(1, rf"a block of {size} tokens, expected at most {most} .* context of 32 tokens: .*--block {most} ", "eval", "-m",
                       bounded, "-f", text, *arguments)
        self.assertEqual(self.eval_json("-m", bounded, "-f", text, "--tokens", 33)["scored"], 32)

    def test_token_files(self):
        ids = self.path("ids.tarn")
        for version in 1, 2:
            tokens = self.write("tokens.npy", npy(list(range(30)), version=version))
            found = self.eval_json("-m", ids, "-f", tokens)
            self.assertEqual((found["tokens"], found["scored"], found["nats_per_byte"]), (30, 29, None))
        good = npy([1, 2, 3])
        for words, content in (
                ("not a .npy file", b"hello"),
                ("version 3", npy([1, 2], version=3)),
                ("expected '<i4'", npy([1, 2], descr="<i8")),
                ("expected one dimension", npy([1, 2], shape="(1, 2)")),
                ("expected one dimension", npy([1, 2], shape="()")),
                ("bytes of data", npy([1, 2], shape="(3,)")),
                ("bytes of data", good + b"\0"),
                ("header alone needs", good[:40]),
                ("header alone needs", good[:9]),
                ("no dictionary", good.replace(b"descr", b"desks")),
                ("no dictionary", good.replace(b"{", b"[")),
                ("fortran_order is True", good.replace(b"False", b"True ")),
                ("token 1 is 256", npy([1, 256])),
                ("token 0 is -1", npy([-1, 2]))):
            self.fails(1, words, "eval", "-m", ids, "-f", self.write("bad.npy", content))

    def test_table(self):
        status, out, _ = tarn("eval", "-m", MODEL, "-f", self.write("text.txt", self.TEXT))
        self.assertEqual(status, 0)
        self.assertRegex(out.decode(), r"(?s)tokens +\d+\nscored +\d+\nnats/token +[\d.]+\nnats/byte +[\d.]+\nperplexity")


if __name__ == "__main__":
    unittest.main()
