"""Debian's kernel for the lab: fetched with apt from the machine's own sources, unpacked, cached."""

import lzma
import os
import pathlib
import re
import shutil
import subprocess

# The cloud flavour has neither rdma_rxe nor 9p.
METAPACKAGE = "linux-image-amd64"
# A guest's modules; their files name the dependencies. rdma_rxe requests crc32 by name, ext4 crc32c.
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay", "veth", "crc32_generic", "crc32_pclmul", "rdma_rxe", "crc32c_generic", "ext4",
           "nbd", "virtio_net")
XZ_MAGIC = b"\xfd7zXZ\0"
ELF_MAGIC = b"\x7fELF"


APT_GET = str(pathlib.Path(__file__).resolve().parents[2] / "tools/debian/apt_get.sh")  # waits for apt's locks


class Unavailable(Exception):
    """The lab is not available on this machine; the text has the reason and the remedy."""


def run(*command, cwd=None):
    completed = subprocess.run(command, cwd=cwd, text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    if completed.returncode != 0:
        last = (completed.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"{' '.join(command[:2])} failed: {last}")
    return completed.stdout


def newest_image():
    """The package that linux-image-amd64 depends on, by the machine's package lists."""
    if run("dpkg", "--print-architecture").strip() != "amd64":
        raise Unavailable("the lab boots Debian's kernel for amd64, and this machine is another architecture")
    for attempt in range(2):
        found = re.findall(r"Depends: (linux-image-[\w.+-]+)", run("apt-cache", "depends", METAPACKAGE) if attempt or
                           has_lists() else "")
        if found:
            return found[0]
        if os.geteuid() != 0:
            raise Unavailable(f"the package lists do not know {METAPACKAGE}; as root: apt-get update")
        run(APT_GET, "update")
    raise Unavailable(f"the machine's package sources have no {METAPACKAGE}")


def has_lists():
    return METAPACKAGE in run("apt-cache", "pkgnames", METAPACKAGE)


def fetch(directory):
    image = newest_image()
    run("apt-get", "-o", "APT::Sandbox::User=root", "download", image, cwd=directory)  # takes no lock
    return next(pathlib.Path(directory).glob("linux-image-*.deb"))


def uncompressed(vmlinuz):
    """The ELF image inside a bzImage: QEMU boots it in half the time that the guest takes to unpack it."""
    start = vmlinuz.find(XZ_MAGIC)
    if start < 0:
        return None
    try:
        image = lzma.LZMADecompressor().decompress(vmlinuz[start:])
    except lzma.LZMAError:
        return None
    return image if image.startswith(ELF_MAGIC) else None


def module_name(path):
    return path.name.split(".ko")[0].replace("-", "_")


def module_bytes(path):
    """Debian 13 compresses modules."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def dependencies(module):
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return [name.replace("-", "_") for name in found.group(1).decode().split(",") if name] if found else []


def in_load_order(wanted, modules):
    """`wanted` and their dependencies, each after its own. Absent modules are part of the kernel image."""
    order = []

    def add(name):
        if name in order or name not in modules:
            return
        for needed in dependencies(modules[name]):
            add(needed)
        order.append(name)

    for name in wanted:
        add(name)
    return order


class Kernel:
    """A kernel in the cache: `image`, and `modules`, a list of (name, bytes) in load order."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.image = self.directory / "vmlinux"
        self.initramfs = self.directory / "initramfs"
        self.version = (self.directory / "version").read_text().strip()

    @property
    def modules(self):
        return [(path.name.split("-", 1)[1], path.read_bytes()) for path in sorted(self.directory.glob("modules/*"))]

    @staticmethod
    def cached(cache):
        """The kernel in `cache`, fetched if there is none yet, or one with other modules. Raises Unavailable."""
        directory = pathlib.Path(cache) / "kernel"
        requested = directory / "asked"
        if not (directory / "version").exists() or not requested.exists() or requested.read_text().split() != list(MODULES):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            Kernel._unpack(fetch(directory), directory)
        return Kernel(directory)

    @staticmethod
    def _unpack(package, directory):
        tree = directory / "tree"
        run("dpkg-deb", "-x", str(package), str(tree))
        vmlinuz = next(tree.glob("boot/vmlinuz-*"))
        packed = vmlinuz.read_bytes()
        (directory / "vmlinux").write_bytes(uncompressed(packed) or packed)
        found = [path for root in ("lib", "usr/lib") for path in tree.glob(f"{root}/modules/*/kernel/**/*.ko*")]  # Debian 12's, and 13's
        files = {module_name(path): path for path in found}
        contents = {name: module_bytes(path) for name, path in files.items()}
        (directory / "modules").mkdir(exist_ok=True)
        for place, name in enumerate(in_load_order(MODULES, contents)):
            (directory / "modules" / f"{place:03}-{name}.ko").write_bytes(contents[name])
        (directory / "asked").write_text("\n".join(MODULES) + "\n")
        # Last: it marks the cache as complete.
        (directory / "version").write_text(vmlinuz.name.removeprefix("vmlinuz-") + "\n")
        run("rm", "-rf", str(tree), str(package))
