#!/usr/bin/python3
"""./run hostile in short: whatever a host does, data is right, no group breaks, and the switch holds no more than before.

A few moments of each attack on a busy machine say nothing of speeds: those are the long form's.
"""

import sys
import unittest

import strangers
from hostile import ATTACKS, STRANGER, Trials


class HostileHosts(unittest.TestCase):
    def test_take_nothing_of_others(self):
        print("\n" + Trials.HEAD, file=sys.stderr)
        wrong = Trials(65536, turns=1, seconds=0.3, least=0, show=lambda line: print(line, file=sys.stderr)).run(ATTACKS)
        self.assertEqual(wrong, [])

    def test_a_spy_was_among_them(self):
        if STRANGER is None:
            self.skipTest("SKIPPED: only root has hosts of two users, so nobody spied")
        self.assertIn("spy", ATTACKS)

    def test_strangers_leave_nothing_behind_and_keep_nobody_out(self):
        print("\n" + strangers.HEAD, file=sys.stderr)
        wrong = strangers.besiege_all(1000, show=lambda line: print(line, file=sys.stderr))
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
