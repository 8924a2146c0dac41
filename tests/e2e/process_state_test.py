#!/usr/bin/python3
"""What coll/cepheus changes in a process: signal handlers, libraries, descriptors, threads, environment.

docs/troubleshooting.md lists what mode try adds.
"""

import collections
import pathlib
import re
import subprocess
import tempfile
import unittest

from harness import BUILD, PARTED, PROGRAMS, REQUIRE, EndToEnd, needs_rc_mcast, over_fabric, without_fabric

COMPONENT = f"library {BUILD}/lib/openmpi/mca_coll_cepheus.so"
# Of mode try: the rest of coll/cepheus, its libraries (Debian 13's libcrypto brings libzstd), and the reports that `cepheusctl explain` reads.
OURS = re.compile(r"library .*/(libcepheus-coll|libmcast|libisal|libibverbs|libnl-(3|route-3)|libstdc\+\+|libgcc_s|libhwloc|libcrypto|libzstd|libm)\.so[.\d]*$"
                  r"|descriptor /dev/shm/cepheus-")
UCX = r"(libuc[mpst]|libcepheus-ucx)"


class ProcessState(EndToEnd):
    def changes(self, run, *arguments, **settings):
        """The lines that MPI_Init and broadcasts have added and removed."""
        with tempfile.NamedTemporaryFile(prefix="cepheus-state-") as file:
            ended = run(PROGRAMS / "process_state", file.name, *arguments, **settings)
            self.assertEqual(ended.code, 0, ended.everything())
            lines = pathlib.Path(file.name).read_text().splitlines()
        state = {"before": collections.Counter(), "after": collections.Counter()}
        for line in lines:
            when, words = line.split(" ", 1)
            state[when][words] += 1
        self.assertTrue(state["before"] and state["after"], ended.everything())
        return state["after"] - state["before"], state["before"] - state["after"]

    def changes_without_fabric(self, mode, *arguments):
        return self.changes(without_fabric, *arguments, ranks=2, mca={**PARTED, "coll_cepheus_mode": mode})

    def plain(self, *arguments):
        """Open MPI without the component."""
        return self.changes(without_fabric, *arguments, ranks=2, mca={"coll": "^cepheus"})

    def test_mode_off_changes_nothing_but_the_components_own_file(self):
        plain, off = self.plain(), self.changes_without_fabric("off")
        self.assertEqual((off[0] - plain[0], plain[0] - off[0], off[1]), (collections.Counter([COMPONENT]), collections.Counter(), plain[1]))

    def test_mode_try_without_a_fabric_adds_libraries_and_a_report(self):
        plain, tried = self.plain(40), self.changes_without_fabric("try", 40)
        added = tried[0] - plain[0]
        self.assertIn(COMPONENT, added)
        self.assertEqual([line for line in added if line != COMPONENT and not OURS.match(line)], [])
        self.assertEqual((plain[0] - tried[0], tried[1]), (collections.Counter(), plain[1]))

    def assert_leaves_handlers(self, **settings):
        """Libraries and more that broadcasts over a fabric add. The NIC alone, as hardware's library would, may do more."""
        plain, mine = (self.changes(over_fabric, 4, hosts=2, **how) for how in ({"mca": {"coll": "^cepheus"}}, settings))
        changed = [line for sign in (0, 1) for line in mine[sign] - plain[sign]]
        # Of plain Open MPI's handlers too: those of Debian 13's are UCX's, which its libopen-pal links.
        nics = tuple(line[:line.index("/")] for line in changed if line.startswith("handler") and "/libcepheus-roce" in line)
        kinds = ("handler", "altstack", "environment", "mremap")
        self.assertEqual([line for line in changed if line.startswith(kinds) and not line.startswith(nics)], [])
        return "\n".join(mine[0] - plain[0])

    def test_multicast_loads_no_ucx(self):
        libraries = self.assert_leaves_handlers(mca=REQUIRE)
        self.assertIn("libcepheus-coll", libraries)
        self.assertNotRegex(libraries, "/" + UCX)

    def test_only_the_module_for_ucx_links_ucx(self):
        for library in (BUILD / "lib").glob("**/*.so"):
            if library.parent.name != "ucx":
                # By itself: Debian 13's Open MPI links UCX.
                needs = subprocess.run(["readelf", "--dynamic", library], text=True, capture_output=True, check=True).stdout
                self.assertIn("NEEDED", needs)
                self.assertNotRegex(needs, r"NEEDED.*\[" + UCX, library)

    @needs_rc_mcast
    def test_multicast_by_ucx_leaves_handlers(self):
        """UCX hooks the memory functions as its constructors run, unless the user has switched that off."""
        libraries = self.assert_leaves_handlers(mca={**REQUIRE, "coll_cepheus_carrier": "ucx"}, environment={"UCX_MEM_EVENTS": "n"})
        self.assertIn("libuct_rc_mcast", libraries)


if __name__ == "__main__":
    unittest.main()
