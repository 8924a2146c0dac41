"""A cepheus-switch of a benchmark's own: started, its socket and pid known, ended."""

import os
import pathlib
import subprocess
import sys
import tempfile

# mpirun's words that put Open MPI's own messages on the NIC, as UCX does on an RDMA network.
MESSAGES_OVER_NIC = ["--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any",
                     "-x", "UCX_TLS=rc_v,ud_v,self", "-x", "UCX_NET_DEVICES=cepheus0:1"]


class Fabric:
    """A star of `hosts`; `link` is the TOML of a link table, such as 'rate = "1Gbps"'."""

    def __init__(self, build, hosts=2, icrc="deferred", link=""):
        self.scratch = tempfile.TemporaryDirectory(prefix="cepheus-bench-")
        self.directory = pathlib.Path(self.scratch.name)
        self.socket = str(self.directory / "fabric")
        topology = self.directory / "fabric.toml"
        names = "".join(f'[[host]]\nname = "h{i}"\naddress = "10.0.0.{i + 1}"\n' for i in range(hosts))
        topology.write_text(f'[fabric]\nicrc = "{icrc}"\n[link]\n{link}\n[[switch]]\nname = "s0"\n{names}')
        read, write = os.pipe()
        self.process = subprocess.Popen([build / "bin/cepheus-switch", "--topology", topology, "--socket", self.socket,
                                         "--ready-fd", str(write)], pass_fds=[write])
        os.close(write)
        ready = os.read(read, 64)
        os.close(read)
        if not ready:
            sys.exit("bench: cepheus-switch did not start")
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        self.process.wait()
        self.scratch.cleanup()
