"""Hosts and a one-armed switch in network namespaces, on a plain Linux bridge or behind a router.

Each namespace of a host has a wire_host. The emulated NIC's processes attach to it: they run beside mpirun and are that host.
Between the hosts and the switch is only the kernel's bridge or its forwarding.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(PROJECT / "tools"), str(PROJECT / "tests/e2e")]
import harness  # noqa: E402
import live  # noqa: E402

BUILD = harness.BUILD
HOSTS = 4
MTU = 4096
WIRE_MTU = 4210  # of Ethernet, for packets of MTU
SMALL, USUAL_MTU = 1024, 1500  # the same for interfaces as they usually are
POOL = "198.18.0.0/15"
DPDK = 'one_armed_dpdk = "net_af_packet0,iface=eth0,framesz=8192,blocksz=65536"'
HAS_DPDK = "CEPHEUS_DPDK_BUILT:INTERNAL=1" in (BUILD / "CMakeCache.txt").read_text()
ROUTE_OF_POOL = ["route", "add", POOL]


class CantHave(Exception):
    """This machine lacks a feature, which the text names."""


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


def at_a_mount():
    """`ip netns exec` needs a mount at "/", which a chroot lacks: there this program runs again below a mount."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        if os.geteuid() != 0 or any(line.split()[4] == "/" for line in mounts):
            return
    below = 'mount --rbind / "$0" && chroot "$0" "$@"; code=$?; umount --lazy "$0"; exit $code'
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", below, "/mnt",
                          sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]])


class Network:
    """Namespaces h0.. of hosts, `box` of the switch, and `net` between them; removed after the `with` block.

    `rates` of what `hosts` and the `box` send, in Mb/s; others have no limit. `mtus` of interfaces that carry less than packets of MTU.
    """

    def __init__(self, routed=False, rates=None, mtus=None):
        self.routed, self.rates, self.mtus = routed, rates or {}, mtus or {}
        self.prefix = f"cepheus{os.getpid()}"
        self.hosts = [f"10.0.{i + 1}.2" if routed else f"10.0.0.{i + 1}" for i in range(HOSTS)]
        self.box = "10.0.100.2" if routed else "10.0.0.254"

    def name(self, which):
        return f"{self.prefix}-{which}"

    def __enter__(self):
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise CantHave("network namespaces need root and iproute2; run the test as root, apt-get install iproute2")
        self.undo = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            try:
                self._make(stack)
            except subprocess.CalledProcessError as error:
                raise CantHave(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from None
            self.undo = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.undo.close()

    def _make(self, stack):
        for which in ["net", "box", *(f"h{i}" for i in range(HOSTS))]:
            ip("netns", "add", self.name(which))
            stack.callback(subprocess.run, ["ip", "netns", "del", self.name(which)], check=False)
            self._in(which, "link", "set", "lo", "up")
            # A new namespace forwards if the machine does, as with containers.
            self._run(which, "sysctl", "-qw", f"net.ipv4.ip_forward={int(self.routed and which == 'net')}")
        if not self.routed:
            self._in("net", "link", "add", "br0", "type", "bridge")
            self._in("net", "link", "set", "br0", "mtu", WIRE_MTU, "up")
        for which, address in zip(["box", *(f"h{i}" for i in range(HOSTS))], [self.box, *self.hosts]):
            self._plug(which, address)
        if self.routed:
            self._in("net", *ROUTE_OF_POOL, "via", self.box)

    def _plug(self, which, address):
        """A cable from the namespace to the bridge, or to a port of the router's with the network's address .1."""
        ip("link", "add", "name", "eth0", "mtu", self.mtus.get(which, WIRE_MTU), "netns", self.name(which), "type", "veth",
           "peer", "name", which, "mtu", WIRE_MTU, "netns", self.name("net"))
        if self.routed:
            router = address.rsplit(".", 1)[0] + ".1"
            self._in("net", "address", "add", f"{router}/24", "dev", which)
        else:
            self._in("net", "link", "set", which, "master", "br0")
        self._in("net", "link", "set", which, "up")
        self._in(which, "address", "add", f"{address}/24", "dev", "eth0")
        self._in(which, "link", "set", "eth0", "up")
        if rate := self.rates.get("box" if which == "box" else "hosts"):
            # A short queue, so that the rest waits in the sender's own ring.
            self._run(which, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{rate}mbit", "burst", "128k", "limit", "256k")
        if self.routed:
            self._in(which, "route", "add", "default", "via", router)
        elif which != "box":
            self._in(which, *ROUTE_OF_POOL, "via", self.box)

    def _in(self, which, *words):
        ip("-n", self.name(which), *words)

    def _run(self, which, *words):
        subprocess.run([*self.inside(which), *words], check=True, capture_output=True, text=True)

    def inside(self, which):
        """The first words of a command that runs there."""
        return ["ip", "netns", "exec", self.name(which)]

    def topology(self, loss=0.0, hosts="", fabric=""):
        """The box's topology file; `hosts` is additional TOML for each host, `fabric` for the fabric."""
        text = f"[fabric]\nmtu = {MTU}\none_armed = \"eth0\"\n{fabric}\n[link]\nloss = {loss}\n"
        for i, address in enumerate(self.hosts):
            text += f"[[host]]\nname = \"h{i}\"\naddress = \"{address}\"\n{hosts}\n"
        return text


class Site:
    """The network with its one-armed switch and all wire_hosts running."""

    def __init__(self, routed=False, rates=None, mtus=None, **topology):
        self.network = Network(routed, rates, mtus)
        self.topology = topology

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.network)
            self.directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="cepheus-onearmed-"))
            self.switch = stack.enter_context(live.Switch(
                topology=self.network.topology(**self.topology), before=self.network.inside("box")))
            for i, address in enumerate(self.network.hosts):
                stack.enter_context(self._wire_host(i, address))
            self.undo = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.undo.close()

    @contextlib.contextmanager
    def _wire_host(self, i, address):
        command = [*self.network.inside(f"h{i}"), BUILD / "tests/wire_host", "eth0", address, f"{self.directory}/h{i}",
                   SMALL if f"h{i}" in self.network.mtus else MTU]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
            try:
                if process.stdout.readline() != "ready\n":
                    raise RuntimeError(f"wire_host of h{i} did not start")
                yield
            finally:
                process.kill()

    def command(self, program, *arguments, mca):
        """An MPI program, a rank a host."""
        attach = f'export CEPHEUS_FABRIC={self.directory}/h$OMPI_COMM_WORLD_RANK LD_PRELOAD={BUILD}/lib/libcepheus-roce.so; ' \
                 'exec "$0" "$@"'
        return ["mpirun", "-np", str(HOSTS), "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--mca", "pml", "ob1",
                "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1",
                "--mca", "mca_base_component_path", f"SYSTEM_DEFAULT:{BUILD}/lib/openmpi",
                "--mca", "coll_cepheus_ranks_per_host", "-1", "--mca", "coll_cepheus_set_up_after", "0", *harness.mca_arguments(mca),
                "sh", "-c", attach, str(program), *map(str, arguments)]

    def run(self, program, *arguments, mca, timeout=120):
        return harness.Run(harness.finish(self.command(program, *arguments, mca=mca), timeout), self.switch.status())


class SiteRun(live.LiveRun):
    """A program on a site, which runs while a test changes the site."""

    def __init__(self, site, *arguments, mca):
        self.site = site
        super().__init__(*arguments, hosts=HOSTS, mca=mca)

    def fabric(self, arguments, program):
        return self.site.switch

    def command(self, mca, program):
        return self.site.command(*program, mca=mca)
