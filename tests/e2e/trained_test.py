"""The checkpoints of examples/train: float32 logits against float64, and what int8 keeps of the tasks that were learned.

    python3 tests/e2e/trained_test.py [-v]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tarn_library import Session, loads
from tensor_files import read_safetensors

BIN = pathlib.Path(os.environ.get("TARN_BUILD", "build")).resolve() / "bin"
TRAIN = pathlib.Path(os.environ["TARN_SOURCE"]) / "examples" / "train"
SYSTEMS = "softmax", "rfa", "abc"
TEST_LINES = 5000
POINTS_LOST = 0.5  # by int8, of 100
LOGIT_TOLERANCE = 1e-3  # of float32, where logits are as large as 30


def rows_of(tensor, width):
    return [list(tensor.values[i : i + width]) for i in range(0, len(tensor.values), width)]


class Trained(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.work = pathlib.Path(cls.folder.name)
        for task in "dates", "listops":
            subprocess.run([sys.executable, TRAIN / f"{task}.py", "--split", "test", "-o", cls.work / f"{task}.tsv"],
                           stdout=subprocess.DEVNULL, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def convert(self, name, precision):
        path = self.work / f"{name}-{precision}.tarn"
        subprocess.run([BIN / "tarn-convert", TRAIN / "checkpoints" / name, "-o", path, "--quant", precision],
                       stdout=subprocess.DEVNULL, check=True)
        return path

    def evaluate(self, task, system):
        """Percent of the test lines that the int8 model gets right, and what training.json says of the float32 model."""
        name = f"{task}-{system}"
        done = subprocess.run([BIN / "tarn", "eval", "-m", self.convert(name, "int8"), "-f", self.work / f"{task}.tsv", "--json",
                               "--batch", "16", "-t", "1"], stdout=subprocess.PIPE, text=True, check=True)
        result = json.loads(done.stdout)
        self.assertEqual(result["lines"], TEST_LINES)
        training = json.loads((TRAIN / "checkpoints" / name / "training.json").read_text(encoding="utf-8"))
        self.assertEqual(training["test_lines"], TEST_LINES)
        return 100 * (result["exact_match"] if task == "dates" else result["accuracy"]), training

    def test_int8_keeps_what_was_learned(self):
        for task in "dates", "listops":
            for system in SYSTEMS:
                with self.subTest(task=task, system=system):
                    percent, training = self.evaluate(task, system)
                    self.assertGreaterEqual(percent, training["float32_test_accuracy_percent"] - POINTS_LOST)
                    least = 95 if task == "dates" else 2 * training["majority_class_percent"]
                    self.assertGreaterEqual(percent, least)

    @unittest.skipUnless(loads(), "no libtarn.so that Python can load")
    def test_float32_logits(self):
        for system in SYSTEMS:
            with self.subTest(system=system, task="listops"):
                golden = read_safetensors(TRAIN / "checkpoints" / f"listops-{system}" / "golden.safetensors")
                sources = [[int(id) for id in row if id != 0] for row in rows_of(golden["tokens"], golden["tokens"].shape[1])]
                labels = golden["logits"].shape[1]
                with Session(self.convert(f"listops-{system}", "f32"), labels, batch=len(sources)) as session:
                    self.assert_near(session.classify(sources, labels), rows_of(golden["logits"], labels))
            with self.subTest(system=system, task="dates"):
                golden = read_safetensors(TRAIN / "checkpoints" / f"dates-{system}" / "golden.safetensors")
                self.check_dates(self.convert(f"dates-{system}", "f32"), golden)

    @unittest.skipUnless(loads(), "no libtarn.so that Python can load")
    def test_a_padded_batch_is_what_its_sources_are_alone(self):
        lines = (self.work / "listops.tsv").read_text(encoding="utf-8").splitlines()[:24]
        sources = [list(line.split("\t")[1].encode()) for line in lines]
        for system in SYSTEMS:
            with self.subTest(system=system):
                model = self.convert(f"listops-{system}", "int8")
                with Session(model, 10, batch=len(sources)) as together, Session(model, 10) as alone:
                    self.assertEqual(together.classify(sources, 10), [alone.classify([source], 10)[0] for source in sources])
        pairs = [line.split("\t") for line in (self.work / "dates.tsv").read_text(encoding="utf-8").splitlines()[:8]]
        sources, targets = ([list(pair[side].encode()) for pair in pairs] for side in (0, 1))
        length = len(targets[0])
        for system in SYSTEMS:
            with self.subTest(system=system):
                model = self.convert(f"dates-{system}", "int8")
                with Session(model, 256, batch=len(sources)) as together, Session(model, 256) as alone:
                    together.encode(sources)
                    steps = [together.step([target[t] for target in targets]) for t in range(length)]
                    for i, one in enumerate(sources):
                        alone.encode([one])
                        for t in range(length):
                            self.assertEqual(alone.step([targets[i][t]])[0], steps[t][i])

    def check_dates(self, model, golden):
        """All sources in one batch, their targets token by token."""
        sources = [[int(id) for id in row if id != 0] for row in rows_of(golden["source"], golden["source"].shape[1])]
        count, length, vocabulary = golden["logits"].shape
        tokens = rows_of(golden["tokens"], length)
        wanted = rows_of(golden["logits"], vocabulary)
        with Session(model, vocabulary, batch=count) as session:
            session.encode(sources)
            for t in range(length):
                self.assert_near(session.step([int(row[t]) for row in tokens]), [wanted[i * length + t] for i in range(count)])

    def assert_near(self, got, wanted):
        self.assertEqual(len(got), len(wanted))
        for row, want in zip(got, wanted):
            self.assertEqual(len(row), len(want))
            self.assertLess(max(abs(a - b) for a, b in zip(row, want)), LOGIT_TOLERANCE)


if __name__ == "__main__":
    unittest.main()
