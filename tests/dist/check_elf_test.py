#!/usr/bin/env python3
"""check_elf.py finds what it is there to find: a good library passes, one with a fault is refused for that fault alone."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
GOOD = ["-shared", "-fPIC", "-Wl,-soname,libtarn.so.0", "-Wl,-z,noexecstack"]


def check(file, target):
    command = [sys.executable, ROOT / "tools/dev/check_elf.py", target, file]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout


class Checks(unittest.TestCase):
    """Small libraries of one target, made by its compiler."""

    compiler, target = [], ""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def build(self, *arguments, source="int tarn_one(void) { return 1; }\n"):
        file, library = self.folder / "one.c", self.folder / "libtarn.so"
        file.write_text(source, encoding="ascii")
        subprocess.run([*self.compiler, file, "-o", library, *arguments], check=True)
        return library

    def assert_good(self, library):
        code, output = check(library, self.target)
        self.assertEqual(code, 0, output)
        self.assertIn("SONAME libtarn.so.0, 1 exports", output)

    def assert_refused(self, library, why, target=None):
        code, output = check(library, target or self.target)
        self.assertEqual(code, 1, output)
        faults = output.splitlines()[:-1]  # the last line is their number
        self.assertTrue(faults and all(why in line for line in faults), output)


@unittest.skipUnless(shutil.which("cc") and shutil.which("readelf"), "no C compiler")
class HostTest(Checks):
    compiler, target = ["cc"], "host"

    def test_good(self):
        self.assert_good(self.build(*GOOD))

    def test_extra_export(self):
        library = self.build(*GOOD, source="int tarn_one(void) { return 1; }\nint other(void) { return 2; }\n")
        self.assert_refused(library, "exports other;")

    def test_executable_stack(self):
        self.assert_refused(self.build(*GOOD, "-Wl,-z,execstack"), "wants an executable stack")

    def test_small_alignment(self):
        library = self.build(*GOOD, "-Wl,-z,max-page-size=2048", "-Wl,-z,common-page-size=2048")
        self.assert_refused(library, "aligned to 0x800, 0x1000 expected")

    def test_text_relocation(self):
        source = '__asm__(".text\\n.globl tarn_word\\ntarn_word:\\n.dc.a tarn_other\\n");\nint tarn_other;\n'
        self.assert_refused(self.build(*GOOD, "-Wl,-z,notext", "-Wl,--no-warnings", source=source), "has text relocations")

    def test_extra_library(self):
        other = self.folder / "libother.so"
        self.build(*GOOD, "-Wl,-soname,libother.so").rename(other)
        self.assert_refused(self.build(*GOOD, "-Wl,--no-as-needed", other), "needs libother.so;")

    def test_soname(self):
        self.assert_refused(self.build(*GOOD, "-Wl,-soname,libtarn.so"), "has the SONAME libtarn.so, libtarn.so.0 expected")

    def test_no_soname(self):
        self.assert_refused(self.build("-shared", "-fPIC", "-Wl,-z,noexecstack"), "has the SONAME none, libtarn.so.0 expected")

    def test_runpath(self):
        self.assert_refused(self.build(*GOOD, "-Wl,-rpath,/somewhere"), "has a RUNPATH")

    def test_other_machine(self):
        library = self.build(*GOOD, "-Wl,-soname,libtarn.so", "-Wl,-z,max-page-size=65536")
        self.assert_refused(library, ", ARM expected", "android-armeabi-v7a")

    def test_no_library(self):
        file = self.folder / "text"
        file.write_text("not a library\n", encoding="ascii")
        self.assert_refused(file, "readelf failed")
        self.assert_refused(self.folder / "absent", "readelf failed")


@unittest.skipUnless(shutil.which("clang-19") and shutil.which("ld.lld-19") and shutil.which("readelf"), "no compiler for ARM")
class Aarch64Test(Checks):
    compiler, target = ["clang-19", "--target=aarch64-linux-gnu", "-fuse-ld=lld-19", "-nostdlib"], "linux-aarch64"

    def test_good(self):
        self.assert_good(self.build(*GOOD))

    def test_pages_of_4_kib(self):
        self.assert_refused(self.build(*GOOD, "-Wl,-z,max-page-size=4096"), "aligned to 0x1000, 0x10000 expected")

    def test_new_glibc(self):
        versions, libc = self.folder / "versions", self.folder / "libc.so.6"
        versions.write_text("GLIBC_2.17 { late; };\nGLIBC_2.34 { later; };\n", encoding="ascii")
        self.build("-shared", "-Wl,-soname,libc.so.6", f"-Wl,--version-script={versions}",
                   source="void late(void) {}\nvoid later(void) {}\n").rename(libc)
        self.assert_good(self.build(*GOOD, libc, source="void late(void);\nvoid tarn_one(void) { late(); }\n"))
        library = self.build(*GOOD, libc, source="void later(void);\nvoid tarn_one(void) { later(); }\n")
        self.assert_refused(library, "needs glibc 2.34, 2.17 or older expected")

    def test_dynamic_program(self):
        program = self.build("-fPIE", "-pie", "-Wl,-z,noexecstack", "-Wl,-dynamic-linker,/lib/ld-linux-aarch64.so.1",
                             source="void _start(void) {}\n")
        self.assert_refused(program, "is linked dynamically")


if __name__ == "__main__":
    unittest.main()
