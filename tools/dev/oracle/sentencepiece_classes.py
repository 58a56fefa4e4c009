#!/usr/bin/env python3
"""Asks `transformers` for ids of texts with special tokens: tests/text/sentencepiece_classes.json.

    sentencepiece_classes.py [TOKENIZERS] [ANSWERS]

TOKENIZERS has the models: tests/data/tokenizers. Each stands alone beside a tokenizer_config.json that names its class.
Needs requirements-models5.txt beside this script, `sentencepiece` and `protobuf`.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import transformers

# Without a class, the package gives a space at the beginning no token where the model removes extra spaces.
NO_SPACES = ["the sea</s>the sea", "</s>the", "</s></s>the", "x</s>"]
TEXTS = NO_SPACES + ["the sea</s> the sea"]
SENTINELS = ["The <extra_id_0> walks in<extra_id_2>the park", "<extra_id_2><extra_id_0>x"]
# Fixture, name of its model in the folder, tokenizer_config.json, texts.
CASES = [
    ("sentencepiece_unigram", "spiece.model", {"tokenizer_class": "T5Tokenizer"}, TEXTS + SENTINELS + ["a<extra_id_99>b"]),
    ("sentencepiece_unigram", "spiece.model", {"tokenizer_class": "T5Tokenizer", "extra_ids": 3, "legacy": False}, TEXTS + SENTINELS),
    ("sentencepiece_bpe", "tokenizer.model", {"tokenizer_class": "LlamaTokenizer", "legacy": False},
     TEXTS + [" the sea</s> the sea", "a<|user|>b</s>c", "<|user|>the"]),
    ("sentencepiece_bpe_collapsed", "tokenizer.model", {"legacy": False}, NO_SPACES + ["the</s>\u2581sea"]),
    ("sentencepiece_bpe_collapsed", "tokenizer.model", {}, TEXTS),
]


def answers(fixture, file, config, texts):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(fixture / "tokenizer.model", pathlib.Path(folder, file))
        pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        package = getattr(transformers, config.get("tokenizer_class", "PreTrainedTokenizerFast")).from_pretrained(folder)
        return [{"text": text, "ids": package(text, add_special_tokens=False)["input_ids"]} for text in texts]


def main():
    fixtures = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/tokenizers")
    into = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "tests/text/sentencepiece_classes.json")
    cases = []
    for name, file, config, texts in CASES:
        lines = ",\n  ".join(json.dumps(answer) for answer in answers(fixtures / name, file, config, texts))
        cases.append(f'{{"fixture": "{name}", "file": "{file}", "config": {json.dumps(config)}, "answers": [\n  {lines}]}}')
    into.write_text("[" + ",\n".join(cases) + "]\n", encoding="ascii")


if __name__ == "__main__":
    main()
