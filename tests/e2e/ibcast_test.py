#!/usr/bin/python3
"""MPI_Ibcast: several in flight together, data that moves without MPI calls, faults in the middle."""

import tempfile
import unittest

from harness import PARTED, PROGRAMS, REQUIRE, VERBOSE, EndToEnd, over_fabric, star, without_fabric
from live import LiveRun
from live_fault_test import MULTICAST, OWN_ALGORITHMS, check, wait

CHECK = PROGRAMS / "ibcast_check"
MEGA = 1 << 20


class Data(EndToEnd):
    def test_several_at_once_from_random_roots(self):
        run = over_fabric(CHECK, "--count", 60, "--outstanding", 6, mca=REQUIRE)
        self.assert_ok(run)
        counted = run.variables()
        self.assertGreater(counted["ibcasts_eager"], 20)
        self.assertGreater(counted["ibcasts_bulk"], 20)
        self.assertEqual((counted["ibcasts_tree"], counted["ibcasts_saved"], counted["bcasts_eager"]), (0, 0, 0))

    def test_communicators_freed_with_broadcasts_in_flight(self):
        self.assert_ok(over_fabric(CHECK, "--count", 20, "--free", 1, mca=REQUIRE))

    def test_threads_with_several_in_flight_each(self):
        run = over_fabric(PROGRAMS / "threads_check", "--threads", 3, "--count", 80, "--outstanding", 4, mca=REQUIRE)
        self.assert_ok(run)

    def test_lossy_links(self):
        run = over_fabric(CHECK, "--count", 60, "--mix", 1, topology=star(4, "loss = 0.01"), mca=REQUIRE)
        self.assert_ok(run)
        self.assert_lost(run)

    def test_hosts_that_synchronise_psns(self):
        run = over_fabric(CHECK, "--count", 30, "--mix", 1, topology=star(4, switch='source_change = "host-sync"'), mca=REQUIRE)
        self.assert_ok(run)

    def test_no_fabric_at_all(self):
        run = without_fabric(CHECK, "--count", 40, "--type", "mixed", "--max", 3 * MEGA, mca=PARTED)
        self.assert_ok(run)
        self.assertGreater(run.variables()["ibcasts_tree"], 20)

    def test_one_machine_uses_open_mpis_built_in_broadcast(self):
        run = without_fabric(CHECK, "--count", 40)
        self.assert_ok(run)
        self.assertGreater(run.variables()["ibcasts_saved"], 20)


class Progress(EndToEnd):
    def check_in_directory(self, mode, *arguments, **options):
        with tempfile.TemporaryDirectory(prefix="cepheus-ibcast-") as directory:
            self.assert_ok(over_fabric(CHECK, mode, directory, *arguments, **options))

    def test_data_moves_while_no_rank_calls_mpi(self):
        self.check_in_directory("--moved", "--count", 4, hosts=2, mca=REQUIRE)

    def test_data_moves_to_three_hosts(self):
        self.check_in_directory("--moved", "--count", 3, "--max", MEGA, hosts=4, mca=REQUIRE)

    def test_a_rank_that_starts_late_is_no_fault(self):
        self.check_in_directory("--late", "--delay", 1, mca={**REQUIRE, "coll_cepheus_watchdog_ms": 500})


class LiveIbcasts(LiveRun):
    CHECK = CHECK


class Faults(unittest.TestCase):
    ARGUMENTS = ("--count", 10, "--outstanding", 6, "--max", MEGA, "--mix", 1)

    def live(self, seed):
        return LiveIbcasts(*self.ARGUMENTS, mca=VERBOSE, seed=seed)

    def test_switch_killed_with_broadcasts_in_flight(self):
        for seed in range(3):
            with self.live(seed) as run:
                run.wait_for_payload((seed + 1) * 700_000)
                run.switch.kill()
                wait(run, OWN_ALGORITHMS)
                check(run, OWN_ALGORITHMS)

    def test_switch_restarted(self):
        with self.live(4) as run:
            run.wait_for_payload(MEGA)
            before = run.err.count(MULTICAST)
            run.switch.kill()
            run.switch.start()
            wait(run, OWN_ALGORITHMS)
            wait(run, MULTICAST, before + 1)
            run.wait_for_payload(MEGA)
            check(run, OWN_ALGORITHMS)

    def test_a_rank_cut_off(self):
        with self.live(5) as run:
            run.wait_for_payload(MEGA)
            run.switch.set_links([run.hosts[2]], direction="down", loss=1)
            wait(run, OWN_ALGORITHMS)
            check(run, OWN_ALGORITHMS)


if __name__ == "__main__":
    unittest.main()
