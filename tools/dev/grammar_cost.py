#!/usr/bin/env python3
"""What the mask of a token costs, beside a token of lm-small: the table of docs/grammars.md.

    grammar_cost.py [--build DIR] [-r REPETITIONS] [--update]     (make grammar-table)

tarn_microbench measures grammars over a vocabulary of 32,768 pieces, in time of the processor; `tarn bench` measures the decode of
lm-small-rfa-gate with random weights (int8, one thread), of which the fastest repetition counts. --update writes the table between the
markers of the page. Two minutes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import markers
from cpu import cpu_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "grammars.md"
GRAMMARS = {"records": "JSON records with strings, numbers and lists", "arithmetic": "lines of arithmetic with brackets",
            "names": "a list of any of 5,000 names", "long_text": "a JSON string of up to 1,000 characters"}


def output_of(*command) -> str:
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout


def token_us(build: Path, repetitions: int) -> float:
    """A token of lm-small."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "lm-small.tarn"
        output_of(build / "bin/tarn-convert", "--random-weights", 1, ROOT / "examples/configs/lm-small-rfa-gate.json", "-o", model,
                  "--quant", "int8")
        found = json.loads(output_of(build / "bin/tarn", "bench", model, "-p", 0, "-n", 128, "-t", 1, "-r", repetitions, "-o", "json"))
    return 1e6 / max(found[0]["t_s"])


def measured(build: Path, repetitions: int) -> dict:
    found = json.loads(output_of(build / "bin/tarn_microbench", "--benchmark_filter=grammar_", f"--benchmark_repetitions={repetitions}",
                                 "--benchmark_format=json"))["benchmarks"]
    runs = {}
    for run in found:
        if run["run_type"] == "iteration":
            runs.setdefault(run["run_name"].split("/iterations")[0], []).append(run)
    return runs


def table(build: Path, repetitions: int) -> str:
    token = token_us(build, repetitions)
    runs = measured(build, repetitions)
    text = [f"Median of {repetitions} repetitions of 4,000 tokens, and in brackets the least and the most, on {cpu_name()}. A token of",
            f"`lm-small-rfa-gate` takes {token:,.0f} us.", "",
            "| grammar | mean, us | of a token | median, us | 95th percentile, us | creation, ms |", "|---|--:|--:|--:|--:|--:|"]
    for name, words in GRAMMARS.items():
        masks, creations = runs[f"grammar_mask/{name}"], runs[f"grammar_create/{name}"]

        def spread(values, digits=1):
            return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"

        means = [run["real_time"] for run in masks]
        text.append(f"| {words} | {spread(means)} | {100 * statistics.median(means) / token:.1f} % "
                    f"| {spread([run['median_us'] for run in masks])} | {spread([run['p95_us'] for run in masks])} "
                    f"| {spread([run['cpu_time'] for run in creations], 0)} |")
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("-r", "--repetitions", type=int, default=7)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    made = table(options.build, options.repetitions)
    print(made, end="")
    if options.update:
        PAGE.write_text(markers.replaced(PAGE.read_text(encoding="utf-8"), "grammar cost", made, "docs/grammars.md"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
