"""README.md is short, its headline numbers are those of docs/performance.md, pictures are those that their script draws, and
CITATION.cff has the version of the library."""

import filecmp
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])


class FrontPageTest(unittest.TestCase):
    def test_length(self):
        lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len(lines), 150)
        long = [line for line in lines if len(line) > 120 and not line.startswith("|")]
        self.assertEqual(long, [])

    def test_headline(self):
        done = subprocess.run([ROOT / "tools/dev/headline.py", "--check"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_drawings(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([ROOT / "tools/dev/drawings.py", folder], check=True)
            drawn = sorted(os.listdir(folder))
            self.assertTrue(drawn)
            _, different, missing = filecmp.cmpfiles(folder, ROOT / "docs/img", drawn, shallow=False)
            self.assertEqual(different + missing, [], "run `make drawings`")

    def test_number_of_families(self):
        """As many as the table of docs/published-models.md has, which families_test.py compares with the converter's."""
        page = (ROOT / "docs/published-models.md").read_text(encoding="utf-8")
        table = page.partition("<!-- families -->")[2].partition("<!-- /families -->")[0].partition("|---|")[2]  # without its head
        stated = re.search(r"\[(\d+) types\]\(docs/published-models\.md\)", (ROOT / "README.md").read_text(encoding="utf-8"))
        self.assertEqual(int(stated[1]), len(re.findall(r"^\| `", table, re.MULTILINE)))

    def test_citation_has_the_version(self):
        header = (ROOT / "runtime/include/tarn/tarn.h").read_text(encoding="utf-8")
        version = ".".join(re.findall(r"#define TARN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))
        self.assertIn(f"\nversion: {version}\n", (ROOT / "CITATION.cff").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
