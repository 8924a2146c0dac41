#!/usr/bin/python3
"""Counts what ran: tests inside GoogleTest programs and scripts, passed, failed and skipped, and names the skips.

usage: test_summary.py BUILD_DIRECTORY CTEST_LOG SECONDS
"""

import pathlib
import re
import sys


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
        for case in re.findall(r"\[  SKIPPED \] (\S+) \(", text):
            skipped.append(case)
        skipped += [why.removeprefix("SKIPPED: ") for why in re.findall(r"\.\.\. skipped ['\"](.*)['\"]$", text, re.M)]
    for name in skipped:
        print(f"SKIPPED: {name}")
    print(f"{cases} cases in {passed + failed} test programs, {seconds} s")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
