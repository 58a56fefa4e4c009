"""examples/hello_c, compiled and run with the commands of its README."""

import os
import re
import subprocess
import tempfile
import unittest

SOURCE = os.environ["TARN_SOURCE"]
BUILD = os.environ["TARN_BUILD"]


class HelloTest(unittest.TestCase):
    def test_readme_commands(self):
        with open(os.path.join(BUILD, "lib", "libtarn.so"), "rb") as file:
            if b"__asan_init" in file.read():
                self.skipTest("libtarn.so is built with a sanitizer: a plain C program cannot load it")
        with open(os.path.join(SOURCE, "examples", "hello_c", "README.md")) as file:
            compile_line, run_line = re.search(r"```\n(cc .*)\n(\./hello .*)\n```", file.read()).groups()
        with tempfile.TemporaryDirectory() as folder:
            hello = os.path.join(folder, "hello")
            compile_line = compile_line.replace("$PWD/build/lib", "build/lib").replace("build/lib", os.path.join(BUILD, "lib"))
            subprocess.run(compile_line.replace("-o hello", "-Wall -Wextra -Wpedantic -Werror -o " + hello), shell=True,
                           check=True, cwd=SOURCE)
            run_line = run_line.replace("./hello", hello)
            texts = [subprocess.run(run_line, shell=True, check=True, cwd=SOURCE, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL).stdout for _ in range(2)]
            self.assertTrue(texts[0].startswith(b"To be, or not to "))
            self.assertGreater(len(texts[0]), 100)
            self.assertEqual(texts[0], texts[1])
            failed = subprocess.run([hello, "nowhere.tarn", "a"], stderr=subprocess.PIPE, cwd=SOURCE)
            self.assertEqual(failed.returncode, 1)
            self.assertIn(b"nowhere.tarn", failed.stderr)


if __name__ == "__main__":
    unittest.main()
