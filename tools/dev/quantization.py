#!/usr/bin/env python3
"""What precisions cost and save on the trained models of examples/train: the table of docs/quantization.md.

    quantization.py [--build DIR] [--lines N] [--update]     (make quantization-table)
    quantization.py --text FILE --checkpoints DIR... [--build DIR]     (make calibration-table)

Each model is converted in each precision, and answers the first N lines of its test set (1,000). --update writes the table between the
markers of the page. A minute on two idle cores.

The second form prints what int8, int4, int3 and int2 cost language models that were trained on the first nine tenths of a text, with
and without calibration on these: the loss on the last tenth above that in f32.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import markers
from cpu import cpu_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "quantization.md"
MODELS = ("dates-rfa", "dates-abc", "listops-rfa", "listops-abc")
WEIGHTS = {
    "f32": ("--quant", "f32"),
    "f16": ("--quant", "f16"),
    "int8": ("--quant", "int8"),
    "int4": ("--quant", "int4"),
    "int4, embeddings int8": ("--quant", "int4", "--keep", "*embeddings*=int8"),
    "int3": ("--quant", "int3"),
    "int2": ("--quant", "int2"),
}
STATES = ("f16", "int8")


def output_of(*command) -> str:
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout


def measure(build: Path, folder: Path, name: str, options) -> dict:
    """Bytes of the file and of the states, and the part of the lines that is right."""
    task = name.split("-")[0]
    model = folder / f"{name}.tarn"
    output_of(build / "bin/tarn-convert", ROOT / "examples/train/checkpoints" / name, "-o", model, *options)
    memory = json.loads(output_of(build / "bin/tarn", "inspect", "--json", model))["memory"]
    found = json.loads(output_of(build / "bin/tarn", "eval", "-m", model, "-f", folder / f"{task}.tsv", "--json", "--batch", 16))
    right = found["exact_match"] if task == "dates" else found["accuracy"]
    return {"file": model.stat().st_size, "state": memory["state_bytes"], "right": 100 * right}


def rows(build: Path, lines: int):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for task in "dates", "listops":
            output_of(sys.executable, ROOT / "examples/train" / f"{task}.py", "--split", "test", "-o", folder / f"{task}.all")
            text = (folder / f"{task}.all").read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / f"{task}.tsv").write_text("".join(text[:lines]), encoding="utf-8")
        for name in MODELS:
            for weights, options in WEIGHTS.items():
                yield name, weights, "f32", measure(build, folder, name, options)
            if name.startswith("dates"):  # classifiers have no states
                for state in STATES:
                    yield name, "int8", state, measure(build, folder, name, ("--quant", "int8", "--state", state))


def table(build: Path, lines: int) -> str:
    text = [f"Right answers to the first {lines:,} test lines of each task, in percent, on {cpu_name()}.", "",
            "| model | weights | states | file, bytes | states, bytes | right, % |", "|---|---|---|--:|--:|--:|"]
    for name, weights, state, found in rows(build, lines):
        classifier = name.startswith("listops")  # without a state
        states = ("-", "-") if classifier else (state, f"{found['state']:,}")
        text.append(f"| {name} | {weights} | {states[0]} | {found['file']:,} | {states[1]} | {found['right']:.1f} |")
    return "\n".join(text) + "\n"


CALIBRATED = {
    "int8": ("--quant", "int8"),
    "int8, calibrated": ("--quant", "int8", "--calibrate"),
    "int4": ("--quant", "int4"),
    "int4, calibrated": ("--quant", "int4", "--calibrate"),
    "int3": ("--quant", "int3"),
    "int3, calibrated": ("--quant", "int3", "--calibrate"),
    "int2": ("--quant", "int2"),
    "int2, calibrated": ("--quant", "int2", "--calibrate"),
}


def costs(build: Path, checkpoint: Path, train: Path, validation: Path):
    """Of every type: the loss in f32, and what the type adds to it."""
    for weights, options in CALIBRATED.items():
        options = (*options, train) if options[-1] == "--calibrate" else options
        said = output_of(build / "bin/tarn-convert", checkpoint, "-o", train.parent / "model.tarn", *options, "--eval", validation)
        found = re.search(r": ([0-9.]+) nats/(byte|token) in f32, .*: ([+-][0-9.]+) \(", said)
        yield weights, float(found[1]), found[2], float(found[3])


def calibration_table(build: Path, checkpoints, text: Path) -> str:
    content = text.read_bytes()
    with tempfile.TemporaryDirectory() as temporary:
        train, validation = Path(temporary, "train.txt"), Path(temporary, "validation.txt")
        train.write_bytes(content[: len(content) * 9 // 10])
        validation.write_bytes(content[len(content) * 9 // 10 :])
        made = [f"Loss on the last tenth of `{text.name}`, calibrated on the rest, on {cpu_name()}.", "",
                "| model | loss in f32 | " + " | ".join(CALIBRATED) + " |", "|---|--:|" + "--:|" * len(CALIBRATED)]
        for checkpoint in checkpoints:
            found = list(costs(build, checkpoint, train, validation))
            cells = " | ".join(f"{added:+.4f}" for _, _, _, added in found)
            made.append(f"| {checkpoint.name} | {found[0][1]:.4f} nats/{found[0][2]} | {cells} |")
    return "\n".join(made) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--checkpoints", type=Path, nargs="+")
    options = parser.parse_args()
    if (options.text is None) != (options.checkpoints is None):
        parser.error("--text and --checkpoints: both or none expected")
    if options.text is not None:
        print(calibration_table(options.build, options.checkpoints, options.text), end="")
        return 0
    made = table(options.build, options.lines)
    print(made, end="")
    if options.update:
        PAGE.write_text(markers.replaced(PAGE.read_text(encoding="utf-8"), "quantization", made, "docs/quantization.md"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
