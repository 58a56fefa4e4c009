#!/usr/bin/env python3
"""What precisions cost and save on the trained models of examples/train: the table of docs/quantization.md.

    quantization.py [--build DIR] [--lines N] [--update]     (make quantization-table)

Each model is converted in each precision, and answers the first N lines of its test set (1,000). --update writes the table between the
markers of the page. A minute on two idle cores.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import markers

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "quantization.md"
MODELS = ("dates-rfa", "dates-abc", "listops-rfa", "listops-abc")
EMBEDDINGS = ("--quant", "int4", "--keep", "*embeddings*=int8")
WEIGHTS = {
    "f32": ("--quant", "f32"),
    "f16": ("--quant", "f16"),
    "int8": ("--quant", "int8"),
    "int4": ("--quant", "int4"),
    "int4, embeddings int8": EMBEDDINGS,
}
WEIGHTS_OF_ABC = {**WEIGHTS, "int4, embeddings and control int8": (*EMBEDDINGS, "--keep", "*control*=int8")}
STATES = ("f16", "int8")


def output_of(*command) -> str:
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "an unnamed CPU"


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
            for weights, options in (WEIGHTS_OF_ABC if name.endswith("abc") else WEIGHTS).items():
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    made = table(options.build, options.lines)
    print(made, end="")
    if options.update:
        PAGE.write_text(markers.replaced(PAGE.read_text(encoding="utf-8"), "quantization", made, "docs/quantization.md"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
