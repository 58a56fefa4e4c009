"""docs/c-api.md and its reference against the public headers, and the programs of examples/c_api, compiled and run."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = pathlib.Path(os.environ["TARN_SOURCE"])
BUILD = pathlib.Path(os.environ["TARN_BUILD"])
HEADERS = SOURCE / "runtime/include/tarn"
EXAMPLES = SOURCE / "examples/c_api"
MODEL = SOURCE / "examples/models/shakespeare-rfa-gate-int8.tarn"
WORDS = SOURCE / "examples/demo/english-rfa-gate-int4.tarn"  # 4,096 tokens
# the programs that need a model whose tokens are bytes
BYTES = ("batch", "beam", "cancel", "compact", "delta", "rewind", "sampling", "sequences", "snapshot", "speculate", "threads")
# what a line of a program's output must match
OUTPUT = {
    "memory": r"expected: session block has \d+ bytes, \d+ ",
    "allocator": r"closed: +0",
    "buffer": r"shakespeare-rfa-gate: 3351824 parameters",
    "errors": r"not found: no-such-file\.tarn: ",
    "threads": r"session 1: 100 tokens",
    "compact": r"^\d+ bytes, 0\.3\d of those of an exact snapshot\n.*the same (49|50|51)\d times of 512\n",
    "rewind": r"\nequal\nROMEO:",
    "speculate": r"\nequal; runs of the model: fewer than tokens\n",
    "batch": r"\[ROMEO:",
    "sequences": r"(\[(ROMEO|First Citizen, who speaks at some length|JULIET):[^\]]*\]\n){3}",
    "sampling": r"(token +\d+: log p = +-?\d+\.\d+; best( \d+ \(-?\d+\.\d+\)){3}\n){20}",
}


def page():
    return (SOURCE / "docs/c-api.md").read_text(encoding="utf-8")


def table_after(heading):
    """The first columns of the first table with a field or status in it, after a heading: [(name, second column)]."""
    section = page().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.MULTILINE)


class Pages(unittest.TestCase):
    def test_reference_is_that_of_the_headers(self):
        checked = subprocess.run([sys.executable, str(SOURCE / "tools/dev/api_page.py"), "--check"], stdout=subprocess.PIPE,
                                 text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_memory_has_every_class(self):
        header = (HEADERS / "tarn.h").read_text(encoding="utf-8")
        fields = re.findall(r"uint64_t (\w+);", re.search(r"typedef struct tarn_memory \{(.*?)\} tarn_memory;", header, re.S)[1])
        self.assertEqual([name for name, _ in table_after("Memory")], fields)

    def test_sampling_has_every_field(self):
        header = (HEADERS / "sampler.h").read_text(encoding="utf-8")
        struct = re.search(r"typedef struct tarn_sampler_config \{(.*?)\} tarn_sampler_config;", header, re.S)[1]
        fields = set(re.findall(r"(\w+)(?:\)\([^;]*\))?;", re.sub(r"/\*.*?\*/", "", struct, flags=re.S)))
        section = page().split("\n## Sampling\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|", section, re.MULTILINE)
        found = {name for row in rows for name in re.findall(r"`(\w+)`", row)} - {"tarn_sampler_config"}
        self.assertEqual(found, fields - {"struct_size", "allocator", "reserved"})

    def test_errors_have_every_status(self):
        header = (HEADERS / "status.h").read_text(encoding="utf-8")
        statuses = [("TARN_" + name, number) for name, number in re.findall(r"^  X\((\w+), (\d+),", header, re.MULTILINE)]
        self.assertEqual(table_after("Errors"), statuses)

    def test_snippets_are_excerpts(self):
        for name in ("c-api.md", "bare-metal.md"):
            text = (SOURCE / "docs" / name).read_text(encoding="utf-8")
            blocks = re.findall(r"^<!-- snippet: skip, an excerpt of (\S+) -->\n```c\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL)
            self.assertEqual(len(blocks), text.count("```c\n"), f"{name}: a snippet without the name of its file")
            for file, code in blocks:
                lines = (SOURCE / file).read_text(encoding="utf-8").splitlines()
                excerpts = (textwrap.dedent("\n".join(lines[i:i + code.count("\n") + 1])) for i in range(len(lines)))
                self.assertIn(code, excerpts, f"{name}: this is not in {file}")


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if b"__asan_init" in (BUILD / "lib/libtarn.so").read_bytes():
            raise unittest.SkipTest("libtarn.so is built with a sanitizer: a plain C program cannot load it")
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.work = pathlib.Path(temporary.name)
        for program in sorted(EXAMPLES.glob("*.c")):
            subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", program, "-I", EXAMPLES,
                            "-I", SOURCE / "runtime/include", "-L", BUILD / "lib", "-ltarn", "-pthread",
                            f"-Wl,-rpath,{BUILD}/lib", "-o", cls.work / program.stem], check=True)

    def run_program(self, *command):
        done = subprocess.run([self.work / command[0], *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def convert(self, name):
        model = self.work / f"{name}.tarn"
        subprocess.run([BUILD / "bin/tarn-convert", SOURCE / "examples/train/checkpoints" / name, "-o", model], check=True,
                       stdout=subprocess.DEVNULL)
        return model

    def test_programs_with_a_model(self):
        for program, form in OUTPUT.items():
            with self.subTest(program):
                self.assertRegex(self.run_program(program, MODEL), form)

    def test_allocator_is_the_contract(self):
        output = self.run_program("allocator", MODEL)
        found = re.findall(r" (\d+).*, +the contract says +(\d+)", output)
        self.assertEqual(len(found), 3, output)
        for took, said in found:
            self.assertEqual(took, said, output)

    def test_tokenize(self):
        output = self.run_program("tokenize", MODEL, "to be, or not to be")  # more than the program reads at once
        self.assertEqual(re.findall(r"(\d+): bytes (\d+) to (\d+)\n", output),
                         [(str(byte), str(i), str(i + 1)) for i, byte in enumerate(b"to be, or not to be")])
        self.assertRegex(output, r"\nin \d+ bytes of memory\n$")

    def test_stop_string(self):
        text = self.run_program("stop_string", MODEL, "never written").removesuffix("\n500 tokens\n")
        stop = text[200:210]
        self.assertEqual(self.run_program("stop_string", MODEL, stop), text[:text.index(stop)] + "\nstopped\n")

    def test_snapshot(self):
        self.assertRegex(self.run_program("snapshot", MODEL, self.work / "saved"), r"\nequal\n")

    def test_delta(self):
        config = json.loads((SOURCE / "examples/configs/lm-small-softmax.json").read_text(encoding="utf-8"))
        config.update(vocab_size=256, tokenizer="bytes", hidden_size=64, intermediate_size=64, num_layers=2, num_heads=2)
        config["attention"]["max_context"] = 200
        (self.work / "cache.json").write_text(json.dumps(config), encoding="utf-8")
        subprocess.run([BUILD / "bin/tarn-convert", "--random-weights", "1", self.work / "cache.json", "-o", self.work / "cache.tarn"],
                       check=True, stdout=subprocess.DEVNULL)
        output = self.run_program("delta", self.work / "cache.tarn")
        sizes = [int(size) for size in re.findall(r"of (\d+) bytes", output)]
        self.assertEqual(re.findall(r"\npart (\d): .*, (\w+)", output), [("1", "equal"), ("0", "equal")])
        base, two_parts, one_part = sizes  # a part has as many tokens as the base
        self.assertTrue(0.8 * base < one_part < 1.2 * base and 1.8 * base < two_parts < 2.2 * base, sizes)

    def test_encoders(self):
        self.assertRegex(self.run_program("beam", self.convert("dates-rfa"), "the third of March 1998"), r"^1998-03-03\n")
        output = self.run_program("classify", self.convert("listops-rfa"), "X29N47]0]", "N31]")
        self.assertRegex(output, r"^X29N47\]0\]: \d\nN31\]: \d\n$")

    def test_cancel(self):
        with subprocess.Popen([self.work / "cancel", MODEL], stdout=subprocess.PIPE) as running:
            running.stdout.read(20)
            running.send_signal(signal.SIGINT)
            rest, _ = running.communicate(timeout=120)
            self.assertEqual(running.returncode, 0)
            self.assertIn(b"\ncancelled after ", rest)

    def test_models_without_256_tokens(self):
        """The programs take the number of tokens from the model, and refuse one whose tokens are no bytes where these are needed."""
        for program in sorted(EXAMPLES.glob("*.c")):
            self.assertNotRegex(program.read_text(encoding="utf-8"), r"\b256\b", program.name)
        text = self.run_program("stop_string", WORDS, "never written").removesuffix("\n500 tokens\n")
        expected = subprocess.run([BUILD / "bin/tarn", "run", "-m", WORDS, "-p", "ROMEO:\n", "-n", "500", "--temp", "0", "-q",
                                   "--packed-cache", "none"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(text + "\n", expected)
        for program in BYTES:
            with self.subTest(program):
                refused = subprocess.run([self.work / program, WORDS, *["a"] * (program in ("beam", "snapshot"))],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual((refused.returncode, refused.stdout), (1, ""))
                self.assertRegex(refused.stderr, r"the tokenizer is of kind 2, expected 1 .*\n$")

    def test_every_program_is_run(self):
        covered = {*OUTPUT, "tokenize", "stop_string", "snapshot", "delta", "beam", "classify", "cancel"}
        self.assertEqual({program.stem for program in EXAMPLES.glob("*.c")}, covered)
        readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^\| `(\w+)\.c` \|", readme, re.MULTILINE)), covered)


if __name__ == "__main__":
    unittest.main()
