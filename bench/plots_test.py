#!/usr/bin/python3
"""Plots by gnuplot: titles and axes show names as written."""

import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import hpl_plots
import plots


def texts(path):
    """The visible text of the SVG, one line per <text>: a subscript is a lower <tspan> of its own."""
    svg = path.read_text()
    lines = re.findall(r"<text\b.*?</text>", svg, re.S)
    return ["|".join(filter(None, (part.strip() for part in re.split(r"<[^>]*>", line)))) for line in lines]


def row(**fields):
    return {"unit": "us", "median": 2.0 * fields.get("size", 1), "p10": 1.0, "p90": 300.0, **fields}


class Plots(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-plots-")))

    def test_name_mpi_bcast_and_implementations_without_subscripts(self):
        plots.draw([row(metric="time", link="10_Gbps", hosts=4, impl=impl, size=size)
                    for impl in ("cepheus", "scatter_allgather") for size in (8, 64)], self.directory)
        shown = texts(self.directory / "bcast-10_Gbps-4.svg")
        self.assertIn("MPI_Bcast, 4 hosts, 10_Gbps links (emulated)", shown)
        self.assertIn("scatter_allgather", shown)

    def test_name_cases_of_hpl_without_subscripts(self):
        hpl_plots.draw([row(case="2x2_grid", impl=impl, metric=metric)
                        for impl in ("ring", "mpi_bcast") for metric in ("job", "pbcast", "laswp")], self.directory)
        shown = " ".join(texts(self.directory / "hpl-job.svg") + texts(self.directory / "hpl-communication.svg"))
        self.assertIn("2x2_grid", shown)
        self.assertIn("mpi_bcast", shown)


if __name__ == "__main__":
    if shutil.which("gnuplot") is None:
        print("plots_test: SKIPPED, nothing was checked: gnuplot is missing; as root: apt-get install gnuplot-nox", file=sys.stderr)
        sys.exit(77)
    unittest.main()
