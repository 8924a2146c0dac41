#!/usr/bin/python3
"""The services, run by systemd in a virtual machine (guest_service.py). Exit code 77: this machine can't run one,
or has no systemd; the message has the reason."""

import sys

from lab_test import run_in_guest

if __name__ == "__main__":
    sys.exit(run_in_guest("guest_service.py", "--systemd", "--hosts", "2", seconds=600))
