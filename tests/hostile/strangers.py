"""Strangers at every socket of every daemon: whether they leave anything behind, or keep others out.

A stranger connects, says a part of what a client would say, or too much, or nonsense, and goes. A crowd of them stays while an honest
client has its turn. Descriptors and memory of the daemon are what they were before.
"""

import argparse
import contextlib
import itertools
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from connections_test import NO_TAG, TYPE_READY, frame, hello  # noqa: E402
from harness import BUILD, star  # noqa: E402
from live import TIME_LIMIT, Lines, private_kib, wait_until  # noqa: E402
from switch_process import Switch  # noqa: E402
from volume_process import Replica  # noqa: E402

GRANTED, TAKEN, COME_AGAIN = 0, 3, 5  # switch-emulator/ports/handshake.h
SECONDS = 10  # for one word of a stranger's
WARM_UP = 300  # strangers whose memory a daemon may keep for the next ones
SLACK_KIB = 4096  # what an allocator keeps; 4 KiB a stranger are more where 1000 come
LARGEST = 1 << 16
HTTP = b"GET /view.json HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200 + b"\r\n\r\n"


class Gate:
    """A socket of a daemon: how to connect, what an honest client says there first, and the client."""

    def __init__(self, name, pid, address, greeting, client, kind=socket.SOCK_STREAM, crowd=300):
        self.name, self.pid, self.address, self.kind, self.crowd = name, pid, address, kind, crowd
        self.greeting = greeting  # as the client's messages
        self.client = client  # raises an error if it is not served

    def connect(self):
        family = socket.AF_INET if isinstance(self.address, tuple) else socket.AF_UNIX
        stranger = socket.socket(family, self.kind)
        stranger.settimeout(SECONDS)
        try:
            stranger.connect(self.address)
        except BaseException:
            stranger.close()
            raise
        return stranger

    def held(self):
        return {"descriptors": len(os.listdir(f"/proc/{self.pid}/fd")), "KiB": private_kib(self.pid)}


def says_nothing(_stranger, _greeting, _dice):
    pass


def names_a_length(stranger, _greeting, dice):
    stranger.sendall(struct.pack(">I", dice.choice([0, 1, 5, 16, 1000, 1 << 16, 1 << 31, (1 << 32) - 1])))


def stops_midway(stranger, greeting, dice):
    for message in greeting[:-1]:
        stranger.sendall(message)
    stranger.sendall(greeting[-1][:dice.randrange(1, len(greeting[-1]))])


def greets(stranger, greeting, _dice):
    for message in greeting:
        stranger.sendall(message)


def says_nonsense(stranger, _greeting, dice):
    stranger.settimeout(0)
    stranger.sendall(dice.randbytes(dice.choice([1, 7, 64, 1000, LARGEST])))


def errs(stranger, greeting, dice):
    for message in greeting:
        wrong = bytearray(message)
        for _ in range(dice.randrange(1, 4)):
            wrong[dice.randrange(len(wrong))] = dice.randrange(256)
        stranger.sendall(wrong)


def reads_nothing(stranger, greeting, _dice):
    stranger.settimeout(0)  # until there is no more room
    for message in (*greeting, *itertools.repeat(greeting[-1], 200)):
        stranger.sendall(message)


def brings_descriptors(stranger, greeting, _dice):
    if stranger.family == socket.AF_UNIX:
        socket.send_fds(stranger, [greeting[0]], [0] * 100)


WAYS = (says_nothing, names_a_length, stops_midway, greets, says_nonsense, errs, reads_nothing, brings_descriptors)


def visit(gate, way, dice):
    """Hangs up, politely or not."""
    with contextlib.suppress(OSError), gate.connect() as stranger:
        if dice.randrange(2):
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        way(stranger, gate.greeting, dice)


def besiege(gate, count, dice):
    """Lines about what went wrong."""
    gate.client()  # what the first one brings stays: a user's pool of payloads
    quiet = gate.held()["descriptors"]

    def come(visitors):
        for n in range(visitors):
            visit(gate, WAYS[n % len(WAYS)], dice)
        wait_until(lambda: gate.held()["descriptors"] <= quiet, lambda: f"{gate.name}: {quiet} descriptors, not {gate.held()}")

    wrong = []
    with contextlib.ExitStack() as crowd:
        for n in range(gate.crowd):
            with contextlib.suppress(OSError):
                stranger = crowd.enter_context(gate.connect())
                (says_nothing, stops_midway, greets)[n % 3](stranger, gate.greeting, dice)
        try:
            gate.client()
        except (OSError, subprocess.SubprocessError, RuntimeError) as error:
            wrong.append(f"{gate.name} does not serve beside {gate.crowd} strangers: {error}")
    come(WARM_UP)
    before = gate.held()
    come(count)
    after = gate.held()
    gate.client()
    if after["KiB"] > before["KiB"] + SLACK_KIB:
        wrong.append(f"{gate.name} held {before['KiB']} KiB before {count} strangers came, and {after['KiB']} after they had gone")
    return wrong, before, after


class Recorder:
    """Between a client and a daemon's stream socket: what the client says."""

    def __init__(self, gate_address, own_address):
        self.server = socket.create_server(own_address) if isinstance(own_address, tuple) else self._at(own_address)
        self.to, self.said = gate_address, []
        self.thread = threading.Thread(target=self._relay, daemon=True)
        self.thread.start()

    @staticmethod
    def _at(path):
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        return server

    def _relay(self):
        client, _ = self.server.accept()
        daemon = socket.socket(socket.AF_INET if isinstance(self.to, tuple) else socket.AF_UNIX)
        daemon.connect(self.to)
        back = threading.Thread(target=self._pass_on, args=(daemon, client, None), daemon=True)
        back.start()
        self._pass_on(client, daemon, self.said)
        daemon.shutdown(socket.SHUT_RDWR)
        back.join()
        for each in client, daemon, self.server:
            each.close()

    @staticmethod
    def _pass_on(source, sink, said):
        with contextlib.suppress(OSError):
            while message := source.recv(LARGEST):
                if said is not None:
                    said.append(message)
                sink.sendall(message)


def run(*command, env=None):
    done = subprocess.run([*map(str, command)], text=True, capture_output=True, timeout=TIME_LIMIT, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")


class Daemons:
    """One of each, of a build; a context manager."""

    def __init__(self, build):
        self.bin = build / "bin"
        self.stack = contextlib.ExitStack()
        self.directory = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="cepheus-strangers-")))
        self.switch = self.stack.enter_context(Switch(BUILD, topology=star(3), program=self.bin / "cepheus-switch"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self, *command):
        """Its process, and the last word of the line that it says once it serves."""
        process = subprocess.Popen([*map(str, command)], text=True, stdout=subprocess.PIPE)
        self.stack.callback(process.stdout.close)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process, process.stdout.readline().split()[-1]

    def record(self, address, own, *command):
        recorder = Recorder(address, own)
        run(*command)
        recorder.thread.join(SECONDS)
        return recorder.said

    def of_switch(self):
        ctl, path = [self.bin / "cepheusctl", "--socket", self.switch.socket], self.switch.socket

        def hello_as(host):  # switch-emulator/ports/handshake.cc
            return struct.pack("=IHHQ64s", 0x43455048, 3, 0, 0, host)

        def attach_once():  # the replica has h1
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as host:
                host.settimeout(TIME_LIMIT)
                try:
                    host.connect(path)
                except BlockingIOError:  # the listener's queue is full; with a limit of time connect() does not wait
                    return False
                host.send(hello_as(b"h2"))
                status = struct.unpack("=H", host.recv(8)[-2:])[0]
                if status not in (GRANTED, TAKEN, COME_AGAIN):  # a stranger may have had it a moment ago
                    raise RuntimeError(f"a host was not granted its port: status {status}")
                return status == GRANTED

        def attach_one():
            wait_until(attach_once, "a host's port")

        attach = Gate("cepheus-switch, attach", self.switch.pid, path, [hello_as(b"h0")], attach_one, socket.SOCK_SEQPACKET)
        command = Gate("cepheus-switch, commands", self.switch.pid, path + ".ctl", [b'{"ask": "status"}\n'], lambda: run(*ctl, "ports"))
        return [attach, command]

    def of_pages(self):
        ctl = [self.bin / "cepheusctl", "--socket", self.switch.socket]
        for name, page in ("web", "view.json"), ("metrics", "metrics"):
            process, url = self.start(*ctl, name, "--listen", "127.0.0.1:0")
            port = int(url.split(":")[2].split("/")[0])
            yield Gate(f"cepheusctl {name}", process.pid, ("127.0.0.1", port), [HTTP], lambda p=port, n=page: self.read_page(p, n))

    @staticmethod
    def read_page(port, name):
        with socket.create_connection(("127.0.0.1", port), TIME_LIMIT) as reader:
            reader.sendall(f"GET /{name} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            if not reader.recv(64).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("no page")

    def of_connections(self):
        programs, peers = str(self.directory / "programs"), str(self.directory / "peers")
        ready, told = os.pipe()
        command = [self.bin / "cepheus-cmd", "--host", "10.0.0.1", "--listen", f"unix:{peers}", "--peers", f"unix:{self.directory}/%h",
                   "--socket", programs, "--ready-fd", told]
        log = self.stack.enter_context(open(self.directory / "log", "w"))
        process = subprocess.Popen([*map(str, command)], pass_fds=(told,), stdout=log, stderr=subprocess.STDOUT)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        os.close(told)
        with open(ready) as line:
            line.readline()
        status = [self.bin / "cepheus-cmd", "--status", "--socket"]
        said = self.record(programs, programs + "-recorded", *status, programs + "-recorded")

        def greet():
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(SECONDS)
                peer.connect(peers)
                peer.sendall(hello(9))
                if len(peer.recv(5, socket.MSG_WAITALL)) != 5:
                    raise RuntimeError("no answer to a peer")
        # A user's own programs have his share of places.
        return [Gate("cepheus-cmd, programs", process.pid, programs, said, lambda: run(*status, programs), crowd=100),
                Gate("cepheus-cmd, peers", process.pid, peers, [hello(9), frame(TYPE_READY, NO_TAG)], greet)]

    def of_replica(self):
        replica = Replica(BUILD, self.switch.socket, 1, self.directory, "1M")
        replica.command[0] = self.bin / "cepheus-replica"
        self.stack.callback(replica.kill)
        replica.start()
        status = [self.bin / "cepheus-replica", "status"]
        host, port = replica.address.split(":")
        with socket.create_server(("127.0.0.1", 0)) as free:
            own = free.getsockname()
        said = self.record((host, int(port)), own, *status, f"{own[0]}:{own[1]}")
        return [Gate("cepheus-replica", replica.process.pid, (host, int(port)), said, lambda: run(*status, replica.address))]


HEAD = f"{'socket':<28}{'strangers':>10}{'KiB':>16}{'descriptors':>13}"


def besiege_all(count, build=BUILD, show=print, watch_memory=True, seed=1):
    """Lines about what went wrong; `show`s a line for each socket."""
    dice = random.Random(seed)
    wrong = []
    with Daemons(build) as daemons:
        for gate in (*daemons.of_switch(), *daemons.of_pages(), *daemons.of_connections(), *daemons.of_replica()):
            found, before, after = besiege(gate, count, dice)
            wrong += found if watch_memory else [line for line in found if "KiB" not in line]
            show(f"{gate.name:<28}{count:>10}{before['KiB']:>8}{after['KiB']:>8}{before['descriptors']:>7}{after['descriptors']:>6}")
    return wrong


def main():
    parser = argparse.ArgumentParser(prog="strangers.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10000, help="strangers at each socket (default: %(default)s)")
    options = parser.parse_args()
    print(HEAD)
    wrong = besiege_all(options.count)
    print("\n".join(wrong) or "strangers left nothing behind", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
