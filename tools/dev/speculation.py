#!/usr/bin/env python3
"""What speculation gains on texts that repeat themselves and on texts that do not: the table of docs/speculation.md.

    speculation.py [--build DIR] [--configs lm-big-rfa-gate,lm-big-abc] [-r ROUNDS] [--tokens N] [--update]     (make speculation)

tarn_speculation_time forces a text on a model with random weights (int8, one thread), with speculation and without, in two sessions
that take turns. The table has medians over the rounds. --update writes it between the markers of the page. Half an hour.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import markers
from grammar_cost import cpu_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "speculation.md"
TEXTS = {"source code: the files of `runtime/ops`": "code", "a text that comes again: `README.md`": f"again:{ROOT / 'README.md'}",
         "prose: `docs/c-api.md`": str(ROOT / "docs/c-api.md"), "random tokens": "random"}
PROMPT = 2048


def rounds_of(build: Path, model: Path, text: str, options) -> list:
    command = [build / "bin/tarn_speculation_time", model, text, PROMPT if text != "random" else 64, options.tokens]
    return [json.loads(subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout)
            for _ in range(options.rounds)]


def table(options) -> str:
    text = [f"{options.tokens} tokens, up to 15 drafts, on {cpu_name()}. Every number is the median",
            f"of {options.rounds} rounds, also the ratio; in brackets the least and the most.", "",
            "| model | text | tokens/s without | with | ratio | drafted | right |", "|---|---|--:|--:|--:|--:|--:|"]
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code"
        code.write_bytes(b"".join(path.read_bytes() for path in sorted((ROOT / "runtime/ops").rglob("*.cc"))))
        for config in options.configs.split(","):
            model = Path(folder) / f"{config}.tarn"
            subprocess.run([options.build / "bin/tarn-convert", "--random-weights", "1", ROOT / f"examples/configs/{config}.json", "-o",
                            model, "--quant", "int8"], stdout=subprocess.DEVNULL, check=True)
            for name, source in TEXTS.items():
                runs = rounds_of(options.build, model, str(code) if source == "code" else source, options)

                def median(key, of=runs):
                    return statistics.median(run[key] for run in of)

                ratios = [run["ratio"] for run in runs]
                text.append(f"| `{config}` | {name} | {median('plain_t_s'):.1f} | {median('speculation_t_s'):.1f} "
                            f"| {median('ratio'):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {median('drafted'):.0f} "
                            f"| {median('accepted'):.0f} |")
            model.unlink()
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--configs", default="lm-big-rfa-gate,lm-big-abc")
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    made = table(options)
    print(made, end="")
    if options.update:
        PAGE.write_text(markers.replaced(PAGE.read_text(encoding="utf-8"), "speculation", made, "docs/speculation.md"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
