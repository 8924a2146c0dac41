#!/usr/bin/python3
"""./run bench compare: which figures of two commits are compared, and how the ratios read."""

import unittest

import compare


def key(impl, size):
    return ("bcast", impl, "time", "us", size, 4, "unshaped")


class Ratios(unittest.TestCase):
    def test_are_new_over_old_with_the_rounds_own_as_spread(self):
        old = [{key("cepheus", 8): 10.0}, {key("cepheus", 8): 20.0}, {key("cepheus", 8): 30.0}]
        new = [{key("cepheus", 8): 5.0}, {key("cepheus", 8): 20.0}, {key("cepheus", 8): 24.0}]
        self.assertEqual(compare.ratios(old, new), [(key("cepheus", 8), 20.0, 20.0, 1.0, [0.5, 0.8, 1.0])])

    def test_leave_out_what_one_side_lacks_or_what_is_zero(self):
        old = [{key("cepheus", 8): 10.0, key("gone", 8): 1.0, key("zero", 8): 0}]
        new = [{key("cepheus", 8): 5.0, key("new", 8): 1.0, key("zero", 8): 1.0}]
        self.assertEqual([row[0] for row in compare.ratios(old, new)], [key("cepheus", 8)])

    def test_are_printed_with_units_and_spread(self):
        class Side:
            def __init__(self, name):
                self.name = name

        rows = compare.ratios([{key("cepheus", 65536): 10.0}], [{key("cepheus", 65536): 5.0}])
        text = compare.table("bcast", (Side("abc"), Side("this checkout")), rows)
        self.assertIn("cepheus time [us] 64 KiB 4 hosts unshaped", text)
        self.assertIn("0.500 (0.500..0.500)", text)


if __name__ == "__main__":
    unittest.main()
