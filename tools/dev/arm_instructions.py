#!/usr/bin/env python3
"""Machine instructions of one decode step of the example models on emulated ARM cores, held against arm_instructions.json.

    arm_instructions.py [--update] [--functions] [CORE...]     needs the presets linux-aarch64 and linux-armv7 (make cross)

QEMU's user mode runs tarn_marked_step with a plugin that counts (tests/bench/count_plugin.c): the counts are equal in every run, so
a change of 1 % is a change of the code. --update records what is found: commit it with the reason why. --functions lists where the
instructions are instead. On DEPTH_CORE, the step after DEPTHS[1] tokens must cost what it costs after DEPTHS[0] (32-bit ARM has
no vectors of f64: the C library's sine of a position costs what its argument makes it). XNNPACK knows real cores by name and may
choose other kernels there; under QEMU it chooses by features.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUDGETS = ROOT / "tools/dev/arm_instructions.json"
PLUGIN = ROOT / "tests/bench/count_plugin.c"
MODELS = ["shakespeare-rfa-gate-int8", "shakespeare-abc-mlp-int8"]
TOLERANCE = 0.01
DEPTH_CORE = "NEON (A53)"
DEPTHS = [100, 2000]
DEPTH_TOLERANCE = 1e-4  # arithmetic has no branches on depth, but a few on values

# Preset, emulator, its -cpu, the number of getppid().
CORES = {
    "armv7 NEON (A7)": ("linux-armv7", "qemu-arm", "cortex-a7", 64),
    "NEON (A53)": ("linux-aarch64", "qemu-aarch64", "cortex-a53", 173),
    "dotprod (A76)": ("linux-aarch64", "qemu-aarch64", "cortex-a76", 173),
    "SVE2 of 128 bits": ("linux-aarch64", "qemu-aarch64", "max,sve128=on,sve=on", 173),
    "SVE2 of 256 bits": ("linux-aarch64", "qemu-aarch64", "max,sve256=on,sve=on", 173),
}


def run(*command):
    environment = {**os.environ, "TARN_PACKED_CACHE": "none"}
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          env=environment)
    if done.returncode != 0:
        sys.exit(f"arm_instructions: {' '.join(map(str, command))} failed: {done.stderr.strip()[-500:]}")
    return done.stderr


def count(plugin, core, model, depth):
    """{function: instructions} of one step."""
    preset, emulator, cpu, mark = CORES[core]
    program = ROOT / "build" / preset / "bin/tarn_marked_step"
    if not program.exists():
        sys.exit(f"arm_instructions: {program.relative_to(ROOT)} is missing: make {preset}")
    lines = run(emulator, "-cpu", cpu, "-plugin", f"{plugin},mark={mark}", "-d", "plugin", program,
                ROOT / f"examples/models/{model}.tarn", depth).splitlines()
    functions = collections.Counter()
    for line in lines[1:]:
        number, _, name = line.partition(" ")
        functions[name] += int(number)
    total = sum(functions.values())
    if not lines or lines[0] != f"total {total}" or total == 0:
        sys.exit(f"arm_instructions: {core}: the plugin printed {lines[:1]}, a total of {total} was expected")
    return functions


def total(plugin, core, model, depth):
    return sum(count(plugin, core, model, depth).values())


def check_depth(plugin, model, shallow):
    deep = total(plugin, DEPTH_CORE, model, DEPTHS[1])
    if abs(deep - shallow) > DEPTH_TOLERANCE * shallow:
        sys.exit(f"arm_instructions: {DEPTH_CORE}, {model}: a step costs {shallow} instructions after {DEPTHS[0]} tokens and "
                 f"{deep} after {DEPTHS[1]}: equal to 1 in {round(1 / DEPTH_TOLERANCE)} expected")


def complaints(recorded, found):
    for core, models in found.items():
        for model, number in models.items():
            budget = recorded.get(core, {}).get(model)
            if budget is None:
                yield f"{core}, {model}: not recorded"
            elif number > budget * (1 + TOLERANCE):
                grown = 100 * (number / budget - 1)
                yield (f"{core}, {model}: {number} instructions per token, the budget {budget} ({grown:+.2f} %, "
                       f"at most +{100 * TOLERANCE:.0f} % expected)")


def print_table(found):
    print("<!-- arm instructions -->")
    print("| instructions per token | " + " | ".join(MODELS) + " |\n|---|" + "--:|" * len(MODELS))
    for core, models in found.items():
        print(f"| {core} | " + " | ".join(f"{models[model]:,}" for model in MODELS) + " |")
    print("<!-- /arm instructions -->")


def main():
    parser = argparse.ArgumentParser(usage="arm_instructions.py [--update] [--functions] [CORE...]")
    parser.add_argument("cores", nargs="*", metavar="CORE")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--functions", action="store_true")
    arguments = parser.parse_args()
    for core in arguments.cores:
        if core not in CORES:
            sys.exit(f"arm_instructions: no core '{core}'; there are: {', '.join(CORES)}")
    cores = arguments.cores or list(CORES)
    with tempfile.TemporaryDirectory() as folder:
        plugin = pathlib.Path(folder, "count_plugin.so")
        run("cc", "-O2", "-shared", "-fPIC", PLUGIN, "-o", plugin)
        if arguments.functions:
            for core in cores:
                for model in MODELS:
                    print(f"{core}, {model}")
                    for name, number in count(plugin, core, model, DEPTHS[0]).most_common(16):
                        print(f"  {number:9d} {name}")
            return 0
        found = {core: {model: total(plugin, core, model, DEPTHS[0]) for model in MODELS} for core in cores}
        for model, number in found.get(DEPTH_CORE, {}).items():
            check_depth(plugin, model, number)
    recorded = json.loads(BUDGETS.read_text(encoding="utf-8")) if BUDGETS.exists() else {}
    print_table(found)
    if arguments.update:
        BUDGETS.write_text(json.dumps({**recorded, **found}, indent=2) + "\n", encoding="utf-8")
        print(f"recorded in {BUDGETS.relative_to(ROOT)}")
        return 0
    lines = list(complaints(recorded, found))
    if lines:
        print("\n".join(lines) + "\nif that is meant: tools/dev/arm_instructions.py --update, and say why in the commit")
        return 1
    print(f"{len(found)} cores are within their budgets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
