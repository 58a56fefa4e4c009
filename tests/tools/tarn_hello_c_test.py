"""examples/hello_c and the C program of README.md, compiled and run with the commands of their pages."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

import chain_model  # noqa: E402

SOURCE = os.environ["TARN_SOURCE"]
BUILD = os.environ["TARN_BUILD"]


class HelloTest(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(BUILD, "lib", "libtarn.so"), "rb") as file:
            if b"__asan_init" in file.read():
                self.skipTest("libtarn.so is built with a sanitizer: a plain C program cannot load it")

    def compile(self, line, program):
        """Runs the compile line of a page, which ends with `-o` and a name, for `program` and the library of this build."""
        line = line.replace("$PWD/build/lib", "build/lib").replace("build/lib", os.path.join(BUILD, "lib"))
        subprocess.run(re.sub(r"-o \w+$", "-Wall -Wextra -Wpedantic -Werror -o " + program, line), shell=True, check=True,
                       cwd=SOURCE)

    def test_front_page(self):
        with open(os.path.join(SOURCE, "README.md")) as file:
            text = file.read()
        source = re.search(r"(?ms)^```c\n(.*?)^```$", text)[1]
        compile_line, = re.findall(r"(?m)^cc .*$", text)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "first.c"), "w") as file:
                file.write(source)
            first = os.path.join(folder, "first")
            self.compile(compile_line.replace("first.c", first + ".c"), first)
            self.assertGreaterEqual(len(subprocess.check_output([first], cwd=SOURCE)), 100)

    def readme_commands(self):
        with open(os.path.join(SOURCE, "examples", "hello_c", "README.md")) as file:
            return re.search(r"```(?:bash)?\n(cc .*)\n(\./hello .*)\n```", file.read()).groups()

    def test_readme_commands(self):
        compile_line, run_line = self.readme_commands()
        with tempfile.TemporaryDirectory() as folder:
            hello = os.path.join(folder, "hello")
            self.compile(compile_line, hello)
            run_line = run_line.replace("./hello", hello)
            texts = [subprocess.run(run_line, shell=True, check=True, cwd=SOURCE, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL).stdout for _ in range(2)]
            self.assertTrue(texts[0].startswith(b"To be, or not to "))
            self.assertGreater(len(texts[0]), 100)
            self.assertEqual(texts[0], texts[1])
            failed = subprocess.run([hello, "nowhere.tarn", "a"], stderr=subprocess.PIPE, cwd=SOURCE)
            self.assertEqual(failed.returncode, 1)
            self.assertIn(b"nowhere.tarn", failed.stderr)

    def test_text_goes_on_from_the_prompt(self):
        """With a tokenizer that drops a space at the beginning of a text, and holds tokens for single bytes back."""
        with tempfile.TemporaryDirectory() as folder:
            hello, model = os.path.join(folder, "hello"), os.path.join(folder, "chain.tarn")
            self.compile(self.readme_commands()[0], hello)
            tokenizer = os.path.join(SOURCE, "tests", "data", "tokenizers", "llama2", "tokenizer.json")
            chain_model.make(os.path.join(BUILD, "bin", "tarn-convert"), tokenizer, model,
                             ["▁a", "▁", "<unk>", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "</s>"])
            text = subprocess.run([hello, model, "a"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            self.assertEqual(text.decode(), "a 😀\n")
            self.assertEqual(text, subprocess.check_output([os.path.join(BUILD, "bin", "tarn"), "run", "-m", model, "-p", "a",
                                                            "-n", "200", "-s", "42", "-q", "--packed-cache", "none"]))


if __name__ == "__main__":
    unittest.main()
