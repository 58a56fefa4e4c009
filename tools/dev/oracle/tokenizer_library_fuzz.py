#!/usr/bin/env python3
"""Compares libtarn.so with the `tokenizers` package on random texts: ids and ranges, in one process.

    tokenizer_library_fuzz.py COUNT SEED FOLDER...

COUNT texts for each FOLDER, which has tokenizer.json or tokenizer.model. Prints every difference among the first ones, and the
numbers for each folder; exit status 1 if there is a difference. Needs requirements.txt beside this script, and build/.
"""

import ctypes
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_void_p

os.environ["RUST_BACKTRACE"] = "0"
sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "tests/e2e"))

from tarn_library import LIBRARY, Error, Source  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

import sentencepiece_fixtures  # noqa: E402
import tokenizer_fuzz  # noqa: E402
import tokenizer_kinds  # noqa: E402
import tokenizer_texts  # noqa: E402

CHUNK = 1000
MARKS = tokenizer_kinds.MARKS + ["<sep>", "<|user|>", "\x01", "\u2460\u0301", "o\u0302\u0301", "\u0958\u0301"]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("no_template", c_int), ("plain", c_int), ("plain_ranges", c_void_p), ("plain_range_count", c_size_t)]


class Library:
    """A model and its tokenizer."""

    def __init__(self, path):
        self.tarn, self.error = ctypes.CDLL(str(LIBRARY)), Error()
        self.model, self.tokenizer = c_void_p(), c_void_p()
        source = Source(struct_size=ctypes.sizeof(Source), path=os.fsencode(path), fd=-1)
        self.call("tarn_model_open", byref(source), None, byref(self.model))
        self.call("tarn_tokenizer_create", self.model, None, byref(self.tokenizer))
        self.ids, self.ranges, self.count = (c_int32 * 65536)(), (c_size_t * 131072)(), c_size_t()

    def call(self, name, *arguments):
        if getattr(self.tarn, name)(*arguments, byref(self.error)) != 0:
            raise RuntimeError(self.error.message.decode())

    def encode(self, text, template, plain):
        data = text.encode()
        options = Options(ctypes.sizeof(Options), not template, plain, None, 0)
        self.call("tarn_tokenizer_begin", self.tokenizer, c_char_p(data), c_size_t(len(data)), byref(options))
        self.call("tarn_tokenizer_read", self.tokenizer, self.ids, self.ranges, c_size_t(65536), byref(self.count))
        count = self.count.value
        return self.ids[:count], [self.ranges[i : i + 2] for i in range(0, 2 * count, 2)]


def load(folder):
    """The package's tokenizer of a folder, with the vocabulary of its model file."""
    if (folder / "tokenizer.json").exists():
        return Tokenizer.from_file(str(folder / "tokenizer.json"))
    config = folder / "tokenizer_config.json"
    return sentencepiece_fixtures.convert((folder / "tokenizer.model").read_bytes(), json.loads(config.read_text()) if config.exists() else {})


def make_model(folder, vocab_size, into):
    for path in folder.iterdir():
        (into / path.name).write_bytes(path.read_bytes())
    (into / "config.json").write_text(json.dumps({**tokenizer_fuzz.CONFIG, "vocab_size": vocab_size}), encoding="ascii")
    subprocess.run(["build/bin/tarn-convert", "--random-weights", "1", into / "config.json", "-o", into / "model.tarn"], check=True,
                   stdout=subprocess.DEVNULL)
    return into / "model.tarn"


def encode(tokenizer, text, template):
    """What the package says of a text; None where it panics (a token that lies in spaces which another one takes)."""
    try:
        encoding = tokenizer.encode(text, add_special_tokens=template)
    except BaseException as error:  # pylint: disable=broad-except
        if type(error).__name__ != "PanicException":
            raise
        return None
    return encoding.ids, tokenizer_texts.byte_ranges(text, encoding.offsets)


def check(folder, count, generator):
    """The numbers of texts that were compared, and of differences."""
    tokenizer, compared, differences = load(folder), 0, 0
    with tempfile.TemporaryDirectory() as into:
        library = Library(make_model(folder, tokenizer.get_vocab_size() + 3, pathlib.Path(into)))
        for begin in range(0, count, CHUNK):
            texts = [tokenizer_texts.random_text(generator, MARKS) for _ in range(min(CHUNK, count - begin))]
            template, plain = generator.random() < 0.7, generator.random() < 0.3
            tokenizer.encode_special_tokens = plain
            for text in texts:
                expected, found = encode(tokenizer, text, template), library.encode(text, template, plain)
                compared += expected is not None
                is_different = expected is not None and found != expected
                differences += is_different
                if is_different and differences <= tokenizer_fuzz.SHOWN:
                    print(f"{folder.name}: {text!r} {template} {plain}\n  package {expected}\n  tarn    {found}")
    print(f"{folder.name}: {compared} texts, {differences} differences", flush=True)
    return compared, differences


def main():
    count, generator = int(sys.argv[1]), random.Random(int(sys.argv[2]))
    folders = [pathlib.Path(name) for name in sys.argv[3:]]
    found = [check(folder, count, generator) for folder in folders]
    compared, differences = (sum(numbers) for numbers in zip(*found))
    print(f"{compared} texts, {differences} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
