#!/usr/bin/python3
"""experiments.py with a simulator that the test plays.

usage: experiments_test.py [-v]
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import experiment_modes

PROGRAM = pathlib.Path(__file__).resolve().parent / "experiments.py"

SIMULATOR = """#!/bin/sh
# experiment --list | experiment NAME --json FILE [--quick]
[ "$2" = --list ] && { printf 'good\\n    says\\nbad\\n    says\\n'; exit 0; }
[ "$2" = bad ] && { echo "bad: broken" >&2; exit 1; }
echo '[{"series": "a", "x": 1, "value": 2, "low": 1, "high": 3, "unit": "us"}]' > "$4"
cat <<'TEXT'
good (Paper fig. 1, simulated): what it shows

| what | paper | ours | verdict |
|---|---|---|---|
| a | 2 | 1 us | half |

series  x
a       1

Settings of some or all runs that are not the shipped defaults:
  mtu = 1024

docs/experiments/good.md describes the simulation
TEXT
"""


class Experiments(unittest.TestCase):
    SETTINGS = "    Settings of some or all runs that are not the shipped defaults:\n      mtu = 1024\n"

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-experiments-")))
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
        self.assertEqual((self.root / "out/good.svg").is_file(), shutil.which("gnuplot") is not None)

    def test_one_that_fails_takes_no_other_with_it(self):
        done = self.run_program()
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: bad", done.stderr)
        self.assertTrue((self.root / "out/good.txt").is_file())

    def test_an_unknown_name_is_bad_usage_and_the_known_are_named(self):
        done = self.run_program("worse")
        self.assertEqual(done.returncode, 2)
        self.assertIn("the experiments are good bad", done.stderr)

    def test_the_page_has_what_the_folder_has(self):
        self.run_program("good", "--quick")
        index = self.root / "figures.md"
        self.run_program("bad", "--docs", index)
        text = (self.root / "figures/good.md").read_text()
        self.assertTrue(text.startswith("# good: Paper fig. 1\n\nWhat it shows.\nThe [index](../figures.md) explains the columns.\n\n"), text)
        self.assertIn("| a | 2 | 1 us | half |\n\n    series  x\n    a       1\n\n" + self.SETTINGS + "\n`cepheus-sim experiment good --quick`", text)
        self.assertNotIn(str(self.root), text)
        self.assertFalse((self.root / "figures/bad.md").exists())

    def test_a_page_keeps_its_text_about_the_method(self):
        self.run_program("good", "--docs", self.root / "figures.md")
        page = self.root / "figures/good.md"
        text = page.read_text().replace("    a       1\n", "    a       9\n").replace("= 1024\n", "= 512\n\nHow it was done.\n\nAnd why.\n")
        page.write_text(text)
        self.run_program("good", "--docs", self.root / "figures.md")
        self.assertIn("    a       1\n\n" + self.SETTINGS + "\nHow it was done.\n\nAnd why.\n\n`cepheus-sim", page.read_text())

    def test_the_index_keeps_its_text_and_the_pages_of_other_runs(self):
        index = self.root / "figures.md"
        index.write_text("# Figures\n\nThis stays.\n\n| figure | experiment | what | paper | ours | verdict |\n"
                         "|---|---|---|---|---|---|\n| an older row |\n")
        (self.root / "figures").mkdir()
        bad = "# bad: Paper fig. 2\n\nWhat it showed.\n\n| what | paper | ours | verdict |\n|---|---|---|---|\n| b | - | 7 us | low |\n"
        (self.root / "figures/bad.md").write_text(bad)
        (self.root / "figures/old.md").write_text("Nobody knows it.\n")
        self.run_program("good", "--docs", index)
        text = index.read_text()
        self.assertEqual(text, "# Figures\n\nThis stays.\n\n| figure | experiment | what | paper | ours | verdict |\n"
                         "|---|---|---|---|---|---|\n| Paper fig. 1 | [good] | a | 2 | 1 us | half |\n"
                         "| Paper fig. 2 | [bad] | b | - | 7 us | low |\n\n[good]: figures/good.md\n[bad]: figures/bad.md\n")
        self.assertEqual((self.root / "figures/bad.md").read_text(), bad)
        self.run_program("good", "--docs", index)
        self.assertEqual(index.read_text(), text)


class Modes(unittest.TestCase):
    """Figures by parameter set and notification: the series that a figure shows, each mode a row, once all have been run."""

    def setUp(self):
        self.results = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-modes-")))

    def write(self, mode, value):
        points = [{"series": "multicast, all, settled", "x": 100, "value": value, "paper": None, "expected": 20},
                  {"series": "multicast, all, settled", "x": 200, "value": value / 2, "paper": None, "expected": 13.333},
                  {"series": "marked, all", "x": 1, "value": 7, "paper": None, "expected": None}]
        (self.results / f"tmcf-fig3.{mode}.json").write_text(json.dumps(points))
        (self.results / f"tmcf-fig3.{mode}.about").write_text('{"seconds": 1, "arguments": ["--quick"]}')

    def test_a_figure_is_shown_once_all_modes_have_been_run(self):
        for mode in experiment_modes.MODES[:-1]:
            self.write(mode, 19)
        self.assertEqual(experiment_modes.tables(self.results, ""), "")
        self.write(experiment_modes.MODES[-1], 25)
        rows = [line.split() for line in experiment_modes.tables(self.results, "").splitlines()]
        self.assertEqual(rows, [["tmcf-fig3,", "quick", "100", "200"], ["multicast,", "all:", "expected", "20", "13.3"], ["orig", "19", "9.5"],
                                ["orig,ce-echo", "19", "9.5"], ["hpcc", "19", "9.5"], ["hpcc,ce-echo", "25", "12.5"]])

    def test_a_figure_that_was_not_run_keeps_its_table(self):
        before = "\n    mcrdma-fig6  4\n    multicast   20\n\n    tmcf-fig3, quick  100\n    multicast, all      7\n"
        for mode in experiment_modes.MODES:
            self.write(mode, 19)
        tables = experiment_modes.tables(self.results, before).split("\n\n")
        self.assertEqual(len(tables), 2)
        self.assertEqual(tables[0], "    mcrdma-fig6  4\n    multicast   20")
        self.assertIn("19", tables[1])



if __name__ == "__main__":
    unittest.main()
