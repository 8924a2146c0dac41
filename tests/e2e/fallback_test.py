#!/usr/bin/python3
"""Where the fabric can't serve, Open MPI's own algorithms do, and say why; where it must, one clear error ends the job."""

import unittest

from harness import BUILD, CHECK, PARTED, PROGRAMS, REQUIRE, VERBOSE, EndToEnd, over_fabric, star, without_fabric

ARGUMENTS = ("--count", 20, "--max", 1 << 18)


class Fallback(EndToEnd):
    def assert_told_once(self, run, *words):
        told = run.told()
        self.assertEqual(len([line for line in told if "eager lane" in line]), 1, run.everything())
        for word in words:
            self.assertIn(word, told[0])

    def assert_one_error(self, run, *words):
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertNotIn("ok:", run.out)
        self.assertEqual(run.err.count('the parameter\ncoll_cepheus_mode is "require"'), 1, run.everything())
        for word in words:
            self.assertIn(word, run.err)
        self.assertIn("What to do:", run.err)

    def test_switch_without_table_space(self):
        run = over_fabric(CHECK, *ARGUMENTS, topology=star(4, switch="max_groups = 0"), mca=VERBOSE)
        self.assert_ok(run)
        self.assert_told_once(run, "open mpi's own algorithms", "table space")

    def test_switch_without_table_space_is_an_error_if_required(self):
        run = over_fabric(CHECK, *ARGUMENTS, topology=star(4, switch="max_groups = 0"), mca=REQUIRE)
        self.assert_one_error(run, "table space")

    def test_no_fabric(self):
        run = without_fabric(CHECK, *ARGUMENTS, mca={**VERBOSE, **PARTED})
        self.assert_ok(run)
        self.assert_told_once(run, "open mpi's own algorithms", "no ")

    def test_ranks_that_share_a_machine_have_something_faster(self):
        run = without_fabric(CHECK, *ARGUMENTS, mca=VERBOSE)
        self.assert_ok(run)
        self.assertEqual(len(run.told()), 1, run.everything())
        self.assertIn("all ranks are on one machine, where shared memory is faster", run.told()[0])

    def test_no_fabric_is_an_error_if_required(self):
        self.assert_one_error(without_fabric(CHECK, *ARGUMENTS, mca=REQUIRE), "rank 0")

    def test_quiet_unless_asked(self):
        run = without_fabric(CHECK, *ARGUMENTS)
        self.assert_ok(run)
        self.assertEqual(run.told(), [])

    def test_only_the_eager_lane_finds_space(self):
        run = over_fabric(CHECK, *ARGUMENTS, topology=star(4, switch="max_groups = 1"), mca=VERBOSE)
        self.assert_ok(run)
        told = run.told()
        self.assertEqual(len(told), 2, run.everything())
        self.assertEqual(sorted("table space" in line for line in told), [False, True], run.everything())

    def test_space_that_comes_free_is_used(self):
        run = over_fabric(PROGRAMS / "order_check", "--retry", 4, topology=star(4, switch="max_groups = 1"), mca=VERBOSE)
        self.assert_ok(run)
        self.assertEqual(run.variables()["groups"], 2, run.everything())
        self.assertIn("table space", "\n".join(run.told()))

    def test_off(self):
        run = over_fabric(CHECK, *ARGUMENTS, mca={"coll_cepheus_mode": "off", **VERBOSE})
        self.assert_ok(run)
        self.assertEqual(run.port("h0")["rx_payload_bytes"], 0)

    def test_a_group_smaller_than_wanted(self):
        run = over_fabric(CHECK, *ARGUMENTS, hosts=3, mca={"coll_cepheus_min_members": 4, **VERBOSE})
        self.assert_ok(run)
        self.assertIn("coll_cepheus_min_members = 4", "".join(run.told()))


if __name__ == "__main__":
    unittest.main()
