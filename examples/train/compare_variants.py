#!/usr/bin/env python3
"""Trains attention variants alike, from nothing and from a softmax model, and prints a table of what they reach.

    compare_variants.py TEXT... -o DIR [--jobs N] [--seeds N] [--bin DIR]

Runs tarn-train and tarn-transfer, N at a time; the same command goes on where it was stopped. Then it converts every model to each
type of QUANTS, and measures the loss with `tarn eval`. The plan of docs/training.md, "What the variants reach".
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys

from tarn_train import text

# A head of 64 has about 4,096 numbers of state.
OBJECTS = {
    "softmax": {"system": "softmax", "max_context": 256},
    "rfa": {"system": "rfa", "feature_map": "gaussian", "num_features": 32},
    "rfa_gate": {"system": "rfa", "feature_map": "gaussian", "num_features": 32, "gate": "forget"},
    "abc": {"system": "abc_mlp", "num_slots": 32},
    "abc_gate": {"system": "gsa", "num_slots": 32},
    "gla": {"system": "gla"},
    "retnet": {"system": "retnet"},
    "gated_deltanet": {"system": "gated_deltanet"},
    "t2r": {"system": "t2r", "num_features": 64},
}
POSITIONS = {"softmax": "rope", "retnet": "rope", "rfa": "sinusoidal", "abc": "sinusoidal", "t2r": "sinusoidal"}
TRANSFERRED = ("abc", "rfa", "t2r")
COMMON = {"context": 256, "batch": 32, "held_out": 0.02, "evaluate_windows": 0, "threads": 1}
MODEL = {"hidden_size": 256, "num_layers": 4, "num_heads": 4, "intermediate_size": 704, "vocab_size": 4096}
STEPS, MATCH, TUNE = 1200, 300, 300
QUANTS = {"f32": [], "int8": [], "int4": [], "int4 calibrated": ["--calibrate"]}
PACKAGE = pathlib.Path(__file__).resolve().parent


def flags(settings):
    return [text for name, value in settings.items() for text in (f"--{name.replace('_', '-')}", str(value))]


class Plan:
    """The runs, each a directory of `folder` that is whole once training.json is there."""

    def __init__(self, args):
        self.args, self.folder = args, args.output
        self.folder.mkdir(parents=True, exist_ok=True)
        beginnings, _ = text.split(text.read_texts(args.text), COMMON["held_out"])
        (self.folder / "calibration.txt").write_text("".join(beginnings), encoding="utf-8")
        for name, attention in OBJECTS.items():
            (self.folder / f"{name}.yaml").write_text(json.dumps({"attention": attention}), encoding="utf-8")  # JSON is YAML

    def command(self, program, name, attention, *positionals, **settings):
        return [sys.executable, "-m", f"tarn_train.{program}", *positionals, *self.args.text, "-o", self.folder / name, "--no-convert",
                "--config", self.folder / f"{attention}.yaml", *flags({**COMMON, **settings})]

    def from_nothing(self, name, attention, seed, steps, position):
        return self.command("main", name, attention, **MODEL, steps=steps, seed=seed, learning_rate=1e-3, warmup=100,
                            position_embedding=position, evaluate_every=max(steps // 5, 1))

    def transferred(self, name, attention, seed):
        return self.command("transfer_main", name, attention, self.folder / f"softmax-{seed}", seed=seed, steps=TUNE,
                            match_steps=MATCH, learning_rate=1e-3, evaluate_every=TUNE // 3, converter=self.args.bin / "tarn-convert")

    def stages(self):
        """[(name, command)] of what needs nothing, and of what needs a teacher"""
        first, second = [], []
        for seed in range(1, self.args.seeds + 1):
            for attention in OBJECTS:
                name = f"{attention}-{seed}"
                first.append((name, self.from_nothing(name, attention, seed, STEPS, POSITIONS.get(attention, "none"))))
            for attention in TRANSFERRED:
                name = f"{attention}-short-{seed}"
                first.append((name, self.from_nothing(name, attention, seed, MATCH + TUNE, "rope")))
                name = f"{attention}-from-softmax-{seed}"
                second.append((name, self.transferred(name, attention, seed)))
        return first, second

    def run(self, job):
        name, command = job
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
        with open(self.folder / f"{name}.log", "a", encoding="utf-8") as log:
            done = subprocess.run(list(map(str, command)), env=environment, stdout=log, stderr=log, check=False)
        if done.returncode:
            raise ValueError(f"{name} failed, see {self.folder / name}.log")
        print(f"trained: {name}", file=sys.stderr, flush=True)

    def judge(self, name):
        """type -> nats per byte of the held-out text by `tarn eval`, in blocks of the context as it was trained"""
        folder, found = self.folder / name, {}
        for quant, more in QUANTS.items():
            model = folder / f"{quant.replace(' ', '-')}.tarn"
            calibration = [*more, self.folder / "calibration.txt"] if more else []
            subprocess.run([self.args.bin / "tarn-convert", folder, "-o", model, "--quant", quant.split()[0], *calibration], check=True,
                           stdout=subprocess.DEVNULL)
            printed = subprocess.run([self.args.bin / "tarn", "eval", model, "-f", folder / "held-out.txt", "--block", str(COMMON["context"]), "--json"],
                                     check=True, stdout=subprocess.PIPE).stdout
            found[quant] = json.loads(printed)
        trained = json.loads((folder / "training.json").read_text(encoding="utf-8"))["held_out_nats_per_token"]
        pytorch = trained * found["f32"]["nats_per_byte"] / found["f32"]["nats_per_token"]
        return {"PyTorch": pytorch, **{quant: result["nats_per_byte"] for quant, result in found.items()}}


def table(plan, names, seeds):
    """A row for each name, a cell for each column: the mean of the seeds, and half of what they differ by"""
    columns = ["PyTorch", *QUANTS]
    yield f"| model | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}"
    for name in names:
        of_seeds = [plan.judge(f"{name}-{seed}") for seed in range(1, seeds + 1)]
        cells = [[result[column] for result in of_seeds] for column in columns]
        yield f"| {name} | " + " | ".join(f"{statistics.mean(cell):.4f} ± {(max(cell) - min(cell)) / 2:.4f}" for cell in cells) + " |"


def work(args):
    plan = Plan(args)
    stages = plan.stages()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for stage in stages:
            running = [pool.submit(plan.run, job) for job in stage]
            try:
                for done in concurrent.futures.as_completed(running):
                    done.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    names = list(dict.fromkeys(name.rpartition("-")[0] for stage in stages for name, _ in stage))
    for line in table(plan, names, args.seeds):
        print(line, flush=True)


def positive(typed):
    if int(typed) < 1:
        raise argparse.ArgumentTypeError(f"{typed}, expected 1 or more")
    return int(typed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", metavar="TEXT", type=pathlib.Path, help="text file, UTF-8")
    parser.add_argument("-o", "--output", metavar="DIR", type=pathlib.Path, required=True, help="directory of all runs")
    parser.add_argument("--jobs", type=positive, default=1, help="trainings at a time (default: 1)")
    parser.add_argument("--seeds", type=positive, default=2, help="each model is trained with seeds 1 to N (default: 2)")
    parser.add_argument("--bin", metavar="DIR", type=pathlib.Path, default="build/bin", help="directory of tarn and tarn-convert")
    args = parser.parse_args()
    for program in "tarn", "tarn-convert":
        if not os.access(args.bin / program, os.X_OK):
            parser.error(f"{args.bin / program} is no program: make builds it, or name its directory with --bin")
    try:
        work(args)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        parser.exit(1, f"compare_variants.py: error: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, "\ncompare_variants.py: stopped; the same command goes on\n")


if __name__ == "__main__":
    main()
