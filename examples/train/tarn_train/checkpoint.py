"""The checkpoint directory that tarn-convert reads: config.json, model.safetensors; tokenizer.json where tokens are no bytes."""

import json
import pathlib

import torch

from . import tensors
from .model import LanguageModel


def save(model, folder, tokenizer=None):
    """`tokenizer`: the tokenizer.json to put beside it"""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.detach().float().cpu().numpy() for name, tensor in model.state_dict().items()}
    tensors.write_safetensors(folder / "model.safetensors", state)
    tensors.write_atomically(folder / "config.json", (json.dumps(model.c, indent=2) + "\n").encode())
    if tokenizer and pathlib.Path(tokenizer).resolve() != (folder / "tokenizer.json").resolve():
        tensors.write_atomically(folder / "tokenizer.json", pathlib.Path(tokenizer).read_bytes())


def load(folder):
    folder = pathlib.Path(folder)
    model = LanguageModel(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    state = tensors.read_safetensors(folder / "model.safetensors")
    model.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return model.eval()
