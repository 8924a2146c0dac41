#!/usr/bin/python3
"""N communicators of 4 hosts, which all broadcast and reduce and stay alive together: prints what they take.

usage: many_communicators.py [N]      (default: 1000)
"""

import pathlib
import re
import sys
import tempfile

from harness import PROGRAMS, REQUIRE, star
from live import LiveRun

HOSTS = 4
# The default serves some 380 of them, and the 384th says which parameter to raise.
MEMORY = {**REQUIRE, "coll_cepheus_max_eager_memory": "256M"}
# A communicator has groups for small and large broadcasts and for reductions.
LIMITS = "max_groups = {groups}\nmax_groups_per_host = {groups}\nregister_rate = 100000\nreduction_memory = \"{memory}MiB\""


class Communicators(LiveRun):
    CHECK = PROGRAMS / "communicators_check"


def measure(count):
    """The numbers while all are alive, and the program's exit code."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as topology:
        topology.write(star(HOSTS, switch=LIMITS.format(groups=4 * count, memory=4 * count)))
        topology.flush()
        with Communicators("--alive", count, "--reduce", 1, fabric=("--topology", topology.name), mca=MEMORY) as run:
            if not run.out.wait_for("memory", HOSTS):
                raise RuntimeError(run.everything())
            (switch,) = run.switch.status()["switches"]
            resident = [line for line in pathlib.Path(f"/proc/{run.switch.pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
            groups = switch["groups"]
            numbers = {
                "KiB of each rank": [int(kib) for _, kib in sorted(re.findall(r"memory (\d+) (-?\d+)", run.out.text()))],
                "McstIDs": len(groups),
                "of them for reductions": sum(1 for group in groups if group["reduction"]),
                "queue pairs of all ranks": sum(1 for group in groups for path in group["paths"] if path["is_host"]),
                "bytes of tables": sum(group.get("table_bytes", 0) for group in groups),
                "bytes beside tables": sum(group.get("beside_bytes", 0) for group in groups),
                "KiB of the switch's process": int(resident[0].split()[1]),
            }
            return numbers, run.finish(), run.everything()


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    numbers, code, text = measure(count)
    print(f"{count} communicators of {HOSTS} hosts, in mode require")
    for name, value in numbers.items():
        print(f"  {name:<30} {value}")
    if code != 0:
        sys.exit(f"exit {code}\n{text}")


if __name__ == "__main__":
    main()
