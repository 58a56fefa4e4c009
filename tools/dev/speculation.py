#!/usr/bin/env python3
"""What speculation gains on texts that repeat themselves, on texts that do not, and with a draft model: the tables of
docs/speculation.md.

    speculation.py [--build DIR] [--configs lm-big-rfa-gate,lm-big-abc] [-r ROUNDS] [--tokens N] [--pair] [--update]

tarn_speculation_time forces a text on a model with random weights (int8, one thread), with speculation and without, in two sessions
that take turns. The table has medians over the rounds. Then `tarn run` writes texts with the default model and its draft model;
--pair measures these alone. --update writes the tables between the markers of the page. make speculation: half an hour.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import markers
from cpu import cpu_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "speculation.md"
# name, file, tokens of the prompt
TEXTS = (("source code: the files of `runtime/ops`", "code", 8192), ("the same", "code", 2048),
         ("a text that comes again: `README.md`", f"again:{ROOT / 'README.md'}", 2048),
         ("prose: `docs/c-api.md`", str(ROOT / "docs/c-api.md"), 2048), ("random tokens", "random", 64))
TARGET, DRAFT = ROOT / "examples/models/shakespeare-rfa-gate-int8.tarn", ROOT / "examples/drafts/shakespeare-draft-int8.tarn"
SPEAKERS = ("ROMEO", "JULIET", "First Citizen", "MENENIUS", "KING RICHARD III", "GLOUCESTER", "PETRUCHIO", "KATHARINA", "LEONTES",
            "PROSPERO", "ISABELLA", "DUKE VINCENTIO")
SAMPLERS = {"`--temp 0`": ("--temp", 0), "`--temp 0.5`": ("--temp", 0.5, "-s", 1), "default sampler": ("-s", 1)}
PAIR_TOKENS = 1000


def rounds_of(build: Path, model: Path, text: str, prompt: int, options) -> list:
    command = [build / "bin/tarn_speculation_time", model, text, prompt, options.tokens]
    return [json.loads(subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, check=True).stdout)
            for _ in range(options.rounds)]


def table(options) -> str:
    text = [f"{options.tokens} tokens, up to 15 drafts, on {cpu_name()}. Every number is the median",
            f"of {options.rounds} rounds, also the ratio; in brackets the least and the most.", "",
            "| model | text | prompt | tokens/s without | with | ratio | drafted | right |", "|---|---|--:|--:|--:|--:|--:|--:|"]
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code"
        code.write_bytes(b"".join(path.read_bytes() for path in sorted((ROOT / "runtime/ops").rglob("*.cc"))))
        for config in options.configs.split(","):
            model = Path(folder) / f"{config}.tarn"
            subprocess.run([options.build / "bin/tarn-convert", "--random-weights", "1", ROOT / f"examples/configs/{config}.json", "-o",
                            model, "--quant", "int8"], stdout=subprocess.DEVNULL, check=True)
            for name, source, prompt in TEXTS:
                runs = rounds_of(options.build, model, str(code) if source == "code" else source, prompt, options)

                def median(key, of=runs):
                    return statistics.median(run[key] for run in of)

                ratios = [run["ratio"] for run in runs]
                text.append(f"| `{config}` | {name} | {prompt} | {median('plain_t_s'):.1f} | {median('speculation_t_s'):.1f} "
                            f"| {median('ratio'):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {median('drafted'):.0f} "
                            f"| {median('accepted'):.0f} |")
            model.unlink()
    return "\n".join(text) + "\n"


def seconds_of(build: Path, prompt: str, sampler, how) -> tuple:
    """Of PAIR_TOKENS tokens, and the text"""
    with tempfile.TemporaryDirectory() as folder:
        stats = Path(folder) / "stats.json"
        command = [build / "bin/tarn", "run", TARGET, "-p", f"{prompt}:\n", "-n", PAIR_TOKENS, "-q", "-t", 1, *sampler, *how,
                   "--json-stats", stats]
        text = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True).stdout
        return json.loads(stats.read_text())["generate_seconds"], text


def pair_table(options) -> str:
    ways = {"tables of the text alone": ("--speculate", 15), "tables and draft model": ("--draft", DRAFT, "--speculate", 15)}
    text = [f"{PAIR_TOKENS} tokens behind each of {len(SPEAKERS)} prompts (`ROMEO:` and other speakers), one thread, on",
            f"{cpu_name()}. Tokens per second over those of the same text without drafts: the median",
            "of the prompts, in brackets the least and the most.", "", "| sampler | " + " | ".join(ways) + " |", "|---|" + "--:|" * len(ways)]
    for name, sampler in SAMPLERS.items():
        ratios = {way: [] for way in ways}
        for speaker in SPEAKERS:
            plain, wanted = seconds_of(options.build, speaker, sampler, ())
            for way, how in ways.items():
                seconds, made = seconds_of(options.build, speaker, sampler, how)
                if made != wanted:
                    sys.exit(f"speculation.py: {speaker}, {name}, {way}: the text differs from the text without drafts")
                again, _ = seconds_of(options.build, speaker, sampler, ())
                ratios[way].append((plain + again) / 2 / seconds)
                plain = again
        text.append(f"| {name} | " + " | ".join(f"{statistics.median(of):.2f} ({min(of):.2f} to {max(of):.2f})"
                                                for of in ratios.values()) + " |")
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--configs", default="lm-big-rfa-gate,lm-big-abc")
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--pair", action="store_true", help="the default model and its draft model alone (a minute)")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    for name, measure in {"speculation": table, "pair": pair_table}.items():
        if options.pair and name != "pair":
            continue
        made = measure(options)
        print(made, end="", flush=True)
        if options.update:
            PAGE.write_text(markers.replaced(PAGE.read_text(encoding="utf-8"), name, made, "docs/speculation.md"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
