#!/usr/bin/env python3
"""The example of docs/file-format.md writes a model that runs, and the page's reference is what `make format-tables` writes."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = pathlib.Path(os.environ["TARN_SOURCE"]), pathlib.Path(os.environ["TARN_BUILD"])
DEPENDENCIES = subprocess.run([ROOT / "tools/dev/deps.sh", "--prefix"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
FLATC = pathlib.Path(os.environ.get("TARN_FLATC", f"{DEPENDENCIES}/bin/flatc"))  # ctest names that of the build
PAGE = ROOT / "docs/file-format.md"
TARN = BUILD / "bin/tarn"

# The Python package xxhash in miniature, over the header that the library itself is built with.
HASH_LIBRARY = """
#define XXH_INLINE_ALL
#include <xxhash.h>
void Digest(const void* bytes, size_t count, unsigned char* out) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, count));
  for (int i = 0; i < 16; ++i) out[i] = canonical.digest[i];
}
"""
HASH_MODULE = """
import ctypes, pathlib
library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("digest.so")))
library.Digest.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
def xxh3_128_digest(data):
    out = ctypes.create_string_buffer(16)
    library.Digest(bytes(data), len(data), out)
    return out.raw
"""


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


class FileFormat(unittest.TestCase):
    def test_the_example_writes_a_model_that_runs(self):
        example = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE).group(1)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "write.py").write_text(example, encoding="utf-8")
            (folder / "xxhash.py").write_text(HASH_MODULE, encoding="utf-8")
            (folder / "digest.c").write_text(HASH_LIBRARY, encoding="utf-8")
            shutil.copy(ROOT / "schema/tarn.fbs", folder)
            run("cc", "-shared", "-fPIC", "-O1", "-I", FLATC.parents[1] / "include", folder / "digest.c", "-o", folder / "digest.so")
            run(sys.executable, "write.py", cwd=folder, env={**os.environ, "PATH": f"{FLATC.parent}:{os.environ['PATH']}"})
            self.assertIn("elu_plus_one", run(TARN, "inspect", folder / "tiny.tarn"))
            self.assertIn("nats/token", run(TARN, "eval", folder / "tiny.tarn", "-f", folder / "write.py", "--verify"))

    def test_the_reference_is_up_to_date(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(shutil.copy(PAGE, folder))
            run(sys.executable, ROOT / "tools/dev/format_tables.py", page)
            self.assertEqual(page.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8"), "run make format-tables")


if __name__ == "__main__":
    unittest.main()
