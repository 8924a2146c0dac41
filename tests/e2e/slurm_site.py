"""A site of one machine with Slurm of its own: munged, slurmctld and slurmd, as plain processes.

All their files are in a new directory, and they listen on loopback; another Slurm of the machine is unaffected.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

from harness import BUILD
from live import wait_until
from switch_process import end
from tcp_ports import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
SCRIPTS = BUILD / "share/cepheus/slurm"
ENDING_SECONDS = 20
CPUS = 4  # of the node, independent of the machine


def missing():
    """Packages that a site needs and this machine lacks."""
    lacking = [program for program in PROGRAMS if shutil.which(program, path=PATH) is None]
    return f"{' and '.join(lacking)} are missing; as root: apt-get install slurm-wlm munge" if lacking else ""


class Site:
    """One node, n0, whose jobs have Cepheus's prolog, epilog and task-prolog, with these settings. A context manager."""

    def __init__(self, settings=""):
        self._own = tempfile.TemporaryDirectory(prefix="cepheus-slurm-")
        self.directory = pathlib.Path(self._own.name)
        self.fabrics = self.directory / "fabrics"
        self.processes = []
        # Other users' jobs read files below it.
        self.directory.chmod(0o755)
        (self.directory / "cepheus.conf").write_text(f"directory={self.fabrics}\n{settings}")
        for name in ("prolog", "epilog", "task-prolog"):
            self.script(name)
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def script(self, name):
        """slurmd gives its scripts no environment: settings outside /etc need a wrapper."""
        path = self.directory / name
        path.write_text(f"#!/bin/bash\nexport CEPHEUS_SLURM_CONFIG={self.directory}/cepheus.conf\nexec {SCRIPTS}/{name}\n")
        path.chmod(0o755)

    def start(self):
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        munge = self.directory / "munge.sock"
        self.run("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}",
                 *(f"--{what}-file={self.directory}/munge.{what}" for what in ("pid", "log", "seed")))
        wait_until(munge.exists, "munged's socket", 30)
        (self.directory / "slurm.conf").write_text(self.configuration(munge))
        # This site does not limit jobs, and cgroups may not be mounted. Slurm 23.11 and later need cgroups unless this file disables
        # them. Earlier versions lack that word, and need cgroups unless a plugin is named, which they do not use then.
        version = self.call(shutil.which("slurmd", path=PATH), "-V").stdout.split()[-1].split(".")
        plugin = "disabled" if (int(version[0]), int(version[1])) >= (23, 11) else "cgroup/v1"
        (self.directory / "cgroup.conf").write_text(f"CgroupPlugin={plugin}\n")
        self.run("slurmctld", "-D", "-f", self.directory / "slurm.conf")
        self.run("slurmd", "-D", "-N", "n0", "-f", self.directory / "slurm.conf")
        wait_until(lambda: self.call("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == "1", self.logs, 60)

    def configuration(self, munge):
        user = "root" if os.geteuid() == 0 else os.environ["USER"]
        host = socket.gethostname().split(".")[0]
        at = self.directory
        (at / "state").mkdir()
        lines = f"""
            ClusterName=test
            SlurmctldHost={host}(127.0.0.1)
            SlurmctldPort={free_port()}
            SlurmUser={user}
            SlurmdUser={user}
            AuthType=auth/munge
            AuthInfo=socket={munge}
            CredType=cred/munge
            StateSaveLocation={at}/state
            SlurmdSpoolDir={at}/spool
            SlurmctldPidFile={at}/slurmctld.pid
            SlurmdPidFile={at}/slurmd.pid
            ProctrackType=proctrack/linuxproc
            TaskPlugin=task/none
            SelectType=select/linear
            SwitchType=switch/none
            JobAcctGatherType=jobacct_gather/none
            AccountingStorageType=accounting_storage/none
            SlurmdParameters=config_overrides
            ReturnToService=2
            Prolog={at}/prolog
            PrologFlags=Alloc
            Epilog={at}/epilog
            TaskProlog={at}/task-prolog
            NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs={CPUS} State=UNKNOWN
            PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=10
        """
        return "\n".join(map(str.strip, lines.strip().splitlines())) + "\n"

    def run(self, program, *arguments):
        log = open(self.directory / f"{program}{len(self.processes)}.out", "wb")  # the process keeps it open
        with log:
            self.processes.append(subprocess.Popen(list(map(str, (shutil.which(program, path=PATH), *arguments))),
                                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def call(self, program, *arguments, timeout=60, user=None, **environment):
        """Runs a client's command, as root may also as another user; an error after `timeout` seconds."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CEPHEUS_", "SLURM_", "OMPI_"))}
        return subprocess.run(list(map(str, (program, *arguments))), text=True, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL,
                              user=user, cwd=self.directory, env={**env, "SLURM_CONF": str(self.directory / "slurm.conf"), **environment})

    def srun(self, tasks, *command, options=(), **environment):
        return self.call("srun", "--mpi=pmix", "--overcommit", "-n", tasks, *options, *command, **environment)

    def logs(self):
        return "the end of\n" + "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}"
                                          for log in sorted(self.directory.glob("*.out")))

    def close(self):
        """Waits for the epilogs, which end jobs' fabrics. Then ends all processes of start(), the last first, and waits for them."""
        try:
            wait_until(lambda: not self.fabrics.is_dir() or not any(self.fabrics.iterdir()), "the epilog's end", 30)
        finally:
            for process in reversed(self.processes):
                end(process, ENDING_SECONDS)
            self.processes = []
            self._own.cleanup()
