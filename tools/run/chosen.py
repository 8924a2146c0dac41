#!/usr/bin/python3
"""Prints ctest's selection: names of tests, or with --packages the Debian packages that they need.

usage: chosen.py BUILD [--packages] [CTEST ARGUMENTS]
"""

import json
import subprocess
import sys

PREFIX = "needs-"  # of labels, see tools/cmake/CepheusTargets.cmake


def main():
    build, words = sys.argv[1], sys.argv[2:]
    packages = words[:1] == ["--packages"]
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *words[packages:]], text=True, stdout=subprocess.PIPE)
    if listed.returncode != 0:
        return listed.returncode
    tests = json.loads(listed.stdout[listed.stdout.index("{"):])["tests"]
    if not packages:
        print(*(test["name"] for test in tests), sep="\n", end="\n" if tests else "")
        return 0
    labels = {label for test in tests for entry in test["properties"] if entry["name"] == "LABELS" for label in entry["value"]}
    names = sorted(label.removeprefix(PREFIX) for label in labels if label.startswith(PREFIX))
    print(*names, sep="\n", end="\n" if names else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
