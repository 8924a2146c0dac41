#!/usr/bin/python3
"""Operations of both MPI libraries beside those of arithmetic/: each difference is one that arithmetic/README.md lists.

usage: operations_test.py [--seed S] [-v]
"""

import subprocess
import sys
import unittest

from harness import PROGRAMS, Mpich, day, taken

SEED = taken("--seed", day())


class Operations(unittest.TestCase):
    def check(self, program):
        print(f"{program} --seed {SEED}", file=sys.stderr)
        run = subprocess.run([program, "--seed", str(SEED)], capture_output=True, text=True, timeout=300)
        print(run.stdout, file=sys.stderr)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("ok:", run.stdout, run.stderr)

    def test_of_open_mpi_are_known(self):
        self.check(PROGRAMS / "operations_check")

    def test_of_mpich_are_known(self):
        self.check(Mpich.compile("operations_check", "operations_check.cc", "../../arithmetic/combine.cc", flags=("-O3",)))


if __name__ == "__main__":
    unittest.main()
