#!/usr/bin/python3
"""Broadcasts while browsers look: 64-KiB MPI_Bcasts of four ranks without a page, with `cepheusctl web` that nobody reads, and under
1,000 requests a second beside 200 idle connections, in turns; on links that are as fast as the processors, and on links of 1 Gb/s, which leave
some of the processors' time, as a NIC does. Readers have another machine elsewhere, so here they get what others leave (nice 19). The page is a process of its own; where processors are few, it and
whoever reads it take time from the ranks and the switch as any other program does, so beside it stands the same with a program that only
computes.
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys

from bcast import LINKS, Jobs
from fabric import Fabric
from records import Records, human, percentile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {"unshaped": [64 << 10], "shaped": [64 << 10, 8 << 20]}
RANKS = 4
JOB_SECONDS = 120


@contextlib.contextmanager
def nothing(_build, _fabric, _answers):
    yield


@contextlib.contextmanager
def page(build, fabric, _answers):
    command = [build / "bin/cepheusctl", "--socket", fabric.socket, "web", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as web:
        try:
            yield web.stdout.readline().split()[-1].split("/")[2]
        finally:
            web.terminate()


@contextlib.contextmanager
def load(build, fabric, answers):
    with page(build, fabric, answers) as address:
        command = ["nice", "-n", "19", sys.executable, ROOT / "tools/web_load.py", address, "--rate", "1000", "--idle", "200"]
        with subprocess.Popen(list(map(str, command)), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as readers:
            readers.stdout.readline()
            try:
                yield
            finally:
                answers.append(json.loads(readers.communicate("\n")[0]))


@contextlib.contextmanager
def computing(_build, _fabric, _answers):
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as program:
        try:
            yield
        finally:
            program.terminate()


BESIDE = {"nothing": nothing, "page, no readers": page, "1000 req/s, 200 idle": load, "a program that computes": computing}


def measure(jobs, size):
    """Median time of a broadcast, us."""
    command = jobs.command("cepheus") + [str(jobs.build / "bench/mpi_bcast"), "--seconds", "2", str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=JOB_SECONDS, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not rows:
        sys.exit(f"bench web: exit code {done.returncode}:\n{' '.join(command)}\n{done.stderr}")
    return rows[0]["median"]


def compare(build, links, size, turns, records):
    answers, times = [], {name: [] for name in BESIDE}
    with Fabric(build, RANKS, link=LINKS[links]) as fabric:
        jobs = Jobs(build, fabric, RANKS, 0)
        for _ in range(turns):
            for name, beside in BESIDE.items():
                with beside(build, fabric, answers):
                    times[name].append(measure(jobs, size))
    print(f"broadcasts of {human(size)} to {RANKS} ranks, {links} links, beside what is named: median, us; "
          "its speed to that beside nothing in the same turn (emulated)")
    for name, each in times.items():
        ratios = [alone / time for alone, time in zip(times["nothing"], each)]
        median = percentile(each, 0.5)
        records.add("web", name, "time", "us", median, min(each), max(each), len(each), size, RANKS, links)
        print(f"  {name:<24}{median:>10.1f}  ({min(each):.1f}..{max(each):.1f})"
              f"   {percentile(ratios, 0.5):.2f} ({min(ratios):.2f}..{max(ratios):.2f})")
    for status in sorted({status for each in answers for status in each["answers"]}):
        count = sum(each["answers"].get(status, 0) for each in answers)
        print(f"  answers {status}: {count / sum(each['seconds'] for each in answers):.0f} a second")


def main():
    parser = argparse.ArgumentParser(prog="./run bench web", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer turns, a minute")
    parser.add_argument("--json", metavar="FILE", help="write the records to this file")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    records = Records("web")
    for links, sizes in SIZES.items():
        for size in sizes:
            compare(build, links, size, 3 if options.quick else 9, records)
    records.save(options.json)


if __name__ == "__main__":
    main()
