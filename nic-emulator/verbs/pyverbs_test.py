#!/usr/bin/python3
"""rdma-core's own tests of verbs devices (pyverbs), from its package, on one host of a fabric.

What the device does not have they skip by themselves. Left out here: other vendors' calls, and what goes to the
kernel behind libibverbs' back (devices imported through a file descriptor).
"""

import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile
import unittest

from program_testing import TIME_LIMIT, Fabric

SUITE = "/usr/share/doc/rdma-core/tests"
MODULES = ("addr", "atomic", "cq", "cq_events", "cqex", "device", "fork", "mr", "odp", "parent_domain", "pd", "qp", "qpex",
           "relaxed_ordering")
LEAST_PASSED = 75


def unpack(directory):
    """The suite's helpers and the modules that any device can run."""
    for path in glob.glob(os.path.join(SUITE, "*.py*")):
        name = os.path.basename(path).removesuffix(".gz")
        if name.startswith("test_") and name[len("test_"):-len(".py")] not in MODULES:
            continue
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as source:
            with open(os.path.join(directory, name), "wb") as target:
                target.write(source.read())


def stand_in_for_rdma(directory):
    """The suite asks iproute2's `rdma` for the devices' network interfaces, which fails where the kernel has no RDMA. This says that there are none."""
    path = os.path.join(directory, "rdma")
    with open(path, "w", encoding="ascii") as script:
        script.write("#!/bin/sh\necho '[]'\n")
    os.chmod(path, 0o755)


class RdmaCore(unittest.TestCase):
    def test_its_own_tests_pass(self):
        fabric = Fabric(hosts=1)
        self.addCleanup(fabric.close)
        with tempfile.TemporaryDirectory(prefix="cepheus-pyverbs-") as directory:
            suite = os.path.join(directory, "tests")
            os.mkdir(suite)
            unpack(suite)
            stand_in_for_rdma(directory)
            path = f"{directory}:{os.environ['PATH']}"
            done = subprocess.run([sys.executable, "run_tests.py", "-v", "--dev", "cepheus0"], cwd=suite,
                                  env=fabric.environment("h0", PATH=path), capture_output=True, text=True, timeout=2 * TIME_LIMIT,
                                  check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        passed = len(re.findall(r"\.\.\. ok$", done.stderr, re.MULTILINE))
        self.assertGreaterEqual(passed, LEAST_PASSED, done.stderr)


if __name__ == "__main__":
    if not glob.glob(os.path.join(SUITE, "run_tests.py*")):
        print(f"SKIPPED: {SUITE} is missing; install python3-pyverbs with its documentation")
        sys.exit(77)
    unittest.main()
