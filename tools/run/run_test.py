#!/usr/bin/python3
"""./run describes itself: a short list of commands, and details of each without installing or building anything."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
LONGEST = 27  # lines


def run(*words):
    return subprocess.run([SOURCE / "run", *words], text=True, capture_output=True, timeout=60, check=False)


def commands():
    return re.findall(r"^  ([a-z-]+) ", run("help").stdout, re.MULTILINE)


class Help(unittest.TestCase):
    def test_is_short(self):
        shown = run("help")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertLessEqual(len(shown.stdout.splitlines()), LONGEST)
        self.assertLessEqual(max(map(len, shown.stdout.splitlines())), 100)

    def test_every_command_has_help(self):
        self.assertGreater(len(commands()), 15)
        for command in commands():
            with self.subTest(command):
                shown = run(command, "--help")
                self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                self.assertIn("usage: ", shown.stdout)

    def test_lists_every_command(self):
        parts = "".join(part.read_text(encoding="utf-8") for part in (SOURCE / "tools/run").glob("*.sh"))
        self.assertEqual(sorted(commands()), sorted(name.replace("_", "-") for name in re.findall(r"^(\w+)_command\(\)", parts, re.MULTILINE)))

    def test_wrong_usage_shows_it(self):
        for words in (["nothing"], ["bench", "nothing"], ["install"]):
            with self.subTest(words):
                shown = run(*words)
                self.assertEqual((shown.returncode, shown.stdout), (2, ""))
                self.assertIn("usage: ", shown.stderr)


class Demo(unittest.TestCase):
    def test_needs_no_library_that_only_tests_use(self):
        with tempfile.TemporaryDirectory() as build:
            done = subprocess.run(["cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", "-DBUILD_TESTING=OFF",
                                   "-DCMAKE_DISABLE_FIND_PACKAGE_rapidcheck=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON"],
                                  text=True, capture_output=True, timeout=110, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


class Package(unittest.TestCase):
    """With stand-ins for all that makes packages."""

    TOOLS = {"dpkg-query": "echo -n installed", "dpkg-parsechangelog": "echo 2", "git": "", "tar": 'mkdir "$3/cepheus-2"',
             "dpkg-buildpackage": "touch ../cepheus_2_amd64.deb ../cepheus_2_amd64.changes", "lintian": ""}

    def test_older_packages_are_removed(self):
        with tempfile.TemporaryDirectory() as scratch:
            tools, packages = pathlib.Path(scratch) / "tools", pathlib.Path(scratch) / "packages"
            tools.mkdir()
            packages.mkdir()
            for name, command in self.TOOLS.items():
                (tools / name).write_text(f"#!/bin/sh\n{command}\n")
                (tools / name).chmod(0o755)
            for name in ("cepheus_1_amd64.deb", "cepheus-openmpi_1_amd64.deb", "cepheus_1_amd64.changes", "libmcast0_1_amd64.deb", "other.deb"):
                (packages / name).touch()
            done = subprocess.run([SOURCE / "run", "package", packages], text=True, capture_output=True, timeout=60, check=False,
                                  env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(path.name for path in packages.iterdir()), ["cepheus_2_amd64.changes", "cepheus_2_amd64.deb", "other.deb"])


if __name__ == "__main__":
    unittest.main()
