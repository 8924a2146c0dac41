#!/usr/bin/python3
"""Measure replicated writes: one multicast WRITE against a WRITE to one replica, to each of three, and down a chain of three. Then
measure a replicated volume, through its library and over NBD (nbdkit and fio).

All ways run in turns over NICs of one switch, unshaped and on links of 1 Gb/s; all data is read back. A WRITE to several replicas
ends when all have it. Ratios are taken within a round; the median, least and greatest are printed. CPU time is that of writer,
replicas and switch, over NBD also of nbdkit and fio; the writer's alone is its program's and its NIC's. It is measured in WRITEs of
their own, between which the writer sleeps. A volume's is that of the timed writes, with the writer's polling.

--groups sender multicasts by a sender group. MC-RDMA fig. 4: the sender's CPU time is less than half of that of two connections.

A volume's rivals are the plain WRITEs of the same round, which keep no record, no order and handle no failure.
"""

import json
import subprocess
import sys
import tempfile
import time

from bcast import LINKS
from fabric import Fabric
from records import Records, human, parse, percentile
from volume_process import Replica, Volume, on_host

KIB, MIB = 1 << 10, 1 << 20
REPLICAS = 3
DEPTHS = [1, 8, 64]
LATENCY_SIZES = [512, 8 * KIB, 64 * KIB, 512 * KIB, 4 * MIB]
PLAIN = {"multicast": "multicast", "one": "one replica", "each": "each of three", "chain": "chain of three"}
VOLUME = {"multicast": "multicast", "each": "each of three", "volume": "volume, library", "nbd": "volume, NBD"}
VOLUME_SIZE = 16 * MIB
SPAN = 4 * MIB  # as volume_bench has it
ENDING_SECONDS = 60


class Party:
    """A process that measures a round for each line that it is sent."""

    def __init__(self, command, env):
        self.process = subprocess.Popen([str(word) for word in command], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def round(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        rows = []
        for line in self.process.stdout:
            if line == "\n":
                return rows
            rows.append(json.loads(line))
        sys.exit("bench storage: a process failed")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            if self.process.wait(ENDING_SECONDS) != 0:
                sys.exit("bench storage: a process failed")
        finally:
            self.process.kill()


class PlainWrites:
    """WRITEs of storage_bench's four processes, on hosts 0 to 3."""

    def __init__(self, build, fabric, cases, seconds, groups):
        self.build, self.fabric, self.groups = build, fabric, groups
        self.directory = fabric.directory / "meeting"
        self.directory.mkdir()
        self.replicas = [subprocess.Popen(self.command(rank), env=on_host(build, fabric.socket, rank)) for rank in range(1, REPLICAS + 1)]
        words = ["--switch", str(fabric.pid), "--seconds", str(seconds), *(f"{size}:{depth}" for size, depth in cases)]
        self.writer = Party([*self.command(0), *words], on_host(build, fabric.socket, 0))

    def command(self, rank):
        return [str(word) for word in (self.build / "bench/storage_bench", "--rank", rank, "--replicas", REPLICAS, "--directory", self.directory,
                                       *(["--sender-group"] if self.groups == "sender" else []))]

    def round(self):
        return self.writer.round()

    def close(self):
        try:
            self.writer.close()
            if any(replica.wait(ENDING_SECONDS) != 0 for replica in self.replicas):
                sys.exit("bench storage: a process failed")
        finally:
            for replica in self.replicas:
                replica.kill()


class LibraryWrites:
    """Writes to a volume through its library, from host 4; its replicas are on hosts 5 to 7."""

    def __init__(self, build, fabric, cases, seconds):
        host = REPLICAS + 1
        self.directory = tempfile.TemporaryDirectory(prefix="cepheus-bench-")
        self.replicas = [Replica(build, fabric.socket, host + i, self.directory.name, VOLUME_SIZE) for i in range(1, REPLICAS + 1)]
        for replica in self.replicas:
            replica.start()
        pids = [word for pid in (fabric.pid, *(r.process.pid for r in self.replicas)) for word in ("--pid", pid)]
        self.writer = Party([build / "bench/volume_bench", "--volume", "volume", "--replicas", ",".join(r.address for r in self.replicas), *pids,
                             "--seconds", seconds, *(f"{size}:{depth}" for size, depth in cases)], on_host(build, fabric.socket, host))

    def round(self):
        return self.writer.round()

    def close(self):
        try:
            self.writer.close()
        finally:
            for replica in self.replicas:
                replica.kill()
            self.directory.cleanup()


def cpu_us(pid):
    """CPU time of a process so far."""
    return time.clock_gettime_ns(~pid << 3 | 2) / 1e3  # as clock_getcpuclockid() has it


class NbdWrites:
    """Writes to a volume by fio over NBD. The server is on host 8, the replicas on hosts 9 to 11."""

    def __init__(self, build, fabric, cases, seconds):
        self.volume = Volume(build, fabric, REPLICAS, VOLUME_SIZE, host=2 * (REPLICAS + 1))
        self.cases, self.seconds = cases, seconds
        self.pids = [fabric.pid, self.volume.nbd.pid, *(replica.process.pid for replica in self.volume.replicas)]

    def round(self):
        return [self.run(size, depth) for size, depth in self.cases]

    def run(self, size, depth):
        out = self.volume.directory / "fio.json"
        command = ["fio", "--name=nbd", "--ioengine=nbd", f"--uri={self.volume.uri}", "--rw=randwrite", f"--bs={size}", f"--size={SPAN}",
                   f"--iodepth={depth}", "--time_based", f"--runtime={round(self.seconds * 1000)}ms", "--norandommap", "--refill_buffers=0",
                   "--output-format=json", f"--output={out}"]
        before = sum(map(cpu_us, self.pids))
        done = subprocess.run(command, cwd=self.volume.directory, check=False)
        used = sum(map(cpu_us, self.pids)) - before
        if done.returncode != 0:
            sys.exit("bench storage: fio failed")
        text = out.read_text()
        job = json.loads(text[text.index("{"):])["jobs"][0]
        writes, n = job["write"], job["write"]["total_ios"]
        fio = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e3  # without its start
        return {"way": "nbd", "size": size, "depth": depth, "rate": writes["iops"], "median": writes["clat_ns"]["percentile"]["50.000000"] / 1e3,
                "n": n, "cpu": (used + fio) / n}

    def close(self):
        self.volume.close()


def spread(values):
    return percentile(values, 0.5), min(values), max(values)


def ratios(rows, way, rival, figure):
    """`way` over `rival`, round by round."""
    return [mine[figure] / theirs[figure] for mine, theirs in zip(rows[way], rows[rival])]


class Table:
    """A figure of several ways, and how some of them compare to others."""

    def __init__(self, ways, pairs, rows, records, link):
        self.ways, self.pairs = ways, pairs
        self.rows, self.records, self.link = rows, records, link

    def show(self, title, cases, label, figure, unit, scale):
        heads = [f"{way}/{rival}" for way, rival in self.pairs]
        print(f"\n{title}")
        print(f"  {'':<8}" + "".join(f"{name:>17}" for name in self.ways.values()) + "".join(f"{head:>22}" for head in heads))
        for case in cases:
            by_way = {way: [row for row in self.rows if (row["size"], row["depth"], row["way"]) == (*case, way)] for way in self.ways}
            line = f"  {label(case):<8}"
            for way in self.ways:
                median, low, high = spread([row[figure] * scale for row in by_way[way]])
                self.add(case, way, figure, unit, (median, low, high), len(by_way[way]))
                line += f"{median:>17.1f}"
            for (way, rival), head in zip(self.pairs, heads):
                median, low, high = spread(ratios(by_way, way, rival, figure))
                self.add(case, head, figure + " ratio", "1", (median, low, high), len(by_way[rival]))
                line += f"{f'{median:.2f} ({low:.2f}..{high:.2f})':>22}"
            print(line)

    def add(self, case, impl, figure, unit, values, n):
        self.records.add(f"depth {case[1]}", impl, figure, unit, *values, n, case[0], REPLICAS + 1, self.link)


def measure(build, link, scope, records):
    iops = [(8 * KIB, depth) for depth in DEPTHS]
    latency = [(size, 1) for size in scope.sizes]
    rows, parties = [], []
    with Fabric(build, 3 * (REPLICAS + 1), link=LINKS[link]) as fabric:
        try:
            parties.append(PlainWrites(build, fabric, list(dict.fromkeys(iops + latency)), scope.seconds, scope.groups))
            parties.append(LibraryWrites(build, fabric, iops, scope.seconds))
            parties.append(NbdWrites(build, fabric, iops, scope.seconds))
            for number in range(scope.rounds):
                for i in range(len(parties)):  # in another order each round
                    rows += parties[(i + number) % len(parties)].round()
        finally:
            for party in parties:
                party.close()
    about = "1 Gb/s and 100 us a link" if link == "shaped" else "links as fast as two processors make them"
    by_depth = lambda case: str(case[1])  # noqa: E731
    plain = Table(PLAIN, [("multicast", rival) for rival in ("one", "each", "chain")], rows, records, link)
    plain.show(f"8-KiB WRITEs, thousands a second, by WRITEs under way; {about}", iops, by_depth, "rate", "k/s", 1e-3)
    plain.show(f"8-KiB WRITEs, CPU time of all processes a WRITE, us; {about}", iops, by_depth, "cpu", "us", 1)
    plain.show(f"..., of the writer's program and NIC alone, us; {about}", iops, by_depth, "writer", "us", 1)
    plain.show(f"Latency of a WRITE alone, us; {about}", latency, lambda case: human(case[0]), "median", "us", 1)
    volume = Table(VOLUME, [(way, rival) for way in ("volume", "nbd") for rival in ("multicast", "each")], rows, records, link)
    volume.show(f"8-KiB writes to a volume beside plain WRITEs, thousands a second, by writes under way; {about}", iops, by_depth, "rate",
                "k/s", 1e-3)
    volume.show(f"..., CPU time of all processes a write, a volume's with its writer's polling, us; {about}", iops, by_depth, "cpu", "us", 1)
    volume.show(f"..., latency, us; {about}", iops, by_depth, "median", "us", 1)


class Scope:
    """How much is measured."""

    def __init__(self, quick, groups):
        self.groups = groups
        self.rounds = 3 if quick else 9
        self.seconds = 0.15 if quick else 0.4
        self.sizes = [512, 8 * KIB, 512 * KIB] if quick else LATENCY_SIZES


def main():
    options = parse("storage", __doc__, "run fewer rounds and sizes, in a minute", {
        "--groups": dict(choices=["cepheus", "sender"], default="cepheus", help="multicast by these groups (default: cepheus)")})
    build = options.build
    records = Records("storage")
    print(f"{REPLICAS} replicas, emulated, multicast by {options.groups} groups. Medians of rounds; ratios: median (least..greatest) of the first one's figure over the second's.\n"
          "A volume writes by multicast only: it is compared with the plain WRITEs of the same rounds.")
    for link in LINKS:
        measure(build, link, Scope(options.quick, options.groups), records)
    records.save(options.json)


if __name__ == "__main__":
    main()
