#!/usr/bin/python3
"""The lab's fabric as a topology file: kernel hosts on interfaces, as many emulated hosts beside them."""

import argparse
import sys


def lab_topology(hosts, soft=None, source_change="rebase", link="", switch="", trunk=None):
    """h0.. at 10.0.0.1.. on interfaces p0.., m0.. at 10.0.0.101.. over shared memory; one switch. With `trunk`, a link, m0.. are
    at a second switch behind it."""
    names = ["s0"] if trunk is None else ["s0", "s1"]
    lines = ["[fabric]", "mtu = 4096", "[link]", link]
    for name in names:
        lines += ["[[switch]]", f'name = "{name}"', f'source_change = "{source_change}"', switch]
    if trunk is not None:
        lines += ["[[trunk]]", 'between = ["s0", "s1"]', f"link = {{ {trunk} }}"]
    for i in range(hosts):
        lines += ["[[host]]", f'name = "h{i}"', 'switch = "s0"', f'address = "10.0.0.{i + 1}"', f'interface = "p{i}"']
    for i in range(hosts if soft is None else soft):
        lines += ["[[host]]", f'name = "m{i}"', f'switch = "{names[-1]}"', f'address = "10.0.0.{i + 101}"']
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=4, help="kernel hosts; as many emulated hosts are added")
    parser.add_argument("--source-change", choices=("rebase", "host-sync"), default="rebase")
    options = parser.parse_args()
    sys.stdout.write(lab_topology(options.hosts, source_change=options.source_change))
    return 0


if __name__ == "__main__":
    sys.exit(main())
