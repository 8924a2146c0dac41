"""Strangers at every socket of every daemon: they must leave nothing behind and block no client.

A stranger connects, sends part of a client's messages, or too much, or random bytes, and disconnects. Many of them stay while an honest
client is served. Afterwards the daemon has as many descriptors and as much memory as before.
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
from harness import BUILD, star  # noqa: E402  it extends the path for the next imports
import handshake  # noqa: E402
from live import TIME_LIMIT, Lines, private_kib, wait_until  # noqa: E402
from switch_process import Switch  # noqa: E402
from volume_process import Replica  # noqa: E402

SECONDS = 10  # for one message of a stranger
WARM_UP = 300  # strangers before the measurement: a daemon may keep memory for later ones
SLACK_KIB = 4096  # an allocator keeps that much; with 1000 strangers a leak of 4 KiB each is more
LARGEST = 1 << 16
HTTP = b"GET /view.json HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200 + b"\r\n\r\n"


class Gate:
    """A socket of a daemon: how to connect, an honest client's first messages, and the client."""

    def __init__(self, name, pid, address, greeting, client, kind=socket.SOCK_STREAM, crowd=300):
        self.name, self.pid, self.address, self.kind, self.crowd = name, pid, address, kind, crowd
        self.greeting = greeting  # the client's messages
        self.client = client  # raises an error if the daemon does not serve it

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


def sends_nothing(_stranger, _greeting, _dice):
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


def sends_random_bytes(stranger, _greeting, dice):
    stranger.settimeout(0)
    stranger.sendall(dice.randbytes(dice.choice([1, 7, 64, 1000, LARGEST])))


def errs(stranger, greeting, dice):
    for message in greeting:
        wrong = bytearray(message)
        for _ in range(dice.randrange(1, 4)):
            wrong[dice.randrange(len(wrong))] = dice.randrange(256)
        stranger.sendall(wrong)


def reads_nothing(stranger, greeting, _dice):
    stranger.settimeout(0)  # until the socket's buffer is full
    for message in (*greeting, *itertools.repeat(greeting[-1], 200)):
        stranger.sendall(message)


def brings_descriptors(stranger, greeting, _dice):
    if stranger.family == socket.AF_UNIX:
        socket.send_fds(stranger, [greeting[0]], [0] * 100)


WAYS = (sends_nothing, names_a_length, stops_midway, greets, sends_random_bytes, errs, reads_nothing, brings_descriptors)


def visit(gate, way, dice):
    """Disconnects, by a close or a reset."""
    with contextlib.suppress(OSError), gate.connect() as stranger:
        if dice.randrange(2):
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        way(stranger, gate.greeting, dice)


def attack_gate(gate, count, dice):
    """Errors, as lines."""
    gate.client()  # the first one's payload pool stays
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
                (sends_nothing, stops_midway, greets)[n % 3](stranger, gate.greeting, dice)
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
    """Relays between a client and a daemon's stream socket, and records the client's messages."""

    def __init__(self, gate_address, own_address):
        self.server = socket.create_server(own_address) if isinstance(own_address, tuple) else self._at(own_address)
        self.to, self.sent = gate_address, []
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
        self._pass_on(client, daemon, self.sent)
        daemon.shutdown(socket.SHUT_RDWR)
        back.join()
        for each in client, daemon, self.server:
            each.close()

    @staticmethod
    def _pass_on(source, sink, sent):
        with contextlib.suppress(OSError):
            while message := source.recv(LARGEST):
                if sent is not None:
                    sent.append(message)
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
        """Its process, and the last word of the line that it prints when it serves."""
        process = subprocess.Popen([*map(str, command)], text=True, stdout=subprocess.PIPE)
        self.stack.callback(process.stdout.close)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process, process.stdout.readline().split()[-1]

    def record(self, address, own, *command):
        recorder = Recorder(address, own)
        run(*command)
        recorder.thread.join(SECONDS)
        return recorder.sent

    def of_switch(self):
        ctl, path = [self.bin / "cepheusctl", "--fabric", self.switch.socket], self.switch.socket

        def attach_once():  # the replica has h1
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as host:
                host.settimeout(TIME_LIMIT)
                try:
                    host.connect(path)
                except BlockingIOError:  # the listener's queue is full; with a time limit connect() does not wait
                    return False
                host.send(handshake.attach_request(b"h2"))
                status = handshake.status_of(host.recv(handshake.HEAD.size))
                if status not in (handshake.GRANTED, handshake.TAKEN, handshake.AGAIN):  # a stranger may still have it
                    raise RuntimeError(f"a host was not granted its port: status {status}")
                return status == handshake.GRANTED

        def attach_one():
            wait_until(attach_once, "a host's port")

        attach = Gate("cepheus-switch, attach", self.switch.pid, path, [handshake.attach_request(b"h0")], attach_one, socket.SOCK_SEQPACKET)
        command = Gate("cepheus-switch, commands", self.switch.pid, path + ".ctl", [b'{"ask": "status"}\n'], lambda: run(*ctl, "ports"))
        return [attach, command]

    def of_pages(self):
        ctl = [self.bin / "cepheusctl", "--fabric", self.switch.socket]
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
        ready, ready_writer = os.pipe()
        command = [self.bin / "cepheus-cmd", "--host", "10.0.0.1", "--listen", f"unix:{peers}", "--peers", f"unix:{self.directory}/%h",
                   "--socket", programs, "--ready-fd", ready_writer]
        log = self.stack.enter_context(open(self.directory / "log", "w"))
        process = subprocess.Popen([*map(str, command)], pass_fds=(ready_writer,), stdout=log, stderr=subprocess.STDOUT)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        os.close(ready_writer)
        with open(ready) as line:
            line.readline()
        status = [self.bin / "cepheus-cmd", "status", "--socket"]
        recorded = self.record(programs, programs + "-recorded", *status, programs + "-recorded")

        def greet():
            with socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(SECONDS)
                peer.connect(peers)
                peer.sendall(hello(9))
                if len(peer.recv(5, socket.MSG_WAITALL)) != 5:
                    raise RuntimeError("no answer to a peer")
        # A user's own programs share the user's places.
        return [Gate("cepheus-cmd, programs", process.pid, programs, recorded, lambda: run(*status, programs), crowd=100),
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
        recorded = self.record((host, int(port)), own, *status, f"{own[0]}:{own[1]}")
        return [Gate("cepheus-replica", replica.process.pid, (host, int(port)), recorded, lambda: run(*status, replica.address))]


HEAD = f"{'socket':<28}{'strangers':>10}{'KiB':>16}{'descriptors':>13}"


def attack_all_gates(count, build=BUILD, show=print, watch_memory=True, seed=1):
    """Errors, as lines; `show`s a line for each socket."""
    dice = random.Random(seed)
    wrong = []
    with Daemons(build) as daemons:
        for gate in (*daemons.of_switch(), *daemons.of_pages(), *daemons.of_connections(), *daemons.of_replica()):
            found, before, after = attack_gate(gate, count, dice)
            wrong += found if watch_memory else [line for line in found if "KiB" not in line]
            show(f"{gate.name:<28}{count:>10}{before['KiB']:>8}{after['KiB']:>8}{before['descriptors']:>7}{after['descriptors']:>6}")
    return wrong


def main():
    parser = argparse.ArgumentParser(prog="strangers.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10000, help="number of strangers at each socket (default: %(default)s)")
    options = parser.parse_args()
    print(HEAD)
    wrong = attack_all_gates(options.count)
    print("\n".join(wrong) or "strangers left nothing behind", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
