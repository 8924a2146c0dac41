"""TCP ports of programs that tests start."""

import errno
import pathlib
import random
import socket


# Below the ports that the kernel gives to connections (net.ipv4.ip_local_port_range): between a
# program's question for a port and its use no connection of another program takes it.
PORTS = range(10_000, 32_768)


def free_port():
    """A TCP port for a program's own exchange of addresses."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
        return port


def is_listening(port):
    """Whether somebody listens there, without connecting: perftest's servers accept one client only."""
    lines = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines[1:])
