#!/usr/bin/python3
"""MPI_Bcast through the whole stack: real mpirun, real switch, every byte checked."""

import unittest

from harness import CHECK, REQUIRE, VERBOSE, EndToEnd, over_fabric, star


class Broadcast(EndToEnd):
    def test_roots_rotate_over_four_hosts(self):
        self.assert_ok(over_fabric(CHECK, "--count", 100, "--max", 1 << 20, mca=REQUIRE))

    def test_eight_hosts(self):
        self.assert_ok(over_fabric(CHECK, "--count", 40, "--max", 1 << 18, hosts=8, mca=REQUIRE))

    def test_two_hosts(self):
        self.assert_ok(over_fabric(CHECK, "--count", 40, "--max", 1 << 18, hosts=2, mca=REQUIRE))

    def test_random_roots_of_small_messages(self):
        self.assert_ok(over_fabric(CHECK, "--count", 2000, "--max", 8192, "--root", "random", mca=REQUIRE))

    def test_one_root_sends_many_small_messages_without_waiting(self):
        self.assert_ok(over_fabric(CHECK, "--count", 3000, "--max", 64, "--root", "0", mca=REQUIRE))

    def test_strided_types(self):
        self.assert_ok(over_fabric(CHECK, "--count", 60, "--max", 1 << 19, "--type", "vector", mca=REQUIRE))

    def test_a_message_larger_than_one_chunk(self):
        self.assert_ok(over_fabric(CHECK, "--count", 4, "--max", 150 << 20, "--seed", 5, mca=REQUIRE))

    def test_icrc_made_and_checked_on_every_hop(self):
        topology = star(4, fabric='icrc = "always"')
        self.assert_ok(over_fabric(CHECK, "--count", 40, "--max", 1 << 20, topology=topology, mca=REQUIRE))

    def test_small_packets(self):
        topology = star(4, fabric="mtu = 1024")
        self.assert_ok(over_fabric(CHECK, "--count", 40, "--max", 1 << 19, topology=topology, mca=REQUIRE))

    def test_hosts_with_packets_of_different_lengths(self):
        topology = star(4).replace('name = "h1"', 'name = "h1"\nlink = { mtu = 1024 }').replace('name = "h2"', 'name = "h2"\nlink = { mtu = 2048 }')
        self.assertIn("2048", topology)
        run = over_fabric(CHECK, "--count", 40, "--max", 1 << 19, topology=topology, mca=REQUIRE)
        self.assert_ok(run)
        self.assertEqual(run.status["switches"][0]["counters"].get("drop_too_long", 0), 0)

    def test_a_shaped_link(self):
        run = over_fabric(CHECK, "--count", 20, "--max", 1 << 18, topology=star(4, 'rate = "1Gbps"\ndelay = "100us"'), mca=REQUIRE)
        self.assert_ok(run)

    def test_reports_the_path(self):
        run = over_fabric(CHECK, "--count", 4, "--max", 64, mca={**REQUIRE, **VERBOSE})
        self.assert_ok(run)
        output = run.lines_of_broadcasts()
        self.assertEqual(len(output), 1, run.everything())
        self.assertRegex(output[0], r"eager lane.* 198\.1[89]\.\d+\.\d+ ")

    def test_the_roots_link_carries_the_data_once(self):
        self.assert_data_once(over_fabric(CHECK, "--count", 10, "--max", 1 << 22, "--root", "0", mca=REQUIRE))

    def test_no_table_is_left_behind(self):
        run = over_fabric(CHECK, "--count", 10, "--max", 1 << 20, "--comm", "dup", mca=REQUIRE)
        self.assert_ok(run)
        self.assertEqual(run.status["switches"][0]["groups"], [], run.everything())


class HostSynchronisation(EndToEnd):
    """The papers' change of source: no rebasing in the switch, hosts advance their PSNs."""

    def run_with(self, link, count, largest):
        topology = star(4, link, 'source_change = "host-sync"')
        run = over_fabric(CHECK, "--count", count, "--max", largest, topology=topology, mca=REQUIRE, timeout=280)
        self.assert_ok(run)
        return run

    def test_roots_rotate_over_both_lanes(self):
        run = self.run_with("", 60, 1 << 18)
        self.assertGreater(dict(run.status["switches"][0]["counters"])["turns"], 40)

    def test_small_messages_back_to_back(self):
        run = self.run_with("", 200, 64)
        self.assertGreater(dict(run.status["switches"][0]["counters"])["turns"], 150)

    def test_fifty_broadcasts_with_loss(self):
        self.assert_lost(self.run_with("loss = 0.005", 50, 1 << 18))


class Loss(EndToEnd):
    def test_two_hundred_broadcasts_with_one_percent_loss_on_every_link(self):
        run = over_fabric(CHECK, "--count", 200, "--max", 4 << 20, "--root", "rotate", topology=star(4, "loss = 0.01"),
                          mca=REQUIRE, timeout=280)
        self.assert_ok(run)
        self.assert_lost(run, 100)


if __name__ == "__main__":
    unittest.main()
