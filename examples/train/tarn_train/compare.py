"""Holds the float32 logits of PyTorch against the runtime's: python3 -m tarn_train.compare DIR --text FILE --bin build/bin

DIR is a checkpoint of tarn-train. The first tokens of the text go through both; exit 1 if logits are further apart than TOLERANCE.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy
import torch

from . import checkpoint, command
from .model import longest
from .settings import MEASURED
from .text import Bytes, Pieces, read_tokenizer

TOLERANCE = 2e-4
TOKENS = 256


def runtime_logits(folder, text, count, programs, quant="f32"):
    """float32 [count, vocab_size]: the logits after each of the first tokens of the file `text`"""
    programs = pathlib.Path(programs)
    with tempfile.TemporaryDirectory() as scratch:
        model, logits = pathlib.Path(scratch) / "model.tarn", pathlib.Path(scratch) / "logits.npy"
        evaluation = ["--eval", text] if quant in MEASURED else []  # without which the converter makes none
        command.call(programs / "tarn-convert", folder, "-o", model, "--quant", quant, *evaluation)
        command.call(programs / "tarn", "eval", model, "-f", text, "--tokens", count, "--logits", logits, "-t", 1)
        return torch.from_numpy(numpy.load(logits))


@torch.no_grad()
def difference(folder, text, programs, count=TOKENS):
    """The largest difference of two logits, and how many tokens were compared"""
    model = checkpoint.load(folder)
    tokenizer = Bytes() if model.c["tokenizer"] == "bytes" else Pieces(read_tokenizer(pathlib.Path(folder) / "tokenizer.json"))
    tokens = tokenizer.encode(pathlib.Path(text).read_bytes().decode("utf-8"))[: min(count, longest(model.c))]
    found, wanted = runtime_logits(folder, text, len(tokens), programs), model(torch.tensor([tokens]))[0]
    if found.shape != wanted.shape:
        raise ValueError(f"the runtime has logits {list(found.shape)}, expected {list(wanted.shape)}")
    return (found - wanted).abs().max().item(), len(tokens)


def main(arguments=None):
    parser = command.Parser(prog="compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="DIR")
    parser.add_argument("--text", metavar="FILE", required=True)
    parser.add_argument("--bin", metavar="DIR", required=True, help="directory of tarn and tarn-convert")
    args = parser.parse_args(arguments)
    try:
        largest, count = difference(args.checkpoint, args.text, args.bin)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    verdict = "pass" if largest < TOLERANCE else "FAIL"
    print(f"{count} tokens: logits of PyTorch and of tarn differ by at most {largest:.1e}, {TOLERANCE:.0e} allowed: {verdict}")
    return 0 if largest < TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
