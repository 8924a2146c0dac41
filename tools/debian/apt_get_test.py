#!/usr/bin/python3
"""apt_get.sh while another process has one of apt's locks; on directories of its own, without a network."""

import fcntl
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "apt_get.sh"
TIME_LIMIT = 60


class AptGet(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-apt-")))
        for directory in ("lists/partial", "cache/archives/partial", "sources"):
            (self.root / directory).mkdir(parents=True)

    def update(self, *options):
        """`apt-get update` of no sources at all, started."""
        words = [SCRIPT, *options, "update"]
        for name, value in (("Dir::Etc::sourceparts", "sources"), ("Dir::State::lists", "lists"), ("Dir::Cache", "cache")):
            words += ["-o", f"{name}={self.root / value}"]
        return subprocess.Popen([*words, "-o", "Dir::Etc::sourcelist=/dev/null", "-o", "APT::Sandbox::User="], text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def held(self):
        """The lock of the lists, as another process has it."""
        lock = self.enterContext(open(self.root / "lists/lock", "w", encoding="ascii"))
        fcntl.lockf(lock, fcntl.LOCK_EX)
        return lock

    def test_prints_nothing_without_a_lock(self):
        out, err = (process := self.update()).communicate(timeout=TIME_LIMIT)
        self.assertEqual((process.returncode, out, err), (0, "", ""))

    def test_waits_for_whoever_has_the_lock(self):
        lock = self.held()
        process = self.update()
        first = process.stderr.readline()
        self.assertRegex(first, r"^apt-get update: waiting, 900 s at most: Could not get lock .*lists/lock. It is held by process")
        self.assertIsNone(process.poll())
        lock.close()
        _, rest = process.communicate(timeout=TIME_LIMIT)
        self.assertEqual((process.returncode, rest), (0, ""))

    def test_gives_up_after_its_time_limit(self):
        self.held()
        _, err = (process := self.update("--time-limit", "0")).communicate(timeout=TIME_LIMIT)
        self.assertEqual(process.returncode, 100)
        self.assertIn("Could not get lock", err)
        self.assertIn("gave up after 0 s", err)

    def test_passes_any_other_failure_on_at_once(self):
        done = subprocess.run([SCRIPT, "no-such-command"], capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        self.assertEqual(done.returncode, 100)
        self.assertIn("Invalid operation no-such-command", done.stderr)


if __name__ == "__main__":
    if shutil.which("apt-get") is None:
        print("apt_get_test: SKIPPED, nothing was checked: apt-get is missing: run it on Debian", file=sys.stderr)
        sys.exit(77)
    unittest.main()
