#!/usr/bin/python3
"""cepheusctl top on terminals of two sizes, driven by keys; the screen after its end."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import BUILD
from live import TIME_LIMIT, LiveRun, Switch, wait_until

CTL = BUILD / "bin/cepheusctl"


class Terminal:
    """tmux with one window, on a server of its own; a command's last screen stays."""

    def __init__(self, columns, rows, *command):
        self.directory = tempfile.mkdtemp(prefix="cepheus-top-")
        self.code_file = pathlib.Path(self.directory) / "code"
        self.socket = str(pathlib.Path(self.directory) / "tmux")
        words = " ".join(f"'{word}'" for word in map(str, command))
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, f"{words}; echo $? > {self.code_file}; exec cat")
        self.tmux("set-option", "-g", "status", "off")
        self.tmux("resize-window", "-x", columns, "-y", rows)

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *map(str, words)], text=True, capture_output=True,
                              env={**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}, timeout=TIME_LIMIT)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout

    def close(self):
        self.tmux("kill-server")
        shutil.rmtree(self.directory, ignore_errors=True)

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def wait(self, holds, what):
        def matching():
            screen = self.screen()
            return screen if holds(screen) else None

        return wait_until(matching, lambda: f"{what}, on this screen:\n" + "\n".join(self.screen()) + "\n")

    def wait_for(self, text):
        return self.wait(lambda screen: any(text in line for line in screen), f"'{text}'")

    def exit_code(self):
        self.wait(lambda _: self.code_file.exists() and self.code_file.read_text().endswith("\n"), "its end")
        return int(self.code_file.read_text())


class Top(unittest.TestCase):
    def top(self, switch, columns, rows):
        terminal = Terminal(columns, rows, CTL, "--fabric", switch.socket, "top")
        self.addCleanup(terminal.close)
        return terminal

    def test_shows_a_running_job_on_a_small_and_on_a_large_terminal(self):
        with LiveRun("--max", 1 << 18, hosts=16, fabric=("--shape", "fat-tree:4")) as run:
            run.wait_for_payload(1 << 20)
            for columns, rows in ((80, 24), (200, 50)):
                with self.subTest(columns=columns, rows=rows):
                    terminal = self.top(run.switch, columns, rows)
                    terminal.wait(lambda screen: "copies" in screen[0], "rates")
                    screen = terminal.wait_for("q quit")
                    self.assertEqual(len(screen), rows)
                    self.assertTrue(screen[-1].startswith("q quit"), screen[-1])
                    self.assertIn("16 of 16 hosts", screen[0])
                    text = "\n".join(screen)
                    self.assertRegex(text, r"198\.1[89]\.\d+\.\d+ +h\d+ +16 ")
                    self.assertRegex(text, r"h\d+ +up +[\d.]+ [kMG]?b/s")
                    self.assertEqual(screen[2].split()[:2], ["GROUP", "FROM"])
                    terminal.keys("q")
                    self.assertEqual(terminal.exit_code(), 0)
            self.assertEqual(run.finish(), 0)

    def test_obeys_keys_and_a_new_size(self):
        with Switch("--shape", "fat-tree:4") as switch:
            terminal = self.top(switch, 80, 24)
            terminal.wait_for("sort links by name")
            terminal.keys("s")
            first = lambda screen: next((screen[i + 1] for i, line in enumerate(screen) if line.startswith("LINK")), "")  # noqa: E731
            terminal.wait(lambda screen: first(screen).startswith("agg0-"), "links by name")
            terminal.keys("Down")
            terminal.wait(lambda screen: first(screen).startswith("agg0-") and "core1" in first(screen), "the second link first")
            terminal.keys("Space")
            terminal.wait_for("paused")
            terminal.tmux("resize-window", "-x", 100, "-y", 40)
            terminal.wait(lambda screen: len(screen) == 40 and screen[-1].startswith("q quit"), "the larger screen")
            terminal.keys("q")
            self.assertEqual(terminal.exit_code(), 0)

    def test_restores_the_terminal_and_prints_the_reason_when_the_fabric_ends(self):
        switch = self.enterContext(Switch("--hosts", 2))
        terminal = self.top(switch, 80, 24)
        terminal.wait_for("q quit")
        switch.close()
        screen = terminal.wait_for("cepheusctl: no fabric")
        self.assertEqual(terminal.exit_code(), 1)
        self.assertFalse(any("q quit" in line for line in screen), "the earlier screen is restored")
        terminal.keys("echoed", "Enter")
        terminal.wait_for("echoed")

    def test_without_a_terminal_prints_once_or_explains_how(self):
        with Switch("--hosts", 2) as switch:
            command = [CTL, "--fabric", switch.socket, "top"]
            refused = subprocess.run(command, text=True, capture_output=True, timeout=TIME_LIMIT)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("top --once", refused.stderr)
            once = subprocess.run([*command, "--once"], text=True, capture_output=True, timeout=TIME_LIMIT)
            self.assertEqual(once.returncode, 0, once.stderr)
            self.assertIn("LINK", once.stdout)
            self.assertNotIn("\033", once.stdout)
            view = subprocess.run([*command, "--once", "--json"], text=True, capture_output=True, timeout=TIME_LIMIT)
            self.assertEqual(len(json.loads(view.stdout)["cables"]), 2)


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        print("top_test: skipped: no terminal to drive; as root: apt-get install --no-install-recommends tmux")
        sys.exit(77)
    unittest.main()
