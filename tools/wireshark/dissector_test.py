#!/usr/bin/python3
"""The dissector of registration: every field of every type against wire/, and malformed packets.

usage: dissector_test.py MRP_PACKETS [-v]        (MRP_PACKETS: the program that prints datagrams and their fields)
"""

import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

import tshark

WRITER = sys.argv.pop(1)
MCST = bytes([198, 18, 0, 7])
REJECT, UNREGISTER, GIVE_UP, CONFIRM, REPORT, HELLO, PUBLISH = 3, 5, 10, 2, 8, 13, 14
EPOCH = 3


def header(type_=1, length=20, version=3, flags=0, epoch=EPOCH):
    return bytes([version, type_]) + b"".join(n.to_bytes(2, "big") for n in (flags, epoch, 0, 1, length)) + MCST + bytes([0, 0, 0, 9])


def datagram(*records, **fields):
    behind = b"".join(records)
    return header(length=20 + len(behind), **fields) + behind


def member(size_in_words=4):
    return bytes([1, size_in_words]) + bytes.fromhex("4e20 0a000002 04 000777 deadbeef")


class Dissector(unittest.TestCase):
    def setUp(self):
        self.capture = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-dissector-"))) / "made.pcap"

    def dissect(self, datagrams, preferences=(), **frame):
        tshark.write_capture(self.capture, [tshark.udp_frame(one, **frame) for one in datagrams])
        return tshark.dissect(self.capture, preferences=preferences)


class Probes(Dissector):
    def test_shows_an_answer_and_its_padding_is_no_error(self):
        sight = bytes.fromhex("060a 1092 0200 041c 68 3f 6005 020000000009 0309 00000000000f4240 4854 0000 0008 0000 00000000")
        order = bytes.fromhex("0709 0100 0000 0001 00010598 ffffffff 00000011 00000001 00000002 00000003 466a0014")
        packet, = self.dissect([datagram(sight, order, type_=19) + bytes(100)])
        found = {name: packet.number(f"mrp.{name}") for name in ("type", "probe.reply_port", "probe.length", "probe.ttl", "probe.tag",
                                                              "probe.time", "probe.destination_port", "probe.cores",
                                                              "order.kind", "order.repeat", "order.naks", "order.fill", "order.rnr_naks")}
        self.assertEqual(found, {"type": 19, "probe.reply_port": 4242, "probe.length": 1052, "probe.ttl": 63, "probe.tag": 0x6005,
                                 "probe.time": 1000000, "probe.destination_port": 18516, "probe.cores": 8,
                                 "order.kind": 1, "order.repeat": 66968, "order.naks": 2, "order.fill": 70, "order.rnr_naks": 20})
        self.assertEqual([name for name in packet.values if "bad" in name], [])


class Registration(Dissector):
    def setUp(self):
        super().setUp()
        printed = subprocess.run([WRITER], text=True, capture_output=True, check=True, timeout=60).stdout
        self.ours = [json.loads(line) for line in printed.splitlines()]
        self.packets = self.dissect([bytes.fromhex(one["hex"]) for one in self.ours])
        self.assertEqual(len(self.packets), len(self.ours))

    def test_every_field_is_what_it_was_made_of(self):
        for one, packet in zip(self.ours, self.packets):
            with self.subTest(one["type_name"], flags=one["flags"], length=one["length"]):
                self.check_header(one, packet)
                if one["type"] == HELLO:
                    self.assertEqual(packet.values["mrp.unreachable"], one["unreachable"])
                    self.assertEqual(packet.number("mrp.hears"), one["hears"])
                else:
                    self.check_members(one, packet)
                self.assertEqual([name for name in packet.values if "bad" in name or "must" in name or "short" in name], [])

    def check_header(self, one, packet):
        for name in ("type", "flags", "epoch", "seq", "total", "length", "instance"):
            self.assertEqual(packet.number("mrp." + name), one[name], name)
        self.assertEqual(packet.number("mrp.version"), 3)
        self.assertEqual(packet.one("mrp.mcst_id"), one["mcst_id"])
        self.assertEqual((packet.one("mrp.signature") or "").replace(":", ""), one["signature"])
        self.assertEqual(packet.number("mrp.start_psn"), None if one["type"] == HELLO else one["start_psn"])

    def check_members(self, one, packet):
        is_report = one["type"] == REPORT
        columns = [list(map(tshark.number, packet.values["mrp.member." + name]))
                   for name in ("heard" if is_report else "qpn", "control_port", "flags", "token")]
        self.assertEqual(list(map(list, zip(packet.values["mrp.member.host"], *columns))), one["members"])
        if is_report:
            for name, bit in (("down", 1), ("source", 2), ("owes", 4), ("late", 8)):
                self.assertEqual([tshark.number(v) != 0 for v in packet.values["mrp.member." + name]],
                                 [m[3] & bit != 0 for m in one["members"]], name)
        regions = one.get("regions", [])
        columns = [list(map(tshark.number, packet.values["mrp.region." + name])) for name in ("number", "va", "length", "rkey")]
        self.assertEqual(list(map(list, zip(*columns))), regions)
        paths = one.get("paths", [])
        columns = [list(map(tshark.number, packet.values["mrp.path." + name])) for name in ("mtu", "window")]
        self.assertEqual(list(map(list, zip(*columns))), paths)
        reductions = one.get("reductions", [])
        columns = [list(map(tshark.number, packet.values["mrp.reduction." + name])) for name in ("kind", "ascends", "unit", "window")]
        self.assertEqual(list(map(list, zip(*columns))), reductions)
        trees = one.get("trees", [])
        columns = [packet.values["mrp.tree." + name] for name in ("lowest", "highest")]
        columns = [list(map(tshark.number, packet.values["mrp.tree." + name])) for name in ("height", "flags")] + columns
        columns.append(list(map(tshark.number, packet.values["mrp.tree.members"])))
        self.assertEqual(list(map(list, zip(*columns))), trees)
        words = ["4"] * len(one["members"]) + ["7"] * len(regions) + ["2"] * len(reductions) + ["4"] * len(trees) + ["2"] * len(paths)
        self.assertEqual(packet.values["mrp.words"], words)

    def test_names_are_those_of_wire(self):
        types, reasons = set(), set()
        for one, packet in zip(self.ours, self.packets):
            name = one["type_name"].upper().replace(" ", "_")
            self.assertIn(f": {name} ({one['type']})", packet.text("mrp.type"))
            types.add(one["type"])
            if one["type"] in (REJECT, UNREGISTER, GIVE_UP) and one["flags"] < 0x8000:
                known = one["reason"] != "unknown reason"
                self.assertIn(f"{one['reason'] if known else 'Unknown'} ({one['flags']})", packet.text("mrp.reason"))
                reasons.add(one["flags"])
            if one["type"] == CONFIRM:
                self.assertEqual(packet.number("mrp.answers"), one["flags"] & 0x7FFF)
        self.assertEqual(types, set(range(1, PUBLISH + 1)))
        self.assertGreater(len(reasons), 13)


class Records(Dissector):
    def test_a_region_of_a_member(self):
        region = bytes.fromhex("0207 0003 0a000002 00007f0000001000 0000000100000000 cafe0001")
        packet = self.dissect([datagram(region)])[0]
        self.assertEqual({name: packet.one("mrp.region." + name) for name in ("number", "host", "va", "length", "rkey")},
                         {"number": "3", "host": "10.0.0.2", "va": "0x00007f0000001000", "length": "4294967296", "rkey": "0xcafe0001"})

    def test_unknown_ones_are_skipped_if_they_may_be(self):
        packet = self.dissect([datagram(bytes.fromhex("8902 0000 12345678"), member())])[0]
        self.assertEqual(packet.one("mrp.unknown"), "12:34:56:78")
        self.assertEqual(packet.one("mrp.member.host"), "10.0.0.2")
        self.assertNotIn("mrp.must_know", packet.values)
        packet = self.dissect([datagram(bytes.fromhex("0a02 0000 12345678"))])[0]
        self.assertIn("mrp.must_know", packet.values)

    def test_a_script_beside_an_installed_one_is_no_error(self):
        self.dissect([datagram(member())])
        again = tshark.run(self.capture, "-X", f"lua_script:{tshark.script_for_all()}", "-Y", "cepheus_mrp")
        self.assertEqual(len(again.splitlines()), 1)

    def test_another_port_is_a_preference(self):
        dissected = self.dissect([datagram(member())], preferences=["cepheus_mrp.port:4000"], port=4000)[0]
        self.assertEqual(dissected.one("mrp.member.host"), "10.0.0.2")


def contribution(operation, type_, unit, values, qpn=1, **addresses):
    """SEND Only with Immediate, as RoCEv2: of a host to its group, unless there are others' addresses."""
    bth = bytes([5, 0, 0xFF, 0xFF]) + qpn.to_bytes(4, "big") + unit.to_bytes(4, "big")
    immediate = bytes([operation << 4 | type_, EPOCH]) + unit.to_bytes(2, "big")
    return tshark.udp_frame(bth + immediate + values + bytes(4), port=4791, **addresses)


class Reductions(Dissector):
    REGISTER, RECORD = 1, bytes.fromhex("0802 0200 1000 0040")

    def packets_after(self, *records, made, epoch=EPOCH):
        register = tshark.udp_frame(datagram(*records, type_=self.REGISTER, epoch=epoch))
        tshark.write_capture(self.capture, [register, *made])
        return tshark.dissect(self.capture)[1:]

    def test_show_operation_type_and_unit(self):
        made = [contribution(9, 7, 5, bytes(8)), contribution(0, 0, 6, b""), contribution(11, 10, 7, bytes(4))]
        packets = self.packets_after(self.RECORD, made=made)
        found = [[p.number("group.reduction." + name) for name in ("operation", "type", "unit")] for p in packets]
        self.assertEqual(found, [[9, 7, 5], [0, 0, 6], [11, 10, 7]])

    def test_go_both_ways_between_switches_by_their_epoch(self):
        for epoch in (1, EPOCH, 0x11):  # 1: each group's first; 0x11: a member's QPN
            made = [contribution(9, 7, 5, bytes(8), qpn, source=source, destination=destination) for qpn, source, destination in (
                (1, (10, 0, 0, 1), MCST), (1, (10, 0, 0, 2), MCST), (epoch, (10, 0, 255, 1), MCST), (epoch, MCST, (10, 0, 255, 1)),
                (0x11, MCST, (10, 0, 0, 1)), (0x11, MCST, (10, 0, 0, 2)))]
            packets = self.packets_after(member(), self.RECORD, made=made, epoch=epoch)
            self.assertEqual([p.number("group.way") for p in packets], [1, 1, 2, 2, 3, 3], epoch)
            self.assertEqual([p.number("group.reduction.unit") for p in packets], [5] * len(made))

    def test_names_are_those_of_arithmetic(self):
        header = pathlib.Path(__file__).resolve().parents[2] / "arithmetic/operation.h"
        names = re.findall(r'"([a-z0-9 ]+)"', header.read_text(encoding="utf-8").partition("#include")[2])
        operations, types = names[:11], names[11:]
        packets = self.packets_after(self.RECORD, made=[contribution(i, i, i, bytes(8)) for i in range(len(operations))])
        self.assertEqual([p.text("group.reduction.operation") for p in packets], [f"Operation: {name} ({i})" for i, name in enumerate(operations)])
        self.assertEqual([p.text("group.reduction.type") for p in packets[:-1]],
                         [f"Type of the values: {name} ({i})" for i, name in enumerate(types)])

    def test_are_those_of_groups_that_reduce(self):
        packet, = self.packets_after(made=[contribution(9, 7, 5, bytes(8))])
        self.assertEqual(packet.number("group.kind"), 1)
        self.assertIsNone(packet.one("group.reduction.operation"))


class Malformed(Dissector):
    def test_reports_mistakes(self):
        for text, data, expert in [("too short", header()[:19], "short"), ("stated length is more than there is", header(length=24), "short"),
                                   ("stated length is less than a header", header(length=19), "short"),
                                   ("another version", header(version=2), "bad_version"), ("no such type", header(type_=21), "bad_type"),
                                   ("record without a length", datagram(bytes(4)), "bad_record"),
                                   ("record beyond the end", datagram(member(5)), "bad_record"),
                                   ("half a word", datagram(b"\1\4"), "bad_record"),
                                   ("a member of another size", datagram(bytes([1, 3]) + bytes(10)), "bad_record"),
                                   ("a tail that is no signature", header() + bytes(19), "bad_tail")]:
            with self.subTest(text):
                self.assertIn("mrp." + expert, self.dissect([data])[0].values)

    def test_every_shorter_datagram_is_looked_at(self):
        whole = datagram(member(), bytes.fromhex("0302 0000 0aff0001"))
        packets = self.dissect([whole[:size] for size in range(1, len(whole))])
        self.assertEqual([p.values["mrp.short"] != [] for p in packets], [True] * (len(whole) - 1))

    def test_nothing_breaks_it(self):
        """3000 datagrams with bytes changed, cut or added; tshark's run() fails on errors in the script."""
        chance = random.Random(7)
        base = [datagram(member(), member(), type_=t) for t in range(21)] + [datagram(bytes.fromhex("0207 0003") + bytes(24)),
                                                                          datagram(bytes.fromhex("0302 0000 0aff0001"), type_=HELLO)]
        made = []
        for _ in range(3000):
            data = bytearray(chance.choice(base))
            for _ in range(chance.randint(1, 8)):
                data[chance.randrange(len(data))] = chance.choice((0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            made.append(bytes(data[:chance.randint(0, len(data))]) if chance.random() < 0.3 else bytes(data) + bytes(chance.randint(0, 30)))
        packets = self.dissect(made)
        self.assertEqual(len(packets), len(made))
        self.assertEqual(sum("cepheus_mrp" in p.protocols for p in packets), sum(len(m) > 0 for m in made))


if __name__ == "__main__":
    tshark.need()
    unittest.main()
