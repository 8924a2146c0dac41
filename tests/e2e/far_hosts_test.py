#!/usr/bin/python3
"""MPI_Bcast over hosts with delays that differ by up to 2 ms and one lossy link: no group ends.

The farther hosts' NAKs of a lost packet arrive long after the nearest one's NAK has caused the repeat. With --count
and --hosts a longer run, with each link as the losing one in turn:

  far_hosts_test.py --hosts 8,12,16 --count 2000
"""

import argparse
import sys
import unittest

from harness import CHECK, REQUIRE, EndToEnd, over_fabric

SPREAD_US = 2000


def far_hosts(hosts, losing, loss):
    text = "[[switch]]\nname = \"s0\"\n"
    for i in range(hosts):
        delay = SPREAD_US * i // (hosts - 1) // 2  # there and back
        lost = f", loss = {loss}" if i == losing else ""
        text += f"[[host]]\nname = \"h{i}\"\naddress = \"10.0.0.{i + 1}\"\nlink = {{ delay = \"{delay}us\"{lost} }}\n"
    return text


def broadcast(hosts, losing, count, root, largest=8192, timeout=280):
    return over_fabric(CHECK, "--count", count, "--max", largest, "--root", root, topology=far_hosts(hosts, losing, 0.05),
                       mca=REQUIRE, timeout=timeout)


class FarHosts(EndToEnd):
    def check(self, hosts, losing, root):
        run = broadcast(hosts, losing, 150, root)
        self.assert_ok(run)
        port = run.port(f"h{losing}")
        self.assertGreater(port["out"]["dropped_loss"] + port["in"]["dropped_loss"], 10,
                           "the link lost nothing: the test tested nothing")

    def test_the_sources_link_loses(self):
        self.check(10, 0, "0")

    def test_the_farthest_hosts_link_loses_and_roots_rotate(self):
        self.check(8, 7, "rotate")


def at_length(hosts, count):
    """Each link of each fabric in turn; prints failures. Exit code."""
    failed = 0
    for n in hosts:
        for losing in range(n):
            for root in ("0", "rotate"):
                run = broadcast(n, losing, count // (2 * n) + 1, root, timeout=1200)
                failed += run.code != 0
                print(f"{n} hosts, link of h{losing} loses, root {root}: {run.out.strip() if run.code == 0 else run.everything()}",
                      flush=True)
    return failed != 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--hosts")
    parser.add_argument("--count", type=int, default=2000)
    arguments, rest = parser.parse_known_args()
    if arguments.hosts:
        sys.exit(at_length([int(n) for n in arguments.hosts.split(",")], arguments.count))
    unittest.main(argv=sys.argv[:1] + rest)
