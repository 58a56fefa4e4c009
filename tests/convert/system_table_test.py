"""The table of attention variants in docs/variants.md is the one that `tarn-convert --systems` prints, and each of them has golden files."""

import json
import os
import struct
import subprocess
import unittest
from pathlib import Path

TOOL = Path(os.environ["TARN_BUILD"]) / "bin" / "tarn-convert"
SOURCE = Path(os.environ["TARN_SOURCE"])
BEGIN, END = "<!-- systems -->", "<!-- /systems -->"
# Where golden files have names of their own for a form of a system.
FORMS = {"rfa_gate": "rfa", "delta_rule_attn_norm": "delta_rule"}
# Blocks of several layers (tests/golden/golden_composite.cc), and an op beside attention: more or less than an attention object.
GRAPHS = {"set_transformer_mab", "set_transformer_isab", "set_transformer_pma", "causal_conv"}


def system_of(path: Path) -> str:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        system = json.loads(file.read(length))["__metadata__"]["system"]
    return FORMS.get(system, system)


class SystemTable(unittest.TestCase):
    def setUp(self):
        self.table = subprocess.run([TOOL, "--systems"], capture_output=True, text=True, check=True).stdout

    def test_page_has_this_table(self):
        page = (SOURCE / "docs" / "variants.md").read_text()
        for marker in (BEGIN, END):
            self.assertEqual(page.count(marker), 1, f"docs/variants.md: {marker} must stand there once")
        shown = page.split(BEGIN)[1].split(END)[0]
        self.assertEqual(shown.strip(), self.table.strip(), "docs/variants.md: put there what `tarn-convert --systems` prints")

    def test_every_variant_has_golden_files(self):
        _, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in self.table.splitlines())
        listed = {row[0].strip("`") for row in rows}
        present = {system_of(path) for path in (SOURCE / "tests" / "golden" / "data").glob("*.safetensors")}
        self.assertEqual(len(rows), len(listed))
        self.assertEqual(listed - present, set(), "variants without a golden file")
        self.assertEqual(present - listed, GRAPHS, "golden files of variants that the table lacks")


if __name__ == "__main__":
    unittest.main()
