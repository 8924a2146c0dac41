"""The costs of an MPI_Bcast besides its time: context switches, wake-ups, system calls by name, packets that a process handles
between two context switches, and where processor time goes. Over Cepheus, over TCP and through shared memory."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from bcast import Candidate, Jobs
from fabric import Fabric
from records import human, percentile

KIB, MIB = 1 << 10, 1 << 20
SIZES = [8, 64 * KIB, MIB, 8 * MIB]
WAYS = ["cepheus", "tcp", "shm"]
MTU = 4096
SAMPLES_PER_SECOND = 4000
TIMEOUT = 300  # seconds, for one job


def has_tracepoints():
    """Whether system calls and wake-ups can be counted here: root, and a kernel with tracefs."""
    if os.geteuid() != 0:
        return False
    tracing = pathlib.Path("/sys/kernel/tracing")
    if not (tracing / "events").is_dir():
        subprocess.run(["mount", "-t", "tracefs", "nodev", tracing], stderr=subprocess.DEVNULL)
    return (tracing / "events/raw_syscalls").is_dir()


class Run:
    """One job's rows, one per size, and its processor time by kind if `profiles`."""

    def __init__(self, build, fabric, way, hosts, sizes, seconds, profiles=False):
        jobs = Jobs(build, fabric, hosts, seconds)
        plan = fabric.directory / "plan"
        plan.write_text("".join(Candidate(way, None, size).plan() for size in sizes))
        command = jobs.command(way) + [str(build / "bench/mpi_bcast"), "--seconds", str(2 * seconds), "--costs",
                                       "--switch", str(fabric.pid), "--plan", str(plan)]
        with tempfile.TemporaryDirectory() as directory:
            ranks, switch = pathlib.Path(directory) / "ranks", pathlib.Path(directory) / "switch"
            perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(SAMPLES_PER_SECOND), "-o"]
            beside = None
            if profiles:
                command = [*perf, str(ranks), *command]
                beside = subprocess.Popen([*perf, switch, "-p", str(fabric.pid)], stderr=subprocess.DEVNULL)
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
            if beside is not None:
                beside.terminate()
                beside.wait()
            self.rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            if done.returncode != 0 or len(self.rows) != len(sizes):
                sys.exit(f"bench micro: {way} failed, exit code {done.returncode}:\n{' '.join(command)}\n{done.stderr}")
            self.shares = shares([ranks, switch]) if profiles else None


def kind(library, symbol):
    """The kind of work that a sample shows; None for the benchmark's own time between calls."""
    if library.startswith(("[kernel", "[k]", "[guest")):
        return "kernel"
    if re.search("mem(cpy|move|set)|copy_used", symbol):
        return "copies"
    if re.search("cepheus|libmcast", library):
        return "engines"
    return None if library in ("mpi_bcast", "perf") else "MPI and libraries"


def shares(files):
    """Of all samples, the part of each kind."""
    counts = collections.Counter()
    for path in files:
        report = subprocess.run(["perf", "report", "-i", path, "--stdio", "-F", "sample,dso,sym", "-t", "\t"],
                                capture_output=True, text=True).stdout
        for line in report.splitlines():
            words = [word.strip() for word in line.split("\t")]
            if len(words) >= 3 and words[0].isdigit():
                counts[kind(words[1], words[2])] += int(words[0])
    del counts[None]
    return {name: n / counts.total() for name, n in counts.items()}


def by_role(rows, role, name):
    """The median over rounds, or None if it is not counted."""
    values = [row["events"][role][name] for row in rows]
    return None if None in values else percentile(values, 0.5)


def total(rows, name, hosts):
    parts = [by_role(rows, "root", name), by_role(rows, "receiver", name), by_role(rows, "switch", name)]
    return None if None in parts[:2] else parts[0] + (hosts - 1) * parts[1] + (parts[2] or 0)


def text(value):
    return "-" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def packets_between_switches(rows, size, hosts):
    """Of root, receiver and switch: packets of data over context switches."""
    packets = max(1, size // MTU)
    parts = []
    for role, handled in (("root", packets), ("receiver", packets), ("switch", packets * hosts)):
        switches = by_role(rows, role, "switches")
        parts.append(text(handled / switches) if switches else "-")
    return " ".join(f"{part:>5}" for part in parts)


def print_row(way, size, hosts, rows):
    names = [name for name in rows[0]["events"]["root"] if name.startswith("sys_enter_")]
    calls = {name.removeprefix("sys_enter_"): total(rows, name, hosts) for name in names}
    often = sorted(((n, name) for name, n in calls.items() if n and n >= 0.5), reverse=True)
    packets = packets_between_switches(rows, size, hosts) if way == "cepheus" else " ".join(["    -"] * 3)
    print(f"  {human(size):>8} {way:<8} {percentile([row['cpu'] for row in rows], 0.5):>9.0f} "
          f"{text(total(rows, 'switches', hosts)):>9} {text(total(rows, 'sched_waking', hosts)):>9} "
          f"{text(total(rows, 'sys_enter', hosts)):>9}   {packets}   " + ", ".join(f"{name} {text(n)}" for n, name in often[:5]))


def measure(build, records, rounds, seconds=0.2):
    counted = has_tracepoints()
    profiles = shutil.which("perf") is not None and os.geteuid() == 0
    for hosts in (4, 8):
        print(f"\nWhat an MPI_Bcast to {hosts - 1} hosts costs all processes together, ranks and switch (medians of {rounds} runs in turns;"
              "\npackets: of data, between two context switches of the root, a receiver, the switch)")
        if not counted:
            print("  wake-ups and system calls are not counted here: that takes root and tracefs")
        print(f"  {'size':>8} {'way':<8} {'CPU, us':>9} {'switches':>9} {'wake-ups':>9} {'calls':>9}   {'packets':<17}   most often")
        with Fabric(build, hosts) as fabric:
            runs = {way: [] for way in WAYS}
            for _ in range(rounds):
                for way, done in runs.items():
                    done.append(Run(build, fabric, way, hosts, SIZES, seconds))
            for n, size in enumerate(SIZES):
                for way, done in runs.items():
                    rows = [run.rows[n] for run in done]
                    print_row(way, size, hosts, rows)
                    record(records, way, size, hosts, rows)
            if profiles:
                print_shares(build, records, fabric, hosts, seconds)
            else:
                print("  where processor time goes is not looked at here: that takes root and perf (package linux-perf)")


def record(records, way, size, hosts, rows):
    for metric, name in (("switches", "switches"), ("wake_ups", "sched_waking"), ("system_calls", "sys_enter")):
        value = total(rows, name, hosts)
        if value is not None:
            records.add("broadcast_costs", way, metric, "1", value, n=len(rows), size=size, hosts=hosts)
    cpu = [row["cpu"] for row in rows]
    records.add("broadcast_costs", way, "cpu", "us", percentile(cpu, 0.5), min(cpu), max(cpu), len(cpu), size, hosts)


def print_shares(build, records, fabric, hosts, seconds):
    print(f"  where processor time of whole jobs goes, their start included, by {SAMPLES_PER_SECOND} samples a second:")
    for size in SIZES:
        for way in WAYS:
            parts = Run(build, fabric, way, hosts, [size], 5 * seconds, profiles=True).shares
            print(f"  {human(size):>8} {way:<8} " + ", ".join(f"{name} {part:.0%}" for name, part in
                                                           sorted(parts.items(), key=lambda each: -each[1])))
            for name, part in parts.items():
                records.add("broadcast_costs", f"{way}, {name}", "share of CPU time", "1", part, size=size, hosts=hosts)
