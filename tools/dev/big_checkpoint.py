#!/usr/bin/env python3
"""What it takes to convert a checkpoint of 3 B parameters: time, MB/s, and the memory of tarn-convert.

    big_checkpoint.py [--build DIR] [--config CONFIG.json] [--work DIR] [--shard-bytes N] [--quant TYPE]...     (make big-checkpoint)

Writes a sharded checkpoint of random weights in BF16, as long as the tensors of CONFIG.json (6.2 GB for the default,
examples/configs/published/qwen2.5-3b.json), converts it with each TYPE (int8, int4), and deletes both. Weights are pieces of one block
of normal deviates: their time and memory are those of any others. "anonymous" is the memory that the process has of its own; "file"
counts pages of the mapped checkpoint, which the system takes back when it needs memory.
"""

import argparse
import array
import json
import math
import pathlib
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT = ROOT / "examples/configs/published/qwen2.5-3b.json"
BLOCK = 1 << 20  # elements
LINE = re.compile(r"(?P<name>\S+) \[(?P<shape>[\d, ]+)\](?: from (?P<other>\S+))?")


def tensors_of(convert, config):
    """Name in the folder -> shape."""
    done = subprocess.run([convert, "--list-tensors", config], stdout=subprocess.PIPE, text=True, check=True)
    tensors = {}
    for line in done.stdout.splitlines():
        match = LINE.fullmatch(line)
        name = match["other"] or match["name"]
        if name in tensors:
            sys.exit(f"big_checkpoint: {name} becomes several tensors: its own shape is not known here")
        tensors[name] = [int(size) for size in match["shape"].split(",")]
    return tensors


def deviates():
    """BLOCK normal deviates of deviation 0.02 as BF16, twice, so that a piece may begin anywhere in the first half."""
    generator = random.Random(1)
    values = array.array("f", (generator.gauss(0, 0.02) for _ in range(BLOCK)))
    halves = array.array("H", values.tobytes())[1::2]
    return (halves + halves).tobytes(), generator


def write_tensor(file, elements, block, generator):
    while elements > 0:
        count = min(elements, BLOCK)
        begin = 2 * generator.randrange(BLOCK)
        file.write(block[begin : begin + 2 * count])
        elements -= count


def write_checkpoint(folder, tensors, shard_bytes):
    block, generator = deviates()
    shards, size = [[]], 0
    for name, shape in tensors.items():
        if size > 0 and size + 2 * math.prod(shape) > shard_bytes:
            shards, size = [*shards, []], 0
        shards[-1].append(name)
        size += 2 * math.prod(shape)
    weight_map = {}
    for number, names in enumerate(shards, 1):
        file_name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        header, end = {}, 0
        for name in names:
            begin, end = end, end + 2 * math.prod(tensors[name])
            header[name] = {"dtype": "BF16", "shape": tensors[name], "data_offsets": [begin, end]}
            weight_map[name] = file_name
        text = json.dumps(header).encode()
        with open(folder / file_name, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name in names:
                write_tensor(file, math.prod(tensors[name]), block, generator)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}), encoding="utf-8")
    return sum(2 * math.prod(shape) for shape in tensors.values())


def memory(process):
    """VmHWM, RssAnon and RssFile of a process, in bytes; {} when it has ended."""
    try:
        text = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {key: 1024 * int(value) for key, value in re.findall(r"(VmHWM|RssAnon|RssFile):\s+(\d+) kB", text)}


def convert(command):
    """Seconds, processor seconds and the largest of every number of memory()."""
    begin, most, before = time.monotonic(), {}, resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for key, value in memory(process.pid).items():
                most[key] = max(most.get(key, 0), value)
            time.sleep(0.05)
        if process.returncode != 0:
            sys.exit(f"big_checkpoint: {command[0]} failed with status {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, most


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--config", type=pathlib.Path, default=DEFAULT)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build", help="where 8 GB are free")
    parser.add_argument("--shard-bytes", type=int, default=2_000_000_000)
    parser.add_argument("--quant", action="append")
    arguments = parser.parse_args()
    tool = arguments.build / "bin/tarn-convert"
    tensors = tensors_of(tool, arguments.config)
    with tempfile.TemporaryDirectory(dir=arguments.work, prefix="big-checkpoint-") as folder:
        source = pathlib.Path(folder) / "checkpoint"
        source.mkdir()
        shutil.copy(arguments.config, source / "config.json")
        begin = time.monotonic()
        total = write_checkpoint(source, tensors, arguments.shard_bytes)
        parameters = sum(map(math.prod, tensors.values()))
        print(f"{arguments.config.stem}: {parameters / 1e6:.0f} M parameters, {total / 1e6:.0f} MB in BF16, "
              f"{len(list(source.glob('*.safetensors')))} shards, written in {time.monotonic() - begin:.0f} s", flush=True)
        print("| weights | file, MB | seconds | of a processor | read, MB/s | peak memory, MB | anonymous, MB | file, MB |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
        for quant in arguments.quant or ["int8", "int4"]:
            model = pathlib.Path(folder) / "model.tarn"
            seconds, processor, most = convert([tool, source, "-o", model, "--quant", quant])
            print(f"| {quant} | {model.stat().st_size / 1e6:.0f} | {seconds:.0f} | {processor:.0f} | {total / 1e6 / seconds:.0f} | "
                  f"{most['VmHWM'] / 1e6:.0f} | {most['RssAnon'] / 1e6:.0f} | {most['RssFile'] / 1e6:.0f} |", flush=True)
            model.unlink()


if __name__ == "__main__":
    main()
