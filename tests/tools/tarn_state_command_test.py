"""tarn state: what saved states hold, and in what two of them differ."""

import ctypes
import json
import os
import pathlib
import struct
import subprocess
import sys
import unittest

from tarn_testing import BIN, MODEL, MODELS, SEQ2SEQ, TINY, CliTest, tarn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import tarn_library

GREEDY = ["-q", "--temp", 0, "-t", 1]
OTHER_MODEL = os.path.join(MODELS, "shakespeare-abc-mlp-int8.tarn")


class StateCommandTest(CliTest):
    def save(self, name, text, model=MODEL, *arguments):
        path = self.path(name)
        status, _, err = tarn("run", model, *GREEDY, "-p", text, "-n", 1, "--save-state", path, *arguments)
        self.assertEqual((status, err), (0, ""))
        return path

    def json(self, *arguments):
        status, out, err = tarn("state", *arguments, "--json")
        self.assertEqual((status, err), (0, ""))
        return json.loads(out)

    def text(self, *arguments):
        status, out, err = tarn("state", *arguments)
        self.assertEqual((status, err), (0, ""))
        return out.decode()

    def test_info_without_a_model(self):
        state = self.save("a", "ROMEO:")
        found = self.json("info", state)
        inspected = json.loads(tarn("inspect", MODEL, "--json")[1])
        self.assertEqual((found["file"], found["tokens"], found["sequences"], found["format_version"]), (state, 7, 1, 1))
        self.assertEqual(found["model"], {"fingerprint": inspected["model"]["fingerprint"], "name": None})
        self.assertEqual(found["state_bytes"], sum(state["bytes"] for state in inspected["states"]))
        self.assertEqual(found["snapshot_bytes"], os.path.getsize(state))
        self.assertEqual(found["holds"], {"logits": False, "sampler": False, "grammar": False, "text_decoder": False})
        self.assertEqual(found["states"], [{"name": None, "dtype": None, "shape": None, "bytes": found["state_bytes"],
                                            "stored_bytes": found["stored_bytes"], "largest": None, "not_finite": None}])
        text = self.text("info", state)
        for line in "position   7 tokens", "format     snapshot, version 1", "not in it  logits, sampler, grammar, text decoder":
            self.assertIn(line, text)
        self.assertIn("-m MODEL names the states", text)

    def test_a_model_names_the_states(self):
        state = self.save("a", "ROMEO:")
        found = self.json("info", state, "-m", MODEL)
        inspected = json.loads(tarn("inspect", MODEL, "--json")[1])
        self.assertEqual(found["model"]["name"], "shakespeare-rfa-gate")
        self.assertEqual([(one["name"], one["dtype"], one["shape"], one["bytes"]) for one in found["states"]],
                         [(one["name"], one["dtype"], [1, *one["shape"]], one["bytes"]) for one in inspected["states"]])
        self.assertEqual(sum(one["stored_bytes"] for one in found["states"]), found["stored_bytes"])
        self.assertTrue(all(0 < one["largest"] < 100 and one["not_finite"] == 0 for one in found["states"]))
        self.assertRegex(self.text("info", state, "-m", MODEL), r"layers\.3\.attn\.z +f32 +\[1, 4, 128\] +2048 +2048 +0\.")

    def test_types_of_states(self):
        for kind in "f16", "int8":
            self.make(kind, TINY)
            model = self.path(f"{kind}-state.tarn")
            status, _, err = self.convert(kind, model)
            self.assertEqual(status, 0, err)
            found = self.json("info", self.save(kind, "ROMEO", model), "-m", model)
            types = {one["dtype"] for one in found["states"]}
            self.assertIn({"f16": "f16", "int8": "i8"}[kind], types)
            rows = [one for one in found["states"] if one["dtype"] != "f32"]
            self.assertTrue(all(0 < one["largest"] <= (127 if kind == "int8" else 100) for one in rows), rows)
            # Five of 32 rows are in use.
            self.assertTrue(all(one["stored_bytes"] < one["bytes"] / 2 for one in rows), rows)

    def convert(self, kind, out):
        done = subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", self.path(kind + ".json"), "-o", out,
                               "--quant", "f32", "--state", kind], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_diff(self):
        a, b = self.save("a", "ROMEO:"), self.save("b", "JULIET:")
        same = self.json("diff", a, self.save("again", "ROMEO:"), "-m", MODEL)
        self.assertTrue(same["equal"])
        self.assertTrue(all((one["differing"], one["largest_difference"], one["relative_l2"]) == (0, 0, 0) for one in same["states"]))
        self.assertIn("\nno difference\n", self.text("diff", a, a))
        found = self.json("diff", a, b, "-m", MODEL)
        self.assertEqual((found["a"]["tokens"], found["b"]["tokens"], found["equal"]), (7, 8, False))
        self.assertTrue(all(0 < one["differing"] <= one["elements"] and one["largest_difference"] > 0 and one["relative_l2"] > 0
                            for one in found["states"]))
        self.assertRegex(self.text("diff", a, b, "-m", MODEL), r"\n8 of 8 states differ\n")
        alone = self.json("diff", a, b)["states"]
        self.assertEqual((len(alone), alone[0]["relative_l2"]), (1, None))
        self.assertGreater(alone[0]["differing"], 1000)

    def test_the_numbers_of_a_diff(self):
        """The same from the bytes of the files, which have no zero blocks here."""
        a = self.save("a", "ROMEO:")
        values = self.values(a)
        b = self.save("b", "ROMEO;")
        others = self.values(b)
        found = self.json("diff", a, b, "-m", MODEL)["states"]
        begin = 0
        for one in found:
            count = one["bytes"] // 4
            x, y = values[begin:begin + count], others[begin:begin + count]
            begin += count
            self.assertEqual(one["differing"], sum(p != q for p, q in zip(x, y)))
            self.assertAlmostEqual(one["largest_difference"], max(abs(q - p) for p, q in zip(x, y)), places=9)
            square = sum((q - p) ** 2 for p, q in zip(x, y)) / sum(p * p for p in x)
            self.assertAlmostEqual(one["relative_l2"], square ** 0.5, places=9)
        self.assertEqual(begin, len(values))

    def values(self, path):
        with open(path, "rb") as file:
            content = file.read()
        size, = struct.unpack_from("<Q", content, 72)
        return struct.unpack_from(f"<{size // 4}f", content, len(content) - 16 - size)

    def test_sequences_at_different_positions(self):
        if not tarn_library.loads():
            self.skipTest("libtarn.so does not load into Python")
        paths = []
        with tarn_library.Session(MODEL, 256, batch=3) as session:
            session.tarn.tarn_session_snapshot_bytes.restype = ctypes.c_uint64
            for feeds in ((0, 4), (2, 9)), ((1, 9),):
                session.prefill_sequences({sequence: [7] * count for sequence, count in feeds})
                snapshot = ctypes.create_string_buffer(session.tarn.tarn_session_snapshot_bytes(session.session))
                session.call("tarn_session_save", session.session, snapshot, ctypes.c_uint64(len(snapshot)))
                paths.append(self.write(f"state-{len(paths)}", snapshot.raw))
        found = self.json("info", paths[0])
        self.assertEqual((found["format_version"], found["tokens"], found["sequence_tokens"]), (2, 9, [4, 0, 9]))
        self.assertRegex(self.text("info", paths[0], "-m", MODEL), r"position +\[4, 0, 9\] tokens\n")
        found = self.json("diff", *paths)
        self.assertEqual((found["a"]["sequence_tokens"], found["b"]["sequence_tokens"]), ([4, 0, 9], [4, 9, 9]))
        self.assertFalse(found["equal"])

    def test_a_delta_has_no_states_alone(self):
        if not tarn_library.loads():
            self.skipTest("libtarn.so does not load into Python")
        base, size, delta = self.save("base", "ROMEO:"), ctypes.c_uint64(), ctypes.create_string_buffer(1 << 20)
        data = pathlib.Path(base).read_bytes()
        with tarn_library.Session(MODEL, 256) as session:
            of_base = ctypes.c_char_p(data), ctypes.c_uint64(len(data))
            session.call("tarn_session_delta_bytes", session.session, *of_base, ctypes.byref(size))
            session.call("tarn_session_save_delta", session.session, *of_base, delta, size)
        path = self.write("delta", delta.raw[: size.value])
        whole, found = self.json("info", base), self.json("info", path)
        self.assertEqual((found["format_version"], found["base_hash"], found["tokens"], found["states"]), (3, whole["hash"], 0, []))
        self.assertEqual((len(found["hash"]), whole["base_hash"]), (32, None))
        self.assertRegex(self.text("info", path, "-m", MODEL), rf"base +the snapshot with the hash {whole['hash']}\n")
        self.fails(1, r"delta: it is a delta snapshot, which has no states without its base", "state", "diff", base, path)
        self.fails(1, r"delta: snapshot: it is a delta snapshot, a whole one expected: it needs its base, whose XXH3-128 is [0-9a-f]{32}", "run",
                   MODEL, "-p", "a", "--load-state", path)

    def test_sequences_are_bounded_by_what_is_there(self):
        """A whole snapshot by its hash: version 1, which has no list of sequences, of 2^32 - 1 of them without a state."""
        content = bytes.fromhex("54534e500d0a1a0a" "01000000ffffffff6000000000000000" + 112 * "0" + "94c1f0887892bbd070839fb7d1862131")
        self.fails(1, r"many: sequences is 4294967295, expected at most 0", "state", "info", self.write("many", content))

    def test_sources(self):
        if not tarn_library.loads():
            self.skipTest("libtarn.so does not load into Python")
        self.make("seq2seq", SEQ2SEQ)
        model, paths = self.path("seq2seq.tarn"), []
        for lengths in (5, 2), (5, 3):
            with tarn_library.Session(model, 256, batch=2, beams=2, max_source=16) as session:
                session.encode([[7] * length for length in lengths])
                session.step([0] * 4)
                session.tarn.tarn_session_snapshot_bytes.restype = ctypes.c_uint64
                snapshot = ctypes.create_string_buffer(session.tarn.tarn_session_snapshot_bytes(session.session))
                session.call("tarn_session_save", session.session, snapshot, ctypes.c_uint64(len(snapshot)))
                paths.append(self.write(f"state-{lengths[1]}", snapshot.raw))
        found = self.json("info", paths[0], "-m", model)
        self.assertEqual((found["tokens"], found["sequences"], found["sources"], found["source_tokens"]), (1, 4, 2, [5, 2]))
        self.assertEqual({one["shape"][0] for one in found["states"]}, {2, 4})
        self.assertRegex(self.text("info", paths[0]), r"source tokens +\[5, 2\]\n")
        found = self.json("diff", *paths, "-m", model)
        self.assertEqual((found["a"]["source_tokens"], found["b"]["source_tokens"], found["equal"]), ([5, 2], [5, 3], False))
        with tarn_library.Session(model, 256, batch=1, beams=4, max_source=16) as session:
            session.encode([[7] * 5])
            snapshot = ctypes.create_string_buffer(1 << 20)
            session.call("tarn_session_save", session.session, snapshot, ctypes.c_uint64(len(snapshot)))
        self.fails(1, r"other: sources is 1, 2 expected, as in .*state-2", "state", "diff", paths[0], self.write("other", snapshot.raw))

    def test_files_of_the_prompt_cache(self):
        cache = self.path("cache")
        self.assertEqual(tarn("run", MODEL, *GREEDY, "-p", "ROMEO:", "-n", 1, "--prompt-cache", cache)[0], 0)
        path = os.path.join(cache, os.listdir(cache)[0])
        found = self.json("info", path)
        self.assertEqual((found["tokens"], found["prompt_cache"]), (5, {"tokens": 5, "chunk": 64}))
        with open(path, "rb") as file:
            content = file.read()
        self.fails(1, "cut: a file of the prompt cache of 60 bytes", "state", "info", self.write("cut", content[:60]))
        self.fails(1, "cut: a file of the prompt cache of 8 bytes", "state", "info", self.write("cut", content[:8]))
        self.fails(1, "version of the prompt cache is 258, 3 expected", "state", "info",
                   self.write("new", content[:8] + b"\2\1" + content[10:]))
        self.fails(1, "cut: snapshot: size is ", "state", "info", self.write("cut", content[:-1]))
        for at in 12, 30, 60, 66, 75:  # chunk, fingerprint, kernels, checksum, a token
            damaged = content[:at] + bytes([content[at] ^ 4]) + content[at + 1:]
            self.fails(1, "damaged: the checksum of header and tokens is [0-9a-f]{16}, [0-9a-f]{16} expected", "state", "info",
                       self.write("damaged", damaged))
        # The header and the tokens of this file, and the snapshot of another one.
        self.assertEqual(tarn("run", MODEL, *GREEDY, "-p", "ROMEO: and", "-n", 1, "--prompt-cache", self.path("longer"))[0], 0)
        with open(os.path.join(self.path("longer"), os.listdir(self.path("longer"))[0]), "rb") as file:
            longer = file.read()
        self.fails(1, "mixed: the snapshot has seen 9 tokens, 5 expected", "state", "info",
                   self.write("mixed", content[:72 + 4 * 5] + longer[72 + 4 * 9:]))

    def test_what_is_no_state_of_the_model_is_named(self):
        a = self.save("a", "ROMEO:")
        with open(a, "rb") as file:
            content = file.read()
        self.fails(1, "model.tarn: snapshot: magic is 5441", "state", "info", self.write("model.tarn", b"TARN" + content[4:]))
        for size in 0, 1, 95, 96, 1000, len(content) - 1:
            self.fails(1, f"cut: snapshot: size is {size} bytes", "state", "info", self.write("cut", content[:size]))
        for at in 20, 60, 76, 90, 500, len(content) - 3:
            damaged = content[:at] + bytes([content[at] ^ 4]) + content[at + 1:]
            self.fails(1, "damaged: snapshot: (XXH3-128|size) is ", "state", "info", self.write("damaged", damaged))
        self.fails(1, "a: fingerprint is .*: it is of another model", "state", "info", a, "-m", OTHER_MODEL)
        other = self.save("other", "ROMEO:", OTHER_MODEL)
        self.fails(1, "other: fingerprint is .* as in .*a: it is of another model", "state", "diff", a, other)
        self.fails(1, "no-such: cannot open", "state", "info", self.path("no-such"))
        self.fails(1, "cannot read: Is a directory", "state", "info", self.folder.name)
        self.fails(1, "no-such.tarn", "state", "info", a, "-m", self.path("no-such.tarn"))

    def test_wrong_command_lines(self):
        self.fails(2, r"the action is 'inf', expected info or diff \(did you mean info\?\)", "state", "inf", "a")
        self.fails(2, "state: diff has 1 files, expected 2: `tarn state diff A B`", "state", "diff", "a")
        self.fails(2, "state: info has 2 files, expected 1: `tarn state info FILE`", "state", "info", "a", "b")
        self.fails(2, "the action is missing", "state")
        self.fails(2, "the file is missing", "state", "info")


if __name__ == "__main__":
    unittest.main()
