"""In the lab's guest: switches with a chosen topology, MPI programs over them, the kernel's counters."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(PROJECT / "nic-emulator/lab"), str(PROJECT / "tools"), str(PROJECT / "tests/e2e")]
import harness  # noqa: E402
import switch_process  # noqa: E402
from topology import lab_topology  # noqa: E402

BUILD = pathlib.Path(os.environ["CEPHEUS_BUILD"])
HOSTS = int(os.environ["CEPHEUS_LAB_HOSTS"])
MPIRUN = PROJECT / "nic-emulator/lab/mpirun"
CHECK = BUILD / "tests/mpi/broadcast_check"
KERNEL_HOSTS = [f"h{i}" for i in range(HOSTS)]
# The guest is emulated, on a machine that may be busy, so time limits are longer.
TIME_LIMITS = ["--mca", "coll_cepheus_register_timeout_ms", "60000", "--mca", "coll_cepheus_watchdog_ms", "60000"]


class Switch(switch_process.Switch):
    """cepheus-switch on the lab's interfaces, until the `with` block ends."""

    def __init__(self, congestion="off", **topology):
        self.congestion = congestion
        super().__init__(BUILD, topology=lab_topology(HOSTS, **topology))

    @property
    def environment(self):
        return {**os.environ, "CEPHEUS_FABRIC": self.socket, "CEPHEUS_CONGESTION": self.congestion}

    def counted(self, name, ports):
        """A counter's sum over these ports."""
        return sum(port["counters"].get(name, 0) for port in self.ports() if port["name"] in ports)

    def ctl(self, *arguments):
        return subprocess.run([BUILD / "bin/cepheusctl", *arguments], env=self.environment, check=True, text=True,
                              capture_output=True).stdout

    def broadcasts(self, count, largest, ranks=None, mode="require", seconds=600, verbose=1, report=None,
                   comm="world"):
        """MPI_Bcast from rotating roots, every byte checked; one rank on each of `ranks`. `comm`: "split" halves
        the ranks into even and odd ones. With `report` its standard error is ours, and has a line of progress
        every `report` seconds."""
        harness.need_component()
        command = [MPIRUN] + (["--ranks", " ".join(ranks)] if ranks else [])
        command += TIME_LIMITS if mode == "require" else []
        command += ["--mca", "coll_cepheus_mode", mode, "--mca", "coll_cepheus_verbose", str(verbose),
                    "--mca", "coll_cepheus_set_up_after", "0", CHECK, "--count", count, "--max", largest, "--comm", comm]
        command += ["--report", report] if report else []
        return subprocess.run(list(map(str, command)), env=self.environment, text=True, timeout=seconds,
                              stdout=subprocess.PIPE, stderr=None if report else subprocess.PIPE)


    def group_program(self, command, devices, seconds=300):
        """A program of libmcast's C API, one process on each of `devices`: `command RANK RANKS DIRECTORY DEVICE`.
        [(exit code, output)]."""
        with tempfile.TemporaryDirectory() as directory:
            processes = []
            for rank, device in enumerate(devices):
                environment = dict(self.environment)
                if not device.startswith("rxe"):
                    environment.update(CEPHEUS_HOST=device, LD_PRELOAD=str(BUILD / "lib/libcepheus-roce.so"))
                arguments = [*command, rank, len(devices), directory, *([device] if device.startswith("rxe") else [])]
                processes.append(subprocess.Popen(list(map(str, arguments)), env=environment, text=True,
                                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            try:
                return [(process.wait(seconds), process.stdout.read()) for process in processes]
            finally:
                for process in processes:
                    process.kill()
                    process.wait()
                    process.stdout.close()


def kernel_counters(device):
    """rdma_rxe's own counters: {"sent_pkts": n, "rcvd_pkts": n, ...}."""
    text = subprocess.run(["rdma", "statistic", "show", "link", f"{device}/1"], check=True, text=True,
                          capture_output=True).stdout
    return {name: int(value) for name, value in re.findall(r"(\w+) (\d+)", text.split(None, 2)[2])}
