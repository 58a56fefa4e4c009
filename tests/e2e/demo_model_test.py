"""The model of `make demo` is what its card says, and writes text."""

import json
import os
import pathlib
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["TARN_SOURCE"])
TARN = pathlib.Path(os.environ["TARN_BUILD"]) / "bin/tarn"
MODEL = SOURCE / "examples/demo/english-rfa-gate-int4.tarn"


def tarn(*arguments):
    return subprocess.run([TARN, *arguments], stdout=subprocess.PIPE, check=True, text=True, timeout=60).stdout


class DemoModelTest(unittest.TestCase):
    def test_the_card(self):
        card = (MODEL.parent / "README.md").read_text(encoding="utf-8")
        model = json.loads(tarn("inspect", MODEL, "--json"))["model"]
        self.assertIn(f"{model['parameters'] / 1e6:.2f} million", card)
        self.assertIn(f"BPE of {model['vocab_size']:,} pieces", card)
        self.assertIn(f"| file | {MODEL.stat().st_size / 1e6:.1f} MB", card)

    def test_it_writes(self):
        text = tarn("run", MODEL, "-p", "ROMEO:", "-n", "24", "--temp", "0", "-q")
        self.assertTrue(text.startswith("ROMEO:"))
        self.assertGreater(len(text.split()), 8)


if __name__ == "__main__":
    unittest.main()
