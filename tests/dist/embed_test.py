"""Plain CMake: a configured clone, and apps that have tarn as a subdirectory. An app gets two libraries and a folder of headers: no
option, no target and no rule else. Only configured here; embed_full.py builds and runs them."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
BUILD = pathlib.Path(os.environ["TARN_BUILD"])
EXAMPLES = ROOT / "examples/embed_cmake"
NAMES = ("subdirectory", "fetch_content")
# The app's, the libraries', CMake's own.
TARGETS = {"hello", "tarn", "tarn_shared", "tarn_objects", "tarn_schema_header",
           "all", "clean", "depend", "edit_cache", "rebuild_cache"}
LIBRARY_FILE = ROOT / "runtime/platform/cpu.cc"


def cmake(*arguments, env=None):
    done = subprocess.run(["cmake", *map(str, arguments)], check=False, capture_output=True, text=True, env=env)
    return done.returncode, done.stdout + done.stderr


def configure(source, build, *arguments):
    code, said = cmake("-S", source, "-B", build, "-G", "Unix Makefiles", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                       f"-DFETCHCONTENT_SOURCE_DIR_TARN={ROOT}", *arguments)
    assert code == 0, said


def options(build, file):
    """What the compiler gets for a source file, without names of files."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    (command,) = [entry["command"] for entry in commands if entry["file"] == str(file)]
    words = command[command.index(" -") :].split()
    return words[: words.index("-o")]


@unittest.skipUnless((BUILD / "package/libtarn.a").exists(), "not the build that is installed")
class Embed(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.build = pathlib.Path(temporary.name) / "build"

    def test_nothing_reaches_the_app(self):
        for name in NAMES:
            with self.subTest(name):
                build = self.build / name
                configure(EXAMPLES / name, build)
                _, listed = cmake("--build", build, "--target", "help")
                targets = {line.split()[1] for line in listed.splitlines() if line.startswith("... ")}
                self.assertEqual({target for target in targets if "." not in target}, TARGETS)
                self.assertEqual(options(build, ROOT / "examples/hello_c/hello.c"), [f"-I{ROOT}/runtime/include"])
                link = (build / "CMakeFiles/hello.dir/link.txt").read_text(encoding="utf-8").split()
                libraries = {"-lm", "-lstdc++", "-lgcc_s", "-lgcc", "-lc"}  # what a C++ program has, for the C linker
                self.assertEqual([word for word in link[1:] if word.startswith("-") and word not in {"-o", *libraries}],
                                 [word for word in link if word.startswith("-Wl,-rpath,")])
                own = options(build, LIBRARY_FILE)
                self.assertIn("-O3", own)  # without a build type, too
                self.assertEqual([word for word in own if word.startswith("-W")], [])

    def test_the_app_keeps_its_choices(self):
        configure(EXAMPLES / "subdirectory", self.build, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_STANDARD=20", "-DCMAKE_UNITY_BUILD=ON",
                  "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON", "-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=programs")
        own = options(self.build, LIBRARY_FILE)
        self.assertIn("-g", own)
        self.assertIn("-std=c++17", own)
        self.assertNotIn("-Werror", own)
        self.assertIn(" programs/hello", (self.build / "CMakeFiles/hello.dir/link.txt").read_text(encoding="utf-8"))

    def test_a_clone_is_configured_as_a_release(self):
        configure(ROOT, self.build)
        self.assertIn("-O3", options(self.build, LIBRARY_FILE))

    def test_an_unknown_op_is_named(self):
        code, said = cmake("-S", ROOT, "-B", self.build, "-DTARN_OPS=Embedding,linear_state")
        self.assertNotEqual(code, 0)
        self.assertIn("TARN_OPS names 'linear_state', expected names of these: Embedding, FullyConnected,", " ".join(said.split()))

    def test_missing_dependencies_name_the_command(self):
        code, said = cmake("-S", ROOT, "-B", self.build, "-DTARN_BUILD_DEPS=OFF",
                           env={**os.environ, "TARN_CACHE": str(self.build / "cache")})
        self.assertNotEqual(code, 0)
        self.assertIn(f"{ROOT}/tools/dev/deps.sh", said)


if __name__ == "__main__":
    unittest.main()
