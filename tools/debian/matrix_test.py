#!/usr/bin/python3
"""matrix.sh with fakes of the programs that make roots and run in them."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent / "matrix.sh"
TIME_LIMIT = 60
NOBODY = 65534

STAND_INS = {
    # ... SUITE ROOT MIRROR
    "debootstrap": 'mkdir -p "${@: -2:1}"/etc/apt/{sources.list.d,apt.conf.d}; echo "${@: -3:1} ${@: -1}" >>"$NOTES"',
    "apt-get": "echo 'Other http://other.example/x/'; echo 'Debian http://mirror.example/debian/'",
    # The last argument is the command that would run in the root.
    "unshare": 'echo "${@: -1}" >>"$NOTES"; echo "7 passed, 0 failed, 2 skipped"; [[ ${@: -1} != *"$FAILS"* ]]',
    "chroot": "printf '%s\\n' 'g++ 4:14.2.0-1' 'libibverbs-dev 56.1-1' 'libopenmpi-dev 5.0.7-1' 'libucx-dev 1.18.1+ds-2+b1'",
}


class WithStandIns(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-matrix-")))
        (self.root / "tools/debian").mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / "tools/debian")
        for name, text in STAND_INS.items():
            (self.root / name).write_text(f"#!/bin/bash\n{text}\n")
            (self.root / name).chmod(0o755)

    def run_script(self, *words, fails="nothing", user=None):
        env = {**os.environ, "PATH": f"{self.root}:{os.environ['PATH']}", "NOTES": str(self.root / "notes"), "FAILS": fails}
        return subprocess.run([self.root / "tools/debian/matrix.sh", *words], text=True, capture_output=True, env=env, timeout=TIME_LIMIT,
                              cwd=self.root, user=user)

    def notes(self):
        return (self.root / "notes").read_text().splitlines()


class Arguments(WithStandIns):
    def test_names_the_releases_that_there_are(self):
        done = self.run_script("11")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'11' is no release that is known here; there are: 12 13", done.stderr)

    def test_reports_that_root_must_run_it(self):
        self.root.chmod(0o755)
        done = self.run_script("13", user=NOBODY if os.geteuid() == 0 else None)
        self.assertEqual(done.returncode, 2)
        self.assertIn("as root: ./run matrix 13", done.stderr)


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: only root makes roots: run the test as root")
class Releases(WithStandIns):
    def test_prints_what_was_there_and_came_of_it(self):
        done = self.run_script("13")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "Debian 13 (GCC 14.2.0, rdma-core 56.1, Open MPI 5.0.7, UCX 1.18.1): "
                         "demo ok; tests ok: 7 passed, 0 failed, 2 skipped")
        self.assertEqual(self.notes(), ["trixie http://mirror.example/debian/", "./run demo", "./run test "])

    def test_makes_a_root_once(self):
        for _ in range(2):
            self.assertEqual(self.run_script("12", "--", "-L", "unit tests").returncode, 0)
        self.assertEqual(self.notes().count("bookworm http://mirror.example/debian/"), 1)
        self.assertEqual(self.notes().count("./run test '-L' 'unit tests'"), 2)

    def test_takes_this_machines_sources_under_the_releases_name(self):
        self.assertEqual(self.run_script().returncode, 0)
        for release, suite in (("12", "bookworm"), ("13", "trixie")):
            sources = list((self.root / f"build/matrix/debian-{release}/etc/apt/sources.list.d").iterdir())
            self.assertTrue(sources)
            for file in sources:
                self.assertIn(suite, file.read_text())

    def test_fails_if_anything_did(self):
        for fails, verdict in (("demo", "demo FAILED; tests ok"), ("test", "demo ok; tests FAILED")):
            done = self.run_script("12", "13", fails=fails)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stdout.count(verdict), 2)


if __name__ == "__main__":
    unittest.main()
