#!/usr/bin/env python3
"""Compares `tarn tokenize` with the `tokenizers` package on random texts, or on the lines of files.

    tokenizer_fuzz.py FOLDER COUNT SEED [FILE...]

FOLDER has tokenizer.json. Prints every difference among the first ones, and their number; exit status 1 if there is one. Needs
requirements.txt beside this script, and build/bin.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

import tokenizer_kinds
import tokenizer_texts

CONFIG = {"hidden_size": 8, "num_layers": 1, "num_heads": 1, "intermediate_size": 8, "hidden_act": "relu", "norm": "rmsnorm",
          "norm_eps": 1e-5, "tokenizer": "tokenizer.json", "attention": {"system": "linear_transformer"}}
SHOWN = 5


def make_model(folder, vocab_size, into):
    (into / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": vocab_size}), encoding="ascii")
    (into / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    subprocess.run(["build/bin/tarn-convert", "--random-weights", "1", into / "config.json", "-o", into / "model.tarn"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return into / "model.tarn"


def run(model, lines, *options):
    """The answers of `tarn tokenize` to lines of JSON."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        command = ["build/bin/tarn", "tokenize", model, "-f", file.name, "--jsonl", *options]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def compare(name, given, expected, found):
    differences = [i for i, (one, other) in enumerate(zip(expected, found)) if one != other]
    for i in differences[:SHOWN]:
        print(f"{name}: {json.dumps(given[i])}\n  package {json.dumps(expected[i])}\n  tarn    {json.dumps(found[i])}")
    print(f"{name}: {len(given)} compared, {len(differences) + len(expected) - len(found)} differences")
    return bool(differences) or len(expected) != len(found)


def compare_texts(tokenizer, model, texts):
    given = [{"text": text} for text in texts]
    failed = False
    for template in (True, False):
        encodings = tokenizer.encode_batch(texts, add_special_tokens=template)
        expected = [{"ids": encoding.ids, "offsets": tokenizer_texts.byte_ranges(text, encoding.offsets)}
                    for text, encoding in zip(texts, encodings)]
        failed |= compare("encode" if template else "encode --no-special", given, expected,
                          run(model, given, *([] if template else ["--no-special"])))
    return failed


def compare_ids(tokenizer, model, lists):
    given = [{"ids": ids} for ids in lists]
    failed = False
    for keep in (True, False):
        expected = [{"text": tokenizer.decode(ids, skip_special_tokens=not keep)} for ids in lists]
        options = ["--detokenize", *(["--keep-special"] if keep else [])]
        failed |= compare(" ".join(options), given, expected, run(model, given, *options))
    return failed


def main():
    folder, count, generator = pathlib.Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = [tokenizer_texts.random_text(generator, tokenizer_kinds.MARKS) for _ in range(count)]
    for file in sys.argv[4:]:
        text = pathlib.Path(file).read_text(encoding="utf-8")
        texts += [text] + text.split("\n")
    lists = [[generator.randrange(tokenizer.get_vocab_size()) for _ in range(generator.randint(0, 12))] for _ in range(count // 4)]
    with tempfile.TemporaryDirectory() as into:
        model = make_model(folder, tokenizer.get_vocab_size() + 3, pathlib.Path(into))
        failed = compare_texts(tokenizer, model, texts) | compare_ids(tokenizer, model, lists)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
