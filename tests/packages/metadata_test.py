#!/usr/bin/python3
"""debian/ agrees with the tree: version, build dependencies, libmcast's exports. The packages' scripts divert a file and restart services.
Building the packages checks the rest.

usage: metadata_test.py BUILD VERSION [-v]
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

VERSION = sys.argv.pop(2)
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = SOURCE / "debian"
# Part of debhelper, or for running the programs, not for building them.
NO_BUILD_DEPENDENCIES = {"g++", "openmpi-bin"}


class Metadata(unittest.TestCase):
    def test_the_version_is_the_projects(self):
        self.assertEqual(re.match(r"cepheus \(([^)]+)\)", (DEBIAN / "changelog").read_text()).group(1), VERSION)

    def test_build_dependencies_equal_the_packages_that_run_installs(self):
        listed = re.search(r"^readonly packages=\((.*?)^\)", (SOURCE / "run").read_text(), re.MULTILINE | re.DOTALL).group(1)
        field = re.search(r"^Build-Depends:(.*?)^\S", (DEBIAN / "control").read_text(), re.MULTILINE | re.DOTALL).group(1)
        needed = {entry.split()[0] for entry in field.split(",")}
        self.assertEqual(needed - {"debhelper-compat"}, set(listed.split()) - NO_BUILD_DEPENDENCIES)

    def test_packages_that_the_doctor_names_are_recommended_with_it(self):
        remedies = set(re.findall(r'"apt-get install ([\w-]+)"', (SOURCE / "tools/doctor/cepheus.in").read_text()))
        stanza = re.search(r"^Package: cepheus$.*?^$", (DEBIAN / "control").read_text(), re.MULTILINE | re.DOTALL).group(0)
        recommended = {entry.split()[0] for entry in re.search(r"^Recommends: (.*)$", stanza, re.MULTILINE).group(1).split(",")}
        self.assertLessEqual(remedies, recommended)

    def test_the_symbols_file_has_all_exports_of_libmcast(self):
        exported = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", BUILD / "lib/libmcast.so"], text=True,
                                  capture_output=True, check=True).stdout
        there = {line.split()[2].replace("@@", "@") for line in exported.splitlines()}
        listed = {line.split()[0] for line in (DEBIAN / "libmcast0.symbols").read_text().splitlines() if line.startswith(" ")}
        # A library of the same name never loses a symbol that programs may need.
        self.assertEqual({name if "@" in name else f"{name}@{name}" for name in there}, listed)


class PmixParameters(unittest.TestCase):
    """The package's scripts divert PMIx's file of parameters for ours, and restore it: with dpkg-divert in a root of its own."""

    FILE = "/usr/lib/arch/pmix2/share/pmix-mca-params.conf"
    PMIX, OURS = "mca_base_component_path = /usr/lib/pmix\n", "# ours\n"

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-pmix-")))
        self.env = {**os.environ, "DPKG_ROOT": str(self.root), "DPKG_ADMINDIR": f"{self.root}/dpkg"}
        for directory in ("dpkg/info", "dpkg/updates", "bin"):
            (self.root / directory).mkdir(parents=True)
        (self.root / "dpkg/status").touch()
        self.file = self.root / self.FILE[1:]
        self.file.parent.mkdir(parents=True)
        self.file.write_text(self.PMIX)

    def script(self, name, *arguments, parameters=FILE):
        text = (DEBIAN / f"cepheus-openmpi.{name}").read_text().replace("#PMIX_PARAMETERS#", parameters).replace("#DEBHELPER#", "")
        done = subprocess.run(["sh", "-c", text, name, *arguments], env=self.env, text=True, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def unpack(self):
        self.file.write_text(self.OURS)

    def installs(self, *files):
        (self.root / "dpkg/status").write_text("Package: cepheus-openmpi\nStatus: install ok installed\nVersion: 0\nArchitecture: all\n"
                                               "Maintainer: x\nDescription: x\n")
        (self.root / "dpkg/info/cepheus-openmpi.list").write_text("".join(f"{file}\n" for file in files))

    def test_are_restored_when_the_package_is_removed_by_any_build(self):
        for parameters in (self.FILE, ""):
            self.script("preinst", "install")
            self.assertEqual(pathlib.Path(f"{self.file}.distrib").read_text(), self.PMIX)
            self.unpack()
            self.file.unlink()
            self.script("postrm", "remove", parameters=parameters)
            self.assertEqual(self.file.read_text(), self.PMIX, parameters)

    def test_are_restored_when_an_upgrade_fails_to_a_version_that_diverts_them_first(self):
        self.installs("/usr")
        self.script("preinst", "upgrade", "0")
        self.script("postrm", "abort-upgrade", "0")
        self.assertEqual(self.file.read_text(), self.PMIX)

    def test_stay_diverted_when_an_upgrade_fails_between_versions_that_divert_them(self):
        self.script("preinst", "install")
        self.unpack()
        self.installs(self.FILE)
        self.script("preinst", "upgrade", "0")
        self.script("postrm", "abort-upgrade", "0")
        self.assertEqual(self.file.read_text(), self.OURS)
        self.assertEqual(pathlib.Path(f"{self.file}.distrib").read_text(), self.PMIX)

    def test_a_build_finds_them_if_the_package_is_installed(self):
        ompi_info = self.root / "bin/ompi_info"
        ompi_info.write_text("#!/bin/sh\necho Open MPI v5.0.7\n")
        ompi_info.chmod(0o755)
        for _ in range(2):
            output = subprocess.run(["make", "-pn", "-f", DEBIAN / "rules", f"PMIX_FILE={self.file}", "build"], text=True, capture_output=True, check=True,
                                  env={**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}, cwd=SOURCE).stdout
            self.assertIn(f"\nPMIX_PARAMETERS := {self.file}\n", output)
            self.file.rename(f"{self.file}.distrib")
            self.unpack()


@unittest.skipIf(shutil.which("dh_installsystemd") is None, "SKIPPED: debhelper is missing; as root: apt-get install debhelper")
class Services(unittest.TestCase):
    """The package's scripts as debhelper makes them, beside a stand-in for systemd that notes calls."""

    SERVICES = ["cepheus-cmd.service", "cepheus-metrics.service", "cepheus-switch.service"]

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-services-")))
        shutil.copytree(DEBIAN, self.root / "debian")
        # As UNITS in debian/rules.
        is_12 = platform.freedesktop_os_release().get("VERSION_ID") == "12"
        units = self.root / "debian/cepheus" / ("lib" if is_12 else "usr/lib") / "systemd/system"
        units.mkdir(parents=True)
        for service in self.SERVICES:
            shutil.copy(SOURCE / f"tools/systemd/{service}.in", units / service)
        (self.root / "bin").mkdir()
        for program in ("deb-systemd-invoke", "deb-systemd-helper", "systemctl"):
            path = self.root / "bin" / program
            path.write_text(f'#!/bin/sh\necho "{program} $*" >>{self.root}/calls\n')
            path.chmod(0o755)
        (self.root / "calls").touch()
        subprocess.run(["make", "-f", "debian/rules", "override_dh_installsystemd"], cwd=self.root, check=True, capture_output=True)
        subprocess.run(["dh_installdeb"], cwd=self.root, check=True, capture_output=True)

    def script(self, name, *arguments):
        path = self.root / f"debian/cepheus/DEBIAN/{name}"
        if not path.exists():
            return
        text = path.read_text().replace("/run/systemd/system", str(self.root))
        subprocess.run(["sh", "-c", text, name, *arguments], check=True, env={"PATH": f"{self.root}/bin:{os.environ['PATH']}"})

    def invoked(self):
        """The services that the scripts start, stop and restart, by operation."""
        calls = [line.split()[1:] for line in (self.root / "calls").read_text().splitlines() if line.startswith("deb-systemd-invoke ")]
        return [(call[0], sorted(call[1:])) for call in calls]

    def test_do_not_start_with_an_installation(self):
        self.script("preinst", "install")
        self.script("postinst", "configure", "")
        self.assertEqual(self.invoked(), [])

    def test_that_run_restart_after_an_upgrade(self):
        self.script("prerm", "upgrade", "1")
        self.script("preinst", "upgrade", "0")
        self.script("postrm", "upgrade", "1")
        self.script("postinst", "configure", "0")
        self.assertEqual(self.invoked(), [("try-restart", self.SERVICES)])

    def test_end_with_the_package(self):
        self.script("prerm", "remove")
        self.assertEqual(self.invoked(), [("stop", self.SERVICES)])


if __name__ == "__main__":
    unittest.main()
