#!/usr/bin/env python3
"""Makes the papers' figures of speed and memory again, on this machine: `make figures`, an hour on two idle cores.

    figures.py [--only decoding,masked_lm,classification] [--threads N] [--longest | --quick] [--out build/figures]
               [--docs docs]

  decoding        RFA Figure 2, ABC Figure 1: translation, source and target of the same length, batch 16, greedy
  masked_lm       ABC Table 4: RoBERTa-base at 512 tokens, batch 16
  classification  RFA Table 3: byte-level text of 1,000 to 4,000 bytes

Models have random weights (examples/configs), in int8; speed and memory are relative to softmax in the same runtime. The systems of
a figure take turns, so that whatever else the machine does meets all of them. OUT gets the models, what `tarn bench` printed and
performance.md, the part of docs/performance.md between its `figures` markers; DOCS gets the pictures.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

import line_plot
from cpu import cores_and_name

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build" / "bin"
BATCH = 16
DECODING = {"softmax": ("mt-base-softmax", "f32"), "RFA Gaussian": ("mt-base-rfa", "f32"),
            "RFA Gaussian, source f16": ("mt-base-rfa", "f16"), "RFA Gaussian, source int8": ("mt-base-rfa", "int8"),
            "RFA arc-cosine": ("mt-base-rfa-arccos", "f32"), "ABC": ("mt-base-abc", "f32"), "T2R": ("mt-base-t2r", "f32")}
DECODING_LENGTHS = [32, 64, 128, 256, 512, 1024, 2048]
MASKED_LM = {"softmax": ("roberta-base-softmax", "f32"), "ABC 64": ("roberta-base-abc-64", "f32"),
             "ABC 128": ("roberta-base-abc-128", "f32"), "Linformer 64": ("roberta-base-linformer-64", "f32"),
             "Linformer 128": ("roberta-base-linformer-128", "f32")}
MASKED_LM_LENGTH = 512
MASKED_LM_PAPER = {"ABC 64": (1.5, 0.5), "ABC 128": (1.3, 0.6), "Linformer 64": (1.7, 0.5), "Linformer 128": (1.5, 0.6)}
CLASSIFICATION = {"softmax": ("lra-text-softmax", "f32"), "RFA Gaussian": ("lra-text-rfa", "f32")}
CLASSIFICATION_LENGTHS = [1000, 2000, 3000, 4000]
MIB = 2.0**20


class Bench:
    def __init__(self, out, threads, quick):
        self.out, self.threads, self.repetitions = out, threads, 1 if quick else 3
        self.spread = 0.0  # the largest standard deviation, of its mean

    def model(self, name, length, state):
        """The model of a config, with room for `length` tokens and no more where attention keeps them all, and states of that type."""
        config = json.loads((ROOT / "examples" / "configs" / f"{name}.json").read_text(encoding="utf-8"))
        for field in ("attention", "encoder_attention", "decoder_attention", "cross_attention"):
            if "max_context" in config.get(field, {}):
                config[field]["max_context"] = length
        path = self.out / f"{name}-{state}-{length}.tarn"
        source = path.with_suffix(".json")
        source.write_text(json.dumps(config), encoding="utf-8")
        subprocess.run([BIN / "tarn-convert", "--random-weights", "1", source, "-o", path, "--quant", "int8", "--state", state,
                        "--name", name],
                       stdout=subprocess.DEVNULL, check=True)
        return path

    def row(self, path, repetition, test, length, target, batch):
        """The row of `tarn bench` of that kind of test ("enc", "dec")."""
        command = [BIN / "tarn", "bench", "-m", path, "-p", length, "-n", target, "-r", 1, "-t", self.threads, "--batch", batch,
                   "-o", "json"]
        text = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True).stdout
        path.with_suffix(f".bench-{repetition}.json").write_text(text, encoding="utf-8")
        return next(row for row in json.loads(text) if row["test"].startswith(test))

    def run(self, systems, test, length, target, batch):
        """By system: (its rate in each repetition, the row of the last one). All systems run once, then all again."""
        paths = {system: self.model(config, length, state) for system, (config, state) in systems.items()}
        rates, rows = {system: [] for system in systems}, {}
        for repetition in range(self.repetitions):
            for system, path in paths.items():
                print(f"figures: {length} tokens, repetition {repetition + 1}, {system}", file=sys.stderr, flush=True)
                rows[system] = self.row(path, repetition + 1, test, length, target, batch)
                rates[system].append(rows[system]["t_s_mean"])
        for path in paths.values():
            path.unlink()
        if self.repetitions > 1:
            self.spread = max([self.spread, *(statistics.stdev(of_one) / statistics.mean(of_one) for of_one in rates.values())])
        return {system: (rates[system], rows[system]) for system in systems}


def rate_cells(points, base):
    """Rates, each with its ratio to the one of `base` at the same length."""
    return " | ".join(f"{rate:.0f} ({rate / of_base:.1f}x)" for (_, rate), (_, of_base) in zip(points, base))


def draw(path, name, title, x_label, lengths, panels):
    """Draws the panels over the lengths, and returns the lines that show the picture: none for one length."""
    if len(lengths) == 1:
        return []
    path.write_text(line_plot.draw(title, x_label, panels), encoding="utf-8")
    return ["", f"![{name}]({os.path.relpath(path, ROOT / 'docs')})"]


def decoding(bench, docs, lengths):
    rates, states = {system: [] for system in DECODING}, {system: [] for system in DECODING}
    for length in lengths:
        runs = bench.run(DECODING, "dec", length, length, BATCH)
        for system, (of_one, row) in runs.items():
            rates[system].append((length, statistics.median(of_one)))
            states[system].append((length, row["state_bytes"] / MIB))
    drawn = [system for system, (_, state) in DECODING.items() if state == "f32"]  # those of the papers
    panels = [("decoded tokens per second", {system: rates[system] for system in drawn}),
              ("state of all sequences, MiB", {system: states[system] for system in drawn})]
    title = f"Translation, source as long as target, batch {BATCH}, int8"
    picture = draw(docs / "decoding.svg", "Decoding speed and memory", title, "length, tokens", lengths, panels)
    lines = [f"Decoding of `mt-base-*`, source and target of the same length, batch {BATCH}, greedy (RFA Figure 2, ABC Figure 1): "
             "tokens per second, and the ratio to softmax.", "",
             f"| variant | {' | '.join(f'{length:,}' for length in lengths)} | state at {lengths[-1]:,} | of softmax's | "
             "paper at 2,048 |", "|---" + "|--:" * (len(lengths) + 2) + "|---|"]
    paper = {"softmax": "1", "RFA Gaussian": "about 12x, memory under 10 %",
             "RFA Gaussian, source f16": "", "RFA Gaussian, source int8": "", "RFA arc-cosine": "slightly above Gaussian",
             "ABC": "about 1.25x RFA", "T2R": "about 20 % above ABC"}
    for system, points in rates.items():
        last = states[system][-1][1]
        share = 100 * last / states["softmax"][-1][1]
        lines.append(f"| {system} | {rate_cells(points, rates['softmax'])} | {last:.1f} MiB | {share:.1f} % | {paper[system]} |")
    at_end = {system: points[-1][1] for system, points in rates.items()}
    # `runs`: those of the last length.
    ratios = {system: [rate / base for rate, base in zip(of_one, runs["softmax"][0])] for system, (of_one, _) in runs.items()}
    of_each = "; ".join(f"{system} {', '.join(f'{ratio:.1f}x' for ratio in of_one)}" for system, of_one in ratios.items()
                        if system.startswith("RFA"))
    return lines + ["", f"At {lengths[-1]:,}: ABC over RFA Gaussian {at_end['ABC'] / at_end['RFA Gaussian']:.2f} (paper 1.25), "
                    f"T2R over ABC {at_end['T2R'] / at_end['ABC']:.2f} (paper 1.2). "
                    f"Ratios to softmax in each repetition: {of_each}.", *picture]


def masked_lm(bench, _docs, lengths):
    (length,) = lengths
    lines = [f"Encoding of `roberta-base-*`, {length} tokens, batch {BATCH} (ABC Table 4).", "",
             "| variant | tokens per second | speed | paper | session, MiB | of softmax's | anonymous, MiB | of softmax's | paper |",
             "|---" + "|--:" * 8 + "|"]
    runs = bench.run(MASKED_LM, "enc", length, 0, BATCH)
    base, base_rate = runs["softmax"][1], statistics.median(runs["softmax"][0])
    for system, (rates, row) in runs.items():
        rate = statistics.median(rates)
        speed, memory = MASKED_LM_PAPER.get(system, (1.0, 1.0))
        lines.append(f"| {system} | {rate:.0f} | {rate / base_rate:.2f}x | {speed}x | "
                     f"{row['session_bytes'] / MIB:.1f} | {row['session_bytes'] / base['session_bytes']:.2f}x | "
                     f"{row['peak_anon_bytes'] / MIB:.1f} | {row['peak_anon_bytes'] / base['peak_anon_bytes']:.2f}x | {memory}x |")
    return lines


def classification(bench, docs, lengths):
    rates, memory = {system: [] for system in CLASSIFICATION}, {system: [] for system in CLASSIFICATION}
    for length in lengths:
        for system, (of_one, row) in bench.run(CLASSIFICATION, "enc", length, 0, 1).items():
            rates[system].append((length, statistics.median(of_one)))
            memory[system].append((length, row["session_bytes"] / MIB))
    picture = draw(docs / "classification.svg", "Encoding speed and memory", "Byte-level text classification, int8", "length, bytes",
                   lengths, [("bytes per second", rates), ("session, MiB", memory)])
    lines = ["Encoding of `lra-text-*`, one text at a time (RFA Table 3): bytes per second, and the ratio to softmax.", "",
             f"| variant | {' | '.join(f'{length:,}' for length in lengths)} | session at {lengths[-1]:,} | paper |",
             "|---" + "|--:" * (len(lengths) + 1) + "|---|"]
    for system, points in rates.items():
        paper = "1" if system == "softmax" else "1.1x to 5.3x"
        lines.append(f"| {system} | {rate_cells(points, rates['softmax'])} | {memory[system][-1][1]:.1f} MiB | {paper} |")
    return lines + picture


FIGURES = {"decoding": (decoding, DECODING_LENGTHS, DECODING_LENGTHS[:2]), "masked_lm": (masked_lm, [MASKED_LM_LENGTH], [64]),
           "classification": (classification, CLASSIFICATION_LENGTHS, [100, 200])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default=",".join(FIGURES), help="figures, separated by commas")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--longest", action="store_true", help="the greatest length of each figure only, without pictures")
    size.add_argument("--quick", action="store_true", help="short lengths, to see that it works")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "figures")
    parser.add_argument("--docs", type=pathlib.Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.docs.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in arguments.only.split(","):
        bench = Bench(arguments.out, arguments.threads, arguments.quick)
        function, lengths, quick = FIGURES[name]
        figure = function(bench, arguments.docs, quick if arguments.quick else lengths[-1:] if arguments.longest else lengths)
        spread = (f"On {cores_and_name()}; {arguments.threads} threads; medians of {bench.repetitions} repetitions in turns;\n"
                  f"the largest standard deviation is {100 * bench.spread:.0f} % of its mean.")
        lines += [spread, "", *figure, ""]
    text = "\n".join(["<!-- figures -->", *lines[:-1], "<!-- /figures -->", ""])
    (arguments.out / "performance.md").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
