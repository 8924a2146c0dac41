#!/usr/bin/python3
"""`cepheusctl explain`: how many calls took which path, and why."""

import unittest

from harness import AT_ONCE, CHECK, PROGRAMS, REQUIRE, Reporting, needs_rc_mcast, over_fabric, paths_of_broadcasts, star


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

    @needs_rc_mcast
    def test_ranks_with_and_without_ucx_share_a_group(self):
        # Not by mpirun's colon: in Open MPI 5.0.7 it ends with a segmentation fault.
        choice = 'if [ "$OMPI_COMM_WORLD_RANK" -lt 2 ]; then way=direct; else way=ucx; fi'
        program = f'{choice}; OMPI_MCA_coll_cepheus_carrier=$way exec "$@"'
        self.assert_ok(over_fabric("/bin/sh", "-c", program, "sh", CHECK, "--count", 40, "--max", 200_000, mca=REQUIRE))


if __name__ == "__main__":
    unittest.main()
