#!/usr/bin/python3
"""Examines the way from this host to the switch that serves groups, step by step, and names the likely cause of a failure."""

import argparse
import contextlib
import ipaddress
import json
import os
import pathlib
import re
import socket
import sys

import pair
import way
from probe import Prober, Sniffer
from steps import STEPS, Stop

PASSED, FAILED, USAGE_ERROR = 0, 1, 2
FORMAT = 1  # of the report
PEER_PORT = 18519


class Ladder:
    """Runs the steps and keeps their findings."""

    def __init__(self, options, show):
        self.group, self.mtu, self.tos, self.show = options.group, options.mtu, options.tos, show
        self.interface = options.interface or (options.device and way.interface_of(options.device))
        self.way = way.Way(options.group, options.source)
        self.device, self.peer = options.device, options.peer
        self.port, self.key, self.wait = options.port, options.key, options.wait
        self.prober = self.sniffer = self.first = None
        self.findings = []

    def run(self):
        with contextlib.ExitStack() as stack:
            if self.way.dev is not None:
                self.prober = Prober(self.group, self.way.source, self.port, self.key, self.wait)
                stack.callback(self.prober.close)
                with contextlib.suppress(OSError):  # without CAP_NET_RAW it can't look
                    self.sniffer = Sniffer(self.way.dev, self.port)
                    stack.callback(self.sniffer.socket.close)
            with contextlib.suppress(Stop):
                for step in STEPS:
                    self.name = step.__name__.replace("_", " ")
                    step(self)
                if self.peer:
                    pair.climb(self)
        return self.findings

    def has_seen(self):
        """Whether the answer to the last probe has reached the interface."""
        return self.sniffer is not None and self.sniffer.has_seen(self.prober.number)

    def passed(self, seen, **data):
        self._add({"name": self.name, "ok": True, "seen": seen, "cause": "", "todo": "", "data": data})

    def failed(self, cause, seen, todo, **data):
        self._add({"name": self.name, "ok": False, "seen": seen, "cause": cause, "todo": todo, "data": data})

    def _add(self, finding):
        self.findings.append(finding)
        self.show(finding)


def show(finding):
    word, colour = ("ok", 2) if finding["ok"] else ("failed", 1)
    text = f"{word:<8}"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        text = f"\033[3{colour}m{text}\033[0m"
    print(f"{text}{finding['name'] + ':':<16}{finding['seen']}", flush=True)
    if not finding["ok"]:
        print(f"{'':<24}-> {finding['todo']}", flush=True)


def group_address(text):
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no IPv4 address; give one such as 198.18.0.1") from None
    if address.is_multicast:
        raise argparse.ArgumentTypeError(f"{text} is of class D, which NICs treat as IP multicast; give an address such as 198.18.0.1")
    return text


def key_of(path):
    """The fabric's key, of a file with hexadecimal digits."""
    try:
        digits = re.sub(r"\s", "", pathlib.Path(path).read_text())
        return bytes.fromhex(digits)
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{path} has no key: {error}; openssl rand -hex 32 makes one") from None


class Parser(argparse.ArgumentParser):
    """Reports wrong usage in one line, as all tools do."""

    def error(self, message):
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\nRun '{self.prog} --help' for all options.\n")


def peer_address(text):
    host, _, port = text.partition(":")
    return host, int(port or PEER_PORT)


def number(text):
    return int(text, 0)


def main():
    parser = Parser(prog="cepheus fabric-test", description=__doc__,
                    epilog="It sends some hundred small packets and changes nothing. Exit status: 0 all steps passed, 1 one failed, 2 wrong usage.")
    parser.add_argument("--group", type=group_address, default="198.18.0.1", metavar="ADDRESS", help="any group's address (default: %(default)s)")
    parser.add_argument("--device", help="the RDMA device that shall serve; the route must leave by its interface")
    parser.add_argument("--interface", help="the same by the network interface's name")
    parser.add_argument("--source", metavar="ADDRESS", help="this host's address in the topology (default: as the route chooses)")
    parser.add_argument("--port", type=number, default=18516, help="registration port, mrp_port in the topology (default: %(default)s)")
    parser.add_argument("--mtu", type=number, default=4096, metavar="BYTES",
                        help="largest payload of groups' packets, mtu of [fabric] (default: %(default)s)")
    parser.add_argument("--tos", type=number, help="traffic class that groups' packets shall have, such as 106")
    parser.add_argument("--key-file", type=key_of, dest="key", metavar="FILE", default=os.environ.get("CEPHEUS_KEY_FILE"),
                        help="the fabric's key (default: $CEPHEUS_KEY_FILE, if set)")
    parser.add_argument("--peer", type=peer_address, metavar="HOST[:PORT]",
                        help="go on with queue pairs: make a group with this host, where `cepheus fabric-test --serve` runs")
    parser.add_argument("--serve", type=number, nargs="?", const=PEER_PORT, metavar="PORT",
                        help=f"be the peer of another host, at this TCP port (default: {PEER_PORT})")
    parser.add_argument("--wait", type=float, default=0.4, metavar="SECONDS", help="wait for an answer, of three tries (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the report to FILE, to send it back; -: to standard output, without other lines")
    pair.Helper.program, *arguments = sys.argv[1:]  # as `cepheus` starts this program
    options = parser.parse_args(arguments)
    if options.serve is not None:
        with contextlib.suppress(KeyboardInterrupt):
            pair.serve(options.serve, options.source, options.port, options.key, options.device, way.Way(options.group).dev, lambda line: print(line, flush=True))
        return PASSED
    quiet = options.json == "-"
    findings = Ladder(options, (lambda _: None) if quiet else show).run()
    good = all(finding["ok"] for finding in findings)
    report = {"format": FORMAT, "ok": good, "host": socket.gethostname(), "kernel": os.uname().release, "arguments": arguments,
              "steps": findings}
    if options.json:
        text = json.dumps(report, indent=2) + "\n"
        if quiet:
            sys.stdout.write(text)
        else:
            pathlib.Path(options.json).write_text(text)
    if not quiet:
        failed = sum(not finding["ok"] for finding in findings)
        print("the way to the switch is good" if good else f"{failed} of {len(findings)} steps failed")
    return PASSED if good else FAILED


if __name__ == "__main__":
    sys.exit(main())
