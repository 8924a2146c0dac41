"""The figures that have congestion control, by every parameter set and way of notification: the page's table of them."""

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

TITLE = "## Other senders, by both parameter sets and ways of notification"

ABOUT = """
Values beside what is expected (by theory; the papers' texts have no numbers) in Gb/s (fairness:
Jain's index), by number of congested paths or time in ms as in the tables above; quick: with phases
half as long. `ce-echo`: receivers echo marks in acknowledgements, which keeps no 50 us between two.

- **All notifications**: a multicast falls with every congested path in every mode. How far, is the
  senders' (mcrdma-fig6): to C/(k+1) if they grow until they hear at one rate, to C/(1+sqrt k), 33.3
  and 27.4 Gb/s for k = 4 and 7, if each notification takes the same part of the rate. All lie
  between the two, `orig` with CNPs next to the first: with `hpcc` alpha follows each microsecond
  and is always small when the next mark comes, and echoes are cuts 50 us (`orig`) or 4 us (`hpcc`)
  apart at most, however many have come.
- **tmcf** leaves a multicast its half within a fifth in every mode; the third phase of tmcf-fig6 is
  settled in whole phases only.
- **worst-path** does so with `orig` and CNPs. Where notifications are denser it leaves a tenth to a
  quarter less, and a third at six paths of tmcf-fig4 with `hpcc` (a quarter in phases twice as
  long), since the lead changes more often within its 5 ms, and whoever takes it is heard. Tried
  with nothing else changed: with a window of 50 ms 19.6, 19.6, 19.2, 18.7 and 18.0 Gb/s are left
  beside two to six paths (14.7 and 13.9 beside five and six by 5 ms), and where a path keeps the
  lead until it is silent 19.8 beside six. The paper's policy wants windows in which the worst path
  stays the worst.
- Who comes later shares fairly in every mode: Jain's index is 0.98 or more in cepheus-fig14.
"""


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
    series = list(dict.fromkeys(p["series"] for p in wanted))
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


def section(results):
    """The page's, or "" if no figure has been run by all modes."""
    blocks = [b for b in (block(name, results) for name in SHOWN) if b]
    return f"\n{TITLE}\n{ABOUT}\n" + "\n\n".join(blocks) + "\n" if blocks else ""
