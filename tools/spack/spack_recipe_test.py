#!/usr/bin/python3
"""The Spack recipe agrees with CMakeLists.txt, debian/control and the module file. check.py builds its variants.

usage: spack_recipe_test.py MODULEFILE [-v]
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import recipe

MODULEFILE = pathlib.Path(sys.argv.pop(1)).resolve()
RECIPE = recipe.Recipe()
EVERY = frozenset(RECIPE.variants)
# Debian's packages of a build -> Spack's.
SPACK = {"cmake": "cmake", "libasio-dev": "asio", "libcli11-dev": "cli11", "libcpp-httplib-dev": "cpp-httplib",
         "libexpected-dev": "tl-expected", "libfmt-dev": "fmt", "libhwloc-dev": "hwloc", "libibverbs-dev": "rdma-core",
         "libisal-dev": "isa-l", "libopenmpi-dev": "openmpi", "libpcap-dev": "libpcap", "libspdlog-dev": "spdlog",
         "libssl-dev": "openssl", "libsystemd-dev": "systemd", "libtomlplusplus-dev": "tomlplusplus", "libucx-dev": "ucx",
         "nbdkit-plugin-dev": "nbdkit", "nlohmann-json3-dev": "nlohmann-json", "pkg-config": "pkgconfig", "python3": "python"}
PART_OF_SPACK = {"debhelper-compat", "ninja-build"}


def options():
    return set(re.findall(r"^option\((CEPHEUS_\w+)", (recipe.SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE))


def configure(*arguments):
    with tempfile.TemporaryDirectory() as build:
        return subprocess.run(["cmake", "-S", recipe.SOURCE, "-B", build, "-G", "Ninja", *arguments], text=True, capture_output=True,
                              timeout=60, check=False).stderr


class SpackRecipe(unittest.TestCase):
    def test_a_variant_for_each_component(self):
        self.assertEqual({f"CEPHEUS_{name.upper()}" for name in RECIPE.variants}, options())

    def test_passes_each_option_by_its_variant(self):
        for on in RECIPE.combinations():
            passed = dict(re.findall(r"-D(CEPHEUS_\w+):BOOL=(\w+)", " ".join(RECIPE.cmake_args(on))))
            self.assertEqual(passed, {option: "ON" if option.removeprefix("CEPHEUS_").lower() in on else "OFF" for option in options()})

    def test_combinations_have_each_variant_alone_and_each_missing(self):
        found = RECIPE.combinations()
        self.assertEqual(len(found), len(set(found)))
        self.assertLess({frozenset(), frozenset({"nic"}), frozenset({"dpdk", "switch"}), EVERY, EVERY - {"dpdk"}, EVERY - {"switch", "dpdk"}},
                        set(found))
        self.assertFalse([on for on in found if "dpdk" in on and "switch" not in on])

    def test_depends_on_the_libraries_of_the_build(self):
        field = re.search(r"^Build-Depends:(.*?)^\S", (recipe.SOURCE / "debian/control").read_text(), re.MULTILINE | re.DOTALL).group(1)
        packages = {entry.split()[0] for entry in field.split(",")}
        self.assertEqual(packages - PART_OF_SPACK, set(SPACK))
        self.assertEqual(set(RECIPE.dependencies), {*SPACK.values(), "c", "cxx", "dpdk"})
        for variant in ("openmpi", "ucx", "dpdk"):
            self.assertEqual(RECIPE.dependencies[variant], variant)

    def test_sets_the_module_files_variables(self):
        text = MODULEFILE.read_text()
        self.assertIn("$root/", text)
        for name in ("path", "component"):
            value = re.search(rf"^set {name} (\S+)$", text, re.MULTILINE).group(1)
            text = re.sub(rf"\${name}\b", lambda _, value=value: value, text)
        module = {name: ("prepend", value) for name, value in re.findall(r"^prepend-path (\w+) (\S+)$", text, re.MULTILINE)}
        module |= {name: ("set", value) for name, value in re.findall(r"^ *setenv (\w+) (\S+)$", text, re.MULTILINE)}
        by_spack = {"PATH", "MANPATH", "PKG_CONFIG_PATH"}
        self.assertLess(by_spack, set(module))
        self.assertEqual(RECIPE.environment(EVERY, "$root"), {name: change for name, change in module.items() if name not in by_spack})
        self.assertNotIn("OMPI_MCA_mca_base_component_path", RECIPE.environment(EVERY - {"openmpi"}, "$root"))


class Tests(unittest.TestCase):
    """The recipe's tests of an installed package, here with programs that are scripts."""

    def setUp(self):
        self.prefix = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.prefix / "bin").mkdir()
        for name in ("cepheus", "cepheus-cmd", "cepheus-replica"):
            self.program(name, f"{name} 1.2.3")

    def program(self, name, printed):
        path = self.prefix / "bin" / name
        path.write_text(f"#!/bin/sh\necho '{printed}'\n")
        path.chmod(0o755)

    def test_pass_where_programs_are_alike(self):
        RECIPE.test(frozenset(), self.prefix)

    def test_fail_where_one_is_of_another_build(self):
        self.program("cepheus-cmd", "cepheus-cmd 1.2.4")
        with self.assertRaises(AssertionError):
            RECIPE.test(frozenset(), self.prefix)

    def test_fail_where_a_seed_fails(self):
        for name in ("cepheus-switch", "cepheusctl", "cepheus-volume-sim"):
            self.program(name, f"{name} 1.2.3")
        self.program("cepheus-sim", "100 seeds from 1, 1 failed; cepheus-sim 1.2.3")
        with self.assertRaises(AssertionError):
            RECIPE.test(frozenset({"switch"}), self.prefix)


class Components(unittest.TestCase):
    def test_tests_need_all(self):
        self.assertIn("The tests need all components: set BUILD_TESTING=OFF, or switch on CEPHEUS_UCX, CEPHEUS_NIC",
                      " ".join(configure("-DCEPHEUS_UCX=OFF", "-DCEPHEUS_NIC=OFF").split()))

    def test_dpdk_needs_the_switch(self):
        self.assertIn("CEPHEUS_DPDK needs CEPHEUS_SWITCH: switch both off, or both on",
                      " ".join(configure("-DCEPHEUS_SWITCH=OFF", "-DBUILD_TESTING=OFF").split()))


if __name__ == "__main__":
    unittest.main()
