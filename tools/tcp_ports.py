"""TCP ports of programs that tests start."""

import pathlib
import socket


def free_port():
    """A TCP port for a program's own exchange of addresses."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_listening(port):
    """Whether somebody listens there, without connecting: perftest's servers accept one client only."""
    lines = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines[1:])
