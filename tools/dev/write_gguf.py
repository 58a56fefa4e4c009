#!/usr/bin/env python3
"""Writes a GGUF model with random weights: the llama architecture in the size of one of our configs.

    write_gguf.py CONFIG.json Q8_0|Q4_0 OUT.gguf

Llama's feed-forward layers have three matrices where our configs' have two: they are made two thirds as wide, so that both models
have the same number of parameters. Embedding and head share their weights, as in the configs. There is no vocabulary, only its
size.
"""

import json
import random
import struct
import sys

ALIGNMENT = 32
BLOCK = 32  # elements that share a scale
F32 = 0
# Name: number in the format, number in general.file_type, bytes of the elements of a block, scale for weights of about 0.02.
QUANTS = {"Q4_0": (2, 2, 16, 0.0043), "Q8_0": (8, 7, 32, 0.00027)}
UINT32, FLOAT32, STRING = 4, 6, 8


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def entry(key, value):
    if isinstance(value, str):
        return string(key) + struct.pack("<I", STRING) + string(value)
    if isinstance(value, float):
        return string(key) + struct.pack("<If", FLOAT32, value)
    return string(key) + struct.pack("<II", UINT32, value)


def feed_forward_width(config):
    return round(config["intermediate_size"] * 2 / 3 / BLOCK) * BLOCK


def metadata(config, quant):
    heads = config["num_heads"]
    return {
        "general.architecture": "llama",
        "general.name": "random weights",
        "general.file_type": QUANTS[quant][1],
        "llama.vocab_size": config["vocab_size"],
        "llama.context_length": 1 << 20,
        "llama.embedding_length": config["hidden_size"],
        "llama.block_count": config["num_layers"],
        "llama.feed_forward_length": feed_forward_width(config),
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": heads,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": config["hidden_size"] // heads,
        "tokenizer.ggml.model": "no_vocab",
    }


def tensors(config):
    """Name and shape, inputs first; one dimension: a vector of ones."""
    width, inner = config["hidden_size"], feed_forward_width(config)
    yield "token_embd.weight", (width, config["vocab_size"])
    yield "output_norm.weight", (width,)
    for layer in range(config["num_layers"]):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", (width,)
        for name in "attn_q", "attn_k", "attn_v", "attn_output":
            yield f"{block}{name}.weight", (width, width)
        yield block + "ffn_norm.weight", (width,)
        yield block + "ffn_gate.weight", (width, inner)
        yield block + "ffn_up.weight", (width, inner)
        yield block + "ffn_down.weight", (inner, width)


def data_bytes(shape, quant):
    return 4 * shape[0] if len(shape) == 1 else shape[0] * shape[1] // BLOCK * (2 + QUANTS[quant][2])


def random_blocks(quant, count=1 << 14):
    _, _, size, scale = QUANTS[quant]
    elements = random.Random(1).randbytes(size * count)
    scale = struct.pack("<e", scale)
    return b"".join(scale + elements[i:i + size] for i in range(0, len(elements), size))


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in QUANTS:
        sys.exit(__doc__.strip())
    with open(sys.argv[1], encoding="utf-8") as file:
        config = json.load(file)
    quant = sys.argv[2]
    entries = metadata(config, quant)
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(list(tensors(config))), len(entries))
    header += b"".join(entry(key, value) for key, value in entries.items())
    offset = 0
    for name, shape in tensors(config):
        kind = F32 if len(shape) == 1 else QUANTS[quant][0]
        header += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        offset += -(-data_bytes(shape, quant) // ALIGNMENT) * ALIGNMENT
    blocks = random_blocks(quant)
    with open(sys.argv[3], "wb") as file:
        file.write(header + bytes(-len(header) % ALIGNMENT))
        for _, shape in tensors(config):
            size = data_bytes(shape, quant)
            pattern = struct.pack("<f", 1) if len(shape) == 1 else blocks
            for at in range(0, size, len(pattern)):
                file.write(pattern[:size - at])
            file.write(bytes(-size % ALIGNMENT))


if __name__ == "__main__":
    main()
