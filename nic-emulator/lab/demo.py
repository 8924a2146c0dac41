#!/usr/bin/python3
"""In the lab: a file to every kernel host by plain MPI_Bcast; the bytes on the root's link, and rdma_rxe's counters."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("CEPHEUS_BUILD", "build/dev"))
HERE = pathlib.Path(__file__).resolve().parent
# The guest is emulated, so time limits are longer.
TIME_LIMITS = ("--mca", "coll_cepheus_register_timeout_ms", "60000", "--mca", "coll_cepheus_watchdog_ms", "60000")
HOSTS = int(os.environ.get("CEPHEUS_LAB_HOSTS", "0"))


def kernel_counters(device):
    return subprocess.run(["rdma", "statistic", "show", "link", f"{device}/1"], text=True, capture_output=True).stdout.strip()


def ports():
    """The switch's ports. An emulated machine may be too busy for the first answer in time; cepheusctl gives its reason."""
    for _ in range(3):
        answer = subprocess.run([BUILD / "bin/cepheusctl", "--json", "ports"], text=True, stdout=subprocess.PIPE)
        if answer.returncode == 0:
            return json.loads(answer.stdout)["switches"][0]["ports"]
    return None


def main():
    parser = argparse.ArgumentParser(prog="./run lab demo", description=__doc__)
    parser.add_argument("file", nargs="?", default="/usr/lib/x86_64-linux-gnu/libc.so.6", help="file to broadcast")
    options = parser.parse_args()
    if HOSTS == 0:
        parser.error("this runs in the lab: ./run lab demo")
    path = os.path.realpath(options.file)
    size = os.path.getsize(path)
    print(f"{path}, {size} bytes, from rank 0 to {HOSTS} hosts with rdma_rxe, one cepheus-switch", flush=True)
    run = subprocess.run([HERE / "mpirun", "--mca", "coll_cepheus_mode", "require", *TIME_LIMITS, "--mca", "coll_cepheus_verbose", "1",
                          BUILD / "demo/broadcast_file", path])
    if run.returncode != 0:
        return 1
    found = ports()
    if found is None:
        return 1
    port = next(p for p in found if p["name"] == "h0")
    ratio = port["rx_payload_bytes"] / size if size else 0
    print(f"the root's link transmitted {port['rx_payload_bytes']} bytes of payload, {ratio:.3f} times the file; "
          f"{HOSTS - 1} unicast copies would be {size * (HOSTS - 1)}")
    for i in range(HOSTS):
        print(kernel_counters(f"rxe{i}"))
    if size >= 65536 and not 1.0 <= ratio <= 1.1:
        repeats = re.search(r"completer_retry_err (\d+)", kernel_counters("rxe0"))
        timed_out = repeats is not None and int(repeats.group(1)) > 0
        print("lab demo: the file did not cross the root's link once" +
              (f": rdma_rxe's timer ran out {repeats.group(1)} times and it sent again; where no link lost anything (cepheusctl "
               "ports), this machine is too busy for the emulated one, so try again later" if timed_out else ""), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
