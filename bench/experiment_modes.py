"""The figures that have congestion control, by every parameter set and way of notification: the tables of docs/experiments/modes.md."""

import json

MODES = ["orig", "orig,ce-echo", "hpcc", "hpcc,ce-echo"]

# Experiment -> beginnings of the series that are shown.
SHOWN = {
    "cepheus-fig14": ["fairness beside"],
    "mcrdma-fig5": ["m1", "m2"],
    "mcrdma-fig6": ["multicast"],
    "tmcf-fig3": ["multicast"],
    "tmcf-fig4": ["multicast"],
    "tmcf-fig6": ["multicast"],
}


def number(value):
    return "-" if value is None else f"{value:.3g}"


def table(rows):
    """Columns aligned, the first to the left."""
    widths = [max(len(row[i]) if i < len(row) else 0 for row in rows) for i in range(max(map(len, rows)))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(widths[i + 1]) for i, cell in enumerate(row[1:])]
        lines.append("    " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def block(name, results):
    """A figure's series, each by mode; empty unless all modes have been run."""
    files = [results / f"{name}.{mode}.json" for mode in MODES]
    if not all(file.is_file() for file in files):
        return ""
    by_mode = [json.loads(file.read_text()) for file in files]
    wanted = [p for p in by_mode[0] if p["expected"] is not None and p["series"].startswith(tuple(SHOWN[name]))]
    in_all = set.intersection(*({p["series"] for p in points} for points in by_mode))
    series = [each for each in dict.fromkeys(p["series"] for p in wanted) if each in in_all]
    xs = sorted({p["x"] for p in wanted})
    about = [json.loads((results / f"{name}.{mode}.about").read_text()) for mode in MODES]
    quick = any("--quick" in each["arguments"] for each in about)
    rows = [[name + ", quick" * quick, *map(number, xs)]]
    for each in series:
        def cells(points, key, each=each):
            values = {p["x"]: p[key] for p in points if p["series"] == each}
            return [number(values[x]) if x in values else "" for x in xs]
        rows.append([f"{each.removesuffix(', settled')}: expected", *cells(wanted, "expected")])
        rows += [[f"  {mode}", *cells(points, "value")] for mode, points in zip(MODES, by_mode)]
    return table(rows)


def tables(results, before):
    """Of each figure the table of the folder, or the one that it had in `before`; "" if there are none."""
    kept = {each.split(",")[0].split()[0]: each for each in before.strip("\n").split("\n\n") if each}
    return "\n\n".join(filter(None, (block(name, results) or kept.get(name) for name in SHOWN)))
