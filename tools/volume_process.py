"""A replicated volume of one's own on an emulated fabric, for tests, benchmarks and demos: its replicas, and nbdkit in front of it."""

import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import tempfile
import time

from switch_process import end
from tcp_ports import free_port

READY_SECONDS = 30
ENDING_SECONDS = 30
SYNC_SECONDS = 300  # a guest that is emulated takes its time
NBD_OPT_ABORT = 2


def on_host(build, fabric, host):
    """The environment of a program on a host of the fabric that serves at that socket; hosts are counted from 0."""
    return {**os.environ, "CEPHEUS_FABRIC": fabric, "CEPHEUS_HOST": f"#{host}",
            "LD_PRELOAD": str(pathlib.Path(build) / "lib/libcepheus-roce.so"), "ASAN_OPTIONS": "verify_asan_link_order=0"}


class Replica:
    """`cepheus-replica serve`, started again at the same address and file as often as one likes."""

    def __init__(self, build, fabric, index, directory, size, volume="volume", options=()):
        self.address = f"127.0.0.1:{free_port()}"
        self.file = pathlib.Path(directory) / f"replica{index}"
        self.log = pathlib.Path(directory) / f"replica{index}.log"
        self.command = [pathlib.Path(build) / "bin/cepheus-replica", "serve", "--volume", volume, "--file", self.file, "--size", size,
                        "--create", "--listen", self.address, *options]
        self.env = on_host(build, fabric, index)
        self.process = None
        self.is_stopped = False

    def start(self):
        ready, ready_end = os.pipe()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*map(str, self.command), "--ready-fd", str(ready_end)], env=self.env, pass_fds=(ready_end,),
                                            stdout=log, stderr=subprocess.STDOUT)
        os.close(ready_end)
        try:
            if not select.select([ready], [], [], READY_SECONDS)[0] or not os.read(ready, 16):
                raise RuntimeError("a replica did not start:\n" + self.log.read_text())
        finally:
            os.close(ready)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.is_stopped = False

    def end(self):
        """Its exit code."""
        if self.is_stopped:
            self.go_on()
        self.process.terminate()
        return self.process.wait(READY_SECONDS)


class Volume:
    """nbdkit with the volume on host `host` of `fabric` (a Switch), and replicas on the next ones; a context manager.

    `uri` is for programs that speak NBD. Files are in a directory of the volume's own, which goes with it.
    """

    def __init__(self, build, fabric, replicas=3, size=256 << 20, settings=(), host=0):
        self.build, self.fabric, self.host = pathlib.Path(build), fabric, host
        self._own = tempfile.TemporaryDirectory(prefix="cepheus-volume-")
        self.directory = pathlib.Path(self._own.name)
        self.socket = self.directory / "nbd"
        self.uri = f"nbd+unix:///?socket={self.socket}"
        self.settings = list(settings)
        self.nbd = None
        self.replicas = [Replica(build, fabric.socket, host + i, self.directory, size) for i in range(1, replicas + 1)]
        try:
            for replica in self.replicas:
                replica.start()
            self.start_nbd()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def addresses(self):
        return ",".join(replica.address for replica in self.replicas)

    def start_nbd(self):
        """Takes the volume; RuntimeError if it can't be had."""
        self.socket.unlink(missing_ok=True)
        plugin = self.build / "lib/nbdkit-cepheus-plugin.so"
        command = ["nbdkit", "--foreground", "--exit-with-parent", "--unix", self.socket, plugin, "volume=volume",
                   f"replicas={self.addresses}", *self.settings]
        self.nbd = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                    env=on_host(self.build, self.fabric.socket, self.host))
        limit = time.monotonic() + READY_SECONDS
        while not self._nbd_greets():
            if self.nbd.poll() is not None or time.monotonic() > limit:
                raise RuntimeError("nbdkit did not start: " + " ".join(map(str, command)))
            time.sleep(0.01)

    def _nbd_greets(self):
        """It listens before it has the volume, but sends nothing yet."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(READY_SECONDS)
            try:
                s.connect(str(self.socket))
                if s.recv(18, socket.MSG_WAITALL)[:8] != b"NBDMAGIC":
                    return False
                s.sendall(b"\0\0\0\1" + b"IHAVEOPT" + bytes([0, 0, 0, NBD_OPT_ABORT]) + bytes(4))  # "fixed newstyle", and good-bye
                return True
            except OSError:
                return False

    def stop_nbd(self):
        if self.nbd is not None:
            end(self.nbd, ENDING_SECONDS)
        self.nbd = None

    def tool(self, *words):
        """`cepheus-replica` with these words; the finished process."""
        return subprocess.run([str(self.build / "bin/cepheus-replica"), *map(str, words)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ})

    def in_sync(self):
        """How many replicas are, as the first one has it on record."""
        answer = self.tool("status", self.replicas[0].address, "--json")
        if answer.returncode != 0:
            raise RuntimeError(answer.stderr)
        return len(json.loads(answer.stdout)["config"]["members"])

    def wait_for_sync(self, replicas, seconds=SYNC_SECONDS):
        """Polls the status until this many replicas are in sync; RuntimeError after a time limit."""
        limit = time.monotonic() + seconds
        while self.in_sync() != replicas:
            if time.monotonic() > limit:
                raise RuntimeError(f"{replicas} replicas in sync: that did not come within {seconds} s")

    def check(self):
        """`cepheus-replica check` of all replicas; the finished process."""
        return self.tool("check", "--volume", "volume", "--replicas", self.addresses)

    def close(self):
        self.stop_nbd()
        for replica in self.replicas:
            replica.kill()
        self._own.cleanup()
