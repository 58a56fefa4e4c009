#!/usr/bin/env python3
"""Every causal system in a random model of the lm-small shape (6 x 512/2048, 8 heads): many tokens in constant memory, state bytes
by the formula, and, in two layers of that width, chunks against steps. Prints a table.

    systems_full.py [--vocab N] [--tokens N] [--bound N] [--jobs N] [NAME...]

The shape's own vocabulary is 32,768; the automatic run takes a small one, which leaves the memory of the sequences as it is, and
fewer tokens than `make systems`.

Two layers for the comparison, because some systems divide by an estimate that random weights leave near 0: in norm-free RFA a
layer magnifies a rounding error about thirtyfold, so that six layers make any two orders of summation differ visibly (also those of
two instruction sets in the same token loop), and say nothing about chunks.
"""

import argparse
import concurrent.futures
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from runner import Failure, Model  # noqa: E402
from systems import config, systems  # noqa: E402


def measure(system, arguments):
    """The system's row of the table, and whether all of it held."""
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
    except Failure as failure:
        return f"| {system.name} | FAIL: {failure} |", False
    return (f"| {system.name} | {formula // 6:,} | {found:,} | {report['generated_tokens']:,} | {report['rss_anon_growth_pages']} "
            f"| {difference:.1e} | {time.time() - begin:.0f} |"), True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--vocab", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=6000)
    parser.add_argument("--bound", type=int, default=4096, help="tokens, of systems whose memory grows up to a bound")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="systems at a time, a thread each")
    arguments = parser.parse_args()
    print("| system | state of a layer, bytes | with alignment and counter, all layers | tokens | growth, pages | chunks against steps | s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    chosen = [system for system in systems(arguments.bound) if not arguments.names or system.name in arguments.names]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as executor:
        for row, held in executor.map(lambda system: measure(system, arguments), chosen):
            failed += not held
            print(row, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
