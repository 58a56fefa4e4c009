"""examples/bare_metal: wrong settings end the configuration, with a line that says what is wrong. And a firmware of somebody else's
that enables C++ gets the dependencies of the computer that builds it."""

import os
import pathlib
import shutil
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

    def test_a_firmware_may_enable_cxx(self):
        # Below version 3.24 (policy CMP0132), a first configuration puts its compilers into CC and CXX: those of the board.
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            compilers = {"C": "gcc", "CXX": "g++"}
            lines = ["set(CMAKE_SYSTEM_NAME Generic)"]
            for language, name in compilers.items():
                (folder / f"board-{name}").symlink_to(shutil.which(name))
                lines.append(f"set(CMAKE_{language}_COMPILER {folder}/board-{name})")
            (folder / "board.cmake").write_text("\n".join(lines), encoding="utf-8")
            (folder / "CMakeLists.txt").write_text(
                f"cmake_minimum_required(VERSION 3.20)\nproject(firmware LANGUAGES C CXX)\nset(TARN_BARE ON)\nadd_subdirectory({ROOT} tarn)\n",
                encoding="utf-8")
            done = subprocess.run(["cmake", "-S", folder, "-B", folder / "build", "-DTARN_BUILD_DEPS=OFF",
                                   f"-DCMAKE_TOOLCHAIN_FILE={folder}/board.cmake"], check=False, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
