#!/usr/bin/env python3
"""Holds the table of docs/directories.md against the tree: it has every directory, which has a README of at most LINES lines."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
LINES = 85  # of at most 120 columns (tests/docs/links_test.py)
PARENTS = {"runtime", "tools"}  # their directories count; elsewhere the top one
NO_README = {"runtime/include/tarn", "tools/cmake"}  # the headers explain themselves; one list of rules


def directories():
    files = subprocess.run(["git", "-C", str(ROOT), "ls-files"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    found = set()
    for file in files:
        parts = file.split("/")
        if len(parts) == 1 or parts[0].startswith("."):
            continue
        found.add("/".join(parts[:2]) if parts[0] in PARENTS and len(parts) > 2 else parts[0])
    found.discard("runtime/include")
    return found | {"runtime/include/tarn"}


def main():
    page = (ROOT / "docs/directories.md").read_text(encoding="utf-8")
    mapped = set()
    for cell in re.findall(r"^\| (\[?`[^|]+) \|", page, re.MULTILINE):
        mapped |= set(re.findall(r"`([^`]+)`", cell))
    errors = [f"docs/directories.md: {name} is there and does not exist" for name in sorted(mapped - directories())]
    errors += [f"docs/directories.md: {name} is missing" for name in sorted(directories() - mapped)]
    for name in sorted(directories() - NO_README):
        readme = ROOT / name / "README.md"
        if not readme.exists():
            errors.append(f"{name}: has no README.md")
        elif len(readme.read_text(encoding="utf-8").splitlines()) > LINES:
            errors.append(f"{name}/README.md: longer than {LINES} lines")
    print("\n".join(errors) or f"{len(mapped)} directories")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
