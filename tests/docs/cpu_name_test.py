#!/usr/bin/env python3
"""The names of CPUs in the tables of the documentation: tools/dev/cpu.py."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "dev"))
import cpu  # noqa: E402

X86 = "processor\t: 0\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: {}\n\nprocessor\t: 1\nmodel name\t: other\n"


class CpuNameTest(unittest.TestCase):
    def test_generations_of_one_name_differ(self):
        for vendor, family, model, name, expected in (
                ("AuthenticAMD", 25, 1, "AMD EPYC", "AMD EPYC (Zen 3)"), ("AuthenticAMD", 25, 17, "AMD EPYC", "AMD EPYC (Zen 4)"),
                ("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Processor", "Intel(R) Xeon(R) Processor (Sapphire Rapids)"),
                ("GenuineIntel", 25, 17, "A name", "A name"), ("AuthenticAMD", 24, 1, "A name", "A name")):
            self.assertEqual(cpu.name_of(X86.format(vendor, family, model, name)), expected)

    def test_a_cpu_without_a_family_has_its_name(self):
        self.assertEqual(cpu.name_of("processor\t: 0\nmodel name\t: ARMv7 Processor\n"), "ARMv7 Processor")
        self.assertEqual(cpu.name_of("processor\t: 0\nBogoMIPS\t: 50.00\n"), "an unnamed CPU")


if __name__ == "__main__":
    unittest.main()
