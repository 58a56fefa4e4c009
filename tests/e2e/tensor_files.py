"""Reads and writes .safetensors (F32, F16, BF16, I32, I64) and .npy (float32, int32), with the standard library alone.

The readers are strict: what the format does not promise is a ValueError.
"""

import array
import ast
import json
import math
import pathlib
import struct
import sys
import typing

assert sys.byteorder == "little" and array.array("i").itemsize == 4

ELEMENT_BYTES = {"F32": 4, "I32": 4, "I64": 8, "F16": 2, "BF16": 2}


class Tensor(typing.NamedTuple):
    dtype: str
    shape: tuple
    values: typing.Sequence  # row-major, numbers


def _decode(dtype, data):
    if dtype == "F16":
        return array.array("d", struct.unpack(f"<{len(data) // 2}e", data))
    if dtype == "BF16":  # the upper half of an F32
        return array.array("f", b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2)))
    return array.array({"F32": "f", "I32": "i", "I64": "q"}[dtype], data)


def _encode(dtype, values):
    if dtype == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    if dtype == "BF16":  # to nearest, ties to even
        bits = array.array("I", array.array("f", values).tobytes())
        return array.array("H", [(b + 0x7FFF + (b >> 16 & 1)) >> 16 for b in bits]).tobytes()
    return array.array({"F32": "f", "I32": "i", "I64": "q"}[dtype], values).tobytes()


def rounded(tensor):
    """The tensor as a reader of the file will see it."""
    return tensor._replace(values=_decode(tensor.dtype, _encode(tensor.dtype, tensor.values)))


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        if len(tensor.values) != math.prod(tensor.shape):
            raise ValueError(f"{name}: {len(tensor.values)} values for the shape {tensor.shape}")
        piece = _encode(tensor.dtype, tensor.values)
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """name -> Tensor"""
    raw = pathlib.Path(path).read_bytes()
    length = struct.unpack_from("<Q", raw)[0]
    if 8 + length > len(raw):
        raise ValueError(f"{path}: header length {length} is past the end")
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    header.pop("__metadata__", None)
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape, (begin, stop) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        if begin != end or stop - begin != math.prod(shape) * ELEMENT_BYTES[dtype]:
            raise ValueError(f"{path}: {name}: offsets {begin}, {stop} do not fit {dtype} {shape} after {end}")
        tensors[name], end = Tensor(dtype, shape, _decode(dtype, data[begin:stop])), stop
    if end != len(data):
        raise ValueError(f"{path}: {len(data) - end} bytes belong to no tensor")
    return tensors


def read_checkpoint_tensors(folder):
    """name -> Tensor, from model.safetensors or from the shards of model.safetensors.index.json."""
    folder = pathlib.Path(folder)
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return read_safetensors(folder / "model.safetensors")
    tensors = {}
    for file in sorted(set(json.loads(index.read_text())["weight_map"].values())):
        tensors.update(read_safetensors(folder / file))
    return tensors


def write_npy_i32(path, values):
    header = repr({"descr": "<i4", "fortran_order": False, "shape": (len(values),)}).encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    data = array.array("i", values).tobytes()
    pathlib.Path(path).write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data)


def read_npy_f32(path):
    """The rows of a two-dimensional float32 file."""
    raw = pathlib.Path(path).read_bytes()
    if raw[:8] != b"\x93NUMPY\1\0":
        raise ValueError(f"{path}: no .npy file of version 1.0")
    begin = 10 + struct.unpack_from("<H", raw, 8)[0]
    header = ast.literal_eval(raw[10:begin].decode("latin-1"))
    rows, columns = header["shape"]
    if header["descr"] != "<f4" or header["fortran_order"] or begin % 64 or len(raw) - begin != 4 * rows * columns:
        raise ValueError(f"{path}: unexpected header {header} before {len(raw) - begin} bytes")
    values = array.array("f", raw[begin:])
    return [values[i * columns : (i + 1) * columns] for i in range(rows)]
