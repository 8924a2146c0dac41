#!/usr/bin/python3
"""Replicated writes: one multicast WRITE against a WRITE to one replica, to each of three, and down a chain of three.

All ways run in turns within the same four processes, over the same NICs and switch, unshaped and on links of 1 Gb/s; what was
written is read back. A WRITE to several is done when all have it. A ratio is taken within a round; printed are the median and
the least and greatest of the rounds. CPU time is that of writer, replicas and switch.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from bcast import LINKS
from fabric import Fabric
from records import Records, human, percentile
from volume_process import on_host

KIB, MIB = 1 << 10, 1 << 20
REPLICAS = 3
DEPTHS = [1, 8, 64]
LATENCY_SIZES = [512, 8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB]
WAYS = {"multicast": "multicast", "one": "one replica", "each": "each of three", "chain": "chain of three"}
JOB_SECONDS = 900


class Job:
    """The four processes, on a fabric's first four hosts."""

    def __init__(self, build, fabric, cases, rounds, seconds):
        self.build, self.fabric = build, fabric
        self.words = ["--switch", fabric.pid, "--rounds", rounds, "--seconds", seconds, *(f"{size}:{depth}" for size, depth in cases)]
        self.directory = fabric.directory / "meeting"
        self.directory.mkdir()

    def start(self, rank, *words):
        command = [self.build / "bench/storage_bench", "--rank", rank, "--replicas", REPLICAS, "--directory", self.directory, *words]
        return subprocess.Popen([str(word) for word in command], env=on_host(self.build, self.fabric.socket, rank), text=True,
                                stdout=subprocess.PIPE if rank == 0 else None)

    def run(self):
        """The writer's rows, in the order of measuring."""
        processes = [self.start(0, *self.words)] + [self.start(rank) for rank in range(1, REPLICAS + 1)]
        try:
            out = processes[0].communicate(timeout=JOB_SECONDS)[0]
            if any(process.wait(60) != 0 for process in processes):
                sys.exit("bench storage: a process failed")
        finally:
            for process in processes:
                process.kill()
        return [json.loads(line) for line in out.splitlines()]


def spread(values):
    return percentile(values, 0.5), min(values), max(values)


def ratios(rows, way, rival, figure):
    """`way` over `rival`, round by round."""
    return [mine[figure] / theirs[figure] for mine, theirs in zip(rows[way], rows[rival])]


def table(title, cases, label, figure, unit, scale, by_case, records, link):
    print(f"\n{title}")
    print(f"  {'':<8}" + "".join(f"{name:>17}" for name in WAYS.values()) + f"{'of one':>22}{'of each':>22}{'of chain':>22}")
    for case in cases:
        rows = by_case[case]
        line = f"  {label(case):<8}"
        for way in WAYS:
            median, low, high = spread([row[figure] * scale for row in rows[way]])
            records.add(f"depth {case[1]}", way, figure, unit, median, low, high, len(rows[way]), case[0], REPLICAS + 1, link)
            line += f"{median:>17.1f}"
        for rival in ("one", "each", "chain"):
            median, low, high = spread(ratios(rows, "multicast", rival, figure))
            records.add(f"depth {case[1]}", f"multicast/{rival}", figure + " ratio", "1", median, low, high, len(rows[rival]), case[0],
                        REPLICAS + 1, link)
            line += f"{f'{median:.2f} ({low:.2f}..{high:.2f})':>22}"
        print(line)


def measure(build, link, scope, records):
    iops = [(8 * KIB, depth) for depth in DEPTHS]
    latency = [(size, 1) for size in scope.sizes]
    cases = list(dict.fromkeys(iops + latency))
    with Fabric(build, REPLICAS + 1, link=LINKS[link]) as fabric:
        rows = Job(build, fabric, cases, scope.rounds, scope.seconds).run()
    by_case = {case: {way: [row for row in rows if (row["size"], row["depth"], row["way"]) == (*case, way)] for way in WAYS}
               for case in cases}
    about = "1 Gb/s and 100 us a link" if link == "shaped" else "links as fast as two processors make them"
    table(f"8-KiB WRITEs, thousands a second, by WRITEs under way; {about}", iops, lambda case: str(case[1]), "rate", "k/s", 1e-3,
          by_case, records, link)
    table(f"8-KiB WRITEs, CPU time of all processes a WRITE, us; {about}", iops, lambda case: str(case[1]), "cpu", "us", 1, by_case,
          records, link)
    table(f"Latency of a WRITE alone, us; {about}", latency, lambda case: human(case[0]), "median", "us", 1, by_case, records, link)


class Scope:
    """How much is measured."""

    def __init__(self, quick):
        self.rounds = 3 if quick else 9
        self.seconds = 0.15 if quick else 0.4
        self.sizes = [512, 8 * KIB, 512 * KIB] if quick else LATENCY_SIZES


def main():
    parser = argparse.ArgumentParser(prog="./run bench storage", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sizes, half a minute")
    parser.add_argument("--json", metavar="FILE", help="write the records to this file")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    records = Records("storage")
    print(f"{REPLICAS} replicas, emulated. Medians of rounds; ratios: median (least..greatest) of multicast's figure over the rival's")
    for link in LINKS:
        measure(build, link, Scope(options.quick), records)
    records.save(options.json)


if __name__ == "__main__":
    main()
