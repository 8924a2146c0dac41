"""Writes and reads HPL.dat, HPL's input file, and reads HPL's report."""

import dataclasses
import re

BCASTS = {0: "1ring", 1: "1ringM", 2: "2ring", 3: "2ringM", 4: "Blong", 5: "BlongM", 6: "MPI_Bcast", 7: "MPI_Ibcast"}
SWAPS = {0: "binary exchange", 1: "long", 2: "mix", 3: "broadcast"}
BLOCKS_MIX = 64  # columns from which "mix" is long


@dataclasses.dataclass
class Dat:
    """One HPL.dat: every combination of its lists is one test."""

    n: int
    nb: int
    grid: tuple
    bcasts: list
    swap: int
    depths: list = dataclasses.field(default_factory=lambda: [0])
    threshold: float = 16.0
    l1_plain: int = 0  # 1: not transposed
    u_plain: int = 0
    central: int = 0
    repeat: int = 1  # repetitions of every test; HPL takes up to 20 values of N

    def text(self):
        def values(numbers, comment):
            return f"{len(numbers):<12} # of {comment}\n{' '.join(map(str, numbers)):<12} {comment}s\n"

        return ("HPLinpack benchmark input file\nCepheus\nHPL.out      output file name (if any)\n"
                "6            device out (6=stdout,7=stderr,file)\n" +
                values([self.n] * self.repeat, "N") + values([self.nb], "NB") +
                "0            PMAP process mapping (0=Row-,1=Column-major)\n"
                f"1            # of process grids (P x Q)\n{self.grid[0]:<12} Ps\n{self.grid[1]:<12} Qs\n"
                f"{self.threshold:<12} threshold\n" +
                values([2], "PFACT") + values([4], "NBMIN") + values([2], "NDIV") + values([1], "RFACT") +
                values(self.bcasts, "BCAST") + values(self.depths, "DEPTH") +
                f"{self.swap:<12} SWAP (0=bin-exch,1=long,2=mix,3=broadcast)\n{BLOCKS_MIX:<12} swapping threshold\n"
                f"{self.l1_plain:<12} L1 in (0=transposed,1=no-transposed) form\n"
                f"{self.u_plain:<12} U  in (0=transposed,1=no-transposed) form\n"
                "1            Equilibration (0=no,1=yes)\n8            memory alignment in double (> 0)\n"
                f"{self.central:<12} matrix (0=random,1=pivots in one other process row)\n")


# Line numbers of an HPL.dat, from 0: the number of grids, their Ps and Qs; and the lengths of the lists. The number of tests is the
# product of these lengths.
GRIDS, PS, QS = 9, 10, 11
LENGTHS = (4, 6, GRIDS, 13, 15, 17, 19, 21, 23)


class BadDat(Exception):
    """An HPL.dat that HPL could not read; the text names the line."""


def numbers(lines, index, count, what):
    try:
        found = [int(word) for word in lines[index].split()[:count]]
    except (ValueError, IndexError):
        found = []
    if len(found) != count or min(found) < 1:
        raise BadDat(f"line {index + 1} must begin with {count} positive number{'s' if count > 1 else ''}: {what}")
    return found


def grids(text):
    """The process grids of an HPL.dat, as pairs P, Q."""
    lines = text.splitlines()
    count = numbers(lines, GRIDS, 1, "how many process grids")[0]
    return list(zip(numbers(lines, PS, count, "the Ps"), numbers(lines, QS, count, "the Qs")))


def with_grid(text, grid):
    """The same HPL.dat for one process grid."""
    lines = text.splitlines()
    grids(text)
    for index, value, comment in ((GRIDS, 1, "# of process grids (P x Q)"), (PS, grid[0], "Ps"), (QS, grid[1], "Qs")):
        lines[index] = f"{value:<12} {comment}"
    return "\n".join(lines) + "\n"


def tests(text):
    """The number of its tests."""
    lines = text.splitlines()
    product = 1
    for index in LENGTHS:
        product *= numbers(lines, index, 1, "how many values")[0]
    return product


@dataclasses.dataclass
class Result:
    """One test of HPL's report; times in seconds, the maximum over the processes."""

    depth: int
    bcast: int
    n: int
    nb: int
    grid: tuple
    time: float
    gflops: float
    timers: dict
    passed: bool | None = None


TEST = re.compile(r"W[RC](\d)(\d)[LCR]\d[LCR]\d+\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.e+-]+)")
TIMER = re.compile(r"\+? ?Max aggregated wall time (\w[\w ]*?)[ .]*:\s+([\d.]+)")


def results(report):
    """The tests of HPL's report, in its order. `passed` is None without a check."""
    found = []
    for line in report.splitlines():
        if match := TEST.match(line):
            depth, bcast, n, nb, p, q = map(int, match.groups()[:6])
            found.append(Result(depth, bcast, n, nb, (p, q), float(match[7]), float(match[8]), {}))
        elif found and (match := TIMER.match(line)):
            found[-1].timers[match[1]] = float(match[2])
        elif found and "||Ax-b||_oo/(eps" in line:
            found[-1].passed = line.endswith("PASSED")
    return found
