"""examples/train: a few steps of each task, and the checkpoint converts and runs. Skipped where no Python has PyTorch."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = Path(os.environ["TARN_BUILD"]) / "bin"
SOURCE = Path(os.environ["TARN_SOURCE"])
TRAIN = SOURCE / "examples/train/train.py"
TEXT = SOURCE / "CHANGELOG.md"


def python_with_torch():
    """Debian's python3-torch belongs to Debian's python3. None: nobody has it."""
    for python in sys.executable, "/usr/bin/python3":
        if Path(python).exists() and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


PYTHON = python_with_torch()


@unittest.skipUnless(PYTHON, "no PyTorch")
class Train(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_tool(self, *command, status=0):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_language_model_trains_converts_and_runs(self):
        self.run_tool(PYTHON, TRAIN, "language", "rfa_gate", "--text", TEXT, "-o", self.folder / "model", "--steps", 3)
        self.run_tool(BIN / "tarn-convert", self.folder / "model", "-o", self.folder / "model.tarn")
        self.run_tool(BIN / "tarn", "run", self.folder / "model.tarn", "-p", "A", "-n", 5, "-s", 1, "-q")

    def test_other_tasks_train_and_are_evaluated(self):
        for task, system in (("dates", "rfa"), ("listops", "abc")):
            with self.subTest(task):
                self.run_tool(PYTHON, TRAIN, task, system, "-o", self.folder / task, "--steps", 2)
                report = json.loads((self.folder / task / "training.json").read_text())
                self.assertEqual((report["task"], report["test_lines"]), (task, 5000))
                self.run_tool(BIN / "tarn-convert", self.folder / task, "-o", self.folder / f"{task}.tarn")

    def test_a_recorded_checkpoint_is_evaluated(self):
        lines = self.folder / "dates.tsv"
        self.run_tool(SOURCE / "examples/train/dates.py", "--split", "test", "--count", 50, "-o", lines)
        done = self.run_tool(PYTHON, TRAIN.with_name("evaluate.py"), TRAIN.parent / "checkpoints/dates-softmax", lines)
        self.assertEqual(done.stdout, "100.00\n")

    def test_errors_are_one_line(self):
        for arguments in (["language", "rfa_gate"], ["language", "rfa_gate", "--text", self.folder / "nowhere"],
                          ["dates", "rfa_gate"], ["dates", "rfa", "--steps", 0], ["dates", "rfa", "--text", TEXT]):
            with self.subTest(arguments):
                done = self.run_tool(PYTHON, TRAIN, *arguments, "-o", self.folder / "model", status=2)
                self.assertRegex(done.stderr, r"^train.py: error: [^\n]+\n$")


if __name__ == "__main__":
    unittest.main()
