#!/usr/bin/env python3
"""Writes a GGUF model with random weights in the size of one of our configs, of an architecture that gguf_models.py describes.

    write_gguf.py CONFIG.json Q8_0|Q4_0 OUT.gguf

Matrices are quantized if their rows have whole blocks. Vectors, the taps of convolutions and the rest are F32. There is no
vocabulary, only its size.
"""

import json
import math
import random
import struct
import sys

import gguf_models

ALIGNMENT = 32
BLOCK = gguf_models.BLOCK
F32 = 0
# Name: number in the format, number in general.file_type, bytes of the elements of a block, scale for weights of about 0.02.
QUANTS = {"Q4_0": (2, 2, 16, 0.0043), "Q8_0": (8, 7, 32, 0.00027)}
UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def entry(key, value):
    if isinstance(value, str):
        return string(key) + struct.pack("<I", STRING) + string(value)
    if isinstance(value, float):
        return string(key) + struct.pack("<If", FLOAT32, value)
    if isinstance(value, list):
        return string(key) + struct.pack(f"<IIQ{len(value)}I", ARRAY, UINT32, len(value), *value)
    return string(key) + struct.pack("<II", UINT32, value)


def quantized(shape):
    return len(shape) == 2 and shape[0] % BLOCK == 0


def data_bytes(shape, quant):
    return math.prod(shape) // BLOCK * (2 + QUANTS[quant][2]) if quantized(shape) else 4 * math.prod(shape)


def random_blocks(quant, count=1 << 14):
    _, _, size, scale = QUANTS[quant]
    elements = random.Random(1).randbytes(size * count)
    scale = struct.pack("<e", scale)
    return b"".join(scale + elements[i:i + size] for i in range(0, len(elements), size))


def header_of(entries, tensors, quant):
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(entries))
    header += b"".join(entry(key, value) for key, value in entries.items())
    offset = 0
    for name, shape in tensors.items():
        kind = QUANTS[quant][0] if quantized(shape) else F32
        header += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        offset += -(-data_bytes(shape, quant) // ALIGNMENT) * ALIGNMENT
    return header + bytes(-len(header) % ALIGNMENT)


def write(file, tensors, quant):
    blocks = random_blocks(quant)
    for name, shape in tensors.items():
        size = data_bytes(shape, quant)
        # A positive ssm_a would be a state that grows.
        pattern = blocks if quantized(shape) else struct.pack("<f", -1 if name.endswith("ssm_a") else 1) * BLOCK
        for at in range(0, size, len(pattern)):
            file.write(pattern[:size - at])
        file.write(bytes(-size % ALIGNMENT))


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in QUANTS:
        sys.exit(__doc__.strip())
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    quant = sys.argv[2]
    architecture, metadata, tensors = gguf_models.describe(config)
    entries = {"general.architecture": architecture, "general.name": "random weights", "general.file_type": QUANTS[quant][1],
               "tokenizer.ggml.model": "no_vocab", **metadata}
    with open(sys.argv[3], "wb") as file:
        file.write(header_of(entries, tensors, quant))
        write(file, tensors, quant)


if __name__ == "__main__":
    main()
