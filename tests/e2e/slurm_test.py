#!/usr/bin/python3
"""Jobs of Slurm with a fabric from their prolog: srun --mpi=pmix starts ranks, and their MPI_Bcast is multicast."""

import contextlib
import ctypes
import os
import pathlib
import pwd
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

from harness import BUILD, needs_component
from live import Switch, wait_until
from slurm_site import SCRIPTS, Site, missing

DEMO = BUILD / "demo/broadcast_file"
FILE = pathlib.Path("/lib/x86_64-linux-gnu/libc.so.6") if pathlib.Path("/lib/x86_64-linux-gnu/libc.so.6").exists() else DEMO
REQUIRE = {"OMPI_MCA_coll_cepheus_mode": "require", "OMPI_MCA_coll_cepheus_watchdog_ms": "30000",
           "OMPI_MCA_coll_cepheus_register_timeout_ms": "20000", "OMPI_MCA_coll_cepheus_verbose": "1"}
TRY = {"OMPI_MCA_coll_cepheus_verbose": "1", "OMPI_MCA_coll_cepheus_set_up_after": "0"}

NOBODY, DAEMON = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
# Attacks of a job's user on the scripts of Slurm: ATTACK DIRECTORY. Each is repeated until the process is killed.
ATTACKS = """
import ctypes, itertools, os, pathlib, shutil, signal, sys
libc = ctypes.CDLL(None)
PIDFD_GETFD, PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_O_TRACEEXIT = 438, 16, 0x4206, 0x40
attack, own = sys.argv[1], pathlib.Path(sys.argv[2])
held = []
def others(number=20):
    # The newest processes: the race is against commands that run for a millisecond.
    newest = int(pathlib.Path("/proc/loadavg").read_text().split()[4])
    for pid in range(newest, max(newest - number, 1), -1):
        try:
            if pid != os.getpid() and os.stat(f"/proc/{pid}").st_uid == os.getuid():
                yield pid
        except FileNotFoundError:
            pass
def hold(pid):
    # Root's pipes can not be opened in /proc, but taken from a process that has them.
    process = os.pidfd_open(pid)
    for number in (1, 2):
        taken = libc.syscall(PIDFD_GETFD, process, number, 0)
        if taken >= 0:
            held.append(taken)
    os.close(process)
    if len(held) > 500:
        for _ in range(100):
            os.close(held.pop())
def trace(turn, request, options):
    # Nothing here waits for a traced process: a killed one stops at its exit, or stays a zombie that its parent can not reap.
    for pid in others(20 if turn % 50 else 2000):
        if bytes(own) in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            libc.ptrace(request, pid, None, options)
def remove():
    for entry in own.iterdir():
        shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        if entry.name in ("log", "why-not", "fabric"):
            os.mkfifo(entry)
def fill(number):
    (own / f"d{number}").mkdir()
    for name in range(50):
        (own / f"d{number}/{name}").touch()
print("attacks", flush=True)
for number in itertools.count():
    try:
        if attack in ("stop", "kill"):
            for pid in others():
                os.kill(pid, signal.SIGSTOP if attack == "stop" else signal.SIGKILL)
        elif attack == "hold":
            for pid in others():
                hold(pid)
        elif attack == "attach":
            trace(number, PTRACE_ATTACH, None)
        elif attack == "seize":
            trace(number, PTRACE_SEIZE, PTRACE_O_TRACEEXIT)
        elif attack == "remove":
            remove()
        else:
            fill(number)
    except OSError:
        pass
"""


@contextlib.contextmanager
def attacker(attack, directory, user):
    """A process of that user that attacks below the directory until the context's end."""
    with subprocess.Popen([sys.executable, "-c", ATTACKS, attack, directory], text=True, stdout=subprocess.PIPE, user=user,
                          group=NOBODY.pw_gid, extra_groups=[]) as process:
        try:
            if process.stdout.readline() != "attacks\n":
                raise RuntimeError(f"the attack {attack} does not start")
            os.setpriority(os.PRIO_PROCESS, process.pid, -10)  # fast enough also on a busy machine
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def mounted_and_mute(directory, user):
    """A user's file system at his directory that never answers. fusermount mounts such ones if /etc/fuse.conf has user_allow_other."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        raise unittest.SkipTest(f"SKIPPED: {error}: modprobe fuse, and run the test as root") from error
    options = f"fd={device},rootmode=40000,user_id={user.pw_uid},group_id={user.pw_gid},allow_other"
    if libc.mount(b"mute", bytes(directory), b"fuse", 0, options.encode()) != 0:
        os.close(device)
        raise unittest.SkipTest(f"SKIPPED: can't mount: {os.strerror(ctypes.get_errno())}; run the test as root, in a privileged container")
    # The answer to FUSE_INIT. Later requests are read, but get no answer: not even SIGKILL ends a process that waits for one.
    _, _, unique = struct.unpack_from("IIQ", os.read(device, 65536))
    os.write(device, struct.pack("IiQII", 80, 0, unique, 7, 31) + bytes(56))

    def read():
        with contextlib.suppress(OSError):
            while True:
                os.read(device, 65536)

    force, detach = 1, 2
    reading = threading.Thread(target=read)
    giving_up = threading.Timer(70, libc.umount2, (bytes(directory), force))  # later than the time limit of a script
    reading.start()
    giving_up.start()
    try:
        yield
    finally:
        giving_up.cancel()
        libc.umount2(bytes(directory), force)
        libc.umount2(bytes(directory), detach)
        reading.join()
        os.close(device)


def may_play_others():
    """Whether this process may run the build's programs as another user."""
    if os.geteuid() != 0:
        return False
    return subprocess.run(["test", "-x", BUILD / "bin/cepheus-switch"], user=NOBODY.pw_uid, group=NOBODY.pw_gid, extra_groups=[],
                          check=False).returncode == 0


def processes_of(user):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == user:
                found.append(int(process.name))
        except OSError:
            continue
    return found


needs_users = unittest.skipUnless(may_play_others(), f"SKIPPED: other users can't run {BUILD}/bin/cepheus-switch: "
                                                     "build in a directory that all may read, and run as root")


def may_trace():
    """Whether a process may trace any other of its user (Linux, Documentation/admin-guide/LSM/Yama)."""
    setting = pathlib.Path("/proc/sys/kernel/yama/ptrace_scope")
    return not setting.exists() or setting.read_text() == "0\n"


needs_ptrace = unittest.skipUnless(may_trace(), "SKIPPED: a user may not trace other processes: set kernel.yama.ptrace_scope=0")


@needs_component
@unittest.skipIf(missing(), f"SKIPPED: {missing()}")
class Jobs(unittest.TestCase):
    def site(self, **how):
        return self.enterContext(Site(**how))

    def assert_all_have_the_file(self, run, ranks):
        digests = re.findall(r"sha256 (\w{64})", run.stdout)
        self.assertEqual((run.returncode, len(digests), len(set(digests))), (0, ranks, 1), run.stdout + run.stderr)
        self.assertNotIn("DIFFERS", run.stdout)

    def assert_no_fabric_is_left(self, site):
        wait_until(lambda: not list(site.fabrics.iterdir()), lambda: f"the epilog's end: {list(site.fabrics.rglob('*'))}", 60)

    def switches_of(self, site):
        """Processes that serve a fabric below the site's directory."""
        found = []
        for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = line.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"cepheus-switch") and str(site.fabrics).encode() in b" ".join(words):
                found.append(line.parent.name)
        return found

    def test_have_a_fabric_of_their_own_and_leave_nothing(self):
        site = self.site()
        run = site.srun(4, DEMO, FILE, **REQUIRE)
        self.assert_all_have_the_file(run, 4)
        self.assertRegex(run.stderr, r"MPI_COMM_WORLD \(4 ranks\): multicast")
        self.assert_no_fabric_is_left(site)
        self.assertEqual(self.switches_of(site), [])

    def test_join_the_fabric_of_the_site(self):
        with Switch("--hosts", 3) as switch:
            site = self.site(settings=f"fabric={switch.socket}\n")
            self.assert_all_have_the_file(site.srun(3, DEMO, FILE, **REQUIRE), 3)
            sent = switch.payload()
            self.assertGreaterEqual(sent, FILE.stat().st_size)
            self.assertLess(sent, 2 * FILE.stat().st_size, "the file crosses the root's link once")
            self.assertIsNone(switch.process.poll(), "it is the site's, not the job's")

    def test_run_without_a_fabric_that_does_not_start_and_get_the_reason(self):
        site = self.site(settings="hosts=1000000\n")
        run = site.srun(2, DEMO, FILE, **TRY)
        self.assert_all_have_the_file(run, 2)
        self.assertEqual(run.stdout.count("1000000 hosts"), 1)
        self.assertNotIn("): multicast", run.stderr)
        self.assert_no_fabric_is_left(site)

    def test_run_with_unusable_settings(self):
        site = self.site(settings="hosts=(\n")
        for _ in range(2):  # the node is not drained
            self.assert_all_have_the_file(site.srun(2, DEMO, FILE, **TRY), 2)

    def test_without_a_request_get_no_fabric(self):
        site = self.site()
        run = site.srun(2, "printenv", CEPHEUS_SLURM="off")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("CEPHEUS_FABRIC", run.stdout)
        self.assertNotIn("libcepheus-roce", run.stdout)

    @needs_users
    def test_of_a_user_who_stops_kills_and_removes_his_fabric_leave_the_node_to_others(self):
        site = self.site()
        for attack in ("kill -STOP $pid", "kill -KILL $pid", "rm -r $own/*", "kill -STOP $pid; rm -r $own/*; chmod 0 $own"):
            run = site.srun(1, "sh", "-c", f"own=${{CEPHEUS_FABRIC%/*}}; pid=$(cat $own/fabric.lock); {attack}", user=NOBODY.pw_uid)
            self.assertEqual(run.returncode, 0, f"{attack}: {run.stderr}")
        self.assert_all_have_the_file(site.srun(4, DEMO, FILE, **REQUIRE), 4)
        self.assert_no_fabric_is_left(site)
        self.assertEqual(self.switches_of(site), [])

    @needs_users
    @needs_ptrace
    def test_of_a_user_who_traces_his_fabric_delay_no_other_job(self):
        site = self.site()
        with attacker("seize", site.fabrics, NOBODY.pw_uid) as tracer:  # as left behind by an earlier login
            traced = f"pid=$(cat $CEPHEUS_FABRIC.lock); until grep -q '^TracerPid:.{tracer.pid}$' /proc/$pid/status; do sleep 0.1; done"
            run = site.srun(1, "sh", "-c", f"{traced}; echo $pid", user=NOBODY.pw_uid)
            self.assertEqual(run.returncode, 0, run.stderr)
            fabric = run.stdout.strip()
            self.assert_all_have_the_file(site.srun(4, DEMO, FILE, user=DAEMON.pw_uid, **REQUIRE), 4)
            self.assert_no_fabric_is_left(site)
            self.assertIn(self.switches_of(site), ([], [fabric]))  # the killed process, which its tracer still keeps
            self.assertNotIn("drain", site.call("sinfo", "-h", "-o", "%T").stdout)
        wait_until(lambda: self.switches_of(site) == [], "the traced fabric's end with its tracer")

    def test_keep_their_own_choice_of_open_mpis_transports(self):
        site = self.site()
        run = site.srun(1, "printenv", OMPI_MCA_pml="ucx", OMPI_MCA_osc="rdma")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("OMPI_MCA_pml=ucx\n", run.stdout)
        self.assertIn("OMPI_MCA_osc=rdma\n", run.stdout)
        self.assertNotIn("OMPI_MCA_btl=", run.stdout)
        self.assertRegex(run.stdout, f"CEPHEUS_FABRIC={site.fabrics}/[0-9]+-n0/fabric\n")


class Scripts(unittest.TestCase):
    """Cases beyond a site of one machine."""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cepheus-slurm-")))
        (self.directory / "cepheus.conf").write_text(f"directory={self.directory}/fabrics\n")

    def run_script(self, name, may_fail=False, limits=(), **variables):
        env = {"PATH": os.environ["PATH"], "CEPHEUS_SLURM_CONFIG": str(self.directory / "cepheus.conf"), "SLURM_JOB_ID": "7",
               "SLURM_JOB_UID": str(os.getuid()), "SLURMD_NODENAME": "n0", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NTASKS": "2", **variables}
        # Python ignores SIGXFSZ: under a limit of files' sizes a write fails, and ends no process.
        run = subprocess.run([*limits, SCRIPTS / name], text=True, capture_output=True, env=env, timeout=60, restore_signals=not limits)
        self.assertEqual((run.returncode, "" if may_fail else run.stderr), (0, ""), run.stdout)
        return run.stdout

    def test_a_job_of_several_nodes_gets_the_reason_why_it_has_no_emulated_fabric(self):
        self.run_script("prolog", SLURM_JOB_NUM_NODES="2")
        self.assertRegex(self.run_script("task-prolog", SLURM_PROCID="0"), "^print cepheus: .* 2 nodes.*\n$")
        self.assertEqual(self.run_script("task-prolog", SLURM_PROCID="1"), "")
        self.run_script("epilog")
        self.assertEqual(list((self.directory / "fabrics").iterdir()), [])

    @needs_users
    def test_a_fabric_belongs_to_the_jobs_user(self):
        self.directory.chmod(0o755)
        self.run_script("prolog", SLURM_JOB_UID=str(NOBODY.pw_uid))
        own = self.directory / "fabrics/7-n0"
        self.assertEqual((own.stat().st_uid, own.stat().st_mode & 0o777), (NOBODY.pw_uid, 0o700))
        switch = pathlib.Path("/proc") / (own / "fabric.lock").read_text().strip()
        self.assertEqual(switch.stat().st_uid, NOBODY.pw_uid)
        self.run_script("epilog", SLURM_JOB_UID=str(NOBODY.pw_uid))
        self.assertFalse(own.exists() or switch.exists())

    @needs_users
    def test_end_while_the_user_attacks_all_that_he_may(self):
        for attack in "stop", "kill", "remove", "fill":
            with self.subTest(attack):
                self.assert_end_under(attack)
        self.assert_end_under("hold", jobs=5)  # keeps their streams open; not each attempt succeeds

    @needs_users
    def test_end_while_a_file_system_of_the_user_does_not_answer(self):
        own = self.directory / "fabrics/7-n0"
        self.directory.chmod(0o755)
        self.run_script("prolog", SLURM_JOB_UID=str(NOBODY.pw_uid))
        with mounted_and_mute(own, NOBODY):
            self.run_script("epilog", may_fail=True, SLURM_JOB_UID=str(NOBODY.pw_uid))
            self.assert_another_users_job_has_a_fabric()
        self.assert_another_users_job_has_a_fabric(job=7)  # and removes the first job's directory

    @needs_users
    @needs_ptrace
    def test_end_while_the_user_traces_all_that_he_may(self):
        for attack in "attach", "seize":  # and stops it, or follows it to its exit
            with self.subTest(attack):
                self.assert_end_under(attack)

    def assert_end_under(self, attack, jobs=1):
        """Prolog, epilog and the streams of both end while another process of the job's user attacks. Another user's next job has a
        fabric."""
        user = 60600 + os.getpid() % 500  # without processes: the attacks are on all of a user's
        self.directory.chmod(0o755)
        own = self.directory / "fabrics/7-n0"
        try:
            with attacker(attack, own, user) as process:
                for name in ("prolog", "epilog") * jobs:
                    self.run_script(name, may_fail=True, SLURM_JOB_UID=str(user))
                self.assertEqual(list(own.parent.iterdir()), [])
                self.assert_another_users_job_has_a_fabric()
                self.assertIsNone(process.poll(), "the scripts end their own processes alone")
            wait_until(lambda: processes_of(user) == [], lambda: f"end of {processes_of(user)}")  # traced ones end with their tracer
        finally:
            for pid in processes_of(user):
                os.kill(pid, signal.SIGKILL)

    def assert_another_users_job_has_a_fabric(self, job=8):
        variables = {"SLURM_JOB_ID": str(job), "SLURM_JOB_UID": str(DAEMON.pw_uid)}
        own = self.directory / f"fabrics/{job}-n0"
        self.run_script("prolog", **variables)
        self.assertTrue((own / "fabric").is_socket())
        self.run_script("epilog", **variables)
        self.assertFalse(own.exists())

    def pid_of_the_fabric(self):
        return int((self.directory / "fabrics/7-n0/fabric.lock").read_text())

    def assert_ends(self, pid):
        wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), lambda: f"process {pid} still runs")

    def test_a_fabric_that_its_user_stops_is_ended(self):
        self.run_script("prolog")
        pid = self.pid_of_the_fabric()
        os.kill(pid, signal.SIGSTOP)
        self.run_script("epilog")
        self.assert_ends(pid)

    def test_the_user_can_not_make_the_epilog_end_another_process(self):
        self.run_script("prolog")
        pid = self.pid_of_the_fabric()
        with subprocess.Popen(["sleep", "600"]) as other:
            self.addCleanup(other.kill)
            lock = self.directory / "fabrics/7-n0/fabric.lock"
            lock.unlink()
            lock.write_text(f"{other.pid}\n")
            (self.directory / "fabrics/7-n0/fabric").unlink()  # nor can the fabric get a request to end
            self.run_script("epilog")
            self.assertIsNone(other.poll())
            self.assert_ends(pid)
            other.kill()

    def test_a_fabric_that_the_epilog_could_not_find_does_not_start(self):
        # As on a full disk: files end after 8 bytes here, and the line for the epilog is longer.
        self.run_script("prolog", may_fail=True, limits=("prlimit", "--fsize=8"))
        task = self.run_script("task-prolog", SLURM_PROCID="0")
        self.run_script("epilog")
        self.assertIn("no multicast for this job: ", task)

    def test_a_fabric_of_another_job_is_not_ended(self):
        self.run_script("prolog")
        self.addCleanup(self.run_script, "epilog")
        self.run_script("epilog", SLURM_JOB_ID="8")
        self.assertIn(f"export CEPHEUS_FABRIC={self.directory}/fabrics/7-n0/fabric\n", self.run_script("task-prolog"))


if __name__ == "__main__":
    unittest.main()
