#!/usr/bin/env python3
"""Converts a trained checkpoint and holds the result against what was measured when it was trained.

    check_checkpoint.py DIR [--build build] [--text FILE] [--threads N]

DIR holds config.json and model.safetensors of a model with tokenizer "bytes", and beside them
    golden.safetensors   tokens I32 [N,T]: N sequences, each from a reset; logits F32 [N,T,V] from float64; greedy I32 [G]: the
                         greedy continuation of sequence 0
    training.json        validation_nats_per_byte over the last tenth of the training text in blocks of `context` bytes
With --text FILE, the training text, the loss is measured as well. Exit 1 if a line says FAIL.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from tensor_files import read_npy_f32, read_safetensors  # noqa: E402

CHUNKS = (1, 7, 64, None)  # None: all at once
MAX_LOGIT_DIFFERENCE = 3e-4
MAX_LOSS_DIFFERENCE = 1e-4  # nats/byte, either way
# nats/byte above the training's; int4 by the attention system, whose own weights count
MAX_LOSS = {"f16": 1e-4, "int8": 1e-3, "int4": {"rfa": 0.005, "abc_mlp": 0.02}}


class Golden:
    def __init__(self, path):
        tensors = read_safetensors(path)
        self.count, self.length, vocab = tensors["logits"].shape
        tokens, logits = tensors["tokens"].values, tensors["logits"].values
        self.sequences = [bytes(list(tokens[i * self.length : (i + 1) * self.length])) for i in range(self.count)]
        rows = [logits[i * vocab : (i + 1) * vocab] for i in range(self.count * self.length)]
        self.logits = [rows[i * self.length : (i + 1) * self.length] for i in range(self.count)]
        self.greedy = list(tensors["greedy"].values)


class Report:
    def __init__(self):
        self.failed = False

    def line(self, what, value, wanted="", passed=None):
        self.failed |= passed is False
        verdict = {True: "pass", False: "FAIL", None: ""}[passed]
        print(f"{what:<44} {value:>24}  {wanted:<16} {verdict}".rstrip(), flush=True)


class Checker:
    def __init__(self, arguments, scratch):
        self.bin = pathlib.Path(arguments.build).resolve() / "bin"
        self.folder, self.scratch, self.threads = pathlib.Path(arguments.checkpoint), pathlib.Path(scratch), arguments.threads

    def run(self, program, *arguments):
        command = [str(self.bin / program), *map(str, arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(f"{self.bin / program}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def model(self, quant):
        path = self.scratch / f"{quant}.tarn"
        if not path.exists():
            self.run("tarn-convert", self.folder, "-o", path, "--quant", quant)
        return path

    def eval(self, quant, text, *flags):
        """The JSON object of `tarn eval`; `text` is bytes."""
        file = self.scratch / "text"
        file.write_bytes(text)
        return json.loads(self.run("tarn", "eval", "-m", self.model(quant), "-f", file, "--json", "-t", self.threads, *flags))

    def logits(self, quant, text, chunk=None):
        rows = self.scratch / "logits.npy"
        self.eval(quant, text, "--logits", rows, "--chunk", chunk or len(text))
        return read_npy_f32(rows)

    def logit_difference(self, quant, golden, chunk):
        """Largest absolute difference over all golden sequences, and the sequence and token of it."""
        worst = (0.0, 0, 0)
        for s, (sequence, want) in enumerate(zip(golden.sequences, golden.logits)):
            for t, (row, want_row) in enumerate(zip(self.logits(quant, sequence, chunk), want)):
                worst = max(worst, (max(abs(a - b) for a, b in zip(row, want_row)), s, t))
        return worst

    def greedy_by_eval(self, quant, golden):
        """The first token at which the largest logit is not the golden continuation's; None if there is no such token."""
        rows = self.logits(quant, golden.sequences[0] + bytes(golden.greedy[:-1]), 64)[golden.length - 1 :]
        return next((i for i, (row, want) in enumerate(zip(rows, golden.greedy)) if row.index(max(row)) != want), None)

    def greedy_text(self, quant, golden):
        """What `tarn run --temp 0` writes after sequence 0, the sequence included."""
        prompt = ",".join(map(str, golden.sequences[0]))
        flags = ["-n", len(golden.greedy), "--temp", 0, "-t", self.threads]
        out = self.run("tarn", "run", "-m", self.model(quant), "--tokens", prompt, *flags)
        return out.decode("utf-8").removesuffix("\n")


def check_logits(checker, golden, report):
    for chunk in CHUNKS:
        worst, sequence, token = checker.logit_difference("f32", golden, chunk)
        what = f"f32 logits, {f'chunks of {chunk}' if chunk else f'all {golden.length} at once'}"
        place = f"{worst:.2e} (seq {sequence}, tok {token})"
        report.line(what, place, f"<= {MAX_LOGIT_DIFFERENCE:g}", worst <= MAX_LOGIT_DIFFERENCE)
    report.line("int8 logits, chunks of 64", f"{checker.logit_difference('int8', golden, 64)[0]:.2e}")


def check_greedy(checker, golden, report):
    first = checker.greedy_by_eval("f32", golden)
    value = "yes" if first is None else f"no, from token {first} on"
    report.line(f"f32 greedy continuation, {len(golden.greedy)} tokens equal", value, "yes", first is None)
    want = (golden.sequences[0] + bytes(golden.greedy)).decode("utf-8", "replace")
    got = checker.greedy_text("f32", golden)
    same = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    value = "yes" if got == want else f"no, from character {same} on"
    report.line("f32 `tarn run --temp 0` writes it", value, "yes", got == want)


def check_loss(checker, text, training, system, report):
    trained = training["validation_nats_per_byte"]
    report.line("validation loss in training", f"{trained:.6f}")
    for quant in "f32", "f16", "int8", "int4":
        result = checker.eval(quant, text, "--block", training["context"])
        loss = result["nats_per_byte"]
        difference = loss - trained
        if quant == "f32":
            report.line("bytes scored", f"{result['scored']}", f"{training['validation_bytes_scored']}",
                        result["scored"] == training["validation_bytes_scored"])
            wanted, passed = f"+-{MAX_LOSS_DIFFERENCE:g}", abs(difference) <= MAX_LOSS_DIFFERENCE
        else:
            most = MAX_LOSS[quant] if quant != "int4" else MAX_LOSS[quant].get(system)
            wanted, passed = (f"<= {most:g}", difference <= most) if most is not None else ("", None)
        report.line(f"{quant} validation loss, difference", f"{loss:.6f} ({difference:+.6f})", wanted, passed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", metavar="DIR")
    parser.add_argument("--build", default=ROOT / "build", help="build directory (default: build)")
    parser.add_argument("--text", help="the text that the model was trained on")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.checkpoint)
    config = json.loads((folder / "config.json").read_text())
    tokenizer, attention = config["tokenizer"], config["attention"]
    if tokenizer != "bytes":
        sys.exit(f"{folder}: tokenizer is {tokenizer}, only bytes can be checked")

    report = Report()
    with tempfile.TemporaryDirectory(prefix="tarn-check-") as scratch:
        checker = Checker(arguments, scratch)
        golden = Golden(folder / "golden.safetensors")
        check_logits(checker, golden, report)
        check_greedy(checker, golden, report)
        if arguments.text:
            text = pathlib.Path(arguments.text).read_bytes()
            training = json.loads((folder / "training.json").read_text())
            system = attention["system"] if isinstance(attention, dict) else None
            check_loss(checker, text[len(text) * 9 // 10 :], training, system, report)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
