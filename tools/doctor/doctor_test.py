#!/usr/bin/python3
"""`cepheus doctor` as a command, on an emulated fabric and without any device; the list of tools."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from switch_process import Switch  # noqa: E402

BUILD = pathlib.Path(os.environ["CEPHEUS_BUILD"])
CEPHEUS = BUILD / "bin/cepheus"


def doctor(*arguments, **environment):
    env = {k: v for k, v in os.environ.items() if k not in ("CEPHEUS_FABRIC", "OMPI_MCA_mca_base_component_path")}
    return subprocess.run([CEPHEUS, "doctor", *arguments], text=True, capture_output=True, env={**env, **environment}, timeout=200)


def findings(run):
    return {finding["name"]: finding for finding in json.loads(run.stdout)["findings"]}


class OnAFabric(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.switch = Switch(BUILD, "--hosts", "2")
        cls.fabric = cls.switch.socket

    @classmethod
    def tearDownClass(cls):
        cls.switch.close()

    def test_all_checks_pass(self):
        run = doctor("--fabric", self.fabric, "--json")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        found = findings(run)
        self.assertEqual(set(found) - {"ucx", "open-mpi"},  # builds without the part of one do not need it
                         {"kernel", "device", "port", "gid", "mtu", "memlock", "groups", "rc_mcast", "coll/cepheus"})
        self.assertIn("cepheus0", found["device"]["seen"])
        self.assertIn("10.0.0.1", found["gid"]["seen"])

    def test_prints_that_all_checks_passed(self):
        run = doctor("--fabric", self.fabric)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("this host can take part in groups", run.stdout)
        self.assertNotIn("failed", run.stdout)

    def test_names_the_make_whose_manners_the_emulated_nic_has(self):
        run = doctor("--fabric", self.fabric, "--json", CEPHEUS_NIC_PROFILE="irdma")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("with the manners of irdma (CEPHEUS_NIC_PROFILE)", findings(run)["device"]["seen"])
        run = doctor("--fabric", self.fabric, "--json", CEPHEUS_NIC_PROFILE="cx7")
        self.assertIn("no make of NIC is named 'cx7': use one of ours", findings(run)["device"]["seen"])

    @unittest.skipUnless((BUILD / "lib/openmpi/mca_coll_cepheus.so").exists(), "SKIPPED: coll/cepheus was not built: install libopenmpi-dev")
    def test_fails_with_a_remedy_if_a_component_is_not_visible(self):
        run = doctor("--fabric", self.fabric, "--json", OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT")
        self.assertEqual(run.returncode, 1)
        failed = findings(run)["coll/cepheus"]
        self.assertFalse(failed["ok"])
        self.assertIn("SYSTEM_DEFAULT:", failed["todo"])

    def test_fails_for_a_missing_device(self):
        run = doctor("--fabric", self.fabric, "--device", "mlx9_9", "--json")
        self.assertEqual(run.returncode, 1)
        self.assertIn("no device mlx9_9 (there: cepheus0", findings(run)["device"]["seen"])


class Alone(unittest.TestCase):
    def test_fails_without_a_running_fabric(self):
        run = doctor("--fabric", "/nonexistent/fabric", "--json")
        self.assertEqual(run.returncode, 1, run.stdout)
        failed = findings(run)["device"]
        self.assertFalse(failed["ok"])
        self.assertIn("cepheus-switch", failed["todo"])

    def test_wrong_usage_is_2(self):
        self.assertEqual(doctor("--group", "224.0.0.1").returncode, 2)
        self.assertEqual(subprocess.run([CEPHEUS, "bogus"], capture_output=True).returncode, 2)

    def test_counts_failed_checks(self):
        run = doctor("--fabric", "/nonexistent/fabric")
        self.assertRegex(run.stdout, r"\n[1-9] of \d+ checks failed\n$")

    def test_lists_every_tool_without_a_command(self):
        run = subprocess.run([CEPHEUS], text=True, capture_output=True, check=True)
        pages = {page.stem for page in (pathlib.Path(__file__).resolve().parents[2] / "docs/man").iterdir()}
        self.assertEqual(pages - {word for word in run.stdout.split() if word.startswith("cepheus")}, set())

    def test_help(self):
        run = doctor("--help")
        self.assertEqual(run.returncode, 0)
        self.assertIn("--json", run.stdout)


if __name__ == "__main__":
    unittest.main()
