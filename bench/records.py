"""Records of the benchmarks, {bench, case, impl, size, hosts, link, metric, unit, median, p10, p90, n}: collected, printed, saved."""

import json
import pathlib


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


def percentile(values, p):
    values = sorted(values)
    return values[round(p * (len(values) - 1))]
