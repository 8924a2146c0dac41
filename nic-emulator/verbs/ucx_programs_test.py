#!/usr/bin/python3
"""UCX and Open MPI, unmodified, over the preloaded library: rc_verbs, ud_verbs and what they carry."""

import os
import subprocess
import unittest

from program_testing import BUILD, CLEAN, LIBRARY, TIME_LIMIT, Fabric, Programs

EXCHANGE = os.path.join(BUILD, "tests", "mpi", "exchange_check")
DEVICE = "cepheus0:1"


class Info(Programs):
    def test_ucx_finds_the_device_and_its_transports(self):
        told = self.run_program("ucx_info", "-d")
        for transport in "rc_verbs", "ud_verbs":
            self.assertRegex(told, rf"Transport: {transport}\n#\s+Device: {DEVICE}")


class Ucx(Programs):
    """ucx_perftest; each test is measured in some hundred rounds, enough to see that it works."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Where it was built with MPI it asks for ranks; the pair here meets over TCP.
        usage = subprocess.run(["ucx_perftest", "-h"], capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        cls.without_mpi = ["-P", "0"] if "MPI mode" in usage.stdout + usage.stderr else []

    def perftest(self, test, *options, layer=("-d", DEVICE), **environment):
        return self.run_pair("ucx_perftest", *self.without_mpi, "-t", test, "-n", "300", "-w", "10", *layer, *options, **environment)

    def test_rc_verbs(self):
        for test in "am_lat", "put_lat", "put_bw", "add_mr", "fadd", "cswap":
            with self.subTest(test):
                self.perftest(test, "-x", "rc_verbs")

    def test_rc_verbs_zero_copy(self):
        self.perftest("am_bw", "-x", "rc_verbs", "-D", "zcopy", "-s", "4096")
        self.perftest("put_bw", "-x", "rc_verbs", "-D", "zcopy", "-s", "65536")
        self.perftest("get", "-x", "rc_verbs", "-D", "zcopy", "-s", "65536")

    def test_ud_verbs(self):
        self.perftest("am_lat", "-x", "ud_verbs")
        self.perftest("am_bw", "-x", "ud_verbs", "-D", "zcopy", "-s", "2048")

    def test_ucp_over_reliable_connections(self):
        for test in "tag_lat", "tag_bw", "ucp_put_lat", "ucp_get", "ucp_fadd":
            with self.subTest(test):
                self.perftest(test, "-s", "8", layer=(), UCX_TLS="rc_v,ud_v", UCX_NET_DEVICES=DEVICE)
        self.perftest("tag_bw", "-s", "1000000", layer=(), UCX_TLS="rc_v,ud_v", UCX_NET_DEVICES=DEVICE)

    def test_ucp_over_datagrams(self):
        for size in "8", "100000":
            self.perftest("tag_lat", "-s", size, layer=(), UCX_TLS="ud_v", UCX_NET_DEVICES=DEVICE)


class OpenMpi(Programs):
    """One rank a host; the launcher's rank says which."""

    def mpirun(self, ranks, *options, transports="rc_v,ud_v,self"):
        command = ["mpirun", "-np", str(ranks), "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ucx",
                   "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any",
                   "-x", f"LD_PRELOAD={LIBRARY}", "-x", f"CEPHEUS_FABRIC={self.fabric.socket}",
                   "-x", f"UCX_TLS={transports}", "-x", f"UCX_NET_DEVICES={DEVICE}", *options]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        done = subprocess.run([*command, EXCHANGE], env=CLEAN, capture_output=True, text=True, timeout=2 * TIME_LIMIT,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout, f"ok: 7 sizes among {ranks} ranks\n")

    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric(hosts=4)

    def test_two_ranks(self):
        self.mpirun(2)

    def test_four_ranks(self):
        self.mpirun(4)

    def test_four_ranks_over_datagrams(self):
        self.mpirun(4, transports="ud_v,self")


if __name__ == "__main__":
    unittest.main()
