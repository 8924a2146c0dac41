#!/usr/bin/python3
"""The environment after `module load`.

usage: modulefile_test.py FILE [-v]
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FILE = pathlib.Path(sys.argv.pop(1)).resolve()
MODULECMD = next((path for path in ("/usr/lib/x86_64-linux-gnu/modulecmd.tcl", "/usr/share/modules/libexec/modulecmd.tcl",
                                    "/usr/lib/modulecmd.tcl") if pathlib.Path(path).exists()), None)


class ModuleFile(unittest.TestCase):
    def load(self, *before, has_component=True, unloads=False):
        """The variables that `module load cepheus` sets where our file is under a prefix, and the prefix; with `unloads` those that are
        left after `module unload cepheus`."""
        with tempfile.TemporaryDirectory(prefix="cepheus-module-") as prefix:
            place = pathlib.Path(prefix) / "share/cepheus/modulefiles/cepheus"
            place.mkdir(parents=True)
            shutil.copy(FILE, place / "0.1.0")
            if has_component:
                component = pathlib.Path(prefix) / "lib/cepheus/openmpi/mca_coll_cepheus.so"
                component.parent.mkdir(parents=True)
                component.touch()
            variables = {"MODULEPATH": str(place.parent), "PATH": "/usr/bin:/bin", "HOME": prefix, **dict(before)}
            changes = self.change("load", variables)
            if unloads:
                variables.update(changes)
                changes = {**variables, **self.change("unload", variables)}
            return {name: value for name, value in changes.items() if value is not None}, prefix

    def change(self, command, variables):
        """Variables that `module COMMAND cepheus` sets, and with None those that it unsets."""
        done = subprocess.run([MODULECMD, "python", command, "cepheus"], text=True, capture_output=True, timeout=60, env=variables)
        self.assertEqual(done.stderr, "")
        return {**dict(re.findall(r"^os\.environ\['(\w+)'\] = '(.*)'$", done.stdout, re.MULTILINE)),
                **dict.fromkeys(re.findall(r"^del os\.environ\['(\w+)'\]$", done.stdout, re.MULTILINE))}

    def test_names_what_is_under_its_own_prefix(self):
        found, prefix = self.load()
        self.assertEqual(found["PATH"], f"{prefix}/bin:/usr/bin:/bin")
        self.assertEqual(found["LD_LIBRARY_PATH"], f"{prefix}/lib")
        self.assertEqual(found["PKG_CONFIG_PATH"], f"{prefix}/lib/pkgconfig")
        self.assertEqual(found["OMPI_MCA_mca_base_component_path"], f"SYSTEM_DEFAULT:{prefix}/lib/cepheus/openmpi:USER_DEFAULT")

    def test_leaves_a_component_path_of_the_users_alone(self):
        found, _ = self.load(("OMPI_MCA_mca_base_component_path", "/mine"))
        self.assertIn("PATH", found)
        self.assertNotIn("OMPI_MCA_mca_base_component_path", found)

    def test_names_no_component_of_a_build_without_it(self):
        found, _ = self.load(has_component=False)
        self.assertIn("PATH", found)
        self.assertNotIn("OMPI_MCA_mca_base_component_path", found)

    def test_unloading_removes_the_component_path_that_loading_has_set(self):
        found, _ = self.load(unloads=True)
        self.assertNotIn("OMPI_MCA_mca_base_component_path", found)
        found, _ = self.load(("OMPI_MCA_mca_base_component_path", "/mine"), unloads=True)
        self.assertEqual(found["OMPI_MCA_mca_base_component_path"], "/mine")


if __name__ == "__main__":
    if MODULECMD is None:
        print("SKIPPED: environment-modules is missing; install it to test the module file")
        sys.exit(77)
    unittest.main()
