#!/usr/bin/python3
"""MPI_Bcast of MPICH programs, which preload libcepheus-mpi.so: over a fabric, and without one."""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import reductions_test
import types_test
from cases import Cases  # noqa: F401
from harness import PROGRAMS, SOURCE, EndToEnd, Mpich, Reporting, Run, finish, mpi, over_fabric, paths_of_broadcasts, star
from ibcast_test import Progress  # noqa: F401
from programs_test import Waits  # noqa: F401
from reductions_test import RandomReductions  # noqa: F401
from types_test import RandomTypes  # noqa: F401

types_test.CASES = 100  # of their own: with coll/cepheus there are 400
reductions_test.CASES = 40

# A busy machine must not look like a failed fabric, nor choose the path.
REQUIRE = {"CEPHEUS_MODE": "require", "CEPHEUS_WATCHDOG_MS": "30000"}
TRY = {"CEPHEUS_MODE": "try", "CEPHEUS_SAFEGUARD_SAMPLES": "0"}
VERBOSE = {"CEPHEUS_MPI_VERBOSE": "1"}


class Preloading(EndToEnd):
    """Programs that preload libcepheus-mpi.so: settings are variables."""

    def over_fabric(self, program, *arguments, settings=REQUIRE, **how):
        return over_fabric(PROGRAMS / program, *arguments, environment=settings, **how)

    def assert_one_line(self, run, words):
        """... of Cepheus, with these words."""
        self.assertEqual([words in line for line in run.cepheus_lines()], [True], run.everything())

    def without_fabric(self, program, *arguments, settings, ranks=4, last_rank=None, libraries=None):
        """`last_rank`: settings of one more rank, with MPICH only."""
        command, env = mpi().without_fabric(ranks, libraries or (mpi().LIBRARY,))
        command += [mpi().program(PROGRAMS / program), *arguments]
        if last_rank is not None:
            own = [word for name, value in last_rank.items() for word in ("-env", name, value)]
            command += [":", "-np", 1, *own, mpi().program(PROGRAMS / program), *arguments]
        return Run(finish([*map(str, command)], 120, {**env, **settings}))


class Reported(Preloading, Reporting):
    def paths(self):
        """All paths that ranks reported, with their reasons."""
        return {path["path"]: path["reason"] for each in self.communicators() for path in each["paths"]}

    def communicators(self):
        return [each for job in self.jobs().values() for each in job["communicators"]]


class Abi(unittest.TestCase):
    def test_is_that_of_this_mpichs_header(self):
        subprocess.run(["mpicxx.mpich", "-std=c++20", "-DMPICH_SKIP_MPICXX", f"-I{SOURCE}", "-fsyntax-only",
                        SOURCE / "tests/mpi/abi_check.cc"], check=True)


class Functions(unittest.TestCase):
    """Programs look for MPI's functions by weak symbols and dlsym()."""

    @staticmethod
    def defined_by(library):
        shown = subprocess.run(["nm", "-D", "--defined-only", library], text=True, capture_output=True, check=True).stdout
        return {line.split()[-1].partition("@")[0] for line in shown.splitlines() if " MPI_" in line or " PMPI_" in line}

    def test_are_found_only_if_mpi_has_them(self):
        needed = subprocess.run(["ldd", mpi().program(PROGRAMS / "broadcast_check")], text=True, capture_output=True, check=True).stdout
        [library] = re.findall(r"=> (\S+/libmp\w+\.so\S*)", needed)
        self.assertEqual(self.defined_by(mpi().LIBRARY) - self.defined_by(library), set())


class Reports(Reported):
    def test_ranks_report_as_one_job(self):
        self.assert_ok(self.over_fabric("broadcast_check", "--count", 12, "--max", 100_000))
        job, world = self.world()
        self.assertEqual((job["processes"], world["ranks"]), (4, 4))
        broadcasts = paths_of_broadcasts(world)
        self.assertNotEqual(broadcasts, [])
        for path in broadcasts:
            self.assertIn(path["path"], ("eager lane", "bulk lane"))
            self.assertEqual((path["ranks_reporting"], path["fewest"]), (4, path["most"]))


class LargeCounts(Reported):
    """Functions of MPI 4 with large counts, and types that were made with them."""

    def test_go_by_the_network(self):
        self.assert_ok(self.over_fabric("large_count_types_check"))
        reductions = {f"{each}: network" for each in ("allreduce", "iallreduce", "reduce", "ireduce", "allgather", "iallgather")}
        self.assertLessEqual({"eager lane", *reductions}, set(self.paths()))


class OverAFabric(Preloading):
    def test_lines_have_the_present_name_of_a_communicator(self):
        run = self.over_fabric("name_check", settings={**TRY, **VERBOSE, "CEPHEUS_SET_UP_AFTER": "2"})
        self.assert_ok(run)
        self.assertEqual([line.partition(" (")[0] for line in run.lines_of_broadcasts()], ["cepheus: first name", "cepheus: second name"], run.everything())

    def test_mpich_reports_wrong_arguments(self):
        self.assert_ok(self.over_fabric("wrong_arguments_check", "--gathers", 1))

    def test_programs_with_sessions_alone_use_mpichs_algorithms(self):
        self.assert_ok(self.over_fabric("session_check", settings=TRY))

    def test_a_communicator_of_a_session_outlives_mpi_finalize(self):
        # Then MPICH serves it.
        run = self.over_fabric("session_check", "--outlive", 1, hosts=3, settings={**TRY, **VERBOSE})
        self.assert_ok(run)
        self.assertRegex(run.err, "cepheus: outlives.*multicast")

    def test_a_plug_in_brings_mpi_with_it(self):
        plugin = Mpich.compile("plugin.so", "broadcast_check", flags=("-shared", "-fPIC", "-Dmain=program_main"))
        host = Mpich.scratch() / "plugin_host"
        subprocess.run(["cc", "-O1", f"-I{SOURCE}", SOURCE / "tests/mpi/plugin_host.c", "-o", host], check=True)
        self.assert_ok(self.over_fabric(host, plugin, "--count", 20, "--max", 1 << 16))

    def test_programs_that_finalize_by_another_name(self):
        program = Mpich.compile("pmpi_finalize", "broadcast_check", flags=("-DMPI_Finalize=PMPI_Finalize",))
        run = self.over_fabric(program, "--count", 40, "--max", 1 << 18)
        self.assert_ok(run)
        self.assertEqual(run.status["switches"][0]["groups"], [], run.everything())


class OwnCommunicator(Preloading):
    """Messages need no communicator of MPI but the one that MPI_Init makes."""

    def test_broadcasts_once_the_program_has_taken_all_others(self):
        # Open MPI has 64 Ki of them.
        self.assert_ok(self.over_fabric(mpi().compile("exhausted", "exhausted_check"), hosts=3, timeout=600))


class Ibcast(Reported):
    """MPI_Ibcast."""

    def test_communicators_freed_with_broadcasts_in_flight(self):
        self.assert_ok(self.over_fabric("ibcast_check", "--count", 20, "--free", 1, "--mix", 1))
        paths = self.paths()
        saved = f"ibcast: {mpi().NAME}"
        self.assertLessEqual({"eager lane", "ibcast: eager lane", saved}, set(paths))
        self.assertIn("a non-blocking call before a blocking one", paths[saved])

    def test_a_request_completes_while_another_thread_waits_for_it(self):
        slow = mpi().compile("slow_completion.so", "slow_completion", flags=("-shared", "-fPIC"))
        settings = {**REQUIRE, "LD_PRELOAD": str(slow)}
        self.assert_ok(self.over_fabric("threads_check", "--threads", 3, "--count", 40, "--outstanding", 4, settings=settings))

    def test_waits_and_tests_need_no_thread(self):
        program = mpi().compile("threadless", "ibcast_check", "no_time_limits")
        self.assert_ok(self.over_fabric(program, "--count", 60, "--outstanding", 6))
        self.assertEqual({path["path"] for each in self.communicators() for path in paths_of_broadcasts(each)},
                         {"ibcast: eager lane", "ibcast: bulk lane"})

    def test_a_wait_reports_the_error_to_the_communicator(self):
        """Open MPI reports errors of non-blocking collectives to MPI_COMM_WORLD."""
        self.assert_ok(self.over_fabric("ibcast_check", "--short", "duplicate", settings=TRY, hosts=3))

    def test_file_reads_are_waited_for_meanwhile(self):
        with tempfile.NamedTemporaryFile(prefix="cepheus-ibcast-") as file:
            file.write(bytes(1000))
            file.flush()
            self.assert_ok(self.over_fabric("ibcast_check", "--file", file.name))

    def test_a_program_frees_requests_in_flight(self):
        overwritten = {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}  # freed memory
        self.assert_ok(self.over_fabric("ibcast_check", "--forget", 1, settings={**REQUIRE, **overwritten}))


class Fortran(Reported):
    """Programs in Fortran use the network, and their MPI_Wait needs no thread."""

    def check(self, *sources, flags=()):
        program = mpi().compile("fortran", *sources, "no_time_limits", flags=flags)
        self.assert_ok(self.over_fabric(program))
        reductions = {f"{each}: network" for each in ("barrier", "ibarrier", "allreduce", "iallreduce", "reduce", "allgather")}
        self.assertLessEqual({"eager lane", "bulk lane", "ibcast: eager lane", *reductions}, set(self.paths()))

    def test_77(self):
        self.check("fortran77_check.f")

    def test_90(self):
        self.check("fortran_check.F90", flags=("-DMODULE=mpi",))

    def test_2008(self):
        self.check("fortran_check.F90", flags=("-DMODULE=mpi_f08", "-DFORTRAN_2008"))


class OtherTools(Preloading):
    """Another library that defines MPI's functions in front of MPI."""

    def test_behind(self):
        """Also with one alone of MPI's functions that begin: each goes to the next definition of its own name, and
        MPI_THREAD_MULTIPLE is had all the same."""
        for name, flags in ("tool.so", ()), ("init_tool.so", ("-DWITHOUT_INIT_THREAD",)):
            tool = mpi().compile(name, "counting_tool", flags=("-shared", "-fPIC", *flags))
            run = self.over_fabric("broadcast_check", "--count", 20, "--size", 1000, settings={**REQUIRE, "LD_PRELOAD": str(tool)})
            self.assert_ok(run)
            self.assertIn("tool: 1 inits, 0 broadcasts", run.out, run.everything())

    def test_in_front(self):
        tool = mpi().compile("tool.so", "counting_tool", flags=("-shared", "-fPIC"))
        run = self.without_fabric("broadcast_check", "--count", 20, settings=TRY, libraries=(tool, mpi().LIBRARY))
        self.assert_ok(run)
        self.assertRegex(run.out, "tool: 1 inits, [1-9]")


class Safeguard(Preloading, Reporting):
    """Mode try compares multicast with MPICH's own broadcast."""

    def test_slow_links_are_not_chosen(self):
        # 168 ms for 1 MiB: a busy machine changes neither way's time as much.
        self.assert_ok(self.over_fabric("broadcast_check", "--count", 120, "--size", 1 << 20, settings={"CEPHEUS_MODE": "try"},
                                        topology=star(2, 'rate = "50Mbps"'), mca={"coll_cepheus_safeguard_samples": 10}))
        choices = {each["sizes"]: each["way"] for job in self.jobs().values() for world in job["communicators"] for each in world["sizes"]}
        self.assertEqual(choices, {"up to 1 MiB": "mpich"}, self.explained())

    def test_reductions_leave_slow_links(self):
        # 52 ms in the network. Barriers are chosen by the machine's load. A void first comparison is repeated after 500 calls.
        mca = {"coll_cepheus_reduction_limit": 32768, "coll_cepheus_safeguard_samples": 10}
        self.assert_ok(self.over_fabric("reduction_rounds_check", "--count", 800, "--size", 16384, settings={"CEPHEUS_MODE": "try"},
                                        topology=star(2, 'rate = "10Mbps"'), mca=mca))
        choices = {each["sizes"]: each["way"] for job in self.jobs().values() for world in job["communicators"] for each in world["sizes"]}
        choices.pop("barrier", None)
        self.assertEqual(choices, {"allreduce up to 16 KiB": "messages", "allgather up to 16 KiB": "mpich"}, self.explained())


class WithoutAFabric(Preloading):
    def test_calls_on_one_machine_pass_without_a_look_at_their_arguments(self):
        looks = mpi().compile("looks.so", "counting_looks", flags=("-shared", "-fPIC"))
        run = self.without_fabric("reduction_rounds_check", "--count", 50, settings=TRY, libraries=(mpi().LIBRARY, looks))
        self.assert_ok(run)
        packs, sizes, reductions = map(int, re.search("looks: (.*) packs, (.*) sizes, (.*) reductions", run.out).groups())
        self.assertLess(packs + sizes + reductions, 20, run.everything())

    def test_in_front_of_another_tool_it_begins_once(self):
        tool = Mpich.compile("tool.so", "counting_tool", flags=("-shared", "-fPIC"))
        run = self.without_fabric("broadcast_check", "--count", 4, settings={**TRY, **VERBOSE}, last_rank={"CEPHEUS_MIN_MEMBERS": "9"},
                                  libraries=(Mpich.LIBRARY, tool))
        self.assert_ok(run)
        self.assertEqual(len(run.cepheus_lines()), 1, run.everything())

    def test_broadcasts_while_the_communicator_is_freed(self):
        self.assert_ok(self.without_fabric("delete_check", settings={**TRY, "CEPHEUS_RANKS_PER_HOST": "1"}, ranks=2))

    def test_one_rank(self):
        self.assert_ok(self.without_fabric("broadcast_check", "--count", 10, settings=REQUIRE, ranks=1))

    def test_require_ends_the_job_with_a_reason(self):
        run = self.without_fabric("broadcast_check", settings=REQUIRE)
        self.assertNotEqual(run.code, 0, run.everything())
        self.assertIn('CEPHEUS_MODE is "require"', run.err, run.everything())

    def test_off_on_one_rank_is_off_on_all(self):
        for settings, last_rank, off in (TRY, "off", 4), (REQUIRE, "off", 4), ({"CEPHEUS_MODE": "off"}, "require", 0):
            with self.subTest(settings=settings, last_rank=last_rank):
                run = self.without_fabric("broadcast_check", "--count", 20, settings=settings, last_rank={"CEPHEUS_MODE": last_rank})
                self.assert_ok(run)
                self.assert_one_line(run, f"CEPHEUS_MODE is off on rank {off}")

    def test_one_rank_without_attributes_leaves_all_to_mpich(self):
        library = Mpich.compile("no_attributes.so", "no_attributes", flags=("-shared", "-fPIC"))
        run = self.without_fabric("broadcast_check", "--count", 20, settings={**TRY, **VERBOSE, "CEPHEUS_RANKS_PER_HOST": "1"}, libraries=(Mpich.LIBRARY, library))
        self.assert_ok(run)
        self.assertEqual(sorted(("failed" in line, "another rank" in line) for line in run.cepheus_lines()), [(False, True), (True, False)], run.everything())

    def test_ranks_with_other_settings(self):
        settings = {**TRY, **VERBOSE, "CEPHEUS_RANKS_PER_HOST": "1"}
        run = self.without_fabric("broadcast_check", "--count", 20, settings=settings, last_rank={"CEPHEUS_MIN_MEMBERS": "9"})
        self.assert_ok(run)
        self.assert_one_line(run, "CEPHEUS_* differ")

    def test_values_that_are_none_or_beyond_their_range_are_named(self):
        for name, value in ("CEPHEUS_MODE", "maybe"), ("CEPHEUS_WATCHDOG_MS", "-1"):
            run = self.without_fabric("broadcast_check", "--count", 4, settings={name: value})
            self.assert_ok(run)
            self.assertIn(f"{name}={value}", run.err, run.everything())


def run():
    """The tests of the script that was started."""
    if shutil.which("mpirun.mpich") is None or shutil.which("mpicc.mpich") is None:
        print("mpich_test: SKIPPED, nothing was checked: MPICH is missing; as root: apt-get install mpich libmpich-dev")
        sys.exit(77)
    harness.use(Mpich)
    unittest.main()


if __name__ == "__main__":
    run()
