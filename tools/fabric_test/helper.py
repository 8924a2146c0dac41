"""The program with a queue pair (pair_main.cc): a line there, a line back."""

import contextlib
import subprocess
import threading

from sockets import EmulatedSocket, KernelSocket

SOFT_DEVICE = "cepheus0"


class UnusablePair(Exception):
    """A command of a queue pair failed, here or at the peer."""


class Helper:
    program = None  # its path

    def __init__(self, device):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()
        self.is_emulated = device == SOFT_DEVICE  # it has no kernel interface
        self.sockets = {}  # EmulatedSocket, by number
        try:
            self.address, gid_index, mtu, qpn, self.device = self.do(f"open {device or '-'}")
        except UnusablePair:
            self.close()
            raise
        self.gid_index, self.mtu, self.qpn = int(gid_index), int(mtu), int(qpn)

    def close(self):
        with contextlib.suppress(OSError):  # it may have ended before a line reached it
            self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def begin(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            raise UnusablePair("the helper program ended") from None

    def end(self):
        """[words] of an answer, "ok" first; UnusablePair with the text of a failure."""
        words = self.process.stdout.readline().split()
        if words[:1] != ["ok"]:
            raise UnusablePair(" ".join(words[1:]) or "the helper program ended")
        return words[1:]

    def do(self, line):
        with self.lock:
            self.begin(line)
            return self.end()

    def counters(self):
        """Of an emulated NIC: {"cepheus0 rx_cnp": n}; others have theirs in sysfs."""
        words = self.do("counters")
        return {f"{self.device} {name}": int(value) for name, value in zip(words[::2], words[1::2])}

    def socket(self, source):
        """A new UDP socket of this host."""
        return EmulatedSocket(self) if self.is_emulated else KernelSocket(source)
