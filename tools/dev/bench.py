#!/usr/bin/env python3
"""Makes the measured tables of docs/performance.md and pictures again: `make bench`, about ten minutes on two cores.

    bench.py [--precisions int8,int4,int3,int2] [--threads 1,2] [--out build/bench] [--docs docs]

Models with random weights, from examples/configs, and the default model. OUT gets the models, what `tarn bench` printed as *.json,
and performance.md: the part of docs/performance.md between its `measured` markers. DOCS gets the pictures. The machine should have nothing else
to do.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from cpu import cores_and_name

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build" / "bin"
DEFAULT_MODEL = ROOT / "examples" / "models" / "shakespeare-rfa-gate-int8.tarn"
DEPTHS = [0, 512, 2048, 8192]
FAR_DEPTHS = [1000, 1000000]


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


def make_model(out, config, precision):
    """Its path; nothing if this tarn-convert does not know the precision."""
    path = out / f"{config}-{precision}.tarn"
    source = ROOT / "examples" / "configs" / f"{config}.json"
    done = subprocess.run([BIN / "tarn-convert", "--random-weights", "1", source, "-o", path, "--quant", precision],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        say(f"{config} {precision} left out: {done.stderr.strip()}")
        return None
    return path


def bench(out, name, models, *arguments):
    """Rows of `tarn bench`, also in OUT/NAME.json."""
    say(f"{name}: {', '.join(model.stem for model in models)}")
    command = [BIN / "tarn", "bench", "-o", "json", *arguments]
    for model in models:
        command += ["-m", model]
    text = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True).stdout
    (out / f"{name}.json").write_text(text, encoding="utf-8")
    return json.loads(text)


def numbers(values):
    return ",".join(map(str, values))


def tests(rows):
    """(model, precision, threads) -> (test kind, depth) -> row, in the order of the rows."""
    found = {}
    for row in rows:
        key = row["model"], row["precision"], row["threads"]
        found.setdefault(key, {})[row["test"][:2], row["depth"]] = row
    return found


def machine(row):
    return f"{cores_and_name()}, {row['dense']}+{row['isa']}"


def models_table(rows):
    shallow, deep = DEPTHS[0], DEPTHS[-1]
    memory = {row["threads"]: row["memory_bandwidth_bytes_per_s"] for row in rows}
    rates = ", ".join(f"{rate / 1e9:.1f} GB/s by {threads} thread{'s'[:threads > 1]}" for threads, rate in memory.items())
    lines = [f"On {machine(rows[0])}.", f"Main memory (a buffer of 1 GiB) is read at {rates}. t/s: tokens per second.", "",
             f"| model | weights | threads | prompt of 512, t/s | decode, t/s | at depth {deep} | decode reads, GB/s | "
             "of the read bandwidth | state | anonymous |", "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for (model, precision, threads), row in tests(rows).items():
        decode = row["tg", shallow]
        lines.append(f"| {model} | {precision} | {threads} | {row['pp', shallow]['t_s_median']:.0f} | {decode['t_s_median']:.1f} | "
                     f"{row['tg', deep]['t_s_median']:.1f} | {decode['bytes_per_s'] / 1e9:.1f} | "
                     f"{100 * decode['bandwidth_share']:.0f} % | {decode['state_bytes'] / 2**20:.2f} MiB | "
                     f"{decode['peak_anon_bytes'] / 2**20:.1f} MiB |")
    return lines


def depth_table(rows):
    lines = ["Constant memory beside a softmax cache, in the same runtime: decode of one thread, t/s, by depth.", "",
             f"| model | {' | '.join(f'{depth:,}' for depth in DEPTHS)} | state | of it in use at {DEPTHS[-1]:,} |",
             "|---" + "|--:" * (len(DEPTHS) + 2) + "|"]
    for (model, precision, _), row in tests(rows).items():
        rates = " | ".join(f"{row['tg', depth]['t_s_median']:.0f}" for depth in DEPTHS)
        last = row["tg", DEPTHS[-1]]
        lines.append(f"| {model} {precision} | {rates} | {last['state_bytes'] / 2**20:.2f} MiB | "
                     f"{last['used_state_bytes'] / 2**20:.2f} MiB |")
    return lines


def far_table(rows):
    row = next(iter(tests(rows).values()))
    lines = [f"{row['tg', FAR_DEPTHS[0]]['model']}, {row['tg', FAR_DEPTHS[0]]['precision']}, one thread:", "",
             "| depth | decode, t/s | us per token | state | anonymous |", "|--:|--:|--:|--:|--:|"]
    for depth in FAR_DEPTHS:
        far = row["tg", depth]
        lines.append(f"| {depth:,} | {far['t_s_median']:.0f} | {1e6 / far['t_s_median']:.1f} | "
                     f"{far['state_bytes'] / 1024:.0f} KiB | {far['peak_anon_bytes'] / 2**20:.1f} MiB |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--precisions", default="int8,int4,int3,int2")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench")
    parser.add_argument("--docs", type=pathlib.Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    out, docs = arguments.out, arguments.docs
    out.mkdir(parents=True, exist_ok=True)
    docs.mkdir(parents=True, exist_ok=True)
    os.environ["TARN_PACKED_CACHE"] = str(out / "packed")

    wanted = [(f"{size}-rfa-gate", precision) for size in ("lm-small", "lm-big") for precision in arguments.precisions.split(",")]
    models = [make_model(out, *one) for one in [*wanted, ("lm-big-abc", "int8")]]
    models = [model for model in models if model is not None]
    # A process each, so that the anonymous memory is one model's.
    rows = []
    for model in models:
        rows += bench(out, model.stem, [model], "-p", 512, "-n", 32, "-d", numbers(DEPTHS), "-t", arguments.threads, "-r", 3)
    # Prompts of a softmax model are long: the picture is of the small size.
    drawn = [make_model(out, f"lm-small-{system}", "int8") for system in ("rfa-gate", "abc", "softmax")]
    picture = docs / "bench-depth.svg"
    deep = bench(out, "depth", drawn, "-p", 0, "-n", 32, "-d", numbers(DEPTHS), "-t", 1, "-r", 2, "--plot", picture)
    far = bench(out, "far", [DEFAULT_MODEL], "-p", 0, "-n", 512, "-d", numbers(FAR_DEPTHS), "-t", 1, "-r", 3)

    relative = os.path.relpath(picture, ROOT / "docs")
    text = "\n".join(["<!-- measured -->", *models_table(rows), "", *depth_table(deep), "",
                      f"![Tokens per second and memory of a sequence against depth]({relative})", "", *far_table(far),
                      "<!-- /measured -->", ""])
    (out / "performance.md").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
