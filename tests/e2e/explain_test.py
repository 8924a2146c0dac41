#!/usr/bin/python3
"""`cepheusctl explain`: how many calls took which path, and why."""

import unittest

from harness import AT_ONCE, CHECK, PROGRAMS, REQUIRE, Reporting, needs_rc_mcast, over_fabric, paths_of_broadcasts, star


# Three hosts at each of two switches: no flat tree.
TWO_LEAVES = {"options": ("--shape", "leaf-spine:2x1x3")}


class Explain(Reporting):
    def test_counts_multicast_by_lane(self):
        run = over_fabric(CHECK, "--count", 12, "--max", 100_000, mca=REQUIRE)
        self.assert_ok(run)
        job, world = self.world()
        self.assertEqual((job["processes"], job["running"]), (4, 0))
        self.assertEqual(world["ranks"], 4)
        broadcasts = paths_of_broadcasts(world)
        for path in broadcasts:
            self.assertIn(path["path"], ("eager lane", "bulk lane"))
            self.assertRegex(path["reason"], "^multicast$")
        # Calls without bytes need no path.
        self.assertGreater(sum(path["calls"] for path in broadcasts), 6)
        # By which the program ends.
        self.assertLessEqual({"allreduce: network", "reduce: network"}, {path["path"] for path in world["paths"]})
        for path in world["paths"]:
            self.assertEqual(path["ranks_reporting"], 4)
            self.assertEqual(path["fewest"], path["most"])
        self.assertIn("MPI_COMM_WORLD", self.explained())

    def test_counts_non_blocking_calls_apart(self):
        run = over_fabric(PROGRAMS / "ibcast_check", "--count", 20, mca=REQUIRE)
        self.assert_ok(run)
        _, world = self.world()
        broadcasts = paths_of_broadcasts(world)
        self.assertEqual({path["path"] for path in broadcasts}, {"ibcast: eager lane", "ibcast: bulk lane"})
        for path in broadcasts:
            self.assertRegex(path["reason"], "^multicast$")
            self.assertEqual(path["ranks_reporting"], 4)

    def test_reports_a_communicator_with_too_few_broadcasts_for_a_group(self):
        few = {"coll_cepheus_set_up_after": 8}
        run = over_fabric(CHECK, "--count", 20, "--size", 1000, hosts=2, mca=few)
        self.assert_ok(run)
        _, world = self.world()
        calls = {path["path"]: (path["most"], path["reason"]) for path in world["paths"]}
        self.assertEqual(calls["open mpi"][0], 8)
        self.assertIn("coll_cepheus_set_up_after", calls["open mpi"][1])
        self.assertEqual(calls["eager lane"][0], 12)

    def test_names_the_reason_for_open_mpis_own_algorithms(self):
        run = over_fabric(CHECK, "--count", 5, "--max", 1000, mca=AT_ONCE,
                          topology=star(4, switch="max_groups = 0"))
        self.assert_ok(run)
        _, world = self.world()
        (path,) = paths_of_broadcasts(world)
        self.assertEqual(path["path"], "open mpi")
        for path in world["paths"]:
            self.assertIn("table space", path["reason"])

    def check_long_sums(self, way, reason, hosts=(), pairs="rank", **mca):
        chosen = {**REQUIRE, "coll_cepheus_reduction_limit": 1 << 30, **{f"coll_cepheus_{name}": value for name, value in mca.items()}}
        self.assert_ok(over_fabric(PROGRAMS / "reduction_rounds_check", "--count", 3, "--size", 80_000, "--pairs", pairs, mca=chosen, **dict(hosts)))
        _, world = self.world()
        (path,) = [path for path in world["paths"] if path["path"].startswith("allreduce")]
        self.assertEqual((path["path"], path["most"]), (f"allreduce: {way}", 3))
        self.assertRegex(path["reason"], reason)

    def test_names_the_way_of_long_floating_point_sums(self):
        self.check_long_sums("network", "the network")

    def test_names_the_reason_why_long_floating_point_sums_go_by_messages(self):
        self.check_long_sums("messages", "is not flat.*coll_cepheus_reproducible", TWO_LEAVES)

    def test_names_shared_hosts_as_the_reason_of_long_reductions(self):
        self.check_long_sums("messages", "some ranks share a host", {"hosts": 2, "options": ("--ranks-per-host", 2)})

    def test_long_floating_point_sums_go_by_a_tree_that_the_user_takes(self):
        self.check_long_sums("network", "the network", TWO_LEAVES, pairs="any", reproducible="tree")

    @needs_rc_mcast
    def test_ranks_with_and_without_ucx_share_a_group(self):
        # Not by mpirun's colon: in Open MPI 5.0.7 it ends with a segmentation fault.
        choice = 'if [ "$OMPI_COMM_WORLD_RANK" -lt 2 ]; then way=direct; else way=ucx; fi'
        program = f'{choice}; OMPI_MCA_coll_cepheus_carrier=$way exec "$@"'
        self.assert_ok(over_fabric("/bin/sh", "-c", program, "sh", CHECK, "--count", 40, "--max", 200_000, mca=REQUIRE))


if __name__ == "__main__":
    unittest.main()
