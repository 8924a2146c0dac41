#!/usr/bin/python3
"""Measure the parts: ICRC, operations of reductions, a group's table, copies in the switch, registration, a change of source, an RC stream and a round trip
through the switch, congestion control without congestion, and the system calls of a broadcast.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests/onearmed"))
import broadcast_costs  # noqa: E402
from fabric import Fabric  # noqa: E402
from records import Records, percentile  # noqa: E402

PERFTEST_PORT = 18515  # perftest's own default, where its two sides meet

# Cepheus VI has FPGAs with a fan-out of 8 and 25, III-D a switch.
SWITCHES = {"FPGA, 900 Gb/s": 9, "FPGA, 2.6 Tb/s": 26, "switch": 64}  # ports
MEMORIES = {"0.69 MB": 1024 * 704,  # of Cepheus III-D: 1024 groups, 64 bytes and 10 for each of 64 ports
            "0.92 MB": int(0.92 * (1 << 20)),  # of Gleam 3.3
            "188 block RAMs": 188 * 36 * 1024 // 8}  # of Gleam table 2; one has 36 Kib


def times_of(program, seconds):
    """Processor times of a program of Google Benchmark, in ns, by both parts of a benchmark's name."""
    done = subprocess.run([program, "--benchmark_format=json", "--benchmark_repetitions=9",
                           f"--benchmark_min_time={seconds}", "--benchmark_enable_random_interleaving=true"],
                          capture_output=True, text=True, check=True)
    times = {}
    for row in json.loads(done.stdout)["benchmarks"]:
        if row.get("error_occurred"):
            sys.exit(f"bench micro: {row['error_message']}")
        if row["run_type"] == "iteration":
            times.setdefault(tuple(row["run_name"].split("/")), []).append(row["cpu_time"])
    return times


def icrc(build, records):
    times = {(impl, int(size)): values for (impl, size), values in times_of(build / "bench/icrc_bench", 0.05).items()}
    print("ICRC of a rewritten packet, ns (median of 9, interleaved)")
    for size in sorted({size for _, size in times}):
        medians = {}
        for impl in ("recompute", "patch"):
            values = times[impl, size]
            medians[impl] = percentile(values, 0.5)
            records.add("icrc", impl, "time", "ns", medians[impl], percentile(values, 0.1), percentile(values, 0.9), len(values), size)
        print(f"  {size:>5} B payload: recompute {medians['recompute']:7.1f}   patch {medians['patch']:6.1f}   "
              f"{medians['recompute'] / medians['patch']:5.1f} times faster")


def arithmetic(build, records):
    times = times_of(build / "bench/arithmetic_bench", 0.01)
    copy = times.pop(("copy", "bytes"))
    print(f"\nOperations of reductions on a packet of 4 KiB, ns (median of 9, interleaved; a copy takes {percentile(copy, 0.5):.0f})")
    types = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float", "double"]
    print(f"  {'':<8}" + "".join(f"{each:>8}" for each in types))
    for operation in dict.fromkeys(operation for operation, _ in times):
        line = f"  {operation:<8}"
        for each in types:
            values = times.get((operation, each))
            line += f"{'':>8}" if values is None else f"{percentile(values, 0.5):>8.0f}"
            if values is not None:
                records.add("arithmetic", f"{operation}, {each}", "time", "ns", percentile(values, 0.5), percentile(values, 0.1),
                            percentile(values, 0.9), len(values), 4096)
        print(line)


def table_bytes(build, ports):
    """Of groups of hosts, by number of paths in use (the last row has one on every port), and of groups behind trunks."""
    return json.loads(output_of([build / "bench/table_bytes", ports]))


def groups_that_fit(build, records):
    print("\nGroups that fit: (memory - frames at gates) / (table + beside it), a path on every port; members of one: ports^3 / 4, a fat-tree's hosts")
    print(f"  {'':<16}{'ports':>6}{'members':>9}{'table':>7}{'beside':>8}" + "".join(f"{memory:>16}" for memory in MEMORIES))
    for name, ports in SWITCHES.items():
        found = table_bytes(build, ports)
        row = found["hosts"][-1]
        of_one, beside = row["table"]["total"], row["beside"]["total"]
        line = f"  {name:<16}{ports:>6}{ports ** 3 // 4:>9}{of_one:>7}{beside:>8}"
        for memory, size in MEMORIES.items():
            groups = (size - found["held"]) // (of_one + beside)
            records.add("groups that fit", f"{name}, {memory}", "groups", "1", groups)
            line += f"{groups:>16}"
        print(line)


def table(build, records):
    found = table_bytes(build, 64)
    rows = found["hosts"]
    print("\nBytes of one group in a switch of 64 ports, by paths in use: its table (the paper's fields: 0.69 KB), and beside it")
    print("  " + f"{'field':<28}" + "".join(f"{row['paths']:>8}" for row in rows))
    for part in ("table", "beside"):
        for name in rows[0][part]["fields"]:
            print("  " + f"{name:<28}" + "".join(f"{row[part]['fields'][name]:>8}" for row in rows))
        total = "total" if part == "table" else "beside it"
        print("  " + f"{total:<28}" + "".join(f"{row[part]['total']:>8}" for row in rows))
        for row in rows:
            records.add(part, f"{row['paths']} paths", "memory", "bytes", row[part]["total"])
    print(f"  beside it, for each region that a member has published for WRITEs: {found['region']}")
    records.add("region", "1 region", "memory", "bytes", found["region"])
    print("  both, if all 64 ports are trunks:")
    for row in found["trunks"]:
        state = "registered" if row["active"] else "being registered"
        both = row["table"]["total"] + row["beside"]["total"]
        records.add("trunks", f"{row['members']} members, {state}", "memory", "bytes", both)
        print(f"    {row['members']:>6} members, {state:<16}  {both:>8}")
    print("  a reduction group with a host on each port, units of 4 KiB:")
    for row in found["reductions"]:
        both = row["table"]["total"] + row["beside"]["total"]
        sums = ", floating sums" if row["adds_floats"] else ""
        records.add("reductions", f"window {row['window']}{sums}", "memory", "bytes", both)
        print(f"    window of {row['window']:>3} units{sums:<15} {both:>10}")


def is_listening(port):
    """A probing connection would be taken for the client: look into the kernel's table."""
    tables = [pathlib.Path(path).read_text() for path in ("/proc/net/tcp", "/proc/net/tcp6")]
    return any(re.search(rf":{port:04X} [0-9A-F]+:0000 0A", table) for table in tables)


def pair(build, fabric, command, **environment):
    """Runs a perftest program as server and client on two hosts of the fabric; the client's output."""
    def start(host, extra):
        env = {**os.environ, "CEPHEUS_FABRIC": fabric.socket, "CEPHEUS_HOST": f"#{host}",
               "LD_PRELOAD": str(build / "lib/libcepheus-roce.so"), **environment}
        return subprocess.Popen(command + extra, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    server = start(0, [])
    while server.poll() is None and not is_listening(PERFTEST_PORT):
        time.sleep(0.01)
    client = start(1, ["127.0.0.1"])
    out = client.communicate(timeout=120)[0]
    server.communicate(timeout=120)
    if client.returncode != 0:
        sys.exit(f"bench micro: {' '.join(command)} failed:\n{out}")
    return out


def last_row(text):
    """perftest's last table row as numbers."""
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+\d+\s+[\d.]+", line)]
    return [float(word) for word in rows[-1]]


STREAM = ["ib_send_bw", "-d", "cepheus0", "-x", "0", "-m", "4096", "-s", "65536", "-n", "5000", "-F", "--report_gbits"]
LATENCY = ["ib_send_lat", "-d", "cepheus0", "-x", "0", "-m", "4096", "-s", "8", "-n", "5000", "-F"]


def stream(build, records, rounds):
    print("\nReliable connection through the switch, two processes (perftest, emulated)")
    for mode in ("deferred", "always"):
        rates, latencies = [], []
        with Fabric(build, icrc=mode) as fabric:
            for _ in range(rounds):
                out = pair(build, fabric, STREAM)
                rates.append(last_row(out)[3])
                out = pair(build, fabric, LATENCY)
                latencies.append(last_row(out)[4])
        rate, latency = percentile(rates, 0.5), percentile(latencies, 0.5)
        records.add("rc_stream", f"icrc {mode}", "goodput", "Gb/s", rate, min(rates), max(rates), len(rates), 65536, 2)
        records.add("rc_latency", f"icrc {mode}", "time", "us", latency, min(latencies), max(latencies), len(latencies), 8, 2)
        print(f"  ICRC {mode:<9} stream {rate:6.2f} Gb/s ({min(rates):.2f}..{max(rates):.2f})   "
              f"8-byte one-way latency {latency:6.2f} us ({min(latencies):.2f}..{max(latencies):.2f})")


def congestion(build, records, rounds):
    """NICs with congestion control but without marks, and NICs without it, in turns."""
    ratios = {"RC stream, 64 KiB": [], "RC, 8 bytes": [], "MPI_Bcast, 1 MiB, 4 hosts": []}
    with Fabric(build) as fabric:
        for _ in range(rounds):
            costs = []
            for control in ("off", "orig"):
                on = {"CEPHEUS_CONGESTION": control}
                gigabits = last_row(pair(build, fabric, STREAM, **on))[3]
                latency = last_row(pair(build, fabric, LATENCY, **on))[4]
                out = output_of([build / "bin/cepheus-run", "--hosts", 4, "--", "--mca", "coll_cepheus_mode", "require",
                                 build / "bench/mpi_bcast", "--seconds", 0.3, 1 << 20], **on)
                costs.append((1 / gigabits, latency, json.loads(out)["median"]))
            for name, off, control in zip(ratios, *costs):
                ratios[name].append(control / off)
    print("\nCongestion control in the NICs that hear of no mark: times of none's time (pairs in turns)")
    for name, values in ratios.items():
        records.add("congestion_cost", name, "ratio", "times", percentile(values, 0.5), min(values), max(values), len(values))
        print(f"  {name:<26}  {percentile(values, 0.5):6.3f} ({min(values):.3f}..{max(values):.3f})")


def output_of(command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"bench micro: {' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout


def copies(build, records, rounds):
    print("\n4-KiB copies per second and core of the switch, by receivers (CPU time of its thread, waiting included),"
          " and while `cepheusctl record` takes its samples")
    for receivers in (1, 3, 7, 15):
        runs = [json.loads(output_of([build / "bench/group_bench", "copies", receivers, 0.5])) for _ in range(rounds)]
        medians = []
        for series, key in (("cepheus", "copies_per_cpu_second"), ("cepheus, recorded", "copies_per_cpu_second_recorded")):
            rates = [run[key] / 1e6 for run in runs]
            medians.append(percentile(rates, 0.5))
            records.add("switch_copies", series, "rate", "M/s", medians[-1], min(rates), max(rates), len(rates), 4096, receivers + 1)
        print(f"  {receivers:>3} receivers  {medians[0]:6.2f} million, recorded {medians[1]:6.2f}: {medians[1] / medians[0]:.2f} of it")


def copies_of(switch, command):
    """Copies that the switch made while the command ran, and its thread's seconds on a core."""
    def so_far():
        ran = pathlib.Path(f"/proc/{switch.pid}/task/{switch.pid}/schedstat").read_text().split()[0]
        return sum(each["counters"].get("data_copies", 0) for each in switch.status()["switches"]), int(ran) * 1e-9
    copies, seconds = so_far()
    output_of(command)
    return [after - before for after, before in zip(so_far(), (copies, seconds))]


def backends(build, records, rounds):
    """The same broadcasts over hosts in shared memory and over a one-armed switch's network interface, in turns."""
    import namespaces  # of the tests: not before there is a build
    print("\n4-KiB copies per second and core of the switch, 3 receivers, MPI_Bcast of 1 MiB, by backend (CPU time of its thread, waiting"
          "\nincluded; one-armed also the kernel's, and what the veth pair and the bridge behind it cost; DPDK's thread never sleeps)")
    program, required = [build / "bench/mpi_bcast", "--seconds", 1, 1 << 20], {"coll_cepheus_mode": "require"}
    rates = {"shared memory": [], "one-armed, packet socket": []}
    if namespaces.HAS_DPDK:
        rates["one-armed, net_af_packet"] = []
    try:
        for _ in range(rounds):
            for name, values in rates.items():
                if name == "shared memory":
                    with Fabric(build, hosts=namespaces.HOSTS) as fabric:
                        copies, seconds = copies_of(fabric, [
                            build / "bin/cepheus-run", "--fabric", fabric.socket, "--", "-np", namespaces.HOSTS,
                            *namespaces.harness.mca_arguments(required), *program])
                else:
                    with namespaces.Site(fabric=namespaces.DPDK if "net_" in name else "") as site:
                        copies, seconds = copies_of(site.switch, site.command(*program, mca=required))
                values.append(copies / seconds / 1e6)
    except namespaces.CantHave as reason:
        print(f"  skipped: {reason}")
        return
    for name, values in rates.items():
        records.add("switch_backends", name, "rate", "M/s", percentile(values, 0.5), min(values), max(values), len(values), 4096, 4)
        print(f"  {name:<26}  {percentile(values, 0.5):6.3f} million ({min(values):.3f}..{max(values):.3f})")


SLOW_BOX = {"hosts": 2000, "box": 200}  # Mb/s
SLOW_BOX_BYTES = 64 << 20
SLOW_BOX_COUNTERS = ("data_taken", "data_copies", "drop_ingress_full", "drop_egress_full", "marked_by_fill")
FRAME_BYTES = 14 + 20 + 8 + 12 + 4096 + 4  # Ethernet, IPv4, UDP, BTH, payload, ICRC


def slow_box(build, records, rounds):
    """A broadcast through a one-armed box that is slower than its hosts: its link transmits a copy for each receiver."""
    import namespaces  # of the tests: not before there is a build
    bound = SLOW_BOX_BYTES * FRAME_BYTES / 4096 * (namespaces.HOSTS - 1) * 8 / (SLOW_BOX["box"] * 1e6)
    print(f"\nMPI_Bcast of 64 MiB, 3 receivers, one-armed box at {SLOW_BOX['box']} Mb/s, hosts at {SLOW_BOX['hosts']}: its link alone takes {bound:.2f} s")
    times = []
    try:
        for _ in range(rounds):
            with namespaces.Site(rates=SLOW_BOX) as site:
                out = output_of(site.command(build / "bench/mpi_total", 1, SLOW_BOX_BYTES, mca={"coll_cepheus_mode": "require"}))
                times.append(json.loads(out)["seconds"] / bound)
                status = site.switch.status()["switches"][0]
            counted = [(name, sum(port["counters"].get(name, 0) for port in status["ports"])) for name in SLOW_BOX_COUNTERS]
            print(f"  {times[-1]:5.2f} times that   {', '.join(f'{name} {value}' for name, value in counted)}")
    except namespaces.CantHave as reason:
        return print(f"  skipped: {reason}")
    records.add("slow_box", "one-armed, packet socket", "ratio", "times", percentile(times, 0.5), min(times), max(times), len(times),
                SLOW_BOX_BYTES, namespaces.HOSTS)


def registration(build, records, rounds):
    print("\nRegistration of a group, from the first packet until data may flow, us (one thread answers for all members)")
    for members in (4, 16, 64, 256):
        times = json.loads(output_of([build / "bench/group_bench", "registration", members, 4 * rounds]))["us"]
        records.add("registration", "cepheus", "time", "us", percentile(times, 0.5), percentile(times, 0.1),
                    percentile(times, 0.9), len(times), hosts=members)
        print(f"  {members:>3} members    {percentile(times, 0.5):9.1f} ({percentile(times, 0.1):.1f}..{percentile(times, 0.9):.1f})")


def source_change(build, records, rounds):
    """An 8-byte broadcast with the root of the call before, and with the next one, in turns."""
    times = {"same root": [], "next root": []}
    for _ in range(rounds):
        for case, extra in (("same root", []), ("next root", ["--rotate"])):
            out = output_of([build / "bin/cepheus-run", "--hosts", 4, "--", "--mca", "coll_cepheus_mode", "require",
                             build / "bench/mpi_bcast", "--seconds", 0.3, *extra, 8])
            times[case].append(json.loads(out)["median"])
    print("\nA change of source: MPI_Bcast of 8 bytes, 4 hosts, us")
    for case, values in times.items():
        records.add("source_change", case, "time", "us", percentile(values, 0.5), min(values), max(values), len(values), 8, 4)
        print(f"  {case}      {percentile(values, 0.5):7.1f} ({min(values):.1f}..{max(values):.1f})")


def main():
    parser = argparse.ArgumentParser(prog="./run bench micro", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run fewer rounds")
    parser.add_argument("--only", choices=["arithmetic", "broadcast", "slow-box"],
                        help="measure only operations of reductions, the system calls of a broadcast, or a slow box")
    parser.add_argument("--json", metavar="FILE", help="write the records to FILE")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    os.environ["CEPHEUS_BUILD"] = str(build)  # for the tests' network
    records = Records("micro")
    rounds = 3 if options.quick else 7
    if options.only:
        if options.only == "arithmetic":
            arithmetic(build, records)
        else:
            (slow_box if options.only == "slow-box" else broadcast_costs.measure)(build, records, rounds)
        return records.save(options.json)
    icrc(build, records)
    arithmetic(build, records)
    table(build, records)
    groups_that_fit(build, records)
    copies(build, records, rounds)
    backends(build, records, rounds)
    slow_box(build, records, 1)
    registration(build, records, rounds)
    source_change(build, records, rounds)
    stream(build, records, rounds)
    congestion(build, records, rounds)
    broadcast_costs.measure(build, records, rounds)
    records.save(options.json)


if __name__ == "__main__":
    main()
