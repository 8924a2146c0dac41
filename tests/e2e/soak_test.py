#!/usr/bin/python3
"""Broadcasts for long: the resources of processes and switch must not grow.

As a test: some seconds. As a command: soak_test.py --count 1000000 [--seconds S] [--interval S], a line per interval.
"""

import argparse
import subprocess
import sys
import unittest

from harness import BUILD, PROGRAMS, REQUIRE, mca_arguments
from live import Lines, Switch, private_kib

COLUMNS = ("seconds", "broadcasts", "private_kib", "shared_kib", "descriptors", "registered_bytes", "switch_kib", "switch_groups")
# Without shared memory: the fabric's payload slots have a fixed size, and become resident at their first use.
WATCHED = tuple(name for name in COLUMNS[2:] if name != "shared_kib")
# Allowance for pages that are first used late. A leak of 8 bytes in each of the last third's 8000 broadcasts exceeds it.
TOLERATED = {"private_kib": 62, "switch_kib": 16}


def soak(count, seconds, interval, hosts=4, show=lambda line: None):
    """(exit code, output, samples): a sample has COLUMNS."""
    samples = []
    with Switch("--hosts", hosts) as switch:
        command = [str(BUILD / "bin/cepheus-run"), "--fabric", switch.socket, "--", *mca_arguments(REQUIRE),
                   str(PROGRAMS / "soak_check"), "--count", str(count), "--seconds", str(seconds), "--interval", str(interval)]
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        errors = Lines(process.stderr)
        rest = []
        show(" ".join(f"{name:>16}" for name in COLUMNS))
        for line in process.stdout:
            if not line.startswith("held "):
                rest.append(line)
                continue
            status = switch.status()
            groups = sum(len(each["groups"]) for each in status["switches"])
            samples.append(dict(zip(COLUMNS, [*map(int, line.split()[1:]), private_kib(switch.pid), groups])))
            show(" ".join(f"{samples[-1][name]:>16}" for name in COLUMNS))
        code = process.wait()
        process.stdout.close()
        errors.thread.join(10)
        process.stderr.close()
    return code, "".join(rest) + errors.text(), samples


def growth(samples):
    """Resources with a larger minimum in the last third of the samples than in the middle third, as lines; the first third warms up.

    The minimum, because a communicator that was just freed still has its groups: MPI_Comm_free does not wait for all ranks.
    """
    third = len(samples) // 3
    lines = []
    for name in WATCHED:
        before, after = (min(s[name] for s in part) for part in (samples[third:2 * third], samples[2 * third:]))
        if after > before + TOLERATED.get(name, 0):
            lines.append(f"{name} grew from {before} to {after}")
    return lines


class Soak(unittest.TestCase):
    def test_nothing_grows(self):
        code, text, samples = soak(count=24000, seconds=120, interval=0)
        self.assertEqual(code, 0, text)
        self.assertIn("ok:", text)
        self.assertGreater(len(samples), 8, text)
        self.assertEqual(growth(samples), [], samples)
        self.assertGreater(samples[-1]["registered_bytes"], 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--interval", type=float, default=10)
    parser.add_argument("--hosts", type=int, default=4)
    options = parser.parse_args()
    code, text, samples = soak(options.count, options.seconds, options.interval, options.hosts, lambda line: print(line, flush=True))
    print(text.strip())
    if len(samples) < 6:
        print(f"{len(samples)} samples show no growth; 6 need more broadcasts (--count) or more often a sample (--interval)", file=sys.stderr)
        return 1
    grown = growth(samples)
    print("\n".join(grown) or "nothing grew after the first third")
    return code or bool(grown)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("--"):
        sys.exit(main())
    unittest.main()
