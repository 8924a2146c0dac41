#!/usr/bin/python3
"""The checks of `cepheus doctor` by other commands' output: each failure has a remedy."""

import argparse
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import resource
import sys
import unittest
from unittest import mock

BUILD = pathlib.Path(os.environ["CEPHEUS_BUILD"])
sys.dont_write_bytecode = True


def load():
    loader = importlib.machinery.SourceFileLoader("cepheus_command", str(BUILD / "bin/cepheus"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


cepheus = load()

DEVICE = """hca_id: rxe7
        port:   1
                state:                  PORT_ACTIVE (4)
                active_mtu:             4096 (5)
                link_layer:             Ethernet
                GID[  0]:               fe80::1, RoCE v2
                GID[  1]:               ::ffff:10.0.0.1, RoCE v2
"""
GOOD = {
    "ibv_devinfo": (0, DEVICE),
    "ip route": (0, "198.18.0.1 from 10.0.0.1 dev h7 uid 0\n"),
    "ip neigh": (0, "198.18.0.1 lladdr 02:00:00:00:00:01 REACHABLE\n"),
    "ctl nearest": (0, json.dumps({"devices": [{"name": "rxe8", "why": "nearest: at NUMA node 1"}, {"name": "rxe7", "why": "nearest that serves"}]})),
    "ucx_info -v": (0, "# Version 1.13.1\n"),
    "ucx_info -d": (0, "#      Transport: rc_mcast\n"),
    "ompi_info --version": (0, "Open MPI v4.1.4\n"),
    "ompi_info --param": (0, "MCA coll cepheus: parameter \"coll_cepheus_mode\"\n"),
    "mpirun": (0, "MCA coll cepheus: parameter \"coll_cepheus_mode\"\n"),
}


# The check that fails, its remedy, and the answers that it fails at.
FAULTS = [
    ("device", "rdma link add", {"ibv_devinfo": (255, "No IB devices found\n")}),
    ("device", "ibverbs-utils", {"ibv_devinfo": (None, "ibv_devinfo is not installed")}),
    ("port", "ip link set", {"ibv_devinfo": (0, DEVICE.replace("PORT_ACTIVE", "PORT_DOWN"))}),
    ("port", "InfiniBand", {"ibv_devinfo": (0, DEVICE.replace("Ethernet", "InfiniBand"))}),
    ("gid", "ip address add", {"ibv_devinfo": (0, DEVICE.replace("::ffff:10.0.0.1", "fe80::2"))}),
    ("mtu", "4210", {"ibv_devinfo": (0, DEVICE.replace("4096 (5)", "512 (2)"))}),
    ("route", "ip route add 198.18.0.0/15 via SWITCH", {"ip route": (2, "RTNETLINK answers: Network is unreachable\n")}),
    ("neighbour", "cepheus-switch", {"ip neigh": (0, "198.18.0.1 FAILED\n")}),
    ("neighbour", "ip neigh replace 10.0.0.254 lladdr", {"ip route": (0, "198.18.0.1 from 10.0.0.1 via 10.0.0.254 dev h7 uid 0\n"), "ip neigh": (0, "10.0.0.254 FAILED\n")}),
    ("ucx", "ucx-utils", {"ucx_info -v": (None, "ucx_info is not installed")}),
    ("rc_mcast", "1.13.1", {"ucx_info -d": (0, "#      Transport: rc_verbs\n")}),
    ("open-mpi", "4.1 and 5.0", {"ompi_info --version": (0, "Open MPI v4.0.3\n")}),
    ("coll/cepheus", "OMPI_MCA_mca_base_component_path", {"ompi_info --param": (0, "")}),
    ("mpirun", "SYSTEM_DEFAULT:USER_DEFAULT", {"mpirun": (0, "")}),
    ("mpirun", "it fails", {"mpirun": (1, "no slots")}),
]


class Library:
    """A file of the build, there or not."""

    def __init__(self, exists):
        self.exists = lambda: exists


def findings(privileged=True, locked=resource.RLIM_INFINITY, answers=None, has_transport=True, has_component=True, preloads=True,
             kernel="6.1.0-18-amd64"):
    """What the doctor finds if commands answer as on a good host, but for those in `answers`: code, output and, if any, errors."""
    answers = {**GOOD, **(answers or {})}

    def output_of(*command, with_errors=True, **_):
        words = " ".join(map(str, command))
        code, output, *errors = next((answer for start, answer in answers.items() if words.startswith(start)), (1, ""))
        return code, "".join(errors) + output if with_errors else output or "".join(errors)

    layout = mock.Mock(preload=BUILD / "lib/libcepheus-roce.so", ctl="ctl", transport=Library(has_transport),
                       components=BUILD / "lib/openmpi", openmpi=Library(preloads))
    options = argparse.Namespace(device=None, fabric="", group="198.18.0.1")
    with mock.patch.object(cepheus, "output_of", output_of), mock.patch.object(cepheus, "HAS_COMPONENT", has_component), \
            mock.patch.object(cepheus, "exceeds_locked_memory", lambda: privileged), \
            mock.patch.object(cepheus.os, "uname", lambda: mock.Mock(release=kernel)), \
            mock.patch.object(cepheus.resource, "getrlimit", lambda _: (locked, locked)), \
            mock.patch.object(cepheus.Doctor, "neighbour", lambda self, *_: answers["ip neigh"][1].split()[-1]), \
            mock.patch.dict(cepheus.os.environ):
        cepheus.os.environ.pop("CEPHEUS_FABRIC", None)
        return cepheus.Doctor(options, layout).examine()


class Findings(unittest.TestCase):
    def failed(self, **how):
        failures = [f for f in findings(**how) if not f.good]
        for each in failures:
            self.assertTrue(each.todo, f"{each.name} has no remedy")
        return {f.name: f for f in failures}

    def only(self, name, todo, **how):
        failures = self.failed(**how)
        self.assertEqual(list(failures), [name])
        self.assertIn(todo, failures[name].todo)

    def test_all_checks_pass_on_a_good_host(self):
        self.assertEqual(self.failed(), {})

    def test_each_fault_has_its_remedy(self):
        for name, todo, answers in FAULTS:
            with self.subTest(name, **answers):
                self.only(name, todo, answers=answers)

    def test_an_old_kernel(self):
        self.only("kernel", "use Linux 4.18", kernel="4.17.19")
        self.only("kernel", "use Linux 4.18", kernel="unknown")

    def device(self, text):
        return next(f.seen for f in findings(answers={"ibv_devinfo": (0, text)}) if f.name == "device")

    def test_the_nearest_of_several_devices_is_looked_at(self):
        near = DEVICE.replace("rxe7", "rxe8")
        self.assertEqual(self.device(DEVICE + near), "rxe8, nearest: at NUMA node 1")
        self.assertEqual(self.device(DEVICE + near.replace("PORT_ACTIVE", "PORT_DOWN")), "rxe7, nearest that serves")
        self.assertEqual(self.device(DEVICE), "rxe7")

    def test_the_route_to_groups_chooses_device_and_address(self):
        near, far = DEVICE.replace("rxe7", "rxe8").replace("10.0.0.1", "10.0.0.8"), DEVICE + "                GID[  2]:               ::ffff:10.0.1.1, RoCE v2\n"
        interfaces = {("rxe8", 1): "h8", ("rxe7", 1): "h7", ("rxe7", 2): "h7.5"}
        answers = {"ibv_devinfo": (0, far + near), "ip route": (0, "198.18.0.1 from 10.0.0.1 dev h7.5 uid 0\n")}
        with mock.patch.object(cepheus.Device, "interface_of", lambda self, port, gid: interfaces[self.name, gid]):
            found = {f.name: f.seen for f in findings(answers=answers)}
        self.assertEqual(found["device"], "rxe7, by the route to groups")
        self.assertIn("index 2: 10.0.1.1", found["gid"])

    def test_without_hwloc_the_first_of_several_devices_is_looked_at(self):
        found = findings(answers={"ibv_devinfo": (0, DEVICE + DEVICE.replace("rxe7", "rxe8")), "ctl nearest": (1, "hwloc can't tell")})
        self.assertEqual(next(f.seen for f in found if f.name == "device"), "rxe7")

    def test_without_an_order_the_first_of_several_devices_is_looked_at(self):
        devices = DEVICE + DEVICE.replace("rxe7", "rxe8")
        for text in "", "[", "[]", "{}", '{"devices": null}', '{"devices": [{"name": "rxe8", "why": "nearest"}]}':
            found = findings(answers={"ibv_devinfo": (0, devices), "ctl nearest": (0, text)})
            self.assertEqual(next(f.seen for f in found if f.name == "device"), "rxe7", text)

    def test_warnings_are_no_part_of_an_answer(self):
        near = DEVICE.replace("rxe7", "rxe8")
        warned = {name: (*GOOD[name], "10.0.0.1: a warning\n") for name in ("ctl nearest", "ucx_info -v", "ompi_info --version")}
        found = {f.name: f.seen for f in findings(answers={**warned, "ibv_devinfo": (0, DEVICE + near)})}
        self.assertEqual(found["device"], "rxe8, nearest: at NUMA node 1")
        self.assertEqual(found["ucx"], "1.13.1")
        self.assertEqual(found["open-mpi"], "4.1.4")

    def test_errors_are_reported_if_there_is_no_output(self):
        self.assertEqual(cepheus.output_of("sh", "-c", "echo warning >&2; echo answer", with_errors=False), (0, "answer\n"))
        self.assertEqual(cepheus.output_of("sh", "-c", "echo reason >&2; exit 3", with_errors=False), (3, "reason\n"))
        self.assertEqual(cepheus.output_of("sh", "-c", "echo reason >&2; echo last"), (0, "reason\nlast\n"))

    def test_ports_are_looked_at_one_by_one(self):
        second = DEVICE.split("hca_id: rxe7\n")[1].replace("port:   1", "port:   2")
        down = second.replace("PORT_ACTIVE (4)", "PORT_DOWN (1)")
        infiniband = DEVICE.replace("Ethernet", "InfiniBand").replace("GID[  1]", "GID[  9]").replace("RoCE v2", "IB")
        self.only("port", "ip link set", answers={"ibv_devinfo": (0, infiniband + down)})
        found = {f.name: f.seen for f in findings(answers={"ibv_devinfo": (0, infiniband + second)})}
        self.assertEqual(found["port"], "port 1 active, not Ethernet; port 2 active, Ethernet")
        self.assertIn("index 1", found["gid"])

    def test_little_lockable_memory(self):
        self.only("memlock", "ulimit -l unlimited", privileged=False, locked=64 << 10)

    def test_root_of_a_container_may_lock_no_more_than_others(self):
        machine = {"/proc/self/uid_map": "0 0 4294967295\n", "/proc/self/status": "CapEff:\t00000000a80425fb\n"}  # Docker's default

        def may_exceed(**files):
            with mock.patch.object(cepheus.pathlib.Path, "read_text", lambda path: {**machine, **files}[str(path)]):
                return cepheus.exceeds_locked_memory()

        self.assertFalse(may_exceed())
        every = {"/proc/self/status": "CapEff:\t000001ffffffffff\n"}
        self.assertTrue(may_exceed(**every))
        self.assertFalse(may_exceed(**every, **{"/proc/self/uid_map": "0 1000 1\n"}), "a user namespace's capability")

    def state_after(self, *states):
        """What the doctor reports of a neighbour whose entry is in these states, one after the other; and its commands."""
        left, commands = list(states), []

        def output_of(*command, **_):
            commands.append(" ".join(command))
            return 0, f"127.0.0.1 lladdr 02:00:00:00:00:01 {left.pop(0) if len(left) > 1 else left[0]}\n" if "show" in command else ""

        with mock.patch.object(cepheus, "output_of", output_of), mock.patch.object(cepheus.select, "select"):
            found = cepheus.Doctor(argparse.Namespace(fabric=""), None).neighbour("127.0.0.1", "127.0.0.1", "127.0.0.1", "lo")
        return found, any(command.endswith("nud probe") for command in commands)

    def test_a_stale_neighbour_is_confirmed(self):
        self.assertEqual(self.state_after("STALE", "PROBE", "PROBE", "FAILED"), ("FAILED", True))
        self.assertEqual(self.state_after("REACHABLE", "PROBE", "FAILED"), ("FAILED", True))
        self.assertEqual(self.state_after("STALE", "DELAY", "PROBE", "REACHABLE"), ("REACHABLE", True))
        self.assertEqual(self.state_after("NONE", "INCOMPLETE", "REACHABLE"), ("REACHABLE", False))
        self.assertEqual(self.state_after("PERMANENT"), ("PERMANENT", False))
        self.assertEqual(self.state_after("STALE", "DELAY"), ("DELAY", True))
        for unconfirmed in "STALE", "DELAY", "PROBE":
            self.only("neighbour", "cepheus-switch", answers={"ip neigh": (0, f"198.18.0.1 {unconfirmed}\n")})

    def test_ucx_of_debian_13(self):
        self.assertEqual(self.failed(answers={"ucx_info -v": (0, "# Library version: 1.18.1\n")}), {})

    def test_open_mpi_5(self):
        self.assertEqual(self.failed(answers={"ompi_info --version": (0, "Open MPI v5.0.7\n")}), {})

    def test_a_build_without_the_transport_needs_no_ucx(self):
        found = findings(has_transport=False, answers={"ucx_info -v": (None, "ucx_info is not installed")})
        self.assertEqual([f.name for f in found if not f.good or f.name == "ucx"], [])
        self.assertIn("not in this build", next(f.seen for f in found if f.name == "rc_mcast"))

    def test_a_build_without_the_component_needs_none(self):
        hidden = {"ompi_info --version": (0, "Open MPI v4.0.3\n"), "ompi_info --param": (0, "")}
        for answers in hidden, {"ompi_info --version": (None, "ompi_info is not installed")}:
            found = findings(has_component=False, answers=answers)
            self.assertEqual([f.name for f in found if not f.good or f.name == "open-mpi"], [])
            self.assertIn("can preload", next(f.seen for f in found if f.name == "coll/cepheus"))

    def test_a_build_without_any_library_for_open_mpi(self):
        found = findings(has_component=False, preloads=False)
        self.assertEqual([f.name for f in found if not f.good], [])
        self.assertNotIn("preload", next(f.seen for f in found if f.name == "coll/cepheus"))

    def test_a_checkout_is_not_searched_by_mpirun(self):
        with mock.patch.dict(cepheus.os.environ, OMPI_MCA_mca_base_component_path="/some/build"):
            self.assertEqual(self.failed(answers={"mpirun": (0, "")}), {})


if __name__ == "__main__":
    unittest.main()
