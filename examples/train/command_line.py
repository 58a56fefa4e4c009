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
