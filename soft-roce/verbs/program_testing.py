"""What the tests of unmodified programs share: a fabric of their own, and programs run on its hosts."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

BUILD = os.environ["CEPHEUS_BUILD"]
LIBRARY = os.path.join(BUILD, "lib", "libcepheus-roce.so")
SWITCH = os.path.join(BUILD, "bin", "cepheus-switch")
CTL = os.path.join(BUILD, "bin", "cepheusctl")
PATIENCE = 60  # seconds; more than any machine needs

# What a program sees of the fabric of this test alone.
CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(("CEPHEUS_", "LD_PRELOAD", "OMPI_", "PMI", "SLURM_"))}


def free_port():
    """A TCP port for a program's own exchange of addresses."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_listening(port):
    """Whether somebody listens there, without connecting: these servers accept one client only."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in table)


class Fabric:
    """A switch process; with `topology` instead of a plain star if given, run by the command `before` it.

    Such a command may change the user, and the tree may lie where that one can't look: copies of what it needs can be read by all.
    """

    def __init__(self, hosts=2, topology=None, before=()):
        self.directory = tempfile.TemporaryDirectory(prefix="cepheus-verbs-")
        self.socket = os.path.join(self.directory.name, "fabric")
        os.chmod(self.directory.name, 0o777)
        switch, self.library = [shutil.copy(path, self.directory.name) for path in (SWITCH, LIBRARY)] if before else (SWITCH, LIBRARY)
        arguments = ["--hosts", str(hosts)]
        if topology:
            path = os.path.join(self.directory.name, "topology.toml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(topology)
            arguments = ["--topology", path]
        read_end, write_end = os.pipe()
        self.process = subprocess.Popen([*before, switch, *arguments, "--socket", self.socket, "--ready-fd", str(write_end)],
                                        env=CLEAN, pass_fds=(write_end,))
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            if not ready.readline().startswith("ready"):
                self.close()
                raise RuntimeError("cepheus-switch does not start")

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.directory.cleanup()

    def environment(self, host=None, **more):
        env = {**CLEAN, "LD_PRELOAD": self.library, "CEPHEUS_FABRIC": self.socket, **more}
        if host:
            env["CEPHEUS_HOST"] = host
        return env


class Programs(unittest.TestCase):
    topology = None

    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric(topology=cls.topology)

    @classmethod
    def tearDownClass(cls):
        cls.fabric.close()

    def run_program(self, *command, env=None, expect=0):
        done = subprocess.run(command, env=env or self.fabric.environment("h0"), capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def run_pair(self, *command, **environment):
        """A server on h0 and a client on h1; both must end well. Returns the client's output."""
        port = free_port()
        command = [*command, "-p", str(port)]
        server = subprocess.Popen(command, env=self.fabric.environment("h0", **environment), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        try:
            until = time.monotonic() + PATIENCE
            while not is_listening(port):
                self.assertIsNone(server.poll(), "the server ended early")
                self.assertLess(time.monotonic(), until, "the server does not listen")
                os.sched_yield()
            client = subprocess.run([*command, "127.0.0.1"], env=self.fabric.environment("h1", **environment), capture_output=True,
                                    text=True, timeout=PATIENCE, check=False)
            told = server.communicate(timeout=PATIENCE)[0]
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
        everything = f"client:\n{client.stdout}{client.stderr}\nserver:\n{told}"
        self.assertEqual((client.returncode, server.returncode), (0, 0), everything)
        return client.stdout
