"""SVG plots of broadcast records: time over size, one plot for each link and number of hosts."""

import plot_style


def draw(rows, directory):
    directory.mkdir(parents=True, exist_ok=True)
    rows = [row for row in rows if row["metric"] == "time"]
    for link, hosts in sorted({(row["link"], row["hosts"]) for row in rows}):
        here = [row for row in rows if (row["link"], row["hosts"]) == (link, hosts)]
        draw_one(here, f"MPI_Bcast, {hosts} hosts, {link} links (emulated)", directory / f"bcast-{link}-{hosts}.svg")


def draw_one(rows, title, path):
    impls = sorted({row["impl"] for row in rows}, key=lambda impl: (impl != "cepheus", impl))
    lines = []
    for n, impl in enumerate(impls):
        points = sorted((row["size"], row["median"], row["p10"], row["p90"]) for row in rows if row["impl"] == impl)
        lines.append(f"$d{n} << EOD\n" + "\n".join(" ".join(map(str, point)) for point in points) + "\nEOD")
    lines += ["set logscale xy", plot_style.size_ticks([row["size"] for row in rows]), 'set xlabel "size of the broadcast"',
              'set ylabel "time until the slowest rank has it, us"']
    curves = [f'$d{n} using 1:2:3:4 with yerrorlines lt {n + 1} title "{impl}"' for n, impl in enumerate(impls)]
    plot_style.draw(path, title, lines, curves)
