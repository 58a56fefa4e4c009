"""tarn-transfer: a pretrained model with softmax attention becomes one whose memory does not grow.

    tarn-transfer TEACHER TEXT... -o DIR [--attention NAME] [--config FILE.yaml] ...

TEACHER is a checkpoint directory that tarn-convert reads. Its weights are kept, its attention is exchanged: first the new one learns
the outputs of the old one, then the whole model is trained on the text. Writes the checkpoint into DIR, and converts it into
DIR.tarn. The same command again goes on where it was stopped. docs/training.md is the guide.
"""

import json
import math
import pathlib
import sys

from . import command
from . import settings as options


def parse(arguments):
    parser = command.parser_of("tarn-transfer", __doc__, options.TransferSettings, "none")
    parser.add_argument("teacher", metavar="TEACHER", help="checkpoint directory with softmax attention")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="text file, UTF-8")
    return parser, parser.parse_args(arguments)


def written(losses):
    """As JSON, which has no number for a loss that is not finite: the exchange may leave a student that only the matching mends."""
    finite = {stage: loss if loss is not None and math.isfinite(loss) else None for stage, loss in losses.items()}
    return json.dumps({"held_out_nats_per_token": finite}, indent=2, allow_nan=False) + "\n"


def transfer(args, s, folder, converter):
    """The losses of all stages. PyTorch takes seconds to load: errors of the command line come first."""
    import torch

    from . import checkpoint, tensors, text
    from .transfer import Distilling, Matching, student, student_config

    if s.threads:
        torch.set_num_threads(s.threads)
    whole = text.read_texts(args.text)
    teacher, tokenizer, tokenizer_file, digest = command.read_teacher(args.teacher, converter, folder / "training" / "teacher", s.context)
    texts = text.split(whole, s.held_out)
    windows, held_out, counts = command.training_data(s, texts, tokenizer)
    config = student_config(teacher.c, s.attention, s.context)
    command.check_config(converter, config)
    identity = command.identity(s, texts, tokenizer_file, model=config, teacher=digest, teacher_config=teacher.c)
    first = student(teacher, config, windows.batch(0)[:, :-1], s.seed)

    def run(kind, model, settings, where, name):
        trainer = kind(teacher, model, settings, config, windows, held_out, where, identity)
        command.begin(trainer, f"{name}: {counts}", texts)
        return trainer.run(tokenizer_file)

    losses = {}
    judge = Distilling(teacher, first, s, config, windows, held_out, folder, identity)
    if held_out is not None:
        losses = {"teacher": judge.held_out_loss(teacher), "exchanged": judge.held_out_loss(first)}
        if not math.isfinite(losses["teacher"]):
            raise ValueError(f"the held-out loss of {args.teacher} is {losses['teacher']}, expected a finite number: choose another teacher")
    if s.match_steps:
        run(Matching, first, s.matching(), folder / "matched", "matching")
        first = checkpoint.load(folder / "matched")
        if held_out is not None:
            losses["matched"] = judge.held_out_loss(first)
    result = run(Distilling, first, s, folder, "fine-tuning")
    losses["fine_tuned"] = result["held_out_nats_per_token"]
    tensors.write_atomically(folder / "transfer.json", written(losses).encode())
    return losses


def main(arguments=None):
    parser, args = parse(arguments)
    folder = pathlib.Path(args.output)

    def work():
        s = options.transfer_settings(args, args.config)
        converter = command.find_converter(args)
        command.check_output(folder, args.teacher)
        (folder / "training").mkdir(parents=True, exist_ok=True)
        losses = transfer(args, s, folder, converter)
        stages = (f"{name.replace('_', ' ')} {'not measured' if loss is None else format(loss, '.4f')}" for name, loss in losses.items())
        return command.finish(args, converter, folder, s.quant, "nats per token held out: " + ", ".join(stages))

    return command.run(parser, work)


if __name__ == "__main__":
    sys.exit(main())
