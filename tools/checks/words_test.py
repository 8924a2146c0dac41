#!/usr/bin/python3
"""Words: Markdown lines have at most 100 characters, headings use defined abbreviations, identifiers use the field's terms.

A finding is "file:line: what to write instead". Three rules:

- A line of Markdown has at most 100 characters, outside tables and code.
- An abbreviation in a heading of docs/ (two or more capitals, such as ECN) is a term of docs/glossary.md. Words in backticks are
  names, which their own pages define.
- No identifier and no file name of C, C++ or Python has a word of INSTEAD. Underscores and capitals divide words: kNapTime has nap.

usage: words_test.py [-v]        (a unittest program; CEPHEUS_SOURCE names another tree)
"""

import io
import os
import pathlib
import re
import tempfile
import tokenize
import unittest

SOURCE = pathlib.Path(os.environ.get("CEPHEUS_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
MOST = 100  # characters of a line of Markdown
GLOSSARY = "docs/glossary.md"
# Abbreviations of a heading that need no definition.
KNOWN = {"III": "a section of a paper"}

# A metaphor, and the field's term for it. Not here, because they are terms: credit; share, a part of a buffer, of a rate or of INSTALL's
# number.
INSTEAD = {
    "ask": "request",
    "arrangement": "host discovery",
    "attended": "blocking",
    "bark": "fire",
    "befall": "inject",
    "breach": "failure",
    "broken": "failed, damaged or unusable",
    "calm": "reset",
    "carrier": "transport",
    "carry": "transmit",
    "conduct": "attack",
    "convey": "schedule",
    "course": "algorithm",
    "cut": "switch-over, disconnected or truncated",
    "depart": "dequeue",
    "departure": "sending, or the member that leaves",
    "desk": "recording session, or control thread",
    "errand": "task queue, or task",
    "evil": "hostile",
    "farewell": "unregister",
    "hear": "receive",
    "hog": "CPU load",
    "home": "leaf",
    "laggard": "lagging member",
    "nap": "sleep, pause or backoff",
    "patience": "time limit",
    "reception": "control thread",
    "room": "slots, bytes or space",
    "salvage": "drain",
    "say": "send, print or report",
    "settle": "finish, await or run_until_idle",
    "stray": "unanswered, late or unknown",
    "tell": "send, notify or report",
    "unattended": "non_blocking",
}
FORMS = {word + ending: word for word in INSTEAD for ending in ("", "s", "es", "d", "ed")}
FORMS |= {"asking": "ask", "heard": "hear", "hearing": "hear", "said": "say", "saying": "say", "telling": "tell", "told": "tell",
          "befell": "befall", "carried": "carry", "carries": "carry", "cutter": "cut", "cutting": "cut", "cutoff": "cut", "departing": "depart",
          "napping": "nap", "settling": "settle"}

# File and identifier, as regular expressions of the whole name, and the reason why the identifier keeps the word.
ALLOWED = [
    (r"(fabric-sim|net|switch-emulator|tests)/.*", r"\w*[Cc]ut(s|ter|ting)?(_\w*|[A-Z]\w*|)", "a cable is cut; so are the options --cuts"),
    (r"(nic-emulator|fabric-sim)/.*", r"\w*[Cc]uts?(_\w*|[A-Z]\w*|)", "DCQCN cuts a rate"),
    (r"replica/.*", r"k?[Cc]uts?_?", "a fault of a simulated volume that its pages name"),
    (r".*", r"carry_out(_\w*)?", "to do: no packet is carried"),
    (r".*", r"\w*[Cc]arr(y|ies|ied)(_\w*|[A-Z]\w*|)", "a packet carries a header, a link carries traffic: the RFCs' words"),
    (r"(collectives|ompi-coll|pmpi)/.*", r"\w*[Cc]arrier_?", "the MCA parameter coll_cepheus_carrier"),
    (r"(fabric-sim|replica/sim|controller)/.*", r"\w*[Cc]alm([A-Z]\w*|)", "the phase of a simulation without faults"),
    (r"(fabric-sim/experiments|tests)/.*", r"\w*[Ss]ettl(e|es|ed|ing)(_\w*|)|SETTLING", "a rate settles: control theory's word"),
    (r".*", r"BrokenPipeError", "Python's"),
]

CODE = {".h", ".c", ".cc", ".def", ".py"}
PYTHON = {".py"}
# Comments and literals of C++, which are no identifiers. Line breaks stay, so that lines keep their numbers.
NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
FENCE = re.compile(r"\s*(```|~~~)")
HEADING = re.compile(r"#+ ")
ABBREVIATION = re.compile(r"[A-Z]*[A-Z][a-z]{0,2}[A-Z]+")  # ECN, RoCE, QPNs without its s


def words_of(identifier):
    return [word.lower() for word in WORD.findall(identifier)]


def is_allowed(path, identifier):
    return any(re.fullmatch(file, path) and re.fullmatch(name, identifier) for file, name, _ in ALLOWED)


def bad_words(path, identifier):
    """The words of INSTEAD that this identifier has and may not have."""
    found = [FORMS[word] for word in words_of(identifier) if word in FORMS]
    return [] if not found or is_allowed(path, identifier) else found


def identifiers(file, text):
    """(line, identifier) of a source file. Its own name is one, too."""
    path = pathlib.PurePath(file)
    yield 1, path.stem
    if path.suffix in PYTHON:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
        return
    code = NO_CODE.sub(lambda m: "\n" * m.group().count("\n") or " ", text)
    for number, line in enumerate(code.splitlines(), 1):
        for found in IDENTIFIER.finditer(line):
            yield number, found.group()


def prose(text):
    """(line number, line) of Markdown outside tables and code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith("    ") and not line.lstrip().startswith("|"):
            yield number, line


def glossary_terms(text):
    """The words in the first column of the glossary's tables."""
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return {word for row in rows for word in re.findall(r"[A-Za-z]+", row)}


class Tree:
    """The findings about one source tree."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.files = sorted(self._files())

    def _files(self):
        for top in self.root.iterdir():
            if top.name == "build" or (top.is_dir() and top.name.startswith(".")):
                continue
            for path in top.rglob("*") if top.is_dir() else [top]:
                if path.is_file():
                    yield path.relative_to(self.root).as_posix()

    def _texts(self, suffixes):
        for file in self.files:
            if pathlib.PurePath(file).suffix in suffixes:
                yield file, (self.root / file).read_text(encoding="utf-8")

    def long_lines(self):
        return [f"{file}:{number}: {len(line)} characters; write at most {MOST}"
                for file, text in self._texts({".md"}) for number, line in prose(text) if len(line) > MOST]

    def undefined_abbreviations(self):
        glossary = self.root / GLOSSARY
        terms = glossary_terms(glossary.read_text(encoding="utf-8")) if glossary.is_file() else set()
        found = []
        for file, text in self._texts({".md"}):
            if not file.startswith("docs/") or file == GLOSSARY:
                continue
            for number, line in prose(text):
                if HEADING.match(line):
                    found += [f"{file}:{number}: {word} is no term of {GLOSSARY}; define it there, or write it out"
                              for word in ABBREVIATION.findall(re.sub(r"`[^`]*`", "", line)) if word not in terms | KNOWN.keys()]
        return found

    def metaphors(self):
        found = {}
        for file, text in self._texts(CODE):
            if file.endswith("words_test.py"):
                continue
            for number, identifier in identifiers(file, text):
                for word in bad_words(file, identifier):
                    found[f"{file}:{number}: {identifier}: instead of {word}, write {INSTEAD[word]}"] = None
        return list(found)


class OurTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = Tree(SOURCE)

    def check(self, findings):
        self.assertGreater(len(self.tree.files), 500, f"{SOURCE} is not the source tree")
        self.assertEqual(findings, [], "\n" + "\n".join(findings))

    def test_has_no_long_lines_of_markdown(self):
        self.check(self.tree.long_lines())

    def test_defines_the_abbreviations_of_headings(self):
        self.check(self.tree.undefined_abbreviations())

    def test_names_things_by_the_fields_terms(self):
        self.check(self.tree.metaphors())

    def test_needs_each_exception(self):
        used = set()
        for file, text in self.tree._texts(CODE):
            for _, identifier in identifiers(file, text):
                if any(word in FORMS for word in words_of(identifier)):
                    used |= {entry for entry in ALLOWED if re.fullmatch(entry[0], file) and re.fullmatch(entry[1], identifier)}
        self.assertEqual([reason for *_, reason in set(ALLOWED) - used], [])


class Rules(unittest.TestCase):
    """The check itself: small trees, each with one mistake (or none)."""

    def tree(self, files):
        directory = self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-words-"))
        for name, text in files.items():
            path = pathlib.Path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Tree(directory)

    def test_a_line_of_a_hundred_characters_is_short_enough(self):
        self.assertEqual(self.tree({"a.md": "x" * 100 + "\n"}).long_lines(), [])
        self.assertEqual(self.tree({"a.md": "\n" + "x" * 101 + "\n"}).long_lines(), ["a.md:2: 101 characters; write at most 100"])

    def test_tables_and_code_may_be_wide(self):
        wide = "x" * 200
        self.assertEqual(self.tree({"a.md": f"| {wide} |\n    {wide}\n```\n{wide}\n```\n", "a.txt": wide}).long_lines(), [])

    def test_an_abbreviation_in_a_heading_is_a_term(self):
        files = {GLOSSARY: "| term | meaning |\n|---|---|\n| BTH, RETH | headers |\n| QPN | a number; see PSN |\n",
                 "docs/a.md": "# The BTH of QPNs, `ECN`\nPSN\n```\n# PSN\n```\n", "b.md": "# PSN\n"}
        self.assertEqual(self.tree(files).undefined_abbreviations(), [])
        files["docs/a.md"] = "\n## A PSN\n"
        self.assertEqual(self.tree(files).undefined_abbreviations(),
                         ["docs/a.md:2: PSN is no term of docs/glossary.md; define it there, or write it out"])

    def test_a_metaphor_in_an_identifier(self):
        tree = self.tree({"a/b.cc": "int a;\nint kNapTime, errands_;\n", "a/c.py": "patience = 1\n"})
        self.assertEqual(tree.metaphors(), [
            "a/b.cc:2: kNapTime: instead of nap, write sleep, pause or backoff",
            "a/b.cc:2: errands_: instead of errand, write task queue, or task",
            "a/c.py:1: patience: instead of patience, write time limit"])

    def test_comments_and_literals_are_left_alone(self):
        tree = self.tree({"a.cc": 'f("nap");  // nap\n/* nap\n nap */ char c = \'n\'; auto t = R"(nap\nnap)";\nint nap;\n',
                          "a.py": '"""nap"""\nf("nap")  # nap\n'})
        self.assertEqual(tree.metaphors(), ["a.cc:5: nap: instead of nap, write sleep, pause or backoff"])

    def test_a_metaphor_in_the_name_of_a_file(self):
        self.assertEqual(self.tree({"a/errands_test.cc": "\n"}).metaphors(),
                         ["a/errands_test.cc:1: errands_test: instead of errand, write task queue, or task"])

    def test_words_are_whole(self):
        self.assertEqual(self.tree({"a.cc": "int snapshot, homeless, Execute, of_course_work;\n"}).metaphors(),
                         ["a.cc:1: of_course_work: instead of course, write algorithm"])

    def test_an_exception_holds_in_its_folder(self):
        files = {"collectives/a.cc": "int carrier_;\n", "libmcast/a.cc": "int carrier_;\n"}
        self.assertEqual(self.tree(files).metaphors(), ["libmcast/a.cc:1: carrier_: instead of carrier, write transport"])


if __name__ == "__main__":
    unittest.main()
