#!/usr/bin/python3
"""A member is lost during a broadcast: no rank gets success without its data."""

import contextlib
import os
import pathlib
import signal
import tempfile
import unittest

from harness import BUILD, star
from live import LiveRun, wait_until
from live_fault_test import MULTICAST, OWN_ALGORITHMS

MEGA = 1 << 20
HOSTS = 4
LOST = HOSTS - 1  # the rank that pauses


class LostRun(LiveRun):
    """On slow links: a large broadcast takes a second."""

    CHECK = BUILD / "tests/mpi/lost_check"

    def __init__(self, *arguments, **options):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(star(HOSTS, 'rate = "200Mbps"'))
            file.flush()
            super().__init__(*arguments, fabric=("--topology", file.name), **options)


class LostMember(unittest.TestCase):
    def check_right(self, run):
        self.assertEqual(run.finish(), 0, run.everything())
        self.assertEqual(run.out.count("^ok: "), 1, run.everything())
        self.assertEqual(run.err.count("is wrong"), 0, run.everything())

    def port_goes_down(self, *arguments):
        """... while the rank computes; the others continue."""
        fault = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-lost-")), "fault")
        with LostRun("--pause", 2, "--after", fault, *arguments, mca={"coll_cepheus_verbose": 1}) as run:
            self.assertTrue(run.out.wait_for("pausing"), run.everything())
            self.assertTrue(run.err.wait_for(MULTICAST), "there was no group before the fault\n" + run.everything())
            run.switch.set_links([f"h{LOST}"], up=False)
            fault.touch()
            self.check_right(run)
            self.assertTrue(run.err.count(OWN_ALGORITHMS), "no member was lost\n" + run.everything())

    def test_large_blocking(self):
        self.port_goes_down("--size", 16 * MEGA)

    def test_large_nonblocking(self):
        self.port_goes_down("--size", 16 * MEGA, "--ibcast", 1)

    def test_small_blocking(self):
        self.port_goes_down("--size", 1000, "--count", 300)

    def test_small_nonblocking(self):
        self.port_goes_down("--size", 1000, "--count", 300, "--ibcast", 1)

    def stop_until_a_group_ends(self, run):
        """Stops the member; it goes on once its silence has ended a group."""
        def ended():
            return run.switch.status()["switches"][0]["counters"].get("mrp_unregister", 0)

        self.assertTrue(run.out.wait_for("pausing"), run.everything())
        run.wait_for_payload(MEGA)
        pid, before = run.pid(LOST), ended()
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: ended() > before, lambda: "a group's end\n" + run.everything())
        with contextlib.suppress(ProcessLookupError):  # the job may end at once
            os.kill(pid, signal.SIGCONT)

    def test_stopped_beyond_eviction_in_mode_require(self):
        """The job ends with an error that names the member; no rank has wrong data."""
        mca = {"coll_cepheus_mode": "require"}
        with LostRun("--size", 64 * MEGA, "--count", 8, "--pause", 0, mca=mca) as run:
            self.stop_until_a_group_ends(run)
            self.assertNotEqual(run.finish(), 0, run.everything())
            self.assertEqual(run.err.count("is wrong"), 0, run.everything())
            self.assertGreaterEqual(run.err.count(r"10\.0\.0\.4"), 1, run.everything())

    def test_stopped_beyond_eviction_in_mode_try(self):
        with LostRun("--size", 64 * MEGA, "--count", 8, "--pause", 0) as run:
            self.stop_until_a_group_ends(run)
            self.check_right(run)


if __name__ == "__main__":
    unittest.main()
