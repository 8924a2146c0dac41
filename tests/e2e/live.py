"""A fabric and an MPI program on it, which run while a test changes them."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time

from harness import BUILD, CHECK, mpi  # it extends the path for the next import
from switch_process import Switch as SwitchProcess
from switch_process import end

READY_SECONDS = 30
TIME_LIMIT = 300  # seconds, for any wait of a test


class Switch(SwitchProcess):
    def __init__(self, *arguments, **options):
        super().__init__(BUILD, *arguments, **options)

    def payload(self):
        """Bytes of RoCE payload that all hosts have sent."""
        return sum(port["rx_payload_bytes"] for port in self.ports())


def wait_until(holds, what, seconds=TIME_LIMIT):
    """Calls `holds()` until it is true, and returns its value; RuntimeError after the time limit."""
    give_up = time.monotonic() + seconds
    while not (answer := holds()):
        if time.monotonic() > give_up:
            raise RuntimeError(f"{what() if callable(what) else what} did not happen within {seconds} s")
        os.sched_yield()
    return answer


def private_kib(pid):
    """A process's private memory."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


class Lines:
    """A stream's lines; waits for a line."""

    def __init__(self, stream):
        self.lines = []
        self.changed = threading.Condition()
        self.closed = False
        self.thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self.thread.start()

    def _read(self, stream):
        for line in stream:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def count(self, pattern):
        return sum(1 for line in self.lines if re.search(pattern, line))

    def wait_for(self, pattern, times=1, most=TIME_LIMIT):
        """True once `pattern` was in `times` lines; waits for at most `most` seconds."""
        with self.changed:
            self.changed.wait_for(lambda: self.closed or self.count(pattern) >= times, most)
            return self.count(pattern) >= times

    def text(self):
        return "\n".join(self.lines)


class LiveRun:
    """A program with the option --until, on a fabric of its own, until finish(). A context manager.

    `hosts` run it; `fabric`: cepheus-switch's arguments for further hosts; `switch`: path of another cepheus-switch than the tree's.
    """

    STARTED = "started"  # in any place: MPICH's mpirun may merge lines of two ranks
    CHECK = CHECK

    def __init__(self, *arguments, hosts=4, fabric=(), mca=None, seed=1, switch=None):
        mpi().arguments({})  # a skip leaves nothing behind
        self.scratch = tempfile.mkdtemp(prefix="cepheus-live-")
        scratch = pathlib.Path(self.scratch)
        self.stop_file = scratch / "stop"
        self.hosts = [f"h{i}" for i in range(hosts)]
        self.switch = self.fabric(fabric or ("--hosts", hosts), switch)
        command = self.command(mca or {}, self.program(arguments, seed))
        self.process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.scratch)
        self.out = Lines(self.process.stdout)
        self.err = Lines(self.process.stderr)

    def fabric(self, arguments, program):
        return Switch(*arguments, program=program)

    def command(self, mca, program):
        return [str(BUILD / "bin/cepheus-run"), *mpi().OPTIONS, "--fabric", self.switch.socket, "--", "-np", str(len(self.hosts)),
                *mpi().arguments(mca), *program]

    def program(self, arguments, seed):
        return [str(mpi().program(self.CHECK)), "--until", str(self.stop_file), "--seed", str(seed), *map(str, arguments)]

    def __enter__(self):
        if not self.out.wait_for(self.STARTED):
            text = self.everything()
            self.__exit__()
            raise RuntimeError("the program did not start\n" + text)
        return self

    def __exit__(self, *_):
        end(self.process, READY_SECONDS)
        self.out.thread.join(READY_SECONDS)
        self.err.thread.join(READY_SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()
        self.switch.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def wait_for_payload(self, more):
        """Waits until the hosts have sent `more` further bytes."""
        goal = self.switch.payload() + more
        give_up = time.monotonic() + TIME_LIMIT
        while self.switch.payload() < goal:
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError("the program makes no progress\n" + self.everything())

    def pid(self, rank):
        pattern = rf"pid {rank} (\d+)"
        self.out.wait_for(pattern)
        return int(re.search(pattern, self.out.text()).group(1))

    def finish(self):
        """Lets the program end; its exit code."""
        self.stop_file.touch()
        try:
            code = self.process.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            code = None
        self.out.thread.join(READY_SECONDS)
        self.err.thread.join(READY_SECONDS)
        return code

    def longest(self):
        """Seconds of the longest broadcast of any rank."""
        return float(re.search(r"longest ([0-9.]+) s", self.out.text()).group(1))

    def everything(self):
        return f"--- stdout\n{self.out.text()}\n--- stderr\n{self.err.text()}"
