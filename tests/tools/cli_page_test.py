"""docs/cli.md, the completions and the manual pages have the commands and options of the programs."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

SCRIPT = Path(os.environ["TARN_SOURCE"]) / "tools/dev/cli_page.py"


class CliPage(unittest.TestCase):
    def test_page_is_what_the_programs_say(self):
        done = subprocess.run([sys.executable, SCRIPT, "--build", os.environ["TARN_BUILD"], "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
