"""SVG plots of HPL's records in the papers' layout, drawn by gnuplot: the job as its communication and the rest, and communication
alone, HPL's own beside ours."""

import plot_style

PHASES = {"pbcast": "panel broadcast", "laswp": "row swap"}


def draw(rows, directory):
    directory.mkdir(parents=True, exist_ok=True)
    table = {(row["case"], row["impl"], row["metric"]): row for row in rows if row["unit"] == "us"}
    bars = list(dict.fromkeys((row["case"], row["impl"]) for row in rows if "as it is" not in row["case"]))
    if not bars:
        return
    draw_jobs(table, bars, directory / "hpl-job.svg")
    draw_communication(table, bars, directory / "hpl-communication.svg")


def seconds(table, case, impl, metric, field="median"):
    row = table.get((case, impl, metric))
    return row[field] / 1e6 if row else 0.0


def plot(path, title, style, data, curves):
    lines = ["$bars << EOD", *data, "EOD", 'set ylabel "time, s"; set yrange [0:*]; set offsets 0, 0, graph 0.05, 0; set grid noxtics ytics', "set style fill solid 1 noborder; set boxwidth 0.8 relative",
             'set xtics font ",11" rotate by -30; set bmargin 7', style]
    plot_style.draw(path, title, lines, curves)


def draw_jobs(table, bars, path):
    """Stacked: communication at the bottom, panel factorisation and all computing above."""
    data = []
    for case, impl in bars:
        parts = [seconds(table, case, impl, metric) for metric in PHASES]
        data.append(f'"{case}\\n{impl}" {parts[0]} {parts[1]} {max(0.0, seconds(table, case, impl, "job") - sum(parts))}')
    plot(path, "HPL, time of the job (emulated)", "set style data histogram; set style histogram rowstacked", data,
         ['$bars using 2:xtic(1) title "panel broadcast"', '"" using 3 title "row swap"', '"" using 4 title "others"'])


def draw_communication(table, bars, path):
    """Communication alone: for each case and phase, HPL's own and ours, with 10th and 90th percentile."""
    data = []
    for case in dict.fromkeys(case for case, _ in bars):
        own, ours = [impl for name, impl in bars if name == case][:2]
        for metric, phase in PHASES.items():
            if (case, own, metric) in table:
                figures = [seconds(table, case, impl, metric, field) for impl in (own, ours) for field in ("median", "p10", "p90")]
                data.append(f'"{case}\\n{phase}" ' + " ".join(map(str, figures)))
    plot(path, "HPL, communication alone (emulated)", "set style data histogram; set style histogram errorbars gap 1; set errorbars lt 1 lc rgb '#000000' lw 1.5", data,
         ['$bars using 2:3:4:xtic(1) lt 2 title "HPL: increasing ring, long"', '"" using 5:6:7 lt 1 title "cepheus"'])
