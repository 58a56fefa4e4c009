#!/usr/bin/env python3
"""Shows that the library cannot abort, exit, print or throw, and that it exports its C API and nothing else.

    check_symbols.py LIB_DIR      the folder with libtarn.a and libtarn.so

Reads the undefined symbols of our own objects (libtarn.a holds no others). NM names another nm.
"""

import os
import pathlib
import re
import subprocess
import sys

# Regular expressions over mangled names, each with what it stands for.
FORBIDDEN = {
    r"abort|exit|_exit|_Exit|quick_exit|raise|__assert_fail|__assert2|_ZSt9terminatev|_ZSt10unexpectedv": "ends the process",
    r"_ZN3hwy5Abort.*": "ends the process",
    r"(__)?v?f?d?printf(_chk)?|f?put[cs]|puts|f?putchar|fwrite|perror|psignal|stdout|stderr|_ZSt4(cout|cerr|clog)": "prints",
    r"__cxa_throw|__cxa_rethrow|__cxa_allocate_exception|_ZSt\d+__throw_.*": "throws",
    r"_Zn[wa][mj](St11align_val_t)?": "throws when memory is short; use the allocator or new (std::nothrow)",
}

# (object, symbol) -> why it cannot happen.
ALLOWED = {}


def nm(*arguments):
    command = [os.environ.get("NM", "nm"), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def why_forbidden(symbol):
    return next((why for pattern, why in FORBIDDEN.items() if re.fullmatch(pattern, symbol)), None)


def check_archive(path):
    lines = nm("--print-file-name", "--undefined-only", path)
    for line in lines:
        where, symbol = line.split()[0], line.split()[-1]
        member = where.rstrip(":").rsplit(":", 1)[-1]
        why = why_forbidden(symbol)
        if why and (member, symbol) not in ALLOWED:
            yield f"{path.name}({member}): {symbol}: {why}"
    if not lines:
        yield f"{path.name}: nothing to check"


def check_exports(path):
    for line in nm("--dynamic", "--defined-only", path):
        symbol = line.split()[-1]
        if not symbol.startswith("tarn_"):
            yield f"{path.name}: exports {symbol}"


def main():
    folder = pathlib.Path(sys.argv[1])
    errors = [*check_archive(folder / "libtarn.a"), *check_exports(folder / "libtarn.so")]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"check_symbols: {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
