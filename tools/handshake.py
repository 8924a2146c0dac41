"""Messages between a fabric and its clients (switch-emulator/ports/handshake.h), for tests that play one of the two."""

import struct

HEAD = struct.Struct("=IHH")  # magic, version, and a kind or a status
MAGIC, VERSION = 0x43455048, 3
ATTACH, HOSTS_WANTED = 0, 2
GRANTED, TAKEN, AGAIN = 0, 3, 5


def attach_request(host):
    return HEAD.pack(MAGIC, VERSION, ATTACH) + struct.pack("=Q64s", 0, host)


def status_of(welcome):
    return HEAD.unpack_from(welcome)[2]


def hosts_wanted(message):
    """(number, names) that a launcher requests."""
    assert HEAD.unpack_from(message) == (MAGIC, VERSION, HOSTS_WANTED), message
    return struct.unpack_from("=Q", message, HEAD.size)[0], message[HEAD.size + 8:].decode()


def hosts_reserved(names, reservation=0xABC):
    return HEAD.pack(MAGIC, VERSION, GRANTED) + struct.pack("=Q", reservation) + names.encode()


def refusal(text):
    return HEAD.pack(MAGIC, VERSION, TAKEN) + struct.pack("=256s", text.encode()) + bytes(120)
