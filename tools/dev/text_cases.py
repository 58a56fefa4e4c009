#!/usr/bin/env python3
"""Writes tests/text/pattern_cases.json and normalize_cases.json: how the `tokenizers` package splits random texts at the patterns of
known tokenizers, and how it normalizes them.

    text_cases.py [--texts N] [--seed N] [-o FOLDER]

Installs the package from PyPI, at the version below, into a folder of its own. For a long comparison, write larger files and give the
folder to the tests: TARN_TEXT_CASES=FOLDER build/tests/test_text --gtest_filter='Pattern*:Normalize*'.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools/dev/oracle"))
from charsmaps import REPLACED, charsmap, few  # noqa: E402

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
    r"a+$|\s\z", r"a*b|a", r"a(?:aa)*b|a", r"\s+\d|\s\s", r"\p{L}+(?=\p{N}|$)|\p{^L}", r"[^\S\n]+|\n(?!\n)", r"[a-c&&b-z]+|[]x]", r"(?<word>\p{L}\p{M}*)+", r"\h{2}|\H",
]
CHARACTERS = (list("abzABZ  \n\r\t'''sSſtTreRVelLdDmM0129²½Ⅷ.,!?-_(){}[]/…。，、\u0085\u00a0\u200b\u3000\u180e\u200d\u200cÄäßǅʰ漢字ひカ한") +
              list("é\u0301\u0327\u093f\u20ddΩωİı\u212a١०。۔،$€+<😀🇩👍🏽\U0001d400\U000e0001ﬁ\ufffd\x00\x1c\x7f\ue000\u0378Ⓐ龥一가‘！\u2028\u2029\u00adxcd"))


# Names of NormalizerStep's kinds; kPrepend and kReplace with their texts.
NORMALIZERS = [
    ["NFC"], ["NFD"], ["NFKC"], ["NFKD"], ["Lowercase"], ["StripAccents"], [["Prepend", "xyz"]], [["Replace", " ", "\u2581"]],
    [["Replace", "aa", "b\u0301cd"]], [["Replace", "ab", ""]], ["NFD", "Lowercase", "StripAccents"], ["NFKC", "Lowercase"],
    [["Replace", "``", '"'], "NFKD", "StripAccents", "Lowercase"], [["Prepend", "\u2581"], ["Replace", " ", "\u2581"]],
    ["NFD", "StripAccents", "NFC"], ["Lowercase", "NFC"], [["Replace", "e", "\u00e9"], "NFC"], ["NFC", ["Prepend", "\u00e9"], "NFD"],
]
SPACES_AND_CONTROLS = list("    \t\n\r\x0b\x1c\x85\u00a0\u2003\u3000\u200b\ufeff\x00\x07\u2028\u2581\u0301\u1680\ufffd\u4e00\U0002b81e")


def charsmap_normalizers():
    from tokenizers import Regex, normalizers as n
    small = n.Precompiled(few())
    leads = n.Precompiled(charsmap({bytes([byte]): "Z" for byte in range(0xC2, 0xF5)} | {b"a": "bcd", b"\x07": ""}))
    runs = n.Replace(Regex(" {2,}"), "\u2581")
    return [small, leads, n.Sequence([small, n.Strip(left=False), runs]), n.Sequence([small, n.Strip(), n.Prepend("\u2581")]),
            n.Sequence([n.Replace("e", "\x01"), n.NFD(), small, n.Lowercase(), n.StripAccents()])]


def more_normalizers():
    """Those that are read from tokenizer.json as they stand there."""
    from tokenizers import Regex, normalizers as n
    runs = n.Replace(Regex(" {2,}"), "\u2581")
    return [n.BertNormalizer(), n.BertNormalizer(lowercase=False), n.BertNormalizer(strip_accents=False), n.Nmt(), n.Strip(), runs,
            n.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False),
            n.Strip(left=False), n.Strip(right=False), n.Sequence([n.Strip(left=False), runs]),
            n.Replace(Regex(r"[^\p{L} ](?=a|b)|\s"), "-x"), n.Replace(Regex(r"\s+(?!\S)"), "_"), n.Replace(Regex("[^a-zA-Z]"), ""),
            n.Replace(Regex("ab|a[bz]?B|s$"), "e\u0301"), n.Sequence([n.Nmt(), n.Strip(), n.NFKC()]),
            n.Sequence([n.Strip(), n.Replace("a", ""), n.Strip(), n.Replace("b", " "), n.Strip(left=False)]),
            n.Sequence([n.StripAccents(), n.Strip(right=False), n.Prepend("\u2581"), n.Replace(" ", "\u2581")]),
            n.Sequence([n.NFD(), n.Replace(Regex(r"\p{M}"), ""), n.Lowercase(), n.NFC(), n.Strip()])]


# Marks of many combining classes, characters that compose and decompose in unusual ways, those that came after Unicode 9.0.
MARKED = list("aeiouAEIOUsSKÅÅéèÉİıΣςßﬁﬃ①½Ⅷ²ǅ豈ﷺﷲ가각힣ㄱ々｡ﾞｶﾞ") + [chr(point) for point in (
    0x300, 0x301, 0x302, 0x303, 0x307, 0x308, 0x315, 0x31B, 0x323, 0x327, 0x328, 0x334, 0x338, 0x340, 0x341, 0x343, 0x344, 0x345, 0x591,
    0x5B0, 0x5BC, 0x5BF, 0x64B, 0x651, 0x653, 0x654, 0x670, 0x897, 0x93C, 0x94D, 0x9BE, 0x9C7, 0x9D7, 0xB3E, 0xB47, 0xB56, 0xBC6, 0xBD7,
    0xCC6, 0xCD5, 0xD46, 0xD57, 0xDCA, 0xDCF, 0xDD9, 0xDDF, 0xE38, 0xF71, 0xF72, 0xF73, 0xF74, 0xF80, 0xF81, 0x1025, 0x102E, 0x1037,
    0x1100, 0x1161, 0x11A7, 0x11A8, 0x1AB0, 0x1ABF, 0x1B06, 0x1B35, 0x1C88, 0x1DC0, 0x1DF5, 0x1E9B, 0x1F80, 0x1FBC, 0x20D0, 0x20DD,
    0x2126, 0x212A, 0x212B, 0x2ADC, 0x3099, 0x309A, 0x304B, 0x30CF, 0x32FF, 0xA64B, 0xFB1D, 0xFB1E, 0xFB2C, 0x105D2, 0x10C80, 0x10D50,
    0x11099, 0x110BA, 0x113B8, 0x113C5, 0x16AF0, 0x16EA0, 0x1D15E, 0x1D165, 0x1D16E, 0x1E131, 0x1E900, 0x1E943, 0x1E94A, 0x2F800)]


def marked_text(generator):
    length = generator.choice([1, 2, 3, 5, 8, 13])
    if generator.random() < 0.1:
        return random_text(generator)
    pool = generator.sample(MARKED, 4) + ["a"] if generator.random() < 0.3 else MARKED + list("ab B.`\n") * 8
    return "".join(generator.choice(pool) for _ in range(length))


# Of all classes that decide where a grapheme cluster ends.
CLUSTERED = list(REPLACED) + list("aAeox \r\n\x01\x02\x07") + [chr(point) for point in (
    0xA9, 0xAD, 0x300, 0x301, 0x302, 0x345, 0x600, 0x70F, 0x903, 0x915, 0x93C, 0x94D, 0x958, 0x9BE, 0x9CD, 0x995, 0xE33, 0x1100, 0x115F, 0x1160,
    0x1161, 0x11A8, 0xAC00, 0xAC01, 0xD7B0, 0xD7CB, 0x1B44, 0x200C, 0x200D, 0x2028, 0x2764, 0x3099, 0xFE0F, 0xFEFF, 0x110BD, 0x1193E, 0x11F02,
    0x1F1E9, 0x1F468, 0x1F3FD, 0xE0001, 0xE0061)]


def clustered_text(generator):
    few = generator.sample(CLUSTERED, 5)
    return "".join(generator.choice(few if generator.random() < 0.5 else CLUSTERED) for _ in range(generator.choice([1, 2, 3, 5, 8, 13])))


def spaced_text(generator):
    """With spaces at the ends and in runs."""
    spaces = lambda: "".join(generator.choice(SPACES_AND_CONTROLS) for _ in range(generator.choice([0, 0, 1, 2, 5])))
    return spaces() + "".join(marked_text(generator) + spaces() for _ in range(generator.choice([0, 1, 1, 2, 3])))


def random_text(generator):
    length = generator.choice([1, 2, 3, 5, 8, 13, 21])
    kind = generator.random()
    if kind < 0.1:
        points = [generator.randrange(0x20, generator.choice([0x80, 0x3000, 0x110000])) for _ in range(length)]
        return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)
    if kind < 0.15:  # long runs: what is scanned in vain is not scanned again
        few = generator.sample("ab  \n1'", 3)
        return "".join(generator.choice(few) * generator.choice([1, 2, 90]) for _ in range(generator.choice([2, 3, 4])))
    pool = generator.sample(CHARACTERS, 4) if kind < 0.3 else CHARACTERS
    return "".join(generator.choice(pool) for _ in range(length))


def byte_starts(text):
    starts = [0]
    for character in text:
        starts.append(starts[-1] + len(character.encode()))
    return starts


def normalized(parts, text):
    """What normalizers make of a text, with the range of each character."""
    from tokenizers import PreTokenizedString, Regex
    starts = byte_starts(text)
    pieces = PreTokenizedString(text)
    for part in parts:
        pieces.normalize(part.normalize)
    pieces.split(lambda _, piece: piece.split(Regex("(?m:.)"), "isolated"))
    splits = pieces.get_splits(offset_referential="original", offset_type="char")
    characters = "".join(piece for piece, _, _ in splits)
    assert len(characters) == len([piece for piece, _, _ in splits if piece])
    return [text, characters, [starts[at] for piece, ends, _ in splits if piece for at in ends]]


def normalizer_cases(texts, generator):
    from tokenizers import normalizers
    for steps in NORMALIZERS:
        parts = [getattr(normalizers, step[0])(*step[1:]) if isinstance(step, list) else getattr(normalizers, step)() for step in steps]
        yield {"steps": steps, "cases": [normalized(parts, marked_text(generator)) for _ in range(texts)]}
    for normalizer in more_normalizers():
        found = [normalized([normalizer], spaced_text(generator)) for _ in range(texts)]
        yield {"normalizer": json.loads(normalizer.__getstate__()), "cases": found}
    for normalizer in charsmap_normalizers():
        found = [normalized([normalizer], generator.choice([clustered_text, spaced_text])(generator)) for _ in range(texts)]
        yield {"normalizer": json.loads(normalizer.__getstate__()), "cases": found}


def pattern_cases(texts, generator):
    from tokenizers import Regex, pre_tokenizers
    for pattern in PATTERNS:
        found = []
        for _ in range(texts):
            behavior, invert = generator.choice(BEHAVIORS + ["isolated"] * 3), generator.random() < 0.3
            text = random_text(generator)
            starts = byte_starts(text)
            pieces = pre_tokenizers.Split(Regex(pattern), behavior, invert=invert).pre_tokenize_str(text)
            ends = [[starts[begin], starts[end]] for _, (begin, end) in pieces]
            found.append([BEHAVIORS.index(behavior), int(invert), text, ends])
        yield {"pattern": pattern, "cases": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=25, help="random texts for each pattern and normalizer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "tests/text")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, PACKAGE], check=True)
        sys.path.insert(0, folder)
        for name, make in (("pattern_cases.json", pattern_cases), ("normalize_cases.json", normalizer_cases)):
            rows = [json.dumps(row, separators=(",", ":")) for row in make(arguments.texts, random.Random(arguments.seed))]
            (arguments.output / name).write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
