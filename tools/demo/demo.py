#!/usr/bin/python3
"""The demo: a file to every host by plain MPI_Bcast, and what the root's link carried for it."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SIZES = [8, 65536, 1 << 20, 64 << 20]


def find_default_file():
    """A file that every Debian machine has and that is worth sending."""
    for pattern in ("/usr/lib/*/libc.so.6", "/bin/sh"):
        for path in sorted(pathlib.Path("/").glob(pattern.lstrip("/"))):
            return str(path.resolve())
    return sys.executable


def human(n):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


class Demo:
    def __init__(self, build, hosts):
        self.build = pathlib.Path(build).resolve()
        self.hosts = hosts
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="cepheus-demo-"))

    def cepheus(self, program, *arguments, stats=None, mca=()):
        command = [str(self.build / "bin/cepheus-run"), "--hosts", str(self.hosts)]
        if stats:
            command += ["--stats-json", str(stats)]
        command += ["--"]
        for name, value in mca:
            command += ["--mca", name, value]
        return subprocess.run(command + [str(program), *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def tcp(self, program, *arguments):
        command = ["mpirun", "-np", str(self.hosts), "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
                   "--mca", "btl_tcp_if_include", "lo", "--mca", "coll", "^cepheus"]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        return subprocess.run(command + [str(program), *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def broadcast(self, path):
        stats = self.scratch / "stats.json"
        result = self.cepheus(self.build / "demo/broadcast_file", path, stats=stats,
                              mca=[("coll_cepheus_mode", "require"), ("coll_cepheus_verbose", "1")])
        sys.stdout.write(result.stdout)
        lines = [line for line in result.stderr.splitlines() if "cepheus:" in line]
        for line in lines:
            print("  path:", line[line.index("cepheus:"):])
        if result.returncode != 0:
            sys.stderr.write(result.stderr)
            return False
        return self.root_link(json.loads(stats.read_text()), os.path.getsize(path))

    def root_link(self, status, size):
        port = next(p for p in status["switches"][0]["ports"] if p["name"] == "h0")
        carried = port["rx_payload_bytes"]
        unicast = size * (self.hosts - 1)
        ratio = carried / size if size else 0
        print(f"  the root's link carried {carried} bytes of payload, {ratio:.3f} times the file; "
              f"{self.hosts - 1} unicast copies would be {unicast}")
        if size >= 65536 and not 1.0 <= ratio <= 1.1:
            print("demo: the root's link did not carry the file once", file=sys.stderr)
            return False
        return True

    def times(self):
        program = self.build / "bench/mpi_bcast"
        sizes = ",".join(map(str, SIZES))
        runs = {"cepheus": self.cepheus(program, "--seconds", 0.7, sizes, mca=[("coll_cepheus_mode", "require")]),
                "tcp": self.tcp(program, "--seconds", 0.7, sizes)}
        table = {}
        for name, run in runs.items():
            if run.returncode != 0:
                sys.stderr.write(run.stderr)
                return False
            table[name] = {row["size"]: row for row in map(json.loads, filter(None, run.stdout.splitlines()))}
        print(f"\nMPI_Bcast, {self.hosts} hosts, slowest rank, microseconds: median (10th..90th percentile)")
        print(f"  {'size':>10}  {'cepheus (emulated)':>30}  {'Open MPI, TCP loopback':>30}  {'ratio':>6}")
        for size in SIZES:
            cells = []
            for name in ("cepheus", "tcp"):
                row = table[name][size]
                cells.append(f"{row['median']:.1f} ({row['p10']:.1f}..{row['p90']:.1f})")
            ratio = table["tcp"][size]["median"] / table["cepheus"][size]["median"]
            print(f"  {human(size):>10}  {cells[0]:>30}  {cells[1]:>30}  {ratio:>6.2f}")
        return True

    def run(self, path):
        print(f"{path} from rank 0 to {self.hosts} hosts, one switch")
        try:
            return 0 if self.broadcast(path) and self.times() else 1
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("file", nargs="?", default=find_default_file(), help="file to broadcast")
    parser.add_argument("--hosts", type=int, default=4, help="emulated hosts, 2 to 64 (default 4)")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 2 <= options.hosts <= 64:
        parser.error(f"--hosts {options.hosts}: give 2 to 64")
    if not os.path.isfile(options.file) or not os.access(options.file, os.R_OK):
        parser.error(f"{options.file}: not a readable file")
    return Demo(options.build, options.hosts).run(os.path.realpath(options.file))


if __name__ == "__main__":
    sys.exit(main())
