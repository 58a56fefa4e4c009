#!/usr/bin/env python3
"""Trains a small model for one of the tasks, with fixed seeds, and writes its checkpoint.

    train.py dates|listops softmax|rfa|abc -o DIR [--steps N] [--threads N]
    train.py language rfa_gate --text FILE -o DIR [--steps N] [--threads N]
"""

import argparse
import collections
import json
import math
import pathlib
import random
import time

import torch

import model as models
import tensors
from tasks import SYSTEMS, TASKS, TEST_LINES, TEST_SEED, Language, accuracy, batches

REPORT_STEPS = 250
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
    return 0.5 + 0.5 * math.cos(math.pi * (step - plan.warmup) / (plan.steps - plan.warmup))


def train(task, plan, model):
    """Prints a line every REPORT_STEPS steps."""
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
        if step % REPORT_STEPS == 0:
            share = accuracy(task, model, validation)
            seconds = time.monotonic() - begin
            print(f"step {step:6}  loss {total / REPORT_STEPS:.4f}  validation {share:5.1f} %  {seconds:5.0f} s", flush=True)
            total = 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--text", type=pathlib.Path, help="what a language model learns")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if (args.task == "language") != (args.text is not None):
        parser.error("--text FILE belongs to the task language, which needs it")
    Language.file = args.text
    task = TASKS[args.task]
    plan = task.plan._replace(steps=args.steps or task.plan.steps[args.system])

    torch.manual_seed(plan.seed)
    model = models.build(task.config(args.system))
    print(f"{args.task} {args.system}: {sum(t.numel() for t in model.state_dict().values())} weights", flush=True)
    begin = time.monotonic()
    train(task, plan, model)
    seconds = round(time.monotonic() - begin)
    models.save(model, args.output)

    test = list(task.lines("test", TEST_LINES, TEST_SEED))
    report = {
        "task": args.task,
        "system": args.system,
        **plan._asdict(),
        "seconds": seconds,
        "metric": task.metric,
        "test_lines": len(test),
        "float32_test_accuracy_percent": round(accuracy(task, models.load(args.output), test), 2),
        "pytorch": str(torch.__version__),
    }
    if args.task == "listops":
        (_, most), = collections.Counter(label for label, _ in test).most_common(1)
        report["majority_class_percent"] = round(100 * most / len(test), 2)
    tensors.write_atomically(args.output / "training.json", (json.dumps(report, indent=2) + "\n").encode())
    print(json.dumps(report))


if __name__ == "__main__":
    main()
