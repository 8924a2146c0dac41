#!/usr/bin/python3
"""Counts tests inside GoogleTest programs and scripts: passed, failed and skipped. Names the skips and their reasons, and
quotes the failures: a log that is cut in its middle still has them, because they come last.

usage: test_summary.py BUILD_DIRECTORY CTEST_LOG SECONDS [LEFT_OUT...]      (names of tests outside the short suite)
"""

import pathlib
import re
import sys

MOST_LINES, MOST_COLUMNS = 12, 300  # of a failure, at its beginning and at its end


def parts_of(text):
    """What each test of ctest's log has printed."""
    return [part.partition("\n")[::2] for part in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]]


def reason_in(output):
    found = re.search(r"skipped(?:, nothing was checked)?: (.*)", output, re.I)
    return found.group(1) if found else "it gives no reason"


def shortened(text):
    """Its first and last lines."""
    lines = [line[:MOST_COLUMNS] for line in text.strip("\n").splitlines()]
    left_out = len(lines) - 2 * MOST_LINES
    return lines if left_out <= 0 else [*lines[:MOST_LINES], f"[{left_out} lines]", *lines[-MOST_LINES:]]


def failures_in(output):
    """Failed cases of a test: (name, lines)."""
    failures = []
    for section in re.split(r"^={70}\n", output, flags=re.M)[1:]:
        name, _, text = section.partition("\n")
        text = re.split(r"^-{70}\nRan \d+ test", text.removeprefix("-" * 70 + "\n"), flags=re.M)[0]
        # Without the lines of the stack in front of the error.
        failures.append((name, shortened(re.sub(r"\ATraceback .*\n(?: .*\n)*", "", text))))
    for place, text in re.findall(r"^(\S+:\d+): Failure\n((?:.+\n)*)", output, re.M):
        failures.append((place, shortened(text)))
    return failures or [("its output", shortened(output))]


def skipped_cases(parts):
    """The skips inside passed programs and scripts, with their reasons."""
    skipped = []
    for test, output in parts:
        for case in re.findall(r"\[  SKIPPED \] (\S+) \(", output):
            why = re.search(rf"\[ RUN      \] {re.escape(case)}\n(?:(?!\[ RUN).*\n)*?.*: Skipped\n(.+)", output)
            skipped.append(f"{case}: {why.group(1) if why else 'it gives no reason'}")
        reasons = [why.removeprefix("SKIPPED: ") for why in re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", output, re.M)]
        unexplained = sum(int(n) for n in re.findall(r"^(?:OK|FAILED) \(.*skipped=(\d+)", output, re.M)) - len(reasons)
        skipped += [f"{test}: {why}" for why in reasons] + [f"{test}: a case; its reason is printed with -v"] * unexplained
    return skipped


def main():
    build, log, seconds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(), sys.argv[3]
    detail = build / "Testing/Temporary/LastTest.log"
    text = detail.read_text(errors="replace") if detail.exists() else ""
    parts = parts_of(text)
    passed = 0
    skipped, failed = [], []
    for line in log.splitlines():
        entry = re.match(r"\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\s*(\*\*\*)?\s*(\w+)", line)
        if not entry:
            continue
        name, outcome = entry.group(1), entry.group(3)
        if outcome == "Passed":
            passed += 1
        elif outcome == "Skipped":
            skipped.append(f"{name}: {reason_in(dict(parts).get(name, ''))}")
        else:
            failed.append(name)
    cases = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", text))
    cases += sum(int(n) for n in re.findall(r"^Ran (\d+) tests? in", text, re.M))
    skipped += skipped_cases(parts)
    for name in skipped:
        print(f"SKIPPED: {name}")
    for name in sys.argv[4:]:
        print(f"LEFT OUT, ./run test --all runs it: {name}")
    for test in failed:
        for case, lines in failures_in(dict(parts).get(test, "")):
            print("\n    ".join([f"FAILED: {test}: {case}", *lines]))
    print(f"{cases} cases in {passed + len(failed)} test programs, {seconds} s")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
