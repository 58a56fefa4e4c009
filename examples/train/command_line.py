"""What the command lines of these scripts share: errors of one line, numbers and files that are checked before any work starts."""

import argparse
import pathlib


class Parser(argparse.ArgumentParser):
    def __init__(self, doc):
        """`doc`: the docstring of the script; its first line is the summary, --help shows all of it."""
        super().__init__(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def positive(text):
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"is '{text}', expected an integer of at least 1")
    return int(text)


def readable_file(text):
    path = pathlib.Path(text)
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot read {text}: {error.strerror}") from None


def pair(where, line):
    """(text, text) of a line of dates.py or listops.py, in bytes; `where` it is"""
    try:
        parts = tuple(line.decode("ascii").split("\t"))
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"{where} has the byte {line[error.start]:#04x}, expected ASCII") from None
    if len(parts) != 2 or not all(parts):
        raise argparse.ArgumentTypeError(f"{where} is {line[:40].decode()!r}, expected two texts with a tab between them")
    return parts


def pairs(text):
    """The lines of such a file"""
    lines = readable_file(text).read_bytes().splitlines()
    if not lines:
        raise argparse.ArgumentTypeError(f"{text} is empty, expected lines of two texts with a tab between them")
    return [pair(f"{text}: line {number}", line) for number, line in enumerate(lines, 1)]


def checkpoint(text):
    path = pathlib.Path(text)
    for name in "config.json", "model.safetensors":
        readable_file(path / name)
    return path


def new_folder(text):
    """Made now: that it cannot be made should not be found out after the training."""
    path = pathlib.Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot make the directory {text}: {error.strerror}") from None
    return path
