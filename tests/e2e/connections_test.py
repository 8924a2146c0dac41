#!/usr/bin/python3
"""Daemons of three hosts and programs in C: a connection has all members or fails, and each side learns of the other's end."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import tempfile
import unittest

from harness import BUILD
from live import Lines, Switch, private_kib, wait_until
from volumes import on_host

DAEMON = BUILD / "bin/cepheus-cmd"
USER = BUILD / "tests/connections_user"
LINE_SECONDS = 30  # time limit for a line
NEVER_MS = "60000"  # beyond that: a death is reported because a connection ends, not because a daemon is silent
TYPE_HELLO, TYPE_READY, TYPE_REFUSAL, TYPE_PROGRAM, TYPE_LISTEN = 1, 2, 4, 12, 13  # controller/connections/engine/message.h
NO_TAG = bytes(20)  # of a daemon without a key


def address(host):
    return f"10.0.0.{host}"


def frame(kind, body=b""):
    return struct.pack(">IB", 1 + len(body), kind) + body


def hello(host):
    return frame(TYPE_HELLO, struct.pack(">HBBBBI16xBI", 1, 10, 0, 0, host, 0, 0, 2000))


class User:
    def __init__(self, environment, *words):
        self.process = subprocess.Popen([USER, *words], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = Lines(self.process.stdout)

    def await_line(self, start):
        def found():
            return next((line for line in list(self.lines.lines) if line.startswith(start)), None)
        return wait_until(found, lambda: f"'{start}' among {self.lines.lines}", LINE_SECONDS)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.lines.thread.join()
        self.process.stdout.close()


class Connections(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.directory = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="cepheus-cmd-")))
        self.daemons = {}

    def start(self, host, *options):
        ready, theirs = os.pipe()
        log = self.stack.enter_context(open(self.directory / f"log{host}", "w"))
        process = subprocess.Popen(
            [DAEMON, "--host", address(host), "--listen", f"unix:{self.directory}/peer-{address(host)}", "--peers",
             f"unix:{self.directory}/peer-%h", "--socket", self.directory / f"programs{host}", "--ready-fd", str(theirs), *options],
            pass_fds=[theirs], stdout=log, stderr=subprocess.STDOUT)
        os.close(theirs)
        self.stack.callback(self.end, process)
        with open(ready) as line:
            self.assertEqual(line.readline(), "ready\n", (self.directory / f"log{host}").read_text())
        self.daemons[host] = process
        return process

    @staticmethod
    def end(process):
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()

    def user(self, host, *words):
        user = User({**os.environ, "CEPHEUS_CMD_SOCKET": str(self.directory / f"programs{host}")}, *words)
        self.stack.callback(user.close)
        return user

    def listener(self, host, *words):
        user = self.user(host, "listen", "s", *words)
        user.await_line("LISTENING")
        return user

    def connect(self, *options, limit_ms=NEVER_MS):
        """Daemons 1 to 3, receivers on 2 and 3, and a sender on 1 that is connected with them."""
        for host in 1, 2, 3:
            self.start(host, "--peer-timeout-ms", limit_ms, *options)
        receivers = [self.listener(2), self.listener(3)]
        sender = self.user(1, "connect", "s", address(3), address(2))
        sender.await_line("CONNECTED")
        for receiver in receivers:
            receiver.await_line("ESTABLISHED")
        return sender, receivers

    def dial(self, path):
        s = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        s.settimeout(10)
        s.connect(str(path))
        return s

    def status(self, host):
        result = subprocess.run([DAEMON, "status", "--json", "--socket", self.directory / f"programs{host}"], text=True, capture_output=True,
                               timeout=30, check=True)
        return json.loads(result.stdout)

    def test_connects_and_transmits_names_and_data(self):
        key = self.directory / "key"
        key.write_text("1" * 64)
        sender, receivers = self.connect("--key", key)
        wait_until(lambda: len([line for line in sender.lines.lines if line.startswith("MEMBER")]) == 2, "members")
        members = [line for line in sender.lines.lines if line.startswith("MEMBER")]
        self.assertEqual(members, [f"MEMBER {address(3)} ab receiver {receivers[1].process.pid}",
                                   f"MEMBER {address(2)} ab receiver {receivers[0].process.pid}"])
        offer = receivers[0].await_line("OFFER").split()
        self.assertEqual(offer[1], address(1))
        self.assertTrue(0xE00000 <= int(offer[2], 16) <= 0xFFFFFE, offer)
        self.assertEqual(" ".join(offer[3:]), "from the sender|")
        status = self.status(1)
        self.assertEqual([c["state"] for c in status["connections"]], ["connected"])
        self.assertEqual(status["connections"][0]["virtual_qpn"], int(offer[2], 16))
        sender.process.stdin.write("close\n")
        sender.process.stdin.flush()
        for receiver in receivers:
            self.assertIn("closed", receiver.await_line("CLOSED"))
        self.assertEqual(self.status(1)["connections"], [])

    def test_the_sender_learns_of_a_killed_receiver(self):
        sender, receivers = self.connect()
        receivers[0].process.kill()
        self.assertIn(address(2), sender.await_line("LEFT"))
        self.assertFalse([line for line in receivers[1].lines.lines if line.startswith("CLOSED")])

    def test_all_learn_of_a_killed_daemon(self):
        sender, receivers = self.connect()
        self.daemons[2].kill()
        self.assertIn(address(2), sender.await_line("LEFT"))
        self.assertIn("lost cepheus-cmd", receivers[0].await_line("ERROR"))
        self.daemons[1].kill()
        self.assertIn("has ended", receivers[1].await_line("CLOSED"))

    def test_all_learn_of_a_silent_daemon(self):
        sender, receivers = self.connect(limit_ms="8000")
        self.daemons[3].send_signal(signal.SIGSTOP)
        self.assertIn("has been silent for 8000 ms", sender.await_line("LEFT"))

    def test_idle_connections_stay_whatever_the_daemons_time_limits(self):
        """Daemons that are stopped one after the other show that the sender's time limit has passed twice."""
        for host, limit in (1, "3000"), (2, "60000"), (3, "3000"), (4, "3000"):
            self.start(host, "--peer-timeout-ms", limit)
        for host in 2, 3, 4:
            self.listener(host)
        sender = self.user(1, "connect", "s", *map(address, (2, 3, 4)))
        sender.await_line("CONNECTED")
        for host in 3, 4:
            self.daemons[host].send_signal(signal.SIGSTOP)
            sender.await_line(f"LEFT {address(host)}")
        self.assertEqual([line for line in sender.lines.lines if line.startswith(("LEFT", "CLOSED")) and address(2) in line], [])
        self.assertEqual([c["state"] for c in self.status(2)["connections"]], ["connected"])

    def test_the_example_moves_data_over_a_group_that_the_daemons_set_up(self):
        switch = self.stack.enter_context(Switch("--hosts", 3))
        for host in 1, 2, 3:
            self.start(host)

        def example(host, *words):
            environment = {**on_host(switch.socket, host - 1), "CEPHEUS_CMD_SOCKET": str(self.directory / f"programs{host}")}
            process = subprocess.Popen([BUILD / "examples/sender_group", *words], env=environment, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
            self.stack.callback(process.kill)
            return process
        receivers = [example(host, "receive", "s") for host in (2, 3)]
        for receiver in receivers:
            self.assertEqual(receiver.stdout.readline(), "listening\n")
        sender = example(1, "send", "s", "to all of you", address(2), address(3))
        output = sender.communicate(timeout=60)[0]
        self.assertEqual(sender.returncode, 0, output)
        number = re.fullmatch(r"2 hosts have it, by virtual QPN (0x\w+)\n", output)
        self.assertTrue(0xE00000 <= int(number[1], 16) <= 0xFFFFFE, output)
        for receiver in receivers:
            self.assertEqual(receiver.communicate(timeout=60)[0], "to all of you\n")
            self.assertEqual(receiver.returncode, 0)

    def test_refusals_and_absent_daemons_give_the_reason(self):
        self.start(1)
        self.start(2)
        accepting = self.listener(2)
        self.assertIn("no cepheus-cmd answers", self.user(1, "connect", "s", address(2), address(3)).await_line("FAILED"))
        self.start(3)
        self.assertIn("'s'", self.user(1, "connect", "s", address(2), address(3)).await_line("FAILED"))
        self.listener(3, "refuse", "no room today")
        self.assertIn("no room today", self.user(1, "connect", "s", address(2), address(3)).await_line("FAILED"))
        wait_until(lambda: [line for line in accepting.lines.lines if line.startswith("CANCELLED") and "no room today" in line], "the cancel")

    def test_a_wrong_key_is_refused_with_a_sentence(self):
        for host, digit in (1, "1"), (2, "2"):
            key = self.directory / f"key{host}"
            key.write_text(digit * 64)
            self.start(host, "--key", key)
        self.start(3)
        self.listener(2)
        self.listener(3)
        self.assertIn("different keys", self.user(1, "connect", "s", address(2)).await_line("FAILED"))
        self.assertIn("no key", self.user(1, "connect", "s", address(3)).await_line("FAILED"))
        self.assertGreater(self.status(2)["refusals"]["peer_refused"] + self.status(1)["refusals"]["peer_refused"], 0)

    def test_a_daemon_with_too_many_links_refuses_with_a_sentence(self):
        self.start(1)
        self.start(2, "--peer-timeout-ms", "60000")
        self.listener(2)
        for _ in range(4):
            self.dial(self.directory / f"peer-{address(2)}").sendall(hello(1) + frame(TYPE_READY, NO_TAG))
        wait_until(lambda: len(self.status(2)["peers"]) == 4, "four links of host 1")
        self.assertIn("many", self.user(1, "connect", "s", address(2)).await_line("FAILED"))
        refusals = self.status(1)["refusals"]
        self.assertEqual((refusals["peer_refused"], refusals["bad_peer"]), (1, 0))

    def test_hostile_programs_and_peers_leave_others_alone(self):
        sender, receivers = self.connect()
        program, peer = self.directory / "programs2", self.directory / f"peer-{address(2)}"
        for path in program, peer:
            for garbage in b"\xff" * 4096, b"\0\0\0\0", frame(200), b"GET / HTTP/1.0\r\n\r\n":
                with contextlib.suppress(OSError):  # it may disconnect during the call
                    self.dial(path).sendall(garbage)
            for _ in range(20):
                self.dial(path).sendall(b"\0\0\0\x10half")  # the rest never follows
        many = self.dial(program)
        greeting = frame(TYPE_PROGRAM, struct.pack(">H", 1))
        with contextlib.suppress(OSError):  # it never reads, and is disconnected
            many.sendall(greeting)
            for i in range(10000):
                name = f"service{i}".encode()
                many.sendall(frame(TYPE_LISTEN, struct.pack(">H", len(name)) + name))
        status = wait_until(lambda: (s := self.status(2))["refusals"]["too_many_services"] > 0 and s, "the refusals")
        self.assertLessEqual(len(status["services"]), 17)
        self.assertGreater(status["refusals"]["bad_program"], 0)
        self.assertGreater(status["refusals"]["peer_refused"] + status["refusals"]["bad_peer"], 0)
        again = self.user(1, "connect", "s", address(2), address(3))
        again.await_line("CONNECTED")
        self.assertFalse([line for line in sender.lines.lines if line.startswith("LEFT")], sender.lines.lines)

    def test_strangers_leave_nothing_behind(self):
        daemon = self.start(2)
        path = self.directory / f"peer-{address(2)}"

        def stranger(words, answers):
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(10)
                s.connect(str(path))
                for word, answer in zip(words, answers):
                    s.sendall(word)
                    for _ in range(answer):  # frames
                        length = struct.unpack(">I", s.recv(4, socket.MSG_WAITALL))[0]
                        s.recv(length, socket.MSG_WAITALL)

        def come(count):
            for _ in range(count):
                stranger([struct.pack(">IB", 8000, 1)], [0])  # the rest never follows
                stranger([hello(9), frame(TYPE_READY, NO_TAG)], [2, 0])
                stranger([frame(TYPE_REFUSAL, struct.pack(">H", 12) + b"\x1b[2Jgo\naway\r")], [1])
            wait_until(lambda: self.status(2)["peers"] == [] and len(os.listdir(f"/proc/{daemon.pid}/fd")) == descriptors, "they are forgotten")

        descriptors = len(os.listdir(f"/proc/{daemon.pid}/fd"))
        come(200)
        before = private_kib(daemon.pid)
        come(1000)
        self.assertLess(private_kib(daemon.pid), before + 1024)
        log = (self.directory / "log2").read_text()
        self.assertIn("\\x1b[2Jgo\\x0aaway\\x0d", log)
        self.assertNotIn("\x1b[2J", log)
        self.assertLess(len(log.splitlines()), 100, "a line for each would fill a journal")


if __name__ == "__main__":
    unittest.main()
