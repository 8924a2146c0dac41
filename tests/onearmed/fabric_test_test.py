#!/usr/bin/python3
"""`cepheus fabric-test` on a host before a one-armed box: green on a good network, and each planted fault has its name.

Cases that need network namespaces are skipped where a machine can't have them; the message has the reason.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from namespaces import BUILD, PROJECT, ROUTE_OF_POOL, WIRE_MTU, CantHave, Network, Site, at_a_mount, ip
from live import Switch, wait_until

sys.path.append(str(PROJECT / "tools/fabric_test"))
from box import CAUSES  # noqa: E402
import pair  # noqa: E402

WAIT = "2.5"  # seconds for an answer
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


class FakeSys:
    """A sysfs for a box's switch, in which RoCE hardware comes to eth0."""

    def __init__(self, stack):
        self.directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cepheus-sys-")))
        (self.directory / "sys").mkdir()
        self.log = self.directory / "log"

    def before(self, command):
        """The first words of a command that sees it."""
        script = 'mount --bind "$0/sys" /sys && exec "$@" 2>"$0/log"'
        return [*command, "unshare", "--mount", "sh", "-c", script, self.directory]

    def add_roce(self):
        device = self.directory / "sys/class/infiniband/mlx5_0"
        for name, text in (("types/0", "RoCE v2\n"), ("ndevs/0", "eth0\n")):
            file = device / "ports/1/gid_attrs" / name
            file.parent.mkdir(parents=True)
            file.write_text(text)
        (device / "device").mkdir()
        (device / "device/driver").symlink_to("/sys/bus/pci/drivers/mlx5_core")

    def roce_comes(self):
        """The switch learns of it."""
        self.add_roce()
        wait_until(lambda: "enable_roce" in self.log.read_text(), "the switch's warning of RoCE hardware")


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

    def at_box(self, *words):
        self._in("box", *words)

    def sysctl(self, which, *settings):
        self._run(which, "sysctl", "-qw", *settings)

    def examine(self, *arguments):
        """The report."""
        command = [*self.inside("h0"), BUILD / "bin/cepheus", "fabric-test", "--json", "-", "--wait", WAIT, *arguments]
        run = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=120)
        report = json.loads(run.stdout)
        assert run.returncode == (0 if report["ok"] else 1), run.stderr
        return report


def topology_of(topology=TOPOLOGY, **settings):
    return topology.format(**{"mtu": 4096, "switch": "", "host": HOST, **settings})


def examine(fault="none", change=lambda wire: None, arguments=(), roce_comes=False, **settings):
    """A fresh network's report."""
    with Wire(fault) as wire, contextlib.ExitStack() as stack:
        box = wire.inside("box")
        fake = FakeSys(stack) if roce_comes else None
        stack.enter_context(Switch(topology=topology_of(**settings), before=fake.before(box) if fake else box))
        change(wire)
        if fake:
            fake.roce_comes()
        return wire.examine(*arguments)


def examine_box(with_roce=False, interface="eth0", mtu=None):
    """The report of the box itself, on which no switch runs yet."""
    with Wire() as wire, contextlib.ExitStack() as stack:
        fake = FakeSys(stack)
        if with_roce:
            fake.add_roce()
        if mtu:
            wire.at_box("link", "set", "eth0", "mtu", mtu)
        file = fake.directory / "fabric.toml"
        file.write_text(topology_of().replace('"eth0"', f'"{interface}"'))
        command = [*fake.before(wire.inside("box")), BUILD / "bin/cepheus", "fabric-test", "--box", file, "--json", "-"]
        run = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=120)
        return json.loads(run.stdout)


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
    ("roce-on", "roce port", {"fault": "no-roce", "roce_comes": True}),
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
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # nearly all time goes into waiting for answers
            cls.good = pool.submit(examine)
            cls.beside = pool.submit(examine, topology=BESIDE, change=on_link)
            cls.small = pool.submit(examine, arguments=("--mtu", "1024"), mtu=1024)
            cls.planted = [pool.submit(examine, **plant) for _, _, plant in PLANTED]

    def test_a_good_network_passes(self):
        report = self.good.result()
        self.assertTrue(report["ok"], json.dumps(report, indent=1))
        self.assertEqual([step["name"] for step in report["steps"]], ["identity", "route", "answer", "switch address", "tag", "hops",
                                                                      "box", "roce port", "sizes", "traffic class", "order"])

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
        reports = [outcome.result() for (cause, _, _), outcome in zip(PLANTED, self.planted) if cause == "mtu-network"]
        self.assertEqual([one["data"]["largest"] for report in reports for one in report["steps"] if one["name"] == "sizes"], [1500, 3000])


class TheBox(unittest.TestCase):
    def test_names_what_speaks_against_this_machine(self):
        for cause, step, plant in (("roce-on", "roce", {"with_roce": True}), ("mtu-box", "mtu", {"mtu": 1500}),
                                   ("no-interface", "interface", {"interface": "eth7"})):
            with self.subTest(cause):
                steps = {one["name"]: one for one in examine_box(**plant)["steps"]}
                self.assertEqual(steps[step]["cause"], cause, json.dumps(steps, indent=1))
                self.assertTrue(steps[step]["todo"])

    def test_a_good_machine_has_no_other_remark_than_about_its_cores(self):
        report = examine_box()
        self.assertEqual({one["name"] for one in report["steps"]}, {"cores", "roce", "mtu", "merging", "queues", "dropping", "routing"})
        self.assertEqual([one for one in report["steps"] if not one["ok"] and one["name"] != "cores"], [])


class ThePage(unittest.TestCase):
    def test_names_each_cause(self):
        sources = "".join(path.read_text() for path in sorted((PROJECT / "tools/fabric_test").glob("*.py")))
        causes = {*CAUSES.values(), *re.findall(r'failed\(\s*"([a-z-]+)"', sources), *re.findall(r'"(no-[a-z]+)"', sources)}
        self.assertGreater(len(causes), 30)
        page = (PROJECT / "docs/how-to/report-from-hardware.md").read_text()
        self.assertEqual([cause for cause in sorted(causes) if f"`{cause}`" not in page], [])


class WithAPeer(unittest.TestCase):
    """Hosts h0 and h1 with the emulated NIC, behind a plain bridge."""

    def examine(self, odd_nic="", odd_peer=None, environment=(), arguments=(), change=lambda site: None, rates=None):
        with Site(rates=rates) as site, contextlib.ExitStack() as stack:
            change(site)

            def command(host, odd_nic, *arguments):
                return [*site.network.inside(f"h{host}"), "env", f"CEPHEUS_FABRIC={site.directory}/h{host}", *environment,
                        f"LD_PRELOAD={BUILD}/tests/odd_nic.so {BUILD}/lib/libcepheus-roce.so", f"ODD_NIC={odd_nic}",
                        BUILD / "bin/cepheus", "fabric-test", "--wait", WAIT, *arguments]

            serve = command(1, odd_nic if odd_peer is None else odd_peer, "--serve", "--source", site.network.hosts[1])
            peer = stack.enter_context(subprocess.Popen(list(map(str, serve)), stdout=subprocess.PIPE, text=True))
            stack.callback(peer.kill)
            self.assertIn("serving", peer.stdout.readline())
            run = subprocess.run(list(map(str, command(0, odd_nic, "--json", "-", "--peer", site.network.hosts[1], *arguments))), text=True,
                                 capture_output=True, timeout=200)
            if odd_nic != "ends-early":  # which can't say that it leaves
                self.assertEqual(site.switch.status()["switches"][0]["groups"], [], run.stdout)
            return json.loads(run.stdout) if run.stdout else self.fail(run.stderr)

    def test_two_nics_pass(self):
        report = self.examine()
        self.assertTrue(report["ok"], json.dumps(report["steps"][1:], indent=1))
        steps = {step["name"]: step["data"] for step in report["steps"]}
        self.assertEqual([step["name"] for step in report["steps"]][11:], ["queue pair", "data", "source change", "time out", "nak", "ack",
                                                                           "burst", "copies", "cnps", "psns", "rnr", "reset"])
        self.assertGreater(steps["time out"]["repeat_us"], 10_000, "the NIC's time-out, not the switch, brings the last packet")
        for step in ("time out", "nak", "ack"):
            self.assertEqual(steps[step]["done"], steps["time out"]["done"] + ("time out", "nak", "ack").index(step))
        self.assertEqual(steps["cnps"]["cnps"], 1000)
        self.assertEqual(steps["cnps"]["counters"]["cepheus0 rx_cnp"], 1000)
        self.assertGreaterEqual(steps["copies"]["switch"]["packets"], 10_000)
        self.assertGreaterEqual(steps["rnr"]["rnrs"], 20)

    def test_a_nic_with_congestion_control_slows_down(self):
        report = self.examine(environment=["CEPHEUS_CONGESTION=orig"])
        self.assertTrue(report["ok"], json.dumps(report["steps"][11:], indent=1))
        step, = (one for one in report["steps"] if one["name"] == "cnps")
        self.assertIn("slow the NIC down", step["seen"])

    def test_each_fault_of_a_nic_is_named(self):
        for cause, step, plant in (("frozen-psn", "psns", {"odd_nic": "frozen-psn"}), ("finite-rnr", "rnr", {"odd_nic": "finite-rnr"}),
                                   ("no-reset", "reset", {"odd_nic": "no-reset"}), ("queue-pair", "queue pair", {"odd_nic": "no-qpn-1"}),
                                   ("work", "burst", {"odd_peer": "ends-early"}), ("work", "burst", {"odd_nic": "ends-early", "odd_peer": ""}),
                                   # Its rate can't fall below the link's.
                                   ("cnp-ignored", "cnps", {"odd_nic": "ignored-cnps",
                                                            "environment": ["CEPHEUS_CONGESTION=orig,min_mbps=100000"]}),
                                   # A NIC without a window, which sends 8,192 packets at once.
                                   ("slow-box", "burst", {"environment": ["CEPHEUS_NIC_PROFILE=connectx"], "rates": {"box": 100},
                                                          "arguments": ("--mtu", 1024)}),
                                   ("copies", "burst", {"change": lambda site: site.switch.set_links(["h1"], loss=0.01, direction="down")})):
            with self.subTest(cause):
                report = self.examine(**plant)
                failed = [(one["name"], one["cause"]) for one in report["steps"] if not one["ok"]]
                self.assertEqual(failed[:1], [(step, cause)], json.dumps(report["steps"][11:], indent=1))


class NicWithCounters:
    """A pair's NIC, as the step "cnps" uses it: counters that grow by so much, and the time that 8 MiB take."""

    dev, device, burst_us = None, "no-such-device", 1000

    def __init__(self, took_us, **counters):
        self.helper, self.took_us, self.growth = self, took_us, counters

    def counters(self):
        return self.growth

    def order(self, *_):
        return {"done": 0}

    def send(self, _):
        return self.took_us

    def watched(self, act):
        return act(), {"counters": self.growth, "switch": {"tos": 0x6A}}


class Cnps(unittest.TestCase):
    def test_each_drivers_counters_show_what_the_nic_does(self):
        for cause, nic in (("", NicWithCounters(1000, rp_cnp_handled=1000, rp_cnp_ignored=0)),
                           ("cnp-ignored", NicWithCounters(2000, rp_cnp_handled=0, rp_cnp_ignored=1000)),
                           ("cnp-lost", NicWithCounters(1000, rp_cnp_handled=0, rp_cnp_ignored=0)),
                           # bnxt_re does not count how many it obeys: the rate shows it.
                           ("", NicWithCounters(2000, rx_cnp_pkts=1000, tx_cnp_pkts=0)),
                           ("cnp-ignored", NicWithCounters(1000, rx_cnp_pkts=1000, tx_cnp_pkts=0)),
                           ("cnp-lost", NicWithCounters(1000, rx_cnp_pkts=0, tx_cnp_pkts=1000)),
                           ("", NicWithCounters(1000, cnpHandled=1000, cnpIgnored=0)),
                           ("", NicWithCounters(2000)), ("cnp-ignored", NicWithCounters(1000))):
            with self.subTest(cause, **nic.growth):
                ladder = unittest.mock.Mock()
                pair.cnps(ladder, nic)
                failures = [call.args[0] for call in ladder.failed.call_args_list]
                self.assertEqual(failures, [cause] if cause else [])


class EmulatedHosts(unittest.TestCase):
    def test_pass_with_one_command(self):
        command = [BUILD / "bin/cepheus-run", "--hosts", "2", "--", BUILD / "bin/cepheus", "fabric-test", "--wait", WAIT, "--json", "-"]
        run = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=200)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        steps = {one["name"]: one for one in json.loads(run.stdout)["steps"]}
        self.assertIn("roce port", steps)
        self.assertEqual(steps["cnps"]["data"]["cnps"], 1000)
        self.assertIn("reset", steps)


if __name__ == "__main__":
    at_a_mount()
    try:
        with Wire():
            pass
    except CantHave as reason:
        for needy in (FabricTest, TheBox, WithAPeer):
            unittest.skip(f"SKIPPED: {reason}")(needy)
    unittest.main()
