"""Random texts for tokenizers: letters of many scripts, marks, spaces, and the added tokens of the fixtures."""

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
