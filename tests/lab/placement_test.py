#!/usr/bin/python3
"""cepheus-switch's threads on a machine with cores enough: two NUMA nodes of four, a network interface at the second
(guest_placement.py). Exit code 77: there can be no such machine here, and the message says why."""

import sys

from lab_test import run_in_guest

if __name__ == "__main__":
    sys.exit(run_in_guest("guest_placement.py", "--nodes", "2", "--cores", "4", "--hosts", "1", seconds=300))
