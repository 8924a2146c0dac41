#!/usr/bin/python3
"""Programs from libibverbs and perftest, unmodified, over the preloaded library: users run these first."""

import os
import re
import subprocess
import sys
import time
import unittest

from program_testing import BUILD, CLEAN, CTL, LIBRARY, TIME_LIMIT, Fabric, Programs, free_port, is_listening


class Devinfo(Programs):
    def test_shows_the_nics_attributes(self):
        output = self.run_program("ibv_devinfo", "-v")
        for field, value in {"hca_id": "cepheus0", "node_guid": "0200:0000:0a00:0001", "phys_port_cnt": "1",
                             "state": r"PORT_ACTIVE \(4\)", "active_mtu": r"4096 \(5\)", "link_layer": "Ethernet",
                             "gid_tbl_len": "1", "pkey_tbl_len": "1", "phys_state": r"LINK_UP \(5\)",
                             "atomic_cap": r"ATOMIC_HCA \(1\)", "max_srq": "1024", "max_qp_rd_atom": "16", "board_id": "cepheus",
                             r"GID\[  0\]": r"::ffff:10\.0\.0\.1, RoCE v2"}.items():
            self.assertRegex(output, rf"(?m)^\s*{field}:\s+{value}$")

    def test_devices_lists_each_host_under_its_own_guid(self):
        for host, guid in ("h0", "020000000a000001"), ("h1", "020000000a000002"), ("10.0.0.2", "020000000a000002"), \
                          ("#1", "020000000a000002"):
            self.assertIn(guid, self.run_program("ibv_devices", env=self.fabric.environment(host)))

    def test_a_launchers_rank_is_the_hosts_index(self):
        output = self.run_program("ibv_devices", env=self.fabric.environment(OMPI_COMM_WORLD_RANK="1"))
        self.assertIn("020000000a000002", output)

    def test_programs_that_a_program_executes_inherit_the_preload(self):
        self.assertIn("cepheus0", self.run_program("sh", "-c", "exec env ibv_devinfo"))

    def test_an_unknown_host_is_refused_with_a_list_of_hosts(self):
        output = self.run_program("ibv_devinfo", env=self.fabric.environment("h9"), expect=1)
        self.assertIn("cepheus: can't open cepheus0: no host 'h9' in the fabric: it has h0 .. h1", output)

    def test_impossible_congestion_control_is_refused_with_the_possible_values(self):
        output = self.run_program("ibv_devinfo", env=self.fabric.environment("h0", CEPHEUS_CONGESTION="orig,fast"), expect=1)
        self.assertIn("cepheus: can't open cepheus0: CEPHEUS_CONGESTION: congestion control 'orig,fast': 'fast' is not cnp, ce-echo or NAME=NUMBER", output)

    def test_a_make_of_nic_is_named_at_the_start_and_an_unknown_one_refused_with_a_list(self):
        output = self.run_pair("ibv_rc_pingpong", "-g", "0", "-s", "65536", CEPHEUS_NIC_PROFILE="connectx")
        self.assertIn("cepheus: cepheus0 has the manners of connectx (CEPHEUS_NIC_PROFILE): no window of packets", output)
        output = self.run_program("ibv_devinfo", env=self.fabric.environment("h0", CEPHEUS_NIC_PROFILE="cx7"), expect=1)
        self.assertIn("cepheus: can't open cepheus0: CEPHEUS_NIC_PROFILE: no make of NIC is named 'cx7': use one of ours rxe connectx irdma bnxt", output)

    def test_a_shaped_link_shows_its_speed(self):
        fabric = Fabric(topology='[link]\nrate = "10Gbps"\n[[switch]]\nname = "s0"\n'
                                 '[[host]]\nname = "h0"\naddress = "10.0.0.1"\n')
        self.addCleanup(fabric.close)
        output = self.run_program("ibv_devinfo", "-v", env=fabric.environment("h0"))
        self.assertRegex(output, r"active_width:\s+1X \(1\)\n\s+active_speed:\s+10\.0 Gbps \(4\)")


class ConnectionManager(Programs):
    """Programs that need librdmacm end with its errors; one line beside them names the missing file."""

    LINE = "cepheus: this program opens the RDMA connection manager (/dev/infiniband/rdma_cm), which cepheus0 lacks"

    def lines_of(self, *command, **environment):
        done = subprocess.run(command, env=self.fabric.environment("h0", **environment), capture_output=True, text=True,
                              timeout=TIME_LIMIT, check=False)
        return done.stdout + done.stderr

    def test_its_absence_is_reported_once(self):
        for command in (["rping", "-s"], ["rstream", "-s", "127.0.0.1"], ["rdma_server"], ["ib_send_bw", "-R"]):
            self.assertEqual(self.lines_of(*command).count(self.LINE), 1, command)

    def test_programs_that_only_probe_for_it_get_the_line_on_request(self):
        self.assertIn("Transport: rc_verbs", output := self.lines_of("ucx_info", "-d"))
        self.assertNotIn(self.LINE, output)
        self.assertEqual(self.lines_of("ucx_info", "-d", CEPHEUS_VERBOSE="1").count(self.LINE), 1)
        self.assertNotIn(self.LINE, self.lines_of("rping", "-s", OMPI_COMM_WORLD_RANK="0"))
        for rank in 0, 1:  # once a job
            output = self.lines_of("rping", "-s", OMPI_COMM_WORLD_RANK=str(rank), CEPHEUS_VERBOSE="1")
            self.assertEqual(output.count(self.LINE), 1 - rank)


class WithoutFabric(Programs):
    def test_without_the_variable_there_is_no_device_and_no_message(self):
        env = {**CLEAN, "LD_PRELOAD": LIBRARY}
        with_library = subprocess.run(["ibv_devinfo"], env=env, capture_output=True, text=True, check=False)
        without = subprocess.run(["ibv_devinfo"], env=CLEAN, capture_output=True, text=True, check=False)
        self.assertEqual((with_library.returncode, with_library.stdout, with_library.stderr),
                         (without.returncode, without.stdout, without.stderr))

    def test_a_dead_fabric_gives_an_empty_list_and_the_reason_on_request(self):
        env = {**CLEAN, "LD_PRELOAD": LIBRARY, "CEPHEUS_FABRIC": "/nowhere/fabric"}
        output = self.run_program("ibv_devinfo", env=env, expect=255)
        self.assertIn("No IB devices found", output)
        self.assertNotIn("cepheus", output)
        output = self.run_program("ibv_devinfo", env={**env, "CEPHEUS_VERBOSE": "1"}, expect=255)
        self.assertIn("/nowhere/fabric: no such socket; start cepheus-switch", output)

    def test_programs_without_verbs_are_unchanged(self):
        env = {**CLEAN, "LD_PRELOAD": LIBRARY, "CEPHEUS_FABRIC": "/nowhere/fabric"}
        self.assertEqual(self.run_program("cat", "/proc/sys/kernel/ostype", env=env), "Linux\n")


class Pingpong(Programs):
    def pingpong(self, service, *options):
        output = self.run_pair(f"ibv_{service}_pingpong", "-g", "0", *options)
        self.assertRegex(output, r"\d+ bytes in .* seconds")
        return output

    def test_defaults(self):
        self.assertIn("1000 iters", self.pingpong("rc"))

    def test_under_congestion_control(self):
        for control in "orig", "hpcc,ce-echo":
            output = self.run_pair("ibv_rc_pingpong", "-g", "0", "-s", "65536", CEPHEUS_CONGESTION=control)
            self.assertIn("1000 iters", output)

    def test_large_messages(self):
        self.pingpong("rc", "-s", "65536")

    def test_many_small_ones(self):
        self.pingpong("rc", "-s", "8", "-n", "5000")

    def test_every_mtu(self):
        for mtu in 256, 512, 1024, 2048, 4096:
            self.pingpong("rc", "-m", str(mtu), "-s", "10000", "-n", "200")

    def test_few_receives_posted(self):
        self.pingpong("rc", "-r", "1", "-n", "500")
        self.pingpong("rc", "-r", "2", "-n", "500")

    def test_every_service(self):
        self.pingpong("uc", "-n", "500")
        self.pingpong("ud", "-n", "500", "-s", "1024")
        self.pingpong("srq", "-n", "500")

    def test_asleep_between_messages(self):
        for service in "rc", "uc", "ud", "srq":
            self.pingpong(service, "-e", "-n", "300", "-s", "1024")

    def test_the_extended_interfaces(self):
        self.pingpong("rc", "-N", "-n", "500")

    def test_one_host_for_two_processes_is_refused(self):
        port = free_port()
        first = subprocess.Popen(["ibv_rc_pingpong", "-g", "0", "-p", str(port)], env=self.fabric.environment("h0"),
                                 stdout=subprocess.DEVNULL)
        try:
            until = time.monotonic() + TIME_LIMIT
            while not is_listening(port):
                self.assertLess(time.monotonic(), until)
                os.sched_yield()
            output = self.run_program("ibv_rc_pingpong", "-g", "0", expect=1)
            self.assertIn(f"host h0 is held by pid {first.pid}", output)
        finally:
            first.kill()
            first.wait()


class Perftest(Programs):
    def perftest(self, program, *options):
        # -F: no warning about the machine's changing clock.
        return self.run_pair(program, "-d", "cepheus0", "-x", "0", "-F", *options)

    def test_send(self):
        self.perftest("ib_send_bw", "-n", "500")
        self.perftest("ib_send_lat", "-n", "500")

    def test_write(self):
        self.perftest("ib_write_bw", "-n", "500")
        self.perftest("ib_write_lat", "-n", "200")

    def test_read(self):
        self.perftest("ib_read_bw", "-n", "300")
        self.perftest("ib_read_lat", "-n", "300")

    def test_atomics(self):
        for atomic in "FETCH_AND_ADD", "CMP_AND_SWAP":
            self.perftest("ib_atomic_bw", "-n", "300", "-A", atomic)
            self.perftest("ib_atomic_lat", "-n", "300", "-A", atomic)

    def test_other_services(self):
        for service in "UC", "UD":
            self.perftest("ib_send_bw", "-n", "300", "-s", "1024", "-c", service)
            self.perftest("ib_send_lat", "-n", "300", "-s", "1024", "-c", service)
        self.perftest("ib_write_bw", "-n", "300", "-c", "UC")
        self.perftest("ib_send_bw", "-n", "300", "--use-srq")

    def test_both_directions(self):
        for program in "ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw":
            self.perftest(program, "-n", "200", "-b")

    def test_several_qps(self):
        for program in "ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_atomic_bw":
            self.perftest(program, "-n", "200", "-q", "4")

    def test_every_size(self):
        # Not ib_write_lat: with large messages its busy polling takes the core that the other side needs.
        for program in "ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_read_lat":
            self.perftest(program, "-n", "10", "-a")

    def test_asleep_between_completions(self):
        # perftest's WRITE has no events.
        for program in "ib_send_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_lat", "ib_read_lat", "ib_atomic_lat":
            self.perftest(program, "-n", "200", "-e")


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: this user is not root, so every other test covers this")
class OrdinaryUser(Programs):
    """Everything as user "nobody", with a limit of 64 KiB of locked memory."""

    NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", "--memlock=65536"]

    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric(before=cls.NOBODY)

    def test_pingpong(self):
        self.run_pair(*self.NOBODY, "ibv_rc_pingpong", "-g", "0", "-n", "500", "-s", "100000")
        self.run_pair(*self.NOBODY, "ib_write_bw", "-d", "cepheus0", "-x", "0", "-F", "-n", "100")


class LoadedAtRunTime(Programs):
    """A plug-in loads libibverbs into a program without it, and unloads it again."""

    HOST = """
import _ctypes, ctypes, sys
for _ in range(3):
    plugin = ctypes.CDLL(sys.argv[1])
    assert plugin.use_a_device() == 0
    _ctypes.dlclose(plugin._handle)
"""

    def test_a_plugin_is_loaded_and_unloaded(self):
        self.run_program(sys.executable, "-c", self.HOST, os.path.join(BUILD, "tests", "verbs_plugin.so"))


class Counters(Programs):
    def test_verbose_prints_those_that_are_not_0_at_the_end(self):
        output = self.run_pair("ibv_rc_pingpong", "-g", "0", "-n", "20", CEPHEUS_VERBOSE="1")
        self.assertRegex(output, r"cepheus: counters of h[01]:\ntx_packets [1-9]")
        self.assertNotRegex(output, r"(?m)^\w+ 0\b")

    def test_a_program_that_uses_no_queue_pair_has_none(self):
        output = self.run_program("ibv_devinfo", env=self.fabric.environment("h1", CEPHEUS_VERBOSE="1"))
        self.assertIn(f"cepheus: attached to {self.fabric.socket} as h1, 10.0.0.2", output)
        self.assertNotIn("counters", output)


class OverLoss(Programs):
    topology = ('[link]\nloss = 0.01\n[[switch]]\nname = "s0"\n'
                '[[host]]\nname = "h0"\naddress = "10.0.0.1"\n[[host]]\nname = "h1"\naddress = "10.0.0.2"\n')

    # Programs with a handshake at their end. ibv_rc_pingpong ends as soon as it has its data, and its peer's last packet
    # may be the lost one.
    def test_bandwidth_tests_finish(self):
        self.run_pair("ib_write_bw", "-d", "cepheus0", "-x", "0", "-n", "200", "-s", "16384")
        self.run_pair("ib_send_bw", "-d", "cepheus0", "-x", "0", "-n", "200", "-s", "16384")
        # Many requests are in flight, and the requester repeats all of them at once.
        self.run_pair("ib_read_bw", "-d", "cepheus0", "-x", "0", "-n", "2000", "-s", "1024")
        self.run_pair("ib_atomic_bw", "-d", "cepheus0", "-x", "0", "-n", "2000")
        status = subprocess.run([CTL, "--fabric", self.fabric.socket, "--json", "ports"], env=CLEAN,
                                capture_output=True, text=True, check=True).stdout
        self.assertTrue(re.search(r'"dropped_loss": ?[1-9]', status), "the links lost nothing: nothing was tested")


class CheckedOnEveryHop(Programs):
    topology = ('[fabric]\nicrc = "always"\n[[switch]]\nname = "s0"\n'
                '[[host]]\nname = "h0"\naddress = "10.0.0.1"\n[[host]]\nname = "h1"\naddress = "10.0.0.2"\n')

    def test_pingpong(self):
        self.run_pair("ibv_rc_pingpong", "-g", "0", "-n", "500")


if __name__ == "__main__":
    unittest.main()
