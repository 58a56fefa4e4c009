#!/usr/bin/env python3
"""Accuracy of a checkpoint in float32 PyTorch on the lines of a file; golden values in float64 for tests of other runtimes.

    evaluate.py DIR FILE.tsv                        one number, percent
    evaluate.py DIR FILE.tsv --golden OUT           six of the lines, from the shortest to the longest, to a .safetensors file

Golden files of dates: source I32 [6, S], tokens I32 [6, T] (what the decoder reads: begin, then the target), logits F32 [6, T, V]
of the token after each, greedy I32 [6, G] (up to and with the end token). Of ListOps: tokens I32 [6, T], logits F32 [6, labels].
Rows are padded with 0, which is no token of a text.
"""

import argparse
import pathlib

import torch

import model as models
import tensors
from tasks import TASKS, accuracy

GOLDEN_LINES = 6


def spread(task, lines):
    ordered = sorted(lines, key=lambda line: len(task.text(line)))
    return [ordered[i * (len(ordered) - 1) // (GOLDEN_LINES - 1)] for i in range(GOLDEN_LINES)]


@torch.no_grad()
def write_golden(task, model, lines, path):
    values = task.golden(model.double(), spread(task, lines))
    tensors.write_safetensors(path, {name: value.numpy() for name, value in values.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--golden", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = models.load(args.checkpoint)
    task = {"seq2seq": TASKS["dates"], "classification": TASKS["listops"]}[model.c["task"]]
    lines = [tuple(line.split("\t")) for line in args.file.read_text(encoding="ascii").splitlines()]
    if args.golden:
        write_golden(task, model, lines, args.golden)
    else:
        print(f"{accuracy(task, model, lines):.2f}")


if __name__ == "__main__":
    main()
