#!/usr/bin/python3
"""Counts tests inside GoogleTest programs and scripts: passed, failed and skipped. Names the skips and their reasons.

usage: test_summary.py BUILD_DIRECTORY CTEST_LOG SECONDS [LEFT_OUT...]      (names of tests outside the short suite)
"""

import pathlib
import re
import sys


def parts_of(text):
    """What each test of ctest's log has printed."""
    return [part.partition("\n")[::2] for part in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]]


def reason_in(output):
    found = re.search(r"skipped(?:, nothing was checked)?: (.*)", output, re.I)
    return found.group(1) if found else "it gives no reason"


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
    passed = failed = 0
    skipped = []
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
            failed += 1
    cases = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", text))
    cases += sum(int(n) for n in re.findall(r"^Ran (\d+) tests? in", text, re.M))
    skipped += skipped_cases(parts)
    for name in skipped:
        print(f"SKIPPED: {name}")
    for name in sys.argv[4:]:
        print(f"LEFT OUT, ./run test --all runs it: {name}")
    print(f"{cases} cases in {passed + failed} test programs, {seconds} s")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
