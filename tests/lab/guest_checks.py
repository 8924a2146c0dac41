#!/usr/bin/python3
"""In the lab: MPI_Bcast over the kernel's Soft-RoCE with both source-change methods, groups of both kinds of NIC,
fallback. lab_test.py runs it in one machine, since a boot costs more than most of these tests."""

import collections
import json
import re
import subprocess
import tempfile
import unittest

import matrix
from guest_fabric import BUILD, HOSTS, KERNEL_HOSTS, PROJECT, Switch, kernel_counters
from harness import TRANSPORT

MIXED = ["rxe0", "m0", "rxe1", "m1"]
LOSS = 0.005
PEER_PORT = 18519
METHODS = ("rebase", "host-sync")


class Lab(unittest.TestCase):
    def assert_ok(self, run):
        everything = f"exit {run.returncode}\n{run.stdout}\n{run.stderr}"
        self.assertEqual(run.returncode, 0, everything)
        self.assertIn("ok:", run.stdout, everything)

    def assert_writes(self, switch, devices):
        """Multicast WRITE with and without immediate, of two sources; and a MiB of it through UCX if that has rc_mcast."""
        example = [BUILD / "examples/write"]
        # Links lose packets of a MiB; of the example's own data, after a while.
        commands = [example, [BUILD / "tests/uct_put_example", TRANSPORT]] if TRANSPORT.exists() else [example] * 8
        for command in commands:
            results = switch.group_program(command, devices)
            self.assertEqual([code for code, _ in results], [0] * len(devices), results)


class KernelHosts(Lab):
    def test_fifty_broadcasts_with_loss_by_each_method(self):
        for method in METHODS:
            with self.subTest(method), Switch(source_change=method) as switch:
                switch.set_links(KERNEL_HOSTS, loss=LOSS)
                before = [kernel_counters(f"rxe{i}")["sent_pkts"] for i in range(HOSTS)]
                self.assert_ok(switch.broadcasts(50, 1 << 16))
                after = [kernel_counters(f"rxe{i}")["sent_pkts"] for i in range(HOSTS)]
                self.assertTrue(all(b > a for a, b in zip(before, after)), "the kernel's devices sent nothing")
                self.assertGreater(switch.lost(), 0, "the links lost nothing: the test tested nothing")

    def test_ranks_with_one_gid_are_one_host(self):
        with Switch() as switch:
            run = switch.broadcasts(12, 1 << 16, ranks=["rxe0", "rxe1", "rxe0", "rxe1"])
            self.assert_ok(run)
            self.assertIn("(4 ranks): 2 hosts; multicast among one rank of each", run.stderr)
            self.assertRegex(run.stderr, r"\(2 of 4 ranks\): multicast, ")

    def test_processes_of_a_host_are_members_of_different_groups(self):
        with Switch() as switch:
            run = switch.broadcasts(12, 1 << 16, ranks=[f"rxe{rank // 2}" for rank in range(2 * HOSTS)], comm="split")
            self.assert_ok(run)
            self.assertEqual(len(re.findall(rf"\({HOSTS} ranks\): multicast, ", run.stderr)), 2, run.stderr)
            explained = json.loads(switch.ctl("explain", "--json"))["jobs"][0]
        self.assertEqual(explained["processes"], 2 * HOSTS)
        for communicator in explained["communicators"]:
            for path in communicator["paths"]:
                self.assertRegex(path["reason"], "^(multicast|the network|among one rank of each host)$", explained)

    def test_writes_into_all_members_memory(self):
        with Switch() as switch:
            switch.set_links(KERNEL_HOSTS, loss=LOSS)
            self.assert_writes(switch, [f"rxe{i}" for i in range(HOSTS)])
            self.assertGreater(switch.lost(), 0, "the links lost nothing: the test tested nothing")

    def test_writes_to_the_place_in_each_write(self):
        # To the kernel's NICs the announcement is a WRITE without data.
        for devices in ([f"rxe{i}" for i in range(HOSTS)], MIXED):
            with self.subTest(devices), Switch(switch='write_mode = "per-request"') as switch:
                switch.set_links(KERNEL_HOSTS, loss=LOSS)
                results = switch.group_program([BUILD / "examples/write_to"], devices)
                self.assertEqual([code for code, _ in results], [0] * len(devices), results)
                self.assertGreater(switch.lost(), 0, "the links lost nothing: the test tested nothing")

    def test_a_thousand_sums(self):
        for devices in ([f"rxe{i}" for i in range(HOSTS)], MIXED):
            with self.subTest(devices), Switch() as switch:
                switch.set_links(KERNEL_HOSTS, loss=LOSS)
                results = switch.group_program([BUILD / "examples/reduce"], devices)
                self.assertEqual([code for code, _ in results], [0] * len(devices), results)
                self.assertGreater(switch.lost(), 0, "the links lost nothing: the test tested nothing")

    def test_one_sender_writes_and_sends_to_three_receivers(self):
        with Switch() as switch:
            switch.set_links(KERNEL_HOSTS, loss=LOSS)
            before = kernel_counters("rxe0")["sent_pkts"]
            results = switch.group_program([BUILD / "tests/mcast_sender_stream"], [f"rxe{i}" for i in range(HOSTS)])
            self.assertEqual([code for code, _ in results], [0] * HOSTS, results)
            self.assertGreater(kernel_counters("rxe0")["sent_pkts"], before)
            self.assertGreater(switch.lost(), 0, "the links lost nothing: the test tested nothing")

    def test_falls_back_if_a_host_is_cut_off(self):
        with Switch() as switch:
            switch.ctl("link", "h3", "--down")
            run = switch.broadcasts(4, 4096, mode="try")
            self.assert_ok(run)
            self.assertIn("cepheus:", run.stderr)
            self.assertNotIn("multicast, ", run.stderr)


class BothKinds(Lab):
    def test_groups_with_members_of_both_kinds(self):
        for method in METHODS:
            with self.subTest(method), Switch(source_change=method) as switch:
                self.assert_ok(switch.broadcasts(12, 1 << 16, ranks=MIXED))

    def test_writes_into_all_members_memory(self):
        with Switch() as switch:
            self.assert_writes(switch, MIXED)

    def test_every_operation_on_each_other(self):
        run = subprocess.run(["/usr/bin/python3", PROJECT / "tests/lab/matrix.py"], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


class FabricTest(Lab):
    """`cepheus fabric-test` between two of the kernel's NICs."""

    TOOL = (BUILD / "bin/cepheus", "fabric-test", "--wait", "5")  # seconds for an answer

    def alone(self, *arguments):
        """The report of host h0, without a peer."""
        return self.report("--source", "10.0.0.1", *arguments)

    def examine(self, *arguments):
        """... with h1 as its peer."""
        serve = [*self.TOOL, "--serve", PEER_PORT, "--device", "rxe1", "--source", "10.0.0.2"]
        with subprocess.Popen(list(map(str, serve)), stdout=subprocess.PIPE, text=True) as peer:
            try:
                self.assertIn("serving", peer.stdout.readline())
                return self.alone("--peer", f"127.0.0.1:{PEER_PORT}", *arguments)
            finally:
                peer.kill()

    def report(self, *arguments):
        run = subprocess.run(list(map(str, [*self.TOOL, "--json", "-", *arguments])), text=True, capture_output=True, timeout=300)
        return json.loads(run.stdout) if run.stdout else self.fail(run.stderr)

    def failed(self, report):
        return [(step["name"], step["cause"], step["seen"]) for step in report["steps"] if not step["ok"]]

    def test_all_steps_pass(self):
        with Switch():
            report = self.examine("--device", "rxe0")
        self.assertEqual(self.failed(report), [])
        steps = {step["name"]: step["data"] for step in report["steps"]}
        self.assertEqual(list(steps)[-1], "reset")
        self.assertEqual(steps["cnps"]["cnps"], 1000)
        self.assertGreaterEqual(steps["rnr"]["rnrs"], 20)
        self.assertGreater(steps["copies"]["counters"]["rxe0 sent_pkts"], 10_000)

    def test_faults_of_a_kernels_nic_are_named(self):
        with Switch():
            self.assertEqual([cause for _, cause, _ in self.failed(self.alone("--device", "rxe1"))], ["wrong-interface"])
            subprocess.run(["ip", "link", "set", "h0", "mtu", "1500"], check=True)
            try:
                self.assertEqual(self.failed(self.alone("--device", "rxe0"))[0][1], "mtu-host")
            finally:
                subprocess.run(["ip", "link", "set", "h0", "mtu", "4210"], check=True)


class Marks(Lab):
    """A link between both kinds of NIC, slower than any of them, that marks packets behind two waiting ones."""

    TRUNK = 'rate = "40Mbps", ecn = { kmin = "5KB", kmax = "9KB", pmax = 1.0 }'
    TO_KERNEL = ["s0"]  # ports; the kernel's packets are not ECN-capable unless a program sets that
    CAPABLE = 2  # ECT(0) as a traffic class

    def run_pair(self, switch, client, server, port, traffic_class=0):
        """The counters of the emulated end, which names only those above 0; all operations of both must succeed."""
        with tempfile.TemporaryFile("w+") as errors:
            outcomes = matrix.run_pair(switch, client, server, port, traffic_class, errors)
            errors.seek(0)
            output = errors.read()
        self.assertEqual({cell: outcome for cell, outcome in outcomes.items() if outcome != "ok"}, {}, output)
        self.assertGreater(len(outcomes), 5, outcomes)
        self.assertIn("counters of m0", output)
        return collections.Counter({name: int(value) for name, value in re.findall(r"(?m)^(\w+) (\d+)", output)})

    def test_the_kernels_nic_accepts_marked_packets_and_sends_no_notification(self):
        with Switch(congestion="orig", trunk=self.TRUNK) as switch:
            counted = self.run_pair(switch, matrix.soft_end(0, verbose=True), matrix.kernel_end(0), 19101)
            self.assertGreater(switch.counted("ecn_marked", self.TO_KERNEL), 0, "nothing was marked: the test tested nothing")
        self.assertEqual((counted["rx_cnp"], counted["rx_ce_echo"], counted["rate_cuts"]), (0, 0, 0), counted)

    def test_the_kernels_nic_continues_under_any_notification(self):
        with Switch(congestion="orig", trunk=self.TRUNK) as switch:
            counted = self.run_pair(switch, matrix.kernel_end(0), matrix.soft_end(0, verbose=True), 19102, self.CAPABLE)
        self.assertGreater(counted["rx_ce_marked"], 0, counted)
        self.assertGreater(counted["tx_cnp"], 0, counted)

    def test_groups_with_members_of_both_kinds(self):
        for congestion in ("orig", "orig,ce-echo"):
            with self.subTest(congestion), Switch(congestion=congestion, trunk=self.TRUNK) as switch:
                self.assert_ok(switch.broadcasts(12, 1 << 16, ranks=MIXED))
                self.assertGreater(switch.counted("ecn_marked", self.TO_KERNEL), 0, "the kernel's NICs got no mark")


if __name__ == "__main__":
    unittest.main(verbosity=2)
