#!/usr/bin/env python3
"""Public-domain English from Debian packages, as text files to train on: texts.py -o DIR

Writes DIR/bible.txt (the King James Version, from the packages bible-kjv and bible-kjv-text) and DIR/austen.txt (the six novels of
Jane Austen, from r-cran-janeaustenr). Needs Debian's apt-get and dpkg-deb, and no root; packages are downloaded, not installed.
"""

import argparse
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

PACKAGES = ("bible-kjv", "bible-kjv-text", "r-cran-janeaustenr")
STRING, STRINGS = 9, 16  # types of R's serialization format: CHARSXP, STRSXP


def unpack(scratch):
    """The files of the packages, below the directory that it returns"""
    subprocess.run(["apt-get", "download", "-qq", *PACKAGES], cwd=scratch, check=True)
    root = scratch / "root"
    for package in scratch.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    return root


def bible(root):
    folder = root / "usr/lib"
    command = [root / "usr/bin/bible", "-p", folder, "gen1:1-rev22:21"]
    verses = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True).stdout
    without_numbers = re.sub(r"(?m)^ +\d+ ", "", verses)
    return re.sub(r"\n{3,}", "\n\n", without_numbers).strip() + "\n"


def strings(data):
    """The vector of strings of an R object that was saved for lazy loading: XDR, version 3"""
    if data[:6] != b"X\n\0\0\0\3":
        raise ValueError("no R object in XDR, version 3")
    at = 14 + 4 + struct.unpack_from(">I", data, 14)[0]  # behind the versions and the name of the encoding
    kind, count = struct.unpack_from(">II", data, at)
    if kind & 255 != STRINGS:
        raise ValueError(f"an R object of type {kind & 255}, expected {STRINGS}: strings")
    at += 8
    for _ in range(count):
        kind, size = struct.unpack_from(">Ii", data, at)
        if kind & 255 != STRING:
            raise ValueError(f"an R object of type {kind & 255}, expected {STRING}: a string")
        at += 8 + max(size, 0)
        yield data[at - max(size, 0) : at].decode()


def austen(root):
    data, at, books = (root / "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb").read_bytes(), 0, []
    while at < len(data):
        stream = zlib.decompressobj()
        books.append("\n".join(strings(stream.decompress(data[at + 4 :]))) + "\n")  # 4 bytes: the size of what follows
        at = len(data) - len(stream.unused_data)
    return "\n".join(books)


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        root = unpack(pathlib.Path(scratch))
        for name, text in ("bible", bible(root)), ("austen", austen(root)):
            part = folder / f"{name}.txt.part"
            part.write_text(text, encoding="utf-8")
            os.replace(part, folder / f"{name}.txt")
            print(f"{folder / name}.txt: {len(text.encode()):,} bytes", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="DIR", type=pathlib.Path, required=True)
    try:
        write(parser.parse_args().output)
    except (OSError, ValueError, subprocess.CalledProcessError, zlib.error, struct.error) as error:
        parser.exit(1, f"texts.py: error: {error}; without package lists, run apt-get update first\n")


if __name__ == "__main__":
    sys.exit(main())
