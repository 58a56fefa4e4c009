"""Reads and writes .safetensors of float32 and int32 numpy arrays."""

import json
import os
import pathlib
import struct

import numpy

DTYPES = {"F32": "<f4", "I32": "<i4"}


def write_atomically(path, data):
    part = pathlib.Path(f"{path}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # else a power cut could leave the new name with nothing in it
    os.replace(part, path)


def write_safetensors(path, tensors):
    header, pieces, end = {}, [], 0
    for name, tensor in tensors.items():
        dtype = "I32" if tensor.dtype.kind == "i" else "F32"
        piece = numpy.ascontiguousarray(tensor, dtype=DTYPES[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [end, end + len(piece)]}
        pieces.append(piece)
        end += len(piece)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_atomically(path, struct.pack("<Q", len(text)) + text + b"".join(pieces))


def read_safetensors(path):
    """name -> array"""
    raw = pathlib.Path(path).read_bytes()
    begin = 8 + struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:begin])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        tensors[name] = numpy.frombuffer(raw[begin + first : begin + last], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
