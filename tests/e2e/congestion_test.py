#!/usr/bin/python3
"""A multicast and a unicast over one slow trunk with a marking queue: NICs with DCQCN keep the queue short, and share it fairly.

As a test: some seconds. As a command: congestion_test.py --times N [--mib M] [--control WORDS] prints both rates and Jain's index.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from harness import BUILD, mca_arguments
from live import Lines, LiveRun, Switch, wait_until
from switch_process import star
from tcp_ports import free_port, is_listening

RATE = 100  # Mb/s: the machine is not the bottleneck, and a rate lasts longer than ranks wait for processors
FAIR = 0.95  # Jain's index: 1 is equal rates, 0.5 is all for one of two
TOPOLOGY = f"""
[[switch]]
name = "s0"
[[switch]]
name = "s1"
[[trunk]]
between = ["s0", "s1"]
link = {{ rate = "{RATE}Mbps", ecn = {{ kmin = "40KB", kmax = "400KB", pmax = 0.1 }} }}
""" + "".join(f'[[host]]\nname = "h{i}"\naddress = "10.0.0.{i + 1}"\nswitch = "s{int(i > 1)}"\n' for i in range(5))
# The published times are for links of 40 Gb/s and more: here a packet alone takes 330 us.
CONTROL = (f"orig,link_mbps={RATE},cnp_interval_us=4000,alpha_timer_us=12000,rate_timer_us=12000,additive_mbps=1.25,hyper_mbps=5,"
           "min_mbps=1.25,byte_counter=0")
# The same without congestion control: switches pause fast senders, and nothing is lost.
LOSSLESS = TOPOLOGY.replace("ecn = { kmin = \"40KB\", kmax = \"400KB\", pmax = 0.1 }", "queue = \"32KiB\", pfc = true")
LOSSLESS = LOSSLESS.replace("[[host]]\n", "[[host]]\nlink = { rate = \"1Gbps\", queue = \"32KiB\", pfc = true }\n")
MARKING = f'link = {{ rate = "{RATE}Mbps", ecn = {{ kmin = "16KB", kmax = "400KB", pmax = 0.1 }} }}\n'
# A group's four members; the links of h2 and h3 are slow.
TWO_SLOW = star(2) + "".join(f'[[host]]\nname = "h{i}"\naddress = "10.0.0.{i + 1}"\n{MARKING}' for i in (2, 3))
SETTLING = 16 << 20  # bytes of each: seconds
INTERVAL = 4 << 20
MULTICAST, UNICAST = "h2", "h3"  # receivers of each


class Rivals:
    """MPI_Bcast from h0 to h2 and h4, and ib_write_bw from h1 to h3, until the block ends."""

    def __init__(self, control=None, topology=TOPOLOGY):
        self.environment = {**os.environ, **({"CEPHEUS_CONGESTION": control} if control else {})}
        self.mca = mca_arguments({"coll_cepheus_mode": "require", "coll_cepheus_verbose": 1})
        self.switch = Switch(topology=topology)
        self.scratch = tempfile.TemporaryDirectory(prefix="cepheus-congestion-")
        self.processes, self.outputs = [], []

    def start(self, command, **environment):
        process = subprocess.Popen(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   env={**self.environment, **environment}, cwd=self.scratch.name)
        self.processes.append(process)
        self.outputs.append(Lines(process.stdout))

    def __enter__(self):
        job = [BUILD / "bin/cepheus-run", "--fabric", self.switch.socket, "--on", "h0,h2,h4", "--", "-np", 3,
               *self.mca, BUILD / "tests/mpi/broadcast_check",
               "--until", "never", "--size", 16 << 20, "--max", 16 << 20, "--root", 0]
        self.start(job)
        port = free_port()
        perftest = ["ib_write_bw", "-d", "cepheus0", "-x", 0, "-F", "-p", port, "-s", 65536, "--run_infinitely"]
        preload = {"LD_PRELOAD": str(BUILD / "lib/libcepheus-roce.so"), "CEPHEUS_FABRIC": self.switch.socket}
        self.start(perftest, CEPHEUS_HOST="h3", **preload)
        try:
            wait_until(lambda: is_listening(port) or self.has_ended(), "perftest's server")
            self.start([*perftest, "127.0.0.1"], CEPHEUS_HOST="h1", **preload)
            self.receive(4 << 20)
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        self.switch.close()
        self.scratch.cleanup()

    def received(self):
        ports = {port["name"]: port["tx_payload_bytes"] for port in self.switch.ports()}
        return {"multicast": ports[MULTICAST], "unicast": ports[UNICAST]}

    def has_ended(self):
        return any(process.poll() is not None for process in self.processes)

    def receive(self, more):
        """Waits until each has received `size` more bytes."""
        goal = {name: got + more for name, got in self.received().items()}
        wait_until(lambda: self.has_ended() or all(got >= goal[name] for name, got in self.received().items()), self.outputs)
        if self.has_ended():
            raise RuntimeError("a program has ended\n" + self.outputs())

    def outputs(self):
        return "\n".join(lines.text() for lines in self.outputs)

    def rates(self, more):
        """Mb/s of each, until each has received `size` more bytes."""
        before, since = self.received(), time.monotonic()
        self.receive(more)
        after, took = self.received(), time.monotonic() - since
        return {name: 8e-6 * (after[name] - before[name]) / took for name in after}

    def counted(self, name):
        return sum(port["counters"].get(name, 0) for switch in self.switch.status()["switches"] for port in switch["ports"])


class ShortTurns(LiveRun):
    """Broadcasts whose roots take turns: a turn has five CNPs of a receiver at most, and a choice takes 16."""

    def __init__(self):
        with mock.patch.dict(os.environ, CEPHEUS_CONGESTION=CONTROL):
            super().__init__("--size", 256 << 10, "--max", 256 << 10, "--root", "rotate", mca={"coll_cepheus_mode": "require"})

    def fabric(self, arguments, program):
        return Switch(topology=TWO_SLOW)

    def chosen(self):
        """Of each group with a choice: the port with CNPs that its source gets."""
        groups = self.switch.status()["switches"][0]["groups"]
        return {group["id"]: path["name"] for group in groups for path in group["paths"] if path["is_worst"]}

    def filtered(self):
        return sum(port["counters"].get("cnp_filtered", 0) for port in self.switch.ports())


def jain(shares):
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


class Congestion(unittest.TestCase):
    # They converge in seconds. In an interval the machine may have kept one of the programs from running.
    def test_multicast_and_unicast_over_one_trunk_share_it(self):
        with Rivals(CONTROL) as rivals:
            seen = []

            def is_shared():
                seen.append(rivals.rates(INTERVAL))
                return jain(list(seen[-1].values())) > FAIR and sum(seen[-1].values()) > 0.5 * RATE

            wait_until(is_shared, lambda: f"fair shares of the trunk, in Mb/s: {seen}")
            marks, packets = rivals.counted("ecn_marked"), sum(rivals.received().values()) / 4096
        self.assertGreater(marks, 0, "nothing was marked: the test tested nothing")
        self.assertLess(marks, packets / 2, "the queue is always long: no sender reacts to its marks")

    def test_lossless_links_pause_both_and_lose_nothing_of_either(self):
        with Rivals(topology=LOSSLESS) as rivals:
            before = rivals.received()
            rivals.receive(SETTLING)
            shares = [got - before[name] for name, got in rivals.received().items()]
            switches = rivals.switch.status()["switches"]
            for name in ("drop_headroom", "drop_link_share", "drop_link_no_slot", "drop_queue_share", "naks_forwarded"):
                self.assertEqual(rivals.counted(name), 0, name)
            dropped = sum(port[way]["dropped_queue_full"] for switch in switches for port in switch["ports"] for way in ("in", "out"))
            self.assertEqual(dropped, 0)
            self.assertGreater(rivals.counted("pauses_sent"), 0, "no sender was paused: the test tested nothing")
        self.assertGreater(min(shares), 0.05 * sum(shares), shares)

    def test_turns_too_short_for_a_choice_share_one(self):
        with ShortTurns() as run:
            had = set(wait_until(run.chosen, run.everything))
            goal = run.filtered() + 50

            def is_filtered():
                chosen = run.chosen()
                self.assertLessEqual(had, set(chosen), "a new source has ended the choice")
                self.assertLessEqual(set(chosen.values()), {"h2", "h3"})
                had.update(chosen)
                self.assertIsNone(run.process.poll(), run.everything())
                return run.filtered() >= goal

            wait_until(is_filtered, run.everything)
            self.assertEqual(run.finish(), 0, run.everything())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--mib", type=int, default=SETTLING >> 20, help="send this many MiB each time")
    parser.add_argument("--control", default=CONTROL)
    options = parser.parse_args()
    with Rivals(options.control) as rivals:
        for _ in range(options.times):
            rates = rivals.rates(options.mib << 20)
            print(f"{rates['multicast']:7.1f} {rates['unicast']:7.1f} Mb/s, Jain {jain(list(rates.values())):.3f}, "
                  f"{rivals.counted('ecn_marked')} marks", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("--"):
        sys.exit(main())
    unittest.main()
