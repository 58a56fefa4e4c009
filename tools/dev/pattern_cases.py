#!/usr/bin/env python3
"""Writes tests/text/pattern_cases.json: how the `tokenizers` package splits random texts at the patterns of known tokenizers.

    pattern_cases.py [--texts N] [-o FILE]

Installs the package from PyPI, at the version below, into a folder of its own. For a long comparison, write a larger file and give it
to the test: TARN_PATTERN_CASES=FILE build/tests/test_text --gtest_filter='Pattern*'.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = "tokenizers==0.23.3"
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]  # numbers of SplitBehavior
CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = [
    CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # GPT-2, GPT-NeoX
    rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}",  # Llama-3
    rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}",  # Qwen2, Qwen3
    rf"(?i:{CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{SPACES}",  # Qwen3.5
    r"[\r\n]", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", "[一-龥ࠀ-一가-퟿]+",  # DeepSeek
    r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",  # DeepSeek-V3, with the next one
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|" + SPACES,
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES,
    r"[\p{Lu}\p{Lo}\p{M}&&[^\p{Han}]]+|\p{Han}|[^\p{L}]",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",  # BLOOM
    r"\w+|[^\w\s]+", r"[\w.]+", r"\W|_", r"\d+", " ", r"[0-9][0-9][0-9]",
    r"a|ab|abc", r"(?:ab|a)(?:c|bcd)?", r"a*?b|a+", r"a{2,3}?|b{,2}a", r"(?i:[a-k]+)|(?i:\x{17F})", r"x*", r"a??b", r".+", r"(?m:.)+",
    r"a+$|\s\z", r"\p{L}+(?=\p{N}|$)|\p{^L}", r"[^\S\n]+|\n(?!\n)", r"[a-c&&b-z]+|[]x]", r"(?<word>\p{L}\p{M}*)+", r"\h{2}|\H",
]
CHARACTERS = (list("abzABZ  \n\r\t'''sSſtTreRVelLdDmM0129²½Ⅷ.,!?-_(){}[]/…。，、\u0085\u00a0\u200b\u3000\u180e\u200d\u200cÄäßǅʰ漢字ひカ한") +
              list("é\u0301\u0327\u093f\u20ddΩωİı\u212a١०。۔،$€+<😀🇩👍🏽\U0001d400\U000e0001ﬁ\ufffd\x00\x1c\x7f\ue000\u0378Ⓐ龥一가‘！\u2028\u2029\u00adxcd"))


def random_text(generator):
    length = generator.choice([1, 2, 3, 5, 8, 13, 21])
    kind = generator.random()
    if kind < 0.1:
        points = [generator.randrange(0x20, generator.choice([0x80, 0x3000, 0x110000])) for _ in range(length)]
        return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)
    pool = generator.sample(CHARACTERS, 4) if kind < 0.3 else CHARACTERS
    return "".join(generator.choice(pool) for _ in range(length))


def cases(texts, generator):
    from tokenizers import Regex, pre_tokenizers
    for pattern in PATTERNS:
        found = []
        for _ in range(texts):
            behavior, invert = generator.choice(BEHAVIORS + ["isolated"] * 3), generator.random() < 0.3
            text = random_text(generator)
            starts = [0]
            for character in text:
                starts.append(starts[-1] + len(character.encode()))
            pieces = pre_tokenizers.Split(Regex(pattern), behavior, invert=invert).pre_tokenize_str(text)
            ends = [[starts[begin], starts[end]] for _, (begin, end) in pieces]
            found.append([BEHAVIORS.index(behavior), int(invert), text, ends])
        yield {"pattern": pattern, "cases": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=25, help="random texts for each pattern")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "tests/text/pattern_cases.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, PACKAGE], check=True)
        sys.path.insert(0, folder)
        rows = [json.dumps(row, ensure_ascii=True) for row in cases(arguments.texts, random.Random(1))]
    arguments.output.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
