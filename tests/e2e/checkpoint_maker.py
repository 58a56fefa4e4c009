"""Makes small checkpoint folders with random weights, from a config.json alone."""

import json
import math
import pathlib
import random

import tensor_files
from lm_config import tensor_shapes
from reference_layers import BLOCK, rounded_weights
from tensor_files import Tensor


def random_tensors(config, seed, dtypes=("F32",)):
    """name -> Tensor as a reader of the file will see it; `dtypes` take turns. No bias is 0 and no norm is 1, as those of a fresh
    model: every one of them has to be in its place for the logits to come out right."""
    generator = random.Random(seed)
    tensors = {}
    for i, (name, shape) in enumerate(tensor_shapes(config).items()):
        mean, deviation = 0.0, 1 / math.sqrt(shape[-1])  # linear layers: N(0, 1 / fan_in)
        if "norm." in name:
            mean, deviation = (1.0, 0.2) if name.endswith("weight") else (0.0, 0.2)
        elif name.endswith("g_proj.bias"):
            mean, deviation = 2.0, 1.0  # a forget gate that remembers some ten tokens
        elif name.endswith("bias"):
            deviation = 0.3
        elif name.endswith("sigma"):
            mean, deviation = 1.0, 0.3
        elif name.endswith("random_matrix"):
            deviation = 1.0
        elif name.endswith("control_proj.weight"):
            deviation *= 2
        values = [generator.gauss(mean, deviation) for _ in range(math.prod(shape))]
        tensors[name] = tensor_files.rounded(Tensor(dtypes[i % len(dtypes)], shape, values))
    return tensors


def int4_tensors(tensors):
    """The same in F32, with matrices of dense layers and embeddings rounded to what int4 can store."""
    rounded = {}
    for name, tensor in tensors.items():
        values = list(tensor.values)
        if name.endswith("_proj.weight") or name in ("model.embeddings.weight", "lm_head.weight"):
            columns = tensor.shape[-1]
            rows = (values[i : i + columns] for i in range(0, len(values), columns))
            values = [w for row in rows for w in (rounded_weights(row, "int4") if columns % BLOCK == 0 else row)]
        rounded[name] = Tensor("F32", tensor.shape, values)
    return rounded


def write_checkpoint(folder, config, tensors, shards=1):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    if shards == 1:
        tensor_files.write_safetensors(folder / "model.safetensors", tensors)
        return
    names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
    weight_map = {tensor: names[i % shards] for i, tensor in enumerate(tensors)}
    for file in names:
        tensor_files.write_safetensors(folder / file, {t: tensors[t] for t in tensors if weight_map[t] == file})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
