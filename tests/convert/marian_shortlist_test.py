"""Models of Marian with a shortlist: its tokens have the logits of the model without one, all others -infinity; files that are refused.

    python3 tests/convert/marian_shortlist_test.py
"""

import gzip
import math
import shutil
import struct
import subprocess
import unittest

from families_case import BIN, FIXTURES, FamiliesCase
from marian_lists import HEADER, allowed, random_lists, rehashed, shortlist
from tarn_library import Session

# name -> tokens of source and target, whether they have one vocabulary
MODELS = {"marian_nmt_a": (41, 41, True), "marian_nmt_b": (37, 41, False), "marian_nmt_c": (41, 41, True)}
FIRST, BEST = 3, 4
SOURCES = [5, 9, 12, 0], [30, 30, 2, 21, 0], [0]
TARGET = [7, 19, 33]


class Shortlist(FamiliesCase):
    def folder(self, name, data, file="lex.50.50.ende.s2t.bin"):
        folder = self.work / "marian"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(FIXTURES / name, folder)
        (folder / "expected.safetensors").unlink()
        if data is not None:
            (folder / file).write_bytes(data)
        return folder

    def rows(self, tokens, beams=2, threads=1, chunk=False):
        """Logits of all sources at once, [sequence][token of the target][vocabulary]."""
        batch = len(SOURCES)
        with Session(self.model, tokens + 1, batch=batch, beams=beams, max_source=8, threads=threads) as session:
            session.encode([list(source) for source in SOURCES])
            steps = [session.step([token] * batch * beams) for token in (tokens, *TARGET)]
        return [[step[i] for step in steps] for i in range(batch * beams)]

    def test_logits(self):
        for name, (words, tokens, shared) in MODELS.items():
            lists = random_lists(words, tokens, BEST, 7)
            folder = self.folder(name, shortlist(FIRST, lists))
            for quant in ("f32", "int8", "f16", *(["int4", "int3", "int2"] if name == "marian_nmt_c" else [])):
                with self.subTest(name, quant=quant):
                    self.assertNotIn("shortlist", self.convert(folder, "--quant", quant, "--no-shortlist"))
                    without = self.rows(tokens)
                    note = self.convert(folder, "--quant", quant)
                    self.assertIn("lex.50.50.ende.s2t.bin: a source allows the tokens that this shortlist has for it", note)
                    found = self.rows(tokens)
                    self.assertEqual(found, self.rows(tokens, threads=3))
                    for i, (sequence, same) in enumerate(zip(found, without, strict=True)):
                        can_follow = allowed(SOURCES[i // 2], tokens, FIRST, lists, shared)
                        self.assertIn(len(can_follow), (8, 16, 24))
                        for row, expected in zip(sequence, same, strict=True):
                            self.assertEqual({token for token, logit in enumerate(row) if logit > -math.inf}, can_follow)
                            for token in can_follow:
                                self.assertAlmostEqual(row[token], expected[token], delta=2e-5)

    def test_texts(self):
        """Only tokens of the list come, by beam search as by the largest logit."""
        lists = [[token] for token in range(41)]
        self.convert(self.folder("marian_nmt_a", shortlist(1, lists)), "--quant", "f32")
        for options in ([], ["--beam", "4"]):
            command = [BIN / "tarn", "run", "-m", self.model, "-p", "the old sea", "-n", "12", "-q", *options]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            ids = subprocess.run([BIN / "tarn", "tokenize", "-m", self.model, "-p", done.stdout.strip(), "--ids"], capture_output=True,
                                 text=True, check=True).stdout.split()  # fmt: skip
            can_follow = allowed([2, 21, 10, 0], 41, 1, lists, True)
            self.assertLessEqual({int(token) for token in ids}, can_follow | {0})

    def test_where_it_comes_from(self):
        data = shortlist(FIRST, random_lists(41, 41, BEST, 1))
        folder = self.folder("marian_nmt_a", data)
        (folder / "lex.other.bin").write_bytes(data)
        self.assertIn("--shortlist FILE uses one of them", self.convert(folder))
        whole = self.model.stat().st_size
        self.convert(folder, "--shortlist", folder / "lex.other.bin")
        self.assertGreater(self.model.stat().st_size, whole)
        done = subprocess.run([BIN / "tarn", "inspect", self.model], capture_output=True, text=True, check=True)
        self.assertIn("shortlist", done.stdout)
        done = subprocess.run([BIN / "tarn-convert", folder, "-o", self.model, "--shortlist", "x", "--no-shortlist"],
                              capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 2)
        self.assertIn("missing.bin", self.convert(folder, "--shortlist", self.work / "missing.bin", status=1))
        self.assertIn('a model of task "seq2seq" expected', self.convert(FIXTURES / "llama_a", "--shortlist", folder / "lex.other.bin",
                                                                         status=1))  # fmt: skip

    def test_files_that_are_refused(self):
        good = shortlist(FIRST, random_lists(41, 41, BEST, 1))
        count = HEADER.unpack_from(good)[5]

        def at(offset, value, form="<Q"):
            return rehashed(good[:offset] + struct.pack(form, value) + good[offset + struct.calcsize(form) :])

        begin = HEADER.size + 42 * 8  # of the targets
        for data, message in (
                (b"", "is no binary shortlist of Marian"),
                (b"a b 0.5\n" * 9, "is no binary shortlist of Marian"),
                (gzip.compress(good), "is compressed by gzip: gunzip it first"),
                (good[:47], "is no binary shortlist of Marian"),
                (good[:-4], f"42 offsets and {count} targets do not fit the"),
                (good + b"\0", f"42 offsets and {count} targets do not fit the"),
                (good[:100] + b"\xff" + good[101:], "does not match its hash"),
                (at(32, 1 << 61), "2305843009213693952 offsets and"),
                (at(40, 1 << 63), "9223372036854775808 targets do not fit"),
                (at(16, 0), "0 first tokens, expected 1 to 2147483647"),
                (at(16, 1 << 31), "2147483648 first tokens"),
                (at(HEADER.size, 1), "offset 0 is 1, expected 0 to 0"),
                (at(HEADER.size + 8, 1 << 40), "offset 1 is 1099511627776, expected 0 to"),
                (at(HEADER.size + 8 * 30, 0), "offset 30 is 0, expected"),
                (at(HEADER.size + 8 * 41, count - 1), f"offset 41 is {count - 1}, expected {count} to {count}"),
                (at(begin + 4, 0xFFFFFFFF, "<I"), "target 1 is 4294967295, expected at most 2147483647"),
                (at(begin + 4, 42, "<I"), "target 1 is 42, the model has 42 tokens"),
                (rehashed(HEADER.pack(0xF11A48D5013417F5, 0, 3, 1, 2, 0) + bytes(16)), "2 offsets and 0 targets, expected"),
                (shortlist(FIRST, random_lists(40, 41, BEST, 1)), "has lists for 40 tokens of a source, the model has 41"),
                (shortlist(FIRST, random_lists(43, 41, BEST, 1)), "has lists for 43 tokens of a source, the model has 41"),
        ):  # fmt: skip
            with self.subTest(message):
                self.refused(self.folder("marian_nmt_a", data), "lex.50.50.ende.s2t.bin", message)


if __name__ == "__main__":
    unittest.main()
