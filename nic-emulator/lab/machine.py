"""One virtual machine: boots, runs a command, returns its output and exit code."""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
QEMU = "qemu-system-x86_64"
PACKAGES = "qemu-system-x86 busybox-static"
# mitigations=off, tsc=reliable: emulation needs no mitigations and no clock checks, and the guest is faster.
KERNEL_LINE = "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable random.trust_cpu=on"
TIMED_OUT = 124
FAILED = 125
LOOK_SECONDS = 0.05


class Machine:
    """A guest of `kernel` with the project at the same path as here. It ends with run().

    `memory`: MiB. `nodes`: NUMA nodes, each with `cores`; each but the first has a network interface. `systemd`: runs it in the guest,
    without this machine's own services."""

    def __init__(self, kernel, project, build, hosts=4, switch=True, memory=1536, nodes=1, cores=2, accelerator="tcg",
                 systemd=False):
        self.kernel = kernel
        self.parameters = {"project": project, "build": build, "hosts": hosts, "switch": "yes" if switch else "no",
                           "systemd": "yes" if systemd else "no", "terminal": os.environ.get("TERM", "dumb")}
        self.memory, self.nodes, self.cores, self.accelerator = memory, nodes, cores, accelerator

    def command_line(self, share, interactive):
        console = "stdio,id=console,signal=off" if interactive else f"file,id=console,path={share}/console"
        threads = "multi" if self.nodes * self.cores <= os.cpu_count() else "single"  # more threads than cores wait for each other
        accelerator = f"tcg,thread={threads}" if self.accelerator == "tcg" else self.accelerator
        return [QEMU, "-M", "q35,i8042=off", "-accel", accelerator, "-cpu", "max",
                "-m", str(self.memory), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                "-chardev", console, "-serial", "chardev:console",
                "-kernel", str(self.kernel.image), "-initrd", str(self.kernel.initramfs), "-append", KERNEL_LINE,
                "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
                "-virtfs", f"local,path={share},mount_tag=lab,security_model=none",
                *self._places()]  # behind the shares, or those would be at the last node

    def _places(self):
        """Cores and memory, and their nodes."""
        words = ["-smp", f"{self.nodes * self.cores},sockets={self.nodes},cores={self.cores},threads=1"]
        if self.nodes == 1:
            return words
        for node in range(self.nodes):
            first = node * self.cores
            words += ["-object", f"memory-backend-ram,id=memory{node},size={self.memory // self.nodes}M",
                      "-numa", f"node,nodeid={node},memdev=memory{node},cpus={first}-{first + self.cores - 1}"]
        for node in range(1, self.nodes):
            words += ["-device", f"pxb-pcie,id=root{node},bus=pcie.0,bus_nr={32 * node},numa_node={node}",
                      "-device", f"pcie-root-port,id=port{node},bus=root{node},chassis={node}",
                      "-netdev", f"user,id=net{node},restrict=on", "-device", f"virtio-net-pci,bus=port{node},netdev=net{node},romfile="]
        return words

    def run(self, command, seconds=None):
        """Runs `command` (words; none: a shell here) and prints its output. Its exit code; 124: it took longer
        than `seconds`; 125: the machine did not boot, or failed."""
        share = pathlib.Path(tempfile.mkdtemp(prefix="cepheus-lab-"))
        try:
            for name, value in self.parameters.items():
                (share / name).write_text(f"{value}\n")
            (share / "command").write_text(" ".join(map(shlex.quote, command)))
            (share / "start").write_text(f"exec /bin/bash {shlex.quote(str(self.parameters['project']))}/nic-emulator/lab/guest.sh\n")
            shutil.copy(HERE / "lab.service", share)
            interactive = not command
            qemu = subprocess.Popen(self.command_line(share, interactive), stdin=None if interactive else subprocess.DEVNULL)
            try:
                in_time = self._wait(qemu, share, None if interactive else seconds)
            finally:
                if qemu.poll() is None:
                    qemu.kill()
                    qemu.wait()
            return self._code(share, in_time)
        finally:
            shutil.rmtree(share, ignore_errors=True)

    def _wait(self, qemu, share, seconds):
        """Waits until the machine is off; false if that takes too long."""
        pipes = [Pipe(share / "stdout", sys.stdout.buffer), Pipe(share / "stderr", sys.stderr.buffer)]
        give_up = time.monotonic() + seconds if seconds else None
        while qemu.poll() is None:
            if (share / "code").exists():
                break
            if give_up and time.monotonic() > give_up:
                break
            for pipe in pipes:
                pipe.pass_on()
            time.sleep(LOOK_SECONDS)
        for pipe in pipes:
            pipe.pass_on()
        return not give_up or time.monotonic() <= give_up or (share / "code").exists()

    def _code(self, share, in_time):
        if (share / "code").exists():
            return int((share / "code").read_text())
        if not in_time:
            print("lab: the time limit has passed: give a longer one", file=sys.stderr)
            return TIMED_OUT
        console = share / "console"
        words = console.read_text(errors="replace") if console.exists() else ""
        print("lab: the machine ended without an exit code; its console's output:\n" + words[-4000:], file=sys.stderr)
        return FAILED


class Pipe:
    """Copies the new part of a growing file."""

    def __init__(self, path, out):
        self.path, self.out, self.offset = path, out, 0

    def pass_on(self):
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                data = file.read()
        except FileNotFoundError:
            return
        self.offset += len(data)
        self.out.write(data)
        self.out.flush()
