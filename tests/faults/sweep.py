#!/usr/bin/env python3
"""The N-th call to the system failing, for every N: the library in library.c's processes, the tools as they are.

  sweep.py BUILD_DIR [NAME...]     NAME: parts of what to run ("library", "run", "first_start"); all of it without

Wanted of a tool at every point: status 0 with the output that it has without a fault, or status 1 with one line that says
"error:", last on standard error but for indented details, and of the output no more than a beginning; of the files that it
writes all or nothing, and no other; no signal, and an end within 10 seconds. A failure is printed with the command that
repeats it.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "e2e"))
import checkpoint_maker  # noqa: E402

SECONDS = 10
STRIDE = 16  # of allocations from places that another command has tested
SHARED_MEMORY = "/dev/shm"  # where fsync() costs nothing

BLOCK = {"vocab_size": 256, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64, "hidden_act": "swiglu", "norm": "rmsnorm",
         "norm_eps": 1e-5, "attention_bias": False, "tokenizer": "bytes", "position_embedding": "rope"}
RFA = {"system": "rfa", "feature_map": "gaussian", "num_features": 8}
SOFTMAX = {"system": "softmax", "max_context": 64}
CAUSAL = {**BLOCK, "task": "causal_lm", "num_layers": 2, "attention": [{**RFA, "gate": "forget"}, SOFTMAX]}
SEQ2SEQ = {**BLOCK, "task": "seq2seq", "encoder_layers": 1, "decoder_layers": 1, "bos_token_id": 0, "eos_token_id": 1,
           "position_embedding": "sinusoidal", "encoder_attention": SOFTMAX, "decoder_attention": RFA, "cross_attention": RFA}
CLASSIFIER = {**BLOCK, "task": "classification", "num_layers": 1, "attention": RFA, "num_labels": 3, "pooling": "mean",
              "position_embedding": "sinusoidal"}
MASKED = {**BLOCK, "task": "masked_lm", "num_layers": 1, "attention": RFA, "mask_token_id": 0, "position_embedding": "sinusoidal"}
MODELS = {"causal": (CAUSAL, "int8"), "causal4": (CAUSAL, "int4"), "seq2seq": (SEQ2SEQ, "f32"), "classifier": (CLASSIFIER, "int8"),
          "masked": (MASKED, "f16")}
CONVERT = {**CAUSAL, "num_layers": 1, "attention": RFA}

# A scenario of library.c on a model of MODELS, or on one of examples/models.
LIBRARY = [(scenario, model) for model in ("causal", "seq2seq") for scenario in
           ("one_thread", "threads", "verify", "buffer", "first_start", "second_start")]
LIBRARY += [("one_thread", "causal4"), ("one_thread", "classifier"), ("one_thread", "masked"),
            ("threads", "shakespeare-rfa-gate-int8")]


class Case:
    """A command of a tool. In its arguments MODELS stands for the folder with the models and texts; it runs in a folder of its own,
    in which `existing` files lie before. `writes`: the files that it leaves, "same" bytes at every run, or "json" and "svg" with times in it.
    `leaves`: a folder, of files whose names are known to the library alone. `measures`: numbers are what it measured,
    which takes half a second: of its allocations only every STRIDE-th fails."""

    def __init__(self, name, command, writes=None, existing=None, leaves=None, second_start=False, measures=False):
        self.name, self.command, self.writes, self.existing = name, command.split(), writes or {}, existing or {}
        self.leaves, self.second_start, self.measures = leaves, second_start, measures

    def without_times(self, output):
        return re.sub(rb"[0-9.e+-]+|null" if self.measures else rb'"[a-z_]*seconds": [0-9.e+-]+', b"", output)


RUN = "tarn run -m MODELS/causal.tarn -p the -n 4 -s 1 -t 2"
CASES = [
    Case("run", RUN + " --json-stats stats.json", {"stats.json": "json"}),
    Case("run_first_start", RUN + " --packed-cache cache", leaves="cache"),
    Case("run_second_start", RUN + " --packed-cache cache", leaves="cache", second_start=True),
    Case("run_file", "tarn run -m MODELS/causal4.tarn -f MODELS/text.txt -n 4 --temp 0 -t 1 --verify"),
    Case("run_beams", "tarn run -m MODELS/seq2seq.tarn -f MODELS/lines.txt -n 4 --beam 2 -t 1"),
    Case("classify", "tarn classify -m MODELS/classifier.tarn -f MODELS/lines.txt -t 1"),
    Case("fill", "tarn fill -m MODELS/masked.tarn -p a_c -t 1"),
    Case("inspect", "tarn inspect -m MODELS/causal.tarn --json -t 1"),
    Case("state", "tarn state diff MODELS/a.state MODELS/b.state -m MODELS/causal.tarn --json"),
    Case("eval", "tarn eval -m MODELS/causal.tarn -f MODELS/text.txt --json -t 1 --logits logits.npy", {"logits.npy": "same"}),
    Case("bench", "tarn bench -m MODELS/causal.tarn -p 4 -n 2 -r 1 --memory-mib 1 -t 1 -o jsonl --plot plot.svg", {"plot.svg": "svg"},
         measures=True),
    Case("convert_random", "tarn-convert --random-weights 1 MODELS/convert.json -o out.tarn --quant int8", {"out.tarn": "same"}),
    Case("convert", "tarn-convert MODELS/checkpoint -o out.tarn --quant int4", {"out.tarn": "same"}, {"out.tarn": b"old"}),
    Case("convert_eval", "tarn-convert MODELS/checkpoint -o out.tarn --quant int8 --eval MODELS/text.txt -t 1",
         {"out.tarn": "same"}),
]


class Tools:
    def __init__(self, build, models, scratch):
        self.build, self.models, self.scratch = build, models, scratch
        self.preload = os.path.join(build, "lib", "libtarn_faults.so")

    def command(self, case):
        words = [word.replace("MODELS", self.models) for word in case.command]
        return [os.path.join(self.build, "bin", words[0]), *words[1:]]

    def folder(self, case):
        """A new one, as the case wants it before."""
        folder = tempfile.mkdtemp(dir=self.scratch)
        for name, content in case.existing.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        if case.second_start:
            self.start(case, folder, None)
        return folder

    def start(self, case, folder, fail, seconds=None):
        environment = {**os.environ, "TARN_PACKED_CACHE": "none"}
        if fail:
            environment.update(LD_PRELOAD=self.preload, TARN_FAIL=fail)
        return subprocess.run(self.command(case), cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds)

    def calls(self, case):
        """What the command does and gives without a fault: ([(kind, N, stack)], standard output, files)."""
        folder = self.folder(case)
        noted = os.path.join(self.scratch, case.name + ".calls")
        done = self.start(case, folder, "calls:" + noted)
        if done.returncode != 0:
            sys.exit(f"{case.name}: fails without a fault: {done.stderr.decode()}")
        with open(noted) as file:
            calls = [(kind, int(number), stack) for kind, number, stack in (line.split() for line in file)]
        files = {name: content(folder, name) for name in case.writes}
        shutil.rmtree(folder)
        return calls, done.stdout, files

    def point(self, case, fail, stdout, files):
        """"ok", "error", or in more words what is wrong. A hang is seen twice: the machine may have been stopped meanwhile."""
        return self.try_point(case, fail, stdout, files) or self.try_point(case, fail, stdout, files) or \
            f"does not end within {SECONDS} s"

    def try_point(self, case, fail, stdout, files):
        """As point(); None if it does not end."""
        folder = self.folder(case)
        try:
            done = self.start(case, folder, fail, SECONDS)
            return wrong_end(case, done, stdout) or wrong_files(case, folder, done.returncode, files) or \
                ("error" if done.returncode else "ok")
        except subprocess.TimeoutExpired:
            return None
        finally:
            shutil.rmtree(folder)


def content(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def wrong_end(case, done, stdout):
    """None, or what is wrong with the end of a process."""
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    found, expected = case.without_times(done.stdout), case.without_times(stdout)
    if done.returncode == 0:
        return None if found == expected else "another output with status 0"
    lines = done.stderr.decode(errors="replace").splitlines() or [""]
    errors = [line for line in lines if re.match(r"tarn(-convert)?: error: .", line)]
    while lines and lines[-1].startswith("  "):  # what the error is about, one thing a line
        lines.pop()
    if done.returncode != 1 or len(errors) != 1 or lines[-1] != errors[0]:
        return f"status {done.returncode}, {len(errors)} lines of error: {lines[-3:]}"
    return None if expected.startswith(found) else "an output that does not begin as without a fault"


def wrong_files(case, folder, status, files):
    """None, or what is wrong with the files that a process leaves."""
    for name in sorted(os.listdir(folder)):
        if name == case.leaves:
            temporary = [entry for entry in os.listdir(os.path.join(folder, name)) if "tmp" in entry]
            if temporary:
                return f"{name}/{temporary[0]} stays"
            continue
        if name not in case.writes:
            return f"{name} stays"
        found = content(folder, name)
        if found == case.existing.get(name) and status != 0:
            continue
        if case.writes[name] == "json":
            json.loads(found)
        elif case.writes[name] == "svg":
            xml.etree.ElementTree.fromstring(found)
        elif found != files[name]:
            return f"{name} is written by half"
    missing = set(case.writes) - set(os.listdir(folder))
    return f"{missing.pop()} is missing with status 0" if missing and status == 0 else None


def make_models(build, folder):
    def write(name, text):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    for name, (config, precision) in {**MODELS, "convert": (CONVERT, "f32")}.items():
        write(name + ".json", json.dumps(config))
        subprocess.run([os.path.join(build, "bin", "tarn-convert"), "--random-weights", "1", os.path.join(folder, name + ".json"),
                        "-o", os.path.join(folder, name + ".tarn"), "--quant", precision], check=True, stdout=subprocess.DEVNULL)
    for name in "a", "b":
        subprocess.run([os.path.join(build, "bin", "tarn"), "run", "-q", os.path.join(folder, "causal.tarn"), "-p", name, "-n", "1",
                        "--save-state", os.path.join(folder, name + ".state")], check=True, stdout=subprocess.DEVNULL)
    write("text.txt", "to be or not to be")
    write("lines.txt", "one\ttwo\nthree\tfour\n")
    checkpoint_maker.write_checkpoint(os.path.join(folder, "checkpoint"), CONVERT, checkpoint_maker.random_tensors(CONVERT, 1))


class Table:
    def __init__(self):
        self.rows, self.failures = {}, []

    def add(self, kind, points, ok, errors, failed):
        row = self.rows.setdefault(kind, [0, 0, 0, 0])
        for i, number in enumerate((points, ok, errors, failed)):
            row[i] += number

    def fail(self, line):
        self.failures.append(line)
        print(line, flush=True)

    def print(self):
        print(f"{'call':10}{'points':>10}{'ok':>10}{'error':>10}{'failed':>10}")
        total = [sum(column) for column in zip(*self.rows.values())]
        for kind, row in [*self.rows.items(), ("all", total)]:
            print(f"{kind:10}" + "".join(f"{number:10}" for number in row))


def sweep_library(build, models, scratch, scenario, model, table):
    began = time.monotonic()
    path = os.path.join(models, model + ".tarn")
    if not os.path.exists(path):
        path = os.path.join(SOURCE, "examples", "models", model + ".tarn")
    cache = tempfile.mkdtemp(dir=scratch)
    done = subprocess.run([os.path.join(build, "tests", "faults_library"), scenario, path, cache], stdout=subprocess.PIPE,
                          text=True)
    points = 0
    for line in done.stdout.splitlines():
        if line.startswith("FAILED"):
            table.fail(f"{line} ({model})")
            continue
        kind, _, *numbers = line.split()
        table.add(kind, *map(int, numbers))
        points += int(numbers[0])
    if done.returncode not in (0, 1):
        table.fail(f"FAILED {scenario} ({model}): status {done.returncode}")
    print(f"library {scenario} {model}: {points} points, {time.monotonic() - began:.0f} s", flush=True)


def sweep_tool(tools, case, pool, table, tested):
    """Every call from a place (tool, kind and stack) that is not in `tested` yet, and every STRIDE-th of the other allocations."""
    began = time.monotonic()
    calls, stdout, files = tools.calls(case)
    wishes = []
    for kind, number, stack in calls:
        place = (case.command[0], kind, stack)
        if (place not in tested and not case.measures) or number % STRIDE == 0 or kind != "alloc":
            wishes += [(kind, f"{kind}:{number}"), (kind, f"{kind}:{number}+")]
    tested.update((case.command[0], kind, stack) for kind, _, stack in calls)
    results = pool.map(lambda wish: tools.point(case, wish[1], stdout, files), wishes)
    for (kind, fail), result in zip(wishes, results):
        failed = result not in ("ok", "error")
        table.add(kind, 1, result == "ok", result == "error", failed)
        if failed:
            command = " ".join(shlex.quote(word) for word in case.command)
            table.fail(f"FAILED {case.name} {fail}: {result}\n  TARN_FAIL={fail} LD_PRELOAD={tools.preload} {command}")
    print(f"{case.name}: {len(wishes)} points of {len(calls)} calls, {time.monotonic() - began:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("name", nargs="*")
    parser.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    known = {"library"} | {scenario for scenario, _ in LIBRARY} | {case.name for case in CASES}
    for name in options.name:
        if name not in known:
            parser.error(f"unknown name '{name}', expected one of {', '.join(sorted(known))}")

    def wanted(*names):
        return not options.name or any(name in options.name for name in names)

    began = time.monotonic()
    table = Table()
    folder = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        models = os.path.join(scratch, "models")
        os.mkdir(models)
        make_models(build, models)
        library = [(scenario, model) for scenario, model in LIBRARY if wanted("library", scenario)]
        list(pool.map(lambda part: sweep_library(build, models, scratch, *part, table), library))
        tools = Tools(build, models, scratch)
        tested = set()
        for case in CASES:
            if wanted(case.name):
                sweep_tool(tools, case, pool, table, tested)
    table.print()
    print(f"{len(table.failures)} failures, {time.monotonic() - began:.0f} s")
    return 1 if table.failures else 0


if __name__ == "__main__":
    sys.exit(main())
