#!/usr/bin/python3
"""Runs seeds of every kind in all simulators, and checks that together they meet every situation (wire/situation.h).

usage: seeds.py BUILD [--seeds N] [--first N] [--nic MAKE] [KIND...]

A KIND is a part of a simulator's name and flags, such as volume or --cuts; none: all. Situations are judged where all kinds ran, with
100,000 seeds each or more. Exit status: 0 all seeds hold, and all situations were met; 1 not so; 2 wrong usage.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

ENOUGH = 100_000  # seeds of each kind that meet also the rare situations
FABRIC = ["", "--fabrics", "--incidents", "--fabrics --incidents", "--cuts", "--cuts --incidents", "--far", "--host-sync",
          "--host-sync --incidents", "--writes", "--writes --incidents", "--per-request", "--per-request --incidents", "--sender-groups",
          "--sender-groups --incidents", "--sender-groups --incidents --cuts", "--sender-groups --writes", "--sender-groups --fabrics",
          "--congestion", "--congestion --incidents", "--long-turns", "--long-turns --host-sync", "--reductions", "--reductions --fabrics",
          "--reductions --incidents", "--reductions --fabrics --incidents", "--reductions --cuts", "--reductions --cuts --incidents",
          "--reductions --far", "--reductions --congestion", "--reductions --congestion --incidents"]
KINDS = [f"cepheus-sim {flags}".strip() for flags in FABRIC] + ["cepheus-volume-sim", "broadcast-sim", "rootless-sim"]


def run(build, kind, arguments, situations):
    """The exit status of one simulator; it prints its own seeds that fail."""
    name, *flags = kind.split()
    command = [str(build / "bin" / name), *flags, "--seeds", str(arguments.seeds), "--situations", situations]
    if arguments.first is not None:
        command += ["--first", str(arguments.first)]
    if arguments.nic and name == "cepheus-sim":
        command += ["--nic", arguments.nic]
    print(f"{kind}: ", end="", flush=True)
    return subprocess.run(command, check=False).returncode


def totals(lines):
    """Times met by situation, as 'file: name', the seldom ones first. A line has times met, common or rare, file and name, with tabs
    between them."""
    met = {}
    for line in lines:
        times, _, file, name = line.split("\t")
        met[f"{file}: {name}"] = met.get(f"{file}: {name}", 0) + int(times)
    return dict(sorted(met.items(), key=lambda each: (each[1], each[0])))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], usage="./run seeds [--seeds N] [--first N] [--nic MAKE] [KIND...]")
    parser.add_argument("build", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=int, default=ENOUGH, help="run N seeds of each kind (default: %(default)s)")
    parser.add_argument("--first", type=int, help="begin with seed N (default: one of today's)")
    parser.add_argument("--nic", metavar="MAKE", help="give all hosts NICs of this make; cepheus-sim alone")
    arguments, parts = parser.parse_known_args()  # a KIND may begin with dashes, and stand behind options
    unknown = [part for part in parts if not any(part in kind for kind in KINDS)]
    if unknown:
        parser.error(f"no kind has {' or '.join(unknown)} in its name; the kinds: " + ", ".join(KINDS))
    kinds = [kind for kind in KINDS if not parts or any(part in kind for part in parts)]
    with tempfile.NamedTemporaryFile("r") as file:
        failed = [kind for kind in kinds if run(arguments.build, kind, arguments, file.name) != 0]
        situations = totals(file.read().splitlines())
    missing = [name for name, times in situations.items() if times == 0]
    if not situations:
        sys.exit("these simulators count no situations: build them with assertions, as ./run build does")
    print("".join(f"{times:>12} times: {name}\n" for name, times in situations.items() if times > 0), end="")
    print("".join(f"not met: {name}\n" for name in missing), end="")
    print(f"{len(kinds) - len(failed)} of {len(kinds)} kinds hold; {len(situations) - len(missing)} of {len(situations)} situations were met")
    judged = kinds == KINDS and arguments.seeds >= ENOUGH and not arguments.nic
    sys.exit(1 if failed or (judged and missing) else 0)


if __name__ == "__main__":
    main()
