#!/usr/bin/env python3
"""examples/bare_metal, built for this machine, writes what `tarn run` writes from the same model."""

import os
import pathlib
import re
import subprocess
import sys

SOURCE, BUILD = pathlib.Path(os.environ["TARN_SOURCE"]), pathlib.Path(os.environ["TARN_BUILD"])
MODEL = SOURCE / "examples/bare_metal/shakespeare-tiny-int8.tarn"
PROMPT, TOKENS = "ROMEO:\n", "200"  # as in main.c


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def main():
    found = re.search(r"^text: (.*)\nstack: ", run(BUILD / "tests/bare_metal"), re.MULTILINE | re.DOTALL)[1]
    wanted = run(BUILD / "bin/tarn", "run", "-m", MODEL, "-p", PROMPT, "-n", TOKENS, "--temp", "0", "--repeat-penalty", "1.2",
                 "--packed-cache", "none")
    if found != wanted.removesuffix("\n"):
        print(f"the program writes\n{found}\n\ntarn run writes\n{wanted}")
        return 1
    print(f"{len(found)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
