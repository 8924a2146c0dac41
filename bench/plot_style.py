"""The style of all plots: the palette of Okabe and Ito, which colour-blind readers can distinguish, names as written, sizes in units of
bytes, the key next to the data."""

import subprocess

# The first is ours.
PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d1f"]
POINTS = [7, 5, 9, 13, 11, 4, 6, 8]  # gnuplot's numbers: shapes differ where colours can't be seen


def size_text(size):
    """"64 KiB" of 65536."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:g} {unit}"
        size /= 1024


def size_ticks(sizes):
    """gnuplot's xtics at every second power of 4 between the smallest and the largest."""
    tick, ticks = 1, []
    while tick <= max(sizes):
        if tick >= min(sizes):
            ticks.append(f'"{size_text(tick)}" {tick}')
        tick *= 8
    return f"set xtics ({', '.join(ticks)})"


def draw(path, title, lines, curves, width=960, height=540):
    """`lines` set axes and data; `curves` are the plotted curves."""
    script = [f'set terminal svg size {width},{height} noenhanced background "white" font "sans-serif,14"; set output "{path}"',
              f'set title "{title}"', "set key outside right top vertical Left reverse spacing 1.2", "set border 3; set tics nomirror",
              'set grid lc rgb "#dddddd" lw 1']
    for n, (colour, point) in enumerate(zip(PALETTE, POINTS), start=1):
        script.append(f'set linetype {n} lc rgb "{colour}" pt {point} ps 0.7 lw {3 if n == 1 else 1.8}')
    script += [*lines, "plot " + ", ".join(curves)]
    subprocess.run(["gnuplot"], input="\n".join(script), text=True, check=True)
