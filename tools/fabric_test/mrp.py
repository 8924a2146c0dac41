"""Registration of one group of two hosts (wire/mrp.h), as much of it as a test needs."""

import hashlib
import hmac
import os
import socket
import struct
import time

VERSION, TAG_BYTES = 3, 20
HEADER = struct.Struct("!BBHHHHH4sI")
REGISTER, CONFIRM, REJECT, ACTIVATE, UNREGISTER, CONNECT = 1, 2, 3, 4, 5, 20
HOST_SYNC, LOSS_ENDS = 0x8000, 0x4000
MEMBER_FAILED = 7  # of REASONS
MEMBER = struct.Struct("!BBH4sII")  # flags and QPN are one word
PATH = struct.Struct("!BBHI")  # path MTU, window
MEMBER_TYPE, PATH_TYPE = 1, 0x85
REASONS = ("none", "table full", "no route to a member: is it listed and attached?", "group id in use", "malformed request", "not authorised",
           "queue pair unknown to its host", "member could not bring its queue pair up", "evicted", "another version", "too many members",
           "members are missing in the table: the switch has restarted", "too many groups of one host", "a trunk is down",
           "a write outside a member's regions", "another write mode than the switches have", "the switches serve no sender groups",
           "a packet is too long for a port on the way")
RESEND_SECONDS, TRIES = 0.3, 20


def datagram(kind, flags, epoch, number, group, instance, records, source, key):
    """A message's bytes, signed if the fabric has a key."""
    message = HEADER.pack(VERSION, kind, flags, epoch, number, 1, HEADER.size + len(records), socket.inet_aton(group), instance) + records
    if key is not None:
        message += hmac.new(key, socket.inet_aton(source) + message, hashlib.sha256).digest()[:TAG_BYTES]
    return message


def start_psn(group, epoch):
    """wire::group_start_psn: SplitMix64 of both, below 0xFF0000."""
    mask = (1 << 64) - 1
    z = ((int.from_bytes(socket.inet_aton(group), "big") << 16 | epoch) + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    z ^= z >> 31
    return (z >> 32) * 0xFF0000 >> 32


class Member:
    def __init__(self, address, qpn, port, token):
        self.address, self.qpn, self.port, self.token = address, qpn, port, token

    def emit(self):
        return MEMBER.pack(MEMBER_TYPE, MEMBER.size // 4, self.port, socket.inet_aton(self.address), self.qpn, self.token)


def records(data):
    """(type, bytes) of each record behind a header."""
    while len(data) >= 4 and (size := 4 * data[1]) > 0:
        yield data[0], data[:size]
        data = data[size:]


class Control:
    """A process's registration socket."""

    def __init__(self, make_socket, source, port, key):
        self.source, self.port, self.key = source, port, key
        self.socket = make_socket(source)

    def close(self):
        self.socket.close()

    @property
    def own_port(self):
        return self.socket.port

    def send(self, kind, flags, group, epoch, instance, members=(), mtu=None):
        """`mtu`: the path MTU in PATH; None: without PATH."""
        body = b"".join(member.emit() for member in members)
        if mtu is not None:
            body += PATH.pack(PATH_TYPE, PATH.size // 4, mtu, 0)
        message = datagram(kind, flags, group=group, epoch=epoch, number=0, instance=instance, records=body, source=self.source, key=self.key)
        self.socket.send(group, self.port, message)

    def receive(self, seconds):
        """(kind, flags, epoch, group, instance, addresses and tokens of its members, path MTU or 0) of the next message; None after the time."""
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0 and (found := self.socket.receive([self.socket], left)):
            data, _, port, _ = found
            if port != self.port or len(data) < HEADER.size or data[0] != VERSION:
                continue
            _, kind, flags, epoch, _, _, length, group, instance = HEADER.unpack_from(data)
            found = list(records(data[HEADER.size:length]))
            members = [(socket.inet_ntoa(one[4:8]), int.from_bytes(one[12:16], "big")) for type_, one in found
                       if type_ == MEMBER_TYPE and len(one) == MEMBER.size]
            mtu = next((PATH.unpack(one)[2] for type_, one in found if type_ == PATH_TYPE and len(one) == PATH.size), 0)
            return kind, flags, epoch, socket.inet_ntoa(group), instance, members, mtu
        return None


class Refused(Exception):
    """The group can't be set up; the text has the reason."""


class LeadGroup:
    """A group of this host and another one, led from here."""

    def __init__(self, control, pool, members):
        self.control, self.members = control, members
        self.group = ".".join(pool.split(".")[:2] + [str(byte) for byte in os.urandom(2)])
        self.epoch = int.from_bytes(os.urandom(2), "big")
        self.instance = int.from_bytes(os.urandom(4), "big")

    def _step(self, kind, flags, members=(), mtu=None):
        """Sends the message until the other member has confirmed it; the path MTU in that CONFIRM, 0 if there is none."""
        other = self.members[1].address
        for _ in range(TRIES):
            self.control.send(kind, flags, self.group, self.epoch, self.instance, members, mtu)
            until = time.monotonic() + RESEND_SECONDS
            while (left := until - time.monotonic()) > 0 and (found := self.control.receive(left)):
                if found[2:5] != (self.epoch, self.group, self.instance):
                    continue
                if found[0] == REJECT:
                    who = found[5][0][0] if found[5] else "the switch"
                    raise Refused(f"{REASONS[found[1]] if found[1] < len(REASONS) else found[1]} ({who})")
                if found[0] == CONFIRM and found[1] & ~HOST_SYNC == kind and any(address == other for address, _ in found[5]):
                    return found[6]
        raise Refused(f"{other} does not confirm")

    def register(self):
        """The least path MTU of the other member and of all ports on the way."""
        return self._step(REGISTER, LOSS_ENDS, self.members)

    def connect(self, mtu):
        """All queue pairs have this path MTU then, if this host's has it."""
        self._step(CONNECT, len(self.members) - 1, mtu=mtu)

    def activate(self):
        self._step(ACTIVATE, 1)

    def end(self):
        self._step(UNREGISTER, 0)


def answer_leader(control, member, own_mtu, connect, stopped):
    """Until `stopped` is set: confirms what the leader that knows the member's token sends.

    `own_mtu()` is the largest path MTU here. `connect(group, psn, mtu)` brings the queue pair up; False: it can't, and the leader learns that.
    """
    leader, connected = None, None
    while not stopped.is_set():
        found = control.receive(0.2)
        if found is None or found[0] not in (REGISTER, CONNECT, ACTIVATE, UNREGISTER):
            continue
        kind, flags, epoch, group, instance, members, mtu = found
        if kind == REGISTER and (member.address, member.token) in members:
            leader = (group, epoch, instance)
        if (group, epoch, instance) != leader:
            continue
        if kind == CONNECT and connected != leader:
            if not connect(group, start_psn(group, epoch), mtu):
                control.send(REJECT, MEMBER_FAILED, group, epoch, instance, [member])
                continue
            connected = leader
        answered = kind | (flags & HOST_SYNC if kind == REGISTER else 0)
        control.send(CONFIRM, answered, group, epoch, instance, [member], own_mtu() if kind == REGISTER else None)
