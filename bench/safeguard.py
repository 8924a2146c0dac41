#!/usr/bin/python3
"""Measure MPI_Bcast in mode try against the better of its two ways: always multicast, always Open MPI's own algorithms.

Each way serves 2,000 broadcasts of each size from one root, over good links, links that lose 5 % of packets, and links with a tenth
of the loopback's rate. Open MPI's messages take the plain loopback. A ratio is the total time in mode try by that of the better
way: medians of rounds in which the ways take turns. The first samples count.
"""

from fabric import Fabric
from records import Records, human, parse, percentile, rows_of

KIB, MIB = 1 << 10, 1 << 20
HOSTS, COUNT = 4, 2000
WAYS = {"try": {}, "multicast": {"safeguard_samples": 0}, "open mpi": {"mode": "off"}}
JOB_SECONDS = 1800
# Between hosts there is no shared memory.
LOOPBACK = ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]


def total(build, fabric, way, count, sizes):
    """Seconds of `count` broadcasts by size."""
    command = [str(build / "bin/cepheus-run"), "--fabric", fabric.socket, "--", *LOOPBACK]
    for name, value in WAYS[way].items():
        command += ["--mca", f"coll_cepheus_{name}", str(value)]
    command += [str(build / "bench/mpi_total"), str(count), ",".join(map(str, sizes))]
    rows = rows_of("safeguard:", command, len(sizes), JOB_SECONDS)
    return {row["size"]: row["seconds"] for row in rows}


def loopback_rate(build):
    """Bits a second that rank 0's data reaches the others with."""
    with Fabric(build, HOSTS) as fabric:
        return 20 * 8 * MIB * 8 / total(build, fabric, "open mpi", 20, [8 * MIB])[8 * MIB]


def main():
    options = parse("safeguard", __doc__, "run one round of fewer sizes")
    build = options.build
    rounds, sizes = (1, [8, 8 * KIB, 64 * KIB, MIB]) if options.quick else (5, [8, KIB, 8 * KIB, 64 * KIB, MIB])
    links = {"good": "", "5 % loss": "loss = 0.05", "slow": f'rate = "{loopback_rate(build) / 10 / 1e6:.0f}Mbps"'}
    records = Records("safeguard")
    print(f"{COUNT} broadcasts to {HOSTS} hosts, s: medians of {rounds}; emulated. ratio: try / the better of the others")
    for name, link in links.items():
        print(f"  {name} links {link}")
        with Fabric(build, HOSTS, link=link) as fabric:
            seconds = {(way, size): [] for way in WAYS for size in sizes}
            for _ in range(rounds):
                for way in WAYS:
                    # If multicast is slow, a tenth of the broadcasts is enough.
                    count = COUNT // 10 if way == "multicast" and link else COUNT
                    for size, took in total(build, fabric, way, count, sizes).items():
                        seconds[way, size].append(took * COUNT / count)
        for size in sizes:
            medians = {way: percentile(seconds[way, size], 0.5) for way in WAYS}
            ratio = medians["try"] / min(medians["multicast"], medians["open mpi"])
            print(f"    {human(size):>8}" + "".join(f"   {way} {medians[way]:>8.3f}" for way in WAYS) + f"   ratio {ratio:.2f}",
                  flush=True)
            for way, median in medians.items():
                records.add("safeguard", way, "total", "s", median, min(seconds[way, size]), max(seconds[way, size]), rounds, size,
                            HOSTS, name)
            records.add("safeguard", "try", "ratio", "1", ratio, n=rounds, size=size, hosts=HOSTS, link=name)
    records.save(options.json)


if __name__ == "__main__":
    main()
