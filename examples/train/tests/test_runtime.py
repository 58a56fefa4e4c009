"""The float32 logits of PyTorch are those of the runtime, for every attention variant, through tarn-convert."""

import pytest
import torch

from tarn_train import checkpoint
from tarn_train.compare import TOLERANCE, runtime_logits
from tarn_train.dense import round_as
from variants import CASES, random_model

TOKENS = 128


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_logits_are_those_of_the_runtime(name, programs, tmp_path):
    model = random_model(CASES[name], 7)
    text = bytes(torch.randint(0, 256, (TOKENS,), generator=torch.Generator().manual_seed(8)).tolist())
    (tmp_path / "text").write_bytes(text)
    checkpoint.save(model, tmp_path / "model")
    found = runtime_logits(tmp_path / "model", tmp_path / "text", TOKENS, programs)
    wanted = checkpoint.load(tmp_path / "model")(torch.tensor([list(text)]))[0]
    assert wanted.abs().max() > 0.5
    assert (found - wanted).abs().max() < TOLERANCE


@pytest.mark.parametrize("kind", ["int8", "int4", "int3", "int2"])
@pytest.mark.parametrize("name", ["rfa_gaussian_forget", "abc_exp", "gla", "deltanet", "softmax", "rfa_arccos"])
@torch.no_grad()
def test_rounded_logits_are_nearly_those_of_a_rounded_file(name, kind, programs, tmp_path):
    """Not quite: where an input falls between two integers, a last bit decides, and there the files are a whole step apart."""
    model = random_model({**CASES[name], "hidden_size": 64, "intermediate_size": 96, "num_layers": 1}, 9)
    text = bytes(torch.randint(0, 256, (TOKENS,), generator=torch.Generator().manual_seed(10)).tolist())
    (tmp_path / "text").write_bytes(text)
    checkpoint.save(model, tmp_path / "model")
    found = runtime_logits(tmp_path / "model", tmp_path / "text", TOKENS, programs, kind)
    exact = model(torch.tensor([list(text)]))[0]
    round_as(model, kind)
    rounded = model(torch.tensor([list(text)]))[0]
    assert (found - rounded).norm() < 0.05 * (found - exact).norm()
