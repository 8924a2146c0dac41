#!/usr/bin/python3
"""The papers' experiments in the simulator, several at a time: tables, JSON and SVGs into a folder, and the page about them.

    experiments.py [--quick] [--seeds N] [--jobs N] [--modes] [--results DIRECTORY] [--docs FILE] [NAME...]

Each is a process of its own, `cepheus-sim experiment NAME`. Results stay in the folder, so that a page can be made of several
runs; of what is not in the folder the page keeps what it has. Exit code 0: all done; 1: some failed, the others' results are there; 2: bad usage.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import experiment_modes

ROOT = pathlib.Path(__file__).resolve().parent.parent

PREFACE = """# Experiments

Figures and numbers of the papers, simulated: the switch's and the NIC's own engines on virtual time
(`cepheus-sim experiment --list`). Nothing on this page was measured on hardware.

| column | what it has |
|---|---|
| value | ours, simulated: the median over seeds of random loss, places and hashes |
| low..high | the range over the seeds; empty: one seed, or all alike |
| paper | a number of the paper's text, or the ratio of two; most curves have none |
| expected | by theory or by our own estimate; the paper does not print it |
| note | a rival's best setting, or how the row was made if not like the others |

Columns that no row of a table has are left out. Below each table: what was simulated, and why it
differs from the paper where it does. The seconds behind each command are those of the machine that
ran it, perhaps beside other work.

    ./run experiments                      all, with SVGs into build/experiments
    ./run experiments --quick --docs       a first look, and this page made of it
    ./run experiments --modes --docs       those with congestion control, by both parameter sets
                                           and ways of notification

The rivals are schedules of unicasts over the same NICs and switches
(`fabric-sim/experiments/rivals.h`). A test holds each to its closed-form bound. A rival has its
best setting, named in the note, or the paper's, named below the table. Queues never overflow, as if
pause frames worked without cost. Where congestion is not what is measured nothing marks packets either.
"""


class Experiment:
    """One experiment's files in the folder of results; `mode`: of senders that differ (experiment_modes.py)."""

    def __init__(self, name, results, mode=None):
        self.name = name
        self.extra = ["--congestion", mode] if mode else []
        stem = f"{name}.{mode}" if mode else name
        self.table, self.json, self.svg, self.about = (results / f"{stem}.{kind}" for kind in ("txt", "json", "svg", "about"))

    def run(self, simulator, arguments):
        command = [str(simulator), "experiment", self.name, "--json", str(self.json), "--svg", str(self.svg), *self.extra, *arguments]
        started = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            return False
        self.table.write_text(done.stdout)
        self.about.write_text(json.dumps({"seconds": round(time.monotonic() - started), "arguments": arguments}))
        return True

    def is_there(self):
        return self.table.is_file() and self.about.is_file()

    def section(self):
        head, table, method = self.table.read_text().rstrip("\n").split("\n\n", 2)
        about = json.loads(self.about.read_text())
        says = head.split("): ", 1)[1]
        figure = head.split(" (", 1)[1].split(", simulated", 1)[0]
        command = " ".join(["cepheus-sim experiment", self.name, *about["arguments"]])
        return (f"\n## {self.name}: {figure}\n\n{says[0].upper()}{says[1:]}.\n\n"
                + "\n".join(f"    {line}".rstrip() for line in table.split("\n"))
                + f"\n\n{method}\n\n`{command}`: {about['seconds']} s.\n")


def known(simulator):
    listed = subprocess.run([str(simulator), "experiment", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line and not line.startswith(" ")]


def sections_of(page):
    """By the first word of their headings."""
    parts = re.split(r"(?m)^(?=## )", page)[1:]
    return {re.match(r"## (\S+?):? ", part)[1]: "\n" + part.rstrip("\n") + "\n" for part in parts}


def write_page(path, names, results):
    before = sections_of(path.read_text()) if path.is_file() else {}
    sections = [e.section() if e.is_there() else before.get(e.name, "") for e in (Experiment(name, results) for name in names)]
    path.write_text(PREFACE + "".join(sections) + (experiment_modes.section(results) or before.get("Other", "")))


def main():
    parser = argparse.ArgumentParser(description="the papers' experiments in the simulator")
    parser.add_argument("names", nargs="*", metavar="NAME", help="by default all")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller points")
    parser.add_argument("--seeds", type=int, help="of random links and places")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time; by default one for each processor")
    parser.add_argument("--modes", action="store_true",
                        help="each of those with congestion control, by both parameter sets and ways of notification")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/experiments")
    parser.add_argument("--docs", nargs="?", type=pathlib.Path, const=ROOT / "docs/experiments.md",
                        help="write a page of all results in the folder (by default docs/experiments.md)")
    options = parser.parse_args()
    simulator = options.build / "bin/cepheus-sim"
    names = known(simulator)
    for name in options.names:
        if name not in names:
            parser.error(f"no experiment is called '{name}'; there are: {' '.join(names)}")
    options.results.mkdir(parents=True, exist_ok=True)
    arguments = ["--quick"] * options.quick + (["--seeds", str(options.seeds)] if options.seeds else [])
    wanted = options.names or names
    if options.modes:
        chosen = [Experiment(name, options.results, mode) for name in wanted if name in experiment_modes.SHOWN
                  for mode in experiment_modes.MODES]
    else:
        chosen = [Experiment(name, options.results) for name in wanted]
    failed = []
    with concurrent.futures.ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        running = {pool.submit(e.run, simulator, arguments): e for e in chosen}
        for done in concurrent.futures.as_completed(running):
            experiment = running[done]
            if done.result():
                print(experiment.table.read_text(), flush=True)
            else:
                failed.append(experiment.name)
    if options.docs:
        write_page(options.docs, names, options.results)
    if failed:
        print(f"experiments: failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
