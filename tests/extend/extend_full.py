#!/usr/bin/env python3
"""The worked examples of docs/extend: every *.diff is applied to a copy of the tree, which then passes the examples' golden files.

A diff may add one file and change one: that is what a new variant costs. The copy is built for one instruction set, without XNNPACK.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
EXAMPLES = ROOT / "docs/extend"


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def copy_tree(to):
    """What git knows of, as it stands in the working tree."""
    files = run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", stdout=subprocess.PIPE).stdout
    for file in files.split("\0"):
        if file and (ROOT / file).is_file():
            (to / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, to / file)


def check_size(diff):
    text = diff.read_text(encoding="utf-8")
    new, changed = len(re.findall(r"^--- /dev/null$", text, re.MULTILINE)), len(re.findall(r"^--- a/", text, re.MULTILINE))
    lines = len(re.findall(r"^\+(?!\+\+ )", text, re.MULTILINE))
    if new > 1 or changed > 1:
        sys.exit(f"{diff.name}: {new} new files and {changed} changed ones, at most 1 and 1 expected")
    print(f"{diff.stem}: {new} new file, {changed} changed, {lines} lines")


def main():
    diffs = sorted(EXAMPLES.glob("*.diff"))
    with tempfile.TemporaryDirectory() as folder:
        tree, golden = pathlib.Path(folder) / "tree", pathlib.Path(folder) / "golden"
        copy_tree(tree)
        for diff in diffs:
            check_size(diff)
            run("git", "apply", diff, cwd=tree)
        run(sys.executable, EXAMPLES / "golden.py", golden)
        run("cmake", "-S", tree, "-B", tree / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DTARN_XNNPACK=OFF",
            "-DCMAKE_CXX_FLAGS=-O1 -g0 -DHWY_COMPILE_ONLY_STATIC", stdout=subprocess.DEVNULL)
        run("cmake", "--build", tree / "build", "--target", "golden_test", "-j", os.cpu_count(), stdout=subprocess.DEVNULL)
        test = tree / "build/bin/golden_test"
        shown = run(test, golden, "--target", "all", stdout=subprocess.PIPE).stdout
        print(shown, end="")
        passed = {line.split()[1] for line in shown.splitlines() if line.startswith("PASS ")}
        missing = {file.stem for file in golden.iterdir()} - passed
        if missing or len(passed) < len(diffs):
            sys.exit(f"{len(passed)} golden files passed for {len(diffs)} examples; missing: {sorted(missing)}")
        print(run(test, ROOT / "tests/golden/data", stdout=subprocess.PIPE).stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
