"""What the commands of this package share: command lines, the text as training data, and the .tarn file at the end."""

import argparse
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from . import settings as options


class Parser(argparse.ArgumentParser):
    """Of options that are written out: a misspelled one is an error."""

    def __init__(self, **keywords):
        super().__init__(allow_abbrev=False, **keywords)

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def parser_of(name, description, kind, default):
    """With what all commands have; `kind`: the class of its settings, `default`: what is said of those without a default."""
    parser = Parser(prog=name, description=description, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="directory of the checkpoint; is created")
    parser.add_argument("--config", metavar="FILE", help="settings as YAML, NAME: VALUE; flags override them")
    parser.add_argument("--converter", metavar="PROGRAM", help="tarn-convert (default: that of PATH, else build/bin/tarn-convert)")
    parser.add_argument("--no-convert", action="store_true", help="write the checkpoint alone")
    options.add_flags(parser.add_argument_group("settings, with their names in a YAML file: - becomes _"), kind, default)
    return parser


def find_converter(args, otherwise=""):
    """`otherwise`: what else helps a command that can do without one"""
    places = [args.converter] if args.converter else [shutil.which("tarn-convert"), "build/bin/tarn-convert"]
    for place in places:
        if place and os.access(place, os.X_OK):
            return place
    where = f"{args.converter} is no program" if args.converter else "tarn-convert is neither in PATH nor in build/bin below this directory"
    raise ValueError(f"{where}: name it with --converter{otherwise}")


def call(tool, *arguments):
    """Runs a tool of the runtime. What it says to an error is a ValueError of one line."""
    done = subprocess.run(list(map(str, [tool, *arguments])), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise ValueError(" ".join(done.stderr.split()) or f"{tool} ended with status {done.returncode}")


def check_output(folder, given):
    """The command replaces files in its output directory `folder`: a checkpoint that it is given must not lie there."""
    for form in os.path.realpath, os.path.abspath:  # neither the checkpoint nor a link that names it
        out = form(folder)
        if os.path.commonpath([out, form(given)]) == out:
            raise ValueError(f"-o is {folder}, which is or contains the given {given}: choose another directory, files in it are replaced")


def read_teacher(folder, converter, kept, context):
    """The model of any checkpoint that tarn-convert reads, through a copy in tarn's own layout, `kept`; its tokenizer; a hash"""
    from . import checkpoint, text
    from .model import check_context

    part = kept.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    call(converter, folder, "--write-checkpoint", "-o", part)
    shutil.rmtree(kept, ignore_errors=True)
    part.rename(kept)
    model, file = checkpoint.load(kept), kept / "tokenizer.json"
    check_context(model.c, context, folder)
    if model.c["tokenizer"] == "bytes":
        tokenizer, file = text.Bytes(), None
    elif model.c["tokenizer"] == "tokenizer.json" and file.exists():
        tokenizer = text.Pieces(text.read_tokenizer(file), model.c.get("eos_token_id"))
    else:
        raise ValueError(f"{folder}: has no tokenizer.json, which training on text needs")
    return model, tokenizer, file, digest(kept / "model.safetensors")


def check_config(converter, config):
    """What the converter says to a config.json it does not take, before anything is trained. converter: None to skip that"""
    if converter is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(config), encoding="utf-8")
        try:
            call(converter, "--list-tensors", path)
        except ValueError as error:
            raise ValueError(str(error).removeprefix("tarn-convert: error: ").replace(f"{path}: ", "")) from None


def training_tokens(s, texts, tokenizer):
    """The tokens to train on, the held-out tokens or None, and a line that says how many.

    texts: (beginnings, held-out text), as text.split gives them
    """
    import torch

    from . import text

    beginnings, held_out = texts
    tokens = text.packed(tokenizer, beginnings)
    held_out_tokens = torch.tensor(tokenizer.encode(held_out), dtype=torch.long)
    if s.held_out and len(held_out_tokens) < 2:
        raise ValueError(f"the held-out text has {len(held_out_tokens)} tokens, expected at least 2: more text, or held_out 0")
    counts = f"{len(tokens)} tokens to train on, {len(held_out_tokens)} held out, {tokenizer.size} pieces"
    return tokens, held_out_tokens if s.held_out else None, counts


def training_data(s, texts, tokenizer):
    """As training_tokens, but windows of what to train on"""
    from . import text

    tokens, held_out, counts = training_tokens(s, texts, tokenizer)
    return text.Windows(tokens, s.context, s.batch, s.seed), held_out, counts


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def identity(s, texts, tokenizer_file, **more):
    """What has to be the same when a training goes on; texts as text.split gives them: another version may cut them elsewhere.
    tokenizer_file: a path or None. Its content counts, since another file can have that path by then."""
    from . import text

    free = ("save_seconds", "graph") if s.round_steps else ("save_seconds", "graph", "quant")
    said = {name: value for name, value in dataclasses.asdict(s).items() if name not in free}
    pieces = None if tokenizer_file is None else digest(tokenizer_file)
    return {**said, "text": text.fingerprint([*texts[0], texts[1]]), "tokenizer_file": pieces, **more}


def begin(trainer, about, texts):
    """Goes on where the training was stopped, if it was, and says so. Writes the held-out text: it belongs to what is trained here."""
    resumed = trainer.resume()
    trainer.folder.mkdir(parents=True, exist_ok=True)
    (trainer.folder / "held-out.txt").write_bytes(texts[1].encode())
    count = sum(weight.numel() for weight in trainer.model.parameters()) / 1e6
    print(f"{about}; {count:.2f} M parameters on {trainer.device}" + (f"; goes on after step {trainer.done['step']}" if resumed else ""),
          file=sys.stderr, flush=True)


def run(parser, work):
    """The status that work() returns; its errors are one line."""
    where = ""
    try:
        return work()
    except (ValueError, OSError) as error:
        parser.error(str(error))
    except KeyboardInterrupt as stop:
        where = "".join(f" {argument}" for argument in stop.args)
    except RuntimeError as error:
        if "KeyboardInterrupt" not in str(error):  # what the import of PyTorch makes of Ctrl-C
            raise
    parser.exit(130, f"{parser.prog}: stopped{where}; the same command goes on\n")


def finish(args, converter, folder, quant, words):
    """What the training came to, on standard output; then the .tarn file. Returns the status of the command."""
    print(f"{folder}: {words}", flush=True)
    return 0 if args.no_convert else convert(converter, folder, quant)


def model_file(folder):
    """DIR.tarn, beside the directory: . and .. have no name of their own"""
    return f"{folder.resolve() if folder.name in ('', '..') else folder}.tarn"


def convert(converter, folder, quant):
    """DIR.tarn from the checkpoint DIR. Returns the status of the converter, which wants to show what narrow types cost."""
    evaluation = ["--eval", str(folder / "held-out.txt")] if quant in options.MEASURED else []
    return subprocess.run([converter, str(folder), "-o", model_file(folder), "--quant", quant, *evaluation]).returncode
