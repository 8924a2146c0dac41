#!/usr/bin/python3
"""The summary of ./run test: each kind of skip is counted and named with its reason."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(__file__).resolve().parent / "test_summary.py"
LOG = """\
1/4 Test  #1: wire_test .........................   Passed    0.67 sec
2/4 Test  #2: e2e_nbd_test ......................***Skipped   0.10 sec
3/4 Test  #3: e2e_slurm_test ....................   Passed    9.00 sec
4/4 Test  #4: matrix_test .......................   Passed    0.10 sec
"""
DETAIL = """\
1/4 Testing: wire_test
[ RUN      ] Access.OfOthers
wire/access_test.cc:5: Skipped
only root can play other users: run the tests as root

[  SKIPPED ] Access.OfOthers (0 ms)
[  PASSED  ] 11 tests.
2/4 Testing: e2e_nbd_test
nbd_test: skipped: nbdkit is missing; as root: apt-get install nbdkit
3/4 Testing: e2e_slurm_test
test_one (__main__.Jobs.test_one) ... ok
test_two (__main__.Jobs.test_two) ... skipped "SKIPPED: others can't reach it"
Ran 2 tests in 1.000s
OK (skipped=1)
4/4 Testing: matrix_test
Ran 3 tests in 0.100s
OK (skipped=1)
"""
FAILURES = f"""\
1/4 Testing: wire_test
[ RUN      ] Psn.Wraps
wire/psn_test.cc:7: Failure
Expected equality of these values:
  1
  2

[  FAILED  ] Psn.Wraps (0 ms)
3/4 Testing: e2e_slurm_test
test_one (__main__.Jobs.test_one) ... FAIL
test_two (__main__.Jobs.test_two) ... ERROR

{"=" * 70}
FAIL: test_one (__main__.Jobs.test_one)
{"-" * 70}
Traceback (most recent call last):
  File "slurm_test.py", line 7, in test_one
    self.assertEqual(run.code, 0, run.everything())
AssertionError: 1 != 0 : exit 1
--- stdout
""" + "".join(f"{n}\n" for n in range(50)) + f"""
{"=" * 70}
ERROR: test_two (__main__.Jobs.test_two)
{"-" * 70}
Traceback (most recent call last):
  File "slurm_test.py", line 9, in test_two
KeyError: 'a'

{"-" * 70}
Ran 2 tests in 1.000s

FAILED (failures=1, errors=1)
4/4 Testing: matrix_test
it hangs
"""


class Summary(unittest.TestCase):
    def summary(self, log, detail, *left_out):
        with tempfile.TemporaryDirectory() as scratch:
            build = pathlib.Path(scratch)
            (build / "Testing/Temporary").mkdir(parents=True)
            (build / "Testing/Temporary/LastTest.log").write_text(detail)
            (build / "run.log").write_text(log)
            done = subprocess.run([sys.executable, SUMMARY, build, build / "run.log", "7", *left_out], text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def test_names_what_was_left_out_by_tests_programs_and_scripts(self):
        self.assertEqual(self.summary(LOG, DETAIL), (0, [
            "SKIPPED: e2e_nbd_test: nbdkit is missing; as root: apt-get install nbdkit",
            "SKIPPED: Access.OfOthers: only root can play other users: run the tests as root",
            "SKIPPED: e2e_slurm_test: others can't reach it",
            "SKIPPED: matrix_test: a case; its reason is printed with -v",
            "16 cases in 3 test programs, 7 s",
            "3 passed, 0 failed, 4 skipped"]))

    def test_fails_if_a_test_did_and_quotes_its_failures(self):
        log = LOG.replace("Passed    0.67", "***Failed    0.67").replace("Passed    9.00", "***Failed    9.00").replace("Passed    0.10", "***Timeout 60.00")
        code, lines = self.summary(log, FAILURES)
        self.assertEqual((code, lines[-1]), (1, "0 passed, 3 failed, 1 skipped"))
        self.assertEqual(lines[1:-2], [
            "FAILED: wire_test: wire/psn_test.cc:7", "    Expected equality of these values:", "      1", "      2",
            "FAILED: e2e_slurm_test: FAIL: test_one (__main__.Jobs.test_one)", "    AssertionError: 1 != 0 : exit 1", "    --- stdout",
            *[f"    {n}" for n in range(10)], "    [28 lines]", *[f"    {n}" for n in range(38, 50)],
            "FAILED: e2e_slurm_test: ERROR: test_two (__main__.Jobs.test_two)", "    KeyError: 'a'",
            "FAILED: matrix_test: its output", "    it hangs"])


if __name__ == "__main__":
    unittest.main()
