"""Small changes of C++ source that unit tests should notice: the places of changes, and the changed lines."""

import dataclasses
import pathlib
import random
import re

# Lines that are not the program's own code, or that check it.
IDLE = re.compile(r"^\s*(//|#|\*|/\*|using |namespace |template|static_assert|assert|case |friend |extern )|CEPHEUS_CHECK|operator[<>]")
# Functions in which an engine checks its own tables for tests and the simulator: correct engines never fail them.
SELF_CHECK = re.compile(r"\b(check|is)_consistent\(")
TEXT = re.compile(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|//.*')
CONDITION = re.compile(r"\b(?:if|while) \(")
CALL = re.compile(r"^\s+(?!return\b|delete\b|throw\b|co_|static_cast|for\b|if\b|while\b|switch\b|else\b)[\w.\->\[\]:]+\(.*\);$")
NUMBER = re.compile(r"(?<![\w.\"'<])([0-9]+)(?![\w.'])")
COMPARISON = re.compile(r" (<=|>=|<|>) (?!>)")
MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


@dataclasses.dataclass(frozen=True)
class Mutation:
    file: str  # below the root of the tree
    line: int  # from 0
    operator: str
    before: str
    after: str

    def __str__(self):
        return f"{self.file}:{self.line + 1}: {self.operator}\n  - {self.before.strip()}\n  + {self.after.strip()}"


def hidden(line):
    """The line with its strings and comments blanked: positions stay."""
    return TEXT.sub(lambda text: " " * len(text.group()), line)


def end_of_condition(code, begin):
    """Where the parenthesis closes that opens right before `begin`; none if the line ends first."""
    depth = 1
    for at in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return None


def of_line(line):
    """(operator, changed line) of all that can be made of it."""
    if IDLE.search(line):
        return
    code = hidden(line)
    for found in CONDITION.finditer(code):
        end = end_of_condition(code, found.end())
        # A declaration in a condition can't be negated.
        if end and not re.search(r"[^=!<>]=[^=]|;", code[found.end():end]):
            yield "condition negated", f"{line[:found.end()]}!({line[found.end():end]}){line[end:]}"
    if CALL.match(code) and code.count("(") == code.count(")"):
        yield "call removed", re.match(r"\s*", line).group() + ";"
    for found in NUMBER.finditer(code):
        yield "constant off by one", f"{line[:found.start()]}{int(found.group()) + 1}{line[found.end():]}"
    if "template" not in code:
        for found in COMPARISON.finditer(code):
            yield "comparison moved", f"{line[:found.start(1)]}{MOVED[found.group(1)]}{line[found.end(1):]}"


def is_source(path):
    return path.suffix in (".cc", ".h") and not re.search(r"(^test_|_test\.|_testing\.|_fuzzer\.|_by_hand\.)", path.name)


def of_folder(root, folder):
    """All mutations of the sources right in `folder` and below, in the order of files and lines."""
    found = []
    for path in sorted(pathlib.Path(root, folder).rglob("*")):
        if not is_source(path):
            continue
        name = str(path.relative_to(root))
        end = None  # the last line of a function that is left alone
        for number, line in enumerate(path.read_text().splitlines()):
            if end is None and SELF_CHECK.search(line):
                end = re.match(r" *", line).group() + "}" if line.endswith("{") else None
            elif end is None:
                found += [Mutation(name, number, operator, line, after) for operator, after in of_line(line)]
            elif line == end:
                end = None
    return found


def chosen(mutations, seed):
    """All of them in the order in which this seed tries them: each operator in turn, since constants are most."""
    rng = random.Random(seed)
    by_operator = {}
    for each in mutations:
        by_operator.setdefault(each.operator, []).append(each)
    for group in by_operator.values():
        rng.shuffle(group)
    groups = [by_operator[name] for name in sorted(by_operator)]
    while any(groups):
        for group in groups:
            if group:
                yield group.pop()
