#!/usr/bin/env python3
"""How far converted models of published families are from their originals: the table of docs/published-models.md anew.

    family_differences.py [--update] [FIXTURE...]     (make families-table)

Converts every model of tests/data/families in f32 and int8. The difference is the relative L2 of all logits in f32, the largest of
all ways to read the text: token by token, and in chunks of 7, 64 and all tokens. The agreement of int8 is the share of tokens for
which its largest logit is that of f32. A minute.
"""

import argparse
import collections
import os
import pathlib
import sys

import markers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "published-models.md"
os.environ.setdefault("TARN_BUILD", str(ROOT / "build"))
sys.path.insert(0, str(ROOT / "tests/convert"))

from families_case import FIXTURES, FamiliesCase, distance  # noqa: E402
from families_test import OPTIONS  # noqa: E402


def top(row):
    return max(range(len(row)), key=row.__getitem__)


def measure(case, name, options):
    """The largest difference, how many tokens agree, and of how many."""
    tokens, expected = case.expected(name)
    case.convert(FIXTURES / name, "--quant", "f32", *options)
    exact = case.found(name, tokens, expected)
    case.convert(FIXTURES / name, "--quant", "int8", *options)
    rounded = case.found(name, tokens, expected)[0]
    same = sum(top(a) == top(b) for a, b in zip(exact[0], rounded, strict=True))
    return max(distance(found, expected) for found in exact), same, len(expected)


def table(names):
    case = FamiliesCase()
    case.setUp()
    results = collections.defaultdict(list)
    for number, name in enumerate(names, 1):
        print(f"\r{number} of {len(names)}: {name:<24}", end="", file=sys.stderr, flush=True)
        results[name.rpartition("_")[0]].append(measure(case, name, OPTIONS.get(name, ())))
    case.doCleanups()
    print(file=sys.stderr)
    lines = ["| `model_type` | models | largest difference, f32 | top-1 agreement, int8 |", "|---|--:|--:|--:|"]
    for family, models in sorted(results.items()):
        differences, same, of = zip(*models)
        lines.append(f"| `{family}` | {len(models)} | {max(differences):.1e} | {100 * sum(same) / sum(of):.1f} % of {sum(of)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("fixtures", nargs="*", metavar="FIXTURE")
    arguments = parser.parse_args()
    if arguments.update and arguments.fixtures:
        parser.error("--update writes the whole table: expected no FIXTURE")
    made = table(arguments.fixtures or sorted(path.name for path in FIXTURES.iterdir()))
    print(made, end="")
    if arguments.update:
        PAGE.write_text(markers.replaced(PAGE.read_text(encoding="utf-8"), "differences", made, "docs/published-models.md"), encoding="utf-8")


if __name__ == "__main__":
    main()
