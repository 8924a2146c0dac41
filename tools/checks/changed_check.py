#!/usr/bin/python3
"""Checks each changed C++ file alone: it must compile without the files that a unity build puts before it, and pass clang-tidy.

usage: changed_check.py BUILD [FILES...]

Changed files are those that are not committed; in a clean checkout, those of the last commit. A changed header is checked by the
source file of its name. Exit status 0: no finding; 1: findings, on standard error; 77: nothing could be checked.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = (".cc", ".c")


def skip(why):
    print(f"changed_check: SKIPPED, nothing was checked: {why}", file=sys.stderr)
    sys.exit(77)


def git(*words):
    return subprocess.run(["git", "-C", SOURCE, *words], text=True, capture_output=True, check=False)


def changed_files():
    if shutil.which("git") is None or git("rev-parse", "HEAD").returncode != 0:
        skip("this is no git checkout: clone the repository")
    listed = git("diff", "--name-only", "--diff-filter=d", "HEAD").stdout + git("ls-files", "--others", "--exclude-standard").stdout
    listed = listed or git("diff", "--name-only", "--diff-filter=d", "HEAD~1").stdout
    return [SOURCE / name for name in listed.splitlines()]


def sources_of(files):
    """The source files to look at, each once."""
    found = {}
    for file in files:
        for one in [file] if file.suffix in SUFFIXES else [file.with_suffix(suffix) for suffix in SUFFIXES] if file.suffix == ".h" else []:
            if one.is_file():
                found[one] = None
    return list(found)


def commands(build):
    """{source file: the words that compile it}, also where a unity file includes it."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        words = words[next(i for i, word in enumerate(words) if os.path.basename(word) in ("c++", "cc", "g++", "gcc", "clang", "clang++")):]
        file = pathlib.Path(entry["file"])
        members = [file]
        if "/Unity/" in entry["file"] and file.is_file():
            members = [pathlib.Path(name) for name in re.findall(r'#include "(.*)"', file.read_text(encoding="utf-8"))]
        options = [word for word in words[1:] if word not in ("-c", entry["file"])]
        # Without precompiled headers: a file must include the headers that it uses.
        while (at := next((n for n, word in enumerate(options) if "/cmake_pch." in word), None)) is not None:
            del options[at - 1:at + 1]
        if "-o" in options:
            del options[options.index("-o"):options.index("-o") + 2]
        for member in members:
            found.setdefault(member, (entry["directory"], words[0], options))
    return found


def look_at(file, command):
    """The findings about it, as text."""
    directory, compiler, options = command
    if shutil.which("clang-tidy"):
        words = ["clang-tidy", "--quiet", str(file), "--", *options, "-Wno-unknown-warning-option", "-Qunused-arguments"]
    else:
        words = [compiler, "-fsyntax-only", *options, str(file)]
    done = subprocess.run(words, cwd=directory, text=True, capture_output=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    files = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or changed_files()
    known = commands(build)
    chosen = [file for file in sources_of(files) if file in known]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda file: look_at(file, known[file]), chosen))
    for complaint in filter(None, complaints):
        sys.stderr.write(complaint)
    print(f"changed_check: {len(chosen)} files", file=sys.stderr)
    return 1 if any(complaints) else 0


if __name__ == "__main__":
    sys.exit(main())
