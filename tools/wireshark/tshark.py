"""Makes captures, and dissects them by tshark with cepheus.lua."""

import atexit
import collections
import functools
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

SCRIPT = pathlib.Path(__file__).resolve().parent / "cepheus.lua"
NANOSECOND_MAGIC = 0xA1B23C4D
ETHERNET = 1
REGISTRATION_PORT = 18516
SCRIPT_ERROR = re.compile(r"Lua Error|_ws\.lua\.error|\.lua:\d+:")


def need():
    """Skips the test if tshark is missing."""
    if shutil.which("tshark") is None:
        print("SKIPPED: tshark is missing; install it to test the dissector")
        sys.exit(77)


def udp_frame(payload, source=(10, 0, 0, 1), destination=(198, 18, 0, 7), port=REGISTRATION_PORT, from_port=40000):
    udp = struct.pack(">HHHH", from_port, port, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes(source), bytes(destination))
    return bytes.fromhex("02ce0a00000202ce0a0000010800") + ip + udp


def write_capture(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", NANOSECOND_MAGIC, 2, 4, 0, 0, 1 << 18, ETHERNET))
        for number, frame in enumerate(frames):
            file.write(struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame)


def read_capture(path):
    """The frames of a capture that cepheus-switch wrote."""
    data = pathlib.Path(path).read_bytes()
    frames, at = [], 24
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


@functools.cache
def script_for_all():
    """The script where every user can read it."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="cepheus-dissector-"))
    atexit.register(shutil.rmtree, directory)
    directory.chmod(0o755)
    copy = pathlib.Path(shutil.copy(SCRIPT, directory))
    copy.chmod(0o644)
    return copy


def run(capture, *arguments, preferences=()):
    """tshark's output; it must end well and must not speak of errors in the script."""
    options = [word for preference in preferences for word in ("-o", preference)]
    # Wireshark 4.4 runs no scripts for root.
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
    with open(capture, "rb") as packets:
        done = subprocess.run(["tshark", "-n", "-X", f"lua_script:{script_for_all()}", *options, "-r", "-", *arguments], text=True, stdin=packets,
                              capture_output=True, timeout=120, env=environment, cwd="/", **user)
    errors = [line for line in (done.stdout + done.stderr).splitlines() if SCRIPT_ERROR.search(line)]
    if done.returncode != 0 or errors:
        raise AssertionError(f"tshark: exit {done.returncode}\n{done.stderr}\n" + "\n".join(errors[:20]))
    return done.stdout


class Packet:
    """tshark's result for one packet: all values of each of our fields, in order, as numbers, texts of fields, and experts."""

    def __init__(self, element):
        self.values, self.shown, self.protocols = collections.defaultdict(list), collections.defaultdict(list), []
        for proto in element.iter("proto"):
            self.protocols.append(proto.get("name"))
        for field in element.iter("field"):
            name = field.get("name")
            if name.startswith("cepheus."):
                self.values[name.removeprefix("cepheus.")].append(field.get("show"))
                self.shown[name.removeprefix("cepheus.")].append(field.get("showname"))

    def one(self, name):
        """The only value of a field, None without one."""
        assert len(self.values[name]) < 2, (name, self.values[name])
        return self.values[name][0] if self.values[name] else None

    def number(self, name):
        return None if self.one(name) is None else number(self.one(name))

    def text(self, name):
        """How a field's number is called: "2 (CONFIRM)" of a field with names."""
        return self.shown[name][0]


def number(text):
    return {"True": 1, "False": 0}.get(text) if text in ("True", "False") else int(text, 0)


def dissect(capture, *arguments, **options):
    """A Packet for each of the capture's, or of those that a display filter (-Y) lets through."""
    xml_text = run(capture, "-T", "pdml", *arguments, **options)
    return [Packet(one) for one in xml.etree.ElementTree.fromstring(xml_text).iter("packet")]
