"""UDP sockets of this host: the kernel's, or those of an emulated NIC, which has no kernel interface."""

import select
import socket
import struct
import time
import zlib

ROCE_PORT = 4791
IP_UDP = 28  # bytes of both headers
UD_SEND_ONLY, VIRTUAL_QPN, QKEY = 0x64, 1, 0x80010000
# Linux's numbers, which Python's socket module lacks.
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IP_RECVTOS = 10, 3, 13
LARGEST = 1 << 16


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


class KernelSocket:
    """Don't fragment, whatever was learnt before."""

    def __init__(self, source):
        self.source = source
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)
        self.socket.setsockopt(socket.IPPROTO_IP, IP_RECVTOS, 1)
        self.socket.bind((source, 0))
        self.socket.setblocking(False)

    def close(self):
        self.socket.close()

    @property
    def port(self):
        return self.socket.getsockname()[1]

    def send(self, to, port, payload, tos=0):
        """OSError if this host can't send it."""
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        try:
            self.socket.sendto(payload, (to, port))
        except ConnectionRefusedError:  # about an earlier one
            self.socket.sendto(payload, (to, port))

    def send_roce(self, to, payload, tos=0):
        self.send(to, ROCE_PORT, roce_datagram(payload, self.source, to, self.port), tos)

    @staticmethod
    def receive(sockets, seconds):
        """(payload, sender's address, its port, TOS or None) of the next datagram at any of them, or None."""
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0:
            for one in select.select([each.socket for each in sockets], [], [], left)[0]:
                try:
                    payload, extra, _, address = one.recvmsg(LARGEST, 64)
                except OSError:  # about an earlier one
                    continue
                tos = next((data[0] for level, kind, data in extra if level == socket.IPPROTO_IP and kind == socket.IP_TOS), None)
                return payload, *address, tos
        return None


class EmulatedSocket:
    """Of the emulated NIC that a Helper has opened."""

    POLL_MS = 20

    def __init__(self, helper):
        self.helper, self.queue, self.numbers = helper, [], {}
        self.port = None
        self._number(0)

    def close(self):
        """The NIC closes it with the helper."""

    def _number(self, tos):
        """Each TOS has a socket: the NIC fixes it at the socket's birth."""
        if tos not in self.numbers:
            number, port = map(int, self.helper.do(f"socket {tos}"))
            self.numbers[tos] = number
            self.helper.sockets[number] = self
            self.port = self.port or port
        return self.numbers[tos]

    def send(self, to, port, payload, tos=0):
        self.helper.do(f"put {self._number(tos)} {to} {port} {payload.hex()}")

    def send_roce(self, to, payload, tos=0):
        self.helper.do(f"datagram {to} {tos} {payload.hex()}")

    @staticmethod
    def receive(sockets, seconds):
        give_up = time.monotonic() + seconds
        helper = sockets[0].helper
        while True:
            for one in sockets:
                if one.queue:
                    return one.queue.pop(0)
            left = give_up - time.monotonic()
            if left <= 0:
                return None
            words = helper.do(f"take {min(EmulatedSocket.POLL_MS, int(left * 1000) + 1)}")
            if words:
                number, address, port, payload = words
                helper.sockets[int(number)].queue.append((bytes.fromhex(payload), address, int(port), None))
