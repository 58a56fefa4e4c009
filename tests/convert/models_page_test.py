"""docs/models.md: its tables are the converter's, and its worked example does what is printed."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["TARN_BUILD"])
SOURCE = Path(os.environ["TARN_SOURCE"])
PAGE = SOURCE / "docs" / "models.md"


class ModelsPage(unittest.TestCase):
    def test_tables_are_what_the_converter_says(self):
        tool = SOURCE / "tools" / "dev" / "models_page.py"
        done = subprocess.run([sys.executable, tool, "--check", "--build", BUILD], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_shapes_are_made_of_fields(self):
        # A number in a shape is a sample size that no field explains.
        shapes = re.findall(r"^\| `[^`]+` \| `(\[[^`]*\])` \|", PAGE.read_text(), re.MULTILINE)
        self.assertGreater(len(shapes), 50)
        for shape in shapes:
            for factor in re.split(r", | \* ", shape.strip("[]").replace("head_dim + 1", "head_dim").replace("2 * ", "")):
                self.assertRegex(factor, r"^[a-z_]+[12]?$", shape)

    def test_example_does_what_is_printed(self):
        section = PAGE.read_text().split("## A checkpoint by hand")[1].split("\n## ")[0]
        blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
            printed = None
            for language, text in blocks:
                if language == "python":
                    name = re.match(r"# (\w+\.py)\n", text)
                    Path(folder, name[1]).write_text(text)
                elif language == "sh":
                    done = subprocess.run(["sh", "-e", "-c", text], cwd=folder, env=environment, capture_output=True, text=True,
                                          check=False)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    printed = done.stdout
                else:
                    self.assert_similar(printed, text)

    def assert_similar(self, found, expected):
        """The same words, and numbers that differ by no more than kernels of different CPUs round."""
        number = r"[+-]?\d+\.\d+"
        self.assertEqual(re.sub(number, "#", found), re.sub(number, "#", expected))
        for a, b in zip(re.findall(number, found), re.findall(number, expected)):
            self.assertAlmostEqual(float(a), float(b), delta=0.01)


if __name__ == "__main__":
    unittest.main()
