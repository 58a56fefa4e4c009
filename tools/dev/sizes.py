#!/usr/bin/env python3
"""Bytes of the stripped libtarn.so of each target, with XNNPACK and without, held against the table of docs/performance.md.

    sizes.py [--update] TARGET=BUILD,PORTABLE_BUILD...     (make sizes makes them all)

--update writes these rows anew. Without it, exit status 1: a row of the table is more than 2 % off. The machine's own build is not
held to that: its compiler is whichever there is (budgets.py has it).
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import markers
from dist import cache_entry

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/performance.md"
TOLERANCE = 0.02


def stripped_bytes(build):
    library = build / "lib/libtarn.so"
    if not library.exists():
        sys.exit(f"sizes: {library}: not built (make sizes builds it)")
    with tempfile.NamedTemporaryFile() as copy:
        subprocess.run([cache_entry(build, "CMAKE_STRIP"), "-o", copy.name, library.resolve()], check=True)
        return pathlib.Path(copy.name).stat().st_size


def table(rows):
    lines = [f"| {target} | {whole:,} | {portable:,} |" for target, (whole, portable) in rows.items()]
    return "\n".join(["| target | libtarn.so, bytes | without XNNPACK |", "|---|--:|--:|", *lines])


def rows_of(text):
    return {target: (int(whole.replace(",", "")), int(portable.replace(",", "")))
            for target, whole, portable in re.findall(r"^\| (\S+) \| ([\d,]+) \| ([\d,]+) \|$", text, re.MULTILINE)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="TARGET=BUILD,PORTABLE_BUILD")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    builds = {target: [pathlib.Path(build) for build in folders.split(",")]
              for target, _, folders in (argument.partition("=") for argument in arguments.builds)}
    rows = {target: tuple(map(stripped_bytes, folders)) for target, folders in builds.items()}
    print(table(rows))
    text = PAGE.read_text(encoding="utf-8")
    stated = rows_of(markers.split(text, "sizes", "docs/performance.md")[1])
    if arguments.update:
        made = table({**stated, **rows}) + "\n"
        PAGE.write_text(markers.replaced(text, "sizes", made, "docs/performance.md"), encoding="utf-8")
        return 0
    errors = [f"sizes: {target}: {row[0]} and {row[1]} bytes, docs/performance.md says {stated[target][0]} and {stated[target][1]}: UPDATE=1"
              for target, row in rows.items() if target in stated and cache_entry(builds[target][0], "CMAKE_TOOLCHAIN_FILE")
              and any(abs(size - said) > TOLERANCE * said for size, said in zip(row, stated[target]))]
    print("\n".join(errors), file=sys.stderr, end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
