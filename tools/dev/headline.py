#!/usr/bin/env python3
"""The table of headline numbers in README.md, taken from the tables of docs/performance.md: `make headline`.

    headline.py [--check]

--check changes nothing: exit status 1 if README.md has other numbers than docs/performance.md.
"""

import pathlib
import re
import sys

import markers

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = "lm-big", "Q8_0 / int8", "2", "tg64 @ d2048"  # the row of llama.cpp and of tarn


class Page:
    """Tables of a page: a row is found by its first cells, a cell of it by the name of its column."""

    def __init__(self, text):
        self.text = text
        self.rows = []
        header = []
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.startswith("|"):
                header = []
            elif not header:
                header = cells
            elif not cells[0].startswith("--"):
                self.rows.append((header, cells))

    def cell(self, first_cells, column):
        for header, cells in self.rows:
            if tuple(cells[:len(first_cells)]) == first_cells and column in header:
                return cells[header.index(column)]
        sys.exit(f"headline: docs/performance.md: no row {' | '.join(first_cells)} with a column {column!r}")

    def find(self, pattern):
        found = re.search(pattern, self.text)
        return found[1] if found else sys.exit(f"headline: docs/performance.md: nothing matches {pattern!r}")


def table(page):
    small, softmax = ("lm-small-rfa-gate int8",), ("lm-small-softmax int8",)
    used = "of it in use at 8,192"
    machine = page.find(r"(?m)^On (\d+ cores[^,\n]*)")
    rows = [
        ("decode with RFA after 8,192 tokens: 36 M parameters, int8, one thread", page.cell(small, "8,192") + " tokens/s",
         f"softmax with a KV cache, same runtime and size: {page.cell(softmax, '8,192')} tokens/s"),
        ("memory of that sequence", page.cell(small, used), f"the part of the KV cache in use: {page.cell(softmax, used)}"),
        ("time per token of `shakespeare-rfa-gate` (3.4 M parameters, int8) after 1,000,000 tokens",
         page.cell(("1,000,000",), "us per token") + " us", f"after 1,000 tokens: {page.cell(('1,000',), 'us per token')} us"),
        ("decode with RFA after 2,048 tokens: 235 M parameters, int8, two threads", page.cell(TESTS, "tarn t/s") + " tokens/s",
         f"llama.cpp with a llama transformer of 238 M parameters, Q8_0: {page.cell(TESTS, 'llama.cpp t/s')} tokens/s"),
        ("size of `libtarn.so`, stripped, linux-aarch64", page.cell(("linux-aarch64",), "libtarn.so, bytes") + " bytes", ""),
    ]
    lines = [f"Measured on {machine}. The models have random weights, except shakespeare-rfa-gate:",
             "speed does not depend on what a model has learned.", "", "| what | tarn | compared with |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]) + "\n"


def main():
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    made = table(Page((ROOT / "docs" / "performance.md").read_text(encoding="utf-8")))
    wanted = markers.replaced(text, "headline", made, "README.md")
    if "--check" in sys.argv[1:]:
        sys.exit(wanted != text and "headline: README.md has other numbers than docs/performance.md: run `make headline`")
    readme.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
