"""Texts for tokenizers: letters of many scripts, marks, spaces, and the added tokens of the fixtures."""

import random

CHARACTERS = (
    list("aAbz '\u2019sStTdD019\u0663\u00bd\u00b2\u2167 \t\n\r\v\f\x85\xa0\u2003\u3000\u200b\u200c\u200d\u180e\u2028\u00e9\u00f1\u00df"
         "\u017f\u212a\u0130\u0131\u01c5\u4e2d\u6587\u306b\u30ab\ud55c\uac01e\u0301o\u0302\u0301\U0001f642\U0001f44d\U0001f3fd"
         "\U0001f1e9\U0001f1ea\u093c\u064b\u05d0\u0627\u0661\uffff\ufffd\ufeff\U00010400\U000e0001\U0010ffff\U0001d4b3"
         "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\u0120\x00\x1f\x7f") +
    ["'s", "'LL", "'re", "\r\n", "  ", "   ", "    ", "<|sep|>", "<mask>", " <mask> ", "<right>", "<right>  ", "both", " both  ",
     "caf\u00e9", "caf", "<s>", "</s>", "<unk>", "<|endoftext|>", "the", " and", "you", "1234", "thou ", "na\u00efve",
     "\u5317\u4eac", "\u2581", " \u2581", "\u2581a"])
RANGES = [(0x20, 0x250), (0x250, 0xD800), (0xE000, 0x110000), (0x300, 0x370), (0x2000, 0x2070)]


def random_text(generator, marks=()):
    """With some of `marks` in it."""
    parts = [generator.choice(marks)] * (generator.random() < 0.1) if marks else []
    for _ in range(int(generator.expovariate(1 / 12)) + generator.randint(0, 3)):
        kind = generator.random()
        if kind < 0.75:
            parts.append(generator.choice(CHARACTERS))
        elif kind < 0.85:
            parts.append(chr(generator.randrange(*generator.choice(RANGES))))
        else:
            parts.append(generator.choice(CHARACTERS) * generator.randint(1, 6))
        if marks and generator.random() < 0.05:
            parts.append(generator.choice(marks))
    return "".join(parts)


def byte_ranges(text, ranges):
    """Ranges of characters as ranges of UTF-8 bytes."""
    at = [0]
    for character in text:
        at.append(at[-1] + len(character.encode()))
    return [[at[begin], at[end]] for begin, end in ranges]


# What scripts and programs put together: accents one by one and in piles, joiners, both directions, conjuncts, jamo, flags, families,
# variants, marks without a letter, controls, spaces, characters that fold to others.
CLUSTERS = [
    "e\u0301", "o\u0302\u0301", "\u1ed1", "Z\u0351\u036b\u0343\u036a\u0302\u0347\u034e\u0320\u0349", "\u0301", " \u0300a", "q\u0323\u0307", "q\u0307\u0323",
    "\u0928\u093f", "\u0915\u094d\u0937", "\u0915\u094d\u200d\u0937", "\u0915\u094d\u200c\u0937", "\u0958", "\u0915\u093c", "\u0e01\u0e33", "\u0e49\u0e33",
    "\u1100\u1161\u11a8", "\u1112\u1161\u11ab\u1100\u1173\u11af", "\uac01", "\u304b\u3099", "\u30cf\u309a", "\uff76\uff9e", "\u3231", "\u32ff", "\ufb01",
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u0627\u0644\u0644\u0651\u064e\u0647", "\u202eabc\u202c", "\u2067\u05d0\u2069 a", "\u200e1\u200f2",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea\U0001f1eb", "\u2764\ufe0f", "1\ufe0f\u20e3",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\u845b\U000e0100", "\ufeff", "\ufffe", "\ufdd0", "\U0001ffff",
    "\U0010ffff", "\x00", "\x7f\x80\x9f", "\xad", "\u034f", "\u115f\u1160", "\u180e", "\u2060", "\u2028\u2029", "\u1680\u2000\u200a\u202f\u205f\u3000",
    "\u0130\u0131\u017f\u212a\u1e9e\u00df", "\u03a3\u03c3\u03c2", "\u01c4\u01c5\u01c6", "\u2160\u2460\u00bd\u00b2\u0967\u06f3\U0001d7d8", "\r\n\r\n\n\r", "\t \t",
    "\U000105c0", "\U0001e4d0\U0001e4ec", "\U00016d63\U00016d67", "\u0d4e", "\u08e2", "\U000110bd"]


def every_script():
    """A text with characters of all planes, each kind of cluster beside others, and marks behind letters that they do not belong to."""
    generator = random.Random(7)
    lines = [" ".join(CLUSTERS), "".join(CLUSTERS)]
    lines += ["".join(generator.choice(CLUSTERS) + generator.choice(["", " ", "a", "\u0301", "\u200d", "."]) for _ in range(12)) for _ in range(400)]
    for begin in range(0, 0x110000, 0x1000):  # sixteen of every 4,096 characters, and all that begin a block of 256
        codes = [code for code in range(begin, begin + 0x1000, 0x100)] + [generator.randrange(begin, begin + 0x1000) for _ in range(16)]
        lines.append("".join(chr(code) + generator.choice(["", " ", "b"]) for code in codes if not 0xD800 <= code < 0xE000))
    lines += ["".join(map(chr, range(begin, begin + 32))) for begin in range(0, 0x3400, 32)]
    return "\n".join(lines)
