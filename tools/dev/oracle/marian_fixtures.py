#!/usr/bin/env python3
"""Writes tests/data/families/marian_nmt_*: small models in Marian's own files, and their logits.

    marian_fixtures.py [NAME...]

The logits come from the forward pass below, in float64. It is this project's own, written after the sources of Marian
(src/models/transformer.h, src/rnn/cells.h, src/graph/node_initializers.cpp); marian_check.py compares it with Marian itself.
Every parameter is random, and a number that its stored type holds. Needs numpy, safetensors
and sentencepiece 0.2.1.
"""

import io
import pathlib
import struct
import sys

import numpy as np
import safetensors.numpy
import sentencepiece

FIXTURES = pathlib.Path(__file__).resolve().parents[3] / "tests/data/families"
TOKENS, SOURCE = 200, 150
FLOAT32, INT8, INTGEMM8 = 0x404, 0x101, 0x4101

# What Marian writes of a student into special:model.yml, in its order.
OPTIONS = {
    "bert-train-type-embeddings": True, "bert-type-vocab-size": 2, "dec-cell": "ssru", "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1, "dec-depth": 2, "dim-emb": 24, "dim-rnn": 1024, "dim-vocabs": [41, 41], "enc-cell": "gru",
    "enc-cell-depth": 1, "enc-depth": 2, "enc-type": "bidirectional", "factors-combine": "sum", "factors-dim-emb": 0,
    "input-types": [], "layer-normalization": False, "lemma-dependency": "", "lemma-dim-emb": 0, "output-omit-bias": False,
    "right-left": False, "skip": False, "special-vocab": [], "tied-embeddings": False, "tied-embeddings-all": True,
    "tied-embeddings-src": False, "transformer-aan-activation": "swish", "transformer-aan-depth": 2,
    "transformer-aan-nogate": False, "transformer-decoder-autoreg": "rnn", "transformer-decoder-dim-ffn": 0,
    "transformer-decoder-ffn-depth": 0, "transformer-depth-scaling": False, "transformer-dim-aan": 2048, "transformer-dim-ffn": 40,
    "transformer-ffn-activation": "relu", "transformer-ffn-depth": 2, "transformer-guided-alignment-layer": "last",
    "transformer-heads": 3, "transformer-no-projection": False, "transformer-pool": False, "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d", "transformer-postprocess-top": "", "transformer-preprocess": "",
    "transformer-rnn-projection": False, "transformer-tied-layers": [], "transformer-train-position-embeddings": False, "type": "transformer",
    "ulr": False, "ulr-dim-emb": 0, "ulr-trainable-transformation": False, "version": "v1.12.0 65bf82ff 2023-02-21 09:56:29 -0800",
}  # fmt: skip

# name -> (options that differ, file, whether matrices have 8 bits)
CASES = {
    "marian_nmt_a": ({}, "model.npz", False),
    "marian_nmt_b": ({
        "transformer-decoder-autoreg": "self-attention", "dec-depth": 3, "transformer-tied-layers": [1, 2, 1], "dim-vocabs": [37, 41],
        "tied-embeddings-all": False, "transformer-ffn-activation": "swish", "transformer-postprocess": "nda",
        "transformer-postprocess-emb": "nd", "transformer-postprocess-top": "n", "dec-cell": "gru"}, "model.ende.bin", False),
    "marian_nmt_c": ({
        "dim-emb": 32, "transformer-heads": 4, "enc-depth": 3, "dec-depth": 1, "tied-embeddings-all": False, "tied-embeddings-src": True,
        "transformer-no-projection": True, "output-omit-bias": True}, "model.ende.intgemm.alphas.bin", True),
}  # fmt: skip


def yaml(options):
    lines = []
    for key in sorted(options):
        value = options[key]
        if isinstance(value, list):
            lines += [f"{key}:"] + ([f"  - {item}" for item in value] or ["  []"])
        else:
            lines.append(f"{key}: " + (str(value).lower() if isinstance(value, bool) else str(value) if value != "" else '""'))
    return "\n".join(lines)


def shapes(o):
    """The parameters of a model, by name."""
    d, inner = o["dim-emb"], o["transformer-dim-ffn"]
    made = {}

    def dense(name, number, rows, columns):
        made[f"{name}_W{number}"], made[f"{name}_b{number}"] = (rows, columns), (1, columns)

    def norm(name, ending=""):
        made[f"{name}_ln_scale{ending}"] = made[f"{name}_ln_bias{ending}"] = (1, d)

    def attention(name):
        for letter in "qkv" + ("" if o["transformer-no-projection"] else "o"):
            dense(name, letter, d, d)
        norm(name + "_Wo")

    def mlp(name):
        dense(name, "1", d, inner)
        dense(name, "2", inner, d)
        norm(name + "_ffn")

    for i in range(1, o["enc-depth"] + 1):
        attention(f"encoder_l{i}_self")
        mlp(f"encoder_l{i}_ffn")
    for i in set(o["transformer-tied-layers"] or range(1, o["dec-depth"] + 1)):
        name = f"decoder_l{i}"
        if o["transformer-decoder-autoreg"] == "rnn":
            made[name + "_rnn_W"] = (d, d)
            dense(name + "_rnn", "f", d, d)
            norm(name + "_rnn_ffn")
        else:
            attention(name + "_self")
        attention(name + "_context")
        mlp(name + "_ffn")
    for side in "encoder", "decoder":
        if "n" in o["transformer-postprocess-emb"]:
            norm(side + "_emb", "_pre")
        if "n" in o["transformer-postprocess-top"]:
            norm(side + "_top")
    source, target = o["dim-vocabs"]
    if o["tied-embeddings-all"] or o["tied-embeddings-src"]:
        made["Wemb"] = (target, d)
    else:
        made["encoder_Wemb"], made["decoder_Wemb"] = (source, d), (target, d)
    if not (o["tied-embeddings-all"] or o["tied-embeddings"]):
        made["decoder_ff_logit_out_Wt"] = (target, d)
    if not o["output-omit-bias"]:
        made["decoder_ff_logit_out_b"] = (1, target)
    return made


def random_parameters(options, seed):
    generator = np.random.default_rng(seed)
    parameters = {}
    for name, shape in shapes(options).items():
        values = generator.standard_normal(shape)
        if shape[0] > 1:
            values /= np.sqrt(shape[1] if "emb" in name or name.endswith("_Wt") else shape[0])
        else:
            values = 0.2 * values + (1 if "_ln_scale" in name else 0)
        parameters[name] = values.astype(np.float32)
    return parameters


def quantized(values):
    """The integers of intgemm8, and what they were multiplied by."""
    multiplier = np.float32(127) / np.abs(values).max()
    return np.clip(np.rint(values * multiplier), -127, 127).astype(np.int8), multiplier


def has_8_bits(name):
    return "Wemb" in name or name[-3:-1] == "_W" or name[-2:] == "_W" or name[-3:] == "_Wt"


def dequantized(parameters):
    made = dict(parameters)
    for name in filter(has_8_bits, parameters):
        integers, multiplier = quantized(parameters[name])
        made[name] = integers.astype(np.float32) * (np.float32(1) / multiplier)
    return made


def write_npz(path, parameters, options):
    text = np.frombuffer(yaml(options).encode() + b"\0", np.int8)
    np.savez(path, **parameters, **{"special:model.yml": text})


def write_bin(path, parameters, options, eight_bits):
    items = []
    for name, values in sorted(parameters.items()):
        if eight_bits and has_8_bits(name):
            integers, multiplier = quantized(values)
            stored = integers if "Wemb" in name else integers.T
            data = np.ascontiguousarray(stored).tobytes() + struct.pack("<f", multiplier)
            items.append((name, INTGEMM8, values.shape, data))
            items.append((name + "_QuantMultA", FLOAT32, (1, 1), struct.pack("<f", 20)))
        else:
            items.append((name, FLOAT32, values.shape, values.tobytes()))
    text = yaml(options).encode() + b"\0"
    items.append(("special:model.yml", INT8, (len(text),), text))
    items = [(name, kind, shape, data + bytes(-len(data) % 256)) for name, kind, shape, data in items]  # as its allocator does
    head = struct.pack("<QQ", 1, len(items))
    head += b"".join(struct.pack("<QQQQ", len(name) + 1, kind, len(shape), len(data)) for name, kind, shape, data in items)
    head += b"".join(name.encode() + b"\0" for name, *_ in items)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    padding = 256 - (len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", padding) + bytes(padding) + b"".join(item[3] for item in items))


class Model:
    """Marian's forward pass, for one sentence."""

    def __init__(self, parameters, options):
        self.p = {name: values.astype(np.float64) for name, values in parameters.items()}
        self.o = options

    def dense(self, x, name, number=""):
        return x @ self.p[f"{name}_W{number}"] + self.p[f"{name}_b{number}"][0]

    def norm(self, x, name, ending=""):
        centred = x - x.mean(-1, keepdims=True)
        sigma = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6)
        return centred / sigma * self.p[f"{name}_ln_scale{ending}"][0] + self.p[f"{name}_ln_bias{ending}"][0]

    def process(self, steps, name, x, before=None, ending=""):
        for step in steps:
            if step == "a":
                x = x + before
            if step == "n":
                x = self.norm(x, name, ending)
        return x

    def residual(self, name, x, before):
        return self.process(self.o["transformer-postprocess"], name, x, before)

    def attention(self, name, x, keys, causal):
        heads = self.o["transformer-heads"]

        def split(rows):
            return rows.reshape(len(rows), heads, -1).transpose(1, 0, 2)

        q, k, v = split(self.dense(x, name, "q")), split(self.dense(keys, name, "k")), split(self.dense(keys, name, "v"))
        z = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        if causal:
            z = np.where(np.tril(np.ones(z.shape[1:], bool)), z, -np.inf)
        weights = np.exp(z - z.max(-1, keepdims=True))
        out = (weights / weights.sum(-1, keepdims=True)) @ v
        out = out.transpose(1, 0, 2).reshape(len(x), -1)
        if not self.o["transformer-no-projection"]:
            out = self.dense(out, name, "o")
        return self.residual(name + "_Wo", out, x)

    def ssru(self, name, x):
        inputs, gates = x @ self.p[name + "_W"], 1 / (1 + np.exp(-self.dense(x, name, "f")))
        cell, out = np.zeros(x.shape[1]), []
        for row, gate in zip(inputs, gates):
            cell = gate * cell + (1 - gate) * row
            out.append(np.maximum(cell, 0))
        return self.residual(name + "_ffn", np.array(out), x)

    def mlp(self, name, x):
        hidden = self.dense(x, name, "1")
        hidden = np.maximum(hidden, 0) if self.o["transformer-ffn-activation"] == "relu" else hidden / (1 + np.exp(-hidden))
        return self.residual(name + "_ffn", self.dense(hidden, name, "2"), x)

    def embed(self, side, rows):
        d = self.o["dim-emb"]
        angles = np.outer(np.arange(len(rows)), np.exp(np.arange(d // 2) * -np.log(10000) / (d // 2 - 1)))
        rows = np.sqrt(d) * rows + np.concatenate([np.sin(angles), np.cos(angles)], -1)
        return self.process(self.o["transformer-postprocess-emb"], side + "_emb", rows, ending="_pre")

    def table(self, side):
        return self.p["Wemb" if "Wemb" in self.p else side + "_Wemb"]

    def top(self, side, x):
        return self.process(self.o["transformer-postprocess-top"], side + "_top", x)

    def encode(self, source):
        x = self.embed("encoder", self.table("encoder")[source])
        for i in range(1, self.o["enc-depth"] + 1):
            x = self.attention(f"encoder_l{i}_self", x, x, causal=False)
            x = self.mlp(f"encoder_l{i}_ffn", x)
        return self.top("encoder", x)

    def logits(self, source, target):
        """Of every token of the target and the one behind it: it begins with a row of zeros."""
        context = self.encode(source)
        rows = np.concatenate([np.zeros((1, self.o["dim-emb"])), self.table("decoder")[target]])
        x = self.embed("decoder", rows)
        for i in self.o["transformer-tied-layers"] or range(1, self.o["dec-depth"] + 1):
            name = f"decoder_l{i}"
            if self.o["transformer-decoder-autoreg"] == "rnn":
                x = self.ssru(name + "_rnn", x)
            else:
                x = self.attention(name + "_self", x, x, causal=True)
            x = self.attention(name + "_context", x, context, causal=False)
            x = self.mlp(name + "_ffn", x)
        x = self.top("decoder", x)
        tied = self.o["tied-embeddings-all"] or self.o["tied-embeddings"]
        logits = x @ (self.table("decoder") if tied else self.p["decoder_ff_logit_out_Wt"]).T
        return logits if self.o["output-omit-bias"] else logits + self.p["decoder_ff_logit_out_b"][0]


def write_vocabulary(path):
    """Small enough for the first model; as Firefox's, it has the end of a text as id 0."""
    words = "the old man and the sea is a short story that he had read on the road to the north and then told to all of us".split()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(words[i:] + words[:i]) for i in range(len(words))]), model_writer=model, vocab_size=40,
        hard_vocab_limit=False, normalization_rule_name="identity", character_coverage=1.0, eos_id=0, unk_id=1, bos_id=-1,
        pad_id=-1, minloglevel=2)  # fmt: skip
    path.write_bytes(model.getvalue())
    ids = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).encode("the old sea")
    print("ids of 'the old sea':", *ids, 0)


def write(name, seed):
    changes, file, eight_bits = CASES[name]
    options = {**OPTIONS, **changes}
    parameters = random_parameters(options, seed)
    folder = FIXTURES / name
    folder.mkdir(exist_ok=True)
    if file.endswith(".npz"):
        write_npz(folder / file, parameters, options)
        write_vocabulary(folder / "vocab.ende.spm")
    else:
        write_bin(folder / file, parameters, options, eight_bits)
    generator = np.random.default_rng(seed + 1000)
    source, target = (generator.integers(2, size, count) for size, count in zip(options["dim-vocabs"], (SOURCE, TOKENS - 1)))
    logits = Model(dequantized(parameters) if eight_bits else parameters, options).logits(source, target)
    start = options["dim-vocabs"][1]  # the token that stands for the row of zeros
    tensors = {"input_ids": source.astype(np.int32), "decoder_input_ids": np.array([start, *target], np.int32),
               "logits": logits.astype(np.float32)}
    safetensors.numpy.save_file(tensors, folder / "expected.safetensors")
    print(f"{name:<14} {sum(values.size for values in parameters.values()):>7} parameters, logits within {np.abs(logits).max():.2f}")


if __name__ == "__main__":
    for number, case in enumerate(CASES):
        if not sys.argv[1:] or case in sys.argv[1:]:
            write(case, 200 + number)
