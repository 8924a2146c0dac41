"""What this host knows of its way to groups: route, interface, neighbour, settings. Runs ip, ethtool and devlink, and changes nothing."""

import json
import pathlib
import re
import subprocess

COMMAND_SECONDS = 10


def output_of(*command):
    """A command's output, or None if it fails or is not installed."""
    try:
        run = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=COMMAND_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout if run.returncode == 0 else None


def read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


class Way:
    """The route of a group's address; `dev` is None if there is none."""

    def __init__(self, group, source=None):
        self.group = group
        text = output_of("ip", "-j", "route", "get", group, *(["from", source] if source else []))
        route = (json.loads(text) if text else [{}])[0]
        self.dev, self.gateway = route.get("dev"), route.get("gateway")
        self.source = source or route.get("prefsrc")
        if route.get("type") not in (None, "unicast") or self.source is None:
            self.dev = None

    @property
    def hop(self):
        return self.gateway or self.group

    def mtu(self):
        return int(read(f"/sys/class/net/{self.dev}/mtu") or 0)

    def mac(self):
        return read(f"/sys/class/net/{self.dev}/address")

    def neighbour(self):
        """(state, MAC) of the next hop."""
        entries = json.loads(output_of("ip", "-j", "neigh", "show", self.hop, "dev", self.dev) or "[]")
        return (entries[0]["state"][0], entries[0].get("lladdr")) if entries else ("NONE", None)

    def reverse_path_filter(self):
        return max(int(read(f"/proc/sys/net/ipv4/conf/{of}/rp_filter") or 0) for of in ("all", self.dev))


class EmulatedWay:
    """Of a host of an emulated fabric: its NIC leads to the switch, without the kernel."""

    dev = gateway = None

    def __init__(self, group, helper):
        self.group, self.source, self._mtu = group, helper.address, helper.mtu
        self.hop = group

    def mtu(self):
        return self._mtu

    def mac(self):
        return None

    def neighbour(self):
        return "NONE", None


def reverse_path_drops():
    """Packets that this host's rp_filter has dropped so far."""
    lines = (read("/proc/net/netstat") or "").splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        found = dict(zip(names.split(), values.split()))
        if "IPReversePathFilter" in found:
            return int(found["IPReversePathFilter"])
    return 0


def counters(dev, device):
    """Counters of the interface and of RDMA devices: {"net rx_dropped": n, "mlx5_0 out_of_sequence": n, "ethtool rx_discards_phy": n}."""
    roots = {"net": pathlib.Path(f"/sys/class/net/{dev}/statistics")} if dev else {}
    for root in pathlib.Path("/sys/class/infiniband").glob(f"{device or '*'}/ports/1/hw_counters"):
        roots[root.parts[4]] = root
    found = {f"{name} {file.name}": read(file) for name, root in roots.items() if root.is_dir() for file in root.iterdir()}
    statistics = (output_of("ethtool", "-S", dev) or "") if dev else ""
    found.update((f"ethtool {name}", value) for name, value in re.findall(r"^\s*(\S+): (\d+)$", statistics, re.MULTILINE))
    return {name: int(value) for name, value in found.items() if value and value.isdigit()}


def growth(before, after):
    return {name: value - before[name] for name, value in after.items() if value > before.get(name, value)}


def interface_of(device):
    """The network interface of an RDMA device's first port, or None."""
    root = pathlib.Path("/sys/class/infiniband") / device / "ports/1/gid_attrs/ndevs"
    names = [read(entry) for entry in sorted(root.glob("*"), key=lambda p: int(p.name))] if root.is_dir() else []
    return next((name for name in names if name), None)


def identity(dev):
    """Driver, firmware, settings: for the report."""
    driver = pathlib.Path(f"/sys/class/net/{dev}/device/driver")
    bus = pathlib.Path(f"/sys/class/net/{dev}/device")
    commands = {"ethtool -i": ("ethtool", "-i", dev), "ethtool -k": ("ethtool", "-k", dev), "ethtool -a": ("ethtool", "-a", dev),
             "ethtool -l": ("ethtool", "-l", dev), "ethtool -S": ("ethtool", "-S", dev), "ibv_devinfo": ("ibv_devinfo", "-v"),
             "rdma link": ("rdma", "link"), "ip link": ("ip", "-d", "link", "show", dev)}
    if bus.exists():
        commands["devlink"] = ("devlink", "dev", "info", f"pci/{bus.resolve().name}")
        commands["devlink param"] = ("devlink", "dev", "param", "show", f"pci/{bus.resolve().name}")
    sysctls = {name: read(f"/proc/sys/net/ipv4/{name}") for name in
               ("ip_forward", "conf/all/rp_filter", f"conf/{dev}/rp_filter", "conf/all/arp_ignore", f"conf/{dev}/arp_ignore",
                "ip_no_pmtu_disc")}
    return {"driver": driver.resolve().name if driver.exists() else "none: a software interface", "mtu": read(f"/sys/class/net/{dev}/mtu"),
            "speed_mbps": read(f"/sys/class/net/{dev}/speed"), "sysctl": sysctls,
            "commands": {name: output_of(*words) for name, words in commands.items()}}
