#!/usr/bin/env python3
"""Runs the tests of the ARM builds on emulated cores, and the default models from end to end beside this machine's own build.

    emulated.py [--core NAME]... [--jobs N]

Needs `make`, `make linux-aarch64` and `make linux-armv7`. Every core is a `-cpu` of QEMU's user mode, with the /proc and /sys of a
board or phone that has it (soc.py); an instruction that the core lacks traps, so kernels that were chosen wrongly fail. What ran
where is printed as a table. Exit status 1: something failed; its output is printed.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import re
import resource
import shlex
import sys
import time

import demo
import soc
from programs import BUILD, ROOT, Failure, run, sysroot

WORK = BUILD / "test-arm"
TARGETS = {"linux-aarch64": ("qemu-aarch64-static", "arm64"), "linux-armv7": ("qemu-arm-static", "armhf")}


@dataclasses.dataclass(frozen=True)
class Core:
    name: str
    target: str
    cpu: str  # QEMU's name and options
    board: str  # of soc.SOCS
    everything: bool = False  # all tests that its build has, not just those of its kernels and from end to end

    @property
    def folder(self):
        return WORK / self.name

    @property
    def built(self):
        return BUILD / self.target

    def command(self, program, root=None):
        """How to run a program of the target's on this core; `root` has what it finds in /proc and /sys."""
        return [TARGETS[self.target][0], "-L", root or self.folder / "root", "-cpu", self.cpu, self.built / program]


# QEMU has no A55, A510 and the like; `max` has all that it emulates, at the vector length that is asked for.
CORES = [
    Core("cortex-a53", "linux-aarch64", "cortex-a53", "rpi3", everything=True),
    Core("cortex-a76", "linux-aarch64", "cortex-a76", "rpi5"),  # dotprod, fp16
    Core("sve2-128", "linux-aarch64", "max,sve128=on", "armv9"),  # i8mm, bf16
    Core("sve2-256", "linux-aarch64", "max,sve256=on", "armv9"),
    Core("cortex-a7", "linux-armv7", "cortex-a7", "rpi2", everything=True),
    Core("cortex-a15", "linux-armv7", "cortex-a15", "exynos5422"),
]


def prepare(core):
    """The core's folder: root/ for QEMU, and in bin/ programs under the names that scripts look for below TARN_BUILD."""
    root = core.folder / "root"
    soc.write(root, soc.SOCS[core.board])
    for name in "lib", "usr":
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(sysroot(TARGETS[core.target][1]) / name)
    for name in "bin/tarn", "bin/tarn-convert":
        script = core.folder / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, core.command(name)))} "$@"\n', encoding="utf-8")
        script.chmod(0o755)


def cpu_of(core, root=None):
    """What tarn finds out about the core."""
    return json.loads(run(*core.command("bin/tarn", root), "inspect", "--cpu", "--json")[0])["cpu"]


def count(pattern, printed):
    found = re.search(pattern, printed.decode(errors="replace"), re.MULTILINE)
    if found is None:
        raise Failure(f"does not say how many tests passed: {printed[-2000:]!r}")
    return f"{found[1]} tests"


def google_test(core, binary):
    return count(r"\[  PASSED  \] (\d+) test", run(*core.command(binary), TARN_SOAK_TOKENS="2000")[0])


def c_program(core, program):
    return run(*core.command(program))[0].decode().strip()


def golden(core):
    out, _ = run(*core.command("bin/golden_test"), "--target", "all", "tests/golden/data")
    return out.decode().splitlines()[-1]


def script(core, path):
    """A unittest script of tests/ on the core's programs."""
    return count(r"^Ran (\d+) test", run(sys.executable, ROOT / "tests" / path, TARN_BUILD=str(core.folder))[1])


def fast_cores(core):
    """Every board of the core's bits, whatever its cores: cpuinfo goes by the files."""
    found = []
    for name, board in soc.SOCS.items():
        if board.bits == (32 if core.target == "linux-armv7" else 64):
            root = WORK / "boards" / name
            soc.write(root, board)
            cpu = cpu_of(core, root)
            if cpu["fast_cores"] != board.fast_cores:
                raise Failure(f"{name}: {cpu['fast_cores']} fast cores, {board.fast_cores} expected")
            threads = min(board.fast_cores, len(os.sched_getaffinity(0)))  # QEMU hands this machine's down
            if cpu["default_threads"] != threads:
                raise Failure(f"{name}: {cpu['default_threads']} threads, {threads} expected")
            found.append(f"{name} {board.fast_cores}")
    return ", ".join(found)


def hidden_system(core):
    """Where /proc and /sys do not tell what the CPU is, tarn runs on its own dense layers, and on the threads that it knows of."""
    for name, contents in soc.NOTHING.items():
        root = core.folder / "hidden" / name
        soc.write_nothing(root, contents)
        stats = core.folder / "stats.json"
        run(*core.command("bin/tarn", root), "run", "-m", demo.MODELS[0], "-p", "a", "-n", "8", "--json-stats", stats)
        found = json.loads(stats.read_text(encoding="utf-8"))
        # One core of one kind stands for all that the lists name.
        threads = min(4 if name == "only_the_last" else 1, len(os.sched_getaffinity(0)))
        if (found["threads"], found["dense"]) != (threads, "portable"):
            raise Failure(f"{name}: {found['threads']} threads, dense layers {found['dense']}; {threads} and portable expected")
    return f"{', '.join(soc.NOTHING)}: portable dense layers"


def tests_of(core, references):
    """(name, function, its arguments) of everything that the core runs."""
    built = sorted(path.relative_to(core.built) for path in (core.built / "tests").iterdir())
    for program in built:
        if program.name.startswith("capi_"):
            yield program.name, c_program, core, program
        elif program.name == "test_kernels" or (core.everything and program.name.startswith("test_")):
            yield program.name, google_test, core, program
    yield "golden files", golden, core
    for model, reference in references.items():
        yield model.stem, reference.compare, core.folder / "bin/tarn", core.folder
    yield "e2e/lm_test.py", script, core, "e2e/lm_test.py"
    yield "hidden /proc and /sys", hidden_system, core
    if core.everything:
        yield "fast cores", fast_cores, core


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", action="append", choices=[core.name for core in CORES], help="this core alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    arguments = parser.parse_args()
    cores = [core for core in CORES if arguments.core is None or core.name in arguments.core]
    begin, failures = time.monotonic(), []
    WORK.mkdir(parents=True, exist_ok=True)
    references = {model: demo.Reference(model, WORK) for model in demo.MODELS}
    for model, reference in references.items():
        print(f"{model.stem} on this machine: {reference.describe()}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = []
        for core in cores:
            prepare(core)
            running.append((core, [(name, pool.submit(*test)) for name, *test in tests_of(core, references)]))
        for core, tests in running:
            print(f"\n{core.name}: -cpu {core.cpu}, {core.board}; kernels {' '.join(cpu_of(core)['kernels'])}", flush=True)
            for name, future in tests:
                try:
                    result = future.result()
                except Failure as failure:
                    failures.append(f"{core.name}: {name}: {failure}")
                    result = "FAIL"
                print(f"  {name:<32} {result}", flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{time.monotonic() - begin:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU time")
    print("\n\n".join(failures), file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
