#!/usr/bin/python3
"""Two commits side by side: builds both, runs a benchmark of each in turns, and prints the ratios of all figures.

usage: ./run bench compare COMMIT [--with COMMIT] [--rounds N] BENCH [OPTIONS OF THE BENCH]

Compare COMMIT with this checkout, or with --with. Each commit has its own checkout below build/compare, which later
comparisons use again. This checkout's bench/ measures both, unless --own-bench is given. A ratio is new / old: below 1, a
time became shorter.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from records import human, percentile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
KEY = ("case", "impl", "metric", "unit", "size", "hosts", "link")


def log(text):
    print(f"bench compare: {text}", file=sys.stderr, flush=True)


def git(*words):
    done = subprocess.run(["git", "-C", SOURCE, *words], text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"bench compare: git {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout.strip()


class Side:
    """One commit's checkout; None: this one."""

    def __init__(self, commit, own_bench):
        self.commit = git("rev-parse", "--short", "--verify", f"{commit}^{{commit}}") if commit else None
        self.name = self.commit or "this checkout"
        self.source = SOURCE / "build/compare" / self.commit if commit else SOURCE
        if not commit:
            return
        git("worktree", "prune")
        if not self.source.exists():
            git("worktree", "add", "--detach", self.source, self.commit)
        git("-C", self.source, "checkout", "--quiet", "--force", self.commit)  # a comparison before may have changed its bench/
        if not own_bench:
            shutil.rmtree(self.source / "bench")
            shutil.copytree(SOURCE / "bench", self.source / "bench", ignore=shutil.ignore_patterns("__pycache__"))

    def run(self, *words):
        return subprocess.run([self.source / "run", *words], stdout=subprocess.DEVNULL).returncode

    def build(self):
        log(f"building {self.name}")
        if self.run("build") != 0:
            sys.exit(f"bench compare: {self.name} does not build; if it is bench/ that does not, try --own-bench")

    def measure(self, bench, options):
        """{key: figure} of one run."""
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            if self.run("bench", bench, *options, "--json", file.name) != 0:
                sys.exit(f"bench compare: {self.name}: ./run bench {bench} failed")
            return {tuple(row[name] for name in KEY): row["median"] for row in json.loads(pathlib.Path(file.name).read_text())}


def ratios(old, new):
    """[(key, old median, new median, ratio of the medians, the rounds' own ratios)] of figures that both measured and that are not zero."""
    rows = []
    for key in old[0]:
        pairs = [(a[key], b[key]) for a, b in zip(old, new) if key in a and key in b and a[key] and b[key]]
        if len(pairs) == len(old):
            before, after = (percentile([pair[i] for pair in pairs], 0.5) for i in (0, 1))
            rows.append((key, before, after, after / before, sorted(b / a for a, b in pairs)))
    return rows


def table(bench, sides, rows):
    lines = [f"{bench}: {sides[0].name} (old) and {sides[1].name} (new), in turns; medians, ratio new / old (least..most)"]
    for key, before, after, ratio, spread in rows:
        case, impl, metric, unit, size, hosts, link = key
        what = " ".join(str(word) for word in (case, impl, metric, f"[{unit}]", human(size) if size is not None else "",
                                               f"{hosts} hosts" if hosts else "", link or "") if word)
        lines.append(f"  {what:<64} {before:>12.2f} {after:>12.2f} {ratio:>7.3f} ({spread[0]:.3f}..{spread[-1]:.3f})")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="./run bench compare", description=__doc__.split("\n\n", 2)[2],
                                     usage=__doc__.split("usage: ")[1].split("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="COMMIT", help="take this commit as the old one")
    parser.add_argument("--with", dest="new", metavar="COMMIT", help="take this commit as the new one (default: this checkout)")
    parser.add_argument("--rounds", type=int, default=5, help="run each N times (default: 5)", metavar="N")
    parser.add_argument("--own-bench", action="store_true", help="measure each commit by its own bench/; changes of the benchmark then count, too")
    parser.add_argument("bench", metavar="BENCH", choices=["micro", "bcast", "collectives", "overlap", "ranks", "sim", "storage", "hpl"],
                        help="run this benchmark of ./run bench; its options, such as --quick, follow")
    parser.add_argument("options", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.rounds < 1:
        parser.error("--rounds must be at least 1")
    sides = [Side(words.old, words.own_bench), Side(words.new, words.own_bench)]
    for side in sides:
        side.build()
    figures = ([], [])
    for n in range(words.rounds):
        for i in (0, 1) if n % 2 == 0 else (1, 0):
            log(f"round {n + 1} of {words.rounds}: {sides[i].name}")
            figures[i].append(sides[i].measure(words.bench, words.options))
    print(table(words.bench, sides, ratios(*figures)))


if __name__ == "__main__":
    main()
