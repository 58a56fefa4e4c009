#!/usr/bin/env python3
"""The pictures of docs/architecture.md are what `make drawings` draws, and the page shows each of them."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])


class Architecture(unittest.TestCase):
    def test_the_pictures_are_up_to_date(self):
        page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "tools/dev/architecture_drawings.py", folder], check=True)
            for drawn in sorted(pathlib.Path(folder).iterdir()):
                kept = ROOT / "docs/architecture" / drawn.name
                self.assertEqual(drawn.read_text(encoding="utf-8"), kept.read_text(encoding="utf-8"), "run make drawings")
                self.assertIn(f"(architecture/{drawn.name})", page)


if __name__ == "__main__":
    unittest.main()
