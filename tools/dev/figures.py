#!/usr/bin/env python3
"""Makes the papers' figures of speed and memory again, on this machine: `make figures`, half an hour on two idle cores.

    figures.py [--only decoding,masked_lm,classification] [--threads N] [--quick] [--out build/figures] [--docs docs]

  decoding        RFA Figure 2, ABC Figure 1: translation, source and target of the same length, batch 16, greedy
  masked_lm       ABC Table 4: RoBERTa-base at 512 tokens, batch 16
  classification  RFA Table 3: byte-level text of 1,000 to 4,000 bytes

Models have random weights (examples/configs), in int8; speed and memory are relative to softmax in the same runtime. OUT gets the
models, what `tarn bench` printed and performance.md, the part of docs/performance.md between its `figures` markers; DOCS gets the pictures.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import line_plot
from bench import cpu

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build" / "bin"
BATCH = 16
DECODING = {"softmax": ("mt-base-softmax", "f32"), "RFA Gaussian": ("mt-base-rfa", "f32"),
            "RFA Gaussian, source f16": ("mt-base-rfa", "f16"), "RFA Gaussian, source int8": ("mt-base-rfa", "int8"),
            "RFA arc-cosine": ("mt-base-rfa-arccos", "f32"), "ABC": ("mt-base-abc", "f32"), "T2R": ("mt-base-t2r", "f32")}
DECODING_LENGTHS = [32, 64, 128, 256, 512, 1024, 2048]
MASKED_LM = {"softmax": "roberta-base-softmax", "ABC 64": "roberta-base-abc-64", "ABC 128": "roberta-base-abc-128",
             "Linformer 64": "roberta-base-linformer-64", "Linformer 128": "roberta-base-linformer-128"}
MASKED_LM_LENGTH = 512
MASKED_LM_PAPER = {"ABC 64": (1.5, 0.5), "ABC 128": (1.3, 0.6), "Linformer 64": (1.7, 0.5), "Linformer 128": (1.5, 0.6)}
CLASSIFICATION = {"softmax": "lra-text-softmax", "RFA Gaussian": "lra-text-rfa"}
CLASSIFICATION_LENGTHS = [1000, 2000, 3000, 4000]
MIB = 2.0**20


class Bench:
    def __init__(self, out, threads, quick):
        self.out, self.threads, self.quick = out, threads, quick
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

    def repetitions(self, length):
        return 1 if self.quick else 3 if length < 1024 else 2

    def run(self, name, length, target, batch, state="f32"):
        """Rows of `tarn bench` by the kind of their test."""
        print(f"figures: {name}, states in {state}, {length} tokens", file=sys.stderr, flush=True)
        path = self.model(name, length, state)
        command = [BIN / "tarn", "bench", "-m", path, "-p", length, "-n", target, "-r", self.repetitions(length),
                   "-t", self.threads, "--batch", batch, "-o", "json"]
        text = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=True).stdout
        path.with_suffix(".bench.json").write_text(text, encoding="utf-8")
        path.unlink()
        rows = {row["test"].rstrip("0123456789"): row for row in json.loads(text)}
        self.spread = max([self.spread, *(row["t_s_stddev"] / row["t_s_mean"] for row in rows.values())])
        return rows


def decoding(bench, docs, lengths):
    rates, states = {}, {}
    for system, (config, state) in DECODING.items():
        for length in lengths:
            row = bench.run(config, length, length, BATCH, state)["dec"]
            rates.setdefault(system, []).append((length, row["t_s_median"]))
            states.setdefault(system, []).append((length, row["state_bytes"] / MIB))
    picture = docs / "decoding.svg"
    drawn = [system for system, (_, state) in DECODING.items() if state == "f32"]  # those of the papers
    panels = [("decoded tokens per second", {system: rates[system] for system in drawn}),
              ("state of all sequences, MiB", {system: states[system] for system in drawn})]
    drawing = line_plot.draw(f"Translation, source as long as target, batch {BATCH}, int8", "length, tokens", panels)
    picture.write_text(drawing, encoding="utf-8")
    lines = [f"Decoding of `mt-base-*`, source and target of the same length, batch {BATCH}, greedy (RFA Figure 2, ABC Figure 1): "
             "tokens per second, and the ratio to softmax.", "",
             f"| system | {' | '.join(f'{length:,}' for length in lengths)} | state at {lengths[-1]:,} | of softmax's | "
             "paper at 2,048 |", "|---" + "|--:" * (len(lengths) + 2) + "|---|"]
    paper = {"softmax": "1", "RFA Gaussian": "about 12x, memory under 10 %",
             "RFA Gaussian, source f16": "", "RFA Gaussian, source int8": "", "RFA arc-cosine": "slightly above Gaussian",
             "ABC": "about 1.25x RFA", "T2R": "about 20 % above ABC"}
    for system, points in rates.items():
        cells = [f"{rate:.0f} ({rate / base:.1f}x)" for (_, rate), (_, base) in zip(points, rates["softmax"])]
        last = states[system][-1][1]
        share = 100 * last / states["softmax"][-1][1]
        lines.append(f"| {system} | {' | '.join(cells)} | {last:.1f} MiB | {share:.1f} % | {paper[system]} |")
    at_end = {system: points[-1][1] for system, points in rates.items()}
    return lines + ["", f"At {lengths[-1]:,}: ABC over RFA Gaussian {at_end['ABC'] / at_end['RFA Gaussian']:.2f} (paper 1.25), "
                    f"T2R over ABC {at_end['T2R'] / at_end['ABC']:.2f} (paper 1.2).", "",
                    f"![Decoding speed and memory]({os.path.relpath(picture, ROOT / 'docs')})"]


def masked_lm(bench, _docs, length):
    lines = [f"Encoding of `roberta-base-*`, {length} tokens, batch {BATCH} (ABC Table 4).", "",
             "| system | tokens per second | speed | paper | session, MiB | of softmax's | anonymous, MiB | of softmax's | paper |",
             "|---" + "|--:" * 8 + "|"]
    base = None
    for system, config in MASKED_LM.items():
        row = bench.run(config, length, 0, BATCH)["enc"]
        base = base or row
        speed, memory = MASKED_LM_PAPER.get(system, (1.0, 1.0))
        lines.append(f"| {system} | {row['t_s_median']:.0f} | {row['t_s_median'] / base['t_s_median']:.2f}x | {speed}x | "
                     f"{row['session_bytes'] / MIB:.1f} | {row['session_bytes'] / base['session_bytes']:.2f}x | "
                     f"{row['peak_anon_bytes'] / MIB:.1f} | {row['peak_anon_bytes'] / base['peak_anon_bytes']:.2f}x | {memory}x |")
    return lines


def classification(bench, docs, lengths):
    rates, memory = {}, {}
    for system, config in CLASSIFICATION.items():
        for length in lengths:
            row = bench.run(config, length, 0, 1)["enc"]
            rates.setdefault(system, []).append((length, row["t_s_median"]))
            memory.setdefault(system, []).append((length, row["session_bytes"] / MIB))
    picture = docs / "classification.svg"
    picture.write_text(line_plot.draw("Byte-level text classification, int8", "length, bytes",
                                      [("bytes per second", rates), ("session, MiB", memory)]), encoding="utf-8")
    lines = ["Encoding of `lra-text-*`, one text at a time (RFA Table 3): bytes per second, and the ratio to softmax.", "",
             f"| system | {' | '.join(f'{length:,}' for length in lengths)} | session at {lengths[-1]:,} | paper |",
             "|---" + "|--:" * (len(lengths) + 1) + "|---|"]
    for system, points in rates.items():
        cells = [f"{rate:.0f} ({rate / base:.1f}x)" for (_, rate), (_, base) in zip(points, rates["softmax"])]
        paper = "1" if system == "softmax" else "1.1x to 5.3x"
        lines.append(f"| {system} | {' | '.join(cells)} | {memory[system][-1][1]:.1f} MiB | {paper} |")
    return lines + ["", f"![Encoding speed and memory]({os.path.relpath(picture, ROOT / 'docs')})"]


FIGURES = {"decoding": (decoding, DECODING_LENGTHS, DECODING_LENGTHS[:2]), "masked_lm": (masked_lm, MASKED_LM_LENGTH, 64),
           "classification": (classification, CLASSIFICATION_LENGTHS, [100, 200])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default=",".join(FIGURES), help="figures, separated by commas")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--quick", action="store_true", help="short lengths, to see that it works")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "figures")
    parser.add_argument("--docs", type=pathlib.Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.docs.mkdir(parents=True, exist_ok=True)
    lines = []
    for name in arguments.only.split(","):
        bench = Bench(arguments.out, arguments.threads, arguments.quick)
        function, sizes, quick = FIGURES[name]
        figure = function(bench, arguments.docs, quick if arguments.quick else sizes)
        spread = (f"On {cpu()}; {arguments.threads} threads; medians of 3 repetitions, of 2 from 1,024 tokens on;\n"
                  f"the largest standard deviation is {100 * bench.spread:.0f} % of its mean.")
        lines += [spread, "", *figure, ""]
    text = "\n".join(["<!-- figures -->", *lines[:-1], "<!-- /figures -->", ""])
    (arguments.out / "performance.md").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
