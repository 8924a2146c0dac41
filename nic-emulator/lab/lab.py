#!/usr/bin/python3
"""Start the Soft-RoCE lab: a virtual machine with Debian's kernel, hosts with rdma_rxe devices, and cepheus-switch between them.
This machine's files are visible there, read-only under a file system in memory.

Run COMMAND there (default: a shell). Exit code: the command's; 124: it took too long; 125: the machine failed; 77: this machine
can't run a lab, and the message names the reason.
"""

import argparse
import pathlib
import shutil
import sys

import initramfs
from kernel import Kernel, Unavailable
from machine import PACKAGES, QEMU, Machine

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
SYSTEMD = pathlib.Path("/lib/systemd/systemd")
SKIPPED = 77


def prepare(cache, systemd):
    """The kernel, with its first file system made. Raises Unavailable."""
    if systemd and not SYSTEMD.exists():
        raise Unavailable("systemd is missing; as root: apt-get install --no-install-recommends systemd")
    if shutil.which(QEMU) is None or not pathlib.Path(initramfs.BUSYBOX).exists():
        raise Unavailable(f"QEMU or busybox is missing; as root: apt-get install --no-install-recommends {PACKAGES}")
    kernel = Kernel.cached(cache)
    kernel.initramfs.write_bytes(initramfs.build(kernel.modules, (HERE / "init").read_bytes()))
    return kernel


def main():
    parser = argparse.ArgumentParser(prog="./run lab", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=PROJECT / "build/dev", type=pathlib.Path, help="use this build tree (default: %(default)s)")
    parser.add_argument("--cache", default=PROJECT / "build/lab", type=pathlib.Path, help="keep the kernel in this directory (default: %(default)s)")
    parser.add_argument("--hosts", type=int, default=4, metavar="N", help="make N kernel hosts, 1 to 16 (default: 4)")
    parser.add_argument("--no-switch", action="store_true", help="do not start cepheus-switch; the command starts it")
    parser.add_argument("--seconds", type=float, help="end the machine after this many seconds (default: never)")
    parser.add_argument("--memory", type=int, default=1536, metavar="MIB", help="give the machine this memory in MiB (default: %(default)s)")
    parser.add_argument("--nodes", type=int, default=1, choices=(1, 2, 4),
                        help="make this many NUMA nodes; each but the first has a network interface (default: 1)")
    parser.add_argument("--cores", type=int, default=2, choices=(1, 2, 4, 8), help="give each node this many cores (default: 2)")
    parser.add_argument("--systemd", action="store_true", help="run systemd there, without this machine's own services")
    parser.add_argument("--accel", choices=("tcg", "kvm"), default="tcg",
                        help="emulate by tcg, which works everywhere (default), or by kvm, which is faster")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")
    options = parser.parse_args()
    if not 1 <= options.hosts <= 16:
        parser.error(f"--hosts {options.hosts}: give 1 to 16")
    if options.memory % options.nodes:
        parser.error(f"--memory {options.memory}: can't be divided among {options.nodes} nodes")
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    try:
        kernel = prepare(options.cache, options.systemd)
    except Unavailable as reason:
        print(f"lab: skipped: {reason}", file=sys.stderr)
        return SKIPPED
    machine = Machine(kernel, PROJECT, options.build.resolve(), options.hosts, not options.no_switch, options.memory, options.nodes,
                      options.cores, options.accel, options.systemd)
    return machine.run(command, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
