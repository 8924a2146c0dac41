#!/usr/bin/python3
"""Measure MPI_Barrier, MPI_Allreduce, MPI_Reduce and MPI_Allgather by Cepheus, and by each of the MPI library's algorithms over the
same NIC and switch.

Sizes are one rank's bytes. At the largest size the blocks of all ranks together are as long as the largest result in the network.
All ways are measured in turns, as by bench bcast. A ratio is the time of the best rival by ours: the median of the rounds' own ratios, with their quartiles.
"""

import os

import bcast
from algorithms import PACKET, reduction_copies, shaped_bound
from bcast import KIB, LINKS, MIB, SHAPED, memory_rate
from fabric import Fabric
from records import Records, human, parse, percentile, progress

MOST = 8 * PACKET  # bytes of all ranks: the largest result in the network
SERVED = {"collectives": "bcast,barrier,allreduce,reduce,allgather", "reduction_limit": str(MOST)}  # parameters of ours
# coll/tuned's numbers; "default" is its own choice. The others are for two ranks.
OPENMPI = {
    "barrier": {"default": 0, "linear": 1, "double_ring": 2, "recursive_doubling": 3, "bruck": 4, "tree": 6},
    "allreduce": {"default": 0, "linear": 1, "nonoverlapping": 2, "recursive_doubling": 3, "ring": 4, "segmented_ring": 5, "rabenseifner": 6},
    "reduce": {"default": 0, "linear": 1, "chain": 2, "pipeline": 3, "binary": 4, "binomial": 5, "in_order_binary": 6, "rabenseifner": 7},
    "allgather": {"default": 0, "linear": 1, "bruck": 2, "recursive_doubling": 3, "ring": 4, "neighbor": 5},
}
# MPICH's names.
MPICH = {
    "barrier": ("auto", "dissemination"),
    "allreduce": ("auto", "recursive_doubling", "reduce_scatter_allgather"),
    "reduce": ("auto", "binomial", "reduce_scatter_gather"),
    "allgather": ("auto", "brucks", "recursive_doubling", "ring"),
}


LONG = {"allreduce": "allreduce", "allreduce_int64": "allreduce"}  # and the collective with their algorithms
LONG_SIZES = [64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB]
QUICK_LONG_SIZES = [256 * KIB, 8 * MIB]


def base(collective):
    """The MPI function: the name without its type."""
    return LONG.get(collective, collective)


class Candidate(bcast.Candidate):
    """One way at one size of one collective; ours has no algorithm."""

    def __init__(self, transport, collective, algorithm, size):
        super().__init__(transport, algorithm, size)
        self.collective = collective

    def plan(self):
        return f"{self.collective} {self.size} {OPENMPI[base(self.collective)].get(self.algorithm, 0)}\n"


class ServedJobs:
    """Long vectors need a limit of their own; the others have that of gathers."""

    is_long = False

    def served(self):
        return {**SERVED, "reduction_limit": str(2 * LONG_SIZES[-1] * self.hosts)} if self.is_long else SERVED


class OpenMpiJobs(ServedJobs, bcast.Jobs):
    BENCH, PROGRAM = "collectives", "mpi_collectives"
    ALGORITHMS = OPENMPI

    def command(self, transport):
        served = [word for name, value in self.served().items() for word in ("--mca", f"coll_cepheus_{name}", value)]
        return super().command(transport) + (served if transport == "cepheus" else [])


class MpichJobs(ServedJobs, bcast.MpichJobs):
    BENCH, PROGRAM = "collectives", "mpi_collectives"
    ALGORITHMS = MPICH

    def variables(self, algorithm):
        if algorithm is None:
            return {f"CEPHEUS_{name.upper()}": value for name, value in self.served().items()}
        return {f"MPIR_CVAR_{collective.upper()}_INTRA_ALGORITHM": algorithm for collective, names in MPICH.items() if algorithm in names}

    def work(self, candidates):
        plan = self.fabric.directory / "plan"
        plan.write_text("".join(f"{each.collective} {each.size} 0\n" for each in candidates))
        return ["--plan", str(plan)]


def sizes_of(collective, hosts, quick):
    if collective == "barrier":
        return [0]
    most = MOST // hosts
    return [8, most] if quick else sorted({0, 8, 64, 512, PACKET // hosts, 2 * PACKET // hosts, most // 2, most})


class Measurement:
    """All candidates on one fabric, by collective and size."""

    def __init__(self, link, hosts, rate=0.0):
        self.link, self.hosts, self.rate = link, hosts, rate
        self.ours, self.rivals = [], []

    def plan_long(self, algorithms, quick):
        for collective, kind in LONG.items():
            for size in QUICK_LONG_SIZES if quick else LONG_SIZES:
                self.ours.append(Candidate("cepheus", collective, None, size))
                self.rivals += [Candidate("rc", collective, name, size) for name in algorithms[kind]]

    def plan(self, algorithms, quick):
        for collective, names in algorithms.items():
            for size in sizes_of(collective, self.hosts, quick):
                self.ours.append(Candidate("cepheus", collective, None, size))
                self.rivals += [Candidate("rc", collective, name, size) for name in names]

    def run(self, build, jobs_of, rounds, seconds, is_long=False):
        with Fabric(build, self.hosts, link=LINKS[self.link]) as fabric:
            jobs = jobs_of(build, fabric, self.hosts, seconds)
            jobs.is_long = is_long
            for n in range(rounds):
                progress(jobs.BENCH, f"{self.hosts} hosts, {self.link}: round {n + 1} of {rounds}")
                jobs.run("cepheus", self.ours)
                jobs.run("rc", self.rivals)

    def rivals_of(self, ours):
        return sorted((each for each in self.rivals if (each.collective, each.size) == (ours.collective, ours.size)), key=Candidate.median)

    @staticmethod
    def ratios(ours, rival):
        """The rival's time by ours: median and quartiles of the rounds."""
        each = [theirs["median"] / mine["median"] for theirs, mine in zip(rival.rows, ours.rows)]
        return [percentile(each, p) for p in (0.5, 0.25, 0.75)]

    def bound(self, ours):
        """The least time of ours, microseconds. On shaped links: all blocks, or a long vector, go up, and down again behind the last
        packet. Else, of long vectors: copies and additions on all cores."""
        is_long = ours.size >= LONG_SIZES[0]
        if self.link == "shaped":
            return shaped_bound("cepheus", ours.size * (1 if is_long else self.hosts), 0, self.hosts, SHAPED)
        return reduction_copies(self.hosts) * ours.size / (self.rate * os.cpu_count()) if is_long and self.rate else 0.0

    def text(self):
        lines = [f"{self.hosts} hosts, {self.link} links, us: median (10th..90th percentile); emulated"]
        for ours in self.ours:
            rivals = self.rivals_of(ours)
            ratio, low, high = self.ratios(ours, rivals[0])
            bound = f", {ours.median() / self.bound(ours):.2f} times the bound {self.bound(ours):.1f}" if self.bound(ours) else ""
            lines.append(f"  {ours.collective} {human(ours.size)}: the best rival takes {ratio:.2f} ({low:.2f}..{high:.2f}) times ours{bound}")
            for row in [ours, *rivals]:
                spread = f"({row.figure('p10'):.1f}..{row.figure('p90'):.1f})"
                lines.append(f"    {row.impl:<26} {row.median():>10.1f} {spread:<22} CPU {row.figure('cpu'):>9.1f}   "
                             f"late {row.figure('late'):>4.1f}, {row.discarded():>3.0%} discarded")
        return "\n".join(lines)

    def record(self, records):
        for row in [*self.ours, *self.rivals]:
            where = dict(size=row.size, hosts=self.hosts, link=self.link)
            n, cpu = sum(each["n"] for each in row.rows), [each["cpu"] for each in row.rows]
            records.add(row.collective, row.impl, "time", "us", row.median(), row.figure("p10"), row.figure("p90"), n, **where)
            records.add(row.collective, row.impl, "cpu", "us", row.figure("cpu"), min(cpu), max(cpu), len(cpu), **where)
        for ours in self.ours:
            best = self.rivals_of(ours)[0]
            records.add(ours.collective, ours.impl, "ratio", best.impl, *self.ratios(ours, best), n=len(ours.rows), size=ours.size,
                        hosts=self.hosts, link=self.link)


def main():
    options = parse("collectives", __doc__, "measure two sizes of each, in under 5 minutes", {
        "--link": dict(choices=LINKS, help="measure only this kind of link (default: both)"),
        "--mpi": dict(choices=["openmpi", "mpich"], default="openmpi", help="measure programs of this MPI (default: openmpi)"),
        "--hosts": dict(type=int, help="measure only N hosts (default: 4 and 8)", metavar="N"),
        "--long": dict(action="store_true", help="measure MPI_Allreduce of long vectors instead")})
    rate = memory_rate() if options.long else 0.0
    jobs_of = OpenMpiJobs if options.mpi == "openmpi" else MpichJobs
    rounds, seconds = (3 if options.long else 5, 0.05) if options.quick else (9, 0.2)
    records = Records("collectives")
    for link in [options.link] if options.link else LINKS:
        for hosts in [options.hosts] if options.hosts else [4, 8]:
            measurement = Measurement(link, hosts, rate)
            (measurement.plan_long if options.long else measurement.plan)(jobs_of.ALGORITHMS, options.quick)
            measurement.run(options.build, jobs_of, rounds, seconds, options.long)
            print(f"\n{measurement.text()}", flush=True)
            measurement.record(records)
    records.save(options.json)


if __name__ == "__main__":
    main()
