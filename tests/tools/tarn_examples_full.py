"""The commands of README.md, of the first pages of docs and of the help texts run as they stand there, with the models of the
repository."""

import os
import re
import subprocess
import tempfile
import unittest

from tarn_testing import BIN, MODELS, tarn

SOURCE = os.environ["TARN_SOURCE"]
COMMAND = re.compile(r"(^|\| )(build/bin/)?tarn(-convert)? ")
# What `tarn bench` measures takes as long as it is told to, and is no question here: one repetition, beside a small buffer.
BENCH = re.compile(r"tarn bench [^|;]*")
SHORT = " -r 1 --memory-mib 16"
PREPARED = re.compile(r"tarn-convert [^();]* -o \S+\.tarn")


def commands_of(lines):
    """Lines that are a command, without the remark behind it."""
    return [re.sub(r"  +# .*$", "", line) for line in lines if COMMAND.search(line)]


def blocks_of(text, language):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        # What a reader has at hand: the repository, its models beside, the build.
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in "examples", "runtime", "README.md":
            os.symlink(os.path.join(SOURCE, name), os.path.join(self.folder, name))
        for name in os.listdir(MODELS):
            os.symlink(os.path.join(MODELS, name), os.path.join(self.folder, name))
        os.symlink(os.path.dirname(BIN), os.path.join(self.folder, "build"))

    def run_all(self, commands):
        environment = {**os.environ, "PATH": BIN + os.pathsep + os.environ["PATH"]}
        for command in commands:
            with self.subTest(command):
                short = BENCH.sub(lambda found: found[0] + SHORT, command)
                done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", short], cwd=self.folder, env=environment, timeout=300,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(done.returncode, 0, done.stderr.decode())

    def test_pages(self):
        for name in "README.md", "docs/getting-started.md":
            with open(os.path.join(SOURCE, name)) as file:
                text = file.read()
            for program in blocks_of(text, "c"):
                with open(os.path.join(self.folder, "first.c"), "w") as file:
                    file.write(program)
            lines = "".join(blocks_of(text, "bash")).splitlines()
            self.assertGreater(len(commands_of(lines)), 9, name)
            self.run_all(lines)

    def test_memory(self):
        """What docs/getting-started.md shows of the memory of a run, on x86 with AVX-512"""
        if re.search(r"(?m)^kernels +AVX3_DL ", tarn("inspect", "--cpu")[1].decode()) is None:
            self.skipTest("the page is of a CPU with AVX-512")
        with open(os.path.join(SOURCE, "docs", "getting-started.md")) as file:
            page = file.read()
        command = next(line for line in commands_of("".join(blocks_of(page, "bash")).splitlines()) if "--temp 0" in line)
        done = subprocess.run(command, shell=True, cwd=self.folder, env={**os.environ, "TARN_PACKED_CACHE": "none"}, check=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        shown = next(block for block in blocks_of(page, "text") if block.startswith("memory\n"))
        self.assertIn(shown.rstrip(), done.stderr.decode())

    def test_help(self):
        for name in "run", "classify", "fill", "eval", "bench", "inspect", "state", "help", None:
            text = tarn("help", *([name] if name else []))[1].decode()
            preparation, examples = text[text.index("Examples"):].split("\n", 1)
            commands = commands_of(re.findall(r"(?m)^  (\S.*)$", examples))
            self.assertTrue(commands, name)
            self.run_all(PREPARED.findall(preparation) + commands)


if __name__ == "__main__":
    unittest.main()
