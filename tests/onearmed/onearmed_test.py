#!/usr/bin/python3
"""One interface for all hosts: MPI_Bcast between hosts that a plain bridge or a router joins with each other and with the switch.

Exit code 77: this machine can't have network namespaces; the message has the reason.
"""

import sys
import unittest

from namespaces import DPDK, HAS_DPDK, SMALL, USUAL_MTU, CantHave, Network, Site, SiteRun, at_a_mount  # first: it extends the path for the next imports
from harness import CHECK, REQUIRE, VERBOSE, EndToEnd
from live import Switch

SKIP = 77
MEGA = 1 << 20
ARGUMENTS = ("--count", 60, "--max", MEGA)
LONG = ("--count", 20, "--max", MEGA, "--root", "random")
OWN_ALGORITHMS = r"cepheus: MPI_COMM_WORLD \(\d+ ranks\): (open mpi's own algorithms from broadcast|the group failed)"
MULTICAST = r"cepheus: MPI_COMM_WORLD \(\d+ ranks\): multicast, "
ANOTHER_MAC = 'mac = "02:00:00:00:00:99"'
# Drop reasons that correct hosts never cause.
FOREIGN = ("drop_unknown_source", "drop_wrong_mac", "drop_spoofed_source", "drop_ingress_full")


class OneArmed(EndToEnd):
    def counted(self, run, name):
        """Sum over the switch and the ports of its hosts."""
        switch = run.status["switches"][0]
        return sum(each["counters"].get(name, 0) for each in [switch, *switch["ports"]])

    def assert_multicast(self, run):
        self.assert_ok(run)
        self.assertIn("multicast", run.cepheus_lines()[0], run.everything())
        for i in range(4):
            # Each host sent data in its turn, and received a copy of all other hosts' data.
            port = run.port(f"h{i}")
            self.assertGreater(port["counters"]["data_taken"], 0)
            self.assertGreater(port["tx_payload_bytes"], run.port(f"h{(i + 1) % 4}")["rx_payload_bytes"])
        for name in FOREIGN:
            self.assertEqual(self.counted(run, name), 0, name)

    def broadcast(self, mca=REQUIRE, **site):
        with Site(**site) as made:
            run = made.run(CHECK, *ARGUMENTS, mca={**mca, **VERBOSE})
            run.lost = made.switch.lost()
            return run

    def test_behind_a_bridge(self):
        self.assert_multicast(self.broadcast())

    def test_behind_a_router(self):
        self.assert_multicast(self.broadcast(routed=True))

    def test_one_percent_is_lost_behind_a_bridge(self):
        run = self.broadcast(loss=0.01)
        self.assert_multicast(run)
        self.assertGreater(run.lost, 10)

    def test_one_percent_is_lost_behind_a_router(self):
        run = self.broadcast(routed=True, loss=0.01)
        self.assert_multicast(run)
        self.assertGreater(run.lost, 10)

    def test_a_slow_box_loses_data_before_replication(self):
        try:
            with Site(rates={"box": 300}) as site:
                run = site.run(CHECK, "--count", 4, "--max", 8 * MEGA, mca={**REQUIRE, **VERBOSE})
        except CantHave as reason:
            self.skipTest(f"SKIPPED: no token bucket: {reason}; as root: modprobe sch_tbf")
        self.assert_ok(run)
        self.assertEqual(self.counted(run, "drop_egress_full"), 0)

    def with_small(self, which, limit):
        """Packets have the length that the interface of `which` takes."""
        with Site(mtus={which: USUAL_MTU}) as site, SiteRun(site, *LONG, mca={**REQUIRE, **VERBOSE}) as run:
            run.wait_for_payload(MEGA)
            group = site.switch.status()["switches"][0]["groups"][0]
            self.assertEqual((group["path_mtu"], group["mtu_limit"]), (SMALL, limit))
            self.assertEqual(run.finish(), 0, run.everything())
            self.assertEqual(site.switch.status()["switches"][0]["counters"].get("drop_too_long", 0), 0)

    def test_a_box_with_a_usual_interface(self):
        self.with_small("box", "")

    def test_a_host_with_a_usual_interface(self):
        self.with_small("h2", "device of h2")

    def test_the_command_line_may_name_the_interface(self):
        with Network() as network, Switch("--one-armed", "eth0", "--hosts", 4, before=network.inside("box")) as switch:
            self.assertEqual([port["attached"] for port in switch.ports()], [True] * 4)

    def test_any_mac_address_is_accepted_if_the_topology_allows_it(self):
        self.assert_multicast(self.broadcast(routed=True, hosts='mac = "any"'))

    def test_frames_from_another_mac_address_than_the_topologys_are_dropped(self):
        run = self.broadcast(mca={}, hosts=ANOTHER_MAC)
        self.assert_ok(run)  # by Open MPI's own algorithms
        self.assertGreater(self.counted(run, "drop_wrong_mac"), 0)
        self.assertEqual(self.counted(run, "data_taken"), 0)

    @unittest.skipUnless(HAS_DPDK, "SKIPPED: cepheus-switch was built without DPDK: install libdpdk-dev, and configure again")
    def test_by_dpdk_behind_a_bridge(self):
        self.assert_multicast(self.broadcast(fabric=DPDK))

    @unittest.skipUnless(HAS_DPDK, "SKIPPED: cepheus-switch was built without DPDK: install libdpdk-dev, and configure again")
    def test_by_dpdk_one_percent_is_lost_behind_a_router(self):
        run = self.broadcast(routed=True, loss=0.01, fabric=DPDK)
        self.assert_multicast(run)
        self.assertGreater(run.lost, 10)

    def killed_and_restarted(self, routed):
        with Site(routed) as site, SiteRun(site, *LONG, mca=VERBOSE) as run:
            run.wait_for_payload(MEGA)
            before = run.err.count(MULTICAST)
            site.switch.kill()
            site.switch.start()
            self.assertTrue(run.err.wait_for(OWN_ALGORITHMS), run.everything())
            self.assertTrue(run.err.wait_for(MULTICAST, before + 1), run.everything())
            run.wait_for_payload(MEGA)
            self.assertEqual(run.finish(), 0, run.everything())
            self.assertEqual(run.out.count("^ok: "), 1, run.everything())

    def test_the_box_is_killed_and_restarted_behind_a_bridge(self):
        self.killed_and_restarted(routed=False)

    def test_the_box_is_killed_and_restarted_behind_a_router(self):
        self.killed_and_restarted(routed=True)

    def test_a_killed_box_ends_a_job_that_requires_multicast(self):
        with Site() as site, SiteRun(site, *LONG, mca={**VERBOSE, "coll_cepheus_mode": "require"}) as run:
            run.wait_for_payload(MEGA)
            site.switch.kill()
            site.switch.start()
            self.assertTrue(run.err.wait_for("What to do:"), run.everything())
            self.assertNotIn(run.finish(), (0, None), run.everything())
            self.assertNotIn("is wrong", run.err.text())


if __name__ == "__main__":
    at_a_mount()
    try:
        with Network():
            pass
    except CantHave as reason:
        print(f"onearmed: skipped: {reason}", file=sys.stderr)
        sys.exit(SKIP)
    unittest.main()
