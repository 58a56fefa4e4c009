"""Golden files from equations in f64, with nothing but the standard library: random inputs in f32, sums, and the file format."""

import json
import math
import struct


def write(path, case, family, attributes, chunks, tensors):
    """tensors: name -> nested lists of numbers."""
    header = {"__metadata__": {"case": case, "family": family, "system": attributes.pop("system"),
                               "attributes": json.dumps(attributes), "chunks": json.dumps(chunks),
                               "tolerance": json.dumps({"abs": 1e-5, "rel": 5e-5, "state": {"abs": 2e-5, "rel": 5e-5}})}}
    data = b""
    for name, values in tensors.items():
        shape, flat = [], values
        while isinstance(flat, list):
            shape.append(len(flat))
            flat = flat[0]
        flat = values
        for _ in shape[1:]:
            flat = [x for row in flat for x in row]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(flat)]}
        data += struct.pack(f"<{len(flat)}f", *flat)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def f32(values):
    return [f32(x) for x in values] if isinstance(values, list) else struct.unpack("<f", struct.pack("<f", values))[0]


def matrix(rng, *shape, scale=1.0):
    return [matrix(rng, *shape[1:], scale=scale) for _ in range(shape[0])] if shape else f32(rng.gauss(0, scale))


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [x / math.fsum(weights) for x in weights]
