#!/usr/bin/python3
"""Each manual page names every option that the program's --help names, and no other."""

import pathlib
import re
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv.pop())
PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs/man"
COMMANDS = {"cepheusctl": ["status", "ports", "groups", "counters", "late", "topology", "explain", "nearest", "metrics", "top", "web", "record", "link", "reload", "reset-counters", "stop"], "cepheus": ["doctor", "fabric-test"], "cepheus-sim": ["experiment"], "cepheus-cmd": ["status"], "cepheus-replica": ["serve", "status", "check"]}


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def split_at_synopsis(page):
    """The SYNOPSIS section, and the sections after it."""
    synopsis, following = re.fullmatch(r".*?\n\.SH SYNOPSIS\n(.*?)(\n\.SH .*)", page, re.DOTALL).groups()
    return synopsis, following


def help_of(program, *command):
    shown = subprocess.run([BUILD / "bin" / program, *command, "--help"], text=True, capture_output=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


class Pages(unittest.TestCase):
    def check(self, program):
        helps = help_of(program) + "".join(help_of(program, c) for c in COMMANDS.get(program, []))
        page = (PAGES / f"{program}.1").read_text().replace("\\-", "-")
        # Help texts name other programs' options, too, mpirun's for instance.
        self.assertEqual(options(page) - options(helps), set(), "the page is out of date")
        listed = set(re.findall(r"^\s*(?:-\w,? )?(--[a-z][a-z-]+)", helps, re.MULTILINE))
        synopsis, following = split_at_synopsis(page)
        self.assertEqual(listed - options(following), set(), "the page does not describe these options after its SYNOPSIS")
        self.assertNotIn("\n.TP", synopsis, "the SYNOPSIS has a description")
        for command in COMMANDS.get(program, []):
            self.assertIn(command, page)

    def test_cepheusctl(self):
        self.check("cepheusctl")

    def test_cepheus_switch(self):
        self.check("cepheus-switch")

    def test_cepheus(self):
        self.check("cepheus")

    def test_cepheus_sim(self):
        self.check("cepheus-sim")

    def test_cepheus_volume_sim(self):
        self.check("cepheus-volume-sim")

    def test_cepheus_cmd(self):
        self.check("cepheus-cmd")

    def test_cepheus_replica(self):
        self.check("cepheus-replica")

    def test_every_program_has_one(self):
        programs = {path.name for path in (BUILD / "bin").iterdir() if path.name.startswith("cepheus")}
        self.assertEqual(programs, {path.stem for path in PAGES.iterdir()})

    def test_cepheus_run(self):
        self.check("cepheus-run")


if __name__ == "__main__":
    unittest.main()
