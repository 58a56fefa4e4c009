"""docs/golden-files.md names every tensor and every metadata key of the golden files."""

import json
import os
import pathlib
import re
import struct
import unittest

ROOT = pathlib.Path(os.environ["TARN_SOURCE"])
PAGE = (ROOT / "docs/golden-files.md").read_text(encoding="utf-8")
# Constants of checkpoints, which the page stands for by examples.
CHECKPOINT = re.compile(r"(mab\d?|[qkvc]|[qkv]2|p[qkvc]_proj|[qkvc]_proj|out_proj)(_fc_[qkvo]|_ln\d)?(_proj)?_(weight|bias)"
                        r"|pack|seed_vectors|inducing_points")


def headers():
    for file in (ROOT / "tests/golden/data").iterdir():
        data = file.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        yield json.loads(data[8 : 8 + length])


class GoldenFiles(unittest.TestCase):
    def test_every_name_is_explained(self):
        explained = set(re.findall(r"`(\w+)`", PAGE))
        keys, tensors = set(), set()
        for header in headers():
            keys |= header.pop("__metadata__").keys()
            tensors |= header.keys()
        self.assertGreater(len(tensors), 30)
        self.assertEqual(keys - explained, set())
        self.assertEqual({name for name in tensors - explained if not CHECKPOINT.fullmatch(name)}, set())


if __name__ == "__main__":
    unittest.main()
