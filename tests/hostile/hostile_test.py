#!/usr/bin/python3
"""./run hostile in short: under any attack data is right, no group fails, and the switch's resources do not grow.

Short attacks on a busy machine reveal nothing about speeds; the long form measures them.
"""

import sys
import unittest

import strangers
from hostile import ATTACKS, STRANGER, Campaign


class HostileHosts(unittest.TestCase):
    def test_do_not_harm_others(self):
        print("\n" + Campaign.HEAD, file=sys.stderr)
        wrong = Campaign(65536, turns=1, seconds=0.3, least=0, show=lambda line: print(line, file=sys.stderr)).run(ATTACKS)
        self.assertEqual(wrong, [])

    def test_the_spy_attack_has_run(self):
        if STRANGER is None:
            self.skipTest("SKIPPED: only root has hosts of two users, so the attack 'spy' did not run: run the test as root")
        self.assertIn("spy", ATTACKS)

    def test_strangers_leave_nothing_behind_and_block_no_client(self):
        print("\n" + strangers.HEAD, file=sys.stderr)
        wrong = strangers.attack_all_gates(1000, show=lambda line: print(line, file=sys.stderr))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
