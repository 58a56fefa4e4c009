"""100,000 tokens of the default model: nothing is allocated, and anonymous memory does not grow."""

import json
import os
import subprocess
import tempfile
import unittest

TARN = os.path.join(os.environ["TARN_BUILD"], "bin", "tarn")
MODELS = os.path.join(os.environ["TARN_SOURCE"], "examples", "models")


class LongRunTest(unittest.TestCase):
    def generate(self, name, tokens):
        with tempfile.TemporaryDirectory() as folder:
            stats_file = os.path.join(folder, "stats.json")
            subprocess.run([TARN, "run", "-m", os.path.join(MODELS, name), "-p", "A", "-n", str(tokens), "-s", "1",
                            "--json-stats", stats_file], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(stats_file) as file:
                return json.load(file)

    def test_constant_memory(self):
        names = sorted(name for name in os.listdir(MODELS) if name.endswith(".tarn"))
        self.assertTrue(names)
        counter = self.generate(names[0], 1)["allocation_counter"]
        if counter != "on":
            self.skipTest("allocation counter " + counter)
        for name in names:
            with self.subTest(name):
                stats = self.generate(name, 100000)
                # Times are printed, not judged: other work on the machine would decide.
                print(name, {key: stats[key] for key in ("tokens_per_second", "first_1000_median_us", "last_1000_median_us")})
                found = [stats[key] for key in ("generated_tokens", "allocations_after_creation", "rss_anon_growth_pages")]
                self.assertEqual(found, [100000, 0, 0])


if __name__ == "__main__":
    unittest.main()
