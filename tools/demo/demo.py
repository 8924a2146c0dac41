#!/usr/bin/python3
"""Broadcast a file to all hosts of an emulated fabric by plain MPI_Bcast, and count the bytes on the root's link."""

import argparse
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import run_report  # noqa: E402
from switch_process import Switch  # noqa: E402

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
    def __init__(self, build, hosts, switch, svg=None, seconds=0.7):
        self.build = pathlib.Path(build).resolve()
        self.hosts = hosts
        self.switch = switch
        self.svg = svg
        self.seconds = seconds
        self.status = None  # when the file had come to all
        self.table = None

    def command(self, program, *arguments, mca=()):
        parameters = [word for name, value in mca for word in ("--mca", name, value)]
        return [str(self.build / "bin/cepheus-run"), "--fabric", self.switch.socket, "--", "-np", str(self.hosts), *parameters,
                str(program), *map(str, arguments)]

    def cepheus(self, program, *arguments, mca=()):
        return subprocess.run(self.command(program, *arguments, mca=mca), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def tcp(self, program, *arguments):
        command = ["mpirun", "-np", str(self.hosts), "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
                   "--mca", "btl_tcp_if_include", "lo", "--mca", "coll", "^cepheus"]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        return subprocess.run(command + [str(program), *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)

    def broadcast(self, path):
        command = self.command(self.build / "demo/broadcast_file", path, "--hold",
                               mca=[("coll_cepheus_mode", "require"), ("coll_cepheus_verbose", "1")])
        with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
            for _ in range(self.hosts + 1):
                sys.stdout.write(job.stdout.readline())
            sys.stdout.flush()
            ports = self.switch.ports()
            self.status = self.switch.status()
            drawn = job.poll() is None and self.draw()
            _, err = job.communicate()
        for line in err.splitlines():
            if "cepheus:" in line:
                print("  path:", line[line.index("cepheus:"):])
        if job.returncode != 0:
            sys.stderr.write(err)
            return False
        return self.root_link(ports, os.path.getsize(path)) and drawn

    def show(self, path, address, seconds):
        """Serves the live page and repeats the broadcast, until interrupted or for the given seconds."""
        web = [str(self.build / "bin/cepheusctl"), "--fabric", self.switch.socket, "web", "--listen", address, "--control"]
        job = self.command(self.build / "demo/broadcast_file", path, "--repeat",
                           mca=[("coll_cepheus_verbose", "1"), ("coll_cepheus_safeguard_samples", "0")])
        with subprocess.Popen(web) as page, subprocess.Popen(job, text=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as running:
            print("each host in turn broadcasts the file to all others; Ctrl-C ends the demo", flush=True)
            try:
                running.wait(seconds)
                print("demo: the MPI program has ended; the page stays until Ctrl-C", file=sys.stderr)
                page.wait()
            except (KeyboardInterrupt, subprocess.TimeoutExpired):
                pass
            finally:
                running.stdin.close()
                page.terminate()
        return page.returncode in (0, -signal.SIGTERM)

    def draw(self):
        """The tree that the group has now: in words, and into a file if one is wanted."""
        command = [self.build / "bin/cepheusctl", "--fabric", self.switch.socket, "topology"]
        topology = subprocess.run(command, text=True, stdout=subprocess.PIPE)  # it prints its own errors
        if topology.returncode != 0:
            return False
        shown = topology.stdout
        print(shown[shown.index("\n\n") + 1:] if "\n\n" in shown else shown, end="")
        return self.svg is None or subprocess.run([*command, "--svg", self.svg]).returncode == 0

    def root_link(self, ports, size):
        port = next(p for p in ports if p["name"] == "h0")
        sent = port["rx_payload_bytes"]
        unicast = size * (self.hosts - 1)
        ratio = sent / size if size else 0
        print(f"  the root's link transmitted {sent} bytes of payload, {ratio:.3f} times the file; "
              f"{self.hosts - 1} unicast copies would be {unicast}")
        if size >= 65536 and not 1.0 <= ratio < 2:  # on a busy machine a NIC may repeat some of it
            print(f"demo: the root's link transmitted {ratio:.3f} times the file, not once: repeat it while nothing else runs here", file=sys.stderr)
            return False
        return True

    def times(self):
        program = self.build / "bench/mpi_bcast"
        sizes = ",".join(map(str, SIZES))
        runs = {"cepheus": self.cepheus(program, "--seconds", self.seconds, sizes, mca=[("coll_cepheus_mode", "require")]),
                "tcp": self.tcp(program, "--seconds", self.seconds, sizes)}
        table = {}
        for name, run in runs.items():
            if run.returncode != 0:
                sys.stderr.write(run.stderr)
                return False
            self.table = table
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

    def ctl(self, *words):
        return subprocess.run([self.build / "bin/cepheusctl", "--fabric", self.switch.socket, *words], text=True, stdout=subprocess.PIPE).stdout

    def ladder(self, path, scratch):
        """A small piece of the file, once more on a fabric that captures."""
        piece = pathlib.Path(scratch) / "piece"
        with open(path, "rb") as file:
            piece.write_bytes(file.read(20000))
        command = [str(self.build / "bin/cepheus-run"), "--hosts", str(min(self.hosts, 4)), "--pcap", scratch, "--",
                   "--mca", "coll_cepheus_mode", "require", str(self.build / "demo/broadcast_file"), str(piece)]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0:
            return ""
        return run_report.ladder_section(scratch, {f"h{i}": f"10.0.0.{i + 1}" for i in range(min(self.hosts, 4))})

    def times_section(self):
        rows = []
        for size in SIZES:
            ours, theirs = (self.table[name][size]["median"] for name in ("cepheus", "tcp"))
            rows.append([human(size), f"{ours:.1f}", f"{theirs:.1f}", f"{theirs / ours:.2f}"])
        return run_report.html_table(["size", "cepheus, emulated, us", "Open MPI over TCP loopback, us", "times as long"], rows)

    def report(self, path, file, calls, drawing):
        with tempfile.TemporaryDirectory(prefix="cepheus-demo-") as scratch:
            packets = self.ladder(path, scratch)
        facts = [("ran", f"MPI_Bcast of {path}, {human(os.path.getsize(path))}, from rank 0 to all"),
                 ("on", run_report.size_text(self.hosts, len(self.status["switches"]))), ("at", time.strftime("%Y-%m-%d %H:%M:%S")),
                 ("again", shlex.join(["./run", "demo", *sys.argv[3:]]))]
        sections = [("Path and reason of calls", run_report.calls_section(calls)),
                    ("The tree that the file took", run_report.picture(drawing, "the fabric and the trees of its groups")),
                    ("Traffic of the links", run_report.links_section(self.status)),
                    ("Beside a rival", self.times_section()),
                    ("The packets of a small broadcast", packets)]
        pathlib.Path(file).write_text(run_report.report_page("Cepheus demo", facts, sections))
        print(f"\nreport: {file}")

    def run(self, path, web=None, web_seconds=None, report=None):
        switches = len(self.switch.status()["switches"])
        if web:
            return 0 if self.show(path, web, web_seconds) else 1
        print(f"{path} from rank 0 to {self.hosts} hosts over {switches} switch{'es' if switches > 1 else ''}")
        if report is None:
            return 0 if self.broadcast(path) and self.times() else 1
        with tempfile.TemporaryDirectory(prefix="cepheus-demo-") as scratch:
            self.svg = self.svg or str(pathlib.Path(scratch) / "tree.svg")
            os.environ["CEPHEUS_REPORT_DIR"] = scratch  # of this run's programs alone
            if not self.broadcast(path):
                return 1
            calls = json.loads(self.ctl("--json", "explain"))["jobs"]
            drawing = pathlib.Path(self.svg).read_text()
            if not self.times():
                return 1
            self.report(path, report, calls, drawing)
        return 0


def main():
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("file", nargs="?", default=find_default_file(), help="broadcast this file (default: %(default)s)")
    parser.add_argument("--hosts", type=int, default=4, metavar="N", help="emulate N hosts, 2 to 64 (default: 4)")
    parser.add_argument("--shape", metavar="SHAPE", help="emulate several switches: fat-tree:4, leaf-spine:4x2x4 (default: one switch)")
    parser.add_argument("--svg", metavar="FILE", help="draw the fabric and the broadcast's tree into FILE")
    parser.add_argument("--report", metavar="FILE", help="write a page with path, tree, bytes by link, times and packets into FILE")
    parser.add_argument("--web", metavar="ADDRESS:PORT", nargs="?", const="127.0.0.1:8080",
                        help="serve a live page and repeat the broadcast until Ctrl-C (default: 127.0.0.1:8080)")
    parser.add_argument("--web-seconds", type=float, help=argparse.SUPPRESS)  # duration of --web
    parser.add_argument("--seconds", type=float, default=0.7, help=argparse.SUPPRESS)  # of each size
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 2 <= options.hosts <= 64:
        parser.error(f"--hosts {options.hosts}: give 2 to 64")
    if not os.path.isfile(options.file) or not os.access(options.file, os.R_OK):
        parser.error(f"{options.file}: not a readable file")
    shape = ("--shape", options.shape) if options.shape else ("--hosts", str(options.hosts))
    try:
        with Switch(options.build, *shape) as switch:
            there = sum(port["kind"] == "host" for port in switch.ports())
            if there < options.hosts:
                parser.error(f"{options.shape} has {there} hosts: give --hosts {there} or fewer")
            return Demo(options.build, options.hosts, switch, options.svg, options.seconds).run(
                os.path.realpath(options.file), options.web, options.web_seconds, options.report)
    except RuntimeError as error:  # has printed its reason
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
