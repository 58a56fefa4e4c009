#!/usr/bin/env python3
"""Writes tests/data/torch: checkpoints as torch.save() writes them, and pickles that a reader has to refuse.

    torch_fixtures.py

Folders have the weights of a folder of tests/data/families, in another container: what they convert to is the same file.
views.pt has tensors of every kind beside views.safetensors, which says what they hold. Needs the packages of
requirements-models.txt.
"""

import collections
import json
import os
import pathlib
import pickle
import shutil
import zipfile

import safetensors.torch
import torch

DATA = pathlib.Path(__file__).resolve().parents[3] / "tests/data"
FIXTURES = DATA / "torch"


def weights(name):
    return safetensors.torch.load_file(DATA / "families" / name / "model.safetensors")


def folder(name, family):
    made = FIXTURES / name
    made.mkdir()
    shutil.copy(DATA / "families" / family / "config.json", made)
    return made


def folders():
    torch.save(weights("gla_a"), folder("zip", "gla_a") / "pytorch_model.bin")
    torch.save(collections.OrderedDict(weights("qwen2_a")), folder("old", "qwen2_a") / "pytorch_model.bin",
               _use_new_zipfile_serialization=False)
    made, tensors = folder("shards", "llama_a"), weights("llama_a")
    names = [f"pytorch_model-0000{i}-of-00002.bin" for i in (1, 2)]
    files = {name: names[i % 2] for i, name in enumerate(sorted(tensors))}
    for file in names:
        torch.save({name: tensors[name] for name in tensors if files[name] == file}, made / file)
    (made / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}, indent=1) + "\n")


class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3, bias=False)
        self.second.weight = torch.nn.Parameter(self.first.weight.detach().t().contiguous())
        self.tied = self.second


def views():
    torch.manual_seed(1)
    base = torch.randn(4, 5, 6)
    marked = torch.randn(2)
    marked.note = "an attribute of its own"
    tensors = {
        "whole": base, "rows": base[1:3], "columns": base[:, 2:4, 1:], "steps": base[::2, :, ::3], "transposed": base[0].t(),
        "permuted": base.permute(2, 0, 1), "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3), "ones": base[:1, :1].mT,
        "half": torch.randn(3, 2).half(), "brain": torch.randn(5).bfloat16(), "parameter": torch.nn.Parameter(torch.randn(2, 2)),
        "marked": marked,
    }
    others = {"double": torch.randn(2).double(), "ids": torch.arange(3), "mask": torch.ones(2, dtype=torch.bool),
              "bytes": torch.arange(4, dtype=torch.uint8), "words": torch.arange(4).to(torch.uint16),
              "eight": torch.randn(4).to(torch.float8_e4m3fn)}
    torch.save({**tensors, **others}, FIXTURES / "views.pt")
    torch.save({**tensors, **others}, FIXTURES / "views_old.pt", _use_new_zipfile_serialization=False)
    torch.save({"epoch": 3, "state_dict": {**tensors, **others}, "loss": 0.5}, FIXTURES / "views_inner.pt")
    for protocol in (4, 5):
        torch.save({**tensors, **others}, FIXTURES / f"views_{protocol}.pt", pickle_protocol=protocol)
    safetensors.torch.save_file({name: tensor.detach().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()},
                                FIXTURES / "views.safetensors")
    torch.save(Tiny().state_dict(), FIXTURES / "module.pt")


class Attack:
    def __reduce__(self):
        return os.system, ("touch /tmp/tarn-was-here",)


def refused():
    torch.save({"weight": torch.ones(2), "attack": Attack()}, FIXTURES / "attack.pt")
    torch.save({"weight": torch.ones(2), "attack": Attack()}, FIXTURES / "attack_old.pt", _use_new_zipfile_serialization=False)
    torch.save({"a": torch.ones(2), "b": [torch.ones(2)]}, FIXTURES / "list.pt")
    torch.save({"a": torch.ones(3).expand(4, 3)}, FIXTURES / "expanded.pt")
    torch.save({"a": torch.ones(2, dtype=torch.complex64)}, FIXTURES / "complex.pt")
    torch.save({"a": torch.ones(2, dtype=torch.complex64).conj().imag}, FIXTURES / "negative.pt")
    torch.save(Tiny(), FIXTURES / "whole_module.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(FIXTURES / "script.pt"))
    (FIXTURES / "data.pickle").write_bytes(pickle.dumps({"a": 1}, protocol=2))
    with zipfile.ZipFile(FIXTURES / "views.pt") as archive, \
            zipfile.ZipFile(FIXTURES / "compressed.pt", "w", zipfile.ZIP_DEFLATED) as packed:
        for entry in archive.namelist():
            packed.writestr(zipfile.ZipInfo(entry), archive.read(entry), zipfile.ZIP_DEFLATED)


def main():
    shutil.rmtree(FIXTURES, ignore_errors=True)
    FIXTURES.mkdir()
    folders()
    views()
    refused()


if __name__ == "__main__":
    main()
