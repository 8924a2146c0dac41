#!/usr/bin/python3
"""Tools of Open MPI, UCX and others show Cepheus's parts."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest
from unittest import mock

from harness import BUILD, CHECK, REQUIRE, TRANSPORT, needs_component, needs_rc_mcast, over_fabric
from switch_process import Switch, star

PROJECT = pathlib.Path(__file__).resolve().parents[2]


def run(command, **env):
    return subprocess.run(command, text=True, capture_output=True, timeout=60, env={**os.environ, **env})


class Tools(unittest.TestCase):
    @needs_component
    def test_ompi_info_lists_the_component_and_its_parameters(self):
        path = f"SYSTEM_DEFAULT:{BUILD}/lib/openmpi"
        listed = run(["ompi_info", "--param", "coll", "cepheus", "--level", "9"], OMPI_MCA_mca_base_component_path=path)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        table = (PROJECT / "docs/parameters.md").read_text().split("| name |")[1].split("\n\n")[0]
        documented = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
        self.assertEqual(sorted(set(re.findall(r'parameter "coll_cepheus_(\w+)"', listed.stdout))), sorted(documented))

    @needs_rc_mcast
    def test_a_link_to_the_component_finds_the_files_beside_it(self):
        """As packages put one into Open MPI's own directory: UCX's transport is found, or mode require fails."""
        with tempfile.TemporaryDirectory(prefix="cepheus-link-") as scratch:
            (pathlib.Path(scratch) / "mca_coll_cepheus.so").symlink_to(BUILD / "lib/openmpi/mca_coll_cepheus.so")
            with mock.patch.dict(os.environ, OMPI_MCA_mca_base_component_path=f"SYSTEM_DEFAULT:{scratch}"):
                done = over_fabric(CHECK, "--count", 4, hosts=2, mca={**REQUIRE, "coll_cepheus_carrier": "ucx"})
        self.assertEqual(done.code, 0, done.everything())

    @needs_rc_mcast
    def test_ucx_info_shows_the_transport_for_a_requested_device(self):
        shown = run(["ucx_info", "-d"], LD_PRELOAD=str(TRANSPORT), UCX_MCAST_DEVICES="cepheus0")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("Transport: rc_mcast", shown.stdout)

    @needs_rc_mcast
    def test_ucx_info_shows_no_device_without_a_request(self):
        shown = run(["ucx_info", "-d"], LD_PRELOAD=str(TRANSPORT))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertNotIn("Transport: rc_mcast", shown.stdout)

    @needs_rc_mcast
    def test_ucx_info_lists_the_documented_variables(self):
        listed = run(["ucx_info", "-cf"], LD_PRELOAD=str(TRANSPORT))
        self.assertEqual(listed.returncode, 0, listed.stderr)
        table = (PROJECT / "docs/parameters.md").read_text().split("| `UCX_RC_MCAST_...` |")[1].split("\n\n")[0]
        documented = [name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])]
        of_every_transport = {"ALLOC", "MAX_NUM_EPS"}
        self.assertEqual(set(re.findall(r"^UCX_RC_MCAST_(\w+)=", listed.stdout, re.MULTILINE)) - of_every_transport, set(documented))

    @needs_rc_mcast
    def test_ucp_never_takes_the_transport_for_a_lane(self):
        with Switch(BUILD, "--hosts", "2") as switch:
            fabric = {"CEPHEUS_FABRIC": switch.socket, "CEPHEUS_HOST": "#0", "UCX_MCAST_DEVICES": "any",
                      "LD_PRELOAD": f"{BUILD}/lib/libcepheus-roce.so:{TRANSPORT}"}
            opened = run(["ucx_info", "-d", "-t", "rc_mcast"], **fabric)
            to_itself = run(["ucx_info", "-e", "-u", "t"], **fabric)
            alone = run(["ucx_info", "-e", "-u", "t"], UCX_TLS="rc_mcast", **fabric)
        self.assertIn("connection: to iface", opened.stdout)
        self.assertIn("lane[0]", to_itself.stdout)
        self.assertNotIn("mcast", to_itself.stdout)
        self.assertRegex(alone.stdout + alone.stderr, "no active messages transport.*rc_mcast/any - Destination is unreachable")

    def test_cepheus_switch_quotes_topology_files_as_text(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('[[switch]]\nname = "s0"\n[[host]]\nname = "\\u001b[2J"\naddress = "10.0.0.1"\n')
            file.flush()
            refused = run([str(BUILD / "bin/cepheus-switch"), "--topology", file.name])
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("\\x1b[2J", refused.stderr)
        self.assertNotIn("\x1b", refused.stderr)

    def test_cepheus_switch_ends_with_2_if_the_topology_is_wrong_and_with_1_if_it_cant_serve(self):
        with tempfile.TemporaryDirectory(prefix="cepheus-topology-") as scratch:
            file, socket = pathlib.Path(scratch) / "fabric.toml", f"{scratch}/fabric"
            for code, topology, why in (
                    (2, star(1, fabric='users = ["no user of this name"]'), "there is no user"),
                    (2, star(1, fabric=f'key_file = "{scratch}/key"'), "can't read"),
                    (2, star(1) + 'mac = "02:00:00:00:00:01"\n', "has a mac, but no interface"),
                    (1, star(1) + 'interface = "absent"\n', "absent"),
                    (1, star(1), "can't create")):
                file.write_text(topology)
                path = "/nowhere/fabric" if why == "can't create" else socket
                ended = run([str(BUILD / "bin/cepheus-switch"), "--topology", file, "--fabric", path])
                self.assertIn(why, ended.stderr)
                self.assertEqual(ended.returncode, code, ended.stderr)


if __name__ == "__main__":
    unittest.main()
