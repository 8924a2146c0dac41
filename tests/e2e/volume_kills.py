#!/usr/bin/python3
"""Kill a volume's programs at random moments, while its user writes and records the acknowledged writes.

usage: volume_kills.py [--count N] [--seed N] [--cache page|direct] [--multicast cepheus|mcrdma]     (CEPHEUS_BUILD names the build tree)

It checks: no acknowledged write is lost, every read returns a written value, writes continue within 2 s after a replica's
death, and in the end all replicas are equal. Prints each fault, and the longest pause of writes for each kind.
"""

import argparse
import collections
import random
import sys
import time

from volumes import Volume, pause

GOES_ON_SECONDS = 4  # after a replica's death; a silent member would be evicted only after 5 s. A test allows more: machines are busy.
TIME_LIMIT = 60


class Campaign:
    def __init__(self, volume, seed, multicast="cepheus", within=GOES_ON_SECONDS, log=print):
        self.volume, self.random, self.log = volume, random.Random(seed), log
        self.multicast, self.within = multicast, within
        self.seed = seed
        self.user = None
        self.kills = 0
        self.pauses = collections.defaultdict(float)  # longest, by kind of fault

    def start_user(self):
        if self.user is not None and "wrong" in self.user.events:  # before it was killed
            raise RuntimeError(self.user.events["wrong"]["what"])
        self.user = self.volume.start_user("--time-limit-ms", TIME_LIMIT * 1000, "--multicast", self.multicast,
                                           seed=self.random.randrange(1 << 32))

    def writes(self):
        return self.user.events.get("running", {}).get("writes", 0)

    def wait_for_writes(self):
        """Waits for some further writes of the user."""
        self.user.await_event("verified", TIME_LIMIT)
        before, give_up = self.user.events.get("running"), time.monotonic() + TIME_LIMIT
        goal = (before or {}).get("writes", 0) + 10
        while self.writes() < goal:
            if self.user.process.poll() is not None:
                raise RuntimeError(f"the user ended:\n{self.user.tail()}\n{self.volume.logs()}")
            if time.monotonic() > give_up:
                raise RuntimeError(f"writes do not continue:\n{self.user.tail()}\n{self.volume.logs()}")
            pause(0.02)

    # --- Faults.

    def replica_killed(self):
        replica = self.random.choice(self.volume.replicas)
        replica.kill()
        pause(self.random.uniform(0, 1.5))
        replica.start()

    def replica_stopped(self):
        replica = self.random.choice(self.volume.replicas)
        replica.stop()
        pause(self.random.uniform(0.2, 2.5))
        replica.go_on()

    def replica_cut_off(self):
        link = f"h{1 + self.random.randrange(len(self.volume.replicas))}"
        self.volume.switch.set_links([link], up=False)
        pause(self.random.uniform(0.2, 2.5))
        self.volume.switch.set_links([link], up=True)

    def switch_killed(self):
        self.volume.switch.kill()
        pause(self.random.uniform(0, 1))
        self.volume.switch.start()

    def writer_killed(self):
        if self.user.process.poll() is not None:
            raise RuntimeError(f"the user ended by itself:\n{self.user.tail()}\n{self.volume.logs()}")
        self.user.kill()
        self.start_user()

    def one(self, kinds):
        kind = self.random.choice(kinds)
        self.kills += 1
        # After recovery, so that the pause belongs to this fault; or before it has finished.
        is_quiet = self.random.random() < 0.7
        if is_quiet:
            self.wait_for_all()
            pause(self.random.uniform(0, 0.3))
        began, user = time.monotonic(), self.user
        getattr(self, kind)()
        self.wait_for_writes()
        pauses = [end - start for start, end in user.gaps if end >= began] if user is self.user else [time.monotonic() - began]
        longest = max(pauses, default=0)
        self.log(f"{self.kills:4} {kind.replace('_', ' ')}{'' if is_quiet else ', during recovery'}: writes paused for {longest:.2f} s", flush=True)
        if not is_quiet:
            return
        self.pauses[kind] = max(self.pauses[kind], longest)
        if kind in ("replica_killed", "replica_stopped", "replica_cut_off") and longest > self.within:
            raise RuntimeError(f"writes paused for {longest:.2f} s after a replica's death\n{self.user.tail()}")

    def wait_for_all(self):
        self.user.await_event("verified", TIME_LIMIT)
        self.volume.wait_for_sync(self.user, TIME_LIMIT)

    def run(self, count, kinds=("replica_killed", "replica_killed", "replica_stopped", "replica_cut_off", "switch_killed", "writer_killed")):
        self.start_user()
        self.wait_for_writes()
        for _ in range(count):
            self.one(kinds)
        self.wait_for_all()
        done = self.volume.finish(self.user, TIME_LIMIT)
        checked = self.volume.run_tool("check", "--volume", "v", "--replicas", self.volume.addresses)
        if checked.returncode != 0:
            raise RuntimeError("the replicas differ:\n" + checked.stdout + checked.stderr)
        return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=100, help="faults")
    parser.add_argument("--cache", choices=["page", "direct"], default="page", help="replicas' storage of data (default: page)")
    parser.add_argument("--multicast", choices=["cepheus", "mcrdma"], default="cepheus", help="transport of writes (default: cepheus)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.count} faults", flush=True)
    try:
        with Volume(options=("--cache", options.cache)) as volume:
            campaign = Campaign(volume, options.seed, options.multicast)
            done = campaign.run(options.count)
    except RuntimeError as failure:
        print(f"failed: {failure}\nagain: {sys.argv[0]} --cache {options.cache} --multicast {options.multicast} "
              f"--count {options.count} --seed {options.seed}")
        return 1
    for kind, seconds in sorted(campaign.pauses.items()):
        print(f"{kind.replace('_', ' ')}: longest pause of writes {seconds:.2f} s")
    print(f"{campaign.kills} faults, no acknowledged write lost, replicas equal; the last user wrote {done['writes']} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
