"""tarn-train: a language model from text files, in one command.

    tarn-train TEXT... -o DIR [--config FILE.yaml] [--preset tiny|small|base] [--attention NAME] ...

Trains a tokenizer and a model, writes the checkpoint into DIR, and converts it into DIR.tarn. The same command again goes on where
it was stopped. docs/training.md is the guide.
"""

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

from . import settings as options


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def parse(arguments):
    parser = Parser(prog="tarn-train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                    usage=argparse.SUPPRESS)
    parser.add_argument("text", nargs="+", metavar="TEXT", help="text file, UTF-8")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="directory of the checkpoint; is created")
    parser.add_argument("--config", metavar="FILE", help="settings as YAML, NAME: VALUE; flags override them")
    parser.add_argument("--converter", metavar="PROGRAM", help="tarn-convert (default: that of PATH, else build/bin/tarn-convert)")
    parser.add_argument("--no-convert", action="store_true", help="write the checkpoint alone")
    options.add_flags(parser.add_argument_group("settings, with their names in a YAML file: - becomes _"))
    return parser, parser.parse_args(arguments)


def find_converter(args):
    """None: nobody wants it."""
    if args.no_convert:
        return None
    places = [args.converter] if args.converter else [shutil.which("tarn-convert"), "build/bin/tarn-convert"]
    for place in places:
        if place and os.access(place, os.X_OK):
            return place
    raise ValueError(f"{args.converter or 'tarn-convert'} is no program: name it with --converter, or say --no-convert")


def make_tokenizer(s, texts, folder):
    """The tokenizer, and the path of its file or None. One that is trained is kept: a run that goes on reads it again."""
    from . import text

    if s.tokenizer == "bytes":
        return text.Bytes(), None
    kept = folder / "training" / "tokenizer.json"
    if s.tokenizer != "train":
        return text.Pieces(text.read_tokenizer(s.tokenizer)), pathlib.Path(s.tokenizer)
    if not kept.exists():
        part = kept.with_suffix(".part")
        text.trained_tokenizer(texts, s.vocab_size).save(str(part))
        os.replace(part, kept)
    return text.Pieces(text.read_tokenizer(kept)), kept


def make_config(s, tokenizer):
    from .attentions import choose

    attention, positions = choose(s.attention, s.hidden_size // s.num_heads, s.context)
    end = {} if tokenizer.end is None else {"bos_token_id": tokenizer.end, "eos_token_id": tokenizer.end}
    return {
        "task": "causal_lm", "vocab_size": tokenizer.size, "hidden_size": s.hidden_size, "num_layers": s.num_layers,
        "num_heads": s.num_heads, "intermediate_size": s.intermediate_size, "hidden_act": "swiglu", "norm": "rmsnorm",
        "norm_eps": 1e-5, "position_embedding": s.position_embedding or positions, "tie_word_embeddings": True,
        "tokenizer": tokenizer.name, **end, "attention": attention,
    }


def train(args, s, folder):
    """PyTorch takes seconds to load: errors of the command line come first."""
    import torch

    from . import text
    from .trainer import Trainer

    if s.threads:
        torch.set_num_threads(s.threads)
    texts = text.read_texts(args.text)
    beginnings, held_out = text.split(texts, s.held_out)
    tokenizer, tokenizer_file = make_tokenizer(s, beginnings, folder)
    tokens = text.packed(tokenizer, beginnings)
    (folder / "held-out.txt").write_bytes(held_out.encode())
    held_out_tokens = torch.tensor(tokenizer.encode(held_out), dtype=torch.long)
    if s.held_out and len(held_out_tokens) < 2:
        raise ValueError(f"the held-out text has {len(held_out_tokens)} tokens, expected at least 2: more text, or held_out 0")
    free = ("save_seconds",) if s.round_steps else ("save_seconds", "quant")
    said = {name: value for name, value in dataclasses.asdict(s).items() if name not in free}
    windows = text.Windows(tokens, s.context, s.batch, s.seed)
    trainer = Trainer(s, make_config(s, tokenizer), windows, held_out_tokens if s.held_out else None, folder,
                      {**said, "text": text.fingerprint(texts)})
    resumed = trainer.resume()
    print(f"{len(tokens)} tokens to train on, {len(held_out_tokens)} held out, {tokenizer.size} pieces; "
          f"{sum(weight.numel() for weight in trainer.model.parameters()) / 1e6:.2f} M parameters on {trainer.device}"
          + (f"; goes on after step {trainer.done['step']}" if resumed else ""), file=sys.stderr, flush=True)
    return trainer.run(tokenizer_file)


def main(arguments=None):
    parser, args = parse(arguments)
    flags = {name: value for name, value in vars(args).items() if name in options.TYPES}
    try:
        s = options.settings(flags, args.config)
        converter, folder = find_converter(args), pathlib.Path(args.output)
        (folder / "training").mkdir(parents=True, exist_ok=True)
        result = train(args, s, folder)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        parser.exit(130, f"\n{parser.prog}: stopped; the same command goes on\n")
    held_out = result["held_out_nats_per_token"]
    print(f"{folder}: {result['steps']} steps, " + ("" if held_out is None else f"{held_out:.4f} nats per token held out, ")
          + f"{result['seconds']} s")
    if converter is None:
        return 0
    return subprocess.run([converter, str(folder), "-o", f"{folder}.tarn", "--quant", s.quant]).returncode


if __name__ == "__main__":
    sys.exit(main())
