#!/usr/bin/python3
"""All of MPI_Bcast: types, communicators, threads, late ranks, early leavers, several ranks on a host."""

import unittest

from harness import CHECK, PARTED, PROGRAMS, REQUIRE, VERBOSE, EndToEnd, over_fabric, star, without_fabric

MPI_ERR_TRUNCATE = 15  # what Open MPI's mpi.h says; MPI_ERRORS_ARE_FATAL aborts with it


class Types(EndToEnd):
    MIXED = ("--count", 4, "--size", 100_000, "--max", 100_000, "--type", "mixed", "--root", "0")

    def test_open_mpis_own_pipeline_delivers_wrong_data_with_legal_types_that_differ(self):
        """Why ours works on packed bytes: theirs cuts segments at each rank's own element size."""
        forced = {"coll_cepheus_mode": "off", "coll_tuned_use_dynamic_rules": 1, "coll_tuned_bcast_algorithm": 3,
                  "coll_tuned_bcast_algorithm_segmentsize": 1000}
        run = over_fabric(CHECK, *self.MIXED, mca=forced)
        # By the code, not the words: Open MPI often loses the message of an abort ("unpack would read past end of buffer").
        truncated = run.code == MPI_ERR_TRUNCATE
        self.assertTrue(truncated or "is wrong" in run.err, run.everything())

    def test_ours_delivers_right_data_there(self):
        self.assert_ok(over_fabric(CHECK, *self.MIXED, mca=REQUIRE))

    def test_memory_of_a_gpu_never_reaches_the_nic(self):
        run = over_fabric(PROGRAMS / "device_memory_check", mca=REQUIRE)
        self.assert_ok(run)


class Order(EndToEnd):
    def test_the_first_broadcast_comes_while_a_communicator_is_being_duplicated(self):
        run = over_fabric(PROGRAMS / "order_check", "--idup", 1, hosts=2, options=("--ranks-per-host", 2), mca=REQUIRE, timeout=30)
        self.assert_ok(run)

    def test_the_first_broadcast_is_not_blocking(self):
        run = over_fabric(PROGRAMS / "order_check", "--ibcast", 1, mca=REQUIRE, timeout=30)
        self.assert_ok(run)
        counted = run.variables()
        self.assertEqual((counted["ibcasts_eager"], counted["bcasts_eager"], counted["bcasts_saved"]), (1, 7, 0))

    def test_communicators_that_never_broadcast_look_for_nothing(self):
        run = over_fabric(PROGRAMS / "order_check", "--dups", 50, mca=REQUIRE)
        self.assert_ok(run)
        self.assertEqual([line for line in run.out.splitlines() if line.startswith("looks")], ["looks 1"])

    def test_persistent_broadcasts(self):
        run = over_fabric(PROGRAMS / "persistent_check", mca=REQUIRE)
        self.assert_ok(run)
        self.assertEqual(run.variables()["ibcasts_eager"], 40)
        self.assertEqual(run.variables()["ibcasts_bulk"], 20)
        self.assert_ok(without_fabric(PROGRAMS / "persistent_check", mca=PARTED))
        self.assert_ok(without_fabric(PROGRAMS / "persistent_check"))


class Communicators(EndToEnd):
    def test_more_than_the_buffers_last_for(self):
        little = {"coll_cepheus_max_eager_memory": 4 << 20}
        run = over_fabric(PROGRAMS / "communicators_check", "--alive", 40, mca={**VERBOSE, **little})
        self.assert_ok(run)
        self.assertIn("coll_cepheus_max_eager_memory", "\n".join(run.told()))
        run = over_fabric(PROGRAMS / "communicators_check", "--alive", 40, mca={**REQUIRE, **little}, timeout=30)
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertIn("coll_cepheus_max_eager_memory", run.err)

    def test_hundreds_alive(self):
        self.assert_ok(over_fabric(PROGRAMS / "communicators_check", "--alive", 200, mca=REQUIRE))

    def test_many_made_and_freed(self):
        run = over_fabric(PROGRAMS / "communicators_check", "--churn", 300, mca=REQUIRE)
        self.assert_ok(run)
        self.assertEqual(run.status["switches"][0]["groups"], [], run.everything())
        half, end = [int(line.split()[1]) for line in run.out.splitlines() if line.startswith("resident")]
        self.assertLess(end - half, 4096, "KiB of memory for 150 communicators more")

    def test_threads_on_communicators_of_their_own(self):
        self.assert_ok(over_fabric(PROGRAMS / "threads_check", "--threads", 4, "--count", 100, mca=REQUIRE))

    def test_spawn_and_disconnect(self):
        self.assert_ok(over_fabric(PROGRAMS / "spawn_check", hosts=4, mpirun=("-np", 2)))


class Times(EndToEnd):
    def test_ranks_that_come_seconds_late(self):
        self.assert_ok(over_fabric(PROGRAMS / "late_check", "--late", 1, mca=REQUIRE))

    # Longer than the watchdog waits for a member that is silent. Rank 0, which leads, is late, too.
    def test_ranks_that_come_late_with_all_their_buffers_full(self):
        run = over_fabric(PROGRAMS / "late_check", "--behind", 4, hosts=3, mca={**REQUIRE, **VERBOSE})
        self.assert_ok(run)
        told = "\n".join(run.told())
        self.assertIn("multicast, eager lane", told)
        self.assertNotIn("own algorithms", told)
        self.assertNotIn("broke", told)

    # Longer than the 10 s that ranks once had to come.
    def test_a_rank_that_comes_late_to_the_end(self):
        run = over_fabric(PROGRAMS / "late_check", "--end", 11, mca={**REQUIRE, **VERBOSE}, timeout=60)
        self.assert_ok(run)
        self.assertEqual([line for line in run.told() if "multicast, " not in line], [])
        [free] = [float(line.split()[1]) for line in run.out.splitlines() if line.startswith("free")]
        self.assertLess(free, 5, "MPI_Comm_free does not wait for others")

    def test_a_root_that_finalizes_with_data_unacknowledged(self):
        run = over_fabric(PROGRAMS / "late_check", "--leave", 60, topology=star(4, "loss = 0.05"), mca=REQUIRE)
        self.assert_ok(run)


class Hosts(EndToEnd):
    def test_several_ranks_on_a_host(self):
        run = over_fabric(CHECK, "--count", 60, "--max", 1 << 18, "--root", "random", "--type", "mixed", hosts=3,
                          options=("--ranks-per-host", 2), mca={**REQUIRE, **VERBOSE})
        self.assert_ok(run)
        told = "\n".join(run.told())
        self.assertIn("MPI_COMM_WORLD (6 ranks): 3 hosts; multicast among one rank of each", told)
        self.assertIn("MPI_COMM_WORLD (3 of 6 ranks): multicast, ", told)

    def test_one_host_needs_no_multicast(self):
        run = over_fabric(CHECK, "--count", 20, "--max", 10000, hosts=1, options=("--ranks-per-host", 3), mca={**REQUIRE, **VERBOSE})
        self.assert_ok(run)
        self.assertIn("all ranks are on one host", "\n".join(run.told()))


class Parameters(EndToEnd):
    def test_a_misspelt_parameter_is_told_once(self):
        run = over_fabric(CHECK, "--count", 2, "--max", 100, mca={"coll_cepheus_mod": "require"})
        self.assert_ok(run)
        told = [line for line in run.told() if "coll_cepheus_mod is set, but there is no such parameter" in line]
        self.assertEqual(len(told), 1, run.everything())
        self.assertIn("mode", told[0])

    def test_performance_variables_count_calls_by_path(self):
        small = over_fabric(PROGRAMS / "counters_check", "--count", 7, "--bytes", 100, mca=REQUIRE)
        self.assert_ok(small)
        self.assertEqual(small.variables()["bcasts_eager"], 7)
        self.assertEqual(small.variables()["groups"], 1)
        large = over_fabric(PROGRAMS / "counters_check", "--count", 3, "--bytes", 100_000, mca=REQUIRE)
        self.assertEqual(large.variables()["bcasts_bulk"], 3)
        self.assertEqual(large.variables()["fallbacks_watchdog"], 0)
        none = without_fabric(PROGRAMS / "counters_check", "--count", 5)
        self.assertEqual(none.variables()["bcasts_saved"], 5)


if __name__ == "__main__":
    unittest.main()
