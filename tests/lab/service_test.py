#!/usr/bin/python3
"""The services, run by systemd in a virtual machine (guest_service.py). Exit code 77: there can be no such machine here,
or no systemd, and the message says why."""

import pathlib
import sys

from lab_test import run_in_guest

if __name__ == "__main__":
    if not pathlib.Path("/lib/systemd/systemd").exists():
        print("SKIPPED: systemd is missing; install systemd to run the services", file=sys.stderr)
        sys.exit(77)
    sys.exit(run_in_guest("guest_service.py", "--systemd", "--hosts", "2", seconds=600))
