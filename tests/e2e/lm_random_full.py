"""lm_test.py's checks on random combinations of options.

    TARN_E2E_SEEDS=0:1000 python3 tests/e2e/lm_random_full.py
"""

import os
import unittest

import lm_cases
import lm_test


class RandomLmTest(lm_test.LmChecks):
    """One test_random_SEED for each seed, added below."""

    LEAST_GREEDY = LEAST_INT8 = 0


_begin, _end = map(int, os.environ.get("TARN_E2E_SEEDS", "0:150").split(":"))
lm_test.add_tests(RandomLmTest, map(lm_cases.random_case, range(_begin, _end)))

if __name__ == "__main__":
    unittest.main()
