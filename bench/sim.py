#!/usr/bin/python3
"""Measure the simulator: packet-hops per second of one core, time to build fabrics and register groups, memory; against ns-3.

ns-3 sends the permutation as plain UDP over the same links. Runs of both take turns. The ratio is that of the medians, with the
least and the greatest ratio of the rounds.
"""

import json
import subprocess
import sys

from records import Records, parse, percentile

MIB = 1 << 20
SECONDS = 600

# Case: ports of each switch, hosts that take part, bytes.
QUICK = {
    "multicast to 15 of 16": ("multicast", 4, 16, 4 * MIB),
    "multicast to 127 of 128": ("multicast", 8, 128, MIB),
    "permutation of 128": ("permutation", 8, 128, MIB),
    "chain of 128": ("chain", 8, 128, MIB),
}
FULL = {
    "multicast to 15 of 16": ("multicast", 4, 16, 16 * MIB),
    "multicast to 127 of 128": ("multicast", 8, 128, 16 * MIB),
    "multicast to 512 of 1024": ("multicast", 16, 513, 16 * MIB),
    "multicast to 1023 of 1024": ("multicast", 16, 1024, 16 * MIB),
    "permutation of 128": ("permutation", 8, 128, 4 * MIB),
    "permutation of 1024": ("permutation", 16, 1024, MIB),
    "chain of 512": ("chain", 16, 512, 16 * MIB),
    "64 MiB to 512 of 1024": ("multicast", 16, 513, 64 * MIB),
}
SIZES = {hosts: ("register", ports, hosts, 0) for ports, hosts in ((4, 16), (8, 128), (16, 1024), (64, 4096), (64, 16384))}
FLIGHT = ("flight", 8, 128, 4 * MIB)
PERMUTATION = "permutation of 128"


class Runs:
    def __init__(self, build):
        self.build = build

    def one(self, program, *words):
        command = [str(self.build / "bench" / program), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            sys.exit(f"bench sim: {' '.join(command)} ended with exit code {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def ours(self, case):
        return self.one("sim_bench", *case)

    def rival(self, case):
        return self.one("ns3_bench", case[1], case[3])


def rates(results):
    return [result["hops"] / result["seconds"] / 1e6 for result in results]


def in_full(values, digits):
    return f"{percentile(values, 0.5):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def show_rates(runs, cases, rounds, records):
    print(f"  {'':<26} {'hosts':>6}  {'M packet-hops a second':>24} {'seconds':>9} {'virtual ms':>11} {'MiB':>7}")
    for name, case in cases.items():
        results = [runs.ours(case) for _ in range(1 if case[3] > 16 * MIB else rounds)]
        found, last = rates(results), results[-1]
        print(f"  {name:<26} {last['hosts']:>6}  {in_full(found, 2):>24} {percentile([r['seconds'] for r in results], 0.5):>9.2f} "
              f"{last['virtual_us'] / 1000:>11.3f} {last['rss_kib'] / 1024:>7.0f}", flush=True)
        records.add(name, "cepheus-sim", "rate", "M packet-hops/s", percentile(found, 0.5), min(found), max(found), len(found), case[3],
                    last["hosts"], "100 Gb/s, 1 us")


def show_sizes(runs, sizes, records):
    print(f"\n  {'a group of all hosts':<26} {'hosts':>6}  {'built, s':>9} {'registered, s':>14} {'KiB a host':>11}")
    for hosts, case in sizes.items():
        result = runs.ours(case)
        per_host = result["rss_kib"] / result["hosts"]
        print(f"  {'':<26} {result['hosts']:>6}  {result['built']:>9.2f} {result['set_up']:>14.2f} {per_host:>11.1f}", flush=True)
        for metric, value, unit in (("build", result["built"], "s"), ("register", result["set_up"], "s"), ("memory", per_host, "KiB")):
            records.add("size", "cepheus-sim", metric, unit, value, hosts=result["hosts"])


def show_flight(runs, records):
    result = runs.ours(FLIGHT)
    each = result["in_flight_bytes"] / result["in_flight"]
    print(f"\n  a packet under way takes {each:.0f} bytes ({result['in_flight']} at once, of {result['hosts']} hosts)", flush=True)
    records.add("flight", "cepheus-sim", "memory", "bytes", each, hosts=result["hosts"])


def show_rival(runs, case, rounds, records):
    ours, rival = [], []
    for _ in range(rounds):
        ours.append(runs.ours(case))
        rival.append(runs.rival(case))
    mine, theirs = rates(ours), rates(rival)
    ratios = [a / b for a, b in zip(mine, theirs)]
    ratio = percentile(mine, 0.5) / percentile(theirs, 0.5)
    print(f"\n  {PERMUTATION}, in turns: cepheus-sim {in_full(mine, 2)}, ns-3 with plain UDP {in_full(theirs, 2)}: "
          f"{ratio:.1f} times ({min(ratios):.1f}..{max(ratios):.1f})")
    records.add(PERMUTATION, "ns-3", "rate", "M packet-hops/s", percentile(theirs, 0.5), min(theirs), max(theirs), rounds)
    records.add(PERMUTATION, "cepheus-sim", "ratio", "ns-3", ratio, min(ratios), max(ratios), rounds)


def main():
    options = parse("sim", __doc__, "run three rounds of small fabrics")
    runs = Runs(options.build)
    cases, rounds = (QUICK, 3) if options.quick else (FULL, 5)
    sizes = {hosts: case for hosts, case in SIZES.items() if hosts <= 1024} if options.quick else SIZES
    records = Records("sim")
    print("fat-trees on virtual time, 100 Gb/s and 1 us a link, packets of 4096 bytes; one core: median (least..most)")
    show_rates(runs, cases, rounds, records)
    show_sizes(runs, sizes, records)
    show_flight(runs, records)
    show_rival(runs, cases[PERMUTATION], rounds, records)
    records.save(options.json)


if __name__ == "__main__":
    main()
