#!/usr/bin/python3
"""In the lab: the emulated NIC and the kernel's rdma_rxe on each other, operation by operation, as a table.

Exit code 0 if every cell passed.
"""

import os
import subprocess
import sys

from guest_fabric import BUILD, Switch

PAIR = BUILD / "tests/verbs_pair"
FIRST_PORT = 19000
TIME_LIMIT = 400
LOSS = 0.01


class End:
    def __init__(self, name, device, environment):
        self.name, self.device, self.environment = name, device, environment


def kernel_end(index):
    return End("rxe", f"rxe{index}", {})


def soft_end(index, verbose=False):
    """`verbose`: says at its end what it has counted."""
    preload = {"LD_PRELOAD": f"{BUILD}/lib/libcepheus-roce.so", "CEPHEUS_HOST": f"m{index}", "CEPHEUS_VERBOSE": str(int(verbose))}
    return End("emulated", "cepheus0", preload)


def run_pair(switch, client, server, port, traffic_class=0, errors=None):
    """{cell: outcome}, as the client saw it, or the server where it saw more. What they complain of goes to the file `errors`."""
    def start(role, end):
        return subprocess.Popen([PAIR, role, end.device, str(port), str(traffic_class)],
                                env={**switch.environment, **end.environment}, stdout=subprocess.PIPE, stderr=errors, text=True)

    passive = start("server", server)
    if passive.stdout.readline() != "listening\n":
        return {"start": f"FAILED: the server said {passive.communicate()[0].strip()}"}
    active = start("client", client)
    outcomes = {}
    for process in (active, passive):
        try:
            text = process.communicate(timeout=TIME_LIMIT)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            text = process.communicate()[0] + "end: FAILED: no end in sight\n"
        for line in text.splitlines():
            cell, outcome = line.split(": ", 1)
            if outcomes.get(cell, "ok") == "ok":
                outcomes[cell] = outcome
        if process.returncode != 0:
            outcomes.setdefault("exit", f"FAILED: code {process.returncode}")
    return outcomes


def columns(switch):
    """{(client, server, links): outcomes}."""
    table = {}
    port = FIRST_PORT
    for loss in (0, LOSS):
        switch.set_links(("h0", "h1", "m0"), loss=loss)
        for client, server in ((kernel_end(0), soft_end(0)), (soft_end(0), kernel_end(0)), (kernel_end(0), kernel_end(1))):
            port += 1
            heading = f"{client.name} to {server.name}" + (f", {loss:.0%} loss" if loss else "")
            table[heading] = run_pair(switch, client, server, port)
    return table


def show(table):
    rows = list(dict.fromkeys(cell for outcomes in table.values() for cell in outcomes))
    width = max(map(len, rows)) + 2
    print(" " * width + "  ".join(table))
    good = True
    for row in rows:
        cells = [outcomes.get(row, "ok" if row == "exit" else "not run") for outcomes in table.values()]
        good = good and all(cell == "ok" for cell in cells)
        print(row.ljust(width) + "  ".join(cell.ljust(len(heading)) for cell, heading in zip(cells, table)))
    return good


def main():
    with Switch() as switch:
        table = columns(switch)
        lost = switch.lost()
    good = show(table)
    print(f"{lost} packets were lost on the way")
    return 0 if good and lost > 0 else 1


if __name__ == "__main__":
    os.environ.pop("LD_PRELOAD", None)
    sys.exit(main())
