#!/usr/bin/python3
"""The fabric fails in the middle of broadcasts or reductions: data is right on every rank, in time, and one line has the reason.

As a test: a few random moments of each fault. As a command, to look for trouble:

    live_fault_test.py --moments 20 [--seed S] [--case NAME] [--within SECONDS] [--mpi mpich] [--workload reductions]

--within: time limit of the longest broadcast (5 s), or of the longest case of reductions_check (7 s: a rank that waits for a result
gives its group up after 6 s, and then the ranks compute it by messages). The test allows more, since machines are busy.
"""

import argparse
import os
import random
import signal
import sys
import threading
import unittest
from typing import NamedTuple

import harness
from harness import AT_ONCE, CHECK, PROGRAMS
from live import LiveRun

MEGA = 1 << 20
OWN_ALGORITHMS = r"cepheus: MPI_COMM_WORLD \(\d+ ranks\): ((open mpi|mpich)'s own algorithms from broadcast|the group failed)"
MULTICAST = r"cepheus: MPI_COMM_WORLD \(\d+ ranks\): multicast, "
STOP = 20  # seconds that a rank is stopped at most, until it counts as dead: 7 on an idle machine
VERBOSE = {"coll_cepheus_verbose": 1}


class Workload(NamedTuple):
    """A program, and its arguments for calls of all kinds; for the largest ones, which have `largest` bytes; and for calls that need
    one rank's data first. The lines that it prints when the network serves, and when it no longer does. `within`: time limit of its
    longest call, in seconds."""
    program: object
    mixed: tuple
    large: tuple
    largest: int
    one_root: tuple
    served: str
    given_up: str
    within: float


REDUCTIONS = ("--count", 20, "--comm", "world", "--pairwise", 8192)
WORKLOADS = {
    "broadcasts": Workload(CHECK, ("--count", 20, "--max", MEGA, "--root", "random"), ("--count", 4, "--size", 64 * MEGA, "--max", 64 * MEGA),
                           64 * MEGA, ("--count", 20, "--max", MEGA, "--root", 0), MULTICAST, OWN_ALGORITHMS, 5),
    "reductions": Workload(PROGRAMS / "reductions_check", REDUCTIONS, REDUCTIONS, MEGA, REDUCTIONS,
                           r"cepheus: MPI_COMM_WORLD \(\d+ ranks\): reductions in the network",
                           r"cepheus: MPI_COMM_WORLD \(\d+ ranks\): (reductions by messages|the group of its reductions failed)", 7),
}
_workload = WORKLOADS["broadcasts"]


def workload():
    return _workload


def use_workload(name):
    """The workload of all runs from now on."""
    global _workload
    _workload = WORKLOADS[name]


class FaultyRun(LiveRun):
    """A run that a fault will meet."""

    def __init__(self, rng, arguments, **how):
        self.CHECK = workload().program
        super().__init__(*arguments, mca={**VERBOSE, **AT_ONCE}, seed=rng.randrange(1 << 30), **how)


class Trouble(Exception):
    pass


def check(run, expected=None, within=None):
    """Ends the run, which must have been right; `expected`: a line that must have been printed."""
    code = run.finish()
    if code != 0 or not run.out.count("^ok: "):
        raise Trouble(f"exit {code}\n{run.everything()}")
    if expected and not run.err.count(expected):
        raise Trouble(f"no rank gave the reason\n{run.everything()}")
    if within and run.longest() > within:
        raise Trouble(f"a call took {run.longest()} s\n{run.everything()}")
    longest = f"longest {run.longest():.2f} s; " if run.out.count("longest") else ""
    reasons = [line[line.index("cepheus:"):] for line in run.err.lines if "cepheus:" in line]
    return longest + (reasons[-1] if reasons else "")


def wait(run, pattern, times=1):
    if not run.err.wait_for(pattern, times):
        raise Trouble(f"no rank printed: {pattern}\n{run.everything()}")


def switch_killed(rng, within):
    """The switch dies in the middle of a large call."""
    with FaultyRun(rng, workload().large) as run:
        run.wait_for_payload(rng.randrange(workload().largest))
        run.switch.kill()
        return check(run, workload().given_up, within)


def switch_killed_among_small(rng, within):
    """The switch dies amid calls of all kinds."""
    with FaultyRun(rng, workload().mixed) as run:
        run.wait_for_payload(rng.randrange(4 * MEGA))
        run.switch.kill()
        wait(run, workload().given_up)
        return check(run, workload().given_up, within)


def switch_restarted(rng, within):
    """The switch dies and restarts, and multicast returns."""
    with FaultyRun(rng, workload().mixed) as run:
        run.wait_for_payload(rng.randrange(4 * MEGA))
        before = run.err.count(workload().served)
        run.switch.kill()
        run.switch.start()
        wait(run, workload().given_up)
        wait(run, workload().served, before + 1)
        run.wait_for_payload(MEGA)
        return check(run, workload().given_up, within)


def one_rank_cut_off(rng, within):
    """A link drops all packets to one rank."""
    with FaultyRun(rng, workload().mixed) as run:
        run.wait_for_payload(rng.randrange(4 * MEGA))
        run.switch.set_links([rng.choice(run.hosts)], direction="down", loss=1)
        wait(run, workload().given_up)
        return check(run, workload().given_up, within)


def loss_bursts(rng, within):
    """Every link loses a fifth of its packets, at intervals."""
    with FaultyRun(rng, workload().mixed) as run:
        for _ in range(3):
            run.wait_for_payload(rng.randrange(4 * MEGA))
            goal = run.switch.lost() + rng.randrange(20, 200)
            run.switch.set_links(run.hosts, loss=0.2)
            before = run.err.count(workload().given_up)
            while run.switch.lost() < goal and run.err.count(workload().given_up) == before:
                if run.process.poll() is not None:
                    raise Trouble(run.everything())
            run.switch.set_links(run.hosts, loss=0)
            if run.err.count(workload().given_up):
                break
        return check(run, None, within)


def rank_stopped(rng, within):
    """A rank is stopped for 3 s."""
    with FaultyRun(rng, workload().mixed) as run:
        run.wait_for_payload(rng.randrange(4 * MEGA))
        pid = run.pid(rng.randrange(len(run.hosts)))
        os.kill(pid, signal.SIGSTOP)
        threading.Event().wait(3)  # the fault itself: there is no event to wait for
        os.kill(pid, signal.SIGCONT)
        return check(run, None, within and within + 3)


def rank_stopped_for_long(rng, within):
    """A rank other than the root is stopped until it counts as dead, and continues."""
    with FaultyRun(rng, workload().one_root) as run:
        run.wait_for_payload(rng.randrange(4 * MEGA))
        multicast, fallbacks = run.err.count(workload().served), run.err.count(workload().given_up)
        for _ in range(12):
            pid = run.pid(rng.randrange(1, len(run.hosts)))
            os.kill(pid, signal.SIGSTOP)
            is_dead = run.err.wait_for(workload().given_up, fallbacks + 1, STOP)
            os.kill(pid, signal.SIGCONT)
            run.wait_for_payload(MEGA)
            if is_dead:
                break  # else the others wait for it in a call of MPI's own, as in 4 of 10 stops
        wait(run, workload().given_up, fallbacks + 1)
        wait(run, workload().served, multicast + 1)
        run.wait_for_payload(MEGA)
        return check(run, None, within and within + STOP)


CASES = (switch_killed, switch_killed_among_small, switch_restarted, one_rank_cut_off, loss_bursts, rank_stopped,
         rank_stopped_for_long)


def run_case(case, moments, seed, within):
    """Every moment has a seed of its own, which is printed."""
    failures = 0
    for moment in range(seed, seed + moments):
        print(f"{case.__name__} --seed {moment}: ", end="", flush=True)
        try:
            print(case(random.Random(moment), within), flush=True)
        except (Trouble, RuntimeError, OSError) as trouble:
            failures += 1
            print(f"FAILED\n{trouble}", flush=True)
    return failures


class LiveFaults(unittest.TestCase):
    MOMENTS = {switch_killed: 2, rank_stopped: 1, rank_stopped_for_long: 1, one_rank_cut_off: 2}
    WITHIN = 50  # ten times the promised limit

    def run_moments(self, case):
        seed = random.SystemRandom().randrange(1 << 30)
        self.assertEqual(run_case(case, self.MOMENTS.get(case, 3), seed, self.WITHIN), 0, "replay with the seed above")


for each in CASES:
    setattr(LiveFaults, f"test_{each.__name__}", lambda self, case=each: self.run_moments(case))


def command_line(cases, within=None):
    """Runs the command line's cases; `within` is the default of --within, None: the workload's. Exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", choices=[case.__name__ for case in cases])
    parser.add_argument("--within", type=float, default=within)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    parser.add_argument("--workload", choices=WORKLOADS, default="broadcasts")
    options = parser.parse_args()
    use_workload(options.workload)
    limit = options.within or workload().within
    if options.mpi == "mpich":
        harness.use(harness.Mpich)
    failures = sum(run_case(case, options.moments, options.seed, limit) for case in cases
                   if options.case in (None, case.__name__))
    print(f"{failures} of {options.moments * (1 if options.case else len(cases))} moments failed")
    return 1 if failures else 0


if __name__ == "__main__":
    if "--moments" in sys.argv:
        sys.exit(command_line(CASES))
    unittest.main()
