#!/usr/bin/python3
"""Processes of ./run end with it, by SIGTERM and by SIGKILL, and leave no process, socket, shared memory or directory.

./run becomes supervise.py before it does anything (../../run), so these are the programs that it ends up with.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))
from harness import needs_component  # noqa: E402

BUILD = os.environ.get("CEPHEUS_BUILD", str(SOURCE / "build/dev"))
SUPERVISE = [sys.executable, "-B", SOURCE / "tools/run/supervise.py"]
TIME_LIMIT = 60  # seconds; an upper bound, events are polled
SHARED_MEMORY = pathlib.Path("/dev/shm")
NAMES = re.compile("cepheus(?!-reports-)|vader_segment|sm_segment|open_mpi")  # of Cepheus and Open MPI; other tests have reports

# Name: (command, a program that runs once it is well under way)
PROGRAMS = {
    "demo": (["tools/demo/demo.py", "--build", BUILD, "--seconds", "30"], "broadcast_file"),
    "demo --web": (["tools/demo/demo.py", "--build", BUILD, "--web", "127.0.0.1:0"], "broadcast_file"),
    "demo-storage": (["tools/demo/storage_demo.py", "--build", BUILD], "fio"),
    "bench overlap": (["bench/overlap.py", "--build", BUILD], "mpi_overlap"),
    "faults": (["tests/e2e/live_fault_test.py", "--moments", "20"], "broadcast_check"),
    "lab": (["nic-emulator/lab/lab.py", "--build", BUILD, "--cache", os.environ.get("CEPHEUS_LAB_CACHE", SOURCE / "build/lab"),
             "--no-switch", "sleep", "600"], "qemu-system-x86_64"),
}


def marked(mark):
    """{process number: program} of all processes with this variable."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words != [b""]:
                    found[int(entry.name)] = " ".join(os.path.basename(word.decode(errors="replace")) for word in words[:2])
    return found


def in_use(name):
    """Whether a process that lives has this shared memory: another job's on this machine."""
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if entry.name.isdigit() and f"{SHARED_MEMORY}/{name}\n" in (entry / "maps").read_text():
                return True
    return False


def until(condition, what):
    limit = time.monotonic() + TIME_LIMIT
    while not condition():
        if time.monotonic() > limit:
            raise AssertionError(f"not within {TIME_LIMIT} s: {what()}")
        time.sleep(0.05)


def end(name, signum, complaints):
    """Starts it, ends it by the signal when it runs, and returns its remains."""
    command, under_way = PROGRAMS[name]
    with tempfile.TemporaryDirectory(prefix="ends-") as scratch:
        mark = f"CEPHEUS_ENDS={scratch}"
        environment = {**os.environ, "TMPDIR": scratch, "CEPHEUS_ENDS": scratch, "CEPHEUS_BUILD": BUILD}
        environment.pop("CEPHEUS_SUPERVISED", None)
        with open(os.path.join(scratch, "said"), "w+", encoding="utf-8") as output:
            run = subprocess.Popen(list(map(str, [*SUPERVISE, sys.executable, "-B", *command])), cwd=SOURCE, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            runs = lambda: marked(mark.encode())  # noqa: E731
            try:
                until(lambda: run.poll() is not None or any(under_way in program for program in runs().values()), lambda: under_way)
                if run.poll() is not None:
                    output.seek(0)
                    complaints.append(f"{name}: ended by itself: {output.read()}")
                    return
                run.send_signal(signum)
                code = run.wait(TIME_LIMIT)
                until(lambda: not runs(), runs)
                until(lambda: os.listdir(scratch) == ["said"], lambda: os.listdir(scratch))
                expected = 128 + signum if signum == signal.SIGTERM else -signum
                if code != expected:
                    complaints.append(f"{name}: exit code {code} instead of {expected}")
            except (AssertionError, subprocess.TimeoutExpired) as error:
                complaints.append(f"{name}, signal {signum}: {error}")
            finally:
                for pid in runs():
                    os.kill(pid, signal.SIGKILL)


class Ends(unittest.TestCase):
    def ended_by(self, signum, names):
        segments = lambda: set(filter(NAMES.match, os.listdir(SHARED_MEMORY)))  # noqa: E731
        before, complaints = segments(), []
        threads = [threading.Thread(target=end, args=(name, signum, complaints)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(complaints, [])
        self.assertEqual({name for name in segments() - before if not in_use(name)}, set())

    @needs_component
    def test_by_sigterm(self):
        self.ended_by(signal.SIGTERM, PROGRAMS.keys() - {"lab"})

    @needs_component
    def test_by_sigkill(self):
        self.ended_by(signal.SIGKILL, PROGRAMS.keys() - {"lab"})

    @unittest.skipUnless(shutil.which(PROGRAMS["lab"][1]), "SKIPPED: there is no virtual machine; as root: apt-get install qemu-system-x86")
    def test_the_lab(self):
        for signum in (signal.SIGTERM, signal.SIGKILL):
            self.ended_by(signum, ["lab"])

    def test_shared_memory_of_a_rank_that_mpirun_does_not_know_yet_goes(self):
        segment = SHARED_MEMORY / f"vader_segment.{os.getpid()}"
        program = (f"import mmap, signal; f = open('{segment}', 'w+b'); f.truncate(4096); m = mmap.mmap(f.fileno(), 4096); "
                   "print('mapped', flush=True); signal.pause()")
        run = subprocess.Popen([*SUPERVISE, sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.assertEqual(run.stdout.readline(), "mapped\n")
        run.kill()
        run.communicate()
        until(lambda: not segment.exists(), lambda: segment)

    def test_the_exit_code_is_the_commands(self):
        self.assertEqual(subprocess.run([*SUPERVISE, "sh", "-c", "exit 3"]).returncode, 3)

    def test_services_that_packages_start_go_on(self):
        with tempfile.TemporaryDirectory(prefix="ends-") as scratch:
            # The service has the variable until env has replaced itself by sleep.
            words = [*SUPERVISE, "sh", "-c", f"env -u CEPHEUS_SUPERVISED sleep 600 & echo $! >{scratch}/pid; "
                     "until grep -qx sleep /proc/$!/comm; do sleep 0.01; done"]
            self.assertEqual(subprocess.run(words).returncode, 0)
            pid = int(pathlib.Path(scratch, "pid").read_text())
            os.kill(pid, signal.SIGKILL)  # fails if it has ended


if __name__ == "__main__":
    unittest.main(verbosity=2)
