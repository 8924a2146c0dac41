#!/usr/bin/python3
"""The Soft-RoCE lab: a virtual machine with Debian's kernel, hosts with rdma_rxe devices, and cepheus-switch between
them. The guest sees the host's files, read-only under a file system in memory.

Without a COMMAND: a shell on the machine. Exit code: the command's; 124: it took too long; 125: the machine failed;
77: this machine can't run the lab, and the message has the reason.
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
    parser.add_argument("--build", default=PROJECT / "build/dev", type=pathlib.Path, help="build tree (default: %(default)s)")
    parser.add_argument("--cache", default=PROJECT / "build/lab", type=pathlib.Path, help="directory of the kernel's cache")
    parser.add_argument("--hosts", type=int, default=4, help="kernel hosts, 1 to 16 (default 4)")
    parser.add_argument("--no-switch", action="store_true", help="leave the start of cepheus-switch to the command")
    parser.add_argument("--seconds", type=float, help="time limit in seconds")
    parser.add_argument("--memory", type=int, default=1536, help="MiB (default %(default)s)")
    parser.add_argument("--nodes", type=int, default=1, choices=(1, 2, 4),
                        help="NUMA nodes; each but the first has a network interface (default 1)")
    parser.add_argument("--cores", type=int, default=2, choices=(1, 2, 4, 8), help="cores of each (default 2)")
    parser.add_argument("--systemd", action="store_true", help="run systemd in the guest, without this machine's own services")
    parser.add_argument("--accel", choices=("tcg", "kvm"), default="tcg",
                        help="tcg: emulation, works everywhere (default); kvm: faster, where stock kernels boot under it")
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
