#!/usr/bin/python3
"""Each system call that is newer than Linux 4.18 may fail: a fabric serves, and groups exchange messages."""

import errno
import os
import platform
import subprocess
import tempfile
import unittest

import refused_calls as refused
from harness import BUILD, CHECK, REQUIRE, mpi
from live import TIME_LIMIT, Switch

OURS = (refused.PIDFD_SEND_SIGNAL, refused.PIDFD_OPEN, refused.EPOLL_PWAIT2)


def exchange(filtered):
    """Two members of a group and their switch, all under this filter; the members' output if one failed, else None."""
    with Switch("--hosts", 2, preexec=filtered) as switch, tempfile.TemporaryDirectory() as meeting:
        env = {**os.environ, "CEPHEUS_FABRIC": switch.socket, "LD_PRELOAD": str(BUILD / "lib/libcepheus-roce.so")}
        members = [subprocess.Popen([BUILD / "examples/group", str(rank), "2", meeting], text=True, preexec_fn=filtered,
                                    env={**env, "CEPHEUS_HOST": f"h{rank}"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for rank in range(2)]
        texts = [member.communicate(timeout=TIME_LIMIT)[0] for member in members]
        status = subprocess.run([BUILD / "bin/cepheusctl", "--fabric", switch.socket, "status"], text=True, preexec_fn=filtered,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIME_LIMIT, check=False)
        codes = [program.returncode for program in (*members, status)]
        return None if codes == [0, 0, 0] else f"{codes}\n" + "\n".join((*texts, status.stdout))


class OldKernel(unittest.TestCase):
    def test_each_newer_call_may_be_missing(self):
        for number in range(refused.NEWEST_OF_LINUX_4_18 + 1, refused.NEWEST + 1):
            with self.subTest(number=number):
                self.assertIsNone(exchange(refused.refusing(refused.call(number))))

    def test_a_container_may_refuse_each_call(self):
        for number in OURS:
            with self.subTest(number=number):
                self.assertIsNone(exchange(refused.refusing(refused.call(number, errno.EPERM), refused.NEW_OPTIONS)))

    def test_a_container_may_refuse_to_show_pages(self):
        self.assertIsNone(exchange(refused.refusing(refused.call(refused.NUMBERS[platform.machine()]["mincore"], errno.EPERM))))

    def test_a_switch_that_cannot_wait_reports_it(self):
        with tempfile.TemporaryDirectory() as scratch:
            filtered = refused.refusing(refused.call(refused.EPOLL_PWAIT2), refused.call(refused.NUMBERS[platform.machine()]["ppoll"], errno.EPERM))
            switch = subprocess.run([BUILD / "bin/cepheus-switch", "--fabric", f"{scratch}/fabric", "--hosts", "2"], text=True, preexec_fn=filtered,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIME_LIMIT, check=False)
            self.assertEqual((switch.returncode, os.listdir(scratch)), (1, []), switch.stdout)
            self.assertIn("wait for events", switch.stdout)

    def test_all_may_be_missing(self):
        self.assertIsNone(exchange(refused.refusing(refused.all_newer(), refused.NEW_OPTIONS)))

    def test_broadcasts_of_a_job_multicast_without_them(self):
        command = [BUILD / "bin/cepheus-run", "--hosts", "2", "--", *mpi().arguments(REQUIRE), CHECK, "--count", "4"]
        run = subprocess.run(command, text=True, preexec_fn=refused.refusing(refused.all_newer(), refused.NEW_OPTIONS),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIME_LIMIT, check=False)
        self.assertEqual(run.returncode, 0, run.stdout)


if __name__ == "__main__":
    unittest.main()
