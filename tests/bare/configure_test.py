"""examples/bare_metal: wrong settings end the configuration, with a line that says what is wrong."""

import os
import subprocess
import tempfile
import unittest

ROOT = os.environ["TARN_SOURCE"]


class Configure(unittest.TestCase):
    def refusal(self, *settings):
        with tempfile.TemporaryDirectory() as build:
            done = subprocess.run(["cmake", "-S", ROOT, "-B", build, "-DTARN_BARE=ON", *settings], check=False, capture_output=True,
                                  text=True)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            return " ".join(done.stderr.split())

    def test_the_model_is_a_file(self):
        for path in "/nosuch.tarn", ROOT:
            self.assertIn(f"TARN_BARE_MODEL is '{path}', expected the path of a model file", self.refusal(f"-DTARN_BARE_MODEL={path}"))

    def test_the_board_is_known(self):
        self.assertIn("TARN_BOARD is 'nosuch', expected one of mps2-an386, ", self.refusal("-DTARN_BOARD=nosuch"))


if __name__ == "__main__":
    unittest.main()
