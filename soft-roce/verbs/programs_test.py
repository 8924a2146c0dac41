#!/usr/bin/python3
"""Programs from libibverbs and perftest, unmodified, over the preloaded library: what users run first."""

import os
import re
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
    """A switch process; with `topology` instead of a plain star if given."""

    def __init__(self, hosts=2, topology=None):
        self.directory = tempfile.TemporaryDirectory(prefix="cepheus-verbs-")
        self.socket = os.path.join(self.directory.name, "fabric")
        arguments = ["--hosts", str(hosts)]
        if topology:
            path = os.path.join(self.directory.name, "topology.toml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(topology)
            arguments = ["--topology", path]
        read_end, write_end = os.pipe()
        self.process = subprocess.Popen([SWITCH, *arguments, "--socket", self.socket, "--ready-fd", str(write_end)],
                                        env=CLEAN, pass_fds=(write_end,))
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            if not ready.readline().startswith("ready"):
                raise RuntimeError("cepheus-switch does not start")

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.directory.cleanup()

    def environment(self, host=None, **more):
        env = {**CLEAN, "LD_PRELOAD": LIBRARY, "CEPHEUS_FABRIC": self.socket, **more}
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

    def run_pair(self, *command):
        """A server on h0 and a client on h1; both must end well. Returns the client's output."""
        port = free_port()
        command = [*command, "-p", str(port)]
        server = subprocess.Popen(command, env=self.fabric.environment("h0"), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        try:
            until = time.monotonic() + PATIENCE
            while not is_listening(port):
                self.assertIsNone(server.poll(), "the server ended early")
                self.assertLess(time.monotonic(), until, "the server does not listen")
                os.sched_yield()
            client = subprocess.run([*command, "127.0.0.1"], env=self.fabric.environment("h1"), capture_output=True,
                                    text=True, timeout=PATIENCE, check=False)
            told = server.communicate(timeout=PATIENCE)[0]
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
        everything = f"client:\n{client.stdout}{client.stderr}\nserver:\n{told}"
        self.assertEqual((client.returncode, server.returncode), (0, 0), everything)
        return client.stdout


class Devinfo(Programs):
    def test_tells_what_the_nic_is(self):
        told = self.run_program("ibv_devinfo", "-v")
        for field, value in {"hca_id": "cepheus0", "node_guid": "0200:0000:0a00:0001", "phys_port_cnt": "1",
                             "state": r"PORT_ACTIVE \(4\)", "active_mtu": r"4096 \(5\)", "link_layer": "Ethernet",
                             "gid_tbl_len": "1", "pkey_tbl_len": "1", "phys_state": r"LINK_UP \(5\)",
                             "atomic_cap": r"ATOMIC_HCA \(1\)", "max_srq": "1024", "max_qp_rd_atom": "16", "board_id": "cepheus",
                             r"GID\[  0\]": r"::ffff:10\.0\.0\.1, RoCE v2"}.items():
            self.assertRegex(told, rf"(?m)^\s*{field}:\s+{value}$")

    def test_devices_lists_each_host_under_its_own_guid(self):
        for host, guid in ("h0", "020000000a000001"), ("h1", "020000000a000002"), ("10.0.0.2", "020000000a000002"), \
                          ("#1", "020000000a000002"):
            self.assertIn(guid, self.run_program("ibv_devices", env=self.fabric.environment(host)))

    def test_a_launchers_rank_is_the_hosts_index(self):
        told = self.run_program("ibv_devices", env=self.fabric.environment(OMPI_COMM_WORLD_RANK="1"))
        self.assertIn("020000000a000002", told)

    def test_the_preload_is_inherited_by_what_a_program_executes(self):
        self.assertIn("cepheus0", self.run_program("sh", "-c", "exec env ibv_devinfo"))

    def test_an_unknown_host_is_refused_with_the_hosts_there_are(self):
        told = self.run_program("ibv_devinfo", env=self.fabric.environment("h9"), expect=1)
        self.assertIn("cepheus: can't open cepheus0: no host 'h9' in the fabric: it has h0 .. h1", told)

    def test_a_shaped_link_shows_its_speed(self):
        fabric = Fabric(topology='[link]\nrate = "10Gbps"\n[[switch]]\nname = "s0"\n'
                                 '[[host]]\nname = "h0"\naddress = "10.0.0.1"\n')
        self.addCleanup(fabric.close)
        told = self.run_program("ibv_devinfo", "-v", env=fabric.environment("h0"))
        self.assertRegex(told, r"active_width:\s+1X \(1\)\n\s+active_speed:\s+10\.0 Gbps \(4\)")


class WithoutFabric(Programs):
    def test_no_variable_no_device_and_no_word(self):
        env = {**CLEAN, "LD_PRELOAD": LIBRARY}
        with_library = subprocess.run(["ibv_devinfo"], env=env, capture_output=True, text=True, check=False)
        without = subprocess.run(["ibv_devinfo"], env=CLEAN, capture_output=True, text=True, check=False)
        self.assertEqual((with_library.returncode, with_library.stdout, with_library.stderr),
                         (without.returncode, without.stdout, without.stderr))

    def test_a_dead_fabric_is_an_empty_list_and_the_reason_on_request(self):
        env = {**CLEAN, "LD_PRELOAD": LIBRARY, "CEPHEUS_FABRIC": "/nowhere/fabric"}
        told = self.run_program("ibv_devinfo", env=env, expect=255)
        self.assertIn("No IB devices found", told)
        self.assertNotIn("cepheus", told)
        told = self.run_program("ibv_devinfo", env={**env, "CEPHEUS_VERBOSE": "1"}, expect=255)
        self.assertIn("/nowhere/fabric: no such socket; start cepheus-switch", told)

    def test_programs_that_use_no_verbs_do_not_notice(self):
        env = {**CLEAN, "LD_PRELOAD": LIBRARY, "CEPHEUS_FABRIC": "/nowhere/fabric"}
        self.assertEqual(self.run_program("cat", "/proc/sys/kernel/ostype", env=env), "Linux\n")


class Pingpong(Programs):
    def pingpong(self, *options):
        told = self.run_pair("ibv_rc_pingpong", "-g", "0", *options)
        self.assertRegex(told, r"\d+ bytes in .* seconds")
        return told

    def test_defaults(self):
        self.assertIn("1000 iters", self.pingpong())

    def test_large_messages(self):
        self.pingpong("-s", "65536")

    def test_many_small_ones(self):
        self.pingpong("-s", "8", "-n", "5000")

    def test_every_mtu(self):
        for mtu in 256, 512, 1024, 2048, 4096:
            self.pingpong("-m", str(mtu), "-s", "10000", "-n", "200")

    def test_few_receives_posted(self):
        self.pingpong("-r", "1", "-n", "500")
        self.pingpong("-r", "2", "-n", "500")

    def test_asleep_between_messages(self):
        self.pingpong("-e", "-n", "500")

    def test_one_host_for_two_processes_is_refused(self):
        port = free_port()
        first = subprocess.Popen(["ibv_rc_pingpong", "-g", "0", "-p", str(port)], env=self.fabric.environment("h0"),
                                 stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + PATIENCE
            while not is_listening(port):
                self.assertLess(time.monotonic(), until)
                os.sched_yield()
            told = self.run_program("ibv_rc_pingpong", "-g", "0", expect=1)
            self.assertIn(f"host h0 is held by pid {first.pid}", told)
        finally:
            first.kill()
            first.wait()


class Perftest(Programs):
    def perftest(self, program, *options):
        return self.run_pair(program, "-d", "cepheus0", "-x", "0", *options)

    def test_send(self):
        self.perftest("ib_send_bw", "-n", "500")
        self.perftest("ib_send_lat", "-n", "500")

    def test_write(self):
        self.perftest("ib_write_bw", "-n", "500")

    def test_both_directions_and_several_qps(self):
        self.perftest("ib_send_bw", "-n", "300", "-b")
        self.perftest("ib_write_bw", "-n", "300", "-q", "4")

    def test_asleep_between_completions(self):
        self.perftest("ib_send_bw", "-n", "300", "-e")
        self.perftest("ib_send_lat", "-n", "300", "-e")


class Counters(Programs):
    def test_verbose_prints_them_at_the_end(self):
        told = self.run_program("ibv_devinfo", env=self.fabric.environment("h1", CEPHEUS_VERBOSE="1"))
        self.assertIn(f"cepheus: attached to {self.fabric.socket} as h1, 10.0.0.2", told)
        self.assertRegex(told, r"cepheus: counters of h1:\ntx_packets 0\n")
        self.assertTrue(re.search(r"(?m)^rx_drop_icrc 0$", told))


class OverLoss(Programs):
    topology = ('[link]\nloss = 0.01\n[[switch]]\nname = "s0"\n'
                '[[host]]\nname = "h0"\naddress = "10.0.0.1"\n[[host]]\nname = "h1"\naddress = "10.0.0.2"\n')

    # Programs that part by a handshake of their own; ibv_rc_pingpong leaves as soon as it has what it wants, and its
    # peer's last packet may be the one that was lost.
    def test_bandwidth_tests_finish(self):
        self.run_pair("ib_write_bw", "-d", "cepheus0", "-x", "0", "-n", "200", "-s", "16384")
        self.run_pair("ib_send_bw", "-d", "cepheus0", "-x", "0", "-n", "200", "-s", "16384")
        status = subprocess.run([CTL, "--socket", self.fabric.socket, "--json", "ports"], env=CLEAN,
                                capture_output=True, text=True, check=True).stdout
        self.assertTrue(re.search(r'"dropped_loss": ?[1-9]', status), "the links lost nothing: nothing was tested")


class CheckedOnEveryHop(Programs):
    topology = ('[fabric]\nicrc = "always"\n[[switch]]\nname = "s0"\n'
                '[[host]]\nname = "h0"\naddress = "10.0.0.1"\n[[host]]\nname = "h1"\naddress = "10.0.0.2"\n')

    def test_pingpong(self):
        self.run_pair("ibv_rc_pingpong", "-g", "0", "-n", "500")


if __name__ == "__main__":
    unittest.main()
