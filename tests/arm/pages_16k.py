#!/usr/bin/env python3
"""Boots a 64-bit ARM kernel whose pages are 16 KiB in QEMU and runs tarn there: tests, and the default models from end to end.

    pages_16k.py

Needs `make`, `make linux-aarch64` and tools/dev/kernel_16k.sh. All files of the machine are in its initial RAM file system; init.c
is its first process. What it runs and how that ended is printed. Exit status 1: something failed.
"""

import contextlib
import gzip
import os
import pathlib
import re
import resource
import stat
import subprocess
import sys
import time

import demo
from programs import BUILD, ROOT, Failure, run, sysroot

TARGET = BUILD / "linux-aarch64"
WORK = BUILD / "test-16k"
GOLDEN = "linear.rfa_gate_gaussian.a", "slots.abc_mlp_exp_renorm.a", "cache.softmax.a"
LIBRARIES = "ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1"
MACHINE = ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a76", "-smp", "2", "-m", "1024", "-nographic", "-nic", "none",
           "-no-reboot"]
SECONDS = 600  # after which the machine hangs
NOT_OF_PAGES = ("*Determinism*", "*Steps*", "*Sequences*")  # tests of threads and of kernels, which run on other emulated cores


class Archive:
    """A cpio archive in the format that the kernel unpacks."""

    def __init__(self):
        self.content, self.inode, self.folders = bytearray(), 0, set()

    def add(self, name, mode, data=b"", device=(0, 0)):
        parent = str(pathlib.PurePosixPath(name).parent)
        if parent not in (".", "/") and parent not in self.folders:
            self.folders.add(parent)
            self.add(parent, stat.S_IFDIR | 0o755)
        self.inode += 1
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        self._padded(("070701" + "".join(f"{field:08X}" for field in fields) + name + "\0").encode())
        self._padded(data)

    def add_file(self, name, path):
        self.add(name, stat.S_IFREG | (0o755 if os.access(path, os.X_OK) else 0o644), pathlib.Path(path).read_bytes())

    def finish(self):
        self.add("TRAILER!!!", 0)
        return gzip.compress(bytes(self.content), 1)

    def _padded(self, data):
        self.content += data + bytes(-len(data) % 4)


def commands():
    """(what it shows, command line, what it prints: the text of a model, or some words) in their order."""
    def generate(what, model, *options):
        words = ["/bin/tarn", "run", "-m", model.relative_to(ROOT), "-p", demo.PROMPT, "-n", demo.TOKENS, "--temp", "0", "-t", "1"]
        return what, " ".join(map(str, [*words, *options])), model

    golden = " ".join(f"tests/golden/data/{name}.safetensors" for name in GOLDEN)
    first = demo.MODELS[0]

    def packed_before(folder):
        return f"mapped from {folder}", f"/bin/tarn inspect {first.relative_to(ROOT)} --packed-cache {folder}", "from the packed cache"

    return [
        generate("no /proc, no /sys", first),
        ("/proc", "mount proc /proc", ""),
        ("/sys", "mount sysfs /sys", ""),
        ("a tmpfs", "mount tmpfs /tmp", ""),
        ("tarn inspect --cpu", "/bin/tarn inspect --cpu", ""),
        ("test_model", "/tests/test_model", ""),
        ("test_session, but for threads and bits", f"/tests/test_session --gtest_filter=-{':'.join(NOT_OF_PAGES)}", ""),
        ("golden files", f"/bin/golden_test {golden}", ""),
        ("libtarn.so, a model inside a file",
         "/lib/ld-linux-aarch64.so.1 --library-path /lib /tests/capi_descriptor_test_tarn_shared", ""),
        *(generate(f"{model.stem}, packed into a file", model, "--packed-cache", "/tmp/packed") for model in demo.MODELS),
        generate(f"{first.stem}, no cache", first),
        packed_before("/tmp/packed"),
        generate(f"{first.stem}, packed on the root", first, "--packed-cache", "/packed"),
        ("a read-only root", "read-only", ""),
        *(generate(f"{model.stem}, from that file", model, "--packed-cache", "/tmp/packed") for model in demo.MODELS),
        packed_before("/packed"),
        generate(f"{first.stem}, from the root", first, "--packed-cache", "/packed"),
        generate("no folder for packed weights", first, "--packed-cache", "/nowhere"),
    ]


def initial_files(lines):
    libraries = sysroot("arm64")
    init = WORK / "init"
    run("clang-19", "--target=aarch64-linux-gnu", f"--sysroot={libraries}", "-fuse-ld=lld-19", "-static", "-O1", "-Wall", "-Wextra",
        "-Werror", ROOT / "tests/arm/init.c", "-o", init)
    archive = Archive()
    for folder in "dev", "proc", "sys", "tmp":
        archive.add(folder, stat.S_IFDIR | 0o755)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.add("commands", stat.S_IFREG | 0o644, "".join(line + "\n" for line in lines).encode())
    archive.add_file("init", init)
    for name in ("bin/tarn", "bin/golden_test", "tests/test_model", "tests/test_session", "tests/capi_descriptor_test_tarn_shared",
                 "lib/libtarn.so.0"):
        archive.add_file(name, TARGET / name)
    for name in LIBRARIES:
        archive.add_file(f"lib/{name}", libraries / "lib/aarch64-linux-gnu" / name)
    golden = [ROOT / f"tests/golden/data/{name}.safetensors" for name in GOLDEN]
    data = sorted(path for path in (ROOT / "tests/data").iterdir() if path.is_file())  # its directories are for other tests
    for path in [*demo.MODELS, *golden, *data]:
        archive.add_file(str(path.relative_to(ROOT)), path)
    return archive.finish()


def boot(lines):
    """What the console showed, without carriage returns; a file keeps it."""
    image = WORK / "initrd.gz"
    image.write_bytes(initial_files(lines))
    kernel = run(ROOT / "tools/dev/kernel_16k.sh", "--path")[0].decode().strip()
    with open(WORK / "console.txt", "w+b") as console:
        # What has not ended by then is missing on the console, and fails.
        # The kernel passes what it does not know to init's environment; the console is a terminal, and the texts are compared.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*MACHINE, "-kernel", kernel, "-initrd", image,
                 "-append", "console=ttyAMA0 quiet loglevel=3 rdinit=/init NO_COLOR=1"],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, timeout=SECONDS, check=False)
        console.seek(0)
        return console.read().decode("latin-1").replace("\r", "")


def judge(status, output, wanted):
    """How a command ended; of one that writes a model's text, what is the same. The console shows other lines around it."""
    if status != "0":
        raise Failure(f"exit status {status}\n{output}")
    if isinstance(wanted, demo.Reference):
        return wanted.agreement(output[max(0, output.find(demo.PROMPT)) :].encode("latin-1")[: len(wanted.text)])
    if wanted not in output:
        raise Failure(f"does not print {wanted!r}\n{output}")
    return wanted or "ok"


def main():
    begin, failed = time.monotonic(), False
    WORK.mkdir(parents=True, exist_ok=True)
    references = {model: demo.Reference(model, WORK) for model in demo.MODELS}
    steps = commands()
    console = boot([line for _, line, _ in steps])
    page = re.search(r"^# page (\d+)$", console, re.MULTILINE)
    print(f"pages of {page[1] if page else '?'} bytes, {' '.join(MACHINE[3:5])}")
    ended = re.findall(r"^# run (.*)\n(?s:(.*?))^# exit (\d+)$", console, re.MULTILINE)
    for (what, line, wanted), (ran, output, status) in zip(steps, ended):
        assert ran == line, "the console is not what init.c writes"
        try:
            print(f"  {what:<44} {judge(status, output, references.get(wanted, wanted))}")
        except Failure as failure:
            failed = True
            print(f"  {what:<44} FAIL: {failure}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.monotonic() - begin:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU time")
    if page is None or page[1] != "16384" or len(ended) != len(steps):
        print(f"FAIL: {len(ended)} of {len(steps)} commands ended; the console ended with\n{console[-2000:]}")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
