#!/usr/bin/python3
"""If the fabric can't multicast, Open MPI's built-in broadcast runs, with a reason; in mode require one clear error ends the job."""

import os
import pathlib
import re
import signal
import socket
import tempfile
import threading
import unittest

from harness import AT_ONCE, BUILD, CHECK, PARTED, PROGRAMS, REQUIRE, VERBOSE, EndToEnd, mpi, over_fabric, star, without_fabric
from live import LiveRun
from live_fault_test import MULTICAST

ARGUMENTS = ("--count", 20, "--max", 1 << 18)


class SetUpRun(LiveRun):
    CHECK = PROGRAMS / "set_up_check"


class SharedHostsRun(LiveRun):
    def command(self, mca, program):
        command = super().command(mca, program)
        command[command.index("-np") + 1] = str(2 * len(self.hosts))
        return [command[0], "--ranks-per-host", "2", *command[1:]]


class SlowRun(LiveRun):
    CHECK = PROGRAMS / "slow_check"


class RetryRun(LiveRun):
    """On a switch with space for one group."""

    CHECK = PROGRAMS / "order_check"

    def __init__(self, **options):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(star(4, switch="max_groups = 1"))
            file.flush()
            super().__init__("--retry", 1, fabric=("--topology", file.name), **options)


class Fallback(EndToEnd):
    def assert_reported_once(self, run, *words):
        output = run.cepheus_lines()
        self.assertEqual(len([line for line in output if "eager lane" in line]), 1, run.everything())
        for word in words:
            self.assertIn(word, output[0])
    def test_switch_without_table_space(self):
        run = over_fabric(CHECK, *ARGUMENTS, topology=star(4, switch="max_groups = 0"), mca=VERBOSE)
        self.assert_ok(run)
        self.assert_reported_once(run, f"{mpi().NAME}'s own algorithms", "table space")
    def test_no_fabric(self):
        run = without_fabric(CHECK, *ARGUMENTS, mca={**VERBOSE, **PARTED})
        self.assert_ok(run)
        self.assert_reported_once(run, f"{mpi().NAME}'s own algorithms", "no ")
    def test_ranks_that_share_a_machine_use_shared_memory(self):
        run = without_fabric(CHECK, *ARGUMENTS, mca=VERBOSE)
        self.assert_ok(run)
        self.assertEqual(len(run.cepheus_lines()), 1, run.everything())
        self.assertIn("one machine", run.cepheus_lines()[0])
    def test_quiet_by_default(self):
        run = without_fabric(CHECK, *ARGUMENTS)
        self.assert_ok(run)
        self.assertEqual(run.cepheus_lines(), [])

    def test_only_the_eager_lane_finds_space(self):
        run = over_fabric(CHECK, *ARGUMENTS, topology=star(4, switch="max_groups = 1"), mca={**VERBOSE, **AT_ONCE})
        self.assert_ok(run)
        output = run.lines_of_broadcasts()
        self.assertEqual(len(output), 3, run.everything())  # the third one is of reductions, at the end
        self.assertEqual([("reductions" in line, "table space" in line) for line in output],
                         [(False, False), (False, True), (True, True)], run.everything())

    # The root is its host's leader in some calls.
    def test_several_ranks_a_host_use_open_mpis_own_algorithm(self):
        for root in (0, 1):
            for size in (100, 200_000):
                run = over_fabric(PROGRAMS / "counters_check", "--bytes", size, "--root", root, "--count", 5, options=("--ranks-per-host", 2),
                                  topology=star(2, switch="max_groups = 0"), mca=VERBOSE)
                self.assert_ok(run)
                counted = run.variables()
                self.assertEqual((counted["bcasts_saved"], counted["bcasts_hosts"]), (5, 0), run.everything())

    def test_several_ranks_a_host_continue_when_the_fabric_fails(self):
        with SharedHostsRun("--max", 100_000, hosts=2, mca=VERBOSE) as run:
            run.wait_for_payload(100_000)
            served = r"2 of 4 ranks.*multicast, eager lane"
            before = run.err.count(served)
            run.switch.kill()
            self.assertTrue(run.err.wait_for("still .*'s own algorithms"), run.everything())
            run.switch.start()
            self.assertTrue(run.err.wait_for(served, before + 1), run.everything())
            self.assertEqual(run.finish(), 0, run.everything())

    def test_space_that_comes_free_is_used(self):
        with RetryRun(mca=VERBOSE) as run:
            self.assertTrue(run.err.wait_for("table space"), run.everything())
            self.assertTrue(run.err.wait_for("multicast, eager lane", 2), run.everything())
            self.assertEqual(run.finish(), 0, run.everything())
            self.assertEqual(len(set(re.findall(r"multicast, eager lane on group (\S+)", run.err.text()))), 2, run.everything())

    # h0 receives nothing: the group of large messages waits for its confirmation, the group of small ones for an ACK.
    def test_a_fabric_that_fails_during_a_groups_set_up(self):
        with SetUpRun(hosts=3, mca={**VERBOSE, "coll_cepheus_register_timeout_ms": 20000}) as run:
            run.switch.set_links(["h0"], direction="down", loss=1)
            self.assertEqual(run.finish(), 0, run.everything())
            self.assertTrue(run.out.count("^ok:"), run.everything())
            self.assertTrue(run.err.count("group's set-up"), run.everything())

    # The first new attempt finds the port still down.
    def test_multicast_returns_after_a_port_was_down_for_long(self):
        with LiveRun("--max", 100_000, hosts=3, mca=VERBOSE) as run:
            run.wait_for_payload(100_000)
            before = run.err.count(MULTICAST)
            run.switch.kill()
            self.assertTrue(run.err.wait_for("still .*'s own algorithms"), run.everything())
            run.switch.start()
            self.assertTrue(run.err.wait_for(MULTICAST, before + 1), run.everything())
            self.assertEqual(run.finish(), 0, run.everything())

    # If the root checked one communicator per test, it would reach the right one after thousands.
    def test_a_retransmission_does_not_wait_for_hundreds_of_communicators(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-slow-") as scratch:
            failed = pathlib.Path(scratch) / "failed"
            with SlowRun("--alive", 200, "--failed", failed, hosts=2, mca=VERBOSE) as run:
                run.switch.set_links(["h1"], direction="down", loss=1)
                run.stop_file.touch()
                self.assertTrue(run.out.wait_for("^sent"), run.everything())
                run.switch.kill()
                failed.touch()
                self.assertEqual(run.finish(), 0, run.everything())
            self.assertTrue(run.out.count("^ok:"), run.everything())
            looks = int(re.search(r"looks (\d+)", run.out.text()).group(1))
            self.assertLess(looks, 1500, run.everything())

    # The switch is stopped for longer than a registration's limit in mode "try".
    def test_a_job_that_requires_multicast_waits_for_a_busy_switch(self):
        with SetUpRun("--straight", 1, hosts=3, mca={"coll_cepheus_mode": "require", "coll_cepheus_watchdog_ms": 30000}) as run:
            os.kill(run.switch.pid, signal.SIGSTOP)
            run.stop_file.touch()
            threading.Event().wait(3)  # nothing to wait for: this is the fault
            os.kill(run.switch.pid, signal.SIGCONT)
            self.assertEqual(run.finish(), 0, run.everything())
            self.assertTrue(run.out.count("^ok:"), run.everything())

    def test_a_fabric_that_starts_after_the_first_broadcasts(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-late-") as scratch:
            end = pathlib.Path(scratch) / "end"
            with SetUpRun("--end", end, hosts=2, mca={**VERBOSE, "coll_cepheus_ranks_per_host": -1}) as run:
                run.switch.kill()
                run.stop_file.touch()
                self.assertTrue(run.err.wait_for("'s own algorithms: rank "), run.everything())
                run.switch.start()
                self.assertTrue(run.err.wait_for(MULTICAST), run.everything())
                end.touch()
                self.assertEqual(run.finish(), 0, run.everything())

    def test_a_fabric_that_fails_between_the_first_reduction_and_the_first_broadcast(self):
        reduces = "reductions in the network"
        with tempfile.TemporaryDirectory(prefix="cepheus-late-") as scratch:
            end = pathlib.Path(scratch) / "end"
            with SetUpRun("--end", end, "--barrier", 1, hosts=2, mca={**VERBOSE, **AT_ONCE}) as run:
                self.assertTrue(run.err.wait_for(reduces), run.everything())
                run.switch.kill()
                run.stop_file.touch()
                for words in "the group of its reductions failed", "'s own algorithms for the eager lane":
                    self.assertTrue(run.err.wait_for(words), run.everything())
                run.switch.start()
                self.assertTrue(run.err.wait_for(MULTICAST), run.everything())
                self.assertTrue(run.err.wait_for(reduces, 2), run.everything())
                end.touch()
                self.assertEqual(run.finish(), 0, run.everything())

    def test_off(self):
        run = over_fabric(CHECK, *ARGUMENTS, mca={"coll_cepheus_mode": "off", **VERBOSE})
        self.assert_ok(run)
        self.assertEqual(run.port("h0")["rx_payload_bytes"], 0)

    def test_a_group_smaller_than_wanted(self):
        run = over_fabric(CHECK, *ARGUMENTS, hosts=3, mca={"coll_cepheus_min_members": 4, **VERBOSE})
        self.assert_ok(run)
        self.assertIn(f"{mpi().parameter('min_members')} = 4", "".join(run.cepheus_lines()))


class OpenMpisFallback(EndToEnd):
    def assert_one_error(self, run, *words):
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertNotIn("ok:", run.out)
        self.assertEqual(run.err.count('the parameter\ncoll_cepheus_mode is "require"'), 1, run.everything())
        for word in words:
            self.assertIn(word, run.err)
        self.assertIn("What to do:", run.err)

    def test_switch_without_table_space_is_an_error_if_required(self):
        run = over_fabric(CHECK, *ARGUMENTS, topology=star(4, switch="max_groups = 0"), mca=REQUIRE)
        self.assert_one_error(run, "table space")

    # It runs, accepts connections and sends nothing. Without the variable the ranks wait for 30 s.
    def test_ranks_wait_for_a_late_switch_as_long_as_the_variable(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-late-") as scratch, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            path = f"{scratch}/fabric"
            listener.bind(path)
            listener.listen()
            environment = {"LD_PRELOAD": f"{BUILD}/lib/libcepheus-roce.so", "CEPHEUS_FABRIC": path,
                           "CEPHEUS_ATTACH_TIMEOUT_MS": "2600"}
            run = without_fabric(CHECK, "--count", 1, "--max", 100, ranks=2, environment=environment,
                                 mca={**VERBOSE, **PARTED})
            self.assert_ok(run)
            waited = int(re.search(r"did not answer within (\d+) ms", run.err).group(1))
            self.assertTrue(2600 <= waited < 30000, run.everything())

    def test_no_fabric_is_an_error_if_required(self):
        self.assert_one_error(without_fabric(CHECK, *ARGUMENTS, mca=REQUIRE), "rank 0")


if __name__ == "__main__":
    unittest.main()
