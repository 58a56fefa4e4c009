#!/usr/bin/env python3
"""Every conversion in a message of the runtime is one that format_v_bare.cc writes."""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
NOT_BARE = {"runtime/platform/cache_file.cc", "runtime/session/packed_cache.cc"}  # never built without an operating system
WRITTEN = re.compile(r"%(s|g|%|0?\d*(l|ll|z|t)?[dux])")


def main():
    count, errors = 0, []
    for file in sorted([*ROOT.glob("runtime/*/*.cc"), *ROOT.glob("runtime/*/*.h"), *ROOT.glob("kernels/**/*.cc")]):
        name = file.relative_to(ROOT).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            code = line.split("//")[0]
            for text in [] if name in NOT_BARE else re.findall(r'"((?:[^"\\]|\\.)*)"', code):
                for at in re.finditer("%%|%", text):
                    count += 1
                    if not WRITTEN.match(text, at.start()):
                        errors.append(f"{name}:{number}: {text[at.start():at.start() + 6]!r}: not in format_v_bare.cc")
    print("\n".join(errors) or f"{count} conversions")
    return 1 if errors or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
