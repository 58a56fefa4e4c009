#!/usr/bin/env python3
"""Every causal system in a small random model: state bytes by formula, chunks against steps, a short run to its bound."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from runner import Failure, Model  # noqa: E402
from systems import config, systems  # noqa: E402

BOUND = 400


def main():
    failed = 0
    for system in systems(BOUND):
        try:
            with tempfile.TemporaryDirectory() as folder:
                # These have no heads that share keys.
                kv_heads = 2 if system.name.startswith(("retnet", "short_conv", "rg_lru", "diagonal")) else 1
                model = Model(os.environ["TARN_BUILD"], folder, system, config(system.attention, kv_heads=kv_heads), "f32")
                formula, _ = model.check_state()
                difference = model.check_chunks(200)
                model.check_long_run(500)
            print(f"{system.name:<26} {formula:>8} state bytes, chunks differ by {difference:.1e}")
        except Failure as failure:
            failed += 1
            print(f"{system.name:<26} FAIL: {failure}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
