#!/usr/bin/python3
"""The HTTP server of a fabric's picture: its content, its access rules, its refusals."""

import json
import os
import random
import socket
import socketserver
import subprocess
import tempfile
import threading
import unittest

from live import TIME_LIMIT, LiveRun, Switch, wait_until
from web_fabric import Web


class Picture(unittest.TestCase):
    def setUp(self):
        self.switch = self.enterContext(Switch("--shape", "leaf-spine:2x2x2"))

    def web(self, *arguments):
        return self.enterContext(Web(self.switch.socket, *arguments))

    def test_of_a_job_shows_its_tree_and_its_traffic(self):
        with LiveRun("--max", 1 << 18, hosts=4, fabric=("--shape", "leaf-spine:2x2x2")) as run, Web(run.switch.socket) as web:
            run.wait_for_payload(1 << 20)

            def replicated():
                view = web.answered_view()
                return view if view["delivered_bps"] > 1.5 * view["sent_bps"] > 0 else None

            view = wait_until(replicated, "a view of the switches that replicate payload")
            groups = [group for group in view["groups"] if group["members"] == 4]
            self.assertTrue(groups, view["groups"])
            hosts = [view["cables"][i]["name"] for i in groups[0]["cables"] if view["cables"][i]["to"] < 0]
            self.assertEqual(sorted(hosts), ["h0", "h1", "h2", "h3"])
            self.assertEqual(run.finish(), 0)

    def test_arrives_as_events_until_the_reader_disconnects(self):
        status, headers, events = self.web().open("events")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        with events:
            views = 0
            while views < 3:
                line = events.readline().decode()
                self.assertTrue(line.startswith("data: "), line)
                view = json.loads(line[6:])
                if "did not answer" not in view.get("error", ""):  # a busy machine may delay an answer too long
                    self.assertEqual(len(view["switches"]), 4, view)
                    views += 1
                self.assertEqual(events.readline(), b"\n")

    def test_of_a_fabric_that_ended_reports_it_and_returns(self):
        web = self.web()
        self.assertIn("switches", web.answered_view())
        self.switch.close()
        self.assertIn("no fabric", web.view()["error"])

    def test_ends_at_once_while_readers_wait(self):
        web = self.web()
        with web.open("events")[2] as events:
            events.readline()
            self.assertEqual(web.close(), 0)

    def test_needs_no_other_server(self):
        for path, kind in (("", "text/html"), ("page.css", "text/css"), ("page.js", "text/javascript")):
            status, headers, answer = self.web().open(path)
            with answer:
                text = answer.read().decode()
            self.assertEqual(status, 200)
            self.assertTrue(headers["Content-Type"].startswith(kind))
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertNotIn("//", text.replace("http://www.w3.org/2000/svg", "").replace("\n//", "") if kind == "text/html" else "")


class Access(unittest.TestCase):
    def setUp(self):
        self.switch = self.enterContext(Switch("--hosts", 2))

    def web(self, *arguments):
        return self.enterContext(Web(self.switch.socket, *arguments))

    def silent(self, web):
        """200 connections that send nothing."""
        host, port = web.netloc.split(":")
        return [socket.create_connection((host, int(port)), TIME_LIMIT) for _ in range(200)]

    def test_refuses_changes_by_default(self):
        web = self.web()
        self.assertEqual(web.token, "")
        status, text = web.request("link", {"link": "h0", "up": False})
        self.assertEqual(status, 403)
        self.assertIn("--control", text)
        self.assertEqual(web.cable("h0")["state"], "up")

    def test_requires_the_token_if_changes_are_allowed(self):
        web = self.web("--control")
        self.assertEqual(len(web.token), 32)
        for wrong in ("", web.token[:-1], web.token[:-1] + ("0" if web.token[-1] != "0" else "1"), web.token + "0"):
            for path, body in (("view.json", None), ("events", None), ("link", {"link": "h0", "up": False})):
                self.assertEqual(web.request(path, body, token=wrong)[0], 403, (path, wrong))
        self.assertEqual(web.cable("h0")["state"], "up")
        self.assertEqual(web.request("link", {"link": "h0", "up": False})[0], 200)
        self.assertEqual(web.cable("h0")["state"], "cut")
        self.assertEqual(web.request("link", {"link": "h0", "up": True, "loss": 0.25})[0], 200)
        self.assertEqual((web.cable("h0")["state"], web.cable("h0")["loss"]), ("up", 0.25))

    def test_refuses_other_pages_of_the_same_browser(self):
        self.assertEqual(self.web().request("view.json", headers={"Host": "rebound.example"})[0], 403)
        web = self.web("--control")
        status, _ = web.request("link", {"link": "h0", "up": False}, headers={"Content-Type": "text/plain"})
        self.assertEqual(status, 400, "a form of another page can send this")
        self.assertEqual(web.cable("h0")["state"], "up")

    def test_names_the_missing_object_in_a_refusal(self):
        web = self.web("--control")
        status, text = web.request("link", {"link": "h9", "up": False})
        self.assertEqual(status, 409)
        self.assertIn("no link 'h9'", text)
        status, text = web.request("kill", {"host": "h0", "pid": os.getpid()})
        self.assertEqual(status, 409)
        self.assertIn("has ended", text)
        self.assertEqual(web.request("kill", {"host": "h0", "pid": "1"})[0], 400)
        self.assertEqual(web.request("link", [1])[0], 400)

    def test_kills_no_process_that_is_not_the_fabrics_client(self):
        with tempfile.TemporaryDirectory() as scratch, subprocess.Popen(["sleep", str(TIME_LIMIT)]) as bystander:
            self.addCleanup(bystander.kill)
            status = self.switch.status()
            port = next(port for switch in status["switches"] for port in switch["ports"] if port["name"] == "h0")
            port.update(attached=True, client_pid=bystander.pid)

            class Liar(socketserver.StreamRequestHandler):
                def handle(self):
                    for line in self.rfile:
                        is_kill = json.loads(line)["ask"] == "kill"
                        answer = {"ok": False, "error": "no"} if is_kill else {"ok": True, "status": status}
                        self.wfile.write(json.dumps(answer).encode() + b"\n")

            fabric = f"{scratch}/fabric"
            with socketserver.ThreadingUnixStreamServer(f"{fabric}.ctl", Liar) as server:
                server.daemon_threads = True
                threading.Thread(target=server.serve_forever, daemon=True).start()
                with Web(fabric, "--control") as web:
                    self.assertEqual(web.request("kill", {"host": "h0", "pid": bystander.pid})[0], 409)
                server.shutdown()
            self.assertIsNone(bystander.poll(), "it was killed")
            bystander.kill()

    # One more than may read events.
    def test_serves_sixteen_readers(self):
        web = self.web()
        readers = [web.open("events") for _ in range(17)]
        self.assertEqual([status for status, _, _ in readers], [200] * 16 + [503])
        self.assertIn("16 other readers", readers[-1][2].read().decode())
        for _, _, answer in readers:
            answer.close()

    # Silent connections are closed after a while, so that requests are served.
    def test_survives_many_connections_during_broadcasts(self):
        with LiveRun("--max", 1 << 16) as run, Web(run.switch.socket) as web:
            run.wait_for_payload(1 << 16)
            readers = [web.open("events") for _ in range(17)]
            before = len(os.listdir(f"/proc/{web.process.pid}/task"))  # all workers exist before the first answer
            self.assertEqual([status for status, _, _ in readers], [200] * 16 + [503])
            for _, _, answer in readers:
                answer.close()
            silent = self.silent(web)
            self.assertEqual({web.request("page.css")[0] for _ in range(100)}, {200})
            self.assertEqual(len(os.listdir(f"/proc/{web.process.pid}/task")), before, "a thread for a connection")
            run.wait_for_payload(4 << 20)
            for each in silent:
                each.close()
            self.assertGreater(len(web.answered_view()["cables"]), 3)
            self.assertEqual(run.finish(), 0, run.everything())

    def test_sleeps_beside_silent_connections(self):
        web = self.web()
        silent = self.silent(web)
        before = web.switches()
        for _ in range(4):
            web.view()  # waits for the fabric's next status, up to half a second
        self.assertLess(web.switches() - before, 1000, "a thread polls silent connections")
        for each in silent:
            each.close()

    def test_survives_random_input(self):
        web = self.web("--control")
        host, port = web.netloc.split(":")
        words = [b"GET", b"POST", b"/", b"/events", b"/link", b"?token=", web.token.encode(), b" HTTP/1.1\r\n", b"\r\n\r\n", b"\x00\xff",
                 b"Host: ", b"Content-Length: 99999999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"{" * 500, b"%", b"a" * 9000]

        def throw(seed):
            chance = random.Random(seed)
            for _ in range(40):
                with socket.create_connection((host, int(port)), TIME_LIMIT) as to:
                    to.settimeout(0.2)
                    try:
                        to.sendall(b"".join(chance.choice(words) for _ in range(chance.randint(1, 12))))
                        to.recv(4096)
                    except OSError:
                        pass

        throwers = [threading.Thread(target=throw, args=(seed,)) for seed in range(8)]
        for thrower in throwers:
            thrower.start()
        for thrower in throwers:
            thrower.join()
        self.assertIsNone(web.process.poll(), "it ended")
        self.assertEqual(len(web.answered_view()["cables"]), 2)
        self.assertEqual(web.cable("h0")["state"], "up")


if __name__ == "__main__":
    unittest.main()
