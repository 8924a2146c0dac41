#!/usr/bin/python3
"""Broadcasts of random datatypes in mode require: every byte and every gap is right, with any types of the ranks.

usage: types_test.py [--cases N] [--seed S] [-v]     (a unittest program; ./run types N is a long one)
"""

import sys
import unittest

from harness import PROGRAMS, REQUIRE, EndToEnd, day, over_fabric, taken

CHECK = PROGRAMS / "types_check"
BUSY_SECONDS, SECONDS_PER_CASE = 300, 0.25  # at most, on a busy machine


CASES = taken("--cases", 400)
SEED = taken("--seed", day())


class RandomTypes(EndToEnd):
    def test_arrive(self):
        print(f"types_check --seed {SEED} --count {CASES}", file=sys.stderr)
        large = 1000 if CASES >= 1000 else CASES // 2
        self.assert_ok(over_fabric(CHECK, "--seed", SEED, "--count", CASES, "--large", large, mca=REQUIRE,
                                   timeout=BUSY_SECONDS + SECONDS_PER_CASE * CASES))

    def test_arrive_if_several_ranks_share_a_host(self):
        self.assert_ok(over_fabric(CHECK, "--seed", SEED + 1, "--count", CASES // 4, "--large", 0, hosts=2,
                                   options=("--ranks-per-host", 2), mca=REQUIRE, timeout=BUSY_SECONDS + SECONDS_PER_CASE * CASES))


if __name__ == "__main__":
    unittest.main()
