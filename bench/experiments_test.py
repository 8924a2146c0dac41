#!/usr/bin/python3
"""experiments.py with a simulator that the test plays.

usage: experiments_test.py [-v]
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parent / "experiments.py"

SIMULATOR = """#!/bin/sh
# experiment --list | experiment NAME --json FILE --svg FILE [--quick]
[ "$2" = --list ] && { printf 'good\\n    says\\nbad\\n    says\\n'; exit 0; }
[ "$2" = bad ] && { echo "bad: broken" >&2; exit 1; }
echo '[]' > "$4"
echo '<svg/>' > "$6"
printf 'good (Paper fig. 1, simulated): what it shows\\n\\nseries  x\\na       1\\n\\nHow it was done.\\n'
"""


class Experiments(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cepheus-experiments-")
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        simulator = self.root / "bin/cepheus-sim"
        simulator.parent.mkdir()
        simulator.write_text(SIMULATOR)
        os.chmod(simulator, 0o755)

    def run_program(self, *words):
        return subprocess.run([sys.executable, "-B", PROGRAM, "--build", self.root, "--results", self.root / "out", *words],
                              capture_output=True, text=True, check=False)

    def test_leaves_table_json_and_svg(self):
        done = self.run_program("good")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a       1", done.stdout)
        self.assertTrue((self.root / "out/good.json").is_file())
        self.assertTrue((self.root / "out/good.svg").is_file())

    def test_one_that_fails_takes_no_other_with_it(self):
        done = self.run_program()
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: bad", done.stderr)
        self.assertTrue((self.root / "out/good.txt").is_file())

    def test_an_unknown_name_is_bad_usage_and_the_known_are_named(self):
        done = self.run_program("worse")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there are: good bad", done.stderr)

    def test_the_page_has_what_the_folder_has(self):
        self.run_program("good", "--quick")
        page = self.root / "page.md"
        self.run_program("bad", "--docs", page)  # keeps what was there before
        text = page.read_text()
        self.assertIn("## good: Paper fig. 1\n\nWhat it shows.\n\n    series  x\n    a       1\n\nHow it was done.\n", text)
        self.assertIn("`cepheus-sim experiment good --quick`", text)
        self.assertNotIn("## bad", text)
        self.assertNotIn(str(self.root), text)


if __name__ == "__main__":
    unittest.main()
