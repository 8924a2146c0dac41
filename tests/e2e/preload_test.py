#!/usr/bin/python3
"""MPI_Bcast of Open MPI programs, which preload libcepheus-mpi.so instead of loading coll/cepheus."""

import os
import subprocess
import unittest

import harness
import ibcast_test
from cases import Cases  # noqa: F401
from harness import BUILD, PROGRAMS, SOURCE, Mpich, Preload, finish, needs_component, paths_of_broadcasts
from mpich_test import REQUIRE, TRY, Fortran, Functions, Ibcast, OtherTools, Preloading, Reported  # noqa: F401
from programs_test import ManyCommunicators  # noqa: F401
from reductions_test import RandomReductions  # noqa: F401
from types_test import RandomTypes  # noqa: F401

SHARED = ("-shared", "-fPIC")


class Abi(unittest.TestCase):
    def test_is_that_of_this_open_mpis_header(self):
        subprocess.run([*Preload.COMPILERS[".cc"], "-DCEPHEUS_OPENMPI", f"-I{SOURCE}", "-fsyntax-only", SOURCE / "tests/mpi/abi_check.cc"], check=True)

    def test_programs_without_mpi_preload_it(self):
        for library in (Preload.LIBRARY, Mpich.LIBRARY):
            if library.exists():
                done = subprocess.run(["/bin/true"], env={"LD_PRELOAD": str(library), "LD_BIND_NOW": "1"}, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), library)


class OverAFabric(Preloading):
    def test_open_mpi_reports_wrong_arguments(self):
        self.assert_ok(self.over_fabric("wrong_arguments_check", "--gathers", 1))

    def test_a_plug_in_brings_mpi_with_it(self):
        plugin = Preload.compile("plugin.so", "broadcast_check", flags=SHARED + ("-Dmain=program_main",))
        host = Preload.scratch() / "plugin_host"
        subprocess.run(["cc", "-O1", f"-I{SOURCE}", SOURCE / "tests/mpi/plugin_host.c", "-o", host], check=True)
        self.assert_ok(self.over_fabric(host, plugin, "--count", 20, "--max", 1 << 16))


@needs_component
class BesideTheComponent(Reported):
    """One of libcepheus-mpi.so and coll/cepheus serves."""

    REASON = "it has loaded coll/cepheus"

    def run_with(self, *mca, settings):
        """cepheus-run without --preload; its ranks preload the library all the same."""
        command = [BUILD / "bin/cepheus-run", "--hosts", "3", "--", "-x", f"LD_PRELOAD={Preload.LIBRARY}", *mca, PROGRAMS / "broadcast_check", "--count", "12"]
        return harness.Run(finish([*map(str, command)], 120, {**os.environ, **settings}))

    def test_it_serves(self):
        run = self.run_with(settings={"CEPHEUS_MODE": "try"})
        self.assert_ok(run)
        self.assert_one_line(run, self.REASON)
        self.assertLessEqual({"eager lane", "bulk lane"}, set(self.paths()))

    def test_a_user_who_requires_the_library_gets_an_error(self):
        run = self.run_with(settings=REQUIRE)
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertIn(self.REASON, run.everything())

    def test_the_library_serves_if_its_mode_is_off(self):
        self.assert_library_serves("coll_cepheus_mode", "off")

    # Open MPI enables components in the order of their priorities; the last one's function is called.
    def test_the_library_serves_if_open_mpi_prefers_other_components(self):
        self.assert_library_serves("coll_cepheus_priority", "20")

    def test_the_library_serves_if_open_mpi_prefers_all_other_components(self):
        self.assert_library_serves("coll_cepheus_priority", "1")

    def assert_library_serves(self, parameter, value):
        run = self.run_with("--mca", parameter, value, settings={**REQUIRE, "CEPHEUS_SET_UP_AFTER": "0", "CEPHEUS_RANKS_PER_HOST": "1"})
        self.assert_ok(run)
        self.assertEqual(run.cepheus_lines(), [], run.everything())
        self.assertLessEqual({"eager lane", "bulk lane"}, set(self.paths()))


class FaultTolerance(Reported):
    def test_open_mpi_serves_programs_that_outlive_the_death_of_a_rank(self):
        """Open MPI 5 switches fault tolerance on by a parameter, and exports its variable. Here the program does so in its place."""
        for sources, settings in (("broadcast_check", "fault_tolerant_check"), {"OMPI_MCA_mpi_ft_enable": "1"}), (("broadcast_check",), {}):
            program = Preload.compile("-".join(sources), *sources)
            self.assert_ok(self.over_fabric(program, "--count", 12, hosts=2, settings={**REQUIRE, **settings}))
            self.assertEqual("eager lane" in self.paths(), not settings)


class PmpiBcast(Reported):
    """Tools call it, and here it is ours, too."""

    def setUp(self):
        super().setUp()
        self.tool = Preload.compile("tool.so", "counting_tool", flags=SHARED)

    def test_broadcasts_of_a_tool_in_front_are_served(self):
        """In mode require the job ends, as no fabric is there."""
        run = self.without_fabric("broadcast_check", "--count", 20, settings=REQUIRE, libraries=(self.tool, Preload.LIBRARY))
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertIn('CEPHEUS_MODE is "require"', run.err, run.everything())

    def test_broadcasts_that_a_tool_behind_passes_on_are_mpis(self):
        """... and are counted once."""
        settings = {**TRY, "CEPHEUS_REPORT_DIR": str(self.directory)}
        run = self.without_fabric("broadcast_check", "--count", 20, "--size", 1000, settings=settings, libraries=(Preload.LIBRARY, self.tool))
        self.assert_ok(run)
        _, world = self.world()
        [path] = paths_of_broadcasts(world)
        self.assertEqual((path["path"], path["most"]), ("open mpi", 20))
        self.assertIn("tool: 1 inits, 20 broadcasts", run.out, run.everything())


class Failures(ibcast_test.Faults):
    test_switch_killed_with_broadcasts_in_flight = None  # left out: it takes long, and the others test as much of an ABI


class WithoutAFabric(Preloading):
    def test_require_ends_the_job_with_a_reason(self):
        run = self.without_fabric("broadcast_check", settings=REQUIRE)
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertIn('CEPHEUS_MODE is "require"', run.err, run.everything())

    def test_broadcasts_while_the_communicator_is_freed(self):
        program = Preload.compile("delete", "delete_check")
        self.assert_ok(self.without_fabric(program, settings={**TRY, "CEPHEUS_RANKS_PER_HOST": "1"}, ranks=2))


if __name__ == "__main__":
    harness.use(Preload)
    unittest.main()
