#!/usr/bin/python3
"""Measures what hostile hosts take from others: floods, attacks on rings, doorbells and sockets.

Four honest ranks broadcast and reduce over a fabric of six hosts and check every byte. One or both of the others run one attack
after another, in turns with a control measurement: CPU load on as many cores. A line for each attack: rounds a second, of a
broadcast and a reduction, beside it and beside the control, the part that is left (the median over the turns, and its upper bound
with a confidence of 95 %), whether all data was right, failed groups, the switch's resources, and the counters of the hostile
hosts' ports that grew most. An attack takes too much if even that upper bound is below its limit: schedulers make speeds of small
messages differ tenfold between turns.
"""

import argparse
import contextlib
import json
import math
import mmap
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import strangers  # noqa: E402
from harness import BUILD, PROGRAMS, REQUIRE  # noqa: E402
from live import TIME_LIMIT, Lines, LiveRun, Switch, private_kib  # noqa: E402
from switch_process import star  # noqa: E402

HONEST = 4
# The attack of each of the two hostile hosts.
ATTACKS = {
    **{name: (name, "rest") for name in (
        "unicast", "unicast-4k", "ack", "cnp", "datagrams-4k", "spoofed", "unknown-group", "own-group", "own-reduction",
        "reduction-nak", "reduction-rnr", "reduction-again", "arp", "mrp-garbage", "register", "register-again", "install-again",
        "remove-again", "probe", "descriptors", "indices", "doorbell", "control", "connect")},
    "accomplice": ("unicast-4k", "at-friend"),
    "collusion": ("at-friend", "at-friend"),
    "reduction-pair": ("reduction-pair", "reduction-pair"),
    "reduction-pair-nak": ("reduction-pair-nak", "reduction-pair"),
    "words": ("words", "at-friend"),
    "spy": ("spy", "own-group"),
}
REST = ("rest", "rest")
# Signs of an attack: one of these numbers grows by this much. Counters of the hostile hosts' ports, or connections at the fabric's
# sockets.
SENT = {"rx_frames": 100}
SIGNS = {
    **{name: SENT for name in ("unicast", "unicast-4k", "ack", "cnp", "datagrams-4k", "accomplice", "collusion")},
    "arp": {"drop_other": 100},
    "spoofed": {"drop_spoofed_source": 100},
    "unknown-group": {"drop_unknown_group": 100},
    "own-group": {"drop_not_active": 100, "data_taken": 100},
    "own-reduction": {"reduction_taken": 100},
    "reduction-nak": {"feedback_taken": 100},
    "reduction-rnr": {"feedback_taken": 100},
    "reduction-again": {"reduction_duplicate": 100},
    "reduction-pair": {"reduction_taken": 100},
    "reduction-pair-nak": {"reduction_repeated": 100},
    "mrp-garbage": {"drop_malformed": 100},
    "register": {"drop_mrp_rate": 100, "mrp_register": 100},
    "register-again": {"mrp_register": 100},
    "install-again": {"drop_mrp_rate": 100},
    "remove-again": {"drop_mrp_rate": 100},
    "probe": {"drop_probe": 100},
    "descriptors": {"drop_bad_descriptor": 100},
    "indices": {"drop_ring_corrupt": 5},
    "doorbell": {"doorbell_ignored": 1},
    "control": {"connections_control": 5},
    "connect": {"connections_attach": 50},
    "words": {"drop_ring_corrupt": 1, "drop_bad_descriptor": 1},
    "spy": {"mrp_register": 1},
}
LEAST = 0.8  # of the control's speed
# Any two programs may stream to each other, or reduce, as fast as the switch serves them. The switch serves all in turn, but it then computes
# without a pause, and waits for a core like any other program.
LEAST_OF = {"collusion": 0.5, "reduction-pair": 0.5, "reduction-pair-nak": 0.5}
SETTLING = 0.1  # seconds from a change of attack to the measurement
SLACK = {"descriptors": 2, "KiB": 16 << 10}
# Hostile hosts are another user's: only root can have two.
STRANGER = 65534 if os.geteuid() == 0 else None
if STRANGER is None:  # processes of one user share a pool, and may read all of it
    del ATTACKS["spy"]


def most_of_median(samples):
    """The upper end of the 95 % confidence interval of their median, whatever their distribution (by order statistics)."""
    n, below = len(samples), 0.0
    for k, sample in enumerate(sorted(samples)):
        below += math.comb(n, k) / 2**n
        if below >= 0.95:
            return sample
    return max(samples)


class Broadcasts(LiveRun):
    """steady_check on the first hosts of a fabric that has two more; the switch is another build's, if one is given."""

    def __init__(self, size, switch=None):
        self.size = size
        super().__init__(hosts=HONEST, mca=REQUIRE, switch=switch)

    def fabric(self, _arguments, program):
        users = "" if STRANGER is None else f'users = ["{STRANGER}"]'
        switch = Switch(topology=star(HONEST + 2, fabric=users), program=program)
        switch.directory.chmod(0o755)  # the other user goes through it
        return switch

    def program(self, _arguments, _seed):
        path = pathlib.Path(self.scratch) / "meter"
        path.write_bytes(bytes(16))
        with path.open("r+b") as file:
            self.meter = mmap.mmap(file.fileno(), 16)
        return [str(PROGRAMS / "steady_check"), "--size", str(self.size), "--meter", str(path)]

    def finish(self):
        self.meter[8:16] = struct.pack("=Q", 1)
        return super().finish()

    def done(self):
        return struct.unpack_from("=Q", self.meter)[0]

    def speed(self, seconds):
        """Rounds a second."""
        before, began = self.done(), time.monotonic()
        time.sleep(seconds)
        return (self.done() - before) / (time.monotonic() - began)

    def status(self):
        give_up = time.monotonic() + TIME_LIMIT
        while True:
            try:
                return self.switch.status()
            except (OSError, json.JSONDecodeError):  # strangers may still have the places
                if time.monotonic() > give_up:
                    raise

    def held(self):
        """The switch's resources, as in SLACK."""
        pid = self.switch.pid
        return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")), "KiB": private_kib(pid)}


def groups_of(status):
    """The honest hosts' groups, by names that stay."""
    hostile = {f"10.0.0.{HONEST + 1}", f"10.0.0.{HONEST + 2}"}
    return {(g["id"], g["epoch"]) for s in status["switches"] for g in s["groups"] if g["leader"] not in hostile and g["active"]}


def counters_of(status):
    """Of the hostile hosts' ports, without those of forwarded traffic."""
    ports = [port for s in status["switches"] for port in s["ports"] if port["name"] in (f"h{HONEST}", f"h{HONEST + 1}")]
    found = {}
    for port in ports:
        for name, value in port["counters"].items():
            if not name.startswith(("rx_", "tx_")):
                found[name] = found.get(name, 0) + value
    return found


def signs_of(status, socket):
    """The numbers for SIGNS: of the first hostile host, which runs the attack of that name, and of the sockets."""
    found = {}
    for one in status["switches"]:
        for port in one["ports"]:
            if port["name"] == f"h{HONEST}":
                for name, value in {"rx_frames": port["rx_frames"], **port["counters"]}.items():
                    found[name] = found.get(name, 0) + value
    sockets = pathlib.Path("/proc/net/unix").read_text().splitlines()
    found["connections_attach"] = sum(line.endswith(f" {socket}") for line in sockets)
    found["connections_control"] = sum(line.endswith(f" {socket}.ctl") for line in sockets)
    return found


class HostileHost:
    """A host of the fabric with hostile_host on it."""

    def __init__(self, socket, number, build):
        friendly = 2 * HONEST + 1 - number
        words = [build / "tests/hostile_host", socket, f"h{number}", "10.0.0.2", f"10.0.0.{friendly + 1}"]
        self.process = subprocess.Popen(words + ([] if STRANGER is None else [str(STRANGER)]), text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.errors = Lines(self.process.stderr)

    def do(self, attack):
        self.process.stdin.write(attack + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != f"doing {attack}\n":
            self.process.kill()
            self.errors.thread.join()
            raise RuntimeError(f"hostile_host does not start {attack}:\n{self.errors.text()}")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.errors.thread.join()
        self.process.stderr.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


class Campaign:
    """Attacks beside broadcasts of one size; errors are collected as lines."""

    HEAD = (f"{'attack':<19}{'bytes':>8}{'beside it':>11}{'beside load':>11}{'left':>6}{'most':>6}{'data':>7}{'failed':>7}{'switch KiB':>15}"
            f"{'descriptors':>13}  counters")

    def __init__(self, size, turns, seconds, least=LEAST, sanitized=None, show=print):
        self.size, self.turns, self.seconds, self.least, self.sanitized, self.show = size, turns, seconds, least, sanitized, show
        self.wrong = []

    def run(self, attacks):
        """Errors, as lines."""
        rest = list(attacks)
        while rest:  # after an attack that ended a group, the rest gets a new fabric
            self._on_one_fabric(rest)
        return self.wrong

    def _on_one_fabric(self, rest):
        build = self.sanitized or BUILD
        with Broadcasts(self.size, self.sanitized and self.sanitized / "bin/cepheus-switch") as run, \
                contextlib.closing(HostileHost(run.switch.socket, HONEST, build)) as one, \
                contextlib.closing(HostileHost(run.switch.socket, HONEST + 1, build)) as other:
            self._do(one, other, ("cpu-load", "rest"))
            run.speed(5 * self.seconds)  # warms up
            self._do(one, other, REST)
            before = run.held()
            intact = True
            while rest and intact:
                intact = self._compare(run, one, other, rest.pop(0))
            after = run.held()
            watched = {"descriptors": SLACK["descriptors"]} if self.sanitized else SLACK  # sanitizers keep what was freed
            if intact:
                self.wrong += [f"the switch's {name} grew from {before[name]} to {after[name]}" for name, slack in watched.items()
                               if after[name] > before[name] + slack]
            if intact and (run.finish() != 0 or "ok:" not in run.out.text()):
                self.wrong.append("the broadcasts failed\n" + run.everything())
        self.wrong += one.errors.lines + other.errors.lines
        if run.switch.process.returncode != 0:
            self.wrong.append(f"the switch ended with exit code {run.switch.process.returncode}")

    @staticmethod
    def _do(one, other, attacks):
        one.do(attacks[0])
        other.do(attacks[1])
        time.sleep(SETTLING)

    @staticmethod
    def _has_sign(name, before, seen):
        return any(seen.get(key, 0) - before.get(key, 0) >= least for key, least in SIGNS[name].items())

    def _await_sign(self, run, name, before, seen):
        """Notes the most that is seen of each number. On a busy machine the hostile host may not have run yet."""
        give_up = time.monotonic() + TIME_LIMIT
        while True:
            for key, value in signs_of(run.status(), run.switch.socket).items():
                seen[key] = max(seen.get(key, 0), value)
            if self._has_sign(name, before, seen) or run.process.poll() is not None or time.monotonic() > give_up:
                return

    def _compare(self, run, one, other, name):
        """Whether the honest job and its groups still exist."""
        attacks = ATTACKS[name]
        self._do(one, other, REST)
        loads = tuple("rest" if each == "rest" else "cpu-load" for each in attacks)
        status, held, errors = run.status(), run.held(), len(run.err.lines)
        self._do(one, other, loads)
        signs, seen = signs_of(run.status(), run.switch.socket), {}
        beside_load, beside_it = [run.speed(self.seconds)], []
        for _ in range(self.turns):
            self._do(one, other, attacks)
            beside_it.append(run.speed(self.seconds))
            self._await_sign(run, name, signs, seen)
            self._do(one, other, loads)
            beside_load.append(run.speed(self.seconds))
        ratios = [2 * it / max(a + b, 1e-9) for it, a, b in zip(beside_it, beside_load, beside_load[1:])]
        left, most = statistics.median(ratios), most_of_median(ratios)
        self._do(one, other, REST)
        has_ended = run.process.poll() is not None
        after = run.status()
        failed = len(groups_of(status) - groups_of(after)) if not has_ended else "all"
        data = "wrong" if any(" is wrong" in line for line in run.err.lines[errors:]) else "right"
        now = run.held()
        grown = {key: value - counters_of(status).get(key, 0) for key, value in counters_of(after).items()}
        counters = sorted(((value, key) for key, value in grown.items() if value > 0), reverse=True)[:3]
        self.show(f"{name:<19}{self.size:>8}{statistics.median(beside_it):>11.0f}{statistics.median(beside_load):>11.0f}{left:>6.0%}"
                  f"{most:>6.0%}{data:>7}{failed:>7}{held['KiB']:>7} {now['KiB']:>7}{held['descriptors']:>7} {now['descriptors']:>5}  "
                  + ", ".join(f"{key} {value}" for value, key in counters))
        if not self._has_sign(name, signs, seen):
            self.wrong.append(f"{name} did nothing: from {signs} to {seen}, expected one of {SIGNS[name]}")
        if most < min(self.least, LEAST_OF.get(name, self.least)):
            self.wrong.append(f"{name} leaves {left:.0%}, at most {most:.0%}, of the speed beside a CPU load, of broadcasts of {self.size} bytes")
        if data != "right" or failed != 0:
            self.wrong.append(f"beside {name}, data was {data} and failed groups {failed}\n{run.everything()}")
        return failed == 0


def main():
    parser = argparse.ArgumentParser(prog="./run hostile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="of: " + ", ".join(ATTACKS) + " (default: all)")
    parser.add_argument("--sizes", default="64,65536", help="sizes of broadcasts in bytes (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=11, help="turns of each attack, between turns of the control (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.4, help="seconds of each turn (default: %(default)s)")
    parser.add_argument("--strangers", type=int, default=10000, help="number at each socket of each daemon (default: %(default)s)")
    parser.add_argument("--sanitized", type=pathlib.Path, help=argparse.SUPPRESS)  # a build with sanitizers, without a check of speeds
    options = parser.parse_args()
    unknown = set(options.attacks) - set(ATTACKS)
    if unknown:
        parser.error("there is no attack " + ", ".join(sorted(unknown)))
    sanitized = options.sanitized and options.sanitized.resolve()
    if sanitized:
        os.environ["HWLOC_COMPONENTS"] = "-pci"  # hwloc unloads libpciaccess, and its memory would count as leaked
    print(Campaign.HEAD)
    wrong = []
    for size in map(int, options.sizes.split(",")):
        wrong += Campaign(size, options.turns, options.seconds, least=0 if sanitized else LEAST, sanitized=sanitized,
                         show=lambda line: print(line, flush=True)).run(options.attacks or ATTACKS)
    if not options.attacks:
        print(strangers.HEAD)
        wrong += strangers.attack_all_gates(options.strangers, sanitized or BUILD, lambda line: print(line, flush=True), not sanitized)
    for line in wrong:
        print(line, file=sys.stderr)
    print("hostile hosts harmed others" if wrong else "hostile hosts did not harm others")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
