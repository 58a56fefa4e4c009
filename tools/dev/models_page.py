#!/usr/bin/env python3
"""The tables of docs/models.md, from the converter: `tarn-convert --list-fields all` as Markdown, between markers.

With --check nothing is written: exit status 1 says that the page differs from the program. Runs in a second.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import markers

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "models.md"
TASKS = {
    "causal_lm": "Causal language models",
    "masked_lm": "Masked language models",
    "classification": "Classifiers",
    "seq2seq": "Sequence to sequence",
}


def blocks(build: Path) -> dict:
    """{name: (title, rows of fields, rows of tensors)}"""
    text = subprocess.run([build / "bin" / "tarn-convert", "--list-fields", "all"], capture_output=True, text=True, check=True).stdout
    found = {}
    for block in text.split("\n\n"):
        title, *lines = block.rstrip("\n").splitlines()
        fields, tensors = [], None
        for line in lines:
            cells = re.split(r"\s{2,}", line.strip())
            if cells[0] == "field":
                continue
            if cells[0] == "tensor":
                tensors = []
                continue
            rows = fields if tensors is None else tensors
            if len(cells) != (4 if tensors is None else 3):
                sys.exit(f"models_page.py: a line of {title} has {len(cells)} columns: {line}")
            rows.append(cells)
        name = title.rsplit(" task ", 1)[-1].split(" (")[0]
        found["config" if name == "config.json" else name] = (title, fields, tensors or [])
    return found


def escape(cell: str) -> str:
    return cell.replace("|", r"\|")


def table(header: list, rows: list) -> str:
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(escape, row)) + " |" for row in rows]) + "\n"


def field_table(rows: list) -> str:
    free = [row for row in rows if not row[1].startswith("only ") or ";" in row[1]]
    fixed = [row for row in rows if row not in free]
    text = ""
    if free:
        text += table(["field", "values", "default", "meaning"], [[f"`{key}`", *cells] for key, *cells in free])
    if fixed:
        text += "\n" if free else ""
        text += "May be given, but only with this value:\n"
        text += ",\n".join(f"`{key}` {values[5:]}" for key, values, *_ in fixed) + ".\n"
    return text


def tensor_table(rows: list) -> str:
    return table(["tensor", "shape", "where"], [[f"`{name}`", shape if shape == "none" else f"`{shape}`", where]
                                                for name, shape, where in rows])


def sections(build: Path) -> dict:
    """What belongs between <!-- NAME --> and <!-- /NAME -->."""
    found = blocks(build)
    tensors = "\n".join(f"### {title}\n\n{tensor_table(found[task][2])}" for task, title in TASKS.items())
    variants = []
    for name, (title, fields, rows) in found.items():
        if name == "config" or name in TASKS:
            continue
        parts = [f"### {name}\n", f"Forms: {title.split('(')[1].rstrip(')')}.\n"]
        if fields:
            parts.append(field_table(fields))
        parts.append(tensor_table(rows) if rows else "No tensors beyond q, k, v and o.\n")
        variants.append("\n".join(parts))
    return {"fields": field_table(found["config"][1]), "tensors": tensors, "variants": "\n".join(variants)}


def filled(page: str, build: Path) -> str:
    for name, text in sections(build).items():
        page = markers.replaced(page, name, text, "docs/models.md")
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="the build whose converter is asked")
    parser.add_argument("--check", action="store_true", help="only say whether the page is the program's")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    made = filled(page, options.build)
    if options.check:
        if made != page:
            print("docs/models.md is not what the converter says: run tools/dev/models_page.py", file=sys.stderr)
        return int(made != page)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
