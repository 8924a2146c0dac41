#!/usr/bin/python3
"""Jobs that share a running fabric, and ranks that a job starts later: each gets hosts that are free."""

import re
import signal
import subprocess
import unittest

from harness import BUILD, CHECK, PROGRAMS, REQUIRE, VERBOSE, EndToEnd, Run, mca_arguments, over_fabric
from live import TIME_LIMIT, Lines, Switch

QUICK = (CHECK, "--count", 10, "--max", 20000)


class Jobs(EndToEnd):
    def fabric(self, hosts):
        return self.enterContext(Switch("--hosts", hosts))

    def start(self, switch, ranks, *program, mca=None, options=()):
        command = [BUILD / "bin/cepheus-run", "-v", "--fabric", switch.socket, *options, "--", "-np", ranks, *mca_arguments(mca or {}),
                   *program]
        return subprocess.Popen(list(map(str, command)), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def finish(self, process):
        out, err = process.communicate(timeout=TIME_LIMIT)
        return Run(subprocess.CompletedProcess(process.args, process.returncode, out, err))

    def hosts_of(self, run):
        return re.search(r"hosts at \S+: (\S+)", run.err).group(1).split(",")

    def test_started_together_take_different_hosts(self):
        switch = self.fabric(8)
        started = [self.start(switch, 4, *QUICK, mca=REQUIRE) for _ in range(2)]
        runs = [self.finish(process) for process in started]
        for run in runs:
            self.assert_ok(run)
        self.assertEqual(sorted(sum(map(self.hosts_of, runs), [])), [f"h{i}" for i in range(8)])

    def test_with_named_hosts_take_these(self):
        run = self.finish(self.start(self.fabric(4), 2, *QUICK, mca=REQUIRE, options=("--on", "h3,h1")))
        self.assert_ok(run)
        self.assertEqual(self.hosts_of(run), ["h3", "h1"])

    def test_without_enough_hosts_end_with_a_message_and_run_once_there_are_enough(self):
        switch = self.fabric(4)
        first = self.start(switch, 3, "sleep", 1000)
        self.addCleanup(first.stdout.close)
        self.addCleanup(first.stderr.close)
        output = Lines(first.stderr)
        self.assertTrue(output.wait_for("3 hosts at"), output.text())
        refused = self.finish(self.start(switch, 2, *QUICK, mca=REQUIRE))
        self.assertEqual((refused.code, refused.out), (1, ""), refused.everything())
        self.assertRegex(refused.err, "^cepheus-run: .* 2 .* 1 of 4.*\n$")
        first.send_signal(signal.SIGTERM)
        first.wait(TIME_LIMIT)
        self.assert_ok(self.finish(self.start(switch, 4, *QUICK, mca=REQUIRE)))


class Spawned(EndToEnd):
    def run_spawn(self, hosts, mca):
        return over_fabric(PROGRAMS / "spawn_check", "--children", 2, hosts=hosts, mpirun=("-np", 2), mca=mca)

    def test_ranks_take_free_hosts(self):
        run = self.run_spawn(4, REQUIRE)
        self.assert_ok(run)
        self.assertGreater(run.port("h3")["rx_frames"], 0)

    def test_ranks_without_a_host_still_broadcast_and_do_not_take_their_parents_hosts(self):
        run = self.run_spawn(2, {})
        self.assert_ok(run)
        self.assertEqual(run.err, "")
        self.assertGreater(run.port("h1")["rx_frames"], 0)
        result = self.run_spawn(2, VERBOSE)
        self.assert_ok(result)
        self.assertIn("taken", "\n".join(result.cepheus_lines()))


if __name__ == "__main__":
    unittest.main()
