#!/usr/bin/python3
"""./run bench collectives: which rival is the best, how its ratio reads, and what is measured."""

import re
import unittest

import collectives
from collectives import Candidate, Measurement
from records import Records


def measured(candidate, *medians):
    candidate.rows = [dict(median=each, p10=each, p90=each, cpu=1.0, late=0.1, discarded=0, n=10) for each in medians]
    return candidate


class Ratios(unittest.TestCase):
    def setUp(self):
        self.measurement = Measurement("shaped", 4)
        self.measurement.ours = [measured(Candidate("cepheus", "allreduce", None, 8), 100.0, 200.0, 100.0)]
        self.measurement.rivals = [measured(Candidate("rc", "allreduce", "ring", 8), 900.0, 900.0, 900.0),
                                   measured(Candidate("rc", "allreduce", "linear", 8), 250.0, 300.0, 150.0),
                                   measured(Candidate("rc", "allreduce", "linear", 64), 1.0, 1.0, 1.0)]

    def test_are_the_best_rivals_of_the_same_size_within_a_round(self):
        text = self.measurement.text()
        self.assertRegex(text, r"allreduce 8 B: the best rival takes 1\.50 \(1\.50\.\.2\.50\) times ours, 0\.\d\d times the bound \d")
        self.assertLess(text.index("rc/linear"), text.index("rc/ring"))

    def test_are_recorded_with_their_rival(self):
        records = Records("collectives")
        self.measurement.record(records)
        (row,) = [row for row in records.rows if row["metric"] == "ratio"]
        self.assertEqual((row["case"], row["unit"], row["median"], row["p10"], row["p90"]), ("allreduce", "rc/linear", 1.5, 1.5, 2.5))


class Plans(unittest.TestCase):
    def test_have_each_algorithm_of_each_collective(self):
        measurement = Measurement("unshaped", 8)
        measurement.plan(collectives.OPENMPI, quick=True)
        plan = "".join(each.plan() for each in measurement.rivals)
        for collective, algorithms in collectives.OPENMPI.items():
            for number in algorithms.values():
                self.assertRegex(plan, re.compile(rf"^{collective} \d+ {number}$", re.MULTILINE))

    def test_have_long_vectors_of_both_types(self):
        measurement = Measurement("unshaped", 4, rate=8000.0)
        measurement.plan_long(collectives.MPICH, quick=True)
        self.assertEqual({(each.collective, each.size) for each in measurement.ours},
                         {(name, size << 10) for name in ("allreduce", "allreduce_int64") for size in (256, 8192)})
        self.assertRegex(measurement.rivals[-1].plan(), r"^allreduce_int64 8388608 \d+$")
        self.assertGreater(measurement.bound(measurement.ours[0]), 0)

    def test_end_at_the_largest_result_in_the_network(self):
        for hosts in 4, 8:
            self.assertEqual(max(collectives.sizes_of("allgather", hosts, quick=False)) * hosts, 8 * 4096)


if __name__ == "__main__":
    unittest.main()
