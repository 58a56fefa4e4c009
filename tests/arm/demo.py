"""The default models from prompt to text and logits, on another CPU beside this machine's.

Activations of an int8 layer are rounded to one of 256 steps. Two CPUs that differ in the last bit of a float round an activation
that lies half-way to different steps now and then, and from there on logits differ by far more than by f32's rounding. How much
that makes is seen on this machine alone, whose own instruction sets and dense layers differ in the same way: it is the largest
distance of any of them from the best one. Two draws of that kind are at most twice as far from each other, so that is the
tolerance, for the largest difference and for the root of the mean square.
"""

import dataclasses
import json
import math
import sys

from programs import HOST_TARN, ROOT, Failure, run

sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from tensor_files import read_npy_f32  # noqa: E402

MODELS = sorted((ROOT / "examples/models").glob("*.tarn"))
PROMPT = "ROMEO:"
TOKENS = 300


@dataclasses.dataclass
class Distance:
    largest: float
    root_mean_square: float

    @classmethod
    def between(cls, rows, others):
        assert len(rows) == len(others) and all(len(row) == len(other) for row, other in zip(rows, others))
        differences = [abs(a - b) for row, other in zip(rows, others) for a, b in zip(row, other)]
        return cls(max(differences), math.sqrt(sum(d * d for d in differences) / len(differences)))

    def __str__(self):
        return f"{self.largest:.3f} (mean square {self.root_mean_square:.4f})"


def greedy(tarn, model):
    return run(tarn, "run", "-m", model, "-p", PROMPT, "-n", TOKENS, "--temp", "0", "-t", "1")[0]


def logits(tarn, model, text, rows, *options):
    """A row after every byte of the file `text`; `rows` is a file for them."""
    run(tarn, "eval", "-m", model, "-f", text, "--logits", rows, "-t", "1", *options)
    return read_npy_f32(rows)


class Reference:
    """What this machine's build makes of a model; `folder` takes its files."""

    def __init__(self, model, folder):
        self.model, self.text, self.file = model, greedy(HOST_TARN, model), folder / f"{model.stem}.txt"
        self.file.write_bytes(self.text)
        rows = folder / f"{model.stem}.npy"
        self.rows = logits(HOST_TARN, model, self.file, rows)
        isas = json.loads(run(HOST_TARN, "inspect", "--cpu", "--json")[0])["cpu"]["kernels"]
        spread = [Distance.between(self.rows, logits(HOST_TARN, model, self.file, rows, "--isa", isa, *dense))
                  for isa in isas for dense in ([], ["--portable-dense"])]
        self.tolerance = Distance(2 * max(d.largest for d in spread), 2 * max(d.root_mean_square for d in spread))

    def describe(self):
        largest = max(max(map(abs, row)) for row in self.rows)
        return f"{len(self.text)} bytes of greedy text, logits up to {largest:.1f}, tolerance {self.tolerance}"

    def agreement(self, text):
        """How far a text is the same, in words. Failure: it is not, and must be."""
        if text == self.text:
            return f"the same {len(text)} bytes"
        position = next((i for i, (a, b) in enumerate(zip(text, self.text)) if a != b), min(len(text), len(self.text)))
        best, second = sorted(self.rows[position - 1], reverse=True)[:2]
        where = f"from byte {position} on, where the best two logits are {best - second:.4f} apart"
        if best - second >= self.tolerance.largest:
            raise Failure(f"another text {where}, {self.tolerance.largest:.4f} allowed: {text!r}, {self.text!r} expected")
        return f"the same {position} bytes, another text {where}"

    def compare(self, tarn, folder):
        """What is the same when `tarn` is run. Failure: something is not, and must be."""
        rows = logits(tarn, self.model, self.file, folder / f"{self.model.stem}.npy")
        distance = Distance.between(self.rows, rows)
        if distance.largest > self.tolerance.largest or distance.root_mean_square > self.tolerance.root_mean_square:
            raise Failure(f"logits differ by {distance}, {self.tolerance} allowed")
        return f"{self.agreement(greedy(tarn, self.model))}; logits within {distance}"
