"""Packed weights in a cache file, seen from outside: what a process holds, what two share, what is left in the folder."""

import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

from tarn_testing import BIN, TINY, start, tarn, wait_for

# About 16 MB of packed weights: much more than a process needs for itself.
SHAPE = {**TINY, "hidden_size": 512, "num_layers": 4, "num_heads": 4, "intermediate_size": 2048, "tie_word_embeddings": False,
         "attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 16, "gate": "forget"}}
MIB = 1 << 20
RUN = ["--tokens", "1,2,3", "-n", 8, "-s", 1, "-t", 1]


def smaps(pid):
    """(name of the mapped file or "", {field: bytes}) of every mapping."""
    mappings = []
    with open(f"/proc/{pid}/smaps") as file:
        for line in file:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                mappings.append((line.split(None, 5)[5].strip() if len(line.split(None, 5)) > 5 else "", {}))
            elif line.endswith(" kB\n"):
                field, kib, _ = line.split()
                mappings[-1][1][field[:-1]] = int(kib) * 1024
    return mappings


def anonymous(pid):
    return sum(fields["Anonymous"] for _, fields in smaps(pid))


def packed(pid):
    return [fields for name, fields in smaps(pid) if ".packed" in name]


class PackedCacheTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.models = tempfile.TemporaryDirectory()
        config = os.path.join(cls.models.name, "config.json")
        cls.model = os.path.join(cls.models.name, "model.tarn")
        with open(config, "w") as file:
            json.dump(SHAPE, file)
        subprocess.run([os.path.join(BIN, "tarn-convert"), "--random-weights", "1", config, "-o", cls.model, "--quant", "int8"],
                       check=True, stdout=subprocess.DEVNULL)
        cls.plain = cls.inspect(cls, "--packed-cache", "none")
        if cls.plain["model"]["dense"] != "xnnpack":
            raise unittest.SkipTest("this build packs nothing")
        cls.text = tarn("run", "-m", cls.model, *RUN, "--packed-cache", "none")[1]

    @classmethod
    def tearDownClass(cls):
        cls.models.cleanup()

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(dir=os.environ["TARN_BUILD"])  # on a disk: pages of a tmpfs are never clean
        self.addCleanup(self.temporary.cleanup)
        self.folder = os.path.join(self.temporary.name, "packed")

    def file(self):
        """The only one of packed weights."""
        name, = (name for name in os.listdir(self.folder) if name.endswith(".packed"))
        return os.path.join(self.folder, name)

    def inspect(self, *arguments, **keywords):
        status, out, err = tarn("inspect", "--json", self.model, "--states", "-t", 1, *arguments, **keywords)
        assert status == 0, err
        return json.loads(out)

    def run_in(self, folder):
        """Whether packed weights were found in the cache; the text must be the plain one's."""
        stats = os.path.join(self.temporary.name, "stats.json")
        status, out, err = tarn("run", "-m", self.model, *RUN, "--packed-cache", folder, "--json-stats", stats)
        self.assertEqual((status, out), (0, self.text), err)
        self.assertNotIn("error", err)
        with open(stats) as file:
            found = json.load(file)
        self.counts = found["allocation_counter"] == "on"  # not under sanitizers, which have memory of their own
        self.assertNotEqual(found["memory"]["packed_file_bytes"] > 0, found["memory"]["packed_anonymous_bytes"] > 0)
        return found["packed_from_cache"]

    def endless(self, folder):
        """A process that generates until it is stopped, and has begun."""
        process = start("run", "-m", self.model, "--tokens", "1", "-n", "-1", "-t", "1", "--packed-cache", folder)
        self.addCleanup(process.communicate)
        self.addCleanup(process.send_signal, signal.SIGINT)
        process.stdout.read(200)
        return process.pid

    def test_second_start_says_the_same(self):
        self.assertEqual([self.run_in(self.folder) for _ in range(3)], [False, True, True])
        self.assertRegex(os.path.basename(self.file()), "^%s-[0-9a-f]{16}\\.packed$" % self.plain["model"]["fingerprint"])
        self.assertLessEqual(len(os.listdir(self.folder)), 2)  # it, and the note that it was verified

    def test_memory_is_file_backed_from_the_first_start_on(self):
        self.run_in("none")
        plain = anonymous(self.endless("none"))
        weights = self.plain["memory"]["packed_anonymous_bytes"]
        self.assertGreater(weights, 15 * MIB)
        session = self.plain["memory"]["session_bytes"]
        for _ in range(2):
            pid = self.endless(self.folder)
            self.assertLess(anonymous(pid), plain - 0.9 * weights)
            if self.counts:
                self.assertLess(anonymous(pid), session + 6 * MIB)
            self.assertEqual(len(packed(pid)), 1)
            # Only the header may wait for the disk still.
            self.assertLessEqual(packed(pid)[0]["Private_Dirty"] + packed(pid)[0]["Shared_Dirty"], 64 * 1024)

    def test_two_processes_share_the_pages(self):
        self.run_in(self.folder)
        pids = [self.endless(self.folder) for _ in range(2)]
        for pid in pids:
            wait_for(lambda: packed(pid)[0]["Rss"] > 15 * MIB)
            fields = packed(pid)[0]
            self.assertLess(fields["Pss"], 0.6 * fields["Rss"])
            self.assertEqual(fields["Anonymous"], 0)

    def test_starts_at_the_same_time(self):
        for _ in range(3):
            running = [subprocess.Popen([os.path.join(BIN, "tarn"), "run", "-m", self.model, *map(str, RUN), "--packed-cache",
                                         self.folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
            for process in running:
                out, err = process.communicate(timeout=120)
                self.assertEqual((process.returncode, out), (0, self.text), err)
            os.remove(self.file())

    def test_a_killed_maker_leaves_nothing_for_ever(self):
        process = start("run", "-m", self.model, "--tokens", "1", "--packed-cache", self.folder)
        wait_for(lambda: os.path.isdir(self.folder) and os.listdir(self.folder))
        process.kill()  # most often while it packs
        process.communicate()
        self.run_in(self.folder)
        # Where it was quick enough its file is whole, and nobody had to look for what is left.
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith("tmp")], [])

    def test_damage_is_repaired_without_a_word(self):
        self.run_in(self.folder)
        path = self.file()
        with open(path, "rb") as file:
            good = file.read()
        for bad in good[:-1], b"", b"\xff" * len(good), good[:50] + b"\0" + good[51:]:
            with open(path, "wb") as file:
                file.write(bad)
            self.assertFalse(self.run_in(self.folder))
            with open(path, "rb") as file:
                self.assertEqual(file.read(), good)
        self.assertTrue(self.run_in(self.folder))

    def test_without_a_folder_to_write(self):
        for folder, why in ((self.model, "Not a directory"), (self.model + "/below", "Not a directory"),
                            ("/proc", ".* written .*|Permission denied"), ("/proc/none", "No such file or directory")):
            self.assertFalse(self.run_in(folder))
            command = ["run", self.model, *RUN, "--packed-cache", folder]
            self.assertRegex(tarn(*command)[2], f"(?m)^tarn: warning: --packed-cache {re.escape(folder)}: ({why}); every start packs")
            self.assertEqual(tarn(*command, "-q"), (0, self.text, ""))
            self.assertNotIn("warning", tarn("run", self.model, *RUN, environment={"HOME": folder, "XDG_CACHE_HOME": folder})[2])

    def test_inspect_tells_what_a_run_takes(self):
        memory = self.inspect("--packed-cache", self.folder)["memory"]
        self.assertEqual(memory["packed_anonymous_bytes"], 0)
        self.assertEqual(memory["packed_file_bytes"], os.path.getsize(self.file()))
        portable = self.inspect("--portable-dense", "--packed-cache", self.folder)["memory"]
        self.assertEqual((portable["packed_file_bytes"], portable["packed_anonymous_bytes"]), (0, 0))
        self.assertGreater(portable["in_place_bytes"], 15 * MIB)
        self.assertLess(memory["in_place_bytes"], portable["in_place_bytes"])

    def test_where_the_folder_is_by_default(self):
        def files(*arguments, **environment):
            environment = {"TARN_PACKED_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "", **environment}
            self.inspect(*arguments, environment=environment)
            return [os.path.relpath(os.path.join(at, name), self.temporary.name)
                    for at, _, names in os.walk(self.temporary.name) for name in names if name.endswith(".packed")]
        here = self.temporary.name
        self.assertEqual(files(), [])
        self.assertEqual(files(HOME=here, TARN_PACKED_CACHE="none"), [])
        self.assertEqual(files("--packed-cache", "none", HOME=here, TARN_PACKED_CACHE=self.folder), [])
        for part, environment in ((".cache/tarn/packed/", {"HOME": here}), ("xdg/tarn/packed/", {"XDG_CACHE_HOME": here + "/xdg"}),
                                  ("packed/", {"TARN_PACKED_CACHE": self.folder, "HOME": here})):
            found = files(**environment)
            self.assertEqual(len([name for name in found if name.startswith(part)]), 1, found)


if __name__ == "__main__":
    unittest.main()
