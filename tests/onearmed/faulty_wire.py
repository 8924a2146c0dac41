#!/usr/bin/python3
"""A network between a host and the box that has one fault: forwards frames between two interfaces. For fabric_test_test.py.

usage: faulty_wire.py FAULT HOST_INTERFACE BOX_INTERFACE        prints "ready" when it forwards
"""

import select
import socket
import struct
import sys

ETH_P_ALL, IPV4, ARP = 3, 0x0800, 0x0806
SOL_PACKET, AUXDATA = 263, 8
SO_RCVBUFFORCE, IGNORE_OUTGOING = 33, 23
MRP, ROCE = 18516, 4791
PROBE, PROBED = 18, 19
HOLD_SECONDS = 0.3


class Frame:
    """Of the fields that faults look at, those that it has."""

    def __init__(self, data):
        self.data = bytearray(data)
        self.ether_type = struct.unpack_from("!H", data, 12)[0]
        self.is_udp = self.ether_type == IPV4 and len(data) >= 42 and data[23] == 17
        self.source = data[26:30] if self.ether_type == IPV4 else b""
        self.ports = struct.unpack_from("!HH", data, 34) if self.is_udp else (0, 0)
        self.is_probe = self.is_udp and self.ports[1] == MRP and data[43] == PROBE
        self.is_answer = self.is_udp and self.ports[0] == MRP and data[43] == PROBED

    def rewrite_tos(self, keep):
        """TOS bits but those are cleared."""
        self.data[15] &= keep
        self.data[24:26] = b"\0\0"
        total = sum(struct.unpack_from("!10H", self.data, 14))
        total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into("!H", self.data, 24, ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)


class Fault:
    """Nothing is wrong: `to_box` and `to_host` return the frames that go on instead of a frame."""

    def to_box(self, frame):
        return [frame]

    def to_host(self, frame):
        return [frame]

    def flush(self):
        """Frames towards the box that were held, after a while of silence."""
        return []


class NoArp(Fault):
    def to_box(self, frame):
        return [] if frame.ether_type == ARP else [frame]

    to_host = to_box


class FilterNewPorts(Fault):
    """Keeps state: only ports that have sent receive."""

    def __init__(self):
        self.known = set()

    def to_box(self, frame):
        self.known.add(frame.ports[0])
        return [frame]

    def to_host(self, frame):
        return [] if frame.is_udp and frame.ports[1] not in self.known else [frame]


class FilterSources(Fault):
    def to_host(self, frame):
        return [] if frame.source[:2] == bytes([10, 255]) else [frame]


class NoRoce(Fault):
    """As a NIC with RoCE on, or a filter."""

    def to_box(self, frame):
        return [] if frame.ports[1] == ROCE else [frame]


class SmallTowardsBox(Fault):
    MTU = 1500

    def to_box(self, frame):
        return [] if len(frame.data) > self.MTU + 14 else [frame]


class SmallTowardsHost(Fault):
    to_host = SmallTowardsBox.to_box
    MTU = 3000


class Bleach(Fault):
    KEEP = 0x03

    def to_box(self, frame):
        if frame.ether_type == IPV4:
            frame.rewrite_tos(self.KEEP)
        return [frame]


class BleachBack(Fault):
    KEEP = 0x03
    to_host = Bleach.to_box


class EraseEcn(Bleach):
    KEEP = 0xFC


class Tag(Fault):
    """Priority 3 of VLAN 5. ARP goes on: kernels would not take it with the tag."""

    def to_box(self, frame):
        if frame.ether_type == IPV4:
            frame.data[12:12] = struct.pack("!HH", 0x8100, 3 << 13 | 5)
        return [frame]


class Reorder(Fault):
    """Every eighth probe waits for the next one."""

    def __init__(self):
        self.count, self.held = 0, []

    def to_box(self, frame):
        out, self.held = [frame, *self.held], []
        self.count += frame.is_probe
        if frame.is_probe and self.count % 8 == 0:
            self.held, out = [frame], out[1:]
        return out

    def flush(self):
        out, self.held = self.held, []
        return out


class Lossy(Fault):
    """Every tenth probe, as a ring that is too short for a burst; never two that follow each other."""

    def __init__(self):
        self.count = 0

    def to_box(self, frame):
        self.count += frame.is_probe
        return [] if frame.is_probe and self.count % 10 == 0 else [frame]


class Twice(Fault):
    def to_host(self, frame):
        return [frame, frame]


FAULTS = {"none": Fault, "no-arp": NoArp, "filter-new-ports": FilterNewPorts, "filter-sources": FilterSources, "no-roce": NoRoce,
          "small-towards-box": SmallTowardsBox, "small-towards-host": SmallTowardsHost, "bleach": Bleach, "bleach-back": BleachBack,
          "erase-ecn": EraseEcn, "tag": Tag, "reorder": Reorder, "lossy": Lossy, "twice": Twice}


def open_interface(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
    s.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    s.bind((name, 0))
    return s


def complete_checksum(frame, ancillary):
    """Of a packet whose UDP checksum the kernel left to hardware."""
    status = next((struct.unpack_from("I", data)[0] for _, kind, data in ancillary if kind == AUXDATA), 0)
    if status & 8 and frame[12:14] == b"\x08\x00" and frame[23] == 17:
        frame[40:42] = b"\0\0"  # none: RFC 768 allows it
    return frame


def main():
    fault = FAULTS[sys.argv[1]]()
    host, box = map(open_interface, sys.argv[2:4])
    for s in (host, box):
        s.setsockopt(SOL_PACKET, AUXDATA, 1)
    print("ready", flush=True)
    while True:
        ready = select.select([host, box], [], [], HOLD_SECONDS)[0]
        for frame in fault.flush() if not ready else []:
            box.send(frame.data)
        for s in ready:
            data, ancillary, _, _ = s.recvmsg(1 << 16, 128)
            frame = Frame(complete_checksum(bytearray(data), ancillary))
            onward, other = (fault.to_box, box) if s is host else (fault.to_host, host)
            for one in onward(frame):
                other.send(one.data)


if __name__ == "__main__":
    main()
