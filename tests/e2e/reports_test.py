#!/usr/bin/python3
"""Reports of calls (`cepheusctl explain`): small, bounded, and harmless."""

import ctypes
import os
import signal
import stat
import subprocess
import sys
import unittest

from harness import BUILD, CHECK, REQUIRE, VERBOSE, Reporting, over_fabric

MIB = 1 << 20
PAGE = 4096
# Loaded before the forks; used after them only.
REPORTS = ctypes.CDLL(str(BUILD / "tests/libcall_reports.so"))
REPORTS.report_open.restype = ctypes.c_void_p


def count_calls(job, communicators):
    """Counts calls of each (name, path, reason), as a rank does. In a process of its own."""
    os.environ["PMIX_NAMESPACE"] = job
    scopes = []
    for name, path, reason in communicators:
        why = ctypes.c_char_p()
        scope = ctypes.c_void_p(REPORTS.report_open(name, ctypes.byref(why)))
        if not scope:
            raise OSError(why.value.decode())
        REPORTS.report_call(scope, path, reason)
        scopes.append(scope)


class Process:
    """A forked process that counts, reports that, and then waits for end()."""

    def __init__(self, job, communicators=((b"world", b"eager lane", b"multicast"),)):
        sys.stdout.flush()
        ready, ready_writer = os.pipe()
        self.end_pipe, self.end_pipe_writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self.end_pipe_writer)
                count_calls(job, communicators)
                os.write(ready_writer, b"r")
                os.read(self.end_pipe, 1)
                code = 0
            except Exception as error:  # to the parent, which fails
                os.write(ready_writer, str(error).encode())
            # exit(), as a program's end: runs the libraries' exit handlers, not Python's.
            ctypes.CDLL(None).exit(code)
        os.close(ready_writer)
        os.close(self.end_pipe)
        self.ready = ready

    def wait_ready(self):
        word = os.read(self.ready, 4096)
        os.close(self.ready)
        if word != b"r":
            raise AssertionError(f"no report: {word.decode()}")

    def end(self):
        os.write(self.end_pipe_writer, b"e")  # later processes have copies of this end, so closing it has no effect
        return self.exit_code()

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.exit_code()

    def exit_code(self):
        os.close(self.end_pipe_writer)
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


def start(jobs):
    """Starts a process for each of the jobs, all at once."""
    processes = [Process(job) for job in jobs]
    for process in processes:
        process.wait_ready()
    return processes


class Reports(Reporting):
    def bytes_left(self):
        """Bytes of the file system, by reports and all other files in their directory."""
        return sum(path.lstat().st_blocks * 512 for path in self.directory.iterdir())

    def reports_left(self):
        return len(list(self.directory.glob("*.calls")))

    def test_a_hundred_jobs_of_four_ranks_leave_little(self):
        for first in range(0, 100, 4):
            for process in start([f"job {first + rank // 4}" for rank in range(16)]):
                self.assertEqual(process.end(), 0)
        self.assertLessEqual(self.bytes_left(), 4 * MIB)
        jobs = self.jobs()
        self.assertEqual(len(jobs), 100)
        for job in jobs.values():
            self.assertEqual((job["processes"], job["running"]), (4, 0))
            self.assertEqual(job["communicators"][0]["paths"][0]["ranks_reporting"], 4)

    def test_jobs_with_many_communicators_leave_no_more(self):
        many = [(b"comm %d" % i, b"eager lane", b"reason %d" % (i % 40)) for i in range(300)]
        for number in range(60):
            process = Process(f"job {number}", many)
            process.wait_ready()
            self.assertEqual(process.end(), 0)
        self.assertLessEqual(self.bytes_left(), 2 * MIB)
        self.assertIn("job 59", self.jobs())

    def test_sixty_four_processes_at_once_keep_their_reports(self):
        for _ in range(9):
            for process in start(["before"] * 64):
                self.assertEqual(process.end(), 0)
        self.assertEqual(self.reports_left(), 512)
        living = start(["living"] * 64)
        self.assertEqual(self.jobs()["living"]["running"], 64)
        for process in start(["after"] * 64):
            self.assertEqual(process.end(), 0)
        self.assertEqual(self.jobs()["living"]["running"], 64, "others that end clear no living process's report")
        for process in living:
            self.assertEqual(process.end(), 0)
        living = self.jobs()["living"]
        self.assertEqual((living["processes"], living["running"]), (64, 0))
        self.assertEqual(self.reports_left(), 512)

    def test_killed_processes_leave_no_more_than_others(self):
        for number in range(9):
            for process in start([f"killed {number}"] * 64):
                self.assertEqual(process.kill(), -signal.SIGKILL)
        self.assertEqual(self.jobs()["killed 8"]["running"], 0)
        (process,) = start(["next"])
        self.assertEqual(process.end(), 0)
        self.assertLessEqual(self.bytes_left(), 2 * MIB + PAGE)  # the lease of recordings
        self.assertEqual(self.reports_left(), 512)

    def test_explain_clears_old_reports(self):
        (process,) = start(["old"])
        self.assertEqual(process.end(), 0)
        self.assertIn("old", self.jobs())
        (report,) = self.directory.glob("*.calls")
        os.utime(report, (1000, 1000))
        self.assertEqual(self.jobs(), {})
        self.assertEqual(self.reports_left(), 0)

    def test_a_full_dev_shm_gets_no_reports(self):
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            self.skipTest("SKIPPED: unshare -m is not permitted, so there is no small file system to fill: run the test as root")
        where = self.directory / "small"
        where.mkdir()
        # Each rank's own: 8 MiB, with 1 MiB free.
        script = (f"mount -t tmpfs -o size=8m none {where} && head -c 7M /dev/zero > {where}/others && "
                  f"CEPHEUS_REPORT_DIR={where}/reports \"$@\" && test -z \"$(ls {where}/reports/*.calls 2>/dev/null)\"")
        run = over_fabric("unshare", "-m", "sh", "-c", script, "sh", CHECK, "--count", 3, "--max", 100_000,
                          mca={**REQUIRE, **VERBOSE})
        self.assert_ok(run)
        output = [line for line in run.cepheus_lines() if "explain" in line]
        self.assertIn("1.0 of 8.0 MiB are free", output[0])
        self.assertIn("CEPHEUS_REPORT_DIR", output[0])

    def test_names_that_are_not_text_are_harmless(self):
        names = [b"\xff\xfe", b"\x1b[2J\x1b]0;title\x07", b"x" * 55 + "é".encode(), "right \u202eot left".encode(), b"two\nlines"]
        hostile = Process("h\x1b[31m", [(name, b"open mpi", b"why \x1b[1m\xe2\x82") for name in names])
        hostile.wait_ready()
        (honest,) = start(["honest"])
        for ended in (False, True):
            text = self.explained()
            self.assertIn("honest: ", text)
            self.assertIn("\\x1b[2J", text)
            self.assertEqual([c for c in text if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 or c == "\u202e"], [])
            jobs = self.jobs()
            self.assertIn("honest", jobs)
            self.assertIn("x" * 55, [c["name"] for c in jobs["h\x1b[31m"]["communicators"]])
            if not ended:
                self.assertEqual((hostile.end(), honest.end()), (0, 0))

    def test_other_files_are_harmless(self):
        (process,) = start(["honest"])
        (report,) = self.directory.glob("*.calls")
        good = report.read_bytes()
        os.mkfifo(self.directory / "fifo.calls")
        (self.directory / "directory.calls").mkdir()
        (self.directory / "link.calls").symlink_to("/dev/zero")
        for name, content in {"empty": b"", "text": b"no report", "cut": good[:300], "header": good[:256], "random": os.urandom(70_000),
                              "fields": good[:16] + b"\xff" * 4080, "long": good + b"\xff" * (1 << 20)}.items():
            (self.directory / f"{name}.calls").write_bytes(content)
        self.assertIn("honest: ", self.explained())
        self.assertIn("honest", self.jobs())
        self.assertEqual(process.end(), 0)
        self.assertTrue(stat.S_ISFIFO((self.directory / "fifo.calls").lstat().st_mode), "only reports are cleared")


if __name__ == "__main__":
    unittest.main()
