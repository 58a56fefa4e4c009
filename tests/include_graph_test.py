#!/usr/bin/env python3
"""docs/includes.svg is what `make includes` draws, and folders that include each other are found."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
DEV = ROOT / "tools/dev"


class IncludeGraph(unittest.TestCase):
    def test_the_picture_is_up_to_date(self):
        with tempfile.TemporaryDirectory() as folder:
            drawn = pathlib.Path(folder) / "includes.svg"
            subprocess.run([sys.executable, DEV / "include_graph.py", drawn], check=True)
            self.assertEqual(drawn.read_text(), (ROOT / "docs/includes.svg").read_text(), "run make includes")

    def test_folders_that_include_each_other_are_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {"kernels/attention/a.h": '#include "kernels/dense/b.h"\n', "kernels/dense/b.h": '#include "kernels/pointwise/c.h"\n',
                     "kernels/pointwise/c.h": '#include "kernels/attention/a.h"\n'}
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            check = subprocess.run([sys.executable, DEV / "check_includes.py", root], capture_output=True, text=True, check=False)
            self.assertEqual(check.returncode, 1)
            self.assertIn("directories include each other: kernels/attention -> kernels/dense -> kernels/pointwise -> kernels/attention",
                          check.stderr)


if __name__ == "__main__":
    unittest.main()
