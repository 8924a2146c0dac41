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

import box
import pair
import way
from helper import SOFT_DEVICE, Helper, UnusablePair
from peer import Service
from probe import Prober, Sniffer
from sockets import KernelSocket
from steps import STEPS, Stop

PASSED, FAILED, USAGE_ERROR = 0, 1, 2
FORMAT = 1  # of the report
PEER_PORT = 18519
LONGEST_SECONDS = 600  # from the start of a peer to its use, beside a debugger or on a busy machine


class Ladder:
    """Runs the steps and keeps their findings."""

    def __init__(self, options, show):
        self.group, self.mtu, self.tos, self.show = options.group, options.mtu, options.tos, show
        self.interface = options.interface or (options.device and way.interface_of(options.device))
        self.helper = None  # an emulated NIC's
        self.way = None
        self.source, self.device, self.peer = options.source, options.device, options.peer
        self.port, self.key, self.wait = options.port, options.key, options.wait
        self.prober = self.sniffer = self.first = None
        self.findings = []

    def run(self):
        with contextlib.ExitStack() as stack:
            if self.device == SOFT_DEVICE:
                self.name = "identity"
                try:
                    self.begin_emulated(stack)
                except UnusablePair as why:
                    self.failed("no-nic", f"the emulated NIC does not open: {why}", "cepheus-run --hosts 2 -- cepheus fabric-test; cepheus doctor")
                    return self.findings
            else:
                self.begin(stack)
            with contextlib.suppress(Stop):
                try:
                    for step in STEPS:
                        self.name = step.__name__.replace("_", " ")
                        step(self)
                except UnusablePair as why:
                    self.failed("work", f"the emulated NIC fails: {why}", "cepheus doctor; is the fabric still there?")
                    return self.findings
                if self.peer:
                    pair.climb(self)
        return self.findings

    def begin(self, stack):
        self.way = way.Way(self.group, self.source)
        if self.way.dev is None:
            return
        self.prober = Prober(KernelSocket, self.group, self.way.source, self.port, self.key, self.wait)
        stack.callback(self.prober.close)
        with contextlib.suppress(OSError):  # without CAP_NET_RAW it can't look
            self.sniffer = Sniffer(self.way.dev, self.port)
            stack.callback(self.sniffer.socket.close)

    def begin_emulated(self, stack):
        self.helper = Helper(self.device)
        stack.callback(self.helper.close)
        self.way = way.EmulatedWay(self.group, self.helper)
        self.mtu = min(self.mtu, self.helper.mtu)
        self.prober = Prober(self.helper.socket, self.group, self.helper.address, self.port, self.key, self.wait)

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


def rank(environ):
    """This process's number among the hosts of cepheus-run, and the number of them; None: it is not one."""
    for own, all_ in (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")):
        if own in environ and all_ in environ and environ.get("CEPHEUS_FABRIC"):
            return int(environ[own]), int(environ[all_])
    return None


def among_ranks(options, place):
    """Host 0 of an emulated fabric examines its way, with host 1 as its peer; others end at once. True: this host examines."""
    own, count = place
    name = f"\0cepheus-fabric-test{os.environ['CEPHEUS_FABRIC']}"
    options.device = SOFT_DEVICE
    if own == 0:
        options.peer = name if count > 1 else None
        return True
    if own == 1:
        with socket.socket(socket.AF_UNIX) as server, contextlib.suppress(TimeoutError):
            server.bind(name)
            server.listen()
            server.settimeout(LONGEST_SECONDS)
            service_of(options, server, None).serve_one()
    return False


def service_of(options, server, dev):
    return Service(server, options.source, options.port, options.key, options.device, dev, options.tos)


def serve(options):
    with socket.create_server(("", options.serve)) as server, contextlib.suppress(KeyboardInterrupt):
        print(f"serving peers at port {server.getsockname()[1]}", flush=True)
        service = service_of(options, server, way.Way(options.group, options.source).dev)
        while True:
            service.serve_one()


def report_of(findings, arguments):
    return {"format": FORMAT, "ok": all(finding["ok"] for finding in findings), "host": socket.gethostname(), "kernel": os.uname().release,
            "arguments": arguments, "steps": findings}


def deliver(report, path, quiet, good):
    """Prints the outcome and writes the report; the exit code."""
    if path:
        text = json.dumps(report, indent=2) + "\n"
        if quiet:
            sys.stdout.write(text)
        else:
            pathlib.Path(path).write_text(text)
    if not quiet:
        failed = sum(not finding["ok"] for finding in report["steps"])
        print(good if report["ok"] else f"{failed} of {len(report['steps'])} steps failed")
    return PASSED if report["ok"] else FAILED


def parser_of():
    parser = Parser(prog="cepheus fabric-test", description=__doc__,
                    epilog="It sends some hundred packets, with --peer also 60 to 170 MiB, and changes no setting. On an emulated fabric: "
                           "cepheus-run --hosts 2 -- cepheus fabric-test. Exit status: 0 all steps passed, 1 one failed, 2 wrong usage.")
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
    parser.add_argument("--box", metavar="TOPOLOGY", nargs="?", const="/etc/cepheus/fabric.toml",
                        help="examine this machine as the box that serves the topology file, as cepheus-switch --check does (default: %(const)s)")
    return parser


def main():
    Helper.program, box.SWITCH, *arguments = sys.argv[1:]  # as `cepheus` starts this program
    options = parser_of().parse_args(arguments)
    quiet = options.json == "-"
    report = (lambda _: None) if quiet else show
    if options.box is not None:
        findings = box.examine(options.box, report)
        return deliver(report_of(findings, arguments), options.json, quiet, "this machine can be a box")
    if options.serve is not None:
        serve(options)
        return PASSED
    place = None if options.source or options.interface or options.peer else rank(os.environ)
    if place is not None and not among_ranks(options, place):
        return PASSED
    findings = Ladder(options, report).run()
    return deliver(report_of(findings, arguments), options.json, quiet, "the way to the switch is good")


if __name__ == "__main__":
    sys.exit(main())
