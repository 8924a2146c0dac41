#!/usr/bin/python3
"""Measure HPL with its increasing ring and long against panel broadcast and row swap by multicast (hpl-patches/).

All messages go over the same NICs, links and switch. Original and patched HPL take turns within one run, and ratios are those of
each turn. "phases apart" runs HPL with barriers around each broadcast and swap: the timers hold communication alone, as in the
papers' figures, and the job is the sum of its phases. "as it is" runs HPL without barriers.

Ratio of computing to communication: the papers save 12 % of the job and 67 % of the panel broadcast. So the increasing ring takes
18 % of the job on 1x4 nodes; no paper states this. Here one link rate (2 Gb/s) gives that part with N = 6144, NB = 384 and
OpenBLAS's SSE3 kernels. Faster kernels would need faster links than two cores can emulate for four hosts.
"""

import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "hpl-patches"))

import dat
import hpl_plots
import source
from fabric import MESSAGES_OVER_NIC, Fabric
from records import Records, parse, percentile

LINK = 'rate = "2Gbps"\ndelay = "2us"\nqueue = "64MiB"'
KERNELS = {"OPENBLAS_CORETYPE": "Prescott"}
REQUIRE = ["--mca", "coll_cepheus_mode", "require", "--mca", "coll_cepheus_watchdog_ms", "30000",
            "--mca", "coll_cepheus_register_timeout_ms", "20000"]
JOB_SECONDS = 600
PHASES = {"pbcast": "panel broadcast", "laswp": "row swap"}


class Variant(NamedTuple):
    """One way through HPL: the numbers of HPL.dat."""

    impl: str
    bcast: int
    swap: int
    depth: int = 0


RING, LONG = Variant("hpl/1ring", 0, 1), Variant("hpl/long", 0, 1)
BOTH = [Variant("hpl/1ring+long", 0, 1), Variant("cepheus", 6, 3)]


class Case(NamedTuple):
    """One row of the table. The other variants are compared with the first one."""

    name: str
    grid: tuple
    n: int
    variants: list
    phases: list
    isolated: bool = True
    central: int = 0
    allowed: float | None = None  # the least that the scheme needs of the original's communication time
    only_full: bool = False
    papers: str = ""  # how much less the whole job takes, percent: Cepheus fig. 11a, Gleam fig. 10

    def metrics(self):
        return [*self.phases, *(["others"] if self.isolated else []), "job"]

    def by_multicast(self):
        return " and ".join(PHASES[phase] for phase in self.phases)

    def jobs(self):
        """Variants that one HPL.dat can hold run in one job, in turns."""
        for swap in sorted({variant.swap for variant in self.variants}):
            for depth in sorted({variant.depth for variant in self.variants if variant.swap == swap}):
                yield [variant for variant in self.variants if (variant.swap, variant.depth) == (swap, depth)]


# The increasing ring takes 3 of our steps on 4 nodes: each sends the whole panel on to the next.
CASES = [
    Case("PB 1x4", (1, 4), 6144, [RING, Variant("cepheus", 6, 1)], ["pbcast"], allowed=1 / 3,
         papers="12"),
    Case("PB as it is 1x4", (1, 4), 6144, [RING, Variant("cepheus", 6, 1), Variant("cepheus/ibcast", 7, 1)], ["pbcast"],
         isolated=False),
    Case("PB as it is, look-ahead 1x4", (1, 4), 6144,
         [RING._replace(depth=1), Variant("cepheus", 6, 1, 1), Variant("cepheus/ibcast", 7, 1, 1)], ["pbcast"], isolated=False,
         only_full=True),
    Case("RS uniform 4x1", (4, 1), 3840, [LONG, Variant("cepheus", 0, 3)], ["laswp"], papers="4, 4.67"),
    Case("RS central 4x1", (4, 1), 3840, [LONG, Variant("cepheus", 0, 3)], ["laswp"], central=1, papers="9.55"),
    Case("RS as it is uniform 4x1", (4, 1), 3840, [LONG, Variant("cepheus", 0, 3)], ["laswp"], isolated=False, only_full=True),
    Case("RS as it is central 4x1", (4, 1), 3840, [LONG, Variant("cepheus", 0, 3)], ["laswp"], isolated=False, central=1,
         only_full=True),
    Case("2x4", (2, 4), 3840, BOTH, ["pbcast", "laswp"]),
    Case("4x2", (4, 2), 3840, BOTH, ["pbcast", "laswp"]),
]
NB = 384


def progress(text):
    print(f"bench hpl: {text}", file=sys.stderr, flush=True)


class Bench:
    def __init__(self, cases):
        self.cases = cases
        self.samples = {(case.name, variant.impl): [] for case in cases for variant in case.variants}

    def measure(self, build, rounds):
        self.build, self.programs = build, source.build(build.parent / "hpl")
        for n in range(rounds):
            for case in self.cases:
                progress(f"round {n + 1} of {rounds}: {case.name}")
                turn = 1 if n % 2 == 0 else -1
                for variants in list(case.jobs())[::turn]:
                    self.run(case, variants[::turn])

    def run(self, case, variants):
        hosts = case.grid[0] * case.grid[1]
        text = dat.Dat(n=case.n, nb=NB, grid=case.grid, bcasts=[variant.bcast for variant in variants], swap=variants[0].swap,
                       depths=[variants[0].depth], central=case.central).text()
        with Fabric(self.build, hosts, link=LINK) as fabric:
            (fabric.directory / "HPL.dat").write_text(text)
            command = [self.build / "bin/cepheus-run", "--fabric", fabric.socket, "--", *MESSAGES_OVER_NIC, *REQUIRE,
                       self.programs[1 if case.isolated else 0]]
            done = subprocess.run(command, cwd=fabric.directory, env=os.environ | KERNELS, capture_output=True, text=True,
                                  timeout=JOB_SECONDS, check=False)
        results = dat.results(done.stdout)
        if done.returncode != 0 or [result.bcast for result in results if result.passed] != [variant.bcast for variant in variants]:
            sys.exit(f"bench hpl: {case.name} failed, exit code {done.returncode}:\n{done.stdout}\n{done.stderr}")
        for variant, result in zip(variants, results):
            self.samples[case.name, variant.impl].append(result)

    def values(self, case, variant, metric):
        """One figure for each round: "job", the timer of a phase, or "others", the job without its phases; seconds."""
        def value(result):
            if metric == "others":
                return result.time - sum(result.timers[phase] for phase in case.phases)
            return result.time if metric == "job" else result.timers[metric]

        return [value(result) for result in self.samples[case.name, variant.impl]]

    def less(self, case, variant, metric):
        """How much less than the original's, percent, in each round."""
        original = self.values(case, case.variants[0], metric)
        return [100 * (1 - ours / theirs) for ours, theirs in zip(self.values(case, variant, metric), original)]

    def communication(self, case, variant):
        """Seconds in the phases that go by multicast, in each round."""
        return [sum(result.timers[phase] for phase in case.phases) for result in self.samples[case.name, variant.impl]]

    def share(self, case, variant):
        """Communication's share of the job, percent, in each round."""
        jobs = self.values(case, variant, "job")
        return [100 * part / job for part, job in zip(self.communication(case, variant), jobs)]

    def saved(self, case, variant):
        """The job's saving by communication alone, in percent of the original's job, for each round."""
        original = case.variants[0]
        return [100 * (theirs - ours) / job for theirs, ours, job in
                zip(self.communication(case, original), self.communication(case, variant), self.values(case, original, "job"))]


def spread(values, digits):
    low, middle, high = (percentile(values, p) for p in (0.1, 0.5, 0.9))
    return f"{middle:.{digits}f} ({low:.{digits}f}..{high:.{digits}f})"


def report(bench):
    print("\nHPL, 2 Gb/s links, emulated: seconds, and percent less than HPL's own; median (10th..90th percentile) of the rounds")
    for case in bench.cases:
        apart = "phases apart" if case.isolated else "the timers hold waiting, too"
        print(f"  {case.name}: N {case.n}, NB {NB}, {apart}")
        for variant in case.variants:
            for metric in case.metrics():
                line = f"    {variant.impl:<16} {PHASES.get(metric, metric):<16} {spread(bench.values(case, variant, metric), 2):<24}"
                if variant is not case.variants[0]:
                    line += f" {spread(bench.less(case, variant, metric), 1)} % less"
                print(line)
        if case.allowed is not None:
            original, ours = case.variants[:2]
            shares, allowed = bench.share(case, original), 100 * (1 - case.allowed)
            reached = percentile(bench.less(case, ours, case.phases[0]), 0.5)
            gains = [gain / (part * allowed / 100) for gain, part in zip(bench.less(case, ours, "job"), shares)]
            print(f"    the scheme allows {allowed:.1f} % less communication: {reached / allowed:.2f} of it reached; "
                  f"so {percentile(shares, 0.5) * allowed / 100:.1f} % off the job: {spread(gains, 2)} of it reached")


def report_jobs(bench):
    print("\nThe whole job, phases apart; percent: communication's share, what it alone takes off HPL's own job, and the job")
    print(f"  {'by multicast':<42}{'share, own':>20}{'share, ours':>20}{'off by it':>20}{'job less':>22}  papers")
    for case in bench.cases:
        if not case.isolated:
            continue
        original, ours = case.variants
        columns = [bench.share(case, original), bench.share(case, ours), bench.saved(case, ours), bench.less(case, ours, "job")]
        print(f"  {f'{case.by_multicast()}: {case.name}':<42}" +
              "".join(f"{spread(values, 1):>{width}}" for values, width in zip(columns, (20, 20, 20, 22))) + f"  {case.papers}".rstrip())


def record(bench, records):
    def add(case, variant, metric, unit, values):
        records.add(case.name, variant.impl, metric, unit, *(percentile(values, p) for p in (0.5, 0.1, 0.9)), len(values),
                    8 * case.n * case.n, case.grid[0] * case.grid[1], "shaped")

    for case in bench.cases:
        for variant in case.variants:
            for metric in case.metrics():
                add(case, variant, metric, "us", [1e6 * value for value in bench.values(case, variant, metric)])
                if variant is not case.variants[0]:
                    add(case, variant, f"{metric} less", "percent", bench.less(case, variant, metric))
            if case.isolated:
                add(case, variant, "communication's share", "percent", bench.share(case, variant))
                add(case, variant, "communication saved", "percent of the job", bench.saved(case, variant))


def main():
    options = parse("hpl", __doc__, "measure 3 rounds of the main cases, in under 10 minutes",
                    {"--case": dict(metavar="TEXT", help="measure only cases that begin with TEXT, such as 'RS'")},
                    "write the records to FILE; sizes are bytes of the matrix", plots=True)
    cases = [case for case in CASES if case.name.startswith(options.case or "") and not (options.quick and case.only_full)]
    if not cases:
        sys.exit(f"bench hpl: no case begins with '{options.case}'; there are: {', '.join(case.name for case in CASES)}")
    try:
        bench = Bench(cases)
        bench.measure(options.build, 3 if options.quick else 7)
    except source.Unavailable as error:
        sys.exit(f"bench hpl: {error}")
    report(bench)
    report_jobs(bench)
    records = Records("hpl")
    record(bench, records)
    records.save(options.json)
    if options.plot:
        hpl_plots.draw(records.rows, options.plot)


if __name__ == "__main__":
    main()
