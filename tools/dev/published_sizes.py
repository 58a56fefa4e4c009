#!/usr/bin/env python3
"""Models of examples/configs/published with random weights, in int8 and int4: speed, bytes by class, and 20,000 tokens.

    published_sizes.py [--build DIR] [--tokens N] [--precision TYPE]... [NAME...]     (make published-table)

Models with softmax attention have caches of 2,048 tokens, and generate as many as fit; so do the targets of translation models, whose
prompt is a source. Memory is constant if the anonymous pages of the process do not grow while it generates. Half an hour on two idle
cores, most of it conversions; 4 GB in the temporary directory. make peers compares those that llama.cpp runs.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "examples/configs/published"
NAMES = ("firefox-base", "smollm2-360m", "gla-340m", "lfm2-350m", "rwkv7-0.4b", "qwen3.5-0.8b", "retnet-1.3b",
         "gated-deltanet-1.3b")
CONTEXT = 2048
SOFTMAX = {"llama", "qwen2", "lfm2", "qwen3_5_text"}


def output_of(*command):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout


def measure(build, folder, name, precision, tokens):
    config = CONFIGS / f"{name}.json"
    family = json.loads(config.read_text(encoding="utf-8"))["model_type"]
    bounded, translates = family in SOFTMAX, family == "marian_nmt"
    model, stats = folder / "model.tarn", folder / "stats.json"
    output_of(build / "bin/tarn-convert", "--random-weights", 1, config, "-o", model, "--quant", precision,
              *(("--max-context", CONTEXT) if bounded else ()))
    rows = json.loads(output_of(build / "bin/tarn", "bench", "-m", model, "-p", 128, "-n", 32, "-r", 5, "-o", "json"))
    prompt, decode = (row["t_s_median"] for row in rows)
    contents = json.loads(output_of(build / "bin/tarn", "inspect", "--json", model))
    memory, end = contents["memory"], contents["model"]["eos_token"]
    no_end = () if translates or end < 0 else ("--ban", end)
    count = min(tokens, CONTEXT - 8) if bounded or translates else tokens
    output_of(build / "bin/tarn", "run", "-m", model, "--tokens", "1,2,3", "-n", count, *no_end, "-q", "--json-stats", stats)
    run = json.loads(stats.read_text(encoding="utf-8"))
    return (f"| {name} | {precision} | {model.stat().st_size / 1e6:.0f} | {prompt:.1f} | {decode:.1f} | "
            f"{memory['state_bytes'] / 1e6:.2f} | {memory['arena_bytes'] / 1e6:.2f} | {run['generated_tokens']:,} | "
            f"{run['first_1000_median_us'] / 1e3:.1f} | {run['last_1000_median_us'] / 1e3:.1f} | {run['rss_anon_growth_pages']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--precision", action="append")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    arguments = parser.parse_args()
    print("| model | weights | file, MB | prompt, t/s | decode, t/s | states, MB | arena, MB | tokens | first 1,000, ms per token | "
          "last 1,000 | pages that it grew by |")
    print("|---|---|" + "--:|" * 9, flush=True)
    for name in arguments.names or NAMES:
        for precision in arguments.precision or ["int8", "int4"]:
            with tempfile.TemporaryDirectory() as folder:
                print(measure(arguments.build, pathlib.Path(folder), name, precision, arguments.tokens), flush=True)


if __name__ == "__main__":
    main()
