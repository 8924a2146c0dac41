#!/usr/bin/python3
"""Run HPL over an emulated fabric, one host for each process. MPI_Bcast, and so BCAST 6 and 7 and SWAP 3, are multicast.

With HPL.dat: runs its systems. Without: a small system for every BCAST, SWAP and look-ahead depth of 0 and 1, on grids of 1x4, 4x1,
2x2 and 2x4, and a summary. Every residual check must pass.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import dat
import source

GRIDS = [(1, 4), (4, 1), (2, 2), (2, 4)]
SMALL = {"n": 200, "nb": 32}
PROGRESS_SECONDS = 5.0


class Progress:
    """Prints the progress of a long run on standard error."""

    def __init__(self, total):
        self.total, self.done, self.fraction = total, 0, ""
        self.started = self.printed = time.monotonic()

    def see(self, line):
        """True for a line of progress, which is not part of HPL's report."""
        if line.startswith("Column="):
            self.fraction = f", this one {line.split('Fraction=')[1].split()[0]}"
            self.print()
            return True
        if dat.TEST.match(line):
            self.done, self.fraction = self.done + 1, ""
            self.print()
        return False

    def print(self):
        now = time.monotonic()
        if now - self.printed >= PROGRESS_SECONDS and self.done < self.total:
            self.printed = now
            source.log(f"{now - self.started:.0f} s: {self.done} of {self.total} tests done{self.fraction}")


class Hpl:
    def __init__(self, build, mca=()):
        self.build = build
        self.program = source.build(build.parent / "hpl")[0]
        self.mca = [word for name, value in mca for word in ("--mca", name, value)]

    def run(self, text, ranks, echo):
        """(HPL's report, exit status)"""
        with tempfile.TemporaryDirectory(prefix="cepheus-hpl-") as scratch:
            (pathlib.Path(scratch) / "HPL.dat").write_text(text)
            command = [self.build / "bin/cepheus-run", "--hosts", str(ranks), "--", *self.mca, self.program]
            progress, report = Progress(dat.tests(text)), []
            with subprocess.Popen(command, cwd=scratch, stdout=subprocess.PIPE, text=True) as job:
                for line in job.stdout:
                    if not progress.see(line):
                        report.append(line)
                        if echo:
                            sys.stdout.write(line)
                            sys.stdout.flush()
        return "".join(report), job.returncode


def failures(report, expected):
    """The errors in a report of `expected` tests, as texts."""
    found = dat.results(report)
    bad = [result for result in found if result.passed is False]
    words = [f"{len(bad)} of {expected} residual checks failed"] if bad else []
    return words + ([f"only {len(found)} of {expected} tests ran"] if len(found) != expected else [])


def run_file(hpl, text, grid):
    if grid:
        text = dat.with_grid(text, grid)
    ranks = max(p * q for p, q in dat.grids(text))
    report, code = hpl.run(text, ranks, echo=True)
    wrong = failures(report, dat.tests(text))
    if wrong:
        sys.exit(f"hpl: {'; '.join(wrong)}")
    return code


def run_all_variants(hpl, grids):
    worst = 0
    for grid in grids:
        for swap, name in dat.SWAPS.items():
            text = dat.Dat(**SMALL, grid=grid, bcasts=list(dat.BCASTS), swap=swap, depths=[0, 1]).text()
            report, code = hpl.run(text, grid[0] * grid[1], echo=False)
            print(report)
            wrong = failures(report, dat.tests(text))
            source.log(f"{grid[0]}x{grid[1]}, SWAP {swap} ({name}), BCAST 0 to 7, DEPTH 0 and 1: "
                       f"{'; '.join(wrong) or 'all residual checks passed'}")
            worst = max(worst, code, 1 if wrong else 0)
    return worst


def grid_argument(text):
    match = re.fullmatch(r"([1-9]\d*)[xX]([1-9]\d*)", text)
    if not match or int(match[1]) * int(match[2]) not in range(2, 65):
        raise argparse.ArgumentTypeError(f"'{text}': write rows x columns, such as 2x4, for 2 to 64 processes")
    return int(match[1]), int(match[2])


def main():
    parser = argparse.ArgumentParser(prog="./run hpl", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dat", nargs="?", metavar="HPL.dat", help="read HPL's input from this file; hpl-patches/README.md has the new numbers")
    parser.add_argument("--grid", type=grid_argument, metavar="PxQ", help="use this process grid instead of the file's")
    parser.add_argument("--mca", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="set a parameter of Open MPI")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    text = None
    if options.dat:
        try:
            text = pathlib.Path(options.dat).read_text()
            dat.tests(text)
            dat.grids(text)
        except OSError as error:
            sys.exit(f"hpl: {options.dat}: {error.strerror}")
        except dat.BadDat as error:
            sys.exit(f"hpl: {options.dat}: {error}")
    try:
        hpl = Hpl(pathlib.Path(options.build).resolve(), options.mca)
    except source.Unavailable as error:
        sys.exit(f"hpl: {error}")
    return run_file(hpl, text, options.grid) if text else run_all_variants(hpl, [options.grid] if options.grid else GRIDS)


if __name__ == "__main__":
    sys.exit(main())
