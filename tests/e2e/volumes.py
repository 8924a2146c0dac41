"""A volume on a fabric of its own: replicas, a user that verifies all data, and faults of all of them."""

import array
import contextlib
import json
import pathlib
import subprocess
import tempfile
import threading
import time

from harness import BUILD  # it extends the path for the next imports
import volume_process
from live import wait_until
from switch_process import Switch

READY_SECONDS = volume_process.READY_SECONDS
REPLICA = BUILD / "bin/cepheus-replica"
USER = BUILD / "tests/volume_user"
BLOCK = 4096  # bytes, by default


def on_host(fabric, index):
    return volume_process.on_host(BUILD, fabric, index)


class User:
    """volume_user: its lines are events; keeps the last one of each kind."""

    def __init__(self, command, env):
        self.process = subprocess.Popen([*map(str, command)], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.events, self.text, self.gaps = {}, [], []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        with self.process.stdout as lines:
            self._take(lines)

    def _take(self, lines):
        for line in lines:
            self.text.append(line.rstrip("\n"))
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                self.events[event["event"]] = event
                if event["event"] == "gap":
                    self.gaps.append((event["ended"] - event["ms"] / 1000, event["ended"]))

    def await_event(self, name, seconds=60):
        return wait_until(lambda: self.events.get(name) or (self.process.poll() is not None and self._gone(name)),
                          lambda: f"'{name}'; its output:\n{self.tail()}", seconds)

    def _gone(self, name):
        self.thread.join(READY_SECONDS)
        if name in self.events:
            return self.events[name]
        raise RuntimeError(f"the user ended with {self.process.returncode}, and no '{name}':\n{self.tail()}")

    def tail(self):
        return "\n".join(self.text[-12:])

    def status(self):
        """The volume's latest status."""
        return self.events.get("running", {}).get("volume") or {}

    def kill(self):
        self.process.kill()
        self.finish(0)

    def finish(self, seconds=60):
        try:
            self.process.wait(seconds or None)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError("the user did not end:\n" + self.tail()) from None
        finally:
            self.thread.join(READY_SECONDS)
        return self.process.returncode


class Volume:
    """A context manager: all of it is running in the block. Host 0 is the user's, the last one another user's."""

    def __init__(self, replicas=3, size="8M", options=(), topology=None, fabric=None):
        self.scratch = tempfile.TemporaryDirectory(prefix="cepheus-volume-")
        self.directory = pathlib.Path(self.scratch.name)
        arguments = () if topology else ("--shape", fabric) if fabric else ("--hosts", replicas + 2)
        self.switch = Switch(BUILD, *arguments, topology=topology)
        self.replicas = [volume_process.Replica(BUILD, self.switch.socket, i + 1, self.directory, size, "v", options) for i in range(replicas)]
        self.users = []
        self.ended, self.go = self.directory / "enough", self.directory / "go"  # --until, and --idle-until

    def __enter__(self):
        try:
            for replica in self.replicas:
                replica.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for user in self.users:
            if user.process.poll() is None:
                user.kill()
        for replica in self.replicas:
            replica.kill()
        self.switch.close()
        self.scratch.cleanup()

    @property
    def addresses(self):
        return ",".join(r.address for r in self.replicas)

    def start_user(self, *options, seed=1, host=0):
        user = User([USER, "--volume", "v", "--replicas", self.addresses, "--ledger", self.directory / "ledger", "--until", self.ended,
                     "--seed", seed, "--status", *options], on_host(self.switch.socket, host))
        self.users.append(user)
        return user

    def finish(self, user, seconds=60):
        """Lets the user end by itself; returns its last event."""
        self.ended.touch()
        code = user.finish(seconds)
        self.ended.unlink()
        if code != 0:
            raise RuntimeError(f"the user ended with {code}:\n{user.tail()}\n{self.logs()}")
        return user.events.get("done")

    def logs(self):
        return "\n".join(f"--- {r.address}\n{r.log.read_text()}" for r in self.replicas)

    def differing(self, replica):
        """Blocks of a replica's file with neither the last acknowledged write nor the one begun after it (replica/e2e/ledger.h)."""
        ledger = array.array("Q", (self.directory / "ledger").read_bytes())
        data = array.array("Q", replica.file.read_bytes())
        writes = data[1::BLOCK // 8]  # the second word of each block
        return {block for block, write in enumerate(writes) if write not in ledger[1 + 2 * block:3 + 2 * block]}

    def run_tool(self, command, *options, **kwargs):
        """cepheus-replica's answer."""
        return subprocess.run([str(REPLICA), command, *map(str, options)], text=True, capture_output=True, timeout=120, check=False, **kwargs)

    def wait_for_sync(self, user, seconds=60):
        """Waits until the user's volume has all replicas in sync."""
        wait_until(lambda: (user.process.poll() is not None and user._gone("sync")) or len(user.status().get("in_sync", [])) == len(self.replicas),
                   lambda: f"all in sync; its output:\n{user.tail()}\n{self.logs()}", seconds)


def pause(seconds):
    """A random pause, so that faults fall into random moments."""
    time.sleep(seconds)
