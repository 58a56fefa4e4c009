#!/usr/bin/env python3
"""Every causal system in a random model of the lm-small shape (6 x 512/2048, 8 heads): 20,000 tokens in constant memory, state bytes by the
formula, and, in two layers of that width, chunks against steps. Prints a table.

    systems_full.py [--vocab N] [--tokens N] [NAME...]

The shape's own vocabulary is 32,768; the automatic run takes a small one, which leaves the memory of the sequences as it is.

Two layers for the comparison, because some systems divide by an estimate that random weights leave near 0: in norm-free RFA a layer magnifies
a rounding error about thirtyfold, so that six layers make any two orders of summation differ visibly (also those of two instruction sets
in the same token loop), and say nothing about chunks.
"""

import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from runner import Failure, Model  # noqa: E402
from systems import config, systems  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--vocab", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=20000)
    parser.add_argument("--bound", type=int, default=16384)
    arguments = parser.parse_args()
    failed = 0
    print("| system | state of a layer, bytes | with alignment and counter, all layers | tokens | growth, pages | chunks against steps | s |")
    print("|---|---|---|---|---|---|---|")
    for system in systems(arguments.bound):
        if arguments.names and system.name not in arguments.names:
            continue
        begin = time.time()
        try:
            with tempfile.TemporaryDirectory() as folder:
                shape = config(system.attention, hidden=512, layers=6, heads=8, vocab=arguments.vocab, intermediate=2048)
                model = Model(os.environ.get("TARN_BUILD", "build"), folder, system, shape, "int8")
                formula, found = model.check_state()
                report = model.check_long_run(arguments.tokens)
                two_layers = dict(shape, num_layers=2)
                model = Model(os.environ.get("TARN_BUILD", "build"), folder, system, two_layers, "f32")
                difference = model.check_chunks(300)
            print(f"| {system.name} | {formula // 6:,} | {found:,} | {report['generated_tokens']:,} | {report['rss_anon_growth_pages']} "
                  f"| {difference:.1e} | {time.time() - begin:.0f} |", flush=True)
        except Failure as failure:
            failed += 1
            print(f"| {system.name} | FAIL: {failure} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
