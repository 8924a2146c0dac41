#!/usr/bin/python3
"""Every local link of every page leads somewhere: to a file, to a heading, to a picture.

So does every path of the tree that a page names. The pages of docs/how-to name only identifiers that a source has.
The pages and pictures that pages of the package cepheus-doc link to are in that package.
usage: page_links_test.py [-v]        (a unittest program; CEPHEUS_SOURCE names another tree)
"""

import os
import pathlib
import posixpath
import re
import tempfile
import unittest
import urllib.parse

SOURCE = pathlib.Path(os.environ.get("CEPHEUS_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PACKAGE = "debian/cepheus-doc.install"
PICTURES = (".svg", ".png")
HOW_TO = "docs/how-to/"
SOURCES = {".h", ".cc", ".c", ".def", ".py", ".in", ".lua", ".sh", ".txt"}

FENCE = re.compile(r"^(?P<mark>```+|~~~+).*?^(?P=mark)\s*?$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?:(?: {4}|\t).*\n(?:\n(?= {4}|\t))?)+")
INLINE_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
TAG = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=\"([^\"]+)\"")
PATH = re.compile(r"(?<![\w./-])(?:[\w.*-]+/)+[\w.*-]*")
INLINE = re.compile(r"`([^`\n]+)`")
IDENTIFIER = re.compile(r"\b(?:[a-z]\w*[A-Z_]|[A-Z]+[a-z]\w*[A-Z])\w*\b")  # snake_case, CamelCase, kConstant
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)
ANCHOR_TAG = re.compile(r"<a\b[^>]*?\b(?:id|name)=\"([^\"]+)\"")


def blank(found):
    """Spaces of the same lines, so that findings keep their line numbers."""
    return re.sub(r"[^\n]", " ", found.group())


def without_blocks(text):
    return INDENTED.sub(blank, FENCE.sub(blank, text))


def links(text):
    """(line, target) of each link and picture that is not code."""
    text = INLINE_CODE.sub(blank, without_blocks(text))
    for pattern in (LINK, REFERENCE, TAG):
        for found in pattern.finditer(text):
            yield text.count("\n", 0, found.start(1)) + 1, found.group(1)


def anchors(text):
    """The names that GitHub and its relatives give to a page's headings."""
    names, seen = set(ANCHOR_TAG.findall(text)), {}
    for title in HEADING.findall(without_blocks(text)):
        title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        names.add(f"{name}-{count}" if count else name)
    return names


def is_local(target):
    return not re.match(r"[a-z][a-z0-9+.-]*:|//", target)


def resolve(page, target):
    """(file, anchor) that a page's link means, the file as a path from the root of the tree."""
    path, _, anchor = target.partition("#")
    path = urllib.parse.unquote(path)
    return (posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page), anchor


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def pages(self):
        paths = (path.relative_to(self.root) for path in self.root.rglob("*.md"))
        return sorted(path.as_posix() for path in paths if path.parts[0] != "build" and not path.parts[0].startswith("."))

    def dead_links(self):
        """A finding is "page:line: why"."""
        findings = []
        for page in self.pages():
            for line, target in links(self.text(page)):
                if not is_local(target):
                    continue
                path, anchor = resolve(page, target)
                if not (self.root / path).exists():
                    findings.append(f"{page}:{line}: there is no {path}")
                elif anchor and path.endswith(".md") and anchor not in anchors(self.text(path)):
                    findings.append(f"{page}:{line}: {path} has no heading #{anchor}")
        return findings

    def is_ours(self, path):
        """It begins with a folder of the tree: other paths are those of other machines and packages."""
        first = path.split("/", 1)[0]
        return first not in (".", "..", "build") and (self.root / first).is_dir()

    def dead_paths(self):
        """Paths from the root of the tree, in text and code, without a file; * stands for any name."""
        findings = []
        for page in self.pages():
            text = self.text(page)
            for found in PATH.finditer(text):
                path = found.group().rstrip(".").rstrip("/")
                if self.is_ours(path) and not any(self.root.glob(path)):
                    findings.append(f"{page}:{text.count(chr(10), 0, found.start()) + 1}: there is no {path}")
        return findings

    def words(self):
        """All identifiers of all sources."""
        words = set()
        for path in self.root.rglob("*"):
            parts = path.relative_to(self.root).parts
            if path.suffix in SOURCES and parts[0] != "build" and not parts[0].startswith(".") and path.is_file():
                words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        return words

    def unknown_identifiers(self):
        findings, words = [], self.words()
        for page in self.pages():
            if not page.startswith(HOW_TO):
                continue
            text = self.text(page)
            for code in INLINE.finditer(text):
                for name in IDENTIFIER.findall(PATH.sub(" ", code.group(1))):
                    if name not in words:
                        findings.append(f"{page}:{text.count(chr(10), 0, code.start()) + 1}: no source has {name}")
        return findings

    def packaged(self):
        """{file in the package's directory: file of the tree} by debian/cepheus-doc.install."""
        files = {}
        for line in self.text(PACKAGE).splitlines():
            *patterns, directory = line.split()
            for pattern in patterns:
                found = sorted(self.root.glob(pattern))
                if not found:
                    raise FileNotFoundError(f"{PACKAGE}: nothing matches {pattern}")
                for path in found:
                    files[posixpath.join(directory, path.name)] = path.relative_to(self.root).as_posix()
        return files

    def missing_in_package(self):
        findings = []
        packaged = self.packaged()
        for page, source in packaged.items():
            for line, target in links(self.text(source)) if source.endswith(".md") else ():
                path, _ = resolve(page, target)
                if is_local(target) and path.endswith((".md", *PICTURES)) and path not in packaged:
                    findings.append(f"{source}:{line}: the package has no {path}")
        return findings


class OurPages(unittest.TestCase):
    def test_lead_somewhere(self):
        tree = Tree(SOURCE)
        self.assertGreater(len(tree.pages()), 8, f"{SOURCE} is not the source tree")
        findings = tree.dead_links()
        self.assertEqual(findings, [], "\n" + "\n".join(findings))

    def test_name_files_that_exist(self):
        findings = Tree(SOURCE).dead_paths()
        self.assertEqual(findings, [], "\n" + "\n".join(findings))

    def test_of_how_to_name_identifiers_that_exist(self):
        tree = Tree(SOURCE)
        self.assertGreater(sum(page.startswith(HOW_TO) for page in tree.pages()), 5)
        findings = tree.unknown_identifiers()
        self.assertEqual(findings, [], "\n" + "\n".join(findings))

    def test_lead_somewhere_in_the_package(self):
        findings = Tree(SOURCE).missing_in_package()
        self.assertEqual(findings, [], "\n" + "\n".join(findings))


class Rules(unittest.TestCase):
    """The check itself, on small trees."""

    def tree(self, files):
        directory = self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-links-"))
        for name, text in files.items():
            path = pathlib.Path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Tree(directory)

    def dead(self, **files):
        return self.tree(files["tree"]).dead_links()

    def test_a_file_a_heading_and_a_picture_that_are_there(self):
        self.assertEqual(self.dead(tree={
            "README.md": "# One\n[a](docs/b.md#two-words-and-code) ![p](docs/p.svg) [c](#one) <img src=\"docs/p.svg\">\n",
            "docs/b.md": "## Two words, and `code`\n[up](../README.md)\n", "docs/p.svg": ""}), [])

    def test_a_missing_file(self):
        self.assertEqual(self.dead(tree={"README.md": "\n\n[a](docs/b.md)\n"}), ["README.md:3: there is no docs/b.md"])

    def test_a_missing_picture(self):
        self.assertEqual(self.dead(tree={"docs/a.md": "![p](p.png)\n"}), ["docs/a.md:1: there is no docs/p.png"])

    def test_a_missing_heading(self):
        self.assertEqual(self.dead(tree={"a.md": "[b](b.md#two)\n", "b.md": "# One\n"}), ["a.md:1: b.md has no heading #two"])

    def test_a_heading_inside_code_is_none(self):
        self.assertEqual(self.dead(tree={"a.md": "[b](#one)\n```sh\n# One\n```\n"}), ["a.md:1: a.md has no heading #one"])

    def test_the_second_heading_of_a_name(self):
        self.assertEqual(self.dead(tree={"a.md": "[b](#one-1)\n# One\n# One\n"}), [])

    def test_code_has_no_links(self):
        self.assertEqual(self.dead(tree={"a.md": "`a[0](b)`\n\n    c[0](d)\n\n```\ne[0](f)\n```\n"}), [])

    def test_other_sites_are_left_alone(self):
        self.assertEqual(self.dead(tree={"a.md": "[b](https://example.org/x.md) <mailto:a@example.org>\n"}), [])

    def test_references(self):
        self.assertEqual(self.dead(tree={"a.md": "[b][c]\n\n[c]: d.md\n"}), ["a.md:3: there is no d.md"])

    def test_a_path_that_does_not_exist(self):
        tree = self.tree({"a.md": "`net/b.h`, net/c/,\n\n    run net/d.py. `other/e.h` /net/f.h\n", "net/b.h": "", "net/g.h": ""})
        self.assertEqual(tree.dead_paths(), ["a.md:1: there is no net/c", "a.md:3: there is no net/d.py"])

    def test_a_path_of_several_files(self):
        self.assertEqual(self.tree({"a.md": "net/*_test.cc", "net/b_test.cc": ""}).dead_paths(), [])
        self.assertEqual(self.tree({"a.md": "net/*_test.cc", "net/b.cc": ""}).dead_paths(), ["a.md:1: there is no net/*_test.cc"])

    def test_an_identifier_that_no_source_has(self):
        tree = self.tree({HOW_TO + "a.md": "`kGood` `call.make_it()` `TheirClass`\n`net/no_file.h` `word`\n",
                          "net/b.cc": "int kGood; make_it(); // TheirClassToo\n"})
        self.assertEqual(tree.unknown_identifiers(), [f"{HOW_TO}a.md:1: no source has TheirClass"])

    def test_a_picture_that_the_package_lacks(self):
        files = {PACKAGE: "README.md doc\ndocs/*.md doc/docs\n", "README.md": "![p](docs/p.svg)\n", "docs/a.md": "[up](../README.md)\n",
                 "docs/p.svg": ""}
        self.assertEqual(self.tree(files).missing_in_package(), ["README.md:1: the package has no doc/docs/p.svg"])
        files[PACKAGE] += "docs/*.svg doc/docs\n"
        self.assertEqual(self.tree(files).missing_in_package(), [])

    def test_a_package_that_flattens_the_folders(self):
        files = {PACKAGE: "README.md docs/*.md doc\n", "README.md": "[a](docs/a.md)\n", "docs/a.md": ""}
        self.assertEqual(self.tree(files).missing_in_package(), ["README.md:1: the package has no doc/docs/a.md"])


if __name__ == "__main__":
    unittest.main()
