"""PROBE and its answer (wire/probe.h)."""

import contextlib
import ctypes
import os
import socket
import struct
import time

import mrp
from sockets import IP_UDP, LARGEST

PROBE, PROBED = 18, 19
HEADER, RECORD = mrp.HEADER, struct.Struct("!BBHHHBBH6sHQHHBBHI")
ORDER = struct.Struct("!BBBBHHIIIIIIBBH")
REPORT = ("done", "repeat_us", "nak_us", "packets", "repeats", "naks", "lost", "fill", "tos", "rnrs")
SIZE = HEADER.size + RECORD.size
FROM_SWITCH = 1
UNTAGGED = 0xFFFF
# Bits of `doubts`.
ROCE_ON, MERGING, QUEUES = 1, 2, 4
SO_ATTACH_FILTER = 26  # Linux's number, which Python's socket module lacks
ETH_P_IP = 0x0800


class Answer:
    """What the switch saw of a probe, and what arrived here."""

    def __init__(self, payload, source, tos, seconds):
        _, _, self.flags, _, self.number, _, _, _, _ = HEADER.unpack_from(payload)
        (_, _, _, _, self.length, self.tos, self.ttl, self.tag, mac, self.source_port, self.time_us, self.port,
         self.most_bytes, self.doubts, self.cores, _, self.lost) = RECORD.unpack_from(payload, HEADER.size)
        self.mac = mac.hex(":")
        self.report = None
        if int.from_bytes(payload[10:12], "big") == SIZE + ORDER.size:
            self.report = dict(zip(REPORT, ORDER.unpack_from(payload, SIZE)[5:]))
        self.bytes, self.source, self.tos_back, self.seconds = len(payload) + IP_UDP, source, tos, seconds

    def as_json(self):
        return {**vars(self), "seconds": round(self.seconds, 6)}


class Sniffer:
    """Sees answers at the interface, before this host's filters. Needs CAP_NET_RAW."""

    def __init__(self, interface, from_port):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        code = [(0x28, 0, 0, 12), (0x15, 0, 5, ETH_P_IP), (0x30, 0, 0, 23), (0x15, 0, 3, 17), (0x28, 0, 0, 34),
                (0x15, 0, 1, from_port), (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0)]
        text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(code), ctypes.addressof(text)))
        self.socket.bind((interface, 0))
        self.socket.setblocking(False)

    def has_seen(self, number):
        """Whether an answer with this number has come in since the last call."""
        found = False
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, address = self.socket.recvfrom(LARGEST)
                payload = frame[42:]
                found |= (address[2] != socket.PACKET_OUTGOING and len(payload) >= SIZE and payload[1] == PROBED
                          and HEADER.unpack_from(payload)[4] == number)
        return found


class Prober:
    """Sends probes to a group's address and takes the answers."""

    TRIES = 3

    def __init__(self, make_socket, group, source, port, key, wait):
        self.group, self.source, self.port, self.key, self.wait = group, source, port, key, wait
        self.out, self.back = make_socket(source), make_socket(source)  # `back` never sends
        self.number = int.from_bytes(os.urandom(2), "big")

    def close(self):
        self.out.close()
        self.back.close()

    def datagram(self, length=0, answer=0, to_sender=False, flags=0, order=None, epoch=0, instance=0):
        """A new probe's UDP payload, of an IP packet of `length` bytes, and an answer of `answer`; 0: the least.

        `order`: (kind, number) for the leader of a group of that epoch and instance.
        """
        self.number = (self.number + 1) & 0xFFFF
        record = b"" if order is None else ORDER.pack(7, ORDER.size // 4, order[0], 0, order[1], *[0] * 10)
        reply_port = 0 if to_sender else self.back.port
        sight = RECORD.pack(6, RECORD.size // 4, reply_port, max(0, answer - IP_UDP), 0, 0, 0, 0, bytes(6), *[0] * 8)
        message = mrp.datagram(PROBE, flags, epoch, self.number, self.group, instance, sight + record, self.source, self.key)
        return message.ljust(length - IP_UDP, b"\0")

    def send(self, payload, tos=0, roce=False):
        if roce:
            return self.out.send_roce(self.group, payload, tos)
        return self.out.send(self.group, self.port, payload, tos)

    def receive(self, seconds):
        """The next answer within the time, or None."""
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0 and (found := self.out.receive([self.out, self.back], left)):
            payload, address, port, tos = found
            if port == self.port and len(payload) >= SIZE and payload[1] == PROBED:
                return Answer(payload, address, tos, time.monotonic())
        return None

    def request(self, tos=0, roce=False, tries=None, **options):
        """The answer to one probe, which is repeated; None if none comes. OSError if it can't be sent."""
        for _ in range(tries or self.TRIES):
            payload = self.datagram(**options)
            began = time.monotonic()
            self.send(payload, tos, roce)
            while (left := began + self.wait - time.monotonic()) > 0:
                answer = self.receive(left)
                if answer is not None and answer.number == self.number:
                    answer.seconds -= began
                    return answer
        return None
