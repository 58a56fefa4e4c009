"""What the tests of published families share: small checkpoints (tests/data/families), their conversion, and logits in every way."""

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from tarn_library import Session  # noqa: E402
from tensor_files import read_npy_f32, read_safetensors, write_npy_i32, write_safetensors  # noqa: E402

BIN = pathlib.Path(os.environ.get("TARN_BUILD", "build")).resolve() / "bin"
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "data" / "families"
ENCODERS = "bert", "distilbert", "longformer", "modernbert", "roberta", "xlm-roberta"
TOLERANCE = 1e-5  # relative L2 of all logits, in f32
TORCH = FIXTURES.parent / "torch"  # checkpoints of torch.save()


def distance(found, expected):
    """Relative L2 of two lists of rows."""
    difference = sum((a - b) ** 2 for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True))
    return math.sqrt(difference / sum(b * b for row in expected for b in row))


def rows_of(values, width):
    return [list(values[i : i + width]) for i in range(0, len(values), width)]


class FamiliesCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = pathlib.Path(folder.name)

    def convert(self, source, *options, status=0):
        self.model = self.work / "model.tarn"
        self.model.unlink(missing_ok=True)
        done = subprocess.run([BIN / "tarn-convert", source, "-o", self.model, *options], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def expected(self, name):
        tensors = read_safetensors(FIXTURES / name / "expected.safetensors")
        logits = tensors["logits"]
        tokens = [list(tensors[key].values) for key in ("input_ids", "decoder_input_ids") if key in tensors]
        return tokens[0] if len(tokens) == 1 else tokens, rows_of(logits.values, logits.shape[1])

    def logits(self, tokens, chunk):
        """Of one block of all tokens, read in chunks."""
        ids, logits = self.work / "ids.npy", self.work / "logits.npy"
        write_npy_i32(ids, tokens)
        subprocess.run([BIN / "tarn", "eval", "-m", self.model, "-f", ids, "--chunk", str(chunk), "--logits", logits, "-t", "1"],
                       stdout=subprocess.DEVNULL, check=True)
        return read_npy_f32(logits)

    def found(self, name, tokens, logits):
        """The logits of this model, computed in every way that its task has."""
        width = len(logits[0])
        if isinstance(tokens[0], list):
            source, target = tokens
            if name.startswith("marian_nmt"):  # one token more: it stands for the row of zeros that a target begins with
                with Session(self.model, width + 1, max_source=len(source), threads=1) as session:
                    session.encode([source])
                    rows = [session.step([token])[0] for token in target]
                self.assertLess(max(row[width] for row in rows), -1e8)
                return [[row[:width] for row in rows]]
            with Session(self.model, width, max_source=len(source), threads=1) as session:
                session.encode([source])
                return [[session.step([token])[0] for token in target]]
        if name.partition("_")[0] not in ENCODERS:
            return [self.logits(tokens, chunk) for chunk in (1, 7, 64, len(tokens))]
        if len(logits) == 1:
            with Session(self.model, width, max_source=len(tokens), threads=1) as session:
                return [session.classify([tokens], width)]
        with Session(self.model, width, max_source=len(tokens), max_logits_rows=len(tokens), threads=1) as session:
            return [session.fill(tokens, list(range(len(tokens))))]

    def torch_folder(self, file, *more):
        folder = self.work / "torch"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(TORCH / "zip", folder)
        (folder / "pytorch_model.bin").unlink()
        for path in (file, *more):
            shutil.copy(path, folder)
        return folder

    def copy(self, name, **changes):
        """A fixture with other fields; None removes one."""
        folder = self.work / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(FIXTURES / name, folder)
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config.update(changes)
        (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}), encoding="utf-8")
        return folder

    def retensor(self, name, change):
        """A fixture whose dictionary of tensors was changed."""
        folder = self.copy(name)
        tensors = read_safetensors(folder / "model.safetensors")
        change(tensors)
        write_safetensors(folder / "model.safetensors", tensors)
        return folder

    def refused(self, folder, *words):
        error = self.convert(folder, status=1)
        self.assertFalse(self.model.exists())
        for word in words:
            self.assertIn(word, error)

    def same_logits(self, name, folder):
        """A folder that says what a fixture says, in another way."""
        self.convert(folder, "--quant", "f32")
        tokens, logits = self.expected(name)
        for found in self.found(name, tokens, logits):
            self.assertLess(distance(found, logits), TOLERANCE)
