#!/usr/bin/env python3
"""Holds the map of the house in README.md against the folders: every room is on it, has a guide, and the guide fits a screen."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
SCREEN = 70  # lines
ROOM_PARENTS = {"runtime", "tools"}  # their folders are rooms; elsewhere the top folder is one
NO_GUIDE = {"runtime/include/tarn", "tools/cmake"}  # the headers explain themselves; one list of rules


def rooms():
    files = subprocess.run(["git", "-C", str(ROOT), "ls-files"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    found = set()
    for file in files:
        parts = file.split("/")
        if len(parts) == 1 or parts[0].startswith("."):
            continue
        found.add("/".join(parts[:2]) if parts[0] in ROOM_PARENTS and len(parts) > 2 else parts[0])
    found.discard("runtime/include")
    return found | {"runtime/include/tarn"}


def main():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    house = readme.split("## The house")[1].split("\n## ")[0]
    mapped = set()
    for cell in re.findall(r"^\| (`[^|]+`) \|", house, re.MULTILINE):
        mapped |= set(re.findall(r"`([^`]+)`", cell))
    errors = [f"README.md: {room} is on the map and does not exist" for room in sorted(mapped - rooms())]
    errors += [f"README.md: {room} is not on the map" for room in sorted(rooms() - mapped)]
    for room in sorted(rooms() - NO_GUIDE):
        guide = ROOT / room / "README.md"
        if not guide.exists():
            errors.append(f"{room}: has no README.md")
        elif len(guide.read_text(encoding="utf-8").splitlines()) > SCREEN:
            errors.append(f"{room}/README.md: longer than a screen of {SCREEN} lines")
    print("\n".join(errors) or f"{len(mapped)} rooms")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
