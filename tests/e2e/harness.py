"""Shared by the end-to-end tests: runs MPI programs over a fabric, or without one."""

import atexit
import contextlib
import datetime
import functools
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from switch_process import star  # noqa: E402, F401  for the tests

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CEPHEUS_BUILD", "build/dev")).resolve()
PROGRAMS = BUILD / "tests/mpi"
CHECK = PROGRAMS / "broadcast_check"
REDUCTIONS = ("barrier", "allreduce", "reduce", "allgather")
TRANSPORT = BUILD / "lib/ucx/libuct_rc_mcast.so"
needs_rc_mcast = unittest.skipUnless(TRANSPORT.exists(), "SKIPPED: rc_mcast was not built, because it does not fit this UCX: "
                                      "use UCX 1.13 or 1.18")
COMPONENT = BUILD / "lib/openmpi/mca_coll_cepheus.so"
NO_COMPONENT = "SKIPPED: coll/cepheus was not built, because Open MPI's internal headers are missing: install libopenmpi-dev"
needs_component = unittest.skipUnless(COMPONENT.exists(), NO_COMPONENT)
ENDING_SECONDS = 30  # time limit for a program's end


def taken(name, default):
    """The value of a test program's own option, removed from the command line."""
    if name not in sys.argv:
        return default
    at = sys.argv.index(name)
    value = type(default)(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value


def day():
    """A seed: another one each day."""
    return datetime.date.today().toordinal()


def collective_of(path):
    """Of a path in a report: bcast, barrier and so on, also of its non-blocking form."""
    return path["path"].rpartition(": ")[0].removeprefix("i") or "bcast"


def paths_of_broadcasts(communicator):
    """Of a communicator in a report, without those of reductions."""
    return [path for path in communicator["paths"] if collective_of(path) == "bcast"]


class Run:
    """One finished command: exit code, output, and the fabric's status at its end if there was a fabric."""

    def __init__(self, completed, status=None):
        self.code = completed.returncode
        self.out = completed.stdout
        self.err = completed.stderr
        self.status = status
        self.report = None  # of the job of a program that preloads libcepheus-mpi.so

    def cepheus_lines(self):
        """The lines that coll/cepheus printed."""
        return [line[line.index("cepheus:"):] for line in self.err.splitlines() if "cepheus:" in line]

    def lines_of_broadcasts(self):
        """... but those that name the path of a communicator's reductions: the checks end with some."""
        return [line for line in self.cepheus_lines() if "reductions in the network" not in line and " reductions or " not in line]

    def variables(self):
        """coll/cepheus's MPI_T variables, as rank 0 printed them. With libcepheus-mpi.so those that count calls, from a report."""
        if self.report is not None:
            counts = dict.fromkeys(("bcasts_eager", "bcasts_bulk", "bcasts_hosts", "bcasts_saved", "ibcasts_eager", "ibcasts_bulk",
                                    "ibcasts_hosts", "ibcasts_tree", "ibcasts_saved"), 0)
            counts |= {f"{each}s_{way}": 0 for each in REDUCTIONS for way in ("network", "hosts", "messages", "saved")}
            for communicator in self.report["communicators"]:
                for path in communicator["paths"]:
                    kind, _, way = path["path"].rpartition(": ")
                    way = {"point to point": "tree" if kind else "saved", _mpi.NAME: "saved"}.get(way, way.removesuffix(" lane"))
                    if collective_of(path) in REDUCTIONS:
                        kind = collective_of(path)
                    counts[f"{kind or 'bcast'}s_{way}"] += path["most"]
            return counts
        return {words[0].removeprefix("coll_cepheus_"): int(words[1]) for words in map(str.split, self.out.splitlines())
                if words[0].startswith("coll_cepheus_")}

    def port(self, name):
        for switch in self.status["switches"]:
            for port in switch["ports"]:
                if port["name"] == name:
                    return port
        raise KeyError(name)

    def everything(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def need_component():
    """Skips a test that runs coll/cepheus, in a build without it."""
    if not COMPONENT.exists():
        raise unittest.SkipTest(NO_COMPONENT)


# The safeguard would choose by this machine's load, so it is off except in its own tests. All collectives are served.
SETTINGS = {"coll_cepheus_safeguard_samples": 0, "coll_cepheus_collectives": ",".join(("bcast", *REDUCTIONS))}


def settings(mca):
    """With those of all tests. None: Cepheus's default."""
    return {name: value for name, value in {**SETTINGS, **mca}.items() if value is not None}


def mca_arguments(mca):
    """Arguments of mpirun."""
    need_component()
    arguments = []
    for name, value in settings(mca).items():
        arguments += ["--mca", name, str(value)]
    return arguments


class OpenMpi:
    """How tests run a program with an MPI implementation. Settings are named as MCA parameters."""

    NAME = "open mpi"  # in lines of Cepheus
    OPTIONS = ()  # of cepheus-run

    @staticmethod
    def parameter(name):
        return f"coll_cepheus_{name}"

    @staticmethod
    def program(path):
        return path

    @staticmethod
    def arguments(mca):
        """Of mpirun."""
        return mca_arguments(mca)

    @staticmethod
    def without_fabric(ranks):
        """mpirun, and its environment."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("CEPHEUS_")}
        env["OMPI_MCA_coll_cepheus_set_up_after"] = "0"  # of reductions, too
        env["OMPI_MCA_mca_base_component_path"] = f"SYSTEM_DEFAULT:{BUILD}/lib/openmpi"
        command = ["mpirun", "-np", str(ranks), "--oversubscribe", "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp",
                   "--mca", "btl_tcp_if_include", "lo"]
        return command + (["--allow-run-as-root"] if os.geteuid() == 0 else []), env


class Mpich:
    """... with MPICH. Its programs are compiled when they first run."""

    NAME = "mpich"
    OPTIONS = ("--mpi", "mpich")
    LIBRARY = BUILD / "lib/mpich/libcepheus-mpi.so"
    COMPILERS = {".c": ["mpicc.mpich"], ".cc": ["mpicxx.mpich", "-std=c++20", "-DMPICH_SKIP_MPICXX"], "fortran": ["mpifort.mpich"]}

    @staticmethod
    @functools.cache
    def scratch():
        directory = tempfile.TemporaryDirectory(prefix="cepheus-mpich-")
        atexit.register(directory.cleanup)
        return pathlib.Path(directory.name)

    @classmethod
    @functools.cache
    def program(cls, path):
        return cls.compile(path.name, path.name) if path.parent == PROGRAMS else path

    @classmethod
    def compile(cls, program, *sources, flags=()):
        """`sources`: of tests/mpi, those in C and C++ without a suffix."""
        folder = SOURCE / "tests/mpi"
        paths = [folder / name if "." in name else next(folder.glob(f"{name}.c*")) for name in sources]
        compiler = cls.COMPILERS.get(paths[0].suffix, cls.COMPILERS["fortran"])
        # -w: GCC takes MPICH's MPI_STATUSES_IGNORE for an address. -rdynamic: some programs replace functions of the C library.
        definitions = (f'-DFAKE_GPU_DRIVER="{PROGRAMS}/fake_gpu/libcuda.so.1"',)
        subprocess.run([*compiler, "-O1", "-w", "-rdynamic", f"-I{SOURCE}", *definitions, *flags, *paths, "-ldl", "-o", cls.scratch() / program],
                       check=True)
        return cls.scratch() / program

    @staticmethod
    def parameter(name):
        return "CEPHEUS_MPI_VERBOSE" if name == "verbose" else f"CEPHEUS_{name.upper()}"

    @classmethod
    def arguments(cls, mca):
        return [word for name, value in settings(mca).items() for word in ("-genv", cls.parameter(name.removeprefix("coll_cepheus_")), str(value))]

    @classmethod
    def without_fabric(cls, ranks, libraries=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CEPHEUS_")}
        preloaded = ":".join(map(str, libraries or (cls.LIBRARY,)))
        return ["mpirun.mpich", "-genv", "LD_PRELOAD", preloaded, "-np", str(ranks)], {**env, "CEPHEUS_SET_UP_AFTER": "0"}


class Preload(Mpich):
    """... with Open MPI. Its programs preload libcepheus-mpi.so, and coll/cepheus is off."""

    NAME = "open mpi"
    OPTIONS = ("--preload",)
    LIBRARY = BUILD / "lib/openmpi/libcepheus-mpi.so"
    COMPILERS = {".c": ["mpicc.openmpi"], ".cc": ["mpicxx.openmpi", "-std=c++20", "-DOMPI_SKIP_MPICXX"], "fortran": ["mpifort.openmpi"]}
    program = OpenMpi.program

    @classmethod
    def arguments(cls, mca):
        return [word for name, value in settings(mca).items() for word in ("-x", f"{cls.parameter(name.removeprefix('coll_cepheus_'))}={value}")]

    @classmethod
    def without_fabric(cls, ranks, libraries=None):
        command, env = OpenMpi.without_fabric(ranks)
        preloaded = ":".join(map(str, libraries or (cls.LIBRARY,)))
        return [*command, "--mca", "coll", "^cepheus", "-x", f"LD_PRELOAD={preloaded}"], {**env, "CEPHEUS_SET_UP_AFTER": "0"}


_mpi = OpenMpi


def use(mpi):
    """The MPI of all programs from now on."""
    global _mpi
    _mpi = mpi


def mpi():
    return _mpi


def children_of(pid):
    """All descendants of a process."""
    below = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            below.setdefault(int(stat.read_text().rsplit(")", 1)[1].split()[1]), []).append(int(stat.parent.name))
    found = list(below.get(pid, []))
    for child in found:
        found += below.get(child, [])
    return found


def stacks_below(pid):
    """Stacks of the programs below that process, if a debugger is installed."""
    if shutil.which("gdb") is None:
        return "install gdb to see its processes' stacks"
    stacks = []
    for child in children_of(pid):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            program = os.readlink(f"/proc/{child}/exe")
            if program.startswith(str(BUILD)):
                shown = subprocess.run(["gdb", "-p", str(child), "-batch", "-ex", "thread apply all bt 16"], text=True,
                                       stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False).stdout
                stacks.append(f"{program}, process {child}\n{shown}")
    return "\n".join(stacks)


def finish(command, timeout, env=None):
    """Runs it; a program that does not end is an error with its processes' stacks."""
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            where = stacks_below(process.pid)
            process.terminate()
            try:
                out, err = process.communicate(timeout=ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
            raise AssertionError(f"{shlex.join(command)} did not end within {timeout} s\n--- stdout\n{out}\n--- stderr\n{err}\n"
                                 f"--- {where}") from None
        return subprocess.CompletedProcess(command, process.returncode, out, err)


@contextlib.contextmanager
def own_report():
    """The environment of a program that preloads libcepheus-mpi.so, and a function that reads its job's report."""
    with tempfile.TemporaryDirectory(prefix="cepheus-reports-", dir="/dev/shm") as directory:
        env = {"CEPHEUS_REPORT_DIR": os.environ.get("CEPHEUS_REPORT_DIR", directory)}

        def report():
            shown = subprocess.run([BUILD / "bin/cepheusctl", "explain", "--json"], text=True, capture_output=True, timeout=60,
                                   env={**os.environ, **env}, check=True).stdout
            jobs = json.loads(shown)["jobs"]
            return jobs[0] if jobs else None

        yield env, report


def run_and_report(command, timeout, env, status):
    """`status()`: of the fabric, once the program has ended."""
    if _mpi is OpenMpi:
        return Run(finish(command, timeout, env), status())
    with own_report() as (more, report):
        run = Run(finish(command, timeout, {**env, **more}), status())
        run.report = report()
        return run


# cepheus-run alone lets a communicator's first reductions be MPI's.
AT_ONCE = {"coll_cepheus_set_up_after": 0}
# A busy machine must not look like a failed fabric.
PATIENT = {"coll_cepheus_watchdog_ms": 30000, "coll_cepheus_register_timeout_ms": 20000}


def over_fabric(program, *arguments, hosts=4, topology=None, mca=None, timeout=300, options=(), mpirun=(), environment=None):
    """Runs an MPI program, one rank a host, on an emulated fabric of its own; `options` are cepheus-run's."""
    with tempfile.TemporaryDirectory(prefix="cepheus-e2e-") as scratch:
        stats = pathlib.Path(scratch) / "stats.json"
        command = [str(BUILD / "bin/cepheus-run"), *_mpi.OPTIONS, "--stats-json", str(stats), *map(str, options)]
        if topology is not None:
            path = pathlib.Path(scratch) / "fabric.toml"
            path.write_text(topology)
            command += ["--topology", str(path)]
        elif "--shape" not in options:
            command += ["--hosts", str(hosts)]
        command += ["--", *map(str, mpirun), *_mpi.arguments({**PATIENT, **(mca or {})}), str(_mpi.program(program)),
                    *map(str, arguments)]
        return run_and_report(command, timeout, {**os.environ, **(environment or {})},
                              lambda: json.loads(stats.read_text()) if stats.exists() else None)


def without_fabric(program, *arguments, ranks=4, mca=None, timeout=120, environment=None):
    """Runs an MPI program with Cepheus's library for its MPI, and without a fabric."""
    command, env = _mpi.without_fabric(ranks)
    command += [*_mpi.arguments(mca or {}), str(_mpi.program(program)), *map(str, arguments)]
    return run_and_report(command, timeout, {**env, **(environment or {})}, lambda: None)


REQUIRE = {"coll_cepheus_mode": "require", **PATIENT}
VERBOSE = {"coll_cepheus_verbose": 1}
# Each rank is a host, as under cepheus-run.
PARTED = {"coll_cepheus_ranks_per_host": 1}


class EndToEnd(unittest.TestCase):
    def assert_ok(self, run):
        self.assertEqual(run.code, 0, run.everything())
        self.assertIn("ok:", run.out, run.everything())

    def assert_lost(self, run, least=0):
        """The links must have lost more than `least` frames."""
        lost = sum(port[way]["dropped_loss"] for switch in run.status["switches"] for port in switch["ports"] for way in ("in", "out"))
        self.assertGreater(lost, least, "the links lost nothing: the test tested nothing")

    def assert_data_once(self, run):
        """The data of broadcast_check's one root, host h0, must have crossed its link about once; by unicast it would thrice.

        On a busy machine a NIC may repeat some of it.
        """
        self.assert_ok(run)
        total = int(run.out.split()[3])
        carried = run.port("h0")["rx_payload_bytes"]
        self.assertGreaterEqual(carried, total)
        self.assertLessEqual(carried, 2 * total)


class Reporting(EndToEnd):
    """Jobs report into a directory of the test's own, which `cepheusctl explain` reads."""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-reports-", dir="/dev/shm")))
        self.addCleanup(os.environ.pop, "CEPHEUS_REPORT_DIR", None)
        os.environ["CEPHEUS_REPORT_DIR"] = str(self.directory)

    def explained(self, *arguments):
        result = subprocess.run([BUILD / "bin/cepheusctl", "explain", *arguments], text=True, capture_output=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def jobs(self):
        return {job["job"]: job for job in json.loads(self.explained("--json"))["jobs"]}

    def world(self):
        (job,) = self.jobs().values()
        (world,) = [c for c in job["communicators"] if c["name"] == "MPI_COMM_WORLD"]
        return job, world
