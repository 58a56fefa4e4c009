"""Train, validation and test: which example belongs to which, and the command line of the scripts that draw them."""

import sys
import zlib

from command_line import positive

SPLITS = ("train", "validation", "test")


def owner(key):
    """The split of an example: a tenth of all keys is for tests, a tenth for validation, whatever the seed."""
    return {0: "test", 1: "validation"}.get(zlib.crc32(key.encode()) % 10, "train")


def pick(generator, choices):
    """One of them, by random() alone, whose numbers are the same in every version of Python."""
    return choices[int(generator.random() * len(choices))]


def parse(parser):
    parser.add_argument("--split", choices=SPLITS, required=True, help="which part of the examples")
    parser.add_argument("--count", type=positive, default=5000, metavar="N", help="lines (default: 5000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the draw (default: 1)")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: standard output)")
    return parser.parse_args()


def write(lines, args):
    text = "".join("\t".join(line) + "\n" for line in lines(args.split, args.count, args.seed))
    if args.output:
        with open(args.output, "w", encoding="ascii", newline="\n") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
