#!/usr/bin/python3
"""Trunks of a fat-tree fail in the middle of broadcasts or reductions: data is right, the job continues, and multicast returns by another path.

As a test: a few random moments of each fault. As a command, to look for trouble:

    trunk_fault_test.py --moments 20 [--seed S] [--case NAME] [--within SECONDS] [--mpi mpich] [--workload reductions]

--within: time limit for the return of multicast (2 s; the test allows more, since machines are busy).
"""

import random
import sys
import time
import unittest

from live_fault_test import MEGA, FaultyRun, Trouble, check, command_line, run_case, wait, workload

RANKS = 16


class FatTreeRun(FaultyRun):
    def __init__(self, rng):
        super().__init__(rng, workload().mixed, hosts=RANKS, fabric=("--shape", "fat-tree:4"))

    def trunks_in_use(self):
        """Trunks in the trees of rank 0's groups: (switch below, switch above)."""
        used = set()
        switches = self.switch.status()["switches"]
        groups = {group["id"] for group in switches[0]["groups"]}  # behind a cut trunk tables stay for a while
        for switch in switches:
            for group in switch["groups"]:
                if group["id"] not in groups:
                    continue
                used |= {(switch["name"], path["name"]) for path in group["paths"] if not path["is_host"]}
        rank = ("edge", "agg", "core")
        return sorted((a, b) for a, b in used if rank.index(a.rstrip("0123456789")) < rank.index(b.rstrip("0123456789")))

    def trunks_of(self, switch):
        """Trunks of one switch, by name."""
        ports = next(s for s in self.switch.status()["switches"] if s["name"] == switch)["ports"]
        return [f"{switch}-{port['name']}" for port in ports if port["kind"] == "switch"]


def is_back(run, before, since, within):
    """Waits until multicast serves again; returns the seconds."""
    wait(run, workload().given_up)
    wait(run, workload().served, before + 1)
    took = time.monotonic() - since
    if within and took > within:
        raise Trouble(f"multicast was interrupted for {took:.2f} s\n{run.everything()}")
    run.wait_for_payload(MEGA)
    return took


def fail_trunks(rng, within, choose, **change):
    with FatTreeRun(rng) as run:
        run.wait_for_payload(rng.randrange(min(16 * MEGA, RANKS * workload().largest)))
        failing = choose(run, rng)
        before = run.err.count(workload().served)
        since = time.monotonic()
        run.switch.set_links(failing, **change)
        took = is_back(run, before, since, within)
        if any(f"{a}-{b}" in failing or f"{b}-{a}" in failing for a, b in run.trunks_in_use()):
            raise Trouble(f"a group still uses {failing}\n{run.everything()}")
        return f"{','.join(failing)}: back after {took:.2f} s; " + check(run, workload().given_up)


def one_in_use(run, rng):
    return ["-".join(rng.choice(run.trunks_in_use()))]


def all_of_one_above(run, rng):
    return run.trunks_of(rng.choice(run.trunks_in_use())[1])


def trunk_cut(rng, within):
    """A trunk in the group's tree is cut, and both switches detect it."""
    return fail_trunks(rng, within, one_in_use, up=False)


def trunk_silent(rng, within):
    """A trunk in the group's tree loses all packets."""
    return fail_trunks(rng, within, one_in_use, loss=1)


def switch_cut_off(rng, within):
    """All trunks of an aggregation or core switch in the group's tree are cut."""
    return fail_trunks(rng, within, all_of_one_above, up=False)


CASES = (trunk_cut, trunk_silent, switch_cut_off)


class TrunkFaults(unittest.TestCase):
    WITHIN = 20  # ten times the promised limit

    def run_moments(self, case):
        seed = random.SystemRandom().randrange(1 << 30)
        self.assertEqual(run_case(case, 1, seed, self.WITHIN), 0, "replay with the seed above")

    def test_trunk_cut(self):
        self.run_moments(trunk_cut)

    def test_trunk_silent(self):
        self.run_moments(trunk_silent)

    def test_switch_cut_off(self):
        self.run_moments(switch_cut_off)


if __name__ == "__main__":
    if "--moments" in sys.argv:
        sys.exit(command_line(CASES, within=2))
    unittest.main()
