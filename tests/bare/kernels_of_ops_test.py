#!/usr/bin/env python3
"""Holds the list of kernels/op_kernels.h, which kernels are called by which ops only, against the sources of the ops.

An op's sources are its file and, for every header of runtime/ops that those include, the header and the file beside it.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
OPS = ROOT / "runtime/ops"


def table_of_ops():
    return re.findall(r"^  X\((\w+)\)", (OPS / "registry.h").read_text(), re.MULTILINE)


def file_of(op):
    marker = f"const OpKind k{op}Op = "
    return next(file for file in OPS.rglob("*.cc") if marker in file.read_text())


def sources(op):
    left, found = [file_of(op)], set()
    while left:
        file = left.pop()
        if file in found or not file.exists() or file.name == "registry.h":
            continue
        found.add(file)
        for header in re.findall(r'#include "(runtime/ops/[^"]+)"', file.read_text()):
            left += [ROOT / header, (ROOT / header).with_suffix(".cc")]
    return found


def main():
    texts = {op: "\n".join(file.read_text() for file in sources(op)) for op in table_of_ops()}
    header = (ROOT / "kernels/op_kernels.h").read_text()
    listed = re.findall(r'^  X\((\w+), ([^)]*)\)', header, re.MULTILINE)
    errors = []
    for kernel, names in listed:
        callers = {op for op, text in texts.items() if re.search(rf"(\bkernels(\(\))?(\.|->)|Kernels::){kernel}\b", text)}
        expected = set(re.findall(r'"(\w+)"', names))
        if not callers or callers != expected:
            errors.append(f"op_kernels.h: {kernel} is listed for {sorted(expected)}, and called by {sorted(callers)}")
    # The pattern above finds calls only where tables go by that name.
    for op, text in texts.items():
        for alias in set(re.findall(r"\bKernels[&*] (\w+)", text)) - {"kernels", "kernels_"}:
            errors.append(f"{op}: a table of kernels is called {alias}, 'kernels' expected")
    print("\n".join(errors) or f"{len(listed)} kernels, {len(texts)} ops")
    return 1 if errors or len(listed) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
