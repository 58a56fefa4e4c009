"""Damaged weights do not run silently: what was found from outside, on the command line."""

import glob
import os
import shutil
import unittest

from tarn_testing import TINY, CliTest, tarn

SHAPE = {**TINY, "hidden_size": 256, "num_layers": 2, "num_heads": 4, "intermediate_size": 1024, "tie_word_embeddings": False,
         "attention": {"system": "rfa", "feature_map": "gaussian", "num_features": 16}}
RUN = ["--tokens", "1,2,3", "-n", 20, "-s", 1, "-t", 1]
HASHES = "weights: XXH3-128 is [0-9a-f]{32}, expected [0-9a-f]{32} .*damaged"


class VerifyTest(CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make("good", SHAPE)
        cls.model = cls.path("good.tarn")
        cls.text = cls.run_good("none")

    @classmethod
    def run_good(cls, cache, *arguments):
        status, out, err = tarn("run", "-m", cls.model, *RUN, "--packed-cache", cache, *arguments)
        assert status == 0, err
        return out

    def damaged(self, offset, count):
        """A copy with `count` bytes overwritten, `offset` from the end: with small numbers, not NaN, which would show by itself."""
        path = shutil.copy(self.model, self.path("damaged.tarn"))
        with open(path, "r+b") as file:
            file.seek(-offset, os.SEEK_END)
            file.write(b"\x3d" * count)  # f32: 0.046
        return path

    def test_a_block_of_weights_overwritten(self):
        path = self.damaged(800_000, 400_000)
        for folder in "none", self.path("fresh"):
            self.fails(1, HASHES, "run", "-m", path, *RUN, "--packed-cache", folder)
            self.fails(1, HASHES, "inspect", path, "--packed-cache", folder)
        self.assertEqual(glob.glob(self.path("fresh/*")), [])  # a build that packs nothing does not even make the folder
        status, _, err = tarn("run", "-m", path, *RUN, "--packed-cache", "none", "--no-verify")
        self.assertEqual(status, 0, err)

    def test_a_flipped_bit_in_packed_weights_does_not_change_the_text(self):
        folder = self.path("packed")
        self.assertEqual(self.run_good(folder), self.text)
        names = [name for name in os.listdir(folder) if name.endswith(".packed")]
        if not names:
            self.skipTest("this build packs nothing")
        path = os.path.join(folder, names[0])
        size = os.path.getsize(path)
        for at in range(65536, size, size // 12):
            with open(path, "r+b") as file:
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 0x80]))
            self.assertEqual(self.run_good(folder), self.text)
            with open(path, "rb") as file:
                file.seek(at)
                self.assertEqual(file.read(1)[0], byte, "repaired")

    def test_always_and_never(self):
        self.assertEqual(self.run_good("none", "--verify"), self.text)
        self.assertNotEqual(tarn("run", "-m", self.model, *RUN, "--verify", "--no-verify")[0], 0)


if __name__ == "__main__":
    unittest.main()
