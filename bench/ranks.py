#!/usr/bin/python3
"""Measure MPI_Bcast of many ranks on one machine: the default against Open MPI without coll/cepheus.

In mode try, coll/cepheus leaves ranks on one machine to Open MPI's shared memory, so "try" must equal "without". "multicast" makes
each rank a host, as cepheus-run does; its rival is "tcp". Jobs run in turns. A ratio is that of the medians of all rounds, with
the quartiles of the rounds' own ratios.
"""

import os
import sys

from fabric import Fabric
from records import Records, human, parse, percentile, rows_of

KIB, MIB = 1 << 10, 1 << 20
JOB_SECONDS = 600
RIVALS = {"try": "without", "multicast": "tcp"}


class Jobs:
    def __init__(self, build, fabric, ranks, seconds):
        self.build, self.fabric, self.ranks, self.seconds = build, fabric, ranks, seconds

    def mpirun(self, network, *words):
        command = ["mpirun", "-np", str(self.ranks), "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl",
                   network, "--mca", "btl_tcp_if_include", "lo"]
        return command + (["--allow-run-as-root"] if os.geteuid() == 0 else []) + list(words)

    def command(self, what):
        if what == "multicast":
            return [str(self.build / "bin/cepheus-run"), "--fabric", self.fabric.socket, "--", "-np", str(self.ranks), "--mca", "btl",
                    "self,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "coll_cepheus_mode", "require"]
        loaded = ["--mca", "mca_base_component_path", f"SYSTEM_DEFAULT:{self.build}/lib/openmpi", "-x", f"CEPHEUS_FABRIC={self.fabric.socket}",
                  "-x", f"LD_PRELOAD={self.build}/lib/libcepheus-roce.so"]
        return {"without": self.mpirun("self,vader,tcp"), "tcp": self.mpirun("self,tcp"),
                "try": self.mpirun("self,vader,tcp", *loaded)}[what]

    def run(self, what, sizes):
        """Microseconds by size."""
        command = self.command(what) + [str(self.build / "bench/mpi_bcast"), "--seconds", str(self.seconds), ",".join(map(str, sizes))]
        rows = rows_of(f"ranks: {what} failed,", command, len(sizes), JOB_SECONDS)
        return {row["size"]: row["median"] for row in rows}


def measure(build, ranks, sizes, rounds, seconds, names):
    times = {name: {size: [] for size in sizes} for name in names}
    with Fabric(build, ranks) as fabric:
        jobs = Jobs(build, fabric, ranks, seconds)
        for n in range(rounds):
            print(f"bench ranks: {ranks} ranks, round {n + 1} of {rounds}", file=sys.stderr, flush=True)
            for name in names if n % 2 == 0 else reversed(names):
                for size, time in jobs.run(name, sizes).items():
                    times[name][size].append(time)
    return times


def report(ranks, sizes, times, records):
    print(f"\nMPI_Bcast, {ranks} ranks on one machine of {os.cpu_count()} cores, us: median of the rounds (least..most); emulated")
    for ours, rival in RIVALS.items():
        if ours not in times:
            continue
        for size in sizes:
            a, b = times[ours][size], times[rival][size]
            ratios = sorted(x / y for x, y in zip(a, b))
            ratio, low, high = percentile(a, 0.5) / percentile(b, 0.5), percentile(ratios, 0.25), percentile(ratios, 0.75)
            print(f"  {human(size):>8}  {ours:<9} {percentile(a, 0.5):>10.1f} ({min(a):.1f}..{max(a):.1f})  {rival:<7} {percentile(b, 0.5):>10.1f} "
                  f"({min(b):.1f}..{max(b):.1f})  {ratio:>5.2f} times ({low:.2f}..{high:.2f})")
            for name, values in ((ours, a), (rival, b)):
                records.add("ranks", name, "time", "us", percentile(values, 0.5), min(values), max(values), len(values), size, ranks, "unshaped")
            records.add("ranks", ours, "ratio", rival, ratio, low, high, len(ratios), size, ranks, "unshaped")


def main():
    options = parse("ranks", __doc__, "measure 32 ranks and few sizes", {
        "--ranks": dict(type=int, help="measure only N ranks (default: 32 and 64)", metavar="N"),
        "--only": dict(choices=RIVALS, help="measure only this one and its rival")})
    sizes = [8, 64 * KIB, MIB] if options.quick else [8, 4 * KIB, 64 * KIB, 128 * KIB, MIB, 4 * MIB]
    names = [name for ours, rival in RIVALS.items() if options.only in (None, ours) for name in (ours, rival)]
    records = Records("ranks")
    for ranks in [options.ranks] if options.ranks else [32] if options.quick else [32, 64]:
        times = measure(options.build, ranks, sizes, 5 if options.quick else 31, 0.1, names)
        report(ranks, sizes, times, records)
    records.save(options.json)


if __name__ == "__main__":
    main()
