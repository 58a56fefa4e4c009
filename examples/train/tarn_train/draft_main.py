"""tarn-draft: a small model whose drafts a larger one accepts, for speculative decoding (tarn run --draft).

    tarn-draft TARGET TEXT... -o DIR [--config FILE.yaml] [--hidden-size N] ...

TARGET is a checkpoint directory that tarn-convert reads, TEXT what it is to be used on. The target continues pieces of the text, and
the draft model learns how. It has the tokenizer of the target. Writes the checkpoint into DIR, and converts it into DIR.tarn. The
same command again goes on where it was stopped. docs/training.md is the guide.
"""

import dataclasses
import pathlib
import sys

from . import command
from . import settings as options
from .main import make_config


def parse(arguments):
    parser = command.parser_of("tarn-draft", __doc__, options.DraftSettings, "none")
    parser.add_argument("target", metavar="TARGET", help="checkpoint directory")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="text file, UTF-8")
    return parser, parser.parse_args(arguments)


def draft_config(s, target, tokenizer):
    """The config.json of a draft model for a target with this config.json"""
    from .attentions import LOCAL, local

    if s.attention == LOCAL:
        s = dataclasses.replace(s, attention=local(s.num_layers, s.hidden_size // s.num_heads))
    config = make_config(s, tokenizer)
    ends = {name: target[name] for name in ("bos_token_id", "eos_token_id") if name in target}
    return {**config, "vocab_size": target["vocab_size"], **ends}


def train(args, s, folder, converter):
    """PyTorch takes seconds to load: errors of the command line come first."""
    import torch

    from . import text
    from .draft import Drafting

    if s.threads:
        torch.set_num_threads(s.threads)
    whole = text.read_texts(args.text)
    target, tokenizer, tokenizer_file, digest = command.read_teacher(args.target, converter, folder / "training" / "target", s.context)
    texts = text.split(whole, s.held_out)
    tokens, held_out, counts = command.training_tokens(s, texts, tokenizer)
    config = draft_config(s, target.c, tokenizer)
    command.check_config(converter, config)
    identity = command.identity(s, texts, tokenizer_file, model=config, target=digest, target_config=target.c)
    trainer = Drafting(target, s, config, tokens, held_out, folder, identity)
    command.begin(trainer, counts, texts)
    return trainer.run(tokenizer_file)


def main(arguments=None):
    parser, args = parse(arguments)
    folder = pathlib.Path(args.output)

    def work():
        s = options.draft_settings(args, args.config)
        converter = command.find_converter(args)
        command.check_output(folder, args.target)
        (folder / "training").mkdir(parents=True, exist_ok=True)
        result = train(args, s, folder, converter)
        rejected = result["held_out_share_rejected"]
        share = "" if rejected is None else f"about {rejected:.1%} of drafts rejected, "
        return command.finish(args, converter, folder, s.quant, f"{result['steps']} steps, {share}{result['seconds']} s")

    return command.run(parser, work)


if __name__ == "__main__":
    sys.exit(main())
