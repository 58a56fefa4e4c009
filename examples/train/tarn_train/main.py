"""tarn-train: a language model from text files, in one command.

    tarn-train TEXT... -o DIR [--config FILE.yaml] [--preset tiny|small|base] [--attention NAME] ...

Trains a tokenizer and a model, writes the checkpoint into DIR, and converts it into DIR.tarn. The same command again goes on where
it was stopped. docs/training.md is the guide.
"""

import os
import pathlib
import sys

from . import command
from . import settings as options


def parse(arguments):
    parser = command.parser_of("tarn-train", __doc__, options.Settings, "by the preset or the attention")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="text file, UTF-8")
    return parser, parser.parse_args(arguments)


def make_tokenizer(s, texts, folder):
    """The tokenizer, and the path of its file or None. One that is trained is kept: a run that goes on reads it again. What a run
    left that saved nothing may be of another text or size."""
    from . import text

    if s.tokenizer == "bytes":
        return text.Bytes(), None
    kept = folder / "training" / "tokenizer.json"
    if s.tokenizer != "train":
        return text.Pieces(text.read_tokenizer(s.tokenizer)), pathlib.Path(s.tokenizer)
    if not (kept.exists() and (folder / "training" / "state.pt").exists()):
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


def train(args, s, folder, converter):
    """PyTorch takes seconds to load: errors of the command line come first."""
    import torch

    from . import text
    from .trainer import Trainer

    if s.threads:
        torch.set_num_threads(s.threads)
    whole = text.read_texts(args.text)
    texts = text.split(whole, s.held_out)
    tokenizer, tokenizer_file = make_tokenizer(s, texts[0], folder)
    windows, held_out, counts = command.training_data(s, texts, tokenizer)
    config = make_config(s, tokenizer)
    command.check_config(converter, config)
    trainer = Trainer(s, config, windows, held_out, folder, command.identity(s, texts, tokenizer_file, model=config))
    command.begin(trainer, counts, texts)
    return trainer.run(tokenizer_file)


def main(arguments=None):
    parser, args = parse(arguments)
    folder = pathlib.Path(args.output)

    def work():
        s = options.settings(args, args.config)
        converter = None if args.no_convert else command.find_converter(args, ", or say --no-convert")
        (folder / "training").mkdir(parents=True, exist_ok=True)
        result = train(args, s, folder, converter)
        held_out = result["held_out_nats_per_token"]
        loss = "" if held_out is None else f"{held_out:.4f} nats per token held out, "
        return command.finish(args, converter, folder, s.quant, f"{result['steps']} steps, {loss}{result['seconds']} s")

    return command.run(parser, work)


if __name__ == "__main__":
    sys.exit(main())
