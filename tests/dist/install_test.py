"""`make install` and the tarball of `make dist`: the same files with the same bytes, and a C program finds them."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
BUILD = pathlib.Path(os.environ["TARN_BUILD"])
MODEL = ROOT / "examples/models/shakespeare-rfa-gate-int8.tarn"
HELLO = ROOT / "examples/hello_c"


def run(*command, **more):
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def content(folder):
    """Path below the folder -> what is there: bytes and whether they can be executed, or where a link leads."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            found[path.relative_to(folder).as_posix()] = os.readlink(path)
        elif path.is_file():
            found[path.relative_to(folder).as_posix()] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


@unittest.skipUnless((BUILD / "package/libtarn.a").exists(), "nothing is installed from this build")
class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.work = pathlib.Path(temporary.name)
        cls.stage = cls.work / "stage"
        run("make", "install", f"BUILD={BUILD}", "PREFIX=/opt/tarn", f"DESTDIR={cls.stage}", cwd=ROOT)
        cls.prefix = cls.stage / "opt/tarn"

    def test_the_tarball_holds_the_same_files(self):
        run(sys.executable, ROOT / "tools/dev/dist.py", "-o", self.work / "dist", f"linux-here={BUILD}",
            env={**os.environ, "SOURCE_DATE_EPOCH": "1"})
        (tarball,) = (self.work / "dist").glob("tarn-*-linux-here.tar.gz")
        with tarfile.open(tarball) as tar:
            tar.extractall(self.work / "unpacked")
        (package,) = (self.work / "unpacked").iterdir()
        installed, packed = content(self.prefix), content(package)
        self.assertEqual(sorted(installed), sorted(packed))
        for name, found in installed.items():
            self.assertTrue(found == packed[name], f"{name} differs")
        for name in ("bin/tarn", "bin/tarn-convert", "include/tarn/tarn.h", "lib/libtarn.so", "lib/libtarn.a",
                     "lib/pkgconfig/tarn.pc", "lib/cmake/tarn/tarn-config.cmake", "share/doc/tarn/README.md",
                     "share/doc/tarn/LICENSE", "share/doc/tarn/NOTICES", "share/bash-completion/completions/tarn-convert",
                     "share/zsh/site-functions/_tarn", "share/fish/vendor_completions.d/tarn.fish", "share/man/man1/tarn-run.1"):
            self.assertIn(name, installed)

    def test_notices_name_what_is_inside(self):
        notices = (self.prefix / "share/doc/tarn/NOTICES").read_text(encoding="utf-8")
        for work in ("xnnpack", "highway", "flatbuffers", "xxhash", "nlohmann-json", "CLI11", "libstdc++"):
            self.assertIn(f"\n{'=' * 100}\n{work}", notices)

    def test_tools_run_from_there(self):
        clean = {"PATH": "/nowhere"}
        self.assertIn("tarn ", run(self.prefix / "bin/tarn", "--version", env=clean))
        self.assertIn("tarn-convert ", run(self.prefix / "bin/tarn-convert", "--version", env=clean))

    def test_completions_load_from_there(self):
        file = self.prefix / "share/bash-completion/completions/tarn"
        script = f'source {file}; COMP_WORDS=(tarn inspect --gr) COMP_CWORD=2; _tarn; echo "$COMPREPLY"'
        self.assertEqual(run("bash", "--norc", "-c", script), "--graph\n")

    @unittest.skipUnless(shutil.which("man"), "no man")
    def test_man_finds_the_pages(self):
        for page in ("tarn", "tarn-eval", "tarn-convert"):
            self.assertEqual(run("man", "--path", page, env={**os.environ, "MANPATH": str(self.prefix / "share/man")}).strip(),
                             str(self.prefix / f"share/man/man1/{page}.1"))

    @unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config")
    def test_hello_by_pkg_config(self):
        environment = {**os.environ, "PKG_CONFIG_LIBDIR": str(self.prefix / "lib/pkgconfig")}
        texts = []
        for module, more in (("tarn", [f"-Wl,-rpath,{self.prefix}/lib"]), ("tarn_static", [])):
            flags = run("pkg-config", "--cflags", "--libs", module, env=environment).split()
            run("cc", "-std=c99", HELLO / "hello.c", *flags, *more, "-o", self.work / module)
            texts.append(run(self.work / module, MODEL, "ROMEO:"))
        self.assertGreater(len(texts[0]), 200)
        self.assertEqual(*texts)

    def test_hello_by_cmake(self):
        build = self.work / "cmake"
        run("cmake", "-S", HELLO, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.assertGreater(len(run(build / "hello", MODEL, "ROMEO:")), 200)

    def test_nothing_built_is_said(self):
        done = subprocess.run(["make", "install", f"BUILD={self.work}/none"], cwd=ROOT, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("run make first", done.stderr)


if __name__ == "__main__":
    unittest.main()
