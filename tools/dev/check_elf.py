#!/usr/bin/env python3
"""Reads what the loader of a device will read in our libraries and programs, and says what would not load or should not be there.

    check_elf.py TARGET PATH...

TARGET is `host`, linux-aarch64, linux-armv7, android-arm64-v8a or android-armeabi-v7a. A PATH that is a folder (a build, an
unpacked package) stands for what is shipped of it: lib/libtarn.so, bin/tarn, bin/tarn-convert. READELF names another readelf.
"""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

SHIPPED = ["lib/libtarn.so", "bin/tarn", "bin/tarn-convert"]
EXPORTS = re.compile(r"tarn_\w+")
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0"}
BIONIC = {"libc.so", "libm.so", "libdl.so", "liblog.so"}


@dataclasses.dataclass(frozen=True)
class Target:
    machine: str  # as readelf names it; empty: this one, whichever it is
    needed: frozenset  # libraries that every system of the target has
    soname: str
    page_bytes: int  # largest page of a kernel that must be able to load it
    glibc: tuple = ()  # oldest version that must do; empty: not promised
    static_programs: bool = False


TARGETS = {
    "host": Target("", GLIBC | {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, "libtarn.so.0", 4096),
    "linux-aarch64": Target("AArch64", GLIBC | {"ld-linux-aarch64.so.1"}, "libtarn.so.0", 65536, (2, 17), True),
    "linux-armv7": Target("ARM", GLIBC | {"ld-linux-armhf.so.3"}, "libtarn.so.0", 4096, (2, 17), True),
    "android-arm64-v8a": Target("AArch64", BIONIC, "libtarn.so", 16384),
    "android-armeabi-v7a": Target("ARM", BIONIC, "libtarn.so", 16384),
}


class Elf:
    """What readelf says of a file."""

    def __init__(self, path):
        self.text = self._readelf("--file-header", "--program-headers", "--dynamic", path)
        self.machine = re.search(r"^  Machine: +(.*)$", self.text, re.MULTILINE).group(1)
        # type, flags and alignment: TYPE OFFSET VIRTUAL PHYSICAL FILE MEMORY FLAGS ALIGNMENT
        self.segments = re.findall(r"^  ([A-Z_]+) +(?:0x\w+ +){5}([RWE ]{3}) +(0x\w+|0)$", self.text, re.MULTILINE)
        self.needed = self._entries("NEEDED")
        self.soname = "".join(self._entries("SONAME"))
        self.has_interpreter = any(kind == "INTERP" for kind, _, _ in self.segments)
        self.is_program = self.has_interpreter or bool(re.search(r"^  Type: +EXEC|\(FLAGS_1\).* PIE", self.text, re.MULTILINE))
        self.symbols = [line.split() for line in self._readelf("--dyn-syms", path).splitlines() if re.match(r" +\d+:", line)]
        self.versions = self._readelf("--version-info", path)

    @staticmethod
    def _readelf(*arguments):
        command = [os.environ.get("READELF", "readelf"), "--wide", *map(str, arguments)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        if done.returncode != 0 or "Error:" in done.stderr:
            raise ValueError(f"readelf failed: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def _entries(self, tag):
        return re.findall(rf"\({tag}\).*\[(.*)\]", self.text)

    def exports(self):
        return [fields[7].split("@")[0] for fields in self.symbols
                if len(fields) > 7 and fields[4] in ("GLOBAL", "WEAK", "UNIQUE") and fields[6] != "UND"]

    def newest_glibc(self):
        """(major, minor, ...) of the newest version that it asks the C library for."""
        needs = self.versions.partition("Version needs section")[2]
        return max((tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_([0-9.]+)", needs)), default=())


def complaints(elf, target):
    if target.machine and elf.machine != target.machine:
        yield f"is for {elf.machine}, {target.machine} expected"
    for name in elf.needed:
        if name not in target.needed:
            yield f"needs {name}; what every system of the target has is {', '.join(sorted(target.needed))}"
    if elf.is_program:
        if target.static_programs and (elf.needed or elf.has_interpreter):
            yield "is linked dynamically; one file to copy expected"
    else:
        if elf.soname != target.soname:
            yield f"has the SONAME {elf.soname or 'none'}, {target.soname} expected"
        for name in elf.exports():
            if not EXPORTS.fullmatch(name):
                yield f"exports {name}; tarn_* and nothing else expected"
    for tag in ["RPATH", "RUNPATH"]:
        if f"({tag})" in elf.text:
            yield f"has a {tag}; the folder of a build means nothing on a device"
    if re.search(r"\(TEXTREL\)|\(FLAGS\).*TEXTREL", elf.text):
        yield "has text relocations; Android refuses them, and no two processes would share its code (compile it with -fPIC)"
    stack = [flags for kind, flags, _ in elf.segments if kind == "GNU_STACK"]
    if not stack or "E" in stack[0]:
        yield "wants an executable stack (link with -z noexecstack)"
    for kind, flags, alignment in elf.segments:
        if kind == "LOAD" and int(alignment, 16) < target.page_bytes:
            yield f"has a LOAD segment aligned to {alignment}, {target.page_bytes:#x} expected (-z max-page-size)"
        if kind == "LOAD" and "W" in flags and "E" in flags:
            yield "has a LOAD segment to write and to execute"
    if target.glibc and elf.newest_glibc() > target.glibc:
        found, wanted = (".".join(map(str, version)) for version in (elf.newest_glibc(), target.glibc))
        yield f"needs glibc {found}, {wanted} or older expected"


def describe(elf):
    alignments = sorted({int(alignment, 16) for kind, _, alignment in elf.segments if kind == "LOAD"})
    glibc = ".".join(map(str, elf.newest_glibc()))
    parts = [f"{elf.machine}, needs {' '.join(elf.needed) or 'nothing'}", f"LOAD {' '.join(f'{a:#x}' for a in alignments)}"]
    parts += [f"glibc {glibc}"] if glibc else []
    return ", ".join(parts + ([] if elf.is_program else [f"SONAME {elf.soname}, {len(elf.exports())} exports"]))


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: check_elf.py {'|'.join(TARGETS)} PATH...")
    target, errors = TARGETS[sys.argv[1]], 0
    for path in map(pathlib.Path, sys.argv[2:]):
        for file in [path / name for name in SHIPPED] if path.is_dir() else [path]:
            try:
                elf = Elf(file)
                lines = list(complaints(elf, target))
                print(f"{file}: {describe(elf)}" if not lines else "\n".join(f"{file}: {line}" for line in lines))
            except ValueError as error:
                lines = [error]
                print(f"{file}: {error}")
            errors += len(lines)
    print(f"check_elf: {sys.argv[1]}: {errors} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
