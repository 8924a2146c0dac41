#!/usr/bin/python3
"""Every test that docs/protocol.md names as showing a promise is there.

usage: promises_test.py [-v]        (a unittest program; CEPHEUS_SOURCE names another tree)
"""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ.get("CEPHEUS_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
TITLE = "## What shows it"
GOOGLE_TEST = re.compile(r"\b(?:TYPED_TEST|TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+),\s*(\w+)")
UNITTEST = re.compile(r"^ +def (test_\w+)", re.MULTILINE)


def tests():
    """Suites, Suite.Name and test_name of the whole tree."""
    names = set()
    for pattern, suffixes in ((GOOGLE_TEST, "*_test.cc"), (UNITTEST, "*.py")):
        for path in SOURCE.rglob(suffixes):
            if "build" in path.relative_to(SOURCE).parts:
                continue
            for found in pattern.findall(path.read_text(encoding="utf-8")):
                names |= {found[0], ".".join(found)} if isinstance(found, tuple) else {found}
    return names


def rows():
    """(promise, names that show it) of the table."""
    text = (SOURCE / "docs/protocol.md").read_text(encoding="utf-8").split(TITLE, 1)[1].split("\n## ", 1)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")][1:]
    return [(promise, re.findall(r"`([^`]+)`", shown)) for promise, shown in cells]


class Promises(unittest.TestCase):
    def test_each_names_tests_that_exist(self):
        there = tests()
        self.assertGreater(len(rows()), 10)
        for promise, names in rows():
            with self.subTest(promise):
                self.assertTrue(names, "nothing is named")
                missing = [name for name in names if name not in there and not (SOURCE / name).exists() and name != "cepheus-sim"]
                self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
