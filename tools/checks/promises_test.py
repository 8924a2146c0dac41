#!/usr/bin/python3
"""Each rule of docs/protocol.md names the tests that show it, and these tests exist.

A rule is an item of a numbered list with MUST or SHOULD. Each rule of net/rules.def is on the page, too. Programs that release builds have, too, turn off rules of experiments alone.
usage: promises_test.py [-v]        (a unittest program; CEPHEUS_SOURCE names another tree)
"""

import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ.get("CEPHEUS_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
GOOGLE_TEST = re.compile(r"\b(?:TYPED_TEST|TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+),\s*(\w+)")
UNITTEST = re.compile(r"^ +def (test_\w+)", re.MULTILINE)
ITEM = re.compile(r"\d+\. ")
SHOWN = re.compile(r"\bShown\s+by\b(.*?)(?:\n\s*\n|\Z)", re.DOTALL)
ENGINE_RULE = re.compile(r"^CEPHEUS_RULE\((\w+), (\w+)", re.MULTILINE)
POLICIES = {"source_change", "write_mode", "cnp_policy"}
SETS_RULE = re.compile(r"\brules\.(\w+)\s*=(?!=)")


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


def rules_of(page):
    """The numbered rules of a page."""
    rules, item = [], None
    for line in page.splitlines():
        if ITEM.match(line):
            item = [line]
            rules.append(item)
        elif line and not line.startswith(" "):
            item = None
        elif item is not None:
            item.append(line)
    texts = ["\n".join(rule) for rule in rules]
    return [text for text in texts if "MUST" in text or "SHOULD" in text]


def out_of_order(page):
    """Numbered items that neither follow the last one nor begin a part of the page."""
    wrong, last, title, is_first = [], 0, "", True
    for line in page.splitlines():
        if line.startswith("#"):
            title, is_first = line, True
            last = 0 if line.startswith("## ") else last
        elif item := ITEM.match(line):
            number = int(line.split(".")[0])
            if number != last + 1 and not (is_first and number == 1):
                wrong.append(f"{item.group().strip()} after {last}. below {title}")
            last, is_first = number, False
    return wrong


def engine_rules():
    """The kinds of the engines' rules, by name."""
    return dict(ENGINE_RULE.findall((SOURCE / "net/rules.def").read_text(encoding="utf-8")))


def shown_by(rule):
    """The names of tests in the paragraph after "Shown by"."""
    found = SHOWN.search(rule)
    return re.findall(r"`([^`]+)`", found.group(1)) if found else []


class Promises(unittest.TestCase):
    def setUp(self):
        self.page = (SOURCE / "docs/protocol.md").read_text(encoding="utf-8")

    def test_each_names_tests_that_exist(self):
        there = tests()
        rules = rules_of(self.page)
        self.assertGreater(len(rules), 100)
        for rule in rules:
            with self.subTest(" ".join(rule.split())[:60]):
                self.assertTrue(shown_by(rule), "it names no test")
                self.assertEqual([name for name in shown_by(rule) if name not in there], [])

    def test_other_names_of_tests_on_the_page_exist(self):
        there = tests()
        suites = {name for name in there if "." not in name}
        named = re.findall(r"`([A-Z]\w+\.[A-Z]\w+|test_\w+)`", self.page)
        self.assertEqual([name for name in named if name.split(".")[0] in suites and name not in there], [])

    def test_each_rule_of_the_engines_is_one(self):
        text = " ".join(rules_of(self.page))
        kinds = engine_rules()
        self.assertGreater(len(kinds), 20)
        self.assertEqual([name for name in kinds if f"`{name}`" not in text], [])

    def test_release_builds_turn_off_rules_of_experiments_alone(self):
        free = {name for name, kind in engine_rules().items() if kind == "kAblation"} | POLICIES
        found = [(str(path.relative_to(SOURCE)), name) for folder in ("fabric-sim", "replica", "bench") for path in (SOURCE / folder).rglob("*")
                 if path.suffix in (".cc", ".h") and not path.name.endswith("_test.cc") for name in SETS_RULE.findall(path.read_text(encoding="utf-8"))]
        self.assertIn(("fabric-sim/experiments/slow_box.cc", "announced_window"), found)
        self.assertEqual([one for one in found if one[1] not in free], [])

    def test_each_follows_the_one_before_it_or_begins_anew(self):
        self.assertEqual(out_of_order(self.page), [])


class Rules(unittest.TestCase):
    """The check itself."""

    def test_are_numbered_in_order_below_each_title(self):
        page = "## A\n1. x\n2. x\n### B\n3. x\n### C\n1. x\n2. x\n"
        self.assertEqual(out_of_order(page), [])
        self.assertEqual(out_of_order(page + "### D\n2. x\n"), ["2. after 2. below ### D"])
        self.assertEqual(out_of_order(page + "1. x\n"), ["1. after 2. below ### C"])

    def test_are_the_numbered_items_with_must_or_should(self):
        page = "1. It MUST. Shown\n   by `A.B`,\n   `C`.\n\n   `More`.\n2. It may.\n\nIt MUST.\n\n3. It SHOULD.\n# Title\n   MUST\n"
        self.assertEqual(rules_of(page), ["1. It MUST. Shown\n   by `A.B`,\n   `C`.\n\n   `More`.", "3. It SHOULD."])
        self.assertEqual([shown_by(rule) for rule in rules_of(page)], [["A.B", "C"], []])


if __name__ == "__main__":
    unittest.main()
