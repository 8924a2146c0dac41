"""SVG plots of broadcast records, drawn by gnuplot: time over size, one plot for each link and number of hosts."""

import subprocess


def draw(rows, directory):
    directory.mkdir(parents=True, exist_ok=True)
    rows = [row for row in rows if row["metric"] == "time"]
    for link, hosts in sorted({(row["link"], row["hosts"]) for row in rows}):
        here = [row for row in rows if (row["link"], row["hosts"]) == (link, hosts)]
        draw_one(here, f"MPI_Bcast, {hosts} hosts, {link} links (emulated)", directory / f"bcast-{link}-{hosts}.svg")


def draw_one(rows, title, path):
    impls = sorted({row["impl"] for row in rows}, key=lambda impl: (impl != "cepheus", impl))
    script = [f'set terminal svg size 900,560 font "sans,13"; set output "{path}"', f'set title "{title}" noenhanced',
              'set logscale xy 2; set logscale y 10; set grid; set key outside right',
              'set xlabel "bytes"; set ylabel "slowest rank, us"', 'set format x "2^{%L}"']
    data = []
    for n, impl in enumerate(impls):
        points = sorted((row["size"], row["median"], row["p10"], row["p90"]) for row in rows if row["impl"] == impl)
        data.append(f"$d{n} << EOD\n" + "\n".join(" ".join(map(str, point)) for point in points) + "\nEOD")
    curves = [f'$d{n} using 1:2 with linespoints lw {3 if impl == "cepheus" else 1} title "{impl}" noenhanced'
              for n, impl in enumerate(impls)]
    script = "\n".join(data + script + ["plot " + ", ".join(curves)])
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
