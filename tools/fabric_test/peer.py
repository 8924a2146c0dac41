"""A group of this host and a peer, on which `cepheus fabric-test --serve` runs; and that service."""

import contextlib
import json
import os
import socket
import threading
import time

import way
from helper import Helper, UnusablePair
from mrp import Control, LeadGroup, Member, Refused, answer_leader, start_psn
from probe import Prober

TIMEOUT_CODE, RNR_CODE = 14, 14  # 67 ms; 1.28 ms
DROP_LAST, DROP_PACKET, DROP_ACK, SEND_CNPS = 1, 2, 3, 4
REPORT_ALONE = 0
SHORT = 64 << 10  # some packets of any MTU
ANSWER_SECONDS = 90
CONNECT_SECONDS, CONNECT_AGAIN = 60, 0.1


def member_of(helper, control):
    return Member(helper.address, helper.qpn, control.own_port, int.from_bytes(os.urandom(4), "big"))


def connect(helper, group, psn, mtu, tos):
    """Brings the queue pair up; the text of a failure, or None."""
    try:
        helper.do(f"connect {group} {psn} {mtu} {TIMEOUT_CODE} {RNR_CODE} {tos or 0}")
    except UnusablePair as why:
        return str(why)
    return None


def counters(dev, helper):
    return {**way.counters(dev, helper.device), **helper.counters()}


class Service:
    """Serves peers, one after another."""

    def __init__(self, server, source, port, key, device, dev, tos):
        self.server, self.source, self.port, self.key = server, source, port, key
        self.device, self.dev, self.tos = device, dev, tos

    def serve_one(self):
        line, _ = self.server.accept()
        with contextlib.suppress(OSError, ValueError, UnusablePair), line, line.makefile("rw", encoding="utf-8") as stream, \
                contextlib.ExitStack() as stack:
            line.settimeout(ANSWER_SECONDS)
            try:
                helper = Helper(self.device)
            except UnusablePair as why:
                print(json.dumps({"failed": str(why)}), file=stream, flush=True)
                return
            stack.callback(helper.close)
            own = self.source or (line.getsockname()[0] if line.family == socket.AF_INET else helper.address)
            control = Control(helper.socket, own, self.port, self.key)
            stack.callback(control.close)
            self._attend(stack, stream, helper, control)

    def _attend(self, stack, stream, helper, control):
        member, stopped = member_of(helper, control), threading.Event()
        thread = threading.Thread(target=answer_leader,
                                  args=(control, member, lambda: helper.mtu, lambda *end: connect(helper, *end, self.tos) is None, stopped))
        thread.start()
        stack.callback(lambda: (stopped.set(), thread.join()))
        print(json.dumps({"member": [member.address, member.qpn, member.port, member.token], "gid_index": helper.gid_index,
                          "mtu": helper.mtu}), file=stream, flush=True)
        for request in stream:
            try:
                answer = {"ok": self._obey(helper, json.loads(request))}
            except UnusablePair as failure:
                answer = {"failed": str(failure)}
            print(json.dumps(answer), file=stream, flush=True)


    def _obey(self, helper, command):
        if command == "counters":
            return counters(self.dev, helper)
        if isinstance(command, dict):
            helper.mtu = command["mtu"]
            return []
        return helper.do(command)


class Peer:
    """`address`: (host, port), or the name of a UNIX socket of another host of an emulated fabric."""

    def __init__(self, address):
        if isinstance(address, tuple):
            self.line = socket.create_connection(address, ANSWER_SECONDS)
        else:
            self.line = self._wait_for(address)
        self.stream = self.line.makefile("rw", encoding="utf-8")
        hello = json.loads(self.stream.readline() or "{}")
        if "member" not in hello:
            raise UnusablePair(f"the peer's device does not open: {hello.get('failed', 'the peer has gone')}")
        self.member = Member(*hello["member"])
        self.mtu = hello["mtu"]

    @staticmethod
    def _wait_for(name):
        """It may not have begun yet."""
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(ANSWER_SECONDS)
        give_up = time.monotonic() + CONNECT_SECONDS
        while (error := line.connect_ex(name)) != 0:
            if time.monotonic() > give_up:
                raise OSError(error, os.strerror(error))
            time.sleep(CONNECT_AGAIN)
        return line

    def close(self):
        self.line.close()

    def do(self, line):
        print(json.dumps(line), file=self.stream, flush=True)
        answer = json.loads(self.stream.readline() or '{"failed": "the peer has gone"}')
        if "failed" in answer:
            raise UnusablePair(f"at the peer: {answer['failed']}")
        return answer["ok"]


class PairOfHosts:
    """This host's queue pair, the peer's, and their group."""

    def __init__(self, ladder, stack):
        self.dev, self.tos = ladder.way.dev, ladder.tos
        self.helper = ladder.helper
        if self.helper is None:
            self.helper = Helper(ladder.device)
            stack.callback(self.helper.close)
        self.control = Control(self.helper.socket, ladder.way.source, ladder.port, ladder.key)
        stack.callback(self.control.close)
        self.peer = Peer(ladder.peer)
        stack.callback(self.peer.close)
        self.group = LeadGroup(self.control, ladder.group, [member_of(self.helper, self.control), self.peer.member])
        self.prober = Prober(self.helper.socket, self.group.group, ladder.way.source, ladder.port, ladder.key, ladder.wait)
        stack.callback(self.prober.close)
        self.mtu = self.helper.mtu = min(self.helper.mtu, self.peer.mtu, ladder.mtu)
        self.peer.do({"mtu": self.mtu})
        self.is_registered = False
        stack.callback(self.end)

    def set_up(self):
        self.is_registered = True  # perhaps even if a registration fails
        least = self.group.register()
        self.mtu = self.helper.mtu = min(self.mtu, least or self.mtu)
        why_not = connect(self.helper, self.group.group, start_psn(self.group.group, self.group.epoch), self.mtu, self.tos)
        if why_not:
            raise UnusablePair(why_not)
        self.group.connect(self.mtu)
        self.group.activate()

    def end(self):
        """The switch forgets the group, also after a failure."""
        if self.is_registered:
            self.is_registered = False
            with contextlib.suppress(Refused, OSError, ValueError, UnusablePair):
                self.group.end()

    def send(self, size, count=1, back=False, meanwhile=lambda: None):
        """Messages to the peer, or back from it; the sender's microseconds. `meanwhile` runs between, on this host."""
        source, target = (self.peer, self.helper) if back else (self.helper, self.peer)
        target.do(f"receive {size} {count}")
        if back:
            took = source.do(f"send {size} {count}")
        else:
            source.begin(f"send {size} {count}")
            meanwhile()
            took = source.end()
        wrong = target.do(f"wait {count} 60")
        if int(wrong[0]):
            raise UnusablePair(f"{wrong[0]} bytes are wrong")
        return int(took[0])

    def order(self, kind, number=0):
        """The switch's report, after it has taken the order, and its time."""
        answer = self.prober.request(order=(kind, number), epoch=self.group.epoch, instance=self.group.instance)
        if answer is None or answer.report is None:
            raise UnusablePair("the switch takes no order about the group")
        return {**answer.report, "time_us": answer.time_us}

    def send_with_drop(self, kind, number=0):
        before = self.order(kind, number)
        took = self.send(SHORT)
        report = self.order(REPORT_ALONE)
        if report["done"] != before["done"] + 1 & 0xFFFF:
            raise UnusablePair("the switch has dropped nothing: the message's packets do not pass it")
        return took, report

    def watched(self, act):
        """What act() returns, and what grew meanwhile: counters here and at the peer, and numbers of the switch's report."""
        def look():
            return counters(self.dev, self.helper), self.peer.do("counters"), self.order(REPORT_ALONE)

        before, found = look(), act()
        after = look()
        own, peers = (way.growth(*pair) for pair in list(zip(before, after))[:2])
        at_switch = {name: after[2][name] - before[2][name] & 0xFFFFFFFF for name in ("packets", "repeats", "naks", "lost", "time_us")}
        return found, {"counters": own, "peer_counters": peers, "switch": {**at_switch, "fill": after[2]["fill"], "tos": after[2]["tos"]}}
