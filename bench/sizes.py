#!/usr/bin/python3
"""MPI_Bcast by size: cepheus beside Open MPI's own choice over TCP loopback, in turns within one run."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from records import Records, human, percentile

SIZES = [8, 64, 1024, 8192, 16384, 65536, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26]


def command(impl, build, hosts):
    if impl == "cepheus":
        return [build / "bin/cepheus-run", "--hosts", str(hosts), "--", "--mca", "coll_cepheus_mode", "require"]
    words = ["mpirun", "-np", str(hosts), "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca",
             "btl_tcp_if_include", "lo"]
    return words + (["--allow-run-as-root"] if os.geteuid() == 0 else [])


def measure(impl, build, hosts, sizes, seconds):
    program = [build / "bench/mpi_bcast", ",".join(map(str, sizes)), str(seconds)]
    done = subprocess.run([str(word) for word in command(impl, build, hosts) + program], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench sizes: {impl} failed:\n{done.stderr}")
    return {row["size"]: row for row in map(json.loads, filter(None, done.stdout.splitlines()))}


def main():
    parser = argparse.ArgumentParser(prog="./run bench sizes", description=__doc__)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, in turns (default 5)")
    parser.add_argument("--quick", action="store_true", help="one round, short")
    parser.add_argument("--json", help="write the records to this file")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    rounds, seconds = (1, 0.2) if options.quick else (options.rounds, 0.4)
    impls = {"cepheus": [], "tcp/default": []}
    for _ in range(rounds):
        for impl, runs in impls.items():
            runs.append(measure(impl, build, options.hosts, SIZES, seconds))
    records = Records("sizes")
    print(f"MPI_Bcast, {options.hosts} hosts, slowest rank, us: median of {rounds} runs' medians (lowest..highest); emulated, unshaped")
    print(f"  {'size':>8}  {'cepheus':>30}  {'tcp loopback':>30}  {'ratio':>6}")
    for size in SIZES:
        cells, medians = [], []
        for impl, runs in impls.items():
            values = [run[size]["median"] for run in runs]
            medians.append(percentile(values, 0.5))
            records.add("bcast", impl, "time", "us", medians[-1], min(values), max(values), len(values), size, options.hosts)
            cells.append(f"{medians[-1]:.1f} ({min(values):.1f}..{max(values):.1f})")
        print(f"  {human(size):>8}  {cells[0]:>30}  {cells[1]:>30}  {medians[1] / medians[0]:>6.2f}")
    records.save(options.json)


if __name__ == "__main__":
    main()
