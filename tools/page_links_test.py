#!/usr/bin/python3
"""Links of the tree's Markdown pages lead to files, and to headings, that exist."""

import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")


def pages():
    return [page for page in sorted(SOURCE.rglob("*.md")) if page.relative_to(SOURCE).parts[0] not in ("build", ".git")]


def prose(text):
    """The text without blocks of code."""
    return re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Of its headings, as code hosts make them."""
    found = {}
    names = set()
    for title in re.findall(r"^#+ +(.+?) *#*$", prose(page.read_text(encoding="utf-8")), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-")
        names.add(name if name not in found else f"{name}-{found[name]}")
        found[name] = found.get(name, 0) + 1
    return names


class Links(unittest.TestCase):
    def test_lead_to_files_and_headings_that_exist(self):
        self.assertGreater(len(pages()), 5)
        for page in pages():
            for target in LINK.findall(prose(page.read_text(encoding="utf-8"))):
                if re.match(r"[a-z]+:", target):
                    continue
                with self.subTest(page=str(page.relative_to(SOURCE)), link=target):
                    name, _, heading = target.partition("#")
                    there = (page.parent / name).resolve() if name else page
                    self.assertTrue(there.exists(), "no such file")
                    if heading and there.suffix == ".md":
                        self.assertIn(heading, anchors(there), "no such heading")


if __name__ == "__main__":
    unittest.main()
