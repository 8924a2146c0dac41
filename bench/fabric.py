"""A cepheus-switch of a benchmark's own."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from switch_process import Switch, star  # noqa: E402

# mpirun's words that put Open MPI's own messages on the NIC, as UCX does on an RDMA network.
MESSAGES_OVER_NIC = ["--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any",
                     "-x", "UCX_TLS=rc_v,ud_v,self", "-x", "UCX_NET_DEVICES=cepheus0:1"]

# ... and MPICH's, between ranks of one machine, too.
MPICH_OVER_NIC = ["-genv", "MPIR_CVAR_NOLOCAL", "1", "-genv", "UCX_TLS", "rc_v,ud_v,self", "-genv", "UCX_NET_DEVICES", "cepheus0:1"]


class Fabric(Switch):
    """A star of `hosts`; `link` is the TOML of a link table, such as 'rate = "1Gbps"', `arguments` are cepheus-switch's."""

    def __init__(self, build, hosts=2, icrc="deferred", link="", arguments=()):
        super().__init__(build, *arguments, topology=star(hosts, link, fabric=f'icrc = "{icrc}"'))
