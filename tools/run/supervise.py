#!/usr/bin/python3
"""Runs a command, and ends all its processes when the command ends, or on SIGINT, SIGTERM, SIGHUP or SIGKILL.

usage: supervise.py COMMAND [ARGUMENTS]

Two processes: the caller's own, which SIGKILL may end, and a keeper, which the kernel notifies of that. All that the command
starts belongs to the keeper, however deep, since the keeper is a subreaper. Processes without the variable CEPHEUS_SUPERVISED
are left alone: services that come with packages. Temporary files go to a directory of this run (TMPDIR), which the keeper
removes. It removes Open MPI's shared memory, too: mpirun does that only for ranks that have registered theirs. The exit code is
the command's, or 128 + the signal.
"""

import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# One that its parent ignores stays ignored, as SIGHUP below nohup.
SIGNALS = [s for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) != signal.SIG_IGN]
TIME_LIMIT_SECONDS = 4  # from SIGTERM to SIGKILL
SEGMENT = re.compile(r"(/dev/shm/(?:vader_segment|sm_segment|open_mpi)\.\S+)$", re.MULTILINE)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


class Ended(Exception):
    """By this signal."""


def on_signals(action):
    for each in SIGNALS:
        signal.signal(each, action)


def end(signum, _frame):
    on_signals(signal.SIG_IGN)
    raise Ended(signum)


def descendants(mark):
    """The process numbers of all of this process's descendants that still run and have `mark` in their environment."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
            marked = fields and mark in (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if marked and fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, parents = [], [os.getpid()]
    while parents:
        born = children.get(parents.pop(), [])
        found += born
        parents += born
    return found


def wait_for(child):
    """The child's exit code. Orphans that end meanwhile are this process's children, and are reaped."""
    while child.returncode is None:
        pid, status = os.waitpid(-1, 0)
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def segments(pid):
    """Open MPI's shared memory that a process has."""
    try:
        return set(SEGMENT.findall(pathlib.Path(f"/proc/{pid}/maps").read_text()))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return set()


def clear(mark):
    """Ends all descendants: by SIGTERM, so that they clean up, and by SIGKILL those that remain."""
    requested, limit, shared = set(), time.monotonic() + TIME_LIMIT_SECONDS, set()
    while running := descendants(mark):
        late = time.monotonic() > limit
        for pid in running:
            shared |= segments(pid)
            if late or pid not in requested:
                try:
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                except ProcessLookupError:
                    pass
                requested.add(pid)
        reap()
        time.sleep(0.02)
    for path in filter(os.path.exists, shared):
        if not any(path in segments(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()):
            pathlib.Path(path).unlink(missing_ok=True)


def keep(command):
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    directory = tempfile.mkdtemp(prefix="cepheus-")
    os.chmod(directory, 0o1777)  # as /tmp: a test may run programs as another user
    try:
        environment = {**os.environ, "TMPDIR": directory, "CEPHEUS_SUPERVISED": directory}
        environment.setdefault("CEPHEUS_REPORT_DIR", directory)
        try:
            on_signals(end)
            code = wait_for(subprocess.Popen(command, env=environment))
        except Ended as ended:
            code = -ended.args[0]
        except OSError as error:
            print(f"run: {command[0]}: {error.strerror}", file=sys.stderr)
            code = 127
        on_signals(signal.SIG_IGN)
        clear(f"CEPHEUS_SUPERVISED={directory}".encode())
        return code if code >= 0 else 128 - code
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main():
    caller = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    keeper = os.fork()
    if keeper == 0:
        code = 70
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            on_signals(signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            if os.getppid() == caller:
                code = keep(sys.argv[1:])
        finally:
            os._exit(code)
    # A terminal sends its signals to the keeper as well; a second one changes nothing there.
    on_signals(lambda signum, _: os.kill(keeper, signum))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    code = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
