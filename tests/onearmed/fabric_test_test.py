#!/usr/bin/python3
"""`cepheus fabric-test` on a host before a one-armed box: green on a good network, and each planted fault has its name.

Exit code 77: this machine can't have network namespaces; the message has the reason.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import unittest

from namespaces import BUILD, ROUTE_OF_POOL, WIRE_MTU, CantHave, Network, Site, at_a_mount, ip
from live import Switch

SKIP = 77
WAIT = "1.5"  # seconds for an answer
HOST, OTHER, BOX = "10.0.0.1", "10.0.1.1", "10.0.0.254"
TOPOLOGY = """
[fabric]
mtu = {mtu}
one_armed = "eth0"
[[switch]]
name = "s0"
{switch}
[[host]]
name = "h0"
address = "{host}"
[[host]]
name = "h1"
address = "10.0.0.2"
"""
# A box beside the switch: one interface for each host, which sees VLAN tags. For a one-armed box the kernel removes them.
BESIDE = """
[[host]]
name = "h0"
address = "{host}"
interface = "eth0"
"""


class Wire(Network):
    """Host h0 and the box, with a faulty wire between them; the host has a second NIC, eth1, that leads nowhere."""

    count = 0

    def __init__(self, fault="none"):
        super().__init__()
        Wire.count += 1
        self.fault, self.prefix = fault, f"cepheus{os.getpid()}w{Wire.count}"

    def _make(self, stack):
        for which, address in (("net", None), ("box", BOX), ("h0", HOST)):
            ip("netns", "add", self.name(which))
            stack.callback(subprocess.run, ["ip", "netns", "del", self.name(which)], check=False)
            self._in(which, "link", "set", "lo", "up")
            if address is None:
                continue
            ip("link", "add", "name", "eth0", "mtu", WIRE_MTU, "netns", self.name(which), "type", "veth",
               "peer", "name", which, "mtu", WIRE_MTU + 4, "netns", self.name("net"))
            self._in("net", "link", "set", which, "up")
            self._in(which, "address", "add", f"{address}/24", "dev", "eth0")
            self._in(which, "link", "set", "eth0", "up")
        self._in("h0", *ROUTE_OF_POOL, "via", BOX)
        self._in("h0", "link", "add", "eth1", "type", "veth", "peer", "name", "far")
        self._in("h0", "address", "add", f"{OTHER}/24", "dev", "eth1")
        for side in ("eth1", "far"):
            self._in("h0", "link", "set", side, "up")
        self.sysctl("h0", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.eth0.rp_filter=0")
        wire = [*self.inside("net"), sys.executable, str(pathlib.Path(__file__).with_name("faulty_wire.py")), self.fault, "h0", "box"]
        process = stack.enter_context(subprocess.Popen(wire, stdout=subprocess.PIPE, text=True))
        stack.callback(process.kill)
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(f"the wire with fault {self.fault} did not start")

    def host(self, *words):
        self._in("h0", *words)

    def sysctl(self, which, *settings):
        self._run(which, "sysctl", "-qw", *settings)

    def examine(self, *arguments):
        """The report."""
        command = [*self.inside("h0"), BUILD / "bin/cepheus", "fabric-test", "--json", "-", "--wait", WAIT, *arguments]
        run = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=120)
        report = json.loads(run.stdout)
        assert run.returncode == (0 if report["ok"] else 1), run.stderr
        return report


def examine(fault="none", change=lambda wire: None, arguments=(), topology=TOPOLOGY, **settings):
    """A fresh network's report."""
    with Wire(fault) as wire, contextlib.ExitStack() as stack:
        stack.enter_context(Switch(topology=topology.format(**{"mtu": 4096, "switch": "", "host": HOST, **settings}),
                                   before=wire.inside("box")))
        change(wire)
        return wire.examine(*arguments)


def without_route(wire):
    wire.host("route", "del", ROUTE_OF_POOL[2])


def into_nowhere(wire):
    without_route(wire)
    wire.host(*ROUTE_OF_POOL[:1], "add", "blackhole", ROUTE_OF_POOL[2])


def on_link(wire):
    without_route(wire)
    wire.host(*ROUTE_OF_POOL, "dev", "eth0")


def by_the_other(wire):
    without_route(wire)
    wire.host(*ROUTE_OF_POOL, "via", "10.0.1.2", "dev", "eth1")


def filter_reverse_paths(wire):
    wire.sysctl("h0", "net.ipv4.conf.eth0.rp_filter=1")


# Each: its cause's name, the step that names it, and what is planted.
PLANTED = [
    ("no-route", "route", {"change": without_route}),
    ("no-route", "route", {"change": into_nowhere}),
    ("wrong-interface", "route", {"change": by_the_other, "arguments": ("--interface", "eth0")}),
    ("no-neighbour", "answer", {"change": by_the_other}),
    ("no-neighbour", "answer", {"fault": "no-arp"}),
    ("no-answer", "answer", {"switch": "probe_rate = 0"}),
    ("no-answer", "answer", {"host": "10.0.0.9"}),
    ("filter-new-ports", "answer", {"fault": "filter-new-ports"}),
    ("filter-source", "switch address", {"fault": "filter-sources"}),
    ("rp-filter", "switch address", {"change": filter_reverse_paths}),
    ("vlan-tag", "tag", {"fault": "tag", "topology": BESIDE, "change": on_link}),
    ("roce-port", "roce port", {"fault": "no-roce"}),
    ("mtu-host", "sizes", {"change": lambda wire: wire.host("link", "set", "eth0", "mtu", "1500")}),
    ("mtu-box", "sizes", {"mtu": 1024}),
    ("mtu-network", "sizes", {"fault": "small-towards-box"}),
    ("mtu-network", "sizes", {"fault": "small-towards-host"}),
    ("tos-rewritten", "traffic class", {"fault": "bleach"}),
    ("tos-rewritten", "traffic class", {"fault": "bleach-back"}),
    ("ecn-erased", "traffic class", {"fault": "erase-ecn"}),
    ("order", "order", {"fault": "reorder"}),
    ("burst-loss", "order", {"fault": "lossy"}),
    ("duplicates", "order", {"fault": "twice"}),
]


class FabricTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with concurrent.futures.ThreadPoolExecutor(6) as pool:  # nearly all time goes into waiting for answers
            cls.good = pool.submit(examine)
            cls.beside = pool.submit(examine, topology=BESIDE, change=on_link)
            cls.small = pool.submit(examine, arguments=("--mtu", "1024"), mtu=1024)
            cls.planted = [pool.submit(examine, **plant) for _, _, plant in PLANTED]

    def test_a_good_network_passes(self):
        report = self.good.result()
        self.assertTrue(report["ok"], json.dumps(report, indent=1))
        self.assertEqual([step["name"] for step in report["steps"]], ["identity", "route", "answer", "switch address", "tag", "hops",
                                                                      "roce port", "sizes", "traffic class", "order"])

    def test_a_box_beside_the_switch_passes(self):
        report = self.beside.result()
        self.assertTrue(report["ok"], json.dumps(report, indent=1))

    def test_a_network_with_small_packets_passes(self):
        report = self.small.result()
        self.assertTrue(report["ok"], json.dumps(report, indent=1))

    def test_each_planted_fault_is_named(self):
        for (cause, step, plant), outcome in zip(PLANTED, self.planted):
            with self.subTest(cause, **plant):
                report = outcome.result()
                failed = [(one["name"], one["cause"]) for one in report["steps"] if not one["ok"]]
                self.assertEqual(failed, [(step, cause)], json.dumps(report["steps"][1:], indent=1))
                self.assertTrue(all(one["todo"] for one in report["steps"] if not one["ok"]))

    def test_a_network_of_small_packets_has_its_largest_named(self):
        sizes = [one for one in self.planted[14].result()["steps"] if one["name"] == "sizes"][0]
        self.assertEqual(sizes["data"]["largest"], 1500)
        sizes = [one for one in self.planted[15].result()["steps"] if one["name"] == "sizes"][0]
        self.assertEqual(sizes["data"]["largest"], 3000)


class WithAPeer(unittest.TestCase):
    """Hosts h0 and h1 with the emulated NIC, behind a plain bridge."""

    def examine(self, odd_nic=""):
        with Site() as site, contextlib.ExitStack() as stack:
            def command(host, *arguments):
                return [*site.network.inside(f"h{host}"), "env", f"CEPHEUS_FABRIC={site.directory}/h{host}",
                        f"LD_PRELOAD={BUILD}/tests/odd_nic.so {BUILD}/lib/libcepheus-roce.so", f"ODD_NIC={odd_nic}",
                        BUILD / "bin/cepheus", "fabric-test", "--wait", WAIT, *arguments]

            peer = stack.enter_context(subprocess.Popen(list(map(str, command(1, "--serve", "--source", site.network.hosts[1]))),
                                                        stdout=subprocess.PIPE, text=True))
            stack.callback(peer.kill)
            self.assertIn("serving", peer.stdout.readline())
            run = subprocess.run(list(map(str, command(0, "--json", "-", "--peer", site.network.hosts[1]))), text=True, capture_output=True,
                                 timeout=200)
            return json.loads(run.stdout) if run.stdout else self.fail(run.stderr)

    def test_two_nics_pass(self):
        report = self.examine()
        self.assertTrue(report["ok"], json.dumps(report["steps"][1:], indent=1))
        steps = {step["name"]: step["data"] for step in report["steps"]}
        self.assertEqual([step["name"] for step in report["steps"]][10:], ["queue pair", "data", "source change", "time out", "nak", "ack",
                                                                           "burst", "copies", "psns", "rnr", "reset"])
        self.assertGreater(steps["time out"]["repeat_us"], 10_000, "the NIC's time-out, not the switch, brings the last packet")
        for step in ("time out", "nak", "ack"):
            self.assertEqual(steps[step]["drops"], steps["time out"]["drops"] + ("time out", "nak", "ack").index(step))

    def test_each_fault_of_a_nic_is_named(self):
        for cause, step, odd_nic in (("frozen-psn", "psns", "frozen-psn"), ("finite-rnr", "rnr", "finite-rnr"),
                                     ("no-reset", "reset", "no-reset"), ("queue-pair", "queue pair", "no-qpn-1")):
            with self.subTest(cause):
                report = self.examine(odd_nic)
                failed = [(one["name"], one["cause"]) for one in report["steps"] if not one["ok"]]
                self.assertEqual(failed[:1], [(step, cause)], json.dumps(report["steps"][10:], indent=1))


if __name__ == "__main__":
    at_a_mount()
    try:
        with Wire():
            pass
    except CantHave as reason:
        print(f"fabric_test: skipped: {reason}", file=sys.stderr)
        sys.exit(SKIP)
    unittest.main()
