#!/usr/bin/python3
"""The units: systemd's word on how exposed they are and whether they can be read; the topology they name is one.

usage: units_test.py BUILD [-v]
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
HERE = pathlib.Path(__file__).resolve().parent
NAMES = ("cepheus-switch", "cepheus-metrics", "cepheus-cmd")
EXPOSURE = 30  # tenths, at most

sys.path.insert(0, str(HERE.parent))
from switch_process import Switch  # noqa: E402


def systemd_analyze(*words):
    if shutil.which("systemd-analyze") is None:
        raise unittest.SkipTest("SKIPPED: systemd-analyze is missing; as root: apt-get install systemd")
    done = subprocess.run(["systemd-analyze", *words], text=True, capture_output=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


class Units(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="cepheus-units-")))
        cls.install()
        cls.units = [cls.prefix / "lib/systemd/system" / f"{name}.service" for name in NAMES]

    @classmethod
    def install(cls):
        subprocess.run(["cmake", f"-DCMAKE_INSTALL_PREFIX={cls.prefix}", "-P", BUILD / "tools/cmake_install.cmake"], check=True, stdout=subprocess.DEVNULL)

    def test_name_the_prefix_of_the_installation(self):
        for unit in self.units:
            self.assertIn(f"\nExecStart={self.prefix}/bin/cepheus", unit.read_text())

    # An interface may come long after boot: five starts in ten seconds would be systemd's limit.
    def test_start_again_for_as_long_as_it_takes(self):
        for unit in self.units:
            text = unit.read_text()
            self.assertRegex(text, r"(?s)\[Unit\].*\nStartLimitIntervalSec=0\n.*\[Service\].*\nRestart=on-failure\nRestartSec=1\n")

    def test_a_second_installation_keeps_an_edited_topology(self):
        topology = self.prefix / "etc/cepheus/fabric.toml"
        self.assertEqual(topology.read_text(), (HERE / "fabric.toml").read_text())
        topology.write_text("# edited\n")
        self.install()
        self.assertEqual(topology.read_text(), "# edited\n")

    def test_are_exposed_little(self):
        for unit in self.units:
            code, output = systemd_analyze("security", "--no-pager", "--offline=true", f"--threshold={EXPOSURE}", str(unit))
            self.assertEqual(code, 0, f"{unit}\n{output}")
            self.assertIn("Overall exposure level", output)

    def test_can_be_read(self):
        for unit in self.units:
            code, output = systemd_analyze("verify", "--man=no", str(unit))
            self.assertEqual((code, [line for line in output.splitlines() if unit.name in line and "is not executable" not in line]),
                             (code, []))
            self.assertNotIn("@", re.sub(r"SystemCallFilter=.*", "", unit.read_text()))

    def test_the_switch_serves_the_topology_that_is_installed(self):
        with Switch(BUILD, "--topology", HERE / "fabric.toml") as switch:
            self.assertEqual([port["name"] for port in switch.ports()], ["h0", "h1", "h2", "h3"])


if __name__ == "__main__":
    unittest.main()
