#!/usr/bin/python3
"""Measure how much of an MPI_Ibcast a computation hides: two ranks, links of 1 Gb/s and 100 us.

The computation takes as long as the broadcast alone, between MPI_Ibcast and MPI_Wait. 1.00: the shorter of the two costs nothing.
2.00: nothing overlaps. Each round measures broadcast, computation and both together. The rival is Open MPI's own MPI_Ibcast over
TCP loopback, which has no shaped links.
"""

from bcast import LINKS, Jobs
from fabric import Fabric
from records import Records, human, parse, percentile, rows_of

SIZES = [32 << 10, 8 << 20]  # below the eager limit, above it
JOB_SECONDS = 300


def measure(jobs, transport, rounds, seconds):
    """{size: [[broadcast, compute, both], ...]} in microseconds."""
    command = jobs.command(transport) + [str(jobs.build / "bench/mpi_overlap"), "--rounds", str(rounds), "--seconds",
                                         str(seconds), ",".join(map(str, SIZES))]
    rows = rows_of("overlap:", command, len(SIZES), JOB_SECONDS)
    return {row["size"]: row["rounds"] for row in rows}


def main():
    options = parse("overlap", __doc__, "run fewer rounds, in half a minute")
    rounds, seconds = (30, 8) if options.quick else (150, 40)
    build = options.build
    records = Records("overlap")
    print("MPI_Ibcast beside a computation of its length, 2 ranks; emulated. us: medians; total / longer: median "
          "(10th..90th percentile)")
    print(f"  {'':<10}{'size':>9}{'broadcast':>12}{'compute':>12}{'total':>12}   total / longer")
    with Fabric(build, 2, link=LINKS["shaped"]) as fabric:
        jobs = Jobs(build, fabric, 2, 0)
        for impl, transport, link in (("cepheus", "cepheus", "shaped"), ("tcp/default", "tcp", "unshaped")):
            for size, rows in measure(jobs, transport, rounds, seconds).items():
                values = {"broadcast": [row[0] for row in rows], "compute": [row[1] for row in rows],
                          "total": [row[2] for row in rows], "ratio": [row[2] / max(row[0], row[1]) for row in rows]}
                figures = {name: [percentile(each, p) for p in (0.5, 0.1, 0.9)] for name, each in values.items()}
                for name, (median, p10, p90) in figures.items():
                    records.add("overlap", impl, name, "1" if name == "ratio" else "us", median, p10, p90, len(rows), size, 2,
                                link)
                median, p10, p90 = figures["ratio"]
                print(f"  {impl:<10}{human(size):>9}" + "".join(f"{figures[name][0]:>12.1f}" for name in
                                                               ("broadcast", "compute", "total"))
                      + f"   {median:.2f} ({p10:.2f}..{p90:.2f}), {len(rows)} rounds")
    records.save(options.json)


if __name__ == "__main__":
    main()
