#!/usr/bin/python3
"""In the lab: many broadcasts with loss by each source-change method. Takes long; not part of the tests."""

import argparse
import sys

from guest_fabric import KERNEL_HOSTS, Switch

REPORT_SECONDS = 10


def main():
    parser = argparse.ArgumentParser(prog="./run lab soak", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="broadcasts by each method (default 1000)")
    parser.add_argument("--max", type=int, default=1 << 20, help="largest broadcast in bytes (default 1 MiB)")
    parser.add_argument("--loss", type=float, default=0.005, help="probability on every link, each way (default 0.005)")
    parser.add_argument("--method", choices=("rebase", "host-sync"), help="one method only (default: both)")
    options = parser.parse_args()
    good = True
    for method in [options.method] if options.method else ["rebase", "host-sync"]:
        with Switch(source_change=method) as switch:
            switch.set_links(KERNEL_HOSTS, loss=options.loss)
            run = switch.broadcasts(options.count, options.max, seconds=None, report=REPORT_SECONDS)
            print(f"{method}: exit {run.returncode}, {switch.lost()} packets lost; {run.stdout.strip()}", flush=True)
            print(switch.ctl("counters"), flush=True)
            good = good and run.returncode == 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
