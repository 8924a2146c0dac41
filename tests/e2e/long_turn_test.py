#!/usr/bin/python3
"""One root broadcasts more packets than switches can compare PSNs, then the other ranks broadcast, on a leaf-spine fabric.

As a test: a short turn; `LongTurns` in switch-emulator/engine/registration/claim_test.cc has long ones, with most packets left out.
As a command: long_turn_test.py --packets 9000000, with each method of changing the source.
"""

import argparse
import sys
import time
import unittest

from harness import PROGRAMS, REQUIRE, EndToEnd, over_fabric

METHODS = ("rebase", "host-sync")
MTU = 256
HOSTS_A_LEAF = 2
LEAVES, SPINES = 2, 2


def leaf_spine(method):
    """A topology file; its switches use that method of changing the source."""
    text = f"[fabric]\nmtu = {MTU}\n"
    leaves = [f"leaf{i}" for i in range(LEAVES)]
    spines = [f"spine{i}" for i in range(SPINES)]
    for name in leaves + spines:
        text += f'[[switch]]\nname = "{name}"\nsource_change = "{method}"\n'
    for i in range(LEAVES * HOSTS_A_LEAF):
        text += f'[[host]]\nname = "h{i}"\naddress = "10.0.0.{i + 1}"\nswitch = "{leaves[i // HOSTS_A_LEAF]}"\n'
    for leaf in leaves:
        for spine in spines:
            text += f'[[trunk]]\nbetween = ["{leaf}", "{spine}"]\n'
    return text


def long_turn(method, packets, message, timeout):
    return over_fabric(PROGRAMS / "long_turn_check", "--packets", packets, "--mtu", MTU, "--message", message,
                       topology=leaf_spine(method), mca=REQUIRE, timeout=timeout)


class LongTurn(EndToEnd):
    def test_the_other_ranks_follow_by_either_method(self):
        for method in METHODS:
            with self.subTest(method):
                run = long_turn(method, 100_000, 4 << 20, 120)
                self.assert_ok(run)
                self.assertGreaterEqual(run.port("h0")["rx_payload_bytes"], 100_000 * MTU)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=9_000_000, metavar="N", help="send N packets in the first root's turn (default: 9000000)")
    parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS", help="limit each method to this time (default: 1800)")
    options = parser.parse_args()
    failed = False
    for method in METHODS:
        begin = time.monotonic()
        try:
            run = long_turn(method, options.packets, 16 << 20, options.timeout)
        except AssertionError as error:  # it did not end in time
            failed = True
            print(f"{method}: {error}", flush=True)
            continue
        failed = failed or run.code != 0
        output = run.out.strip() if run.code == 0 else run.everything()
        print(f"{method}: {options.packets} packets, then a turn of each rank, {time.monotonic() - begin:.0f} s: {output}", flush=True)
    return int(failed)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in ("--packets", "--timeout", "--help"):
        sys.exit(main())
    unittest.main()
