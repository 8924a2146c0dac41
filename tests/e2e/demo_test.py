#!/usr/bin/python3
"""The demo: a file over a fabric of several switches, its tree in words and drawn."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
import xml.etree.ElementTree as ElementTree

from harness import BUILD, needs_component

DEMO = pathlib.Path(__file__).resolve().parents[2] / "tools/demo/demo.py"


def demo(*arguments):
    return subprocess.run([sys.executable, DEMO, "--build", BUILD, "--seconds", "0.05", *map(str, arguments)], text=True, capture_output=True,
                          timeout=120)


@needs_component
class Demo(unittest.TestCase):
    def test_a_file_takes_a_tree_over_a_leaf_spine_fabric(self):
        with tempfile.TemporaryDirectory() as scratch:
            file, svg = pathlib.Path(scratch) / "file", pathlib.Path(scratch) / "tree.svg"
            file.write_bytes(bytes(range(256)) * 1000)
            shown = demo(file, "--shape", "leaf-spine:2x2x2", "--hosts", 4, "--svg", svg)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            drawing = ElementTree.parse(svg).getroot()
        self.assertEqual(len(set(re.findall(r"sha256 (\w+)", shown.stdout))), 1)
        [times] = re.findall(r"([\d.]+) times the file", shown.stdout)
        self.assertLess(float(times), 2, "by unicast 3; on a busy machine a NIC may repeat some of it")
        # The tree, from the root's leaf over one of the spines to the other leaf.
        self.assertRegex(shown.stdout, r"  leaf0  h0 h1\n    spine[01]\n      leaf1  h2 h3\n")
        space = "{http://www.w3.org/2000/svg}"
        self.assertEqual(len(drawing.findall(f"{space}rect")), 4)
        self.assertEqual(len(drawing.findall(f"{space}circle")), 4)

    def test_a_report_names_and_draws_the_run(self):
        with tempfile.TemporaryDirectory() as scratch:
            file, page = pathlib.Path(scratch) / "a <file> & more", pathlib.Path(scratch) / "report.html"
            file.write_bytes(bytes(range(256)) * 1000)
            shown = demo(file, "--hosts", 3, "--report", page)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            text = page.read_text()
        self.assertRegex(text, r"\((\d+) ranks\): (\d+) of \2 calls by the network")
        [copies] = re.findall(r"the switches made ([\d.]+) copies of each byte", text)
        self.assertTrue(1 < float(copies) <= 2, "two, and of a repeat those that a host lacks: " + copies)
        self.assertIn("a &lt;file&gt; &amp; more", text)
        self.assertEqual(len(re.findall(r"<img [^>]*src=\"data:image/svg", text)), 1)
        self.assertNotRegex(text, r"(src|href)=\"(?!data:)")
        ladder = text[text.index('class="ladder"'):]
        psns = [re.findall(rf">{kind} (\d+)<", ladder) for kind in ("data", "ACK")]
        self.assertGreaterEqual(len(set(psns[0])), 5, "20000 bytes in packets of 4096")
        self.assertGreaterEqual(psns[0].count(psns[0][0]), 3, "one from the root, one to each of the others")
        self.assertTrue(psns[1], "no packet was acknowledged")

    def test_a_picture_is_served_during_the_broadcast(self):
        process = subprocess.Popen([sys.executable, DEMO, "--build", BUILD, "--shape", "leaf-spine:2x2x2", "--web", "127.0.0.1:0"],
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        address = next(line.split()[-1] for line in process.stdout if "live page at" in line)
        url, _, token = address.partition("#")
        groups = []
        give_up = time.monotonic() + 60
        while not any(group["bps"] > 0 for group in groups) and time.monotonic() < give_up:
            with urllib.request.urlopen(f"{url}view.json?token={token}", timeout=60) as answer:
                groups = json.load(answer).get("groups", [])
        self.assertTrue(any(group["bps"] > 0 for group in groups), groups)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)

    def test_a_shape_that_has_too_few_hosts_is_refused(self):
        refused = demo("--shape", "leaf-spine:2x1x1", "--hosts", 4)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("leaf-spine:2x1x1 has 2 hosts: give --hosts 2 or fewer", refused.stderr)

    def test_the_switch_refuses_an_unknown_shape(self):
        refused = demo("--shape", "ring:4")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("ring:4", refused.stderr)


if __name__ == "__main__":
    unittest.main()
