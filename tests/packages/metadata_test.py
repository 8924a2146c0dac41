#!/usr/bin/python3
"""debian/ says what the tree says: version, what building needs, what libmcast exports. Building the packages checks the rest.

usage: metadata_test.py BUILD VERSION [-v]
"""

import pathlib
import re
import subprocess
import sys
import unittest

VERSION = sys.argv.pop(2)
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = SOURCE / "debian"
# Comes with debhelper, or is of running the programs, not of building them.
NO_BUILD_DEPENDENCIES = {"g++", "openmpi-bin"}


class Metadata(unittest.TestCase):
    def test_the_version_is_the_projects(self):
        self.assertEqual(re.match(r"cepheus \(([^)]+)\)", (DEBIAN / "changelog").read_text()).group(1), VERSION)

    def test_build_dependencies_are_what_run_installs(self):
        listed = re.search(r"^readonly packages=\((.*?)^\)", (SOURCE / "run").read_text(), re.MULTILINE | re.DOTALL).group(1)
        field = re.search(r"^Build-Depends:(.*?)^\S", (DEBIAN / "control").read_text(), re.MULTILINE | re.DOTALL).group(1)
        needed = {entry.split()[0] for entry in field.split(",")}
        self.assertEqual(needed - {"debhelper-compat"}, set(listed.split()) - NO_BUILD_DEPENDENCIES)

    def test_the_symbols_file_has_what_libmcast_exports(self):
        exported = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", BUILD / "lib/libmcast.so"], text=True,
                                  capture_output=True, check=True).stdout
        there = {line.split()[2].replace("@@", "@") for line in exported.splitlines()}
        listed = {line.split()[0] for line in (DEBIAN / "libmcast0.symbols").read_text().splitlines() if line.startswith(" ")}
        # What programs may need is never taken away under the same name of the library.
        self.assertEqual({name if "@" in name else f"{name}@{name}" for name in there}, listed)


if __name__ == "__main__":
    unittest.main()
