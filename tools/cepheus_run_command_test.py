#!/usr/bin/python3
"""cepheus-run's reading of arguments, and the command and the environment that it makes of them."""

import errno
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cepheus_run_script import cepheus_run, load_script, pairs  # noqa: E402


def line(*words, **environ):
    return cepheus_run.MpirunLine(list(words), environ)


def mca(words):
    return {words[i + 1]: words[i + 2] for i, word in enumerate(words) if word == "--mca"}


class ReadingMpirunsArguments(unittest.TestCase):
    def test_counts_ranks(self):
        for words, ranks in [(["-np", "3", "a"], 3), (["--np", "3", "a"], 3), (["-n", "2", "a"], 2), (["-c", "2", "a"], 2),
                             (["a"], None), (["--mca", "x", "-np", "a"], None), (["-x", "A=B", "-np", "5", "a"], 5),
                             (["--output", "tag", "--prtemca", "x", "y", "-np", "2", "a"], 2), (["--np=2", "a", "-np", "3"], 2)]:
            self.assertEqual(line(*words).ranks(), ranks, words)

    def test_leaves_the_programs_arguments_alone(self):
        parsed = line("--tag-output", "./a", "-np", "9", "--mca", "pml")
        self.assertIsNone(parsed.ranks())
        self.assertEqual(parsed.contexts[0].program, ["./a", "-np", "9", "--mca", "pml"])

    def test_adds_up_several_programs(self):
        self.assertEqual(line("-np", "1", "a", ":", "-np", "2", "b", "c").ranks(), 3)
        with self.assertRaisesRegex(cepheus_run.Failure, "needs its own -np"):
            line("-np", "1", "a", ":", "b").ranks()

    def test_misses_the_program(self):
        for words in ([], ["-np", "2"], ["-np", "2", "a", ":", "-np", "1"]):
            with self.assertRaisesRegex(cepheus_run.Failure, "no program"):
                line(*words)

    def test_misses_an_argument(self):
        with self.assertRaisesRegex(cepheus_run.Failure, "--mca lacks its argument"):
            line("--mca", "pml")
        with self.assertRaisesRegex(cepheus_run.Failure, "'x' is not a number"):
            line("-np", "x", "a").ranks()


class ReadingHydrasArguments(unittest.TestCase):
    @staticmethod
    def line(*words):
        return cepheus_run.HydraLine(list(words), {})

    def test_counts_ranks(self):
        for words, ranks in [(["-np", "3", "a"], 3), (["-n", "2", "a", "-np", "9"], 2), (["a"], None), (["-genv", "A", "1", "-np", "2", "a"], 2),
                             (["-genv", "A=1", "-np", "2", "a"], 2), (["-machinefile", "np", "-np", "2", "a"], 2),
                             (["-np", "1", "a", ":", "-np", "2", "b"], 3)]:
            self.assertEqual(self.line(*words).ranks(), ranks, words)

    def test_refuses_what_it_can_not_run(self):
        for words, why in [(["-np", "2"], "no program"), (["-np", "1", "a", ":", "b"], "needs its own -np"), (["-np", "x", "a"], "lacks its number"),
                           (["-genv", "LD_PRELOAD", "x", "a"], "would replace"), (["-env", "LD_PRELOAD=x", "a"], "would replace")]:
            with self.subTest(words), self.assertRaisesRegex(cepheus_run.Failure, why):
                self.line(*words)


class LaunchersHelp(unittest.TestCase):
    """The lists of options that take arguments, compared with each installed launcher."""

    @staticmethod
    def output_of(*command):
        return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=120, check=False,
                              env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}).stdout

    @unittest.skipUnless(shutil.which("mpiexec.hydra"), "SKIPPED: MPICH's mpiexec.hydra is missing: install mpich")
    def test_hydra(self):
        words = re.findall(r"^ +(-[-\w/]+)", self.output_of("mpiexec.hydra", "--help"), re.M)
        names = {part.lstrip("-") for word in words for part in word.split("/")}
        self.assertGreater(len(names), 40)
        ours = cepheus_run.HydraLine
        for name in sorted(names - ours.WITH_TWO):
            # An option with an argument takes -info for it; then no details are printed.
            takes_none = "HYDRA build details" in self.output_of("mpiexec.hydra", f"-{name}", "-info")
            self.assertEqual(name in ours.WITH_ARGUMENT, not takes_none, name)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "SKIPPED: Open MPI's mpirun is missing: install openmpi-bin")
    def test_open_mpi(self):
        text = self.output_of("mpirun.openmpi", "--help", "full")
        found = re.findall(r"^ +(-\S+)((?: <arg\d>)*)", text, re.M)
        if not any(arguments for _, arguments in found):
            self.skipTest("SKIPPED: this mpirun's help does not name arguments: use Open MPI 4, as on Debian 12")
        ours = cepheus_run.Context
        for names, arguments in found:
            for name in (name.lstrip("-") for name in names.split("|")):
                taken = 2 if name in ours.WITH_TWO else 1 if name in ours.WITH_ARGUMENT else 0
                if name != "dvm":  # Open MPI 4's takes none, but makes no job either
                    self.assertEqual(taken, arguments.count("<"), name)


class OwnDirectory(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(tempfile, "tempdir", str(self.scratch)))

    def test_needs_no_locks_of_its_file_system(self):
        for error in errno.EBADF, errno.ENOSYS, errno.ENOLCK:
            with mock.patch.object(cepheus_run.fcntl, "flock", side_effect=2 * [OSError(error, "no locks")]):
                own = cepheus_run.OwnDirectory()
                cepheus_run.OwnDirectory.sweep()
            self.assertEqual(list(self.scratch.iterdir()), [own.path])
            own.remove()
            self.assertFalse(own.path.exists())

    def test_another_nodes_stay(self):
        with mock.patch.object(cepheus_run.os, "uname", lambda: mock.Mock(nodename="another")):
            others = load_script().OwnDirectory()
        os.close(others.lock)  # as this node sees it, where locks are of one node
        cepheus_run.OwnDirectory.sweep()
        self.assertTrue(others.path.exists())


class PreloadOrder(unittest.TestCase):
    def test_sanitizers_come_first_and_the_users_order_stands(self):
        for others, expected in [(None, "ours"), ("", "ours"), ("b.so:a.so", "ours:b.so:a.so"), ("/x/libasan.so.8", "/x/libasan.so.8:ours"),
                                 ("b.so /l/libtsan.so.2:a.so:libubsan.so.1", "/l/libtsan.so.2:libubsan.so.1:ours:b.so:a.so"),
                                 ("libclang_rt.asan-x86_64.so", "libclang_rt.asan-x86_64.so:ours")]:
            self.assertEqual(cepheus_run.preload("ours", others), expected)


class Defaults(unittest.TestCase):
    def test_keep_open_mpis_own_traffic_off_the_fabric(self):
        words = line("a").defaults(4)
        self.assertEqual(mca(words), {"pml": "ob1", "btl": "self,vader,tcp", "btl_tcp_if_include": "lo", "osc": "^ucx"})
        self.assertIn("--oversubscribe", words)
        self.assertEqual(pairs(words, "-np"), ["4"])
        self.assertEqual("--allow-run-as-root" in words, os.geteuid() == 0)

    def test_give_way_to_the_user(self):
        words = line("-np", "2", "--mca", "pml", "ucx", "--bind-to", "core", "--nooversubscribe", "a").defaults(4)
        self.assertEqual(mca(words), {"osc": "^ucx"})
        for word in ("-np", "--bind-to", "--oversubscribe"):
            self.assertNotIn(word, words)
        self.assertEqual(mca(line("-mca", "btl", "tcp,self", "a").defaults(4)), {"pml": "ob1", "osc": "^ucx"})
        self.assertNotIn("btl_tcp_if_include", mca(line("--mca", "btl_tcp_if_exclude", "eth0", "a").defaults(4)))
        self.assertNotIn("osc", mca(line("--mca", "osc", "rdma", "a").defaults(4)))

    def test_give_way_to_the_environment(self):
        self.assertEqual(mca(line("a", OMPI_MCA_pml="cm", OMPI_MCA_osc="rdma").defaults(4)), {})

    def test_leave_counting_to_mpirun_if_it_has_its_own_options(self):
        for words in (["-npernode", "2", "a"], ["--map-by", "ppr:1:core", "a"], ["--app", "file"]):
            self.assertNotIn("-np", line(*words).defaults(4), words)
        self.assertIn("-np", line("--map-by", "slot", "a").defaults(4))


class Layout:
    mpich = "/p/mpich/libcepheus-mpi.so"
    openmpi = "/p/openmpi/libcepheus-mpi.so"
    preload = "/p/libcepheus-roce.so"
    components = "/p/openmpi"


class Reservation:
    hosts = ["h4", "h5", "h6", "h7"]
    id = 0x7F


class Command(unittest.TestCase):
    def command(self, *words, **environ):
        return line(*words, **environ).command("mpirun", Layout, "/run/fabric", Reservation)

    def test_ends_with_what_the_user_wrote(self):
        words = ["--mca", "coll_cepheus_mode", "require", "./a", "-x", "LD_PRELOAD=mine"]
        self.assertEqual(self.command(*words)[-len(words):], words)

    def test_names_the_library_to_the_ranks_only_and_no_value_that_others_must_not_see(self):
        words = self.command("a")
        self.assertEqual(pairs(words, "-x"), ["CEPHEUS_FABRIC", "CEPHEUS_HOSTS", "CEPHEUS_RESERVATION", "LD_PRELOAD=/p/libcepheus-roce.so"])

    def test_has_the_reservation_in_the_environment_alone_whatever_the_mpi(self):
        """All users can read command lines, and the number opens the reserved hosts."""

        class Secret(Reservation):
            id = 0xFEED5EED

        for make in (cepheus_run.MpirunLine, cepheus_run.PreloadLine, cepheus_run.HydraLine):
            one = make(["-np", "4", "a"], {})
            words = one.command("mpirun", Layout, "/run/fabric", Secret)
            self.assertNotIn("feed5eed", " ".join(words).lower(), make)
            self.assertEqual(one.places("/run/fabric", Secret, 1)["CEPHEUS_RESERVATION"], "feed5eed", make)

    def test_passes_the_number_of_ranks_of_a_host_to_each_rank(self):
        words = line("a").command("mpirun", Layout, "/run/fabric", Reservation, 3)
        self.assertEqual(pairs(words, "-np"), ["12"])
        self.assertIn("CEPHEUS_RANKS_PER_HOST", pairs(words, "-x"))
        self.assertEqual(line("a").places("/run/fabric", Reservation, 3)["CEPHEUS_RANKS_PER_HOST"], "3")
        self.assertEqual(mca(words)["coll_cepheus_ranks_per_host"], "3")

    def test_names_no_hosts_of_another_run(self):
        environment = line("a", CEPHEUS_RANKS_PER_HOST="2", CEPHEUS_HOST="h7", USER="u").environment(Layout)
        self.assertFalse({"CEPHEUS_RANKS_PER_HOST", "CEPHEUS_HOST"} & set(environment))
        self.assertEqual(environment["USER"], "u")

    def test_does_so_for_each_of_several_programs(self):
        words = self.command("-np", "1", "a", ":", "-np", "2", "b")
        self.assertEqual(len(pairs(words[words.index(":"):], "-x")), 4)

    def test_keeps_what_the_ranks_were_to_preload_anyway(self):
        both = ["LD_PRELOAD=/p/libcepheus-roce.so:mine.so"]
        self.assertEqual(pairs(self.command("-x", "LD_PRELOAD=mine.so", "a"), "-x")[3:], both)
        self.assertEqual(pairs(self.command("a", LD_PRELOAD="mine.so"), "-x")[3:], both)
        self.assertEqual(pairs(self.command("-x", "LD_PRELOAD", "a", LD_PRELOAD="mine.so"), "-x")[3:], both)

    def test_preloads_the_library_in_the_place_of_the_component(self):
        def preloading(*words, **environ):
            return cepheus_run.PreloadLine(list(words), environ).command("mpirun", Layout, "/run/fabric", Reservation, 2)

        words = preloading("a", CEPHEUS_SET_UP_AFTER="9")
        self.assertEqual(mca(words)["coll"], "^cepheus")
        self.assertEqual(pairs(words, "-x")[3:], ["CEPHEUS_RANKS_PER_HOST", "CEPHEUS_SET_UP_AFTER", "LD_PRELOAD=/p/openmpi/libcepheus-mpi.so:/p/libcepheus-roce.so"])
        one = cepheus_run.PreloadLine(["a"], {"CEPHEUS_HOST": "h1"})
        self.assertEqual(one.places("/run/fabric", Reservation, 1)["CEPHEUS_SET_UP_AFTER"], "-1")
        self.assertEqual(one.environment(Layout), {})
        with self.assertRaisesRegex(cepheus_run.Failure, "set CEPHEUS_MODE"):
            preloading("--mca", "coll_cepheus_mode", "require", "a")
        words = preloading("--mca", "coll", "tuned,basic", "-x", "CEPHEUS_SET_UP_AFTER=9", "a")
        self.assertEqual(mca(words)["coll"], "tuned,basic")
        self.assertEqual([word for word in pairs(words, "-x") if "SET_UP" in word], ["CEPHEUS_SET_UP_AFTER=9"])

    def test_environment_finds_the_component_before_directories_that_may_be_absent(self):
        env = line("a", CEPHEUS_HOST="h1", PMIX_MCA_mca_base_component_path="/pmix").environment(Layout)
        self.assertEqual(env, {"OMPI_MCA_mca_base_component_path": "SYSTEM_DEFAULT:/p/openmpi:USER_DEFAULT",
                               "PMIX_MCA_mca_base_component_path": "/pmix"})
        env = line("a", OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT:/mine").environment(Layout)
        self.assertEqual(env["OMPI_MCA_mca_base_component_path"], "SYSTEM_DEFAULT:/mine:/p/openmpi")

    def test_environment_keeps_pmix_to_its_own_components(self):
        with tempfile.TemporaryDirectory(prefix="cr-") as scratch:
            own = pathlib.Path(scratch) / "multiarch/pmix2/lib/pmix"
            with mock.patch.object(cepheus_run, "PMIX_ROOT", pathlib.Path(scratch)):
                self.assertNotIn("PMIX_MCA_mca_base_component_path", line("a").environment(Layout))
                own.mkdir(parents=True)
                self.assertEqual(line("a").environment(Layout)["PMIX_MCA_mca_base_component_path"], str(own))


if __name__ == "__main__":
    unittest.main()
