#!/usr/bin/env python3
"""Holds the sizes of the library and the memory of the bench models against what is recorded in budgets.json.

    budgets.py [BUILD] [--update]     BUILD: folder of the host preset (default: build)

State and arena follow from the model alone and must be equal. What depends on compiler, CPU and XNNPACK may grow by 3 %; file sizes
are compared where the compiler is the recorded one. --update records what is found: commit the change with the reason why.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUDGETS = ROOT / "tools/dev/budgets.json"
TOLERANCE = 0.03
EXACT = ["state_bytes", "arena_bytes"]
TOLERANT = ["scratch_bytes", "program_bytes", "packed_anonymous_bytes", "model_bytes"]

SHAPES = {"lm-small": {"vocab_size": 32768, "hidden_size": 512, "num_layers": 6, "intermediate_size": 2048},
          "lm-big": {"vocab_size": 32000, "hidden_size": 1024, "num_layers": 16, "intermediate_size": 4096}}
SYSTEMS = {"rfa-gate": {"system": "rfa", "feature_map": "gaussian", "num_features": 64, "gate": "forget"},
           "abc": {"system": "abc_mlp", "num_slots": 32, "control_sharing": "model"}}
COMMON = {"task": "causal_lm", "num_heads": 8, "hidden_act": "relu", "norm": "layernorm", "norm_eps": 1e-5,
          "attention_bias": True, "position_embedding": "sinusoidal", "tokenizer": "none"}


def output(*command):
    environment = {**os.environ, "TARN_PACKED_CACHE": "none"}  # packed weights then show as anonymous, on every machine
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          env=environment)
    if done.returncode != 0:
        sys.exit(f"budgets: {command[0]} failed: {done.stderr.strip()}")
    return done.stdout


def compiler():
    """Of CMake's choice, as `machine version`: the sizes of binaries are comparable within one."""
    return output("c++", "-dumpmachine").strip() + " " + output("c++", "-dumpversion").strip()


def binary_bytes(file):
    """Code and data, as they are when stripped."""
    text, data = output("size", file).splitlines()[1].split()[:2]
    return int(text) + int(data)


def memory(build, model):
    found = json.loads(output(build / "bin/tarn", "inspect", model, "--json", "-t", "1"))["memory"]
    return {name: found[name] for name in EXACT + TOLERANT}


def measure(build):
    found = {"compiler": compiler(), "binaries": {}, "models": {}}
    for file in ["lib/libtarn.so", "bin/tarn"]:
        found["binaries"][file] = binary_bytes(build / file)
    with tempfile.TemporaryDirectory() as folder:
        config, model = pathlib.Path(folder, "config.json"), pathlib.Path(folder, "model.tarn")
        for shape, numbers in SHAPES.items():
            for system, attention in SYSTEMS.items():
                config.write_text(json.dumps({**COMMON, **numbers, "attention": attention}), encoding="utf-8")
                output(build / "bin/tarn-convert", "--random-weights", "1", config, "-o", model, "--quant", "int8")
                found["models"][f"{shape}-{system}-int8"] = memory(build, model)
    for model in sorted((ROOT / "examples/models").glob("*.tarn")):
        found["models"][model.stem] = memory(build, model)
    return found


def compare(where, name, recorded, found, exact):
    """A line that says what is wrong, or None."""
    if recorded is None or found is None:
        return f"{where}: {name} is {'not recorded' if recorded is None else 'gone'}"
    grown = 100 * (found - recorded) / recorded if recorded else 100.0
    change = f"{where}: {name} is {found}, the budget {recorded} ({grown:+.1f} %"
    if exact:
        return None if found == recorded else f"{change}, equal expected)"
    return f"{change}, at most +{100 * TOLERANCE:.0f} % expected)" if found > recorded * (1 + TOLERANCE) else None


def complaints(recorded, found):
    if recorded["compiler"] == found["compiler"]:
        for name in {**recorded["binaries"], **found["binaries"]}:
            yield compare("binaries", name, recorded["binaries"].get(name), found["binaries"].get(name), False)
    for model in {**recorded["models"], **found["models"]}:
        old, new = recorded["models"].get(model, {}), found["models"].get(model, {})
        for name in EXACT + TOLERANT:
            yield compare(model, name, old.get(name), new.get(name), name in EXACT)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    found = measure(pathlib.Path(arguments[0] if arguments else ROOT / "build"))
    if "--update" in sys.argv:
        BUDGETS.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        print(f"recorded in {BUDGETS.relative_to(ROOT)}")
        return 0
    recorded = json.loads(BUDGETS.read_text(encoding="utf-8"))
    lines = [line for line in complaints(recorded, found) if line]
    if lines:
        print("\n".join(lines) + "\nif that is meant: tools/dev/budgets.py --update, and say why in the commit")
        return 1
    skipped = "" if recorded["compiler"] == found["compiler"] else f" (binaries not: they were built by {recorded['compiler']})"
    print(f"{len(found['models'])} models and {len(found['binaries'])} binaries are within their budgets{skipped}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
