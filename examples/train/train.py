#!/usr/bin/env python3
"""Trains a small model for one of the tasks, with fixed seeds, and writes its checkpoint.

    train.py dates|listops softmax|rfa|abc -o DIR [--steps N] [--threads N]
    train.py language softmax|rfa|abc|rfa_gate --text FILE -o DIR [--steps N] [--threads N]

DIR gets config.json, model.safetensors and training.json; tarn-convert reads it. docs/training.md is the guide.
"""

import collections
import json
import math
import random
import sys
import time

try:
    import torch
except ModuleNotFoundError:
    sys.exit("train.py: error: PyTorch is missing: apt-get install python3-torch, or pip install torch")

import model as models
from command_line import Parser, new_folder, positive, readable_file
from tasks import SYSTEMS, TASKS, TEST_LINES, TEST_SEED, Language, accuracy, batches
from tarn_train import tensors
from tarn_train.report import QUIET_SECONDS, Progress

REPORT_STEPS = 250
TEST_SYMBOLS = 16384  # of a batch of the test
POOL = 50  # batches out of lines that were shuffled together


def stream(task, plan):
    """Batches without end: lines are shuffled, then sorted by length in pools, whose batches are shuffled again."""
    lines, generator = list(task.lines("train", plan.examples, plan.seed)), random.Random(plan.seed)
    pool = POOL * plan.batch_symbols // (sum(len(task.text(line)) for line in lines) // len(lines))
    while True:
        generator.shuffle(lines)
        for begin in range(0, len(lines) - pool + 1, pool):
            pooled = batches(task, lines[begin : begin + pool], plan.batch_symbols)
            generator.shuffle(pooled)
            yield from pooled


def rate_factor(plan, step):
    if step < plan.warmup:
        return (step + 1) / plan.warmup
    return 0.5 + 0.5 * math.cos(math.pi * (step - plan.warmup) / max(1, plan.steps - plan.warmup))


def train(task, plan, model, progress):
    """Prints a line every REPORT_STEPS steps, and progress between them."""
    validation = list(task.lines("validation", 500, plan.seed))
    optimizer = torch.optim.Adam(model.parameters(), lr=plan.rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(plan, step))
    begin, total = time.monotonic(), 0.0
    for step, batch in zip(range(1, plan.steps + 1), stream(task, plan)):
        loss = task.loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
        progress.step(step, loss.item())
        if step % REPORT_STEPS == 0:
            share = accuracy(task, model, validation)
            seconds = time.monotonic() - begin
            progress.say(f"step {step:6}  loss {total / REPORT_STEPS:.4f}  validation {share:5.1f} %  {seconds:5.0f} s")
            total = 0.0


def tested(task, model, lines):
    """The accuracy in percent; says every few seconds how far it is."""
    right, done, shown = 0, 0, time.monotonic()
    for batch in batches(task, lines, TEST_SYMBOLS):
        right, done = right + task.right(model, batch), done + len(batch)
        if time.monotonic() - shown > (2 if sys.stderr.isatty() else QUIET_SECONDS):
            shown = time.monotonic()
            print(f"tested {done} of {len(lines)} lines", file=sys.stderr, flush=True)
    return 100 * right / len(lines)


def main():
    parser = Parser(__doc__)
    parser.add_argument("task", choices=TASKS, help="what the model learns")
    parser.add_argument("system", choices=SYSTEMS, help="attention variant; rfa_gate is RFA with a forget gate")
    parser.add_argument("-o", "--output", metavar="DIR", type=new_folder, required=True,
                        help="directory of the checkpoint; is created")
    parser.add_argument("--text", metavar="FILE", type=readable_file,
                        help=f"text to learn, at least {Language.MIN_BYTES} bytes; required by the task language")
    parser.add_argument("--steps", metavar="N", type=positive, help="optimizer steps (default: the plan in tasks.py, 1500 to 3000)")
    parser.add_argument("--threads", metavar="N", type=positive, default=1, help="threads of PyTorch (default: 1)")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    task = TASKS[args.task]
    if args.system not in task.plan.steps:
        parser.error(f"the task {args.task} has no {args.system}, expected {', '.join(task.plan.steps)}")
    if (args.task == "language") != (args.text is not None):
        parser.error("--text FILE is required by the task language, and no other task has it")
    if args.text and args.text.stat().st_size < Language.MIN_BYTES:
        parser.error(f"{args.text} has {args.text.stat().st_size} bytes, expected at least {Language.MIN_BYTES}")
    Language.file = args.text
    plan = task.plan._replace(steps=args.steps or task.plan.steps[args.system])

    torch.manual_seed(plan.seed)
    model = models.build(task.config(args.system))
    print(f"{args.task} {args.system}: {sum(t.numel() for t in model.state_dict().values())} weights", flush=True)
    begin = time.monotonic()
    with Progress(0, plan.steps, plan.batch_symbols) as progress:
        train(task, plan, model, progress)
    seconds = round(time.monotonic() - begin)
    models.save(model, args.output)

    print(f"{args.output}: written; testing {TEST_LINES} lines", flush=True)
    test = list(task.lines("test", TEST_LINES, TEST_SEED))
    report = {
        "task": args.task,
        "system": args.system,
        **plan._asdict(),
        "seconds": seconds,
        "metric": task.metric,
        "test_lines": len(test),
        "float32_test_accuracy_percent": round(tested(task, models.load(args.output), test), 2),
        "pytorch": str(torch.__version__),
    }
    if args.task == "listops":
        (_, most), = collections.Counter(label for label, _ in test).most_common(1)
        report["majority_class_percent"] = round(100 * most / len(test), 2)
    tensors.write_atomically(args.output / "training.json", (json.dumps(report, indent=2) + "\n").encode())
    print(json.dumps(report))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\ntrain.py: stopped before its end; the training begins anew next time", file=sys.stderr)
        sys.exit(130)
