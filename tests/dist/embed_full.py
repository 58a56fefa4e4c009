"""Apps that have tarn as a subdirectory: examples/embed_cmake is built, without a warning, and writes the same text with libtarn.a
and with libtarn.so. With kernels for one instruction set, which compile in a fraction of the time."""

import pathlib
import subprocess
import tempfile
import unittest

from embed_test import BUILD, EXAMPLES, NAMES, ROOT, cmake, configure

MODEL = ROOT / "examples/models/shakespeare-rfa-gate-int8.tarn"


def write(hello):
    done = subprocess.run([hello, MODEL, "ROMEO:"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@unittest.skipUnless((BUILD / "package/libtarn.a").exists(), "not the build that is installed")
class Embed(unittest.TestCase):
    def test_examples(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        work, texts = pathlib.Path(temporary.name), []
        for name in NAMES:
            with self.subTest(name):
                configure(EXAMPLES / name, work / name, "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic",
                          "-DCMAKE_CXX_FLAGS=-Wall -Wextra -DHWY_COMPILE_ONLY_STATIC", "-DCMAKE_CXX_FLAGS_RELEASE=-O1")
                code, said = cmake("--build", work / name, "-j", "2")
                self.assertEqual(code, 0, said)
                self.assertNotIn("warning:", said)
                texts.append(write(work / name / "hello"))
                self.assertGreater(len(texts[-1]), 200)
        self.assertEqual(len(set(texts)), 1, texts)


if __name__ == "__main__":
    unittest.main()
