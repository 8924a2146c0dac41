#!/usr/bin/python3
"""Run the papers' experiments in the simulator, several at a time; write tables, JSON, SVGs and the pages about them.

    experiments.py [--quick] [--seeds N] [--jobs N] [--modes] [--results DIRECTORY] [NAME...] [--docs [FILE]]

Each is a process of its own, `cepheus-sim experiment NAME`. Results stay in the folder, so that pages can use several runs. Each
experiment has a page; a page without new results stays. A page keeps the text between its table and its command. The index has one
row per page, below its own text. Exit code 0: all done; 1: some failed, the others' results are there; 2: wrong usage.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import experiment_modes
import plot_style

ROOT = pathlib.Path(__file__).resolve().parent.parent

INDEX_TABLE = "| figure | experiment | what | paper | ours | verdict |\n|---|---|---|---|---|---|\n"


SETTINGS = "    Settings of some or all runs"  # on a page, the block after the table


class Experiment:
    """One experiment's files in the folder of results; `mode`: of senders that differ (experiment_modes.py)."""

    def __init__(self, name, results, mode=None):
        self.name = name
        self.extra = ["--congestion", mode] if mode else []
        stem = f"{name}.{mode}" if mode else name
        self.table, self.json, self.svg, self.about = (results / f"{stem}.{kind}" for kind in ("txt", "json", "svg", "about"))

    def run(self, simulator, arguments):
        command = [str(simulator), "experiment", self.name, "--json", str(self.json), *self.extra, *arguments]
        started = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            return False
        self.table.write_text(done.stdout)
        self.draw(done.stdout.split("): ", 1)[1].split("\n", 1)[0])
        self.about.write_text(json.dumps({"seconds": round(time.monotonic() - started), "arguments": arguments}))
        return True

    def draw(self, title):
        """The series of the unit that most points have, by gnuplot where that is installed."""
        points = json.loads(self.json.read_text())
        units = [point["unit"] for point in points]
        if not points or shutil.which("gnuplot") is None:
            return
        unit = max(units, key=units.count)
        shown = [point for point in points if point["unit"] == unit]
        lines, curves = [f'set ylabel "{unit}"'], []
        for n, series in enumerate(dict.fromkeys(point["series"] for point in shown)):
            rows = [f"{p['x']} {p['value']} {p['low']} {p['high']}" for p in shown if p["series"] == series]
            lines.append(f"$d{n} << EOD\n" + "\n".join(rows) + "\nEOD")
            curves.append(f'$d{n} using 1:2:3:4 with yerrorlines lt {n + 1} title "{series}"')
        for axis, values in (("x", [p["x"] for p in shown]), ("y", [p["value"] for p in shown])):
            if min(values) > 0 and max(values) > 50 * min(values):
                lines.append(f"set logscale {axis}")
        plot_style.draw(self.svg, title, lines, curves)

    def is_there(self):
        return self.table.is_file() and self.about.is_file()

    def page(self, index, before):
        """Its page anew; `before`: the page that there was."""
        head, headline, *tables, _ = self.table.read_text().split("\n\n")
        method = [block for block in before.split("\n\n")[4:-1] if not block.startswith(SETTINGS)]
        about = json.loads(self.about.read_text())
        shows = head.split("): ", 1)[1]
        figure = head.split(" (", 1)[1].split(", simulated", 1)[0]
        command = " ".join(["cepheus-sim experiment", self.name, *about["arguments"]])
        indented = ["\n".join(f"    {line}".rstrip() for line in table.split("\n")) for table in tables]
        return "\n\n".join([f"# {self.name}: {figure}", f"{shows[0].upper()}{shows[1:]}.\nThe [index](../{index}) explains the columns.",
                            headline, *indented, *method, f"`{command}`: {about['seconds']} s.\n"])


def known(simulator):
    listed = subprocess.run([str(simulator), "experiment", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line and not line.startswith(" ")]


def split_page(path, mark, title):
    """A page's text and its measured part, which begins with `mark`."""
    text, found, measured = (path.read_text() if path.is_file() else f"# {title}\n").partition(mark)
    return text, found + measured


def index_row(page):
    name, figure = re.match(r"# (\S+): (.+)", page).groups()
    headline = re.search(r"^\|---.*\n\| (.+) \|$", page, re.MULTILINE)[1]
    return f"| {figure} | [{name}] | {headline} |\n"


def write_docs(index, names, results):
    """A page for each experiment in the folder of the index's name, and the index of all pages that are there."""
    folder = index.with_suffix("")
    folder.mkdir(exist_ok=True)
    for experiment in (Experiment(name, results) for name in names):
        if experiment.is_there():
            page = folder / f"{experiment.name}.md"
            page.write_text(experiment.page(index.name, page.read_text() if page.is_file() else ""))
    modes = folder / "modes.md"
    text, before = split_page(modes, "\n    ", "Other senders, by parameter set and way of notification")
    if tables := experiment_modes.tables(results, before):
        modes.write_text(f"{text}\n{tables}\n")
    pages = {name: folder / f"{name}.md" for name in names if (folder / f"{name}.md").is_file()}
    rows = "".join(index_row(page.read_text()) for page in pages.values())
    places = "".join(f"[{name}]: {folder.name}/{page.name}\n" for name, page in pages.items())
    index.write_text(split_page(index, INDEX_TABLE, "Experiments\n")[0] + INDEX_TABLE + rows + "\n" + places)


def main():
    parser = argparse.ArgumentParser(prog="./run experiments", description="Run the papers' experiments in the simulator.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="run these experiments (default: all)")
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default=ROOT / "build/release", help="run the simulator of this build tree (default: build/release)")
    parser.add_argument("--quick", action="store_true", help="take fewer and smaller points")
    parser.add_argument("--seeds", type=int, metavar="N", help="take N random sets of losses and places")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="run N at a time (default: one on each core)")
    parser.add_argument("--modes", action="store_true",
                        help="run those with congestion control by both parameter sets and ways of notification")
    parser.add_argument("--results", metavar="DIR", type=pathlib.Path, default=ROOT / "build/experiments",
                        help="write results into this directory (default: build/experiments)")
    parser.add_argument("--docs", metavar="FILE", nargs="?", type=pathlib.Path, const=ROOT / "docs/experiments.md",
                        help="write a page for each result, and their index FILE (default: docs/experiments.md)")
    options = parser.parse_args()
    simulator = options.build / "bin/cepheus-sim"
    names = known(simulator)
    for name in options.names:
        if name not in names:
            parser.error(f"there is no experiment '{name}'; the experiments are {' '.join(names)}")
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
        write_docs(options.docs, names, options.results)
    if failed:
        print(f"experiments: failed: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
