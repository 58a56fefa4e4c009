"""golden_test must be able to fail: a copy of a golden file whose outputs, or a state, are moved by ten tolerances does."""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

GOLDEN_TEST = Path(os.environ["TARN_BUILD"]) / "bin" / "golden_test"
DATA = Path(os.environ["TARN_SOURCE"]) / "tests" / "golden" / "data"

# One of every family and state layout, and the tensors to move in it.
CASES = {
    "linear.rfa_gaussian.b": ["o", "state_S", "state_z"],
    "linear.rfa_gate_arccos.a": ["o", "state_S"],
    "linear.gated_deltanet.b": ["o", "state_S"],
    "linear.hgrn2.a": ["o", "state_S"],
    "linear.mamba2.a": ["o", "state_S"],
    "linear.rwkv7.b": ["o", "state_S"],
    "slots.abc_mlp_exp_renorm.b": ["o", "state_K", "state_V", "state_lse"],
    "linear.performer_positive.b": ["o", "state_m"],
    "slots.abc_mlp_relu_frozen.a": ["o", "state_z"],
    "slots.abc_rd.a": ["o", "state_K"],
    "slots.clustering_online.b": ["state_V", "state_count"],
    "cache.softmax.l": ["o"],
    "cache.compressive_transformer.b": ["o"],
    "conv.causal_conv.a": ["o", "state_rows"],
    "recurrence.diagonal.c": ["o", "state_h"],
    "noncausal.softmax.b": ["o"],
    "noncausal.rfa_arccos.b": ["o", "state_S", "state_z"],
    "noncausal.kv_clustering.b": ["o", "state_K", "state_V", "state_count"],
    "noncausal.luna_encoder.b": ["o", "o_pack"],
}


def moved(data: bytes, name: str) -> bytes:
    """The file with one element of tensor `name`, the last, moved by ten times what is allowed for it."""
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    tolerance = json.loads(header["__metadata__"]["tolerance"])
    if name.startswith("state_"):
        tolerance = tolerance["state"]
    at = 8 + length + header[name]["data_offsets"][1] - 4
    (value,) = struct.unpack_from("<f", data, at)
    step = 10 * (tolerance["abs"] + tolerance["rel"] * abs(value))
    return data[:at] + struct.pack("<f", value + math.copysign(step, value)) + data[at + 4 :]


def run(path: Path) -> tuple[int, str]:
    done = subprocess.run([GOLDEN_TEST, path, "--target", "reference"], stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout


def expect(condition: bool, what: str, output: str) -> None:
    if not condition:
        sys.exit(f"{what}\n{output}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for case, tensors in CASES.items():
            original = DATA / f"{case}.safetensors"
            status, output = run(original)
            expect(status == 0 and output.startswith(f"PASS {case} "), f"{case} does not pass", output)
            for tensor in tensors:
                copy = Path(folder) / "copy.safetensors"
                copy.write_bytes(moved(original.read_bytes(), tensor))
                status, output = run(copy)
                expect(status == 1 and output.startswith(f"FAIL {case} "), f"{case}: a moved {tensor} is not noticed", output)
                expect("0 passed, 1 failed" in output, f"{case}: no summary", output)
                details = [line for line in output.splitlines() if line.startswith("  ")]
                expect(all(f": {tensor} element " in line for line in details) and details, f"{case}: other tensors", output)
        status, output = run(Path(folder) / "missing.safetensors")
        expect(status == 1, "a path that does not exist is not an error", output)
        status, output = run(Path(folder))  # one failing copy
        expect(status == 1 and output.startswith("FAIL"), "a folder is not searched", output)
    print(f"{sum(map(len, CASES.values()))} moved tensors were noticed")


if __name__ == "__main__":
    main()
