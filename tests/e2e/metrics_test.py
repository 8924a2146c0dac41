#!/usr/bin/python3
"""A fabric's metrics as Prometheus reads them; promtool checks page, rules and dashboard."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

from harness import BUILD
from live import Switch

MONITORING = pathlib.Path(__file__).resolve().parents[2] / "tools/monitoring"
CTL = BUILD / "bin/cepheusctl"
TIME_LIMIT = 60


def promtool(*words, **options):
    if shutil.which("promtool") is None:
        raise unittest.SkipTest("SKIPPED: promtool is missing; as root: apt-get install prometheus")
    done = subprocess.run(["promtool", *map(str, words)], text=True, capture_output=True, timeout=TIME_LIMIT, **options)
    return done.returncode, done.stdout + done.stderr


def families(page):
    return set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))


def value(page, sample):
    return float(re.search("^" + re.escape(sample) + r" (\S+)$", page, re.MULTILINE).group(1))


class Endpoint:
    """cepheusctl metrics --listen over a fabric's socket."""

    def __init__(self, fabric, where="127.0.0.1:0"):
        self.process = subprocess.Popen([CTL, "--fabric", fabric, "metrics", "--listen", where], text=True, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        self.url = line.split()[-1]
        self.port = int(re.search(r":(\d+)/", line).group(1))

    def page(self, time_limit=TIME_LIMIT):
        with urllib.request.urlopen(self.url, timeout=time_limit) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
            return answer.read().decode()

    def close(self, signum=signal.SIGTERM):
        self.process.send_signal(signum)
        self.process.stdout.close()
        return self.process.wait(TIME_LIMIT)


class Metrics(unittest.TestCase):
    def setUp(self):
        self.switch = self.enterContext(Switch("--shape", "leaf-spine:2x2x2"))

    def endpoint(self, *arguments):
        made = Endpoint(*arguments)
        self.addCleanup(lambda: made.process.poll() is None and made.close())
        return made

    def test_are_the_same_once_and_over_http(self):
        once = subprocess.run([CTL, "--fabric", self.switch.socket, "metrics"], text=True, capture_output=True, check=True).stdout
        page = self.endpoint(self.switch.socket).page()
        self.assertEqual(families(once), families(page))
        self.assertEqual(value(page, 'cepheus_port_attached{switch="leaf0",port="h0"}'), 0)
        hellos = next(s for s in self.switch.status()["switches"] if s["name"] == "leaf0")["counters"]["hello_sent"]
        self.assertLessEqual(value(once, 'cepheus_switch_hello_sent_total{switch="leaf0"}'), hellos)
        self.assertGreater(value(page, 'cepheus_switch_hello_sent_total{switch="leaf0"}'), 0)

    def test_promtool_finds_no_error(self):
        page = self.endpoint(self.switch.socket).page()
        self.assertEqual(promtool("check", "metrics", input=page), (0, ""))
        # promtool does find errors.
        code, output = promtool("check", "metrics", input=page.replace("_total", "_ms"))
        self.assertNotEqual((code, output), (0, ""))

    def test_a_fabric_that_ends_is_0_and_returns(self):
        endpoint = self.endpoint(self.switch.socket)
        self.assertEqual(value(endpoint.page(), "cepheus_up"), 1)
        self.switch.kill()
        while value(endpoint.page(), "cepheus_up") == 1:  # pages are a second old at most
            pass
        self.assertIn("# no fabric at", endpoint.page())
        self.assertEqual(promtool("check", "metrics", input=endpoint.page())[0], 0)
        self.switch.start()
        while value(endpoint.page(), "cepheus_up") == 0:
            pass

    # More than workers and waiting places; each request lasts for ever, a byte at a time.
    def test_endless_connections_neither_delay_others_for_long_nor_take_memory(self):
        workers, waiting = 64, 32
        endpoint = self.endpoint(self.switch.socket)
        with contextlib.ExitStack() as held:
            crowd = [held.enter_context(socket.create_connection(("127.0.0.1", endpoint.port), TIME_LIMIT)) for _ in range(workers + waiting + 20)]
            for one in crowd:
                with contextlib.suppress(ConnectionError):  # the server has refused it
                    one.sendall(b"G")
            give_up = time.monotonic() + TIME_LIMIT
            while self.descriptors(endpoint) < workers + waiting:
                self.assertLess(time.monotonic(), give_up, "the connections are not established")
            status = pathlib.Path(f"/proc/{endpoint.process.pid}/status").read_text()
            self.assertLess(int(re.search(r"Threads:\s+(\d+)", status).group(1)), workers + 6)  # its workers, and a few
            self.assertLess(self.descriptors(endpoint), workers + waiting + 16)
            ended = threading.Event()
            trickle = threading.Thread(target=self.send_bytes_to, args=(crowd, ended))
            trickle.start()
            held.callback(trickle.join)
            held.callback(ended.set)
            while not (page := self.page_or_nothing(endpoint)):
                self.assertLess(time.monotonic(), give_up)
            self.assertEqual(value(page, "cepheus_up"), 1)

    @staticmethod
    def send_bytes_to(crowd, ended):
        while not ended.wait(0.5):
            for one in crowd:
                with contextlib.suppress(OSError):  # the server has closed it
                    one.sendall(b"E")

    @staticmethod
    def descriptors(endpoint):
        return len(os.listdir(f"/proc/{endpoint.process.pid}/fd"))

    @staticmethod
    def page_or_nothing(endpoint):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return endpoint.page(time_limit=10)

    def test_refuses_all_other_requests(self):
        endpoint = self.endpoint(self.switch.socket)
        for method, path, code in (("GET", "/etc/passwd", 404), ("POST", "/metrics", 404), ("GET", "/", 200)):
            connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=TIME_LIMIT)
            connection.request(method, path)
            self.assertEqual(connection.getresponse().status, code, path)
            connection.close()

    def test_ends_at_signals_and_reports_a_taken_address(self):
        for signum in (signal.SIGTERM, signal.SIGINT):
            self.assertEqual(self.endpoint(self.switch.socket).close(signum), 0)
        endpoint = self.endpoint(self.switch.socket)
        for where, code, text in ((f"127.0.0.1:{endpoint.port}", 1, "is another process there"), ("9464", 2, "not an address to listen at"),
                                  ("127.0.0.1:70000", 2, "not an address"), ("::1:9464", 2, "not an address")):
            done = subprocess.run([CTL, "--fabric", self.switch.socket, "metrics", "--listen", where], text=True, capture_output=True,
                                  timeout=TIME_LIMIT)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)


class Monitoring(unittest.TestCase):
    """Rules and dashboard use existing metrics only."""

    @classmethod
    def setUpClass(cls):
        with Switch("--hosts", 1) as switch:
            cls.names = families(subprocess.run([CTL, "--fabric", switch.socket, "metrics"], text=True, capture_output=True, check=True).stdout)

    def check_names(self, text):
        used = set(re.findall(r"\bcepheus_[a-z0-9_]+[a-z0-9]\b", text))
        self.assertGreater(len(used), 5)
        self.assertEqual({name for name in used if name not in self.names and not any(n.startswith(name + "_") for n in self.names)}, set())

    def test_alert_rules(self):
        rules = MONITORING / "cepheus-alerts.yaml"
        self.check_names(rules.read_text())
        code, output = promtool("check", "rules", rules)
        self.assertEqual(code, 0, output)
        code, output = promtool("test", "rules", MONITORING / "cepheus-alerts-test.yaml")
        self.assertEqual(code, 0, output)

    def test_dashboard(self):
        board = json.loads((MONITORING / "cepheus-dashboard.json").read_text())
        queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        self.check_names("\n".join(queries))
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        # promtool reads queries as rules, once Grafana's variables have values.
        rules = [{"record": f"q{i}", "expr": re.sub(r"\$__rate_interval", "1m", query)} for i, query in enumerate(queries)]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump({"groups": [{"name": "board", "rules": rules}]}, file)
            file.flush()
            code, output = promtool("check", "rules", file.name)
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
