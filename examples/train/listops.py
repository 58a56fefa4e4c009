#!/usr/bin/env python3
"""ListOps, the nested lists of Nangia & Bowman (2018): what is the value of [MAX 2 9 [MIN 4 7 ] 0 ]?

    listops.py --split train|validation|test --count N --seed S [-o FILE]

A line is label<TAB>text; the label is a digit. Every symbol is one byte of text, so that a tokenizer of bytes sees one token a
symbol: X, N, D, S for [MAX, [MIN, [MED, [SM, "]" for the bracket that closes, digits for themselves. The list above is X29N47]0].
"""

import random

import splits
from command_line import Parser

MAX_DEPTH = 5  # a list may stand in three lists that stand in each other, its members are digits
MAX_ARGS = 10  # of a list, as in the Long Range Arena; Nangia & Bowman have 5
LIST_PROBABILITY = 0.25
MIN_SYMBOLS, MAX_SYMBOLS = 5, 200


def median(values):
    """Of an even number of values the mean of the two in the middle, rounded down."""
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) // 2


OPERATORS = {"X": max, "N": min, "D": median, "S": lambda values: sum(values) % 10}


def draw(generator, depth=1):
    """(text, value) of a random tree; the root is a list."""
    if depth == MAX_DEPTH or depth > 1 and generator.random() > LIST_PROBABILITY:
        digit = splits.pick(generator, range(10))
        return str(digit), digit
    members = [draw(generator, depth + 1) for _ in range(splits.pick(generator, range(2, MAX_ARGS + 1)))]
    operator = splits.pick(generator, "XNDS")
    return operator + "".join(text for text, _ in members) + "]", OPERATORS[operator]([value for _, value in members])


def lines(split, count, seed):
    """Distinct (label, text) of one split; a text belongs to one split only."""
    generator, seen = random.Random(f"listops {split} {seed}"), set()
    while len(seen) < count:
        text, value = draw(generator)
        if MIN_SYMBOLS <= len(text) <= MAX_SYMBOLS and splits.owner(text) == split and text not in seen:
            seen.add(text)
            yield str(value), text


def main():
    splits.write(lines, splits.parse(Parser(__doc__)))


if __name__ == "__main__":
    main()
