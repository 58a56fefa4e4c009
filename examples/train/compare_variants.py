#!/usr/bin/env python3
"""Trains attention variants alike, from nothing and from a softmax model, and prints a table of what they reach.

    compare_variants.py TEXT... -o DIR [--scale tiny|small] [--jobs N] [--seeds N] [--bin DIR]

Runs tarn-train and tarn-transfer, N at a time; the same command goes on where it was stopped. Then it converts every model to each
type of QUANTS, and measures the loss with `tarn eval` and the speed with `tarn bench`, which wants a machine that does nothing else.
The plan of docs/training.md, "What the variants reach".
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys

from tarn_train import text
from tarn_train.settings import MEASURED

# Of a head of d: its state has about d * d numbers, but for softmax.
OBJECTS = {
    "softmax": lambda d: {"system": "softmax", "max_context": COMMON["context"]},
    "rfa_arccos": lambda d: {"system": "rfa", "feature_map": "arccos", "num_features": d},
    "rfa_arccos_gate": lambda d: {"system": "rfa", "feature_map": "arccos", "num_features": d, "gate": "forget"},
    "abc": lambda d: {"system": "abc_mlp", "num_slots": d // 2},
    "abc_gate": lambda d: {"system": "gsa", "num_slots": d // 2},
    "gla": lambda d: {"system": "gla"},
    "retnet": lambda d: {"system": "retnet"},
    "gated_deltanet": lambda d: {"system": "gated_deltanet"},
    "t2r": lambda d: {"system": "t2r", "num_features": d},
}
ROTARY = ("softmax", "rfa_arccos", "abc", "retnet", "t2r")  # the others have no positions
TRANSFERRED = ("abc", "rfa_arccos", "t2r")
COMMON = {"context": 256, "held_out": 0.02, "evaluate_windows": 0, "threads": 1}


@dataclasses.dataclass(frozen=True)
class Scale:
    model: dict
    batch: int
    steps: int  # from nothing
    match: int  # of a transfer; a model from nothing that it is compared with has match + tune
    tune: int
    learning_rate: float


SCALES = {
    "tiny": Scale({"hidden_size": 128, "num_layers": 4, "num_heads": 4, "intermediate_size": 352, "vocab_size": 1024}, 8, 800, 200, 200, 2e-3),
    "small": Scale({"hidden_size": 256, "num_layers": 4, "num_heads": 4, "intermediate_size": 704, "vocab_size": 4096}, 32, 1200, 300, 300, 1e-3),
}
QUANTS = {"f32": [], "int8": [], "int4": [], "int4 calibrated": ["--calibrate"], "int3 calibrated": ["--calibrate"]}
PACKAGE = pathlib.Path(__file__).resolve().parent


def flags(settings):
    return [text for name, value in settings.items() for text in (f"--{name.replace('_', '-')}", str(value))]


class Plan:
    """The runs, each a directory of `folder` that is whole once training.json is there."""

    def __init__(self, args):
        self.args, self.folder, self.scale = args, args.output, SCALES[args.scale]
        self.folder.mkdir(parents=True, exist_ok=True)
        beginnings, _ = text.split(text.read_texts(args.text), COMMON["held_out"])
        (self.folder / "calibration.txt").write_text("".join(beginnings), encoding="utf-8")
        head = self.scale.model["hidden_size"] // self.scale.model["num_heads"]
        for name, attention in OBJECTS.items():
            (self.folder / f"{name}.yaml").write_text(json.dumps({"attention": attention(head)}), encoding="utf-8")  # JSON is YAML

    def command(self, program, name, attention, seed, steps, *positionals, **settings):
        common = {**COMMON, "batch": self.scale.batch, "learning_rate": self.scale.learning_rate, "seed": seed, "steps": steps}
        return [sys.executable, "-m", f"tarn_train.{program}", *positionals, *self.args.text, "-o", self.folder / name, "--no-convert",
                "--config", self.folder / f"{attention}.yaml", *flags({**common, **settings})]

    def from_nothing(self, name, attention, seed, steps):
        position = "rope" if attention in ROTARY else "none"
        return self.command("main", name, attention, seed, steps, **self.scale.model, warmup=100, position_embedding=position,
                            evaluate_every=max(steps // 5, 1))

    def transferred(self, name, attention, seed):
        return self.command("transfer_main", name, attention, seed, self.scale.tune, self.folder / f"softmax-{seed}",
                            match_steps=self.scale.match, evaluate_every=max(self.scale.tune // 3, 1), converter=self.args.bin / "tarn-convert")

    def stages(self):
        """[(name, command)] of what needs nothing, and of what needs a teacher"""
        first, second = [], []
        for seed in range(1, self.args.seeds + 1):
            for attention in OBJECTS:
                name = f"{attention}-{seed}"
                first.append((name, self.from_nothing(name, attention, seed, self.scale.steps)))
            for attention in TRANSFERRED:
                name = f"{attention}-short-{seed}"
                first.append((name, self.from_nothing(name, attention, seed, self.scale.match + self.scale.tune)))
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

    def tool(self, program, *arguments):
        command = list(map(str, [self.args.bin / program, *arguments]))
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def judge(self, name):
        """column -> number. Losses in nats per byte of the held-out text, in blocks of the context as it was trained."""
        folder, found = self.folder / name, {}
        held_out = folder / "held-out.txt"
        for quant, more in QUANTS.items():
            model = folder / f"{quant.replace(' ', '-')}.tarn"
            calibration = [*more, self.folder / "calibration.txt"] if more else []
            accepted = ["--eval", held_out] if quant.split()[0] in MEASURED else []
            self.tool("tarn-convert", folder, "-o", model, "--quant", quant.split()[0], *calibration, *accepted)
            found[quant] = json.loads(self.tool("tarn", "eval", model, "-f", held_out, "--block", COMMON["context"], "--json"))
        trained = json.loads((folder / "training.json").read_text(encoding="utf-8"))["held_out_nats_per_token"]
        pytorch = trained * found["f32"]["nats_per_byte"] / found["f32"]["nats_per_token"]
        decode = json.loads(self.tool("tarn", "bench", folder / "int8.tarn", "-p", 0, "-n", 128, "-t", 1, "-r", 9, "-o", "json"))[0]
        return {"PyTorch": pytorch, **{quant: result["nats_per_byte"] for quant, result in found.items()},
                "state": decode["state_bytes"], "tokens/s": decode["t_s_median"]}


def row(of_seeds):
    """The cells after the name. PyTorch and f32: the mean of the seeds, and half of what they differ by. Other types: what they add to
    the loss in f32, of which the mean as well."""
    def cell(column):
        return [result[column] for result in of_seeds]

    for column in "PyTorch", "f32":
        yield f"{statistics.mean(cell(column)):.4f} ± {(max(cell(column)) - min(cell(column))) / 2:.4f}"
    for column in list(QUANTS)[1:]:
        yield f"{statistics.mean(cell(column)) - statistics.mean(cell('f32')):+.4f}"
    yield f"{of_seeds[0]['state']:,}"
    yield f"{statistics.median(cell('tokens/s')):,.0f}"


def table(plan, names, seeds):
    columns = ["PyTorch", *QUANTS, "states, bytes", "tokens/s, int8"]
    yield f"| model | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}"
    for name in names:
        yield f"| {name} | " + " | ".join(row([plan.judge(f"{name}-{seed}") for seed in range(1, seeds + 1)])) + " |"


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
    parser.add_argument("--scale", choices=tuple(SCALES), default="tiny", help="sizes and steps; small is for a GPU (default: tiny)")
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
