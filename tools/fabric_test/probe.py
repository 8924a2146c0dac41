"""PROBE and its answer (wire/probe.h), by this host's UDP sockets."""

import contextlib
import ctypes
import hashlib
import hmac
import os
import select
import socket
import struct
import time
import zlib

VERSION, PROBE, PROBED = 2, 18, 19
HEADER, RECORD, DROP = struct.Struct("!BBHHHHH4sI"), struct.Struct("!BBHHHBBH6sHQHH"), struct.Struct("!BBBBHHII")
SIZE = HEADER.size + RECORD.size
TAG_BYTES = 20
FROM_SWITCH = 1
UNTAGGED = 0xFFFF
ROCE_PORT = 4791
IP_UDP = 28  # bytes of both headers
UD_SEND_ONLY, VIRTUAL_QPN, QKEY = 0x64, 1, 0x80010000
# Linux's numbers, which Python's socket module lacks.
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IP_RECVTOS, SO_ATTACH_FILTER = 10, 3, 13, 26
ETH_P_IP = 0x0800


class Answer:
    """What the switch saw of a probe, and what arrived here."""

    def __init__(self, payload, source, tos, seconds):
        _, _, self.flags, _, self.number, _, _, _, _ = HEADER.unpack_from(payload)
        (_, _, _, _, self.length, self.tos, self.ttl, self.tag, mac, self.source_port, self.time_us, self.port,
         self.most_bytes) = RECORD.unpack_from(payload, HEADER.size)
        self.mac = mac.hex(":")
        self.drop = None
        if int.from_bytes(payload[10:12], "big") == SIZE + DROP.size:
            self.drop = dict(zip(("drops", "repeat_us", "nak_us"), DROP.unpack_from(payload, SIZE)[5:]))
        self.bytes, self.source, self.tos_back, self.seconds = len(payload) + IP_UDP, source, tos, seconds

    def as_json(self):
        return {**vars(self), "seconds": round(self.seconds, 6)}


def icrc(packet):
    """Of a RoCEv2 packet from its IP header on: CRC-32 with ones in the fields that may change on the way (IBTA Annex A17)."""
    masked = bytearray(b"\xff" * 8 + packet)
    for at in (1, 8, 10, 11, 26, 27, 32):  # TOS, TTL, both checksums, the BTH's FECN and BECN
        masked[8 + at] = 0xFF
    return struct.pack("<I", zlib.crc32(masked))


def roce_datagram(payload, source, destination, source_port):
    """The UDP payload of an unreliable datagram of RoCE with this payload."""
    pad = -len(payload) % 4
    transport = struct.pack("!BBHII", UD_SEND_ONLY, 0x40 | pad << 4, 0xFFFF, VIRTUAL_QPN, 0) + struct.pack("!II", QKEY, VIRTUAL_QPN)
    body = transport + payload + bytes(pad)
    length = IP_UDP + len(body) + 4
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0x4000, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(destination))
    udp = struct.pack("!HHHH", source_port, ROCE_PORT, length - 20, 0)
    return body + icrc(ip + udp + body)


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
                frame, address = self.socket.recvfrom(1 << 16)
                payload = frame[42:]
                found |= (address[2] != socket.PACKET_OUTGOING and len(payload) >= SIZE and payload[1] == PROBED
                          and HEADER.unpack_from(payload)[4] == number)
        return found


class Prober:
    """Sends probes to a group's address and takes the answers."""

    TRIES = 3

    def __init__(self, group, source, port, key, wait):
        self.group, self.source, self.port, self.key, self.wait = group, source, port, key, wait
        self.out, self.back = self._socket(), self._socket()  # `back` never sends
        self.number = int.from_bytes(os.urandom(2), "big")

    def _socket(self):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)  # don't fragment, whatever was learnt before
        s.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        s.bind((self.source, 0))
        s.setblocking(False)
        return s

    def close(self):
        self.out.close()
        self.back.close()

    def datagram(self, length=0, answer=0, to_sender=False, flags=0, port=None, drop=None, epoch=0, instance=0):
        """A new probe's UDP payload, of an IP packet of `length` bytes, and an answer of `answer`; 0: the least.

        `drop`: (kind, number) for the leader of a group of that epoch and instance.
        """
        self.number = (self.number + 1) & 0xFFFF
        order = b"" if drop is None else DROP.pack(7, DROP.size // 4, drop[0], 0, drop[1], 0, 0, 0)
        header = HEADER.pack(VERSION, PROBE, flags, epoch, self.number, 1, SIZE + len(order), socket.inet_aton(self.group), instance)
        reply_port = 0 if to_sender else self.back.getsockname()[1]
        record = RECORD.pack(6, RECORD.size // 4, reply_port, max(0, answer - IP_UDP), 0, 0, 0, 0, bytes(6), 0, 0, 0, 0)
        message = header + record + order
        if self.key is not None:
            message += hmac.new(self.key, socket.inet_aton(self.source) + message, hashlib.sha256).digest()[:TAG_BYTES]
        if port == ROCE_PORT:
            return roce_datagram(message, self.source, self.group, self.out.getsockname()[1])
        return message.ljust(length - IP_UDP, b"\0")

    def send(self, payload, tos=0, port=None):
        self.out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        with contextlib.suppress(ConnectionRefusedError):  # about an earlier one
            self.out.sendto(payload, (self.group, port or self.port))

    def receive(self, seconds):
        """The next answer within the time, or None."""
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0:
            for s in select.select([self.out, self.back], [], [], left)[0]:
                with contextlib.suppress(OSError):
                    payload, extra, _, address = s.recvmsg(1 << 16, 64)
                    if address[1] == self.port and len(payload) >= SIZE and payload[1] == PROBED:
                        tos = next((data[0] for level, kind, data in extra if level == socket.IPPROTO_IP and kind == socket.IP_TOS), None)
                        return Answer(payload, address[0], tos, time.monotonic())
        return None

    def request(self, tos=0, port=None, tries=None, **options):
        """The answer to one probe, which is repeated; None if none comes. OSError if it can't be sent."""
        for _ in range(tries or self.TRIES):
            payload = self.datagram(port=port, **options)
            began = time.monotonic()
            self.send(payload, tos, port)
            while (left := began + self.wait - time.monotonic()) > 0:
                answer = self.receive(left)
                if answer is not None and answer.number == self.number:
                    answer.seconds -= began
                    return answer
        return None
