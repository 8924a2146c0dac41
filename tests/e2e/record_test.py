#!/usr/bin/python3
"""Recordings for ui.perfetto.dev: of a job, of a running fabric, and of a simulated one."""

import collections
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from harness import AT_ONCE, BUILD, CHECK, PROGRAMS, over_fabric
from live import TIME_LIMIT, LiveRun, Switch, wait_until
from trace_format import Trace

CTL = BUILD / "bin/cepheusctl"
SIM = BUILD / "bin/cepheus-sim"
MULTICAST = " lane", "hosts", "network"  # the ends of its paths


class Recording(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-record-")))
        self.file = self.scratch / "trace.json"

    def read(self):
        trace = Trace(self.file)
        self.assertEqual(trace.flaws()[:5], [])
        return trace

    def calls(self, trace, *functions):
        """(host's name, rank's track) -> its calls: those of `functions`, or all."""
        processes, threads = trace.names("process_name"), trace.names("thread_name")
        found = collections.defaultdict(list)
        for event in trace.of("X", "b"):
            if "path" in event.get("args", {}) and (not functions or event["name"] in functions):
                place = processes[(event["pid"], None)], threads[(event["pid"], event["tid"])]
                found[place].append(event)
        return found

    def broadcasts(self, trace):
        """(host's name, rank's track) -> the arguments of its broadcasts."""
        return {place: [event["args"] for event in calls] for place, calls in self.calls(trace, "MPI_Bcast", "MPI_Ibcast").items()}

    def test_of_a_job_has_each_broadcast_on_each_rank(self):
        run = over_fabric(CHECK, "--count", 25, "--size", 4096, options=("--record", self.file))
        self.assertEqual(run.code, 0, run.everything())
        trace = self.read()
        found = self.broadcasts(trace)
        world = {host: calls for (host, thread), calls in found.items() if thread.endswith("of MPI_COMM_WORLD")}
        self.assertEqual(sorted(world), [f"host h{i}" for i in range(4)], list(found))
        calls = [[(call["root"], call["bytes"]) for call in world[host]] for host in sorted(world)]
        self.assertGreaterEqual(len(calls[0]), 25)
        for rank in calls[1:]:
            self.assertEqual(rank, calls[0], "each rank has the same broadcasts in the same order")
        for host, calls in world.items():
            for call in calls:
                self.assertEqual({"communicator", "rank", "root", "bytes", "path", "reason"} - call.keys(), set(), host)
        every = self.calls(trace)
        self.assertEqual(trace.notes["calls"], sum(map(len, every.values())))
        self.assertEqual(trace.notes["calls_lost"], 0)
        counts = {host: collections.Counter(event["name"] for event in calls)
                  for (host, thread), calls in every.items() if thread.endswith("of MPI_COMM_WORLD")}
        self.assertEqual(sorted(counts), sorted(world))
        for host, count in counts.items():
            self.assertEqual(count, counts["host h0"], f"the rank on {host} makes the same calls")
        self.assertEqual({place for place in every if place not in found}, set(), "only those that broadcast")
        for arrow in ("copy", "merged"):
            self.assertTrue(trace.named(arrow, "s"), f"no packet has an arrow '{arrow}'")
        turns = [event for event in trace.of("b") if event["name"].startswith("turn of ")]
        self.assertTrue(turns)

    def test_marks_each_functions_own_fallbacks(self):
        """Small reductions go by the network, larger ones by Open MPI, with other calls between them."""
        run = over_fabric(PROGRAMS / "reductions_check", "--count", 20, "--comm", "world", mca=AT_ONCE, options=("--record", self.file))
        self.assertEqual(run.code, 0, run.everything())
        trace = self.read()
        self.assertEqual(trace.notes["calls_lost"], 0)
        last, expected, behind_another = {}, collections.Counter(), 0
        for event in (event for calls in self.calls(trace).values() for event in calls):
            track, path = (event["pid"], event["tid"]), event["args"]["path"]
            before = last.get((*track, event["name"]), "")
            if before.endswith(MULTICAST) and not path.endswith(MULTICAST):
                expected[track] += 1
                behind_another += last[track] != event["name"]
            last[(*track, event["name"])], last[track] = path, event["name"]
        self.assertGreater(behind_another, 0, "the seed has no such call: choose another")
        self.assertEqual(collections.Counter((event["pid"], event["tid"]) for event in trace.named("fallback", "i")), expected)

    def test_of_a_running_fabric_includes_running_programs(self):
        environ = os.environ | {"CEPHEUS_REPORT_DIR": str(self.scratch / "reports")}
        os.environ["CEPHEUS_REPORT_DIR"] = environ["CEPHEUS_REPORT_DIR"]
        self.addCleanup(os.environ.pop, "CEPHEUS_REPORT_DIR")
        with LiveRun("--max", 1 << 16) as run:
            run.wait_for_payload(1 << 16)
            with subprocess.Popen([CTL, "--fabric", run.switch.socket, "record", self.file], text=True, stdout=subprocess.PIPE) as recorder:
                self.assertIn("recording into", recorder.stdout.readline())
                run.wait_for_payload(4 << 20)  # more than lies between the first rank and the last
                recorder.send_signal(signal.SIGINT)
                self.assertIn("ui.perfetto.dev", recorder.communicate(timeout=TIME_LIMIT)[0])
            run.wait_for_payload(1 << 16)
            self.assertEqual(run.finish(), 0)
        trace = self.read()
        ranks = {thread.split()[1] for _, thread in self.broadcasts(trace)}
        self.assertEqual(ranks, {"0", "1", "2", "3"})
        left = [path.name for path in (self.scratch / "reports").iterdir() if path.suffix == ".ring"]
        self.assertEqual(left, [], "the recording has ended")

    def test_ends_with_the_process_that_records(self):
        switch = self.enterContext(Switch("--hosts", 2))
        command = [CTL, "--fabric", switch.socket, "record", self.file]
        with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as first:
            self.assertIn("recording into", first.stdout.readline())
            second = subprocess.run(command, text=True, stderr=subprocess.PIPE, check=False, timeout=TIME_LIMIT)
            self.assertEqual(second.returncode, 1)
            self.assertIn("another program", second.stderr)
            first.send_signal(signal.SIGKILL)
        again = [*command[:-1], "--seconds", "0.1", self.file]
        wait_until(lambda: subprocess.run(again, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0,
                   "another recording")
        self.read()

    def test_is_complete_when_the_fabric_ends(self):
        switch = self.enterContext(Switch("--hosts", 2))
        with subprocess.Popen([CTL, "--fabric", switch.socket, "record", self.file], text=True, stdout=subprocess.PIPE) as recorder:
            self.assertIn("recording into", recorder.stdout.readline())
            switch.close()
            self.assertEqual(recorder.wait(TIME_LIMIT), 0)
        self.assertTrue(self.read().notes["fabric_ended"])

    def test_reports_the_obstacle(self):
        switch = self.enterContext(Switch("--hosts", 2))
        self.file.write_text("kept")
        for socket, file, why in ((switch.socket, "/nowhere/trace", "can't be written"), ("/nowhere/fabric", self.file, "no fabric")):
            run = subprocess.run([CTL, "--fabric", socket, "record", file], text=True, stderr=subprocess.PIPE, check=False, timeout=TIME_LIMIT)
            self.assertEqual(run.returncode, 1)
            self.assertIn(why, run.stderr)
        self.assertEqual(self.file.read_text(), "kept", "it may not record")

    def test_of_a_seed_shows_the_retransmission_that_a_lost_acknowledgement_costs(self):
        for seed in range(1, 20):
            subprocess.run([SIM, "--seed", str(seed), "--record", self.file], check=True, stdout=subprocess.DEVNULL, timeout=TIME_LIMIT)
            trace = self.read()
            lost = [event["ts"] for event in trace.of("i") if event["name"].startswith("loses: ACK ")]
            again = [event["ts"] for event in trace.of("X") if event["name"].endswith(" again")]
            if lost and again and max(again) > min(lost):
                self.assertTrue(trace.named("ack timeouts", "i") or trace.named("rx nak sequence", "i"))
                return
        self.fail("no seed lost an acknowledgement")


if __name__ == "__main__":
    unittest.main()
