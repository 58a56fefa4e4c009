#!/usr/bin/env python3
"""Cycles of the inner loops of our kernels on ARM cores, by llvm-mca: the table of docs/performance.md.

    mca.py [BUILD]                 BUILD: folder of the 64-bit ARM preset (default: build/linux-aarch64)
    mca.py [BUILD] --loops KERNEL  every innermost loop of a kernel, with what KERNELS below names it by

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

# What llvm-mca calls a core, what it is here (A76, A710 and X1 by the server core that is most like them), and the code it runs.
CORES = {"cortex-a53": ("A53", ("NEON",)), "cortex-a55": ("A55", ("NEON", "dot")),
         "cortex-a510": ("A510", ("NEON", "dot", "i8mm", "SVE2")), "neoverse-n1": ("A76", ("NEON", "dot")),
         "neoverse-n2": ("A710", ("NEON", "dot", "i8mm", "SVE2")), "neoverse-v1": ("X1", ("NEON", "dot"))}
# Highway's; SVE2 with vectors of 128 bits. "dot" and "i8mm" are NEON with those instructions.
NAMESPACES = {"NEON": "N_NEON_WITHOUT_AES", "SVE2": "N_SVE2"}
XNNPACK = "XNNPACK"  # instead of a source: its library
XNNPACK_I4 = "xnn_qd8_f32_qb4w_gemm_minmax_ukernel_1x16"


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The innermost loop of `function` that has so many multiply-adds and stores of vectors, and the elements of one turn of it."""
    title: str
    source: str    # below kernels/, or XNNPACK
    function: str  # a regular expression for the mangled name, after the namespace if Highway has compiled it; the name, of XNNPACK's
    loops: dict    # code: (multiply-adds, stores)
    elements: int
    highway: bool = True


KERNELS = {
    "linear_step": Kernel("linear state, element: decay, write, read", "attention/linear_step.cc", r"\d+UpdateAndRead",
                          {"NEON": (16, 8), "SVE2": (16, 8)}, 32),
    "slot_keys": Kernel("slot memory, element of K~: decay, write, logit", "attention/slot_step.cc", r"\d+SlotStep",
                        {"NEON": (8, 4), "SVE2": (8, 4)}, 16),
    "slot_values": Kernel("slot memory, element of V~: decay, write, read", "attention/slot_step.cc", r"\d+SlotStep",
                          {"NEON": (16, 8), "SVE2": (16, 8)}, 32),
    "cache_keys": Kernel("cache, element of a key: logit", "attention/cache.cc", r"\d+AttendStep", {"NEON": (4, 0), "SVE2": (4, 0)},
                         16),
    "cache_values": Kernel("cache, element of a value: weighted sum", "attention/cache.cc", r"\d+GemmTileILm1ELm4E",
                           {"NEON": (4, 0), "SVE2": (4, 0)}, 16),
    "random_fourier": Kernel("random Fourier features, sine and cosine of an argument", "features/gaussian.cc",
                             r"\d+GaussianFeatures", {"NEON": (22, 4), "SVE2": (22, 4)}, 8),
    "dense_i8": Kernel("head in place, int8 weight", "dense/portable.cc", r"\d+Int8TileILm1ELb1E",
                       {"NEON": (12, 0), "SVE2": (8, 0)}, 64),
    "dense_i4": Kernel("head in place, int4 weight", "dense/portable.cc", r"\d+Int4TileILm1ELb1E", {"NEON": (20, 0)},
                       128),
    "panel_i3": Kernel("packed int3 weight, one row of x", "dense/portable.cc", r"\d+PanelILj3ELm1E",
                       {"NEON": (13, 0), "SVE2": (9, 0)}, 128),
    "panel_i2": Kernel("packed int2 weight, one row of x", "dense/portable.cc", r"\d+PanelILj2ELm1E",
                       {"NEON": (13, 0), "SVE2": (9, 0)}, 128),
    "rows_i4": Kernel("packed int4 weight, one row of x", "dense/xnnpack_rows_neon.cc", r"NeonPanelILm1E", {"NEON": (16, 0)}, 128, False),
    "xnnpack_i4": Kernel("the same, XNNPACK's kernel", XNNPACK, XNNPACK_I4 + "__neon_mlal_lane", {"NEON": (32, 0)}, 128, False),
    "xnnpack_i4_dot": Kernel("the same, XNNPACK's kernel", XNNPACK, XNNPACK_I4 + "c4__neondot", {"dot": (8, 0)}, 128, False),
    "xnnpack_i4_i8mm": Kernel("the same, XNNPACK's kernel", XNNPACK, XNNPACK_I4 + "c8__neoni8mm", {"i8mm": (16, 0)}, 256, False),
    "dense_f16": Kernel("f16 weight", "dense/portable.cc", r"\d+FloatTileILm1Et", {"NEON": (4, 0), "SVE2": (4, 0)}, 16),
}


def output(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit(f"mca: {command[0]} failed: {done.stderr.strip()}")
    return done.stdout


def disassembly(build, kernel):
    objdump = ["llvm-objdump-19", "-d", "--no-show-raw-insn"]
    if kernel.source != XNNPACK:
        return output(*objdump, build / f"CMakeFiles/tarn_objects.dir/kernels/{kernel.source}.o")
    library = re.search(r"\S+/libmicrokernels-prod\.a", (build / "build.ninja").read_text(encoding="utf-8"))
    return output(*objdump, f"--disassemble-symbols={kernel.function}", library[0])


def functions(build, kernel):
    """{mangled name: [(address, instruction)]} of a compiled source."""
    found, name = {}, None
    for line in disassembly(build, kernel).splitlines():
        if head := re.fullmatch(r"[0-9a-f]+ <(\S+)>:", line):
            name = head[1]
            found[name] = []
        elif body := re.match(r"\s*([0-9a-f]+):\s+(.*)", line):
            found[name].append((int(body[1], 16), body[2].replace("\t", " ")))
    return found


def innermost_loops(code):
    """Lists of instructions from where a branch goes back to, up to it, without any other branch."""
    index = {address: i for i, (address, _) in enumerate(code)}
    jumps = re.compile(r"(?:b|b\.\w+|bl|blr|br|ret|cbn?z|tbn?z)\b")
    for last, (address, text) in enumerate(code):
        back = re.match(r"(?:b\.\w+|cbn?z|tbn?z) .*?0x([0-9a-f]+) <", text)
        if back and int(back[1], 16) <= address and int(back[1], 16) in index:
            loop = [instruction for _, instruction in code[index[int(back[1], 16)]:last + 1]]
            if not any(jumps.match(instruction) for instruction in loop[:-1]):
                yield loop


def count(pattern, loop):
    return sum(1 for text in loop if re.match(pattern, text))


def signature(loop):
    """Multiply-adds and stores of vectors."""
    adds = count(r"(fml[as]|fm[as]d|fmad|fnm\w+) [vz]|(s|u|us)dot |smmla |sadalp |sml[as]l", loop)
    return adds, 2 * count(r"stp q", loop) + count(r"(str|stur) q|st1[wb]? ", loop)


def assembly(loop):
    """As llvm-mca takes it: branches go to the first instruction."""
    return "loop:\n" + "\n".join(re.sub(r"0x[0-9a-f]+ <.*>", "loop", text) for text in loop) + "\n"


def cycles(loop, core):
    report = output("llvm-mca-19", "-mtriple=aarch64-linux-gnu", f"-mcpu={core}", "-mattr=+dotprod,+fullfp16,+i8mm,+sve2", "-iterations",
                    ITERATIONS, input=assembly(loop))
    return int(re.search(r"Total Cycles:\s+(\d+)", report)[1]) / ITERATIONS


def find_loop(build, kernel, code):
    """Of several (a decay for all rows, or one per row) the longest."""
    name = re.compile(NAMESPACES[code] + kernel.function if kernel.highway else kernel.function)
    loops = [loop for function, body in functions(build, kernel).items() if name.search(function)
             for loop in innermost_loops(body) if signature(loop) == kernel.loops[code]]
    if not loops:
        sys.exit(f"mca: {kernel.title}, {code}: no loop of {kernel.function} in {kernel.source} has {kernel.loops[code]} "
                 "multiply-adds and stores; --loops lists them")
    return max(loops, key=len)


def print_loops(build, kernel):
    for function, body in functions(build, kernel).items():
        if re.search(kernel.function, function):
            for loop in innermost_loops(body):
                print(f"{function}: {signature(loop)}\n    " + "\n    ".join(loop))


def table(build):
    heads = [name for name, _ in CORES.values()]
    yield "| cycles per element | code | " + " | ".join(heads) + " |\n|---|---|" + "--:|" * len(heads)
    for kernel in KERNELS.values():
        for code in kernel.loops:
            loop = find_loop(build, kernel, code)
            cells = [f"{cycles(loop, core) / kernel.elements:.2f}" if code in codes else "-" for core, (_, codes) in CORES.items()]
            yield f"| {kernel.title} | {code} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(usage="mca.py [BUILD] [--loops KERNEL]")
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build/linux-aarch64")
    parser.add_argument("--loops", choices=KERNELS, metavar="KERNEL")
    arguments = parser.parse_args()
    if arguments.loops:
        print_loops(arguments.build, KERNELS[arguments.loops])
        return 0
    print("<!-- mca -->\n" + "\n".join(table(arguments.build)) + "\n<!-- /mca -->")
    return 0


if __name__ == "__main__":
    sys.exit(main())
