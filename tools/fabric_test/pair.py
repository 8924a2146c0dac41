"""The steps with queue pairs, of a group of this host and a peer on which `cepheus fabric-test --serve` runs."""

import contextlib
import json
import os
import re
import socket
import subprocess
import threading
import time

import way
from mrp import Control, LeadGroup, Member, Refused, answer_leader, start_psn
from probe import Prober

TIMEOUT_CODE, RNR_CODE = 14, 14  # 67 ms; 1.28 ms
TIMEOUT_US, RNR_US = 4.096 * 2**TIMEOUT_CODE, 1280
RNR_NAKS = 20
DROP_REPORT, DROP_LAST, DROP_PACKET, DROP_ACK = 0, 1, 2, 3
UNKNOWN = 0xFFFFFFFF
PACKET, MESSAGE, BURST = 64, 1 << 20, 8 << 20
COPIES = 10_000
SHORT = 64 << 10  # some packets of any MTU
ANSWER_SECONDS = 90


class Helper:
    """The program with the queue pair: a line there, a line back."""

    program = None  # its path

    def __init__(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()

    def begin(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self):
        """[words] of an answer, "ok" first; UnusablePair with the text of a failure."""
        words = self.process.stdout.readline().split()
        if words[:1] != ["ok"]:
            raise UnusablePair(" ".join(words[1:]) or "the helper program ended")
        return words[1:]

    def do(self, line):
        self.begin(line)
        return self.end()


class UnusablePair(Exception):
    """A command of a queue pair failed, here or at the peer."""


def open_member(helper, control, device):
    address, gid_index, mtu, qpn = helper.do(f"open {device or '-'}")
    return Member(address, int(qpn), control.own_port, int.from_bytes(os.urandom(4), "big")), int(gid_index), int(mtu)


def connect(helper, group, psn):
    """Brings the queue pair up; the text of a failure, or None."""
    try:
        helper.do(f"connect {group} {psn} {TIMEOUT_CODE} {RNR_CODE}")
    except UnusablePair as why:
        return str(why)
    return None


def serve(port, source, mrp_port, key, device, dev, report):
    """Serves one peer after another, until it is interrupted."""
    with socket.create_server((source or "", port)) as server:
        report(f"serving peers at port {server.getsockname()[1]}")
        while True:
            line, _ = server.accept()
            with contextlib.suppress(OSError, ValueError), line, line.makefile("rw", encoding="utf-8") as stream:
                line.settimeout(ANSWER_SECONDS)
                serve_one(stream, line.getsockname()[0], mrp_port, key, device, dev)


def serve_one(stream, own, mrp_port, key, device, dev):
    with contextlib.ExitStack() as stack:
        helper = Helper()
        stack.callback(helper.close)
        control = Control(own, mrp_port, key)
        stack.callback(control.close)
        member, gid_index, mtu = open_member(helper, control, device)
        stopped = threading.Event()
        thread = threading.Thread(target=answer_leader, args=(control, member, lambda *end: connect(helper, *end) is None, stopped))
        thread.start()
        stack.callback(lambda: (stopped.set(), thread.join()))
        print(json.dumps({"member": [member.address, member.qpn, member.port, member.token], "gid_index": gid_index, "mtu": mtu}),
              file=stream, flush=True)
        for request in stream:
            try:
                command = json.loads(request)
                answer = {"ok": way.counters(dev, device) if command == "counters" else helper.do(command)}
            except UnusablePair as failure:
                answer = {"failed": str(failure)}
            print(json.dumps(answer), file=stream, flush=True)


class Peer:
    def __init__(self, address, port):
        self.line = socket.create_connection((address, port), ANSWER_SECONDS)
        self.stream = self.line.makefile("rw", encoding="utf-8")
        hello = json.loads(self.stream.readline() or "{}")
        if "member" not in hello:
            raise UnusablePair("the peer has no usable device")
        self.member = Member(*hello["member"])
        self.mtu = hello["mtu"]

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
        self.dev, self.device = ladder.way.dev, ladder.device
        self.helper = Helper()
        stack.callback(self.helper.close)
        self.control = Control(ladder.way.source, ladder.port, ladder.key)
        stack.callback(self.control.close)
        self.member, self.gid_index, self.mtu = open_member(self.helper, self.control, ladder.device)
        self.peer = Peer(*ladder.peer)
        stack.callback(self.peer.close)
        self.group = LeadGroup(self.control, ladder.group, [self.member, self.peer.member])
        self.prober = Prober(self.group.group, ladder.way.source, ladder.port, ladder.key, ladder.wait)
        stack.callback(self.prober.close)

    def set_up(self):
        why_not = connect(self.helper, self.group.group, start_psn(self.group.group, self.group.epoch))
        if why_not:
            raise UnusablePair(why_not)
        self.group.register()
        self.group.activate()

    def send(self, size, count=1, back=False):
        """Messages to the peer, or back from it; the sender's microseconds."""
        source, target = (self.peer, self.helper) if back else (self.helper, self.peer)
        target.do(f"receive {size} {count}")
        took = source.do(f"send {size} {count}")
        wrong = target.do(f"wait {count} 60")
        if int(wrong[0]):
            raise UnusablePair(f"{wrong[0]} bytes are wrong")
        return int(took[0])

    def counted(self, act):
        """What act() returns, and the counters that grew meanwhile, here and at the peer."""
        def counters():
            return way.counters(self.dev, self.device), self.peer.do("counters")

        before, found = counters(), act()
        here, peer = (way.growth(*pair) for pair in zip(before, counters()))
        return found, {"counters": here, "peer_counters": peer}

    def order(self, kind, number=0):
        """The switch's report, after it has taken the order."""
        answer = self.prober.request(drop=(kind, number), epoch=self.group.epoch, instance=self.group.instance)
        if answer is None or answer.drop is None:
            raise UnusablePair("the switch takes no order of a drop")
        return answer.drop

    def send_with_drop(self, kind, number=0):
        before = self.order(kind, number)["drops"]
        took = self.send(SHORT)
        report = self.order(DROP_REPORT)
        if report["drops"] != before + 1 & 0xFFFF:
            raise UnusablePair("the switch has dropped nothing: the message's packets do not pass it")
        return took, report


def text_of(microseconds):
    return "never" if microseconds == UNKNOWN else f"{microseconds / 1000:.2f} ms"


def queue_pair(ladder, pair):
    """To RTS towards QPN 1, and a group of two."""
    try:
        pair.set_up()
    except Refused as why:
        return ladder.failed("registration", f"the group is refused: {why}", "on the box: cepheusctl ports, and cepheusctl counters")
    except UnusablePair as why:
        return ladder.failed("queue-pair", f"the NIC does not connect to a group: {why}",
                             f"ip route get {pair.group.group}; the NIC looks for {ladder.way.hop} by ARP at its own interface: cepheus doctor")
    return ladder.passed(f"RTS towards QPN 1 of {pair.group.group}, with {pair.peer.member.address}", gid_index=pair.gid_index, mtu=pair.mtu)


def data(ladder, pair):
    first = pair.send(PACKET)
    message = pair.send(MESSAGE)
    ladder.passed(f"a packet takes {first} us, {MESSAGE >> 20} MiB {message / 1000:.1f} ms", packet_us=first, message_us=message)


def source_change(ladder, pair):
    there, back = pair.send(SHORT, back=True), pair.send(SHORT)
    ladder.passed("the peer sends, and this host again", peer_us=there, own_us=back)


def time_out(ladder, pair):
    """The switch drops the last packet: only the NIC's time-out brings it again."""
    took, report = pair.send_with_drop(DROP_LAST)
    ladder.passed(f"the NIC repeats a lost last packet after {text_of(report['repeat_us'])}; the time-out code says {TIMEOUT_US / 1000:.0f} ms",
                  took_us=took, nominal_us=TIMEOUT_US, **report)


def nak(ladder, pair):
    took, report = pair.send_with_drop(DROP_PACKET, 1)
    if report["nak_us"] == UNKNOWN:
        return ladder.failed("no-nak", "the peer's NIC sends no NAK for a gap: every loss costs a time-out", "look at the NIC's settings of the "
                             "retransmission protocol", took_us=took, **report)
    return ladder.passed(f"NAK {text_of(report['nak_us'])} after a loss, the repeat after {text_of(report['repeat_us'])}", took_us=took, **report)


def ack(ladder, pair):
    took, report = pair.send_with_drop(DROP_ACK)
    ladder.passed(f"a lost last ACK is repaired after {took / 1000:.2f} ms", took_us=took, **report)


def burst(ladder, pair):
    took, grown = pair.counted(lambda: pair.send(BURST))
    ladder.passed(f"{BURST >> 20} MiB in {took / 1000:.1f} ms: {BURST * 8 / took / 1000:.2f} Gb/s", took_us=took, **grown)


def copies(ladder, pair):
    """Some ten thousand copies: their order, by the counters of the peer's NIC."""
    messages = -(-COPIES * pair.mtu // BURST)
    took, grown = pair.counted(lambda: pair.send(BURST, messages))
    wrong = {name: count for name, count in grown["peer_counters"].items() if re.search("out_of_seq|oos_|rx_missed", name)}
    if wrong:
        return ladder.failed("copies", f"of {messages * BURST // pair.mtu} copies some came late or not: {wrong}",
                             "on the box: cepheusctl counters, ethtool -S, one transmit queue or a pinned thread; drops of switch ports on the way",
                             took_us=took, **grown)
    return ladder.passed(f"{messages * BURST // pair.mtu} copies in {took / 1000:.1f} ms; no counter of the peer's NIC shows a gap or a drop",
                         took_us=took, **grown)


def psns(ladder, pair):
    before = int(pair.helper.do("psns")[0])
    pair.send(SHORT)
    after = int(pair.helper.do("psns")[0])
    if before == after:
        return ladder.failed("frozen-psn", f"ibv_query_qp shows the same PSN before and after a message: {before}",
                             'leave source_change = "rebase" in the topology: "host-sync" can\'t work with this NIC')
    return ladder.passed("ibv_query_qp shows PSNs that move", moved=(after - before) & 0xFFFFFF)


def rnr(ladder, pair):
    """The receive is posted late: the receiver's NIC answers RNR meanwhile."""
    pair.helper.begin(f"send {PACKET} 1")
    time.sleep(RNR_NAKS * RNR_US * 2e-6)
    try:
        pair.peer.do(f"receive {PACKET} 1")
        pair.helper.end()
    except UnusablePair as why:
        return ladder.failed("finite-rnr", f"the NIC gives up on a receiver that is not ready: {why}",
                             "its driver limits RNR retries although 7 means for ever: small broadcasts may fail with late receivers")
    pair.peer.do("wait 1 60")
    return ladder.passed(f"the NIC waits for a receiver that is not ready for {RNR_NAKS} RNR timers and more")


def reset(ladder, pair):
    with contextlib.suppress(Refused):
        pair.group.end()
    try:
        pair.helper.do("reset")
    except UnusablePair as why:
        return ladder.failed("no-reset", f"a queue pair can't be used again: {why}",
                             'leave source_change = "rebase" in the topology: "host-sync" can\'t work with this NIC')
    return ladder.passed("a queue pair goes to RESET and to INIT")


STEPS = (queue_pair, data, source_change, time_out, nak, ack, burst, copies, psns, rnr, reset)


def climb(ladder):
    """Runs the steps; a queue pair that breaks ends them."""
    with contextlib.ExitStack() as stack:
        ladder.name = "queue pair"
        try:
            pair = PairOfHosts(ladder, stack)
        except (UnusablePair, OSError, ValueError) as why:
            return ladder.failed("no-pair", f"no queue pair here, or no peer: {why}", "on the peer: cepheus fabric-test --serve; here: cepheus doctor")
        for step in STEPS:
            ladder.name = step.__name__.replace("_", " ")
            try:
                step(ladder, pair)
            except UnusablePair as why:
                return ladder.failed("work", f"it ends in an error: {why}", "on the box: cepheusctl counters, and a capture by --pcap DIR")
            if ladder.findings[-1]["cause"] in ("registration", "queue-pair"):
                return None
        return None
