#!/usr/bin/python3
"""Random reductions, barriers and gathers in mode require: every bit is right, whatever the operation, type, communicator and order.

usage: reductions_test.py [--cases N] [--seed S] [--first I] [--pairwise BYTES] [--mpi mpich] [-v]     (./run reductions N is a long one)
"""

import sys
import unittest

import harness
from harness import PROGRAMS, REQUIRE, EndToEnd, day, over_fabric, taken, without_fabric

CHECK = PROGRAMS / "reductions_check"
BUSY_SECONDS, SECONDS_PER_CASE = 300, 0.5  # at most, on a busy machine
MOST = 8 * 4096  # bytes of all ranks: the largest result in the network
LONG = 1 << 30  # ... of those that messages serve
MCA = {**REQUIRE, "coll_cepheus_reduction_limit": MOST}

CASES = taken("--cases", 100)
SEED = taken("--seed", day())
FIRST = taken("--first", 0)
MPI = taken("--mpi", "openmpi")
# Up to this number of bytes of all ranks a result has the bits of a reduction pairwise by rank. Not if ranks share a host: MPI's own functions
# serve communicators without the rank that has the host's NIC.
PAIRWISE = taken("--pairwise", MOST)


class RandomReductions(EndToEnd):
    def check(self, cases, *more, mca=None, **how):
        arguments = ("--seed", SEED, "--first", FIRST, "--count", cases, *more)
        print("reductions_check", *arguments, file=sys.stderr)
        self.assert_ok(over_fabric(CHECK, *arguments, mca=mca or MCA, timeout=BUSY_SECONDS + SECONDS_PER_CASE * cases, **how))

    def test_have_the_right_bits(self):
        self.check(CASES, "--pairwise", PAIRWISE, hosts=5)

    def test_have_the_right_bits_at_any_length(self):
        mca = {**MCA, "coll_cepheus_reduction_limit": LONG}
        length = ("--long", 1_000_000)
        self.check(CASES // 2, *length, "--pairwise", LONG, hosts=5, mca=mca)
        self.check(CASES // 4, *length, hosts=2, options=("--ranks-per-host", 3), mca=mca)

    def test_have_the_right_bits_on_a_tree_that_is_not_flat(self):
        mca = {**MCA, "coll_cepheus_reduction_limit": LONG}
        self.check(CASES // 4, "--long", 1_000_000, "--pairwise", LONG, mca=mca, options=("--shape", "leaf-spine:2x1x3"))

    def test_have_the_right_bits_if_threads_share_the_library(self):
        self.check(CASES // 2, "--pairwise", PAIRWISE, "--threads", 3, hosts=4)

    def test_have_the_right_bits_if_several_ranks_share_a_host(self):
        self.check(CASES // 2, hosts=2, options=("--ranks-per-host", 3))


class PlantedFaults(unittest.TestCase):
    """Not with MPICH: the check is the same."""

    def test_are_noticed(self):
        for fault in "bit", "order", "blocks", "beyond", "input", "early", "no_barrier":
            with self.subTest(fault):
                run = without_fabric(PROGRAMS / "faulty_reductions_check", "--count", 40, environment={"FAULT": fault}, mca={"coll_cepheus_mode": "off"})
                self.assertEqual(run.code, 1, run.everything())
                self.assertIn("reductions_check: seed 1, case ", run.err)


if __name__ == "__main__":
    if MPI == "mpich":
        harness.use(harness.Mpich)
    unittest.main()
