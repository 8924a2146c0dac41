#!/usr/bin/python3
"""One sender and seven receivers on a leaf-spine fabric that loses packets on every link: messages and multicast WRITEs of a
sender group (MC-RDMA's multicast), every byte compared, with each method of branching.

As a test: some MiB. As a command: sender_stream_test.py --mib 1024 [--loss 0.01] [--branch everywhere|racks].
"""

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
import unittest

from harness import BUILD
from live import Switch

HOSTS, LEAVES, SPINES = 8, 2, 2
WAYS = ("everywhere", "racks")


def leaf_spine(branch, loss):
    """A topology file: hosts h0.. at two leaves under two spines, all links alike."""
    lines = ["[link]", f"loss = {loss}"]
    for name in [f"l{i}" for i in range(LEAVES)] + [f"s{i}" for i in range(SPINES)]:
        lines += ["[[switch]]", f'name = "{name}"', f'sender_groups = "{branch}"']
    for i in range(HOSTS):
        lines += ["[[host]]", f'name = "h{i}"', f'address = "10.0.0.{i + 1}"', f'switch = "l{i % LEAVES}"']
    for leaf in range(LEAVES):
        for spine in range(SPINES):
            lines += ["[[trunk]]", f'between = ["l{leaf}", "s{spine}"]']
    return "\n".join(lines) + "\n"


def await_end(processes, seconds):
    """Waits until all have succeeded, or one has failed: others would wait for that one for ever."""
    give_up = time.monotonic() + seconds
    running = {os.pidfd_open(process.pid): process for process in processes}
    try:
        while running:
            ended = select.select(list(running), [], [], max(0, give_up - time.monotonic()))[0]
            if not ended or any(running[fd].wait() != 0 for fd in ended):
                return
            for fd in ended:
                os.close(fd)
                del running[fd]
    finally:
        for fd in running:
            os.close(fd)


def stream(branch, mib, loss, seconds):
    """([(exit code, output) of each rank], packets that the switches lost, replicas by switch)."""
    with Switch(topology=leaf_spine(branch, loss)) as switch, tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "CEPHEUS_FABRIC": switch.socket, "LD_PRELOAD": str(BUILD / "lib/libcepheus-roce.so"),
                       "STREAM_MIB": str(mib)}
        processes = [subprocess.Popen([BUILD / "tests/mcast_sender_stream", str(rank), str(HOSTS), directory],
                                      env={**environment, "CEPHEUS_HOST": f"h{rank}"}, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT) for rank in range(HOSTS)]
        try:
            await_end(processes, seconds)
            status = switch.status()
        finally:
            for process in processes:
                process.kill()
            results = [(process.wait(), process.stdout.read()) for process in processes]
            for process in processes:
                process.stdout.close()
    lost = sum(port[way]["dropped_loss"] for one in status["switches"] for port in one["ports"] for way in ("in", "out"))
    taken = {one["name"]: one["counters"].get("sender_data_taken", 0) for one in status["switches"]}
    return results, lost, taken


class SenderStream(unittest.TestCase):
    def test_every_byte_reaches_all_receivers(self):
        for branch in WAYS:
            with self.subTest(branch):
                results, lost, taken = stream(branch, 8, 0.01, 240)
                self.assertEqual([code for code, _ in results], [0] * HOSTS, results)
                self.assertGreater(lost, 100, "the links lost nothing: the test tested nothing")
                self.assertGreater(taken["l0"], 0)
                self.assertGreater(taken["l1"], 0)
                if branch == "racks":
                    self.assertEqual((taken["s0"], taken["s1"]), (0, 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, required=True, help="send this many MiB each way, by messages and by WRITEs")
    parser.add_argument("--loss", type=float, default=0.01, metavar="P", help="lose each frame with this probability on every link (default: 0.01)")
    parser.add_argument("--branch", choices=WAYS, default="everywhere")
    options = parser.parse_args()
    results, lost, taken = stream(options.branch, options.mib, options.loss, 3600)
    for rank, (code, output) in enumerate(results):
        print(f"rank {rank}, exit {code}: {output.strip()}")
    print(f"{lost} packets were lost on the way; data met a rule: {taken}")
    return max(abs(code) for code, _ in results)


if __name__ == "__main__":
    if "--mib" in sys.argv:
        sys.exit(main())
    unittest.main()
