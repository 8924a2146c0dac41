#!/usr/bin/python3
"""Ranks without coll/cepheus, or with other settings: Open MPI's own broadcast serves all, and one line says why."""

import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

from harness import BUILD, CHECK, COMPONENT, PARTED, REQUIRE, EndToEnd, over_fabric, without_fabric

HERE = socket.gethostname()
# What rank 1 sets, and words of the line.
UNLIKE = {
    "coll=^cepheus": "not loaded",
    "coll_cepheus_mode=off": "coll_cepheus_mode is try",
    "coll_cepheus_set_up_after=5": "coll_cepheus_set_up_after is -1",
    "coll_cepheus_collectives=bcast,barrier": "coll_cepheus_collectives is bcast,barrier,allreduce,reduce,allgather",
    "coll_cepheus_min_members=9": "coll_cepheus_min_members is 2",
    "coll_cepheus_priority=10": "coll_cepheus_priority is 95",
    "coll_cepheus_safeguard_samples=3": "coll_cepheus_safeguard_samples is 0",
}
# Open MPI's remote shell, to nodes that are names on this machine.
NODE = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
node=$1
shift
exec unshare -u sh -c "hostname $node; $*"
"""


def check_of_unlike(setting, *arguments, rank=1):
    """A program that gives one rank the setting, and runs broadcast_check."""
    program = f'if [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then export OMPI_MCA_{setting}; fi; exec "$@"'
    return ("/bin/sh", "-c", program, "sh", CHECK, *arguments)


class UnlikeRanks(EndToEnd):
    def test_open_mpis_own_broadcast_serves_all(self):
        for setting, words in UNLIKE.items():
            with self.subTest(setting):
                run = over_fabric(*check_of_unlike(setting, "--count", 40, "--max", 100_000))
                self.assert_ok(run)
                self.assertEqual([words in line for line in run.cepheus_lines()], [True], run.everything())

    def test_a_job_that_requires_multicast_ends(self):
        run = over_fabric(*check_of_unlike("coll=^cepheus", "--count", 40), mca=REQUIRE)
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertIn("not loaded", run.err)

    def test_the_first_rank_whose_min_members_lets_it_serve_reports(self):
        run = over_fabric(*check_of_unlike("coll_cepheus_min_members=9", "--count", 40, rank=0), mca=REQUIRE)
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertIn(f"coll_cepheus_min_members is 2 on {HERE}, and 9 on {HERE}", run.err)

    def test_ranks_that_are_off_alike_print_nothing(self):
        run = without_fabric(CHECK, "--count", 10, ranks=2, mca={**PARTED, "coll_cepheus_mode": "off"})
        self.assert_ok(run)
        self.assertEqual(run.cepheus_lines(), [])

    def test_a_component_whose_library_is_another_reports_that(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-component-") as scratch:
            shutil.copy(COMPONENT, scratch)
            shutil.copy(BUILD / "lib/libmcast.so.0", f"{scratch}/libcepheus-coll.so")
            run = without_fabric(CHECK, "--count", 3, ranks=2, mca=REQUIRE,
                                 environment={"OMPI_MCA_mca_base_component_path": f"SYSTEM_DEFAULT:{scratch}"})
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertRegex(run.err, "cepheus: .*libcepheus-coll.so")

    def test_records_come_from_their_nodes_if_mpi_init_does_not_exchange_them(self):
        if subprocess.run(["unshare", "-u", "true"], capture_output=True).returncode != 0:
            self.skipTest("SKIPPED: unshare -u is not permitted, so there are no two nodes: run the test as root")
        if "(Open MPI) 4." not in subprocess.run(["mpirun", "--version"], text=True, capture_output=True, check=True).stdout:
            self.skipTest("SKIPPED: this test sets up the launcher of Open MPI 4: run it there, as on Debian 12")
        with tempfile.TemporaryDirectory(prefix="cepheus-nodes-") as scratch:
            shell, hosts = (pathlib.Path(scratch) / name for name in ("shell", "hosts"))
            shell.write_text(NODE)
            shell.chmod(0o700)
            hosts.write_text("node-a slots=2\nnode-b slots=2\n")
            nodes = {"plm_rsh_agent": shell, "orte_default_hostfile": hosts, "oob_tcp_if_include": "lo", "pmix_base_collect_data": 0}
            run = without_fabric(CHECK, "--count", 10, ranks=4, mca={**PARTED, **nodes})
        self.assert_ok(run)
        self.assertEqual([line for line in run.cepheus_lines() if "not loaded" in line], [])


if __name__ == "__main__":
    unittest.main()
