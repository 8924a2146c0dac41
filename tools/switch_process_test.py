#!/usr/bin/python3
"""switch_process.py with the real cepheus-switch."""

import os
import unittest

from switch_process import Switch, star

BUILD = os.environ["CEPHEUS_BUILD"]


class AFabricOfOnesOwn(unittest.TestCase):
    def test_serves_until_its_block_ends_and_leaves_nothing(self):
        with Switch(BUILD, topology=star(3, 'rate = "1Gbps"', fabric='icrc = "always"')) as switch:
            self.assertEqual([port["name"] for port in switch.ports()], ["h0", "h1", "h2"])
            self.assertTrue(switch.status()["icrc_always"])
            self.assertEqual(switch.ports()[0]["link"]["rate_bps"], 10**9)
        self.assertEqual(switch.process.returncode, 0)
        self.assertFalse(switch.directory.exists())

    def test_changes_links_and_prints_the_fabrics_refusals(self):
        with Switch(BUILD, "--hosts", 2) as switch:
            switch.set_links(["h0"], up=False)
            self.assertFalse(switch.ports()[0]["in_up"])
            with self.assertRaisesRegex(RuntimeError, "no link 'h2' in the fabric"):
                switch.set_links(["h2"], up=False)

    def test_comes_back_at_its_socket_after_being_killed(self):
        with Switch(BUILD, "--hosts", 2) as switch:
            first = switch.pid
            switch.kill()
            switch.start()
            self.assertNotEqual(switch.pid, first)
            self.assertEqual(switch.status()["pid"], switch.pid)

    def test_is_an_error_if_it_does_not_start(self):
        with self.assertRaisesRegex(RuntimeError, "cepheus-switch did not start: .* --hosts 0 "):
            Switch(BUILD, "--hosts", 0)


if __name__ == "__main__":
    unittest.main()
