#!/usr/bin/env python3
"""Runs examples/bare_metal on emulated Cortex-M boards and shows that it writes what the host writes, in the bytes its README says.

    bare_metal.py BUILD [--update]      BUILD: the folder of the presets (build); --update writes the README's table anew

For every core: the text is that of the same program on the host (and that, as tests/bare holds, is `tarn run`'s); sums of the
int8 layer are exact (tests/bare/board); the core takes at most 100 KB of code; no number of the README's
table is off by more than 3 %. QEMU names another qemu-system-arm.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

import markers

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/bare_metal"
README = EXAMPLE / "README.md"
BOARDS = {"cortex-m4": "mps2-an386", "cortex-m7": "mps2-an500", "cortex-m33": "mps2-an505", "cortex-m55": "mps3-an547"}
MOST_CORE_BYTES = 100_000
TOLERANCE = 0.03  # compilers differ by so much from one release to the next

# Where an input section of the linker's map belongs, by the file that it comes from.
PARTS = (("core", r"libtarn_bare\.a\("), ("libraries", r"/lib(c|c_nano|m|gcc|stdc\+\+(_nano)?)\.a\("), ("program", r"."))
COLUMNS = ("core", "libraries", "program", "model", "static RAM", "session", "stack")


def run(*command):
    # QEMU writes what semihosting prints to its standard error.
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if result.returncode != 0:
        sys.exit(f"bare_metal: {' '.join(map(str, command))}: {result.returncode}\n{result.stdout.decode()}")
    return result.stdout.decode()


def on_board(board, program):
    qemu = os.environ.get("QEMU", "qemu-system-arm")
    return run(qemu, "-M", board, "-nographic", "-monitor", "none", "-serial", "none", "-semihosting-config",
               "enable=on,target=native", "-kernel", program)  # fmt: skip


def flash_bytes(map_file):
    """Bytes in flash by part: code, constants, and the first values of variables."""
    used = collections.Counter()
    # " .text.name   0x0000000000000040   0x1a4 path", in one line or, where the name is long, in two
    pattern = re.compile(r"^ (\.[\w.$-]+|\*fill\*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)(?: +(\S.*))?$")
    text = map_file.read_text().split("Linker script and memory map")[1]
    for line in re.sub(r"\n {10,}", " ", text).splitlines():
        match = pattern.match(line)
        if not match:
            continue
        section, size, path = match[1], int(match[3], 16), match[4] or ""
        if section.startswith(".rodata.model"):
            used["model"] += size
        elif re.match(r"\.(vectors|text|rodata|data)", section):
            used[next(part for part, form in PARTS if re.search(form, path))] += size
    return used


def numbers_of(output):
    return {name.strip(): int(value) for name, value in re.findall(r"^([a-z ,]+): (\d+)$", output, re.MULTILINE)}


def text_of(output):
    return re.search(r"^text: (.*)\nstack: ", output, re.MULTILINE | re.DOTALL)[1]


def static_bytes(elf):
    """Variables: those with first values, and those that begin as zeros."""
    at = {name: int(place, 16) for place, _, name in (line.split() for line in run("arm-none-eabi-nm", elf).splitlines())}
    return at["data_end"] - at["data_begin"] + at["bss_end"] - at["bss_begin"]


def measure(build, core, board, wanted):
    on_board(board, build / core / "bin/int8_check.elf")  # fails where a sum is wrong
    elf = build / core / "bin/bare_metal.elf"
    output = on_board(board, elf)
    if text_of(output) != wanted:
        sys.exit(f"bare_metal: {core} writes\n{text_of(output)}\nbut the host\n{wanted}")
    numbers, used = numbers_of(output), flash_bytes(elf.with_name(elf.name + ".map"))
    if used["core"] > MOST_CORE_BYTES:
        sys.exit(f"bare_metal: {core}: the core takes {used['core']} bytes of code, at most {MOST_CORE_BYTES} expected")
    ram = {"static RAM": static_bytes(elf), "session": numbers["session"], "stack": numbers["stack"]}
    return {**{part: used[part] for part in COLUMNS[:4]}, **ram}


def table(rows):
    lines = ["| " + " | ".join(["CPU", "board in QEMU", *COLUMNS]) + " |", "|---|---|" + "--:|" * len(COLUMNS)]
    for core, row in rows.items():
        name = core.replace("cortex-m", "Cortex-M")
        lines.append("| " + " | ".join([name, BOARDS[core], *(f"{row[column]:,}" for column in COLUMNS)]) + " |")
    return "\n".join(lines)


def check_readme(rows, text):
    stated = {f"cortex-m{name}": cells for name, cells in re.findall(r"^\| Cortex-M(\d+) \| \S+ \| (.+) \|$", text, re.MULTILINE)}
    for core, row in rows.items():
        cells = [int(cell.replace(",", "")) for cell in stated.get(core, "").split(" | ") if cell]
        if len(cells) != len(COLUMNS):
            yield f"{core}: the README has no such line"
            continue
        for column, said in zip(COLUMNS, cells):
            if abs(row[column] - said) > TOLERANCE * said:
                yield f"{core}: {column} takes {row[column]} bytes, the README says {said}: --update"


def main():
    build = pathlib.Path(sys.argv[1])
    wanted = text_of(run(build / "tests/bare_metal"))
    rows = {core: measure(build, core, board, wanted) for core, board in BOARDS.items()}
    print(f"The text of {len(rows)} cores, as on the host:\n{wanted}\n\n{table(rows)}")
    text = README.read_text(encoding="utf-8")
    if "--update" in sys.argv[2:]:
        README.write_text(markers.replaced(text, "sizes", table(rows) + "\n", str(README)), encoding="utf-8")
        return 0
    errors = list(check_readme(rows, text))
    print("\n".join(errors), file=sys.stderr, end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
