#!/usr/bin/python3
"""The stack over the kernel's Soft-RoCE, in a virtual machine (guest_checks.py). Exit code 77: this
machine can't run one, and the message has the reason."""

import os
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent


def run_in_guest(checks, *options, seconds):
    """A script of this directory on a machine with these options of ./run lab; its exit code."""
    command = ["/usr/bin/python3", PROJECT / "nic-emulator/lab/lab.py", "--build", os.environ["CEPHEUS_BUILD"],
               "--cache", os.environ["CEPHEUS_LAB_CACHE"], "--no-switch", "--seconds", str(seconds), *options,
               "/usr/bin/python3", f"tests/lab/{checks}"]
    return subprocess.run(command, cwd=PROJECT).returncode


if __name__ == "__main__":
    sys.exit(run_in_guest("guest_checks.py", seconds=2200))
