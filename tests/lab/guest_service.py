#!/usr/bin/python3
"""In a guest that systemd runs: the units as installed, with hosts of the kernel's Soft-RoCE behind its interfaces. service_test.py runs
it."""

import json
import os
import pathlib
import subprocess
import unittest
import urllib.request

from guest_fabric import BUILD, HOSTS, Switch  # first: it extends the path for the next imports
import live
from topology import lab_topology

ETC = pathlib.Path("/etc/cepheus")
TOPOLOGY = ETC / "fabric.toml"
UNITS = ("cepheus-cmd", "cepheus-metrics", "cepheus-switch")
KEY = "0123456789abcdef" * 4
CAP_NET_RAW = 1 << 13


class Served(Switch):
    """The fabric that cepheus-switch.service serves."""

    def __init__(self):
        self.socket, self.congestion = "/run/cepheus/fabric.sock", "off"

    def writes(self):
        """A group of libmcast of the first two hosts: exit codes and outputs."""
        results = self.group_program([BUILD / "examples/write"], ["rxe0", "rxe1"])
        return [code for code, _ in results], "".join(text for _, text in results)


def run(*words, **how):
    return subprocess.run(list(map(str, words)), text=True, capture_output=True, timeout=120, **how)


def systemctl(*words):
    return run("systemctl", *words)


def shown(unit, *properties):
    shown_text = systemctl("show", unit, *(f"--property={name}" for name in properties)).stdout
    return dict(line.split("=", 1) for line in shown_text.splitlines())


def journal(unit):
    return run("journalctl", "--unit", unit, "--output=cat", "--no-pager").stdout


def status_of(process):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines())


class Journal(live.Lines):
    """A unit's journal lines, existing and new ones."""

    def __init__(self, unit):
        self.follower = subprocess.Popen(["journalctl", "--unit", unit, "--output=cat", "--follow", "--lines=all"], text=True,
                                         stdout=subprocess.PIPE)
        super().__init__(self.follower.stdout)

    def close(self):
        self.follower.terminate()
        self.follower.wait()
        self.thread.join()
        self.follower.stdout.close()


class Services(unittest.TestCase):
    def setUp(self):
        ETC.mkdir(exist_ok=True)
        TOPOLOGY.write_text(lab_topology(HOSTS))
        self.addCleanup(systemctl, "stop", *UNITS)

    def start(self, unit):
        started = systemctl("start", unit)
        self.assertEqual(started.returncode, 0, started.stderr + journal(unit))
        return int(shown(unit, "MainPID")["MainPID"])

    def test_the_switch_serves_hosts_behind_interfaces_with_one_capability(self):
        process = self.start("cepheus-switch")
        status = status_of(process)
        self.assertNotEqual(status["Uid"].split()[0], "0")
        self.assertEqual([int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")], [CAP_NET_RAW] * 3)
        self.assertEqual(status["NoNewPrivs"], "1")
        ran = Served().broadcasts(10, 65536)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("ok: 10 broadcasts", ran.stdout)
        shown_text = journal("cepheus-switch")
        self.assertIn(f"{2 * HOSTS} hosts on 1 switches at /run/cepheus/fabric.sock", shown_text)
        self.assertEqual(systemctl("stop", "cepheus-switch").returncode, 0)
        self.assertFalse(pathlib.Path("/run/cepheus").exists())

    def test_a_failed_start_is_reported_with_the_reason_in_the_journal(self):
        TOPOLOGY.write_text(lab_topology(HOSTS).replace('interface = "p0"', 'interface = "p77"'))
        self.assertNotEqual(systemctl("start", "cepheus-switch").returncode, 0)
        self.assertIn("p77", journal("cepheus-switch"))
        systemctl("reset-failed", "cepheus-switch")

    def test_reloading_changes_limits_while_groups_continue_and_refuses_changes_that_need_a_restart(self):
        process = self.start("cepheus-switch")
        TOPOLOGY.write_text(lab_topology(HOSTS, switch="max_groups = 0"))
        self.assertEqual(systemctl("reload", "cepheus-switch").returncode, 0, journal("cepheus-switch"))
        self.assertIn("max_groups = 0", journal("cepheus-switch"))
        codes, shown_text = Served().writes()
        self.assertNotEqual(codes, [0, 0])
        self.assertIn("table space", shown_text)
        TOPOLOGY.write_text(lab_topology(HOSTS + 1))
        self.assertNotEqual(systemctl("reload", "cepheus-switch").returncode, 0)
        self.assertIn(f"h{HOSTS}", journal("cepheus-switch"))
        self.assertEqual(int(shown("cepheus-switch", "MainPID")["MainPID"]), process, "it continues unchanged")

    def test_it_restarts_when_it_is_killed(self):
        starts = sum(line.startswith("Started") for line in journal("cepheus-switch").splitlines())
        process = self.start("cepheus-switch")
        following = Journal("cepheus-switch")
        self.addCleanup(following.close)
        self.assertTrue(following.wait_for("^Started", starts + 1), following.text())
        os.kill(process, 9)
        self.assertTrue(following.wait_for("^Started", starts + 2), following.text())
        self.assertNotIn(shown("cepheus-switch", "MainPID")["MainPID"], ("0", str(process)))
        self.assertEqual(len(Served().ports()), 2 * HOSTS)

    def test_a_key_of_root_reaches_it_as_a_credential(self):
        key = ETC / "key"
        key.write_text(KEY + "\n")
        key.chmod(0o600)
        drop_in = pathlib.Path("/run/systemd/system/cepheus-switch.service.d")
        drop_in.mkdir()
        (drop_in / "key.conf").write_text(f"[Service]\nLoadCredential=key:{key}\n")
        self.addCleanup(systemctl, "daemon-reload")
        self.addCleanup(lambda: [(drop_in / "key.conf").unlink(), drop_in.rmdir()])
        systemctl("daemon-reload")
        text = lab_topology(HOSTS).replace("[fabric]", '[fabric]\nkey_file = "/run/credentials/cepheus-switch.service/key"')
        TOPOLOGY.write_text(text)
        self.start("cepheus-switch")
        self.assertNotEqual(Served().broadcasts(2, 1024).returncode, 0, "without the key there is no group")
        os.environ["CEPHEUS_KEY_FILE"] = str(key)
        self.addCleanup(os.environ.pop, "CEPHEUS_KEY_FILE")
        codes, shown_text = Served().writes()
        self.assertEqual(codes, [0, 0], shown_text)

    def test_metrics_come_and_go_with_the_switch(self):
        self.start("cepheus-switch")
        self.start("cepheus-metrics")
        with urllib.request.urlopen("http://127.0.0.1:9464/metrics", timeout=60) as page:
            text = page.read().decode()
        self.assertIn("cepheus_up 1", text)
        self.assertIn('port="h0"', text)
        systemctl("stop", "cepheus-switch")
        self.assertEqual(shown("cepheus-metrics", "ActiveState"), {"ActiveState": "inactive"})

    def test_connections_daemon(self):
        environment = ETC / "cmd.env"
        environment.unlink(missing_ok=True)
        systemctl("start", "cepheus-cmd")
        self.assertEqual(shown("cepheus-cmd", "ActiveState", "ConditionResult"),
                         {"ActiveState": "inactive", "ConditionResult": "no"}, "no host is named")
        environment.write_text("CEPHEUS_CMD_HOST=127.0.0.1\n")
        process = self.start("cepheus-cmd")
        self.assertEqual(int(status_of(process)["CapEff"], 16), 0)
        shown_text = run(BUILD / "bin/cepheus-cmd", "status", "--json")
        self.assertEqual(shown_text.returncode, 0, shown_text.stderr)
        self.assertEqual(json.loads(shown_text.stdout)["host"], "127.0.0.1")


if __name__ == "__main__":
    installed = run("cmake", "--install", BUILD, "--prefix", "/usr/local", "--strip")
    if installed.returncode != 0:
        raise SystemExit(installed.stderr)
    systemctl("daemon-reload")
    unittest.main(verbosity=2)
