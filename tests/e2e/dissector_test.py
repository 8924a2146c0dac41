#!/usr/bin/python3
"""The dissector's fields of a live fabric's packets, captured by its switches, compared with the packets' bytes."""

import collections
import os
import pathlib
import socket
import sys
import tempfile
import time
import unittest

from harness import BUILD, CHECK, REQUIRE, EndToEnd, over_fabric, star
from live import TIME_LIMIT, LiveRun

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/wireshark"))
import tshark  # noqa: E402

SEND_OPCODES, ACKNOWLEDGE = range(6), 0x11
DATA, ACK, NAK, RNR_NAK = 1, 2, 3, 4
FROM_HOST, BETWEEN, TO_HOST = 1, 2, 3
REGISTER, CONFIRM, ACTIVATE, UNREGISTER, REPORT, EVICT, HELLO, CONNECT = 1, 2, 4, 5, 8, 9, 13, 20
ROCE_PORT = 4791
KEY = "000102030405060708090a0b0c0d0e0f\n"

Roce = collections.namedtuple("Roce", "source destination opcode qpn psn syndrome")


def roce(frame):
    """The fields that bridging changes, or None if it is something else."""
    if frame[12:14] != b"\x08\0" or frame[23] != 17 or int.from_bytes(frame[36:38], "big") != ROCE_PORT:
        return None
    bth = frame[42:]
    return Roce(frame[26:30], frame[30:34], bth[0], int.from_bytes(bth[5:8], "big"), int.from_bytes(bth[9:12], "big"), bth[12])


def is_group(address):
    return address[0] == 198 and address[1] in (18, 19)


class OfAGroup(EndToEnd):
    """The dissected fields equal the bytes, in every packet of every port."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="cepheus-dissector-")
        cls.directory = pathlib.Path(cls.scratch.name)
        topology = "[link]\nloss = 0.02\n[[switch]]\nname = \"s0\"\n[[switch]]\nname = \"s1\"\n"
        topology += '[[trunk]]\nbetween = ["s0", "s1"]\n'
        for i in range(4):
            topology += f'[[host]]\nname = "h{i}"\naddress = "10.0.0.{i + 1}"\nswitch = "s{i % 2}"\n'
        # On a trunk, packets of reductions look like those between a host and its switch.
        mca = {**REQUIRE, "coll_cepheus_collectives": "bcast"}
        cls.run_ = over_fabric(CHECK, "--count", 20, "--max", 100_000, topology=topology, mca=mca, options=("--pcap", cls.directory))

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def setUp(self):
        self.assert_ok(self.run_)
        self.assert_lost(self.run_)

    def port(self, name):
        """(bytes, dissected fields) of each of a port's frames of groups."""
        path = self.directory / f"{name}.pcap"
        frames, packets = tshark.read_capture(path), tshark.dissect(path)
        self.assertEqual(len(frames), len(packets))
        found = [(roce(frame), packet) for frame, packet in zip(frames, packets)]
        return [(r, p) for r, p in found if r is not None and (is_group(r.source) or is_group(r.destination))]

    def check_port(self, name, is_trunk):
        seen = collections.Counter()
        for sent, packet in self.port(name):
            to_group = is_group(sent.destination)
            peer = socket.inet_ntoa(sent.source if to_group else sent.destination)
            kind = DATA if sent.opcode in SEND_OPCODES else {0: ACK, 1: RNR_NAK, 3: NAK}[sent.syndrome >> 5]
            way = BETWEEN if is_trunk else FROM_HOST if to_group else TO_HOST
            self.assertEqual((packet.number("group.kind"), packet.number("group.way")), (kind, way), sent)
            self.assertEqual(packet.one("group.id"), socket.inet_ntoa(sent.destination if to_group else sent.source))
            self.assertEqual(packet.one("group.host"), None if is_trunk else peer)
            self.assertEqual(packet.number("group.epoch"), 1)
            if is_trunk:
                self.assertEqual((packet.one("group.turn.source"), packet.number("group.turn.base"), packet.number("group.turn.packet")),
                                 (peer, sent.qpn, (sent.psn - sent.qpn) % 2**24))
            self.check_feedback(sent, kind, way, peer, packet)
            seen[kind, way] += 1
        return seen

    def check_feedback(self, sent, kind, way, peer, packet):
        self.assertEqual(packet.number("group.has"), sent.psn if kind == ACK else None)
        self.assertEqual(packet.number("group.asks_for"), sent.psn if kind in (NAK, RNR_NAK) else None)
        self.assertEqual(packet.number("group.nak_code"), 0 if kind == NAK else None)
        source = {FROM_HOST: peer, BETWEEN: "all behind this trunk", TO_HOST: "the whole group"}[way]
        self.assertEqual(packet.one("group.who"), None if kind == DATA else source)

    def test_ports_of_hosts(self):
        seen = sum((self.check_port(f"h{i}", False) for i in range(4)), collections.Counter())
        for kind in (DATA, ACK, NAK):
            for way in (FROM_HOST, TO_HOST):
                self.assertGreater(seen[kind, way], 0, (kind, way))

    def test_trunks(self):
        seen = self.check_port("s0-s1", True) + self.check_port("s1-s0", True)
        for kind in (DATA, ACK, NAK):
            self.assertGreater(seen[kind, BETWEEN], 0, kind)
        hellos = tshark.dissect(self.directory / "s0-s1.pcap", "-Y", f"cepheus.mrp.type == {HELLO}")
        self.assertIn(1, [p.number("mrp.hears") for p in hellos])

    def test_psns_from_the_groups_first_begin_at_0(self):
        first = {}
        for sent, packet in self.port("h0") + self.port("h1"):
            if packet.number("group.kind") == DATA:
                first.setdefault(packet.one("group.id"), packet.number("group.from_start"))
        self.assertEqual(set(first.values()), {0})

    def test_names_the_members_of_each_registration(self):
        packets = tshark.dissect(self.directory / "h0.pcap", "-Y", f"cepheus.mrp.type == {REGISTER} && ip.src == 10.0.0.1")
        first = {p.one("mrp.mcst_id"): p for p in reversed(packets)}  # repeats name the members without an answer
        self.assertGreater(len(first), 0)
        for packet in first.values():
            self.assertEqual(sorted(packet.values["mrp.member.host"]), [f"10.0.0.{i}" for i in range(1, 5)])
            self.assertIsNone(packet.one("mrp.signature"))


class Signed(EndToEnd):
    def test_registration_shows_its_signature(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-dissector-") as scratch:
            key = pathlib.Path(scratch) / "key"
            key.touch(mode=0o600)
            key.write_text(KEY)
            os.environ["CEPHEUS_KEY_FILE"] = str(key)
            self.addCleanup(os.environ.pop, "CEPHEUS_KEY_FILE")
            run = over_fabric(CHECK, "--count", 4, topology=star(3, fabric=f'key_file = "{key}"'), hosts=3, mca=REQUIRE,
                              options=("--pcap", scratch))
            self.assert_ok(run)
            packets = tshark.dissect(pathlib.Path(scratch) / "h0.pcap", "-Y", "cepheus_mrp")
            self.assertTrue({REGISTER, CONFIRM, CONNECT, ACTIVATE, UNREGISTER} <= {p.number("mrp.type") for p in packets})
            for packet in packets:
                self.assertEqual(len(packet.one("mrp.signature").split(":")), 20)


class OfADeath(unittest.TestCase):
    def test_shows_the_lagging_member_and_the_end_of_its_group(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-dissector-") as scratch:
            # Slow links keep the capture short.
            topology = pathlib.Path(scratch) / "fabric.toml"
            topology.write_text(star(3, link='delay = "1ms"'))
            fabric = ("--topology", topology, "--pcap", scratch)
            with LiveRun("--count", 4, "--max", 1000, "--root", 0, hosts=3, mca=REQUIRE, fabric=fabric) as run:
                run.switch.set_links(["h2"], loss=1)  # its port stays up: it is silent
                give_up = time.monotonic() + TIME_LIMIT
                while run.switch.status()["switches"][0]["counters"].get("mrp_unregister", 0) == 0 and time.monotonic() < give_up:
                    pass
            packets = tshark.dissect(pathlib.Path(scratch) / "h0.pcap", "-Y", "cepheus_mrp")
        reports = [p for p in packets if p.number("mrp.type") == REPORT]
        # The source is named, too: not all members have its turn.
        shown = [one for p in reports for one in zip(p.values["mrp.member.host"], p.values["mrp.member.owes"])]
        self.assertTrue({("10.0.0.3", "1"), ("10.0.0.3", "True")} & set(shown), shown)  # as Wireshark 4.0, and as 4.4 writes it
        self.assertTrue([p for p in packets if p.number("mrp.type") == UNREGISTER], "the group did not end")
        self.assertFalse([p for p in packets if p.number("mrp.type") == EVICT], "groups of MPI evict no member")


if __name__ == "__main__":
    if not (BUILD / "bin/cepheus-run").exists():
        sys.exit(f"{BUILD} is not a build tree")
    tshark.need()
    unittest.main()
