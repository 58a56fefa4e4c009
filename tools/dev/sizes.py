#!/usr/bin/env python3
"""Bytes of the stripped libtarn.so of each target, with XNNPACK and without, as a table for the README.

    sizes.py TARGET=BUILD,PORTABLE_BUILD...     (make sizes makes them all)
"""

import pathlib
import re
import subprocess
import sys
import tempfile


def stripped_bytes(build):
    library = build / "lib/libtarn.so"
    if not library.exists():
        sys.exit(f"sizes: {library}: not built (make sizes builds it)")
    strip = re.search(r"^CMAKE_STRIP:\w+=(.*)$", (build / "CMakeCache.txt").read_text(encoding="utf-8"), re.MULTILINE).group(1)
    with tempfile.NamedTemporaryFile() as copy:
        subprocess.run([strip, "-o", copy.name, library.resolve()], check=True)
        return pathlib.Path(copy.name).stat().st_size


def main():
    print("| target | libtarn.so, bytes | without XNNPACK |\n|---|--:|--:|")
    for target, _, builds in (argument.partition("=") for argument in sys.argv[1:]):
        sizes = [stripped_bytes(pathlib.Path(build)) for build in builds.split(",")]
        print(f"| {target} | {sizes[0]:,} | {sizes[1]:,} |")


if __name__ == "__main__":
    main()
