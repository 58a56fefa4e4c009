#!/usr/bin/env python3
"""Cycles of the inner loops of our kernels on ARM cores, by llvm-mca: the README's table.

    mca.py [BUILD] [--readme]      BUILD: folder of a 64-bit ARM preset (default: build/linux-aarch64); --readme writes the table there
    mca.py [BUILD] --loops KERNEL  every innermost loop of a kernel, with what KERNELS names it by

A loop is taken out of the object file as it was compiled. llvm-mca knows pipelines, latencies and ports, and neither caches nor
memory: data is always there at once. So the numbers compare kernels and cores; they foretell no milliseconds.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ITERATIONS = 200
LANES = 4  # f32 in 128 bits, which is also the SVE2 of the cores below

# What llvm-mca calls a core, what it stands for here, and the code that runs on it.
CORES = {"cortex-a53": ("A53", ("NEON",)), "cortex-a55": ("A55", ("NEON", "dotprod")),
         "cortex-a510": ("A510", ("NEON", "dotprod", "SVE2")), "neoverse-n1": ("A76 (N1)", ("NEON", "dotprod")),
         "neoverse-n2": ("A710 (N2)", ("NEON", "dotprod", "SVE2")), "neoverse-v1": ("X1 (V1)", ("NEON", "dotprod"))}
NAMESPACES = {"NEON": "N_NEON_WITHOUT_AES", "dotprod": "dotprod", "SVE2": "N_SVE2"}


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The innermost loop of `function` that has so many multiply-adds and stores of vectors, and what one turn of it does."""
    title: str
    source: str    # below kernels/
    function: str  # a regular expression for the mangled name, after the namespace
    loops: dict    # code: (multiply-adds, stores)
    elements: int  # of a turn
    unit: str


KERNELS = {}


def output(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit(f"mca: {command[0]} failed: {done.stderr.strip()}")
    return done.stdout


def functions(build, source):
    """{mangled name: [(address, instruction)]} of a compiled source."""
    path = build / f"CMakeFiles/tarn_objects.dir/kernels/{source}.o"
    found, name = {}, None
    for line in output("llvm-objdump-19", "-d", "--no-show-raw-insn", path).splitlines():
        if head := re.fullmatch(r"[0-9a-f]+ <(\S+)>:", line):
            name = head[1]
            found[name] = []
        elif body := re.match(r"\s*([0-9a-f]+):\s+(.*)", line):
            found[name].append((int(body[1], 16), body[2].replace("\t", " ")))
    return found


def innermost_loops(code):
    """Lists of instructions from where a branch goes back to, up to it, that hold no other such branch and no call."""
    index = {address: i for i, (address, _) in enumerate(code)}
    spans = []
    for i, (address, text) in enumerate(code):
        branch = re.match(r"(?:b|b\.\w+|cbn?z|tbn?z) .*?0x([0-9a-f]+) <", text)
        if branch and int(branch[1], 16) <= address and int(branch[1], 16) in index:
            spans.append((index[int(branch[1], 16)], i))
    for first, last in spans:
        inner = any(first <= f and l <= last and (f, l) != (first, last) for f, l in spans)
        if not inner and not any(text.startswith("bl") for _, text in code[first:last + 1]):
            yield [text for _, text in code[first:last + 1]]


def count(pattern, loop):
    return sum(1 for text in loop if re.match(pattern, text))


def signature(loop):
    """Multiply-adds and stores of vectors."""
    adds = count(r"(fml[as]|fm[as]d|fmad|fnm\w+) [vz]|(s|u|us)dot |sadalp |sml[as]l", loop)
    return adds, 2 * count(r"stp q", loop) + count(r"(str|stur) q|st1[wb]? ", loop)


def assembly(loop):
    """As llvm-mca takes it: branches go to the first instruction."""
    return "loop:\n" + "\n".join(re.sub(r"0x[0-9a-f]+ <.*>", "loop", text) for text in loop) + "\n"


def cycles(loop, core):
    report = output("llvm-mca-19", "-mtriple=aarch64-linux-gnu", f"-mcpu={core}", "-mattr=+dotprod,+fullfp16,+sve2", "-iterations",
                    ITERATIONS, input=assembly(loop))
    return int(re.search(r"Total Cycles:\s+(\d+)", report)[1]) / ITERATIONS
