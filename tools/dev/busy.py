#!/usr/bin/env python3
"""Measures threads on a busy machine: `make busy`, about a quarter of an hour on two cores that have nothing else to do.

    busy.py [--models default,lm-small,lm-big] [--situations free,one-core,taken] [--pairs 10] [--old TARN] [--sessions-only]

Tokens per second of a prompt and of decoding with one thread, two and the default, in three situations: all cores free; one core
allowed (as `taskset -c 0`); a spinning program on the last core. A round runs every thread count once, in turns, so that slow
drifts of the machine meet all of them. The table has medians over rounds, and the median of each round's ratio to one thread.
With --old, another build of tarn takes the same turns.

Then the sessions: four programs at once that do the same work, with one thread each and with two.

Every run is ended after 60 seconds: 0 tokens/s then.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARN = ROOT / "build" / "bin" / "tarn"
OUT = ROOT / "build" / "busy"
DEFAULT_MODEL = ROOT / "examples" / "models" / "shakespeare-rfa-gate-int8.tarn"
WORK = {"default": (640, 400), "lm-small": (256, 64), "lm-big": (64, 16)}  # tokens of the prompt, and decoded
SITUATIONS = ["free", "one-core", "taken"]
SECONDS = 60


def say(text):
    print("busy: " + text, file=sys.stderr, flush=True)


def model_file(name):
    if name == "default":
        return DEFAULT_MODEL
    path = OUT / f"{name}.tarn"
    if not path.exists():
        config = ROOT / "examples" / "configs" / f"{name}-rfa-gate.json"
        subprocess.run([TARN.with_name("tarn-convert"), "--random-weights", "1", config, "-o", path, "--quant", "int8"],
                       stdout=subprocess.DEVNULL, check=True)
    return path


def bench(tarn, model, threads, cores):
    """Tokens per second of the prompt and of decoding."""
    prompt, decode = WORK[model]
    command = [tarn, "bench", "-m", model_file(model), "-p", prompt, "-n", decode, "-r", 1, "-o", "json",
               "--packed-cache", OUT / "packed", "--memory-mib", 16]
    if threads != "default":
        command += ["-t", threads]
    try:
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=True, timeout=SECONDS,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
        return [row["t_s_median"] for row in json.loads(done.stdout)]
    except subprocess.TimeoutExpired:
        return [0.0, 0.0]


def spin_on(core):
    return subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, {core}))


def measure(model, situation, variants, pairs):
    """(build, threads) -> [[prompt, decode] of each round]."""
    every = os.sched_getaffinity(0)
    cores = {min(every)} if situation == "one-core" else every
    found = {variant: [] for variant in variants}
    for tarn, _ in variants:
        bench(tarn, model, 1, every)  # the packed weights' file, and pages in memory
    spinner = spin_on(max(every)) if situation == "taken" else None
    try:
        for _ in range(pairs):
            for tarn, threads in variants:
                found[tarn, threads].append(bench(tarn, model, threads, cores))
    finally:
        if spinner:
            spinner.kill()
            spinner.wait()
    return found


def print_rows(model, situation, found, old):
    for i, test in enumerate(["prompt", "decode"]):
        for tarn in sorted({tarn for tarn, _ in found}, key=str):
            rates = {threads: [row[i] for row in rows] for (build, threads), rows in found.items() if build == tarn}
            cells = [f"{statistics.median(rates['1']):,.1f}"]
            for threads in ["2", "default"]:
                if threads not in rates:
                    cells += ["", ""]
                    continue
                ratio = statistics.median(many / one if one else 0 for many, one in zip(rates[threads], rates["1"]))
                cells += [f"{statistics.median(rates[threads]):,.1f}", f"{ratio:.2f}"]
            print(f"| {model} | {situation} | {test} | {'old' if tarn == old else 'new'} | {' | '.join(cells)} |", flush=True)


def seconds_of_four(tarn, threads):
    model = model_file("lm-small")
    command = [tarn, "bench", "-m", model, "-p", 512, "-n", 200, "-r", 1, "-t", threads, "-o", "json", "--packed-cache",
               OUT / "packed", "--memory-mib", 16]
    begin = time.monotonic()
    programs = [subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL) for _ in range(4)]
    for program in programs:
        program.wait()
    return time.monotonic() - begin


def measure_sessions(pairs):
    seconds_of_four(TARN, 1)
    times = [(seconds_of_four(TARN, 1), seconds_of_four(TARN, 2)) for _ in range(pairs)]
    one, two = (statistics.median(column) for column in zip(*times))
    ratio = statistics.median(b / a for a, b in times)
    print(f"\nfour sessions of lm-small at once: {one:.2f} s with one thread each, {two:.2f} s with two; ratio {ratio:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(WORK))
    parser.add_argument("--situations", default=",".join(SITUATIONS))
    parser.add_argument("--threads", default="1,2,default", help="must begin with 1")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--old", type=pathlib.Path)
    parser.add_argument("--sessions-only", action="store_true")
    arguments = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("busy: one core: expected two at least")
    OUT.mkdir(parents=True, exist_ok=True)
    if not arguments.sessions_only:
        builds = [TARN] + ([arguments.old] if arguments.old else [])
        variants = [(build, threads) for build in builds for threads in arguments.threads.split(",")]
        print("| model | cores | test | build | 1 thread | 2 threads | of one | default | of one |\n|---|---|---|---|---|---|---|---|---|")
        for model in arguments.models.split(","):
            for situation in arguments.situations.split(","):
                say(f"{model}, {situation}")
                print_rows(model, situation, measure(model, situation, variants, arguments.pairs), arguments.old)
    if arguments.sessions_only or arguments.models == ",".join(WORK):
        measure_sessions(arguments.pairs)


main()
