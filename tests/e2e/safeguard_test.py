#!/usr/bin/python3
"""Mode try chooses the faster way for each collective and size: the network, or the other way."""

import re
import unittest

from harness import AT_ONCE, CHECK, PROGRAMS, REQUIRE, VERBOSE, Reporting, over_fabric, star

LOSSY = star(4, "loss = 0.05")
# 1 MiB takes 168 ms on these links, and some milliseconds the other way: a busy machine changes neither much.
SLOW = star(4, 'rate = "50Mbps"')
# All blocks, of 32 KiB together, take 52 ms in the network, and a few milliseconds by messages.
SLOWER = star(4, 'rate = "10Mbps"')
REDUCED = {**VERBOSE, "coll_cepheus_reduction_limit": 32768}
# Between hosts there is no shared memory.
LOOPBACK = {"pml": "ob1", "btl": "self,tcp", "btl_tcp_if_include": "lo"}
COMPARED = {**LOOPBACK, "coll_cepheus_safeguard_samples": 10}
# Open MPI's broadcast over the same NICs, and links, as multicast. UCX would wait a second for an ACK, the NIC 50 ms.
OVER_NICS = ("--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any",
             "-x", "UCX_TLS=rc_v,ud_v,self", "-x", "UCX_NET_DEVICES=cepheus0:1", "-x", "UCX_RC_TIMEOUT=50ms")
OFTEN = {**LOOPBACK, "coll_cepheus_safeguard_samples": 500}
# 10,000 times as long, which no busy machine reaches.
PATIENT = {**COMPARED, "coll_cepheus_safeguard_threshold": 1_000_000}
CHANGE = re.compile(r"broadcasts (.*) are (no longer multicast|multicast again): one takes ([\d.]+) us by multicast, ([\d.]+) us by open mpi")
ROUNDED = 0.2  # us


class Safeguard(Reporting):
    def choices(self):
        return {each["sizes"]: each["way"] for each in self.world()[1]["sizes"]}

    def calls(self, path):
        return sum(each["most"] for each in self.world()[1]["paths"] if each["path"] == path)

    def assert_choices_follow_times(self, run):
        """The faster way is the machine's business. Each change of way must have its reason in the times, and be the present choice.

        The last times may speak against the choice: a comparison that does so is repeated before the way changes.
        """
        chosen = dict.fromkeys(self.choices(), "multicast")
        for sizes, change, multicast, other in CHANGE.findall(run.err):
            if change == "no longer multicast":
                chosen[sizes] = "open mpi"
                self.assertGreater(float(multicast) + ROUNDED, 1.5 * float(other), run.everything())
            else:
                chosen[sizes] = "multicast"
                self.assertLess(float(multicast), float(other) + ROUNDED, run.everything())
        self.assertEqual(self.choices(), chosen, run.everything() + self.explained())

    def check_lossy_fabric(self, **how):
        """Comparisons over a fabric that loses packets from the start on."""
        run = over_fabric(CHECK, "--count", 150, "--size", 20_000, timeout=240, **how)
        self.assert_ok(run)
        self.assert_lost(run)
        self.assertEqual(list(self.choices()), ["up to 32 KiB"], self.explained())
        self.assertGreaterEqual(self.calls("open mpi"), 12, "the first comparisons have 12 samples")
        self.assert_choices_follow_times(run)
        self.assertRegex(self.explained(), r"up to 32 KiB +(open mpi|multicast) +[\d.]+ us +[\d.]+ us")

    def test_a_fabric_that_loses_packets_is_compared_with_the_loopback_device(self):
        self.check_lossy_fabric(topology=LOSSY, mca={**VERBOSE, **COMPARED})

    def test_if_both_ways_lose_packets_the_choice_follows_the_times(self):
        self.check_lossy_fabric(topology=star(4, "loss = 0.01"), mpirun=OVER_NICS, mca={**VERBOSE, "coll_cepheus_safeguard_samples": 10})

    def test_slow_links_are_not_chosen(self):
        run = over_fabric(CHECK, "--count", 120, "--size", 1 << 20, topology=SLOW, mca={**VERBOSE, **COMPARED})
        self.assert_ok(run)
        self.assertEqual(self.choices(), {"up to 1 MiB": "open mpi"}, self.explained())
        self.assertGreater(self.calls("open mpi"), 30)
        self.assert_choices_follow_times(run)

    def test_a_good_fabric_is_chosen(self):
        self.assert_ok(over_fabric(CHECK, "--count", 1000, "--size", 1000, mca=PATIENT))
        self.assertEqual(self.choices(), {"up to 1 KiB": "multicast"}, self.explained())
        self.assertGreaterEqual(self.calls("eager lane"), 950)
        self.assertGreaterEqual(self.calls("open mpi"), 12, "the first comparisons have 12 samples")

    def test_sizes_are_chosen_apart(self):
        run = over_fabric(CHECK, "--count", 400, "--max", 1 << 20, topology=SLOW, mca=OFTEN, timeout=240)
        self.assert_ok(run)
        self.assertEqual(self.choices()["up to 1 MiB"], "open mpi", self.explained())
        self.assertGreater(len(self.choices()), 3, self.explained())

    def test_ranks_that_share_hosts_choose_together(self):
        run = over_fabric(CHECK, "--count", 120, "--size", 1 << 20, options=("--ranks-per-host", 2), topology=SLOW, mca=COMPARED)
        self.assert_ok(run)
        self.assertEqual(self.choices(), {"up to 1 MiB": "open mpi"}, self.explained())

    def test_non_blocking_broadcasts_are_chosen_apart(self):
        self.assert_ok(over_fabric(PROGRAMS / "ibcast_check", "--count", 200, topology=LOSSY, mca=OFTEN, timeout=240))
        self.assertTrue(any(sizes.startswith("ibcast") for sizes in self.choices()), self.explained())
        self.assertGreater(self.calls("ibcast: point to point"), 0, self.explained())

    def test_a_job_that_requires_multicast_has_no_safeguard(self):
        self.assert_ok(over_fabric(CHECK, "--count", 60, "--size", 20_000, topology=LOSSY, mca={**REQUIRE, **COMPARED}))
        self.assertEqual(self.choices(), {})
        self.assertEqual(self.calls("open mpi"), 0)

    def test_without_samples_there_is_no_safeguard(self):
        self.assert_ok(over_fabric(CHECK, "--count", 60, "--size", 20_000, mca={"coll_cepheus_safeguard_samples": 0}))
        self.assertEqual(self.choices(), {})
        self.assertEqual(self.calls("open mpi"), 0)

    def check_slow_reductions(self, size, text, **how):
        """Every bit is right, whatever the way is. Barriers have few bytes, and are chosen by the machine's load. A first comparison
        that is void is repeated after 500 calls."""
        run = over_fabric(PROGRAMS / "reduction_rounds_check", "--count", 800, "--size", size, topology=SLOWER, mca={**REDUCED, **COMPARED}, **how)
        self.assert_ok(run)
        choices = self.choices()
        self.assertEqual(choices.pop(f"allreduce up to {text}"), "messages", self.explained())
        self.assertEqual(choices.pop(f"allgather up to {text}"), "open mpi", self.explained())
        choices.pop("barrier", None)
        self.assertEqual(choices, {}, self.explained())
        self.assertGreater(self.calls("allreduce: messages"), 30, self.explained())
        self.assertGreater(self.calls("allgather: open mpi"), 30, self.explained())
        self.assertRegex(run.err, rf"allreduce up to {text} no longer uses the network: one takes [\d.]+ us by the network, [\d.]+ us by messages")
        self.assertRegex(self.explained(), rf"allreduce up to {text} +messages +[\d.]+ us +[\d.]+ us")

    def test_reductions_leave_slow_links(self):
        self.check_slow_reductions(8192, "8 KiB")

    def test_reductions_of_ranks_that_share_hosts_leave_slow_links(self):
        self.check_slow_reductions(4096, "4 KiB", options=("--ranks-per-host", 2))

    def test_random_reductions_have_the_right_bits_by_any_way(self):
        self.assert_ok(over_fabric(PROGRAMS / "reductions_check", "--count", 300, "--pairwise", 32768, topology=star(4, 'delay = "1ms"'),
                                   mca={**REDUCED, **OFTEN, **AT_ONCE}))
        (job,) = self.jobs().values()
        samples = [each for one in job["communicators"] for each in one["paths"] if each["path"].endswith("reduce: messages")
                   and each["reason"].startswith(("a sample", "faster than the network"))]
        self.assertGreater(len(samples), 0, self.explained())


if __name__ == "__main__":
    unittest.main()
