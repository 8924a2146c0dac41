"""Records of the benchmarks, {bench, case, impl, size, hosts, link, metric, unit, median, p10, p90, n}: collected, printed, saved; and the options
of a benchmark."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys


class Records:
    def __init__(self, bench):
        self.bench = bench
        self.rows = []

    def add(self, case, impl, metric, unit, median, p10=None, p90=None, n=1, size=None, hosts=None, link="unshaped"):
        row = dict(bench=self.bench, case=case, impl=impl, size=size, hosts=hosts, link=link, metric=metric, unit=unit,
                   median=median, p10=median if p10 is None else p10, p90=median if p90 is None else p90, n=n)
        self.rows.append(row)
        return row

    def save(self, path):
        if path:
            pathlib.Path(path).write_text(json.dumps(self.rows, indent=1) + "\n")


def human(n):
    for unit in ("B", "KiB", "MiB"):
        if n < 1024 or unit == "MiB":
            return f"{n:.0f} {unit}"
        n /= 1024


def progress(bench, text):
    print(f"bench {bench}: {text}", file=sys.stderr, flush=True)


def percentile(values, p):
    values = sorted(values)
    return values[round(p * (len(values) - 1))]


def parse(bench, description, quick, own=None, json_help="write the records to FILE", plots=False):
    """The options of ./run bench: --quick, the benchmark's `own` {name: add_argument's words}, --json and perhaps --plot."""
    parser = argparse.ArgumentParser(prog=f"./run bench {bench}", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    for name, words in (own or {}).items():
        parser.add_argument(name, **words)
    parser.add_argument("--json", metavar="FILE", help=json_help)
    if plots:
        parser.add_argument("--plot", metavar="DIR", type=pathlib.Path, help="write SVG plots into DIR")
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve(), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if plots and options.plot and shutil.which("gnuplot") is None:
        sys.exit(f"bench {bench}: gnuplot is missing; on Debian: apt-get install gnuplot-nox")
    return options


def rows_of(what, command, count, seconds):
    """The `count` lines of JSON that a job prints; `what` begins the error."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(rows) != count:
        sys.exit(f"bench {what} exit code {done.returncode}:\n{' '.join(command)}\n{done.stderr}")
    return rows
