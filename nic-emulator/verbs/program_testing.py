"""Shared by the tests of unmodified programs: a fabric of their own, and programs on its hosts."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from switch_process import Switch  # noqa: E402
from tcp_ports import free_port, is_listening  # noqa: E402, F401  for the tests

BUILD = os.environ["CEPHEUS_BUILD"]
LIBRARY = os.path.join(BUILD, "lib", "libcepheus-roce.so")
SWITCH = os.path.join(BUILD, "bin", "cepheus-switch")
CTL = os.path.join(BUILD, "bin", "cepheusctl")
TIME_LIMIT = 240  # seconds; more than any machine needs

# The environment without this machine's own settings.
CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(("CEPHEUS_", "LD_PRELOAD", "OMPI_", "PMI", "SLURM_"))}


class Fabric(Switch):
    """A switch process; with `topology` instead of a plain star if given, run by the command `before` it.

    Such a command may change the user. That user may have no access to the tree, so the files are copied to a readable place.
    """

    def __init__(self, hosts=2, topology=None, before=()):
        self.open_to_all = tempfile.TemporaryDirectory(prefix="cepheus-verbs-")
        directory = self.open_to_all.name
        os.chmod(directory, 0o777)
        switch, self.library = [shutil.copy(path, directory) for path in (SWITCH, LIBRARY)] if before else (SWITCH, LIBRARY)
        arguments = [] if topology else ["--hosts", hosts]
        super().__init__(BUILD, *arguments, topology=topology, path=f"{directory}/fabric", before=before, program=switch, env=CLEAN)

    def close(self):
        super().close()
        self.open_to_all.cleanup()

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
                              timeout=TIME_LIMIT, check=False)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def run_pair(self, *command, **environment):
        """A server on h0 and a client on h1; both must end well. Returns the client's output."""
        port = free_port()
        command = [*command, "-p", str(port)]
        server = subprocess.Popen(command, env=self.fabric.environment("h0", **environment), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        try:
            until = time.monotonic() + TIME_LIMIT
            while not is_listening(port):
                self.assertIsNone(server.poll(), "the server ended early")
                self.assertLess(time.monotonic(), until, "the server does not listen")
                os.sched_yield()
            client = subprocess.run([*command, "127.0.0.1"], env=self.fabric.environment("h1", **environment), capture_output=True,
                                    text=True, timeout=TIME_LIMIT, check=False)
            output = server.communicate(timeout=TIME_LIMIT)[0]
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
        everything = f"client:\n{client.stdout}{client.stderr}\nserver:\n{output}"
        self.assertEqual((client.returncode, server.returncode), (0, 0), everything)
        return client.stdout + client.stderr
