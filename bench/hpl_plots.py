"""SVG plots of HPL's records in the papers' layout, drawn by gnuplot: the job as its communication and the rest, and communication
alone, HPL's own beside ours."""

import subprocess

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


def plot(path, lines, data, curves):
    script = ["$bars << EOD", *data, "EOD", f'set terminal svg size 900,520 font "sans,13"; set output "{path}"',
              'set grid ytics; set ylabel "seconds"; set yrange [0:*]; set style fill solid 0.8 border -1; set boxwidth 0.8 relative',
              'set key top right; set xtics noenhanced font ",10" rotate by -30; set bmargin 7', *lines, "plot " + ", ".join(curves)]
    subprocess.run(["gnuplot"], input="\n".join(script), text=True, check=True)


def draw_jobs(table, bars, path):
    """Stacked: communication at the bottom, panel factorisation and all computing above."""
    data = []
    for case, impl in bars:
        parts = [seconds(table, case, impl, metric) for metric in PHASES]
        data.append(f'"{case}\\n{impl}" {parts[0]} {parts[1]} {max(0.0, seconds(table, case, impl, "job") - sum(parts))}')
    plot(path, ['set title "HPL, time of the job (emulated)"', "set style data histogram; set style histogram rowstacked"], data,
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
    plot(path, ['set title "HPL, communication alone (emulated)"', "set style data histogram; set style histogram errorbars gap 1 lw 2"], data,
         ['$bars using 2:3:4:xtic(1) title "HPL: increasing ring, long"', '"" using 5:6:7 title "cepheus"'])
