"""The float32 logits of PyTorch are those of the runtime, for every attention variant, through tarn-convert."""

import os
import pathlib
import subprocess

import numpy
import pytest
import torch

from tarn_train import checkpoint
from variants import CASES, random_model

BIN = pathlib.Path(os.environ.get("TARN_BUILD", pathlib.Path(__file__).resolve().parents[3] / "build")) / "bin"
TOKENS = 128
TOLERANCE = 2e-4  # of logits of about 1


@pytest.fixture(scope="session")
def programs():
    for name in "tarn", "tarn-convert":
        if not (BIN / name).exists():
            pytest.skip(f"{BIN / name} is missing: run make")
    return BIN


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_logits_are_those_of_the_runtime(name, programs, tmp_path):
    model = random_model(CASES[name], 7)
    text = bytes(torch.randint(0, 256, (TOKENS,), generator=torch.Generator().manual_seed(8)).tolist())
    (tmp_path / "text").write_bytes(text)
    checkpoint.save(model, tmp_path / "model")
    subprocess.run([programs / "tarn-convert", tmp_path / "model", "-o", tmp_path / "model.tarn", "--quant", "f32"], check=True)
    subprocess.run([programs / "tarn", "eval", tmp_path / "model.tarn", "-f", tmp_path / "text", "-t", "1",
                    "--logits", tmp_path / "logits.npy"], check=True)
    found = torch.from_numpy(numpy.load(tmp_path / "logits.npy"))
    wanted = checkpoint.load(tmp_path / "model")(torch.tensor([list(text)]))[0]
    assert wanted.abs().max() > 0.5
    assert (found - wanted).abs().max() < TOLERANCE
