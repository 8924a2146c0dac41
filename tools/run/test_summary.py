#!/usr/bin/python3
"""Counts tests inside GoogleTest programs and scripts: passed, failed and skipped. Names the skips.

usage: test_summary.py BUILD_DIRECTORY CTEST_LOG SECONDS [LEFT_OUT...]      (names of tests outside the short suite)
"""

import pathlib
import re
import sys


def skipped_cases(text):
    """The skips inside passed programs and scripts of ctest's log: names, or reasons."""
    skipped = []
    for part in re.split(r"^\d+/\d+ Testing: ", text, flags=re.M)[1:]:
        test = part.split("\n", 1)[0]
        skipped += re.findall(r"\[  SKIPPED \] (\S+) \(", part)
        reasons = [why.removeprefix("SKIPPED: ") for why in re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", part, re.M)]
        unexplained = sum(int(n) for n in re.findall(r"^(?:OK|FAILED) \(.*skipped=(\d+)", part, re.M)) - len(reasons)
        skipped += [f"{test}: {why}" for why in reasons] + [f"{test}: a case, of which it says more with -v"] * unexplained
    return skipped


def main():
    build, log, seconds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text(), sys.argv[3]
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
            skipped.append(name)
        else:
            failed += 1
    cases = 0
    detail = build / "Testing/Temporary/LastTest.log"
    if detail.exists():
        text = detail.read_text(errors="replace")
        cases = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", text))
        cases += sum(int(n) for n in re.findall(r"^Ran (\d+) tests? in", text, re.M))
        skipped += skipped_cases(text)
    for name in skipped:
        print(f"SKIPPED: {name}")
    for name in sys.argv[4:]:
        print(f"LEFT OUT, ./run test --all runs it: {name}")
    print(f"{cases} cases in {passed + failed} test programs, {seconds} s")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
