#!/usr/bin/env python3
"""Writes small vocabularies of longest strings with answers: tests/data/tokenizers/rwkv (by the `rwkv` package) and characters.

    longest_fixtures.py [FOLDER]

Needs requirements.txt beside this script.
"""

import json
import pathlib
import random
import sys

from rwkv.rwkv_tokenizer import TRIE_TOKENIZER

import tokenizer_texts

STRINGS = [" the", "the", "thou", "thou ", " and", "'s", "'ll", "\r\n", "\n\n", "  ", "    ", "na\u00efve", "caf\u00e9", "\u5317\u4eac", "1234",
           b"\xe5\x8c", b"\xf0\x9f", b"\xcc\x81\xcc", "\"'", "\\n", "<s>", "ab", "abc", "abcde"]
CHARACTERS = sorted(set("\n !\"',.0123456789<>ABCabcdefhinorstuyz\u00e9\u5317\u4eac\U0001f642"))


def whole_characters(data, begin, end):
    while begin > 0 and data[begin] & 0xC0 == 0x80:
        begin -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return [begin, end]


def rwkv_answer(tokenizer, text):
    ids = tokenizer.encode(text)
    data, at, offsets = text.encode(), 0, []
    for token in ids:
        length = len(tokenizer.idx2token[token])
        offsets.append(whole_characters(data, at, at + length))
        at += length
    return ids, offsets


def characters_answer(text):
    unknown, at, offsets = len(CHARACTERS), 0, []
    for character in text:
        offsets.append([at, at + len(character.encode())])
        at = offsets[-1][1]
    return [CHARACTERS.index(character) if character in CHARACTERS else unknown for character in text], offsets


def write(folder, name, text, answer):
    (folder / name).write_text(text, encoding="utf-8")
    generator = random.Random(name)
    lines = []
    for _ in range(60):
        given = tokenizer_texts.random_text(generator)
        ids, offsets = answer(given)
        lines.append({"text": given, "plain": False, "template": True, "ids": ids, "offsets": offsets})
    (folder / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/tokenizers")
    for name in ("rwkv", "characters"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    strings = [chr(byte) if byte < 0x80 else bytes([byte]) for byte in range(256)] + STRINGS
    lines = [f"{i} {string!r} {len(string.encode() if isinstance(string, str) else string)}\n" for i, string in enumerate(strings, 1)]
    path = folder / "rwkv" / "rwkv_vocab.txt"
    path.write_text("".join(lines), encoding="utf-8")
    tokenizer = TRIE_TOKENIZER(str(path))
    write(folder / "rwkv", path.name, "".join(lines), lambda text: rwkv_answer(tokenizer, text))
    listed = json.dumps([*CHARACTERS, "<unk>"], ensure_ascii=False) + "\n"
    write(folder / "characters", "characters.json", listed, characters_answer)


if __name__ == "__main__":
    main()
