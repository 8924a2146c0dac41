#!/usr/bin/python3
"""MPI_Bcast with coll_cepheus_groups = sender: a sender group for each root, as many as there may be."""

import os
import unittest
from unittest import mock

import live_fault_test
from harness import CHECK, PROGRAMS, REQUIRE, VERBOSE, EndToEnd, over_fabric, star

SENDER = {"coll_cepheus_groups": "sender"}
REQUIRED = {**REQUIRE, **SENDER}
ARGUMENTS = ("--count", 30, "--max", 1 << 18)


class SenderBroadcast(EndToEnd):
    def assert_groups_of(self, run, count):
        """The first `count` ranks have a group each, from their own hosts."""
        self.assert_ok(run)
        told = "\n".join(run.told())
        for rank in range(count):
            self.assertRegex(told, rf"multicast, bulk lane of rank {rank} on sender group from 10\.0\.0\.{rank + 1} epoch \d+")
        self.assertEqual(told.count("sender group from"), count, run.everything())

    def test_every_root_has_a_group(self):
        run = over_fabric(CHECK, *ARGUMENTS, mca={**REQUIRED, "coll_cepheus_verbose": 2})
        self.assert_groups_of(run, 4)
        self.assertEqual(run.status["switches"][0]["sender_groups"], [], "a table is left behind")

    def test_by_libmcast_alone(self):
        self.assert_groups_of(over_fabric(CHECK, *ARGUMENTS, mca={**REQUIRED, "coll_cepheus_verbose": 2, "coll_cepheus_carrier": "direct"}), 4)

    def test_the_roots_link_carries_the_data_once(self):
        self.assert_data_once(over_fabric(CHECK, "--count", 10, "--max", 1 << 22, "--root", "0", mca=REQUIRED))

    def test_losses_behind_a_switch(self):
        run = over_fabric(CHECK, *ARGUMENTS, topology=star(4, "loss = 0.002"), mca=REQUIRED)
        self.assert_ok(run)
        self.assertGreater(sum(port["out"]["dropped_loss"] for port in run.status["switches"][0]["ports"]), 0, run.everything())

    def test_non_blocking_and_persistent_ones_are_served_too(self):
        for program in ("ibcast_check", "persistent_check"):
            run = over_fabric(PROGRAMS / program, mca={**REQUIRED, "coll_cepheus_ordered_starts": 1})
            self.assert_ok(run)
            self.assertGreater(run.variables()["ibcasts_bulk"], 0, run.everything())
            self.assertEqual(run.variables()["ibcasts_saved"], 0, run.everything())

    def test_roots_beyond_the_limit_are_served_by_open_mpi(self):
        run = over_fabric(CHECK, *ARGUMENTS, mca={**SENDER, "coll_cepheus_verbose": 1, "coll_cepheus_max_senders": 2})
        self.assert_ok(run)
        refused = [line for line in run.told() if "no sender group" in line]
        self.assertEqual(len(refused), 1, run.everything())
        self.assertIn("open mpi's own algorithms: rank 2 has no sender group: 2 other roots have theirs (coll_cepheus_max_senders)", refused[0])

    def test_roots_beyond_the_limit_are_an_error_if_required(self):
        run = over_fabric(CHECK, *ARGUMENTS, mca={**REQUIRED, "coll_cepheus_max_senders": 2})
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertIn("rank 2 has no sender group", run.err)

    def test_switches_that_serve_none(self):
        run = over_fabric(CHECK, *ARGUMENTS, topology=star(4, switch='sender_groups = "off"'), mca={**SENDER, **VERBOSE})
        self.assert_ok(run)
        self.assertRegex("\n".join(run.told()), "open mpi's own algorithms for the bulk lane of rank 0: .*the switches serve no sender groups")

    def test_more_hosts_than_a_sender_group_reaches(self):
        run = over_fabric(CHECK, "--count", 3, "--max", 1 << 12, hosts=18, mca={**SENDER, **VERBOSE})
        self.assert_ok(run)
        self.assertRegex("\n".join(run.told()), "open mpi's own algorithms for the bulk lane of rank 0: .*16")

    def test_a_switch_that_dies_and_comes_back(self):
        with mock.patch.dict(os.environ, {"OMPI_MCA_coll_cepheus_groups": "sender"}):
            for case in (live_fault_test.switch_killed, live_fault_test.switch_restarted):
                self.assertEqual(live_fault_test.run_case(case, 1, 1, live_fault_test.LiveFaults.WITHIN), 0)


if __name__ == "__main__":
    unittest.main()
