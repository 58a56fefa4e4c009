#!/usr/bin/env python3
"""Runs llama-bench and tarn bench in turn, for peers.sh, which has made the folder.

    peers.py FOLDER [--models lm-small,lm-big] [--threads 1,2] [--depths 0,2048] [-r 3]

FOLDER/sid is a Debian with llama-bench. Writes FOLDER/peers.json (what both printed) and FOLDER/peers.md (the table, also on
standard output). lm-small and lm-big of examples/configs are the rfa-gate system here, and the llama architecture of the same size
there. A model of examples/configs/published is the same architecture on both sides; if it has softmax attention, its cache has room
for the longest test. All weights are random, which does not change the time of a token.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

import gguf_models
from published_sizes import SOFTMAX

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build" / "bin"
CONFIGS = ROOT / "examples" / "configs"
PRECISIONS = [("int8", "Q8_0"), ("int4", "Q4_0")]
PROMPT, STEPS = 512, 64
MIB = 1 << 20


def say(text):
    print("peers: " + text, file=sys.stderr, flush=True)


def memory_of(pid):
    """Anonymous bytes now and the most bytes ever resident."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    return [int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "VmHWM") if name in fields] or [0, 0]


def run(command):
    """Its standard output, and the peak of each number of memory_of()."""
    peak = [0, 0]
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # Both print less than a pipe holds.
        while process.poll() is None:
            peak = [max(pair) for pair in zip(peak, memory_of(process.pid))]
            time.sleep(0.02)
        out, err = process.communicate()
    if process.returncode != 0:
        lines = err.strip().splitlines() or [str(process.returncode)]
        telling = [line for line in lines if "unknown model architecture" in line or "error" in line] or lines[-1:]
        raise RuntimeError(f"{' '.join(map(str, command))}: {telling[0]}")
    return out, peak


def llama_bench(folder, gguf, threads, depth, repetitions):
    out, peak = run(["chroot", folder / "sid", "llama-bench", "-m", f"/peers/{gguf}", "-p", PROMPT, "-n", STEPS, "-d", depth,
                     "-t", threads, "-r", repetitions, "-o", "json"])
    rows = json.loads(out)
    return {"t_s": {"tg" if row["n_gen"] else "pp": row["avg_ts"] for row in rows}, "anon": peak[0], "resident": peak[1],
            "parameters": rows[0]["model_n_params"]}


def tarn_bench(model, threads, depth, repetitions):
    out, _ = run([BIN / "tarn", "bench", "-m", model, "-p", PROMPT, "-n", STEPS, "-d", depth, "-t", threads, "-r", repetitions,
                  "-o", "json"])
    rows = json.loads(out)
    # The buffers of the bandwidth are in the process of a bench, so that its memory is measured in a run.
    _, peak = run([BIN / "tarn", "run", "-m", model, "--tokens", ",".join(["1"] * PROMPT), "-n", STEPS, "-t", threads])
    return {"t_s": {row["test"][:2]: row["t_s_mean"] for row in rows}, "anon": max(row["peak_anon_bytes"] for row in rows),
            "resident": peak[1], "bandwidth_share": rows[-1]["bandwidth_share"], "parameters": rows[0]["parameters"]}


def config_of(name):
    """Its path, and whether it is a published model."""
    ours = CONFIGS / f"{name}-rfa-gate.json"
    return (ours, False) if ours.exists() else (CONFIGS / "published" / f"{name}.json", True)


def check_names(names):
    for name in names:
        path, _ = config_of(name)
        if not path.exists():
            sys.exit(f"peers: there is no model {name} in {CONFIGS}")
        config = json.loads(path.read_text(encoding="utf-8"))
        if not gguf_models.known(config):
            sys.exit(f"peers: {name}: gguf_models.py has no architecture for {config['model_type']}")


def make_models(folder, name, precision, quant, context):
    """The two files; nothing if tarn-convert cannot make the precision."""
    config, _ = config_of(name)
    model, gguf = folder / f"{name}-{precision}.tarn", f"{name}-{quant}.gguf"
    bounded = json.loads(config.read_text(encoding="utf-8")).get("model_type") in SOFTMAX
    made = subprocess.run([BIN / "tarn-convert", "--random-weights", "1", config, "-o", model, "--quant", precision,
                           *(["--max-context", str(context)] if bounded else [])],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode != 0:
        say(f"{name} {precision} left out: {made.stderr.strip()}")
        return None
    (folder / "sid" / "peers").mkdir(exist_ok=True)
    subprocess.run([ROOT / "tools" / "dev" / "write_gguf.py", config, quant, folder / "sid" / "peers" / gguf], check=True)
    return model, gguf


def same_size(name, ours, theirs):
    """False where a description in gguf_models.py has forgotten a matrix: then two different models would be compared."""
    say(f"{name}: {ours['parameters']:,} parameters here, {theirs['parameters']:,} there")
    _, published = config_of(name)
    return abs(ours["parameters"] - theirs["parameters"]) <= ours["parameters"] * (0.001 if published else 0.02)


def measure(arguments, name, precision, quant):
    """A result for each number of threads and each depth; none if llama-bench does not know the architecture."""
    files = make_models(arguments.folder, name, precision, quant, max(arguments.depths) + PROMPT + STEPS)
    for threads, depth in itertools.product(arguments.threads, arguments.depths) if files else []:
        say(f"{name} {precision}, {threads} threads, depth {depth}")
        try:
            theirs = llama_bench(arguments.folder, files[1], threads, depth, arguments.repetitions)
        except RuntimeError as error:
            if "unknown model architecture" not in str(error):
                raise
            say(f"{name} {quant} left out: {error}")
            return
        ours = tarn_bench(files[0], threads, depth, arguments.repetitions)
        if not same_size(name, ours, theirs):
            say(f"{name} {quant} left out: these are not of the same size")
            return
        yield {"model": name, "precision": precision, "quant": quant, "threads": threads, "depth": depth, "llama.cpp": theirs,
               "tarn": ours}


def table(results):
    lines = ["| model | weights | threads | test | llama.cpp t/s | tarn t/s | tarn / llama.cpp | "
             "anonymous MiB, llama.cpp | tarn | resident MiB, llama.cpp | tarn |",
             "|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"]
    for result in results:
        theirs, ours = result["llama.cpp"], result["tarn"]
        for test, tokens in ("pp", PROMPT), ("tg", STEPS):
            depth = f" @ d{result['depth']}" if result["depth"] else ""
            memory = [f"{side[key] / MIB:.1f}" for key in ("anon", "resident") for side in (theirs, ours)]
            lines.append(f"| {result['model']} | {result['quant']} / {result['precision']} | {result['threads']} | "
                         f"{test}{tokens}{depth} | {theirs['t_s'][test]:.1f} | {ours['t_s'][test]:.1f} | "
                         f"{ours['t_s'][test] / theirs['t_s'][test]:.2f} | " + " | ".join(memory) + " |")
    return "\n".join(lines) + "\n"


def main():
    numbers = lambda text: [int(item) for item in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", type=lambda text: text.split(","), default=["lm-small", "lm-big"],
                        help="lm-small, lm-big, or of examples/configs/published")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--depths", type=numbers, default=[0, 2048])
    parser.add_argument("-r", "--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["TARN_PACKED_CACHE"] = str(arguments.folder / "packed")
    check_names(arguments.models)
    results = []
    for name in arguments.models:
        for precision, quant in PRECISIONS:
            results += measure(arguments, name, precision, quant)
    text = table(results)
    (arguments.folder / "peers.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    (arguments.folder / "peers.md").write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
