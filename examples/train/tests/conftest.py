import os
import pathlib
import sys

import pytest
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
torch.set_num_threads(1)

BIN = pathlib.Path(os.environ.get("TARN_BUILD", HERE.parents[2] / "build")) / "bin"


@pytest.fixture(scope="session")
def programs():
    """The directory of tarn and tarn-convert"""
    for name in "tarn", "tarn-convert":
        if not (BIN / name).exists():
            pytest.skip(f"{BIN / name} is missing: run make")
    return BIN
