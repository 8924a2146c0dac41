#!/usr/bin/python3
"""A machine that can't boot the lab: skipped, not passed; the message names the missing package."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77


def run_lab_test(**environment):
    with tempfile.TemporaryDirectory(prefix="cepheus-no-lab-") as empty:
        env = {**os.environ, "CEPHEUS_BUILD": empty, "CEPHEUS_LAB_CACHE": f"{empty}/cache",
               **{name: value.format(empty=empty) for name, value in environment.items()}}
        return subprocess.run([sys.executable, HERE / "lab_test.py"], env=env, text=True, capture_output=True, timeout=100)


class NoLab(unittest.TestCase):
    def test_a_machine_without_qemu_is_skipped_with_a_message(self):
        run = run_lab_test(PATH="{empty}")
        self.assertEqual(run.returncode, SKIPPED, run.stdout + run.stderr)
        self.assertIn("lab: skipped: QEMU or busybox is missing", run.stderr)
        self.assertIn("apt-get install", run.stderr)


if __name__ == "__main__":
    unittest.main()
