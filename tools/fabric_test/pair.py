"""The steps with queue pairs, of a group of this host and a peer on which `cepheus fabric-test --serve` runs."""

import contextlib
import re
import select
import time

import peer
from helper import UnusablePair
from mrp import Refused
from peer import RNR_CODE, SHORT, TIMEOUT_CODE, PairOfHosts

TIMEOUT_US, RNR_US = 4.096 * 2**TIMEOUT_CODE, 1280
assert RNR_CODE == 14  # RNR_US
RNR_NAKS, RNR_SECONDS = 20, 30
RNR_SECONDS_EMULATED = 1  # enough on a busy machine, too
UNKNOWN = 0xFFFFFFFF
PACKET, MESSAGE, BURST = 64, 1 << 20, 8 << 20
COPIES, CNPS = 10_000, 1_000
ATTEMPTS = 3  # at a burst: one loss may be other traffic's
PROBE_SECONDS = 0.005  # between probes beside a burst: far below the switch's limit
SLOWER = 1.5  # times as long: the rate has fallen
ECN = 3  # bits of a TOS
# Counters of NICs, by the drivers' names for them.
DROPS = re.compile(r"out_of_buffer|discard|missed|no_buff|fifo_err|_drop(s|ped)?$")
GAPS = re.compile(r"out_of_seq|oos_|packet_seq_err")
CNP_HANDLED, CNP_ARRIVED = re.compile(r"cnp_?handled|rate_cuts", re.I), re.compile(r"rx_cnp|cnp_?handled|cnp_?ignored|cnp_rx", re.I)


def text_of(microseconds):
    return "never" if microseconds == UNKNOWN else f"{microseconds / 1000:.2f} ms"


def matching(pattern, *found):
    """Of several dictionaries of counters, those with a matching name."""
    return {name: count for counters in found for name, count in counters.items() if pattern.search(name)}


def queue_pair(ladder, pair):
    """To RTS towards QPN 1, and a group of two."""
    try:
        pair.set_up()
    except Refused as why:
        return ladder.failed("registration", f"the group is refused: {why}", "on the box: cepheusctl ports, and cepheusctl counters")
    except UnusablePair as why:
        return ladder.failed("queue-pair", f"the NIC does not connect to a group: {why}",
                             f"ip route get {pair.group.group}; the NIC looks for {ladder.way.hop} by ARP at its own interface: cepheus doctor")
    return ladder.passed(f"RTS towards QPN 1 of {pair.group.group}, with {pair.peer.member.address}", gid_index=pair.helper.gid_index,
                         mtu=pair.mtu)


def data(ladder, pair):
    first = pair.send(PACKET)
    message = pair.send(MESSAGE)
    ladder.passed(f"a packet takes {first} us, {MESSAGE >> 20} MiB {message / 1000:.1f} ms", packet_us=first, message_us=message)


def source_change(ladder, pair):
    there, back = pair.send(SHORT, back=True), pair.send(SHORT)
    ladder.passed("the peer sends, and this host again", peer_us=there, own_us=back)


def time_out(ladder, pair):
    """The switch drops the last packet: only the NIC's time-out brings it again."""
    took, report = pair.send_with_drop(peer.DROP_LAST)
    ladder.passed(f"the NIC repeats a lost last packet after {text_of(report['repeat_us'])}; the time-out code says {TIMEOUT_US / 1000:.0f} ms",
                  took_us=took, nominal_us=TIMEOUT_US, **report)


def nak(ladder, pair):
    for _ in range(ATTEMPTS):  # a NAK may be lost, too
        took, report = pair.send_with_drop(peer.DROP_PACKET, 1)
        if report["nak_us"] != UNKNOWN:
            break
    else:
        return ladder.failed("no-nak", "the peer's NIC sends no NAK for a gap: every loss costs a time-out", "look at the NIC's settings of the "
                             "retransmission protocol", took_us=took, **report)
    return ladder.passed(f"NAK {text_of(report['nak_us'])} after a loss, the repeat after {text_of(report['repeat_us'])}", took_us=took, **report)


def ack(ladder, pair):
    took, report = pair.send_with_drop(peer.DROP_ACK)
    ladder.passed(f"a lost last ACK is repaired after {took / 1000:.2f} ms", took_us=took, **report)


class Queues:
    """A burst fills queues on the way. Probes beside it wait there, so their answers are late by the queues' delay."""

    def __init__(self, pair):
        self.pair, self.latest = pair, None
        self.idle = self._measure(3)

    def _measure(self, tries):
        answers = [self.pair.prober.request(tries=1) for _ in range(tries)]
        return min((found.seconds for found in answers if found is not None), default=None)

    def watch(self):
        """Until the helper program has an answer. An emulated NIC's sockets are the program's own, which is busy."""
        if self.pair.helper.is_emulated or self.idle is None:
            return
        while not select.select([self.pair.helper.process.stdout], [], [], PROBE_SECONDS)[0]:
            found = self._measure(1)
            if found is not None:
                self.latest = max(self.latest or 0, found)

    def as_json(self):
        wait = None if self.latest is None else round(max(0, self.latest - self.idle) * 1e6)
        return {"queue_us": wait}


def send_many(pair, size, count):
    """(microseconds, what grew) of the first attempt without a loss, else of the last."""
    for _ in range(ATTEMPTS):
        queues = Queues(pair)
        took, grown = pair.watched(lambda: pair.send(size, count, meanwhile=queues.watch))
        grown.update(queues.as_json())
        if not grown["switch"]["lost"] and not grown["switch"]["naks"]:
            break
    return took, grown


def has_losses(ladder, grown, count, found):
    """Names the cause of losses, if there were some."""
    at_switch = grown["switch"]
    drops = matching(DROPS, grown["counters"], grown["peer_counters"])
    if at_switch["lost"]:
        ladder.failed("slow-box", f"the box is slower than the NIC: full rings cost {at_switch['lost']} frames among {count}; its rings were "
                                  f"{at_switch['fill']} % full",
                      "on the box: cepheus fabric-test --box, cepheusctl counters (drop_ingress_full, drop_egress_full, drop_kernel_full), "
                      "ethtool -G; a faster box, or lower rates at hosts", **found, **grown)
    elif at_switch["naks"] and drops:
        ladder.failed("nic-drops", f"a NIC has dropped packets: {drops}",
                      "ethtool -G and -a on both hosts: longer rings, or pause frames where the network has them", **found, **grown)
    elif at_switch["naks"]:
        gaps = matching(GAPS, grown["peer_counters"])
        ladder.failed("copies", f"of {count} copies some came late or not: {at_switch['naks']} NAKs, {gaps or 'no counter of the NIC'}",
                      "on the box: ethtool -S, one transmit queue or a pinned thread; on the way: drops of switch ports, no spraying",
                      **found, **grown)
    return bool(at_switch["lost"] or at_switch["naks"])


def burst(ladder, pair):
    """Rings, NICs and queues under 8 MiB at once."""
    took, grown = send_many(pair, BURST, 1)
    pair.burst_us = took
    if has_losses(ladder, grown, BURST // pair.mtu, {"took_us": took}):
        return
    wait = grown["queue_us"]
    queues = "" if wait is None else f", probes wait {wait} us longer"
    ladder.passed(f"{BURST >> 20} MiB in {took / 1000:.1f} ms: {BURST * 8 / took / 1000:.2f} Gb/s; the box's rings at most "
                  f"{grown['switch']['fill']} % full{queues}", took_us=took, **grown)


def copies(ladder, pair):
    """Some ten thousand copies: in order, and how many in a second."""
    messages = -(-COPIES * pair.mtu // BURST)
    took, grown = send_many(pair, BURST, messages)
    count = messages * BURST // pair.mtu
    rate = round(count * 1e6 / max(1, took))
    if not has_losses(ladder, grown, count, {"took_us": took, "copies_a_second": rate}):
        ladder.passed(f"{count} copies in order, {rate} a second", took_us=took, copies_a_second=rate, **grown)


def cnps(ladder, pair):
    """The switch answers 1,000 data packets with a CNP each."""
    def act():
        before = pair.order(peer.SEND_CNPS, CNPS)["done"]
        took = pair.send(BURST)
        return took, pair.order(peer.REPORT_ALONE)["done"] - before & 0xFFFF

    known = peer.counters(pair.dev, pair.helper)
    is_counted, shows_reaction = bool(matching(CNP_ARRIVED, known)), bool(matching(CNP_HANDLED, known))
    runs = [pair.watched(act) for _ in range(1 if shows_reaction else ATTEMPTS)]  # a clock alone may be wrong once
    (took, sent), grown = min(runs, key=lambda run: run[0][0])
    handled, arrived = (sum(matching(pattern, grown["counters"]).values()) for pattern in (CNP_HANDLED, CNP_ARRIVED))
    part = f"{pair.burst_us * 100 / took:.0f} % of the rate without"
    found = {"took_us": took, "plain_us": pair.burst_us, "cnps": sent, **grown}
    if handled or (not shows_reaction and took > SLOWER * pair.burst_us):
        return ladder.passed(f"{sent} CNPs slow the NIC down: {part}", **found)
    if not grown["switch"]["tos"] & ECN:
        return ladder.passed(f"{sent} CNPs do not slow the NIC down ({part}); its packets are not ECN-capable, so no queue marks them", **found)
    if is_counted and not arrived:
        return ladder.failed("cnp-lost", f"of {sent} CNPs none arrives", "let packets of RoCE with any opcode pass on the way", **found)
    return ladder.failed("cnp-ignored", f"the NIC ignores {sent} CNPs ({part}), though its packets are ECN-capable: queues mark them in vain",
                         "switch congestion control on, for mlx5: echo 1 > /sys/class/net/DEV/ecn/roce_rp/enable/PRIORITY; or send packets that "
                         "are not ECN-capable: a traffic class with 0 in its last two bits", **found)


def psns(ladder, pair):
    before = int(pair.helper.do("psns")[0])
    pair.send(SHORT)
    after = int(pair.helper.do("psns")[0])
    if before == after:
        return ladder.failed("frozen-psn", f"ibv_query_qp shows the same PSN before and after a message: {before}",
                             'leave source_change = "rebase" in the topology: "host-sync" can\'t work with this NIC')
    return ladder.passed("ibv_query_qp shows PSNs that move", moved=(after - before) & 0xFFFFFF)


def await_rnr_naks(pair, before):
    """Until the switch has seen enough of them, or the NIC has given up."""
    if pair.helper.is_emulated:  # its program is busy with the message, and can't ask
        time.sleep(RNR_SECONDS_EMULATED)
        return
    give_up = time.monotonic() + RNR_SECONDS
    while not select.select([pair.helper.process.stdout], [], [], RNR_US * 1e-6)[0] and time.monotonic() < give_up:
        if pair.order(peer.REPORT_ALONE)["rnrs"] - before & 0xFFFF >= RNR_NAKS:
            return


def rnr(ladder, pair):
    """The receive is posted late: the receiver's NIC answers RNR meanwhile."""
    before = pair.order(peer.REPORT_ALONE)["rnrs"]
    pair.helper.begin(f"send {PACKET} 1")
    await_rnr_naks(pair, before)
    try:
        pair.peer.do(f"receive {PACKET} 1")
        pair.helper.end()
    except UnusablePair as why:
        return ladder.failed("finite-rnr", f"the NIC gives up on a receiver that is not ready: {why}",
                             "its driver limits RNR retries although 7 means for ever: small broadcasts may fail with late receivers")
    pair.peer.do("wait 1 60")
    seen = pair.order(peer.REPORT_ALONE)["rnrs"] - before & 0xFFFF
    return ladder.passed(f"the NIC waits for a receiver that is not ready: {seen} RNR NAKs in a row", rnrs=seen)


def reset(ladder, pair):
    pair.end()
    try:
        pair.helper.do("reset")
    except UnusablePair as why:
        return ladder.failed("no-reset", f"a queue pair can't be used again: {why}",
                             'leave source_change = "rebase" in the topology: "host-sync" can\'t work with this NIC')
    return ladder.passed("a queue pair goes to RESET and to INIT")


STEPS = (queue_pair, data, source_change, time_out, nak, ack, burst, copies, cnps, psns, rnr, reset)


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
            except (UnusablePair, OSError, ValueError) as why:  # the report is delivered in any case
                return ladder.failed("work", f"it ends in an error: {why}", "on the box: cepheusctl counters, and a capture by --pcap DIR")
            if ladder.findings[-1]["cause"] in ("registration", "queue-pair"):
                return None
        return None
