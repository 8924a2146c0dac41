#!/usr/bin/python3
"""The services, run by systemd in a virtual machine (guest_service.py). Exit code 77: there can be no such machine here,
or no systemd, and the message says why."""

import sys

from lab_test import run_in_guest

if __name__ == "__main__":
    sys.exit(run_in_guest("guest_service.py", "--systemd", "--hosts", "2", seconds=600))
