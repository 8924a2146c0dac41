"""The guest's first file system: busybox, the kernel's modules and `init`, as a newc cpio archive."""

import stat

BUSYBOX = "/bin/busybox"


class Archive:
    """newc (Documentation/driver-api/early-userspace/buffer-format.rst): headers of 13 hexadecimal fields."""

    def __init__(self):
        self.parts = []
        self.entries = 0

    def add(self, name, mode, data=b""):
        self.entries += 1
        fields = [self.entries, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        header = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        self.parts += [padded(header), padded(data)]

    def bytes(self):
        self.add("TRAILER!!!", 0)
        return b"".join(self.parts)


def padded(data):
    return data + b"\0" * (-len(data) % 4)


def build(modules, init):
    """`modules`: (file name, bytes) in load order; `init`: the script that the kernel runs first."""
    archive = Archive()
    for directory in ("bin", "modules", "proc", "sys", "dev", "ro", "rw", "root"):
        archive.add(directory, stat.S_IFDIR | 0o755)
    with open(BUSYBOX, "rb") as file:
        archive.add("bin/busybox", stat.S_IFREG | 0o755, file.read())
    archive.add("init", stat.S_IFREG | 0o755, init)
    for name, data in modules:
        archive.add(f"modules/{name}", stat.S_IFREG | 0o644, data)
    archive.add("modules/order", stat.S_IFREG | 0o644, "".join(f"{name}\n" for name, _ in modules).encode())
    return archive.bytes()
