#!/usr/bin/env python3
"""Accuracy of a checkpoint in float32 PyTorch on the lines of a file; golden values in float64 for tests of other runtimes.

    evaluate.py DIR FILE.tsv                        one number, percent
    evaluate.py DIR FILE.tsv --golden OUT           six of the lines, from the shortest to the longest, to a .safetensors file

Golden files of dates: source I32 [6, S], tokens I32 [6, T] (what the decoder reads: begin, then the target), logits F32 [6, T, V]
of the token after each, greedy I32 [6, G] (up to and with the end token). Of ListOps: tokens I32 [6, T], logits F32 [6, labels].
Rows are padded with 0, which is no token of a text.
"""

import pathlib
import sys

try:
    import torch
except ModuleNotFoundError:
    sys.exit("evaluate.py: error: PyTorch is missing: apt-get install python3-torch, or pip install torch")

import model as models
from command_line import Parser, checkpoint, pairs, positive
from tasks import TASKS, accuracy
from tarn_train import tensors

GOLDEN_LINES = 6


def spread(task, lines):
    ordered = sorted(lines, key=lambda line: len(task.text(line)))
    return [ordered[i * (len(ordered) - 1) // (GOLDEN_LINES - 1)] for i in range(GOLDEN_LINES)]


@torch.no_grad()
def write_golden(task, model, lines, path):
    values = task.golden(model.double(), spread(task, lines))
    tensors.write_safetensors(path, {name: value.numpy() for name, value in values.items()})


def main():
    parser = Parser(__doc__)
    parser.add_argument("checkpoint", type=checkpoint, metavar="DIR", help="directory that train.py wrote, of dates or listops")
    parser.add_argument("lines", type=pairs, metavar="FILE", help="lines of dates.py or listops.py")
    parser.add_argument("--golden", type=pathlib.Path, metavar="OUT", help="write golden values instead")
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="threads of PyTorch (default: 1)")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = models.load(args.checkpoint)
    task = {"seq2seq": TASKS["dates"], "classification": TASKS["listops"]}.get(model.c["task"])
    if task is None:
        parser.error(f"{args.checkpoint} is a {model.c['task']} model: use tarn eval")
    if args.golden:
        write_golden(task, model, args.lines, args.golden)
    else:
        print(f"{accuracy(task, model, args.lines):.2f}")


if __name__ == "__main__":
    main()
