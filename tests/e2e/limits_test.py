#!/usr/bin/python3
"""Programs under limits and in odd surroundings: they serve, or end with a line that says why. No signal ends them."""

import contextlib
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

from harness import BUILD, Mpich
from live import TIME_LIMIT, Switch, wait_until

SWITCH, CTL, REPLICA = (BUILD / "bin" / name for name in ("cepheus-switch", "cepheusctl", "cepheus-replica"))


def limited(which, size):
    return lambda: resource.setrlimit(which, (size, size))


def run(command, preexec=None, **options):
    return subprocess.run(list(map(str, command)), text=True, preexec_fn=preexec, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=TIME_LIMIT, check=False, **options)


class Limits(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-limits-")))

    def start_member(self, switch, rank):
        env = {**os.environ, "CEPHEUS_FABRIC": switch.socket, "LD_PRELOAD": str(BUILD / "lib/libcepheus-roce.so"), "CEPHEUS_HOST": f"h{rank}"}
        member = subprocess.Popen([BUILD / "examples/group", str(rank), "2", self.scratch], text=True, env=env,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (member.kill(), member.communicate()))
        return member

    def wait_until_attached(self, switch, *hosts):
        wait_until(lambda: all(port["attached"] for port in switch.ports() if port["name"] in hosts), f"{hosts} attached")

    def test_no_file_may_grow_at_the_start(self):
        for name, command in {"cepheus-switch": [SWITCH, "--hosts", 2, "--fabric", self.scratch / "f"],
                              "cepheus-replica": [REPLICA, "serve", "--volume", "v", "--create", "--size", 1 << 20, "--listen", "127.0.0.1:0",
                                                  "--file", self.scratch / "disk"]}.items():
            with self.subTest(program=name):
                ended = run(command, limited(resource.RLIMIT_FSIZE, 0))
                self.assertEqual(ended.returncode, 1, ended)
                self.assertRegex(ended.stderr, rf"{name}: .*: File too large; .*ulimit -f.*\n")

    def test_shared_memory_beyond_the_limit_is_refused_and_the_fabric_serves_on(self):
        with Switch("--hosts", 2) as switch:
            resource.prlimit(switch.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
            member = self.start_member(switch, 0)
            self.assertIn("ulimit -f", member.communicate(timeout=TIME_LIMIT)[0])
            self.assertEqual(run([CTL, "--fabric", switch.socket, "status"]).returncode, 0)

    def test_a_capture_ends_at_the_limit_and_the_fabric_serves_on(self):
        with Switch("--hosts", 2, "--pcap", self.scratch / "pcap") as switch:
            members = [self.start_member(switch, 0)]
            self.wait_until_attached(switch, "h0")
            members[0].send_signal(signal.SIGSTOP)  # so that nobody speaks before the limit holds
            members.append(self.start_member(switch, 1))
            self.wait_until_attached(switch, "h1")
            resource.prlimit(switch.pid, resource.RLIMIT_FSIZE, (100, 100))
            members[0].send_signal(signal.SIGCONT)
            texts = [member.communicate(timeout=TIME_LIMIT)[0] for member in members]
            self.assertEqual([member.returncode for member in members], [0, 0], texts)
            self.assertEqual(run([CTL, "--fabric", switch.socket, "status"]).returncode, 0)

    def test_a_program_of_the_nic_under_a_limit_of_file_sizes(self):
        with Switch("--hosts", 2) as switch:
            env = {**os.environ, "CEPHEUS_FABRIC": switch.socket, "LD_PRELOAD": str(BUILD / "lib/libcepheus-roce.so")}
            ended = run(["cat", "/sys/class/infiniband/cepheus0/node_type"], limited(resource.RLIMIT_FSIZE, 0), env=env)
            self.assertEqual(ended.returncode, 1, ended)
            self.assertIn("File too large", ended.stderr)

    def test_little_memory(self):
        """Each program does its work, or ends with a line. With too little the loader says so, and exits with 127."""
        with Switch("--hosts", 2) as switch:
            commands = {"cepheusctl": [CTL, "--fabric", switch.socket, "status"],
                        "cepheus-switch": [SWITCH, "--hosts", 2, "--fabric", self.scratch / "f", "--ready-fd", 77]}  # 77 is closed
            for mib in range(8, 128, 8):
                for name, command in commands.items():
                    with self.subTest(program=name, mib=mib):
                        ended = run(command, limited(resource.RLIMIT_AS, mib << 20))
                        self.assertIn(ended.returncode, (0, 1, 127), ended)
                        self.assertTrue(ended.returncode == 0 or ended.stderr, ended)

    def test_output_to_a_full_disk(self):
        with Switch("--hosts", 2) as switch, open("/dev/full", "wb") as full:
            for words in ("status",), ("ports",), ("counters",), ("--json", "status"):
                ended = subprocess.run([CTL, "--fabric", switch.socket, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(ended.returncode, 1, words)
                self.assertIn("cepheusctl: ", ended.stderr)


WAITS_FOR_A_SIGNAL = """
import os, signal
both = {signal.SIGUSR1, signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
os.write(1, b"waits\\n")  # at once: lines of two ranks stay whole
os.write(1, b"got %d\\n" % signal.sigwait(both))
"""


class UsersSignals(unittest.TestCase):
    def check(self, *options):
        for signum in (signal.SIGUSR1, signal.SIGUSR2):
            command = [BUILD / "bin/cepheus-run", *options, "--hosts", "2", "--", "-np", "2", "/usr/bin/python3", "-c", WAITS_FOR_A_SIGNAL]
            run = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            with contextlib.closing(run.stdout):
                self.addCleanup(run.kill)
                text = ""
                while text.count("waits") < 2 and (line := run.stdout.readline()):
                    text += line
                run.send_signal(signum)
                text = run.communicate(timeout=TIME_LIMIT)[0]
                self.assertEqual((run.returncode, text.count(f"got {int(signum)}")), (0, 2), text)

    def test_reach_the_ranks(self):
        self.check()

    @unittest.skipUnless(Mpich.LIBRARY.exists() and shutil.which("mpirun.mpich"), "SKIPPED: MPICH, or its library of Cepheus, is missing: "
                         "install mpich and libmpich-dev")
    def test_reach_the_ranks_of_mpich(self):
        self.check("--mpi", "mpich")


class Descriptors(unittest.TestCase):
    def test_a_switch_with_closed_standard_descriptors_serves(self):
        for closed in (0,), (0, 1), (1, 2), (0, 1, 2):
            with self.subTest(closed=closed), Switch("--hosts", 2, preexec=lambda closed=closed: list(map(os.close, closed))) as switch:
                for fd in closed:
                    self.assertEqual(os.readlink(f"/proc/{switch.pid}/fd/{fd}"), "/dev/null")


class IgnoredSignals(unittest.TestCase):
    def ignores(self, pid, *signals):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        mask = int(next(line for line in status.splitlines() if line.startswith("SigIgn:")).split()[1], 16)
        return all(mask >> (signum - 1) & 1 for signum in signals)

    def nohup(self):
        for signum in (signal.SIGHUP, signal.SIGINT):
            signal.signal(signum, signal.SIG_IGN)

    def test_a_switch_keeps_them(self):
        with Switch("--hosts", 2, preexec=self.nohup) as switch:
            self.assertTrue(self.ignores(switch.pid, signal.SIGHUP, signal.SIGINT))
            switch.process.send_signal(signal.SIGHUP)
            self.assertEqual(run([CTL, "--fabric", switch.socket, "ports"]).returncode, 0)

    def test_a_recording_keeps_them(self):
        with Switch("--hosts", 2) as switch, tempfile.TemporaryDirectory() as scratch:
            recording = subprocess.Popen([CTL, "--fabric", switch.socket, "record", f"{scratch}/a.json"], stdout=subprocess.PIPE, text=True,
                                         preexec_fn=self.nohup)
            with contextlib.closing(recording.stdout):
                self.assertIn("recording", recording.stdout.readline())
                for signum in (signal.SIGHUP, signal.SIGINT):
                    recording.send_signal(signum)
                self.assertTrue(self.ignores(recording.pid, signal.SIGHUP, signal.SIGINT))
                # A blocked signal would be pending, and end it.
                status = pathlib.Path(f"/proc/{recording.pid}/status").read_text()
                self.assertRegex(status, r"ShdPnd:\s+0+\n")
                recording.terminate()
                self.assertIn("recorded", recording.communicate(timeout=TIME_LIMIT)[0])
                self.assertEqual(recording.returncode, 0)


if __name__ == "__main__":
    unittest.main()
