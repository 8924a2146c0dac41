#!/usr/bin/python3
"""Write to a volume on three replicas by fio over NBD, while a replica dies and returns; read all data back and compare the replicas."""

import argparse
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from switch_process import Switch  # noqa: E402
from volume_process import Volume  # noqa: E402

MIB = 1 << 20
VICTIM = 1  # in the volume's list
TIME_LIMIT = 120


class Fio:
    """Random writes to the whole volume, later read back and compared. fio logs the time of each write."""

    def __init__(self, volume, size, rate):
        self.log, self.result = volume.directory / "writes", volume.directory / "fio.json"
        command = ["fio", "--name=writes", "--ioengine=nbd", f"--uri={volume.uri}", "--rw=randwrite", "--bs=8k", "--iodepth=16",
                   f"--size={size}", f"--rate_iops={rate}", "--verify=crc32c", "--verify_fatal=1", f"--write_lat_log={self.log}",
                   "--output-format=json", f"--output={self.result}"]
        self.process = subprocess.Popen(command, cwd=volume.directory)

    def wait(self):
        return self.process.wait(TIME_LIMIT) == 0

    def counts(self):
        """Writes that were acknowledged, reads that were right."""
        text = self.result.read_text()
        job = json.loads(text[text.index("{"):])["jobs"][0]
        return job["write"]["total_ios"], job["read"]["total_ios"]

    def longest_gap(self):
        """Milliseconds between two writes that were done one after the other."""
        rows = [line.split(",") for line in pathlib.Path(f"{self.log}_lat.1.log").read_text().splitlines()]
        done = [int(row[0]) for row in rows if row[2].strip() == "1"]
        return max(after - before for before, after in zip(done, done[1:]))


class Clock:
    def __init__(self):
        self.start = time.monotonic()

    def note(self, text):
        print(f"  {time.monotonic() - self.start:5.1f} s  {text}", flush=True)


def demo(build, megabytes, rate):
    size = megabytes * MIB
    with Switch(build, "--hosts", "4") as switch, Volume(build, switch, size=size) as volume:
        print(f"a volume of {megabytes} MiB: replicas on hosts h1, h2, h3, and nbdkit on h0, over one switch")
        clock = Clock()
        before = next(port for port in switch.ports() if port["name"] == "h0")["rx_payload_bytes"]
        fio = Fio(volume, size, rate)
        clock.note(f"fio writes the whole volume in random order, 8 KiB at a time, {rate} writes per second")
        time.sleep(size / 8192 / rate / 4)
        volume.replicas[VICTIM].kill()
        clock.note("the replica on h2 is killed")
        volume.wait_for_sync(2)
        clock.note("writes go to the two others; the volume marks the chunks that h2 misses")
        time.sleep(size / 8192 / rate / 4)
        volume.replicas[VICTIM].start()
        clock.note("the replica on h2 is started again")
        volume.wait_for_sync(3)
        clock.note("the replica on h2 has all data and is in sync again")
        if not fio.wait():
            print("storage demo: fio found wrong data, or failed", file=sys.stderr)
            return 1
        writes, reads = fio.counts()
        clock.note(f"fio has read all data back: {writes} writes acknowledged, {reads} reads correct")
        volume.wait_for_sync(3)  # a busy machine may have kept one from answering for a second
        sent = next(port for port in switch.ports() if port["name"] == "h0")["rx_payload_bytes"] - before
        volume.stop_nbd()
        check = volume.check()
        sys.stdout.write(check.stdout)
        sys.stderr.write(check.stderr)
        if check.returncode != 0:
            return 1
        clock.note("the replicas are equal")
        print(f"longest time without a finished write: {fio.longest_gap()} ms")
        print(f"h0's link transmitted {sent / (writes * 8192):.2f} times the written bytes: once for all replicas, and the copies for the returned one")
    return 0


def main():
    parser = argparse.ArgumentParser(prog="./run demo-storage", description=__doc__)
    parser.add_argument("--size", type=int, default=128, metavar="MIB", help="make a volume of this size in MiB, 16 to 4096 (default: 128)")
    parser.add_argument("--rate", type=int, default=1500, metavar="N", help="write N times per second (default: 1500)")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 16 <= options.size <= 4096 or options.rate < 1:
        parser.error("give a size of 16 to 4096 MiB, and a rate of 1 or more")
    try:
        return demo(pathlib.Path(options.build).resolve(), options.size, options.rate)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"storage demo: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
