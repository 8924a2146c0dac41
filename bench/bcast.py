#!/usr/bin/python3
"""Measure MPI_Bcast by Cepheus, by the MPI library's algorithms over the same NIC and switch; Open MPI's over TCP loopback and
shared memory, too. A circulant graph of unicasts stands beside them: no unicasts need fewer rounds, and no MPI here has it.

A calibration finds the best segment size of each algorithm at each size. Then all are measured in turns within one run. Ranks
synchronise by shared memory before each call; a call lasts until the last rank returns. Calls that a rank begins more than 5 us
late are discarded. CPU time is that of all ranks and the switch, per call, in calls of their own.
"""

import ctypes
import os
import pathlib
import subprocess
import time

import algorithms
import plots
from algorithms import ALGORITHMS, CIRCULANT
from fabric import MESSAGES_OVER_NIC, MPICH_OVER_NIC, Fabric
from records import Records, human, parse, percentile, progress, rows_of

KIB, MIB = 1 << 10, 1 << 20
SEGMENTS = [0, 8 * KIB, 32 * KIB, 128 * KIB, 512 * KIB, 2 * MIB]
LINKS = {"unshaped": "", "shaped": 'rate = "1Gbps"\ndelay = "100us"\nqueue = "64MiB"'}
SHAPED = algorithms.Link(rate=1000.0, delay=100.0)
JOB_SECONDS = 600
# MPICH's; "auto" is its own choice.
MPICH_ALGORITHMS = {"auto": "auto", "binomial": "binomial", "scatter_doubling": "scatter_recursive_doubling_allgather",
                    "scatter_ring": "scatter_ring_allgather", CIRCULANT: None}


class Scope:
    """How much is measured."""

    def __init__(self, quick):
        self.quick = quick
        self.hosts = [4] if quick else [4, 8]
        self.rounds = 3 if quick else 5
        self.seconds = 0.12 if quick else 0.3
        self.calibration = 0.04 if quick else 0.1
        self.segments = [0, 32 * KIB, 512 * KIB] if quick else SEGMENTS

    def sizes(self, link):
        if link == "shaped":
            return [8, 64 * KIB, 8 * MIB] if self.quick else [8, 4 * KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB]
        if self.quick:
            return [8, 16 * KIB, 256 * KIB, MIB, 8 * MIB]
        return [8, 1 * KIB, 8 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB]


class Candidate:
    """One rival at one size: transport, algorithm, segment; cepheus has no algorithm of Open MPI's."""

    def __init__(self, transport, algorithm, size, segment=0, label=None):
        self.transport, self.algorithm, self.size, self.segment = transport, algorithm, size, segment
        self.impl = transport if algorithm is None else f"{transport}/{label or algorithm}"
        self.rows = []

    def plan(self):
        number = ALGORITHMS[self.algorithm][0] if self.algorithm in ALGORITHMS else 0
        return f"{self.size} {number} {self.segment} {algorithms.CHAIN_FANOUT}\n"

    def figure(self, name):
        """The median over the rounds of each round's "median", "p10", "p90" or "cpu"."""
        return percentile([row[name] for row in self.rows], 0.5)

    def median(self):
        return self.figure("median")

    def discarded(self):
        """The share of calls that began late."""
        late = sum(row["discarded"] for row in self.rows)
        return late / (late + sum(row["n"] for row in self.rows))


class Jobs:
    """mpirun command lines of the transports, on one fabric."""

    BENCH, PROGRAM = "bcast", "mpi_bcast"

    def __init__(self, build, fabric, hosts, seconds):
        self.build, self.fabric, self.hosts = build, fabric, hosts
        self.seconds = seconds

    def command(self, transport):
        tuned = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        if transport == "cepheus":
            return self.on_fabric() + ["--mca", "coll_cepheus_mode", "require"]
        if transport == "rc":
            return self.on_fabric() + tuned + ["--mca", "coll_cepheus_mode", "off", *MESSAGES_OVER_NIC]
        network = {"tcp": "self,tcp", "shm": "self,vader"}[transport]
        words = ["mpirun", "-np", str(self.hosts), "--oversubscribe", "--bind-to", "none", *tuned, "--mca", "pml", "ob1",
                 "--mca", "btl", network]
        words += ["--mca", "btl_tcp_if_include", "lo"] if transport == "tcp" else []
        return words + (["--allow-run-as-root"] if os.geteuid() == 0 else [])

    def on_fabric(self):
        return [str(self.build / "bin/cepheus-run"), "--fabric", self.fabric.socket, "--"]

    def run(self, transport, candidates, seconds=None):
        """Measures them one after another in one job."""
        plan = self.fabric.directory / "plan"
        plan.write_text("".join(candidate.plan() for candidate in candidates))
        command = self.command(transport) + [str(self.build / "bench" / self.PROGRAM), "--seconds", str(seconds or self.seconds),
                                             "--switch", str(self.fabric.pid), "--plan", str(plan)]
        rows = rows_of(f"{self.BENCH}: {transport} failed,", command, len(candidates), JOB_SECONDS)
        for candidate, row in zip(candidates, rows):
            candidate.rows.append(row)


class MpichJobs(Jobs):
    """MPICH's: a job has one algorithm for all its calls, and a circulant graph one size of blocks."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        source = pathlib.Path(__file__).resolve().parent
        self.program = self.fabric.directory / self.PROGRAM
        subprocess.run(["mpicc.mpich", "-O2", "-w", f"-I{source.parent}", source / f"{self.PROGRAM}.c", "-o", self.program, "-lrt", "-lm"], check=True)

    def variables(self, algorithm):
        """... that select it."""
        name = MPICH_ALGORITHMS.get(algorithm)
        return {} if name is None else {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": name}

    def work(self, candidates):
        """The program's arguments; all these have one algorithm and segment."""
        first = candidates[0]
        circulant = ["--circulant", str(first.segment)] if first.algorithm == CIRCULANT else []
        return [*circulant, ",".join(str(each.size) for each in candidates)]

    def run(self, transport, candidates, seconds=None):
        for algorithm, segment in dict.fromkeys((each.algorithm, each.segment) for each in candidates):
            some = [each for each in candidates if (each.algorithm, each.segment) == (algorithm, segment)]
            command = [str(self.build / "bin/cepheus-run"), "--mpi", "mpich", "--fabric", self.fabric.socket, "--", "-np", str(self.hosts)]
            command += ["-genv", "CEPHEUS_MODE", "require" if algorithm is None else "off"]
            if algorithm is not None:
                command += [*MPICH_OVER_NIC, "-genv", "MPIR_CVAR_DEVICE_COLLECTIVES", "none"]
            for name, value in self.variables(algorithm).items():
                command += ["-genv", name, value]
            command += [str(self.program), "--seconds", str(seconds or self.seconds), "--switch", str(self.fabric.pid), *self.work(some)]
            what = f"{self.BENCH}: mpich, {algorithm or transport} failed,"
            for each, row in zip(some, rows_of(what, command, len(some), JOB_SECONDS)):
                each.rows.append(row)


def calibrate(jobs, transport, scope, sizes, names):
    """The best segment of each of these algorithms at each size."""
    tries = []
    for size in sizes:
        for name in names:
            segmented = ALGORITHMS[name][1]
            parts = [s for s in scope.segments if s < size] if segmented and size > 8 * KIB else [0]
            tries += [Candidate(transport, name, size, segment) for segment in parts]
    jobs.run(transport, tries, scope.calibration)
    best = {}
    for one in tries:
        key = (one.size, one.algorithm)
        if key not in best or one.median() < best[key].median():
            best[key] = one
    return [Candidate(transport, one.algorithm, one.size, one.segment) for one in best.values()]


def openmpi_rivals(jobs, transport, scope, sizes):
    chosen = calibrate(jobs, transport, scope, sizes, ALGORITHMS)
    # Schemes with exactly known bounds are measured with their own segments, without calibration.
    for size in sizes:
        if size >= MIB:
            chosen.append(Candidate(transport, "binomial", size, 0, "binomial_whole"))
            chosen.append(Candidate(transport, "pipeline", size, size // 4, "chain_4_slices"))
    return chosen


def memory_rate():
    """Bytes per microsecond that one core copies, large and cold; the best of some."""
    size = 64 * MIB
    source, target = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
    best = 0.0
    for _ in range(5):
        began = time.perf_counter()
        ctypes.memmove(target, source, size)
        best = max(best, size / (time.perf_counter() - began) / 1e6)
    return best


class Measurement:
    def __init__(self, scope, build, link, hosts, rate, mpi):
        self.link, self.hosts, self.rate = link, hosts, rate
        sizes = scope.sizes(link)
        with Fabric(build, hosts, link=LINKS[link]) as fabric:
            jobs = (Jobs if mpi == "openmpi" else MpichJobs)(build, fabric, hosts, scope.seconds)
            groups = {"cepheus": [Candidate("cepheus", None, size) for size in sizes]}
            if mpi == "mpich":
                groups["rc"] = [Candidate("rc", name, size) for size in sizes for name in MPICH_ALGORITHMS if name != CIRCULANT]
                progress(Jobs.BENCH, f"{hosts} hosts, {link}: calibrating {CIRCULANT}")
                groups["rc"] += calibrate(jobs, "rc", scope, sizes, [CIRCULANT])
                rivals = ()
            else:
                rivals = ("rc", "tcp", "shm") if link == "unshaped" else ("rc",)
            for transport in rivals:
                progress(Jobs.BENCH, f"{hosts} hosts, {link}: calibrating {transport}")
                if transport == "rc" or not scope.quick:
                    groups[transport] = openmpi_rivals(jobs, transport, scope, sizes)
                else:
                    groups[transport] = []
                if transport != "rc":  # the default of its users
                    groups[transport] += [Candidate(transport, "default", size) for size in sizes]
            for n in range(scope.rounds):
                progress(Jobs.BENCH, f"{hosts} hosts, {link}: round {n + 1} of {scope.rounds}")
                for transport, candidates in groups.items():
                    jobs.run(transport, candidates)
        self.rows = [candidate for candidates in groups.values() for candidate in candidates]
        self.sizes = sizes

    def of(self, size, transport):
        return [row for row in self.rows if row.size == size and row.transport == transport]

    def bound(self, row):
        """The least time it can take, microseconds: of the links if they are shaped, else of copying on all cores. Of MPICH's
        algorithms 0: not known."""
        algorithm = row.algorithm or "cepheus"
        if algorithm in MPICH_ALGORITHMS and algorithm not in ALGORITHMS:
            return 0.0
        if self.link == "shaped":
            return algorithms.shaped_bound(algorithm, row.size, row.segment, self.hosts, SHAPED)
        return algorithms.copies(algorithm, self.hosts) * row.size / (self.rate * os.cpu_count())

    def print(self):
        print(f"\nMPI_Bcast, {self.hosts} hosts, {self.link} links, us: median (10th..90th percentile); emulated. "
              "'bound' is the least possible time")
        for size in self.sizes:
            ours = self.of(size, "cepheus")[0]
            print(f"  {human(size)}")
            for row in [ours] + sorted((r for r in self.rows if r.size == size and r is not ours), key=Candidate.median):
                segment = human(row.segment) if row.segment else "whole" if row.algorithm else ""
                spread = f"({row.figure('p10'):.1f}..{row.figure('p90'):.1f})"
                print(f"    {row.impl:<22} {segment:>8} {row.median():>11.1f} {spread:<24} bound {self.bound(row):>10.1f}   "
                      f"CPU {row.figure('cpu'):>10.1f}   late {row.figure('late'):>4.1f}, {row.discarded():>3.0%} discarded   "
                      f"{row.median() / ours.median():>6.2f} times ours")

    def record(self, records):
        for row in self.rows:
            n = sum(each["n"] for each in row.rows)
            records.add("bcast", row.impl, "time", "us", row.median(), row.figure("p10"), row.figure("p90"), n, row.size,
                        self.hosts, self.link)
            records.add("bcast", row.impl, "late", "us", row.figure("late"), n=n, size=row.size, hosts=self.hosts, link=self.link)
            records.add("bcast", row.impl, "discarded", "1", row.discarded(), n=n, size=row.size, hosts=self.hosts, link=self.link)
            cpu = [each["cpu"] for each in row.rows]
            records.add("bcast", row.impl, "cpu", "us", row.figure("cpu"), min(cpu), max(cpu), len(cpu), row.size,
                        self.hosts, self.link)
            records.add("bcast", row.impl, "bound", "us", self.bound(row), size=row.size, hosts=self.hosts, link=self.link)


def main():
    options = parse("bcast", __doc__, "measure 4 hosts, few sizes and segments, in under 3 minutes", {
        "--link": dict(choices=LINKS, help="measure only this kind of link (default: both)"),
        "--mpi": dict(choices=["openmpi", "mpich"], default="openmpi", help="measure programs of this MPI (default: openmpi)"),
        "--hosts": dict(type=int, help="measure only N hosts (default: 4 and 8)", metavar="N")}, plots=True)
    scope = Scope(options.quick)
    build = options.build
    rate = memory_rate()
    records = Records("bcast")
    for link in [options.link] if options.link else LINKS:
        for hosts in [options.hosts] if options.hosts else scope.hosts:
            measurement = Measurement(scope, build, link, hosts, rate, options.mpi)
            measurement.print()
            measurement.record(records)
    records.save(options.json)
    if options.plot:
        plots.draw(records.rows, options.plot)


if __name__ == "__main__":
    main()
