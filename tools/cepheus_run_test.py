#!/usr/bin/python3
"""The whole of cepheus-run without MPI: how it starts and ends things, with stand-ins for the programs."""

import itertools
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cepheus_run_script import SCRIPT, cepheus_run, pairs  # noqa: E402
from switch_process import Switch  # noqa: E402

TIME_LIMIT = 60

# A fake cepheus-switch: writes its arguments, reports ready, answers "status", ends at SIGTERM.
SWITCH = r"""#!/usr/bin/python3
import json, os, signal, socket, sys, threading
sys.path.insert(0, os.environ["FAKE_TOOLS"])
import handshake
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with open(os.environ["FAKE_NOTES"] + "/switch.json", "w") as notes:
    json.dump({"pid": os.getpid(), "arguments": arguments}, notes)
if os.environ.get("FAKE_SWITCH") == "refuses":
    sys.exit("bad topology")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
listener = socket.socket(socket.AF_UNIX)
listener.bind(arguments["--fabric"] + ".ctl")
listener.listen()
count = int(arguments.get("--hosts", 3))
ports = [{"kind": "host", "name": f"h{i}", "attached": False} for i in range(count)]
status = {"switches": [{"name": "s0", "ports": ports + [{"kind": "switch", "attached": True}]}]}

# Grants every launcher its hosts, or refuses; keeps the connections open.
attach = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
attach.bind(arguments["--fabric"])
attach.listen()
def serve():
    launchers = []
    while True:
        launcher, _ = attach.accept()
        launchers.append(launcher)
        number, names = handshake.hosts_wanted(launcher.recv(65536))
        if os.environ.get("FAKE_SWITCH") == "full":
            launcher.send(handshake.refusal("2 free hosts are wanted"))
        else:
            launcher.send(handshake.hosts_reserved(names or ",".join(f"h{i}" for i in range(number or count))))
threading.Thread(target=serve, daemon=True).start()
os.write(int(arguments["--ready-fd"]), b"ready\n")
while True:
    client, _ = listener.accept()
    client.makefile("rb").readline()
    client.sendall(json.dumps({"ok": True, "status": status}).encode() + b"\n")
    client.close()
"""

# A fake mpirun: writes its arguments and environment, then exits, or runs until a signal.
MPIRUN = r"""#!/usr/bin/python3
import json, os, signal, sys
notes = os.environ["FAKE_NOTES"]
with open(notes + "/mpirun.json", "w") as out:
    json.dump({"pid": os.getpid(), "arguments": sys.argv[1:], "env": dict(os.environ)}, out)
print("rank 0 says hello", flush=True)
if os.environ.get("FAKE_MPIRUN") == "passes":
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: sys.exit(number))
if os.environ.get("FAKE_MPIRUN") in ("stays", "passes"):
    with open(notes + "/started", "w") as started:
        started.write("x")
    signal.pause()
sys.exit(int(os.environ.get("FAKE_MPIRUN", 0)))
"""

CTL = "#!/bin/sh\necho \"table of $2\"\n"


class Running(unittest.TestCase):
    """The whole script, with stand-ins."""

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="cr-")))
        for directory in ("bin", "lib/openmpi", "tmp", "notes"):
            (self.root / directory).mkdir(parents=True)
        for name in ("lib/libcepheus-roce.so", "lib/openmpi/mca_coll_cepheus.so"):
            (self.root / name).touch()
        for name, text in (("cepheus-switch", SWITCH), ("cepheusctl", CTL), ("orterun", MPIRUN)):
            path = self.root / "bin" / name
            path.write_text(text)
            path.chmod(0o755)
        (self.root / "bin/mpirun.openmpi").symlink_to("orterun")  # as Open MPI 4 has it
        self.env = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "CEPHEUS_BUILD": str(self.root), "TMPDIR": f"{self.root}/tmp",
                    "FAKE_NOTES": f"{self.root}/notes", "FAKE_TOOLS": str(pathlib.Path(__file__).resolve().parent)}

    def start(self, *words, start_new_session=False, preexec_fn=None, stdin=subprocess.DEVNULL, **env):
        return subprocess.Popen([sys.executable, SCRIPT, *words], env={**self.env, **env}, text=True, stdin=stdin, preexec_fn=preexec_fn,
                                start_new_session=start_new_session, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_script(self, *words, **env):
        process = self.start(*words, **env)
        out, err = process.communicate(timeout=TIME_LIMIT)
        return process.returncode, out, err

    def notes(self, name):
        return json.loads((self.root / "notes" / f"{name}.json").read_text())

    def assert_nothing_left(self):
        self.assertEqual(list((self.root / "tmp").iterdir()), [])
        for name in ("switch", "mpirun"):
            if (self.root / "notes" / f"{name}.json").exists():
                self.assert_ends(self.notes(name)["pid"])

    def assert_ends(self, pid):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self.addCleanup(os.close, handle)
        self.assertTrue(select.select([handle], [], [], TIME_LIMIT)[0], f"process {pid} is still there")

    def test_gives_mpiruns_output_and_exit_code(self):
        code, out, err = self.run_script("--hosts", "2", "--", "./a", FAKE_MPIRUN="7")
        self.assertEqual((code, out, err), (7, "rank 0 says hello\n", ""))
        self.assert_nothing_left()

    # As `su USER -c` and setsid start it.
    def test_may_read_from_the_terminal_of_another_session(self):
        for descriptor in (pair := os.openpty()):
            self.addCleanup(os.close, descriptor)
        process = self.start("--", "./a", start_new_session=True, stdin=pair[1])
        self.assert_ends_with(0, process)

    def test_ends_with_mpirun_though_its_parent_ignores_the_ends_of_children(self):
        process = self.start("--", "./a", FAKE_MPIRUN="7", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.addCleanup(process.kill)
        self.assert_ends_with(7, process)

    def test_finds_an_installed_tree_from_where_it_lies_itself(self):
        prefix = self.root / "prefix"
        (prefix / "lib/multiarch/cepheus/openmpi").mkdir(parents=True)
        (self.root / "bin").rename(prefix / "bin")
        (self.root / "lib/libcepheus-roce.so").rename(prefix / "lib/multiarch/cepheus/libcepheus-roce.so")
        (prefix / "lib/multiarch/cepheus/openmpi/mca_coll_cepheus.so").touch()
        text = pathlib.Path(SCRIPT).read_text()
        for name, value in (("BUILD_TREE", ""), ("LIBRARY_DIR", "lib/multiarch")):
            text = re.sub(rf'^{name} = "[^"]*"', f'{name} = "{value}"', text, flags=re.M)
        (prefix / "bin/cepheus-run").write_text(text)
        env = {**self.env, "PATH": f"{prefix}/bin:/usr/bin:/bin"}
        del env["CEPHEUS_BUILD"]
        done = subprocess.run([sys.executable, prefix / "bin/cepheus-run", "--", "./a"], env=env, timeout=TIME_LIMIT, check=False,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"LD_PRELOAD={prefix}/lib/multiarch/cepheus/libcepheus-roce.so", self.notes("mpirun")["arguments"])

    def test_passes_the_fabrics_socket_to_the_ranks(self):
        self.run_script("--hosts", "2", "--", "./a")
        fabric = self.notes("switch")["arguments"]["--fabric"]
        words, env = (self.notes("mpirun")[what] for what in ("arguments", "env"))
        self.assertEqual(pairs(words, "-x"), ["CEPHEUS_FABRIC", "CEPHEUS_HOSTS", "CEPHEUS_RESERVATION", f"LD_PRELOAD={self.root}/lib/libcepheus-roce.so"])
        self.assertEqual([env[f"CEPHEUS_{name}"] for name in ("FABRIC", "HOSTS", "RESERVATION")], [fabric, "h0,h1", "abc"])
        self.assertEqual(pairs(words, "-np"), ["2"])
        self.assertNotIn("LD_PRELOAD", env, "mpirun itself must not be preloaded")

    def test_ranks_of_open_mpi_5_find_the_library_in_mpiruns_environment_if_they_are_spawned(self):
        (self.root / "bin/orterun").rename(self.root / "bin/prterun")
        (self.root / "bin/mpirun.openmpi").unlink()
        (self.root / "bin/mpirun.openmpi").symlink_to("prterun")
        self.run_script("--", "./a", LD_PRELOAD="libc.so.6")
        self.assertEqual(self.notes("mpirun")["env"]["LD_PRELOAD"], f"{self.root}/lib/libcepheus-roce.so:libc.so.6")

    def test_names_preload_where_the_component_was_left_out(self):
        (self.root / "lib/openmpi/mca_coll_cepheus.so").rename(self.root / "lib/openmpi/libcepheus-mpi.so")
        code, _, err = self.run_script("--", "./a")
        self.assertEqual((code, err.count("use --preload")), (1, 1), err)

    def test_counts_hosts_by_ranks_by_default(self):
        for words, hosts in [(["--", "-np", "6", "./a"], "6"), (["--", "./a"], "4"), (["--hosts", "5", "--", "-np", "2", "./a"], "5")]:
            self.assertEqual(self.run_script(*words)[0], 0)
            self.assertEqual(self.notes("switch")["arguments"]["--hosts"], hosts, words)

    def test_counts_hosts_by_ranks_that_share_them(self):
        for words, hosts in [(["--", "-np", "5", "./a"], "3"), (["--", "./a"], "4"), (["--hosts", "3", "--", "./a"], "3")]:
            self.assertEqual(self.run_script("--ranks-per-host", "2", *words)[0], 0)
            self.assertEqual(self.notes("switch")["arguments"]["--hosts"], hosts, words)
        code, _, err = self.run_script("--ranks-per-host", "2", "--hosts", "2", "--", "-np", "5", "./a")
        self.assertEqual(code, 2)
        self.assertIn("5 ranks but 2 hosts with 2 ranks each; ask for --hosts 3", err)

    def test_takes_the_number_of_hosts_from_the_fabric_of_a_topology_or_shape(self):
        for given in ({"--topology": "net.toml", "--pcap": "caps"}, {"--shape": "leaf-spine:3x2x1"}):
            code, _, _ = self.run_script(*itertools.chain(*given.items()), "--", "./a")
            self.assertEqual(code, 0)
            arguments = self.notes("switch")["arguments"]
            self.assertLessEqual(given.items(), arguments.items())
            self.assertNotIn("--hosts", arguments)
            self.assertEqual(pairs(self.notes("mpirun")["arguments"], "-np"), ["3"])

    def test_refuses_more_ranks_than_hosts(self):
        for words in (["--hosts", "2", "--", "-np", "4", "./a"], ["--topology", "net.toml", "--", "-np", "4", "./a"]):
            code, out, err = self.run_script(*words)
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(err, "cepheus-run: 4 ranks but [23] hosts: each rank needs a host of its own; ask for --hosts 4")
            self.assertFalse((self.root / "notes/mpirun.json").exists())
            self.assert_nothing_left()

    def test_passes_on_why_the_switch_did_not_start(self):
        code, _, err = self.run_script("--topology", "net.toml", "--", "./a", FAKE_SWITCH="refuses")
        self.assertEqual(code, 1)
        self.assertEqual(err, "cepheus-run: cepheus-switch did not start; its log:\nbad topology\n")
        self.assertFalse((self.root / "notes/mpirun.json").exists())
        self.assert_nothing_left()

    def test_prints_and_writes_statistics(self):
        path = self.root / "stats.json"
        code, out, err = self.run_script("--hosts", "2", "--stats", "--stats-json", str(path), "--", "./a")
        self.assertEqual((code, out), (0, "rank 0 says hello\n"))
        self.assertIn("table of " + self.notes("switch")["arguments"]["--fabric"], err)
        self.assertEqual([p["name"] for p in json.loads(path.read_text())["switches"][0]["ports"][:2]], ["h0", "h1"])

    def test_keeps_the_directory_on_request(self):
        code, _, err = self.run_script("--keep", "--", "./a")
        self.assertEqual(code, 0)
        kept = list((self.root / "tmp").iterdir())
        self.assertEqual(err, f"cepheus-run: kept {kept[0]}\n")
        self.assertTrue((kept[0] / "switch.log").exists())
        self.assert_ends(self.notes("switch")["pid"])

    def test_verbose_prints_the_fabric_and_the_command(self):
        _, _, err = self.run_script("-v", "--", "./a", "with blanks")
        self.assertRegex(err, "4 hosts at /.*: h0,h1,h2,h3\n")
        self.assertIn("./a 'with blanks'", err)

    def started(self, **env):
        """Waits until its mpirun runs."""
        (self.root / "notes/started").unlink(missing_ok=True)
        os.mkfifo(self.root / "notes/started")
        process = self.start("--", "./a", **env)
        fifo = os.open(self.root / "notes/started", os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, fifo)
        self.assertTrue(select.select([fifo], [], [], TIME_LIMIT)[0], "mpirun did not start")
        return process

    def assert_ends_with(self, code, process):
        err = process.communicate(timeout=TIME_LIMIT)[1]
        self.assertEqual(process.returncode, code, err)

    def test_ends_everything_at_a_signal(self):
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = self.started(FAKE_MPIRUN="stays")
            process.send_signal(signum)
            self.assert_ends_with(128 + signum, process)
            self.assert_nothing_left()

    def test_a_users_signal_before_mpirun_takes_it_does_not_end_the_job(self):
        # Pending from the first moment on.
        process = self.start("--", "./a", FAKE_MPIRUN="passes", preexec_fn=lambda: (
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}), os.kill(os.getpid(), signal.SIGUSR1)))
        self.assert_ends_with(signal.SIGUSR1, process)
        self.assertTrue((self.root / "notes/mpirun.json").exists())

    def test_an_ignored_signal_stays_ignored(self):
        process = self.started(FAKE_MPIRUN="passes", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGUSR1)
        self.assert_ends_with(signal.SIGUSR1, process)

    def test_serves_with_closed_standard_descriptors(self):
        for closed in ((0,), (0, 1), (1, 2), (0, 1, 2)):
            (self.root / "notes/mpirun.json").unlink(missing_ok=True)
            process = self.start("--", "./a", FAKE_MPIRUN="7", preexec_fn=lambda closed=closed: list(map(os.close, closed)))
            process.communicate(timeout=TIME_LIMIT)
            self.assertEqual((process.returncode, (self.root / "notes/mpirun.json").exists()), (7, True), closed)
            self.assert_nothing_left()

    def test_removes_directories_of_killed_runs_and_no_others(self):
        living = self.started(FAKE_MPIRUN="passes")
        its_own = set((self.root / "tmp").iterdir())
        dead = self.root / "tmp" / (cepheus_run.OwnDirectory.PREFIX + "dead")
        dead.mkdir()
        (dead / "switch.log").touch()
        code, _, err = self.run_script("--", "./a")
        self.assertEqual((code, set((self.root / "tmp").iterdir())), (0, its_own), err)
        living.send_signal(signal.SIGUSR1)
        living.communicate(timeout=TIME_LIMIT)
        self.assert_nothing_left()

    def test_keeps_mpirun_out_of_reach_of_signals_to_its_own_group(self):
        """Otherwise mpirun would get the signal twice, from the sender and from us, and leave its ranks running."""
        process = self.started(FAKE_MPIRUN="stays", start_new_session=True)
        for name in ("mpirun", "switch"):
            self.assertNotEqual(os.getpgid(self.notes(name)["pid"]), process.pid)
        os.killpg(process.pid, signal.SIGTERM)
        self.assert_ends_with(128 + signal.SIGTERM, process)
        self.assert_nothing_left()

    def test_leaves_no_process_behind_when_killed(self):
        process = self.started(FAKE_MPIRUN="stays")
        process.kill()
        process.communicate(timeout=TIME_LIMIT)
        for name in ("mpirun", "switch"):
            self.assert_ends(self.notes(name)["pid"])

    def test_joins_a_running_fabric_and_leaves_it_running(self):
        fabric = str(self.root / "fabric")
        with Switch(self.root, "--hosts", "2", path=fabric, env={**os.environ, **self.env}) as switch:
            code, _, err = self.run_script("--fabric", fabric, "--", "./a")
            self.assertEqual(code, 0, err)
            self.assertEqual(self.notes("mpirun")["env"]["CEPHEUS_FABRIC"], fabric)
            self.assertIsNone(switch.process.poll())

    def test_takes_the_hosts_that_the_user_names(self):
        code, _, err = self.run_script("--hosts", "8", "--on", "h5,h3", "--", "./a")
        self.assertEqual(code, 0, err)
        self.assertEqual(pairs(self.notes("mpirun")["arguments"], "-np"), ["2"])
        self.assertEqual(self.notes("mpirun")["env"]["CEPHEUS_HOSTS"], "h5,h3")
        code, _, err = self.run_script("--hosts", "8", "--on", "h5,h3", "--", "-np", "3", "./a")
        self.assertEqual(code, 2)
        self.assertIn("3 ranks but 2 hosts", err)

    def test_passes_on_why_the_fabric_has_no_hosts_for_it(self):
        code, out, err = self.run_script("--hosts", "2", "--", "./a", FAKE_SWITCH="full")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, r"^cepheus-run: the fabric at /.* has too few free hosts for this job: 2 free hosts are wanted\n$")
        self.assertFalse((self.root / "notes/mpirun.json").exists())
        self.assert_nothing_left()

    def test_reports_that_there_is_nothing_to_join(self):
        code, _, err = self.run_script("--fabric", "/nonexistent/fabric", "--", "./a")
        self.assertEqual(code, 1)
        self.assertIn("no fabric answers at /nonexistent/fabric.ctl", err)

    def test_names_what_is_not_built(self):
        (self.root / "lib/libcepheus-roce.so").unlink()
        code, _, err = self.run_script("--", "./a")
        self.assertEqual(code, 1)
        self.assertIn(f"{self.root}/lib/libcepheus-roce.so is missing; build or install Cepheus completely", err)

    def test_refuses_a_directory_too_deep_for_a_socket(self):
        deep = self.root / "tmp" / ("x" * 100)
        deep.mkdir()
        code, _, err = self.run_script("--", "./a", TMPDIR=str(deep))
        self.assertEqual(code, 1)
        self.assertIn("set TMPDIR to a shorter path", err)
        self.assertEqual(list(deep.iterdir()), [])

    def test_explains_wrong_usage(self):
        for words, text in [(["./a"], "-- is missing before mpirun's arguments"), (["--hosts", "0", "--", "./a"], "--hosts"),
                            (["--hosts", "2", "--fabric", "x", "--", "./a"], "not allowed with"), (["--"], "no program"), (["--host", "2", "--", "./a"], "unknown: --host 2"),
                            (["--fabric", "x", "--pcap", "d", "--", "./a"], "--pcap"), (["--on", "h1,", "--", "./a"], "--on")]:
            code, _, err = self.run_script(*words)
            self.assertEqual(code, 2, words)
            self.assertIn(text, err)


if __name__ == "__main__":
    unittest.main()
