#!/usr/bin/python3
"""./run bench hpl: the table of whole jobs with the papers' values."""

import contextlib
import io
import unittest

import hpl
from dat import Result


def result(job, **timers):
    return Result(depth=0, bcast=0, n=0, nb=0, grid=(0, 0), time=job, gflops=0, timers=timers, passed=True)


def table_of(case, own, ours):
    bench = hpl.Bench([case])
    for variant, results in zip(case.variants, (own, ours)):
        bench.samples[case.name, variant.impl] += results
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        hpl.report_jobs(bench)
    return out.getvalue()


def case_named(name):
    return next(case for case in hpl.CASES if case.name == name)


class WholeJobs(unittest.TestCase):
    def test_have_the_share_of_communication_and_what_it_takes_off(self):
        text = table_of(case_named("PB 1x4"), [result(20.0, pbcast=4.0)], [result(15.0, pbcast=1.5)])
        self.assertRegex(text, r"panel broadcast: PB 1x4 +20\.0 \(.*\) +10\.0 \(.*\) +12\.5 \(.*\) +25\.0 \(.*\)  12\n")

    def test_count_both_phases_where_both_go_by_multicast(self):
        text = table_of(case_named("2x4"), [result(10.0, pbcast=1.0, laswp=2.0)], [result(10.0, pbcast=0.5, laswp=1.5)])
        self.assertRegex(text, r"panel broadcast and row swap: 2x4 +30\.0 \(.*\) +20\.0 \(.*\) +10\.0 \(.*\) +0\.0 \([^)]*\)\n")

    def test_take_ratios_within_a_round(self):
        text = table_of(case_named("RS central 4x1"), [result(10.0, laswp=1.0), result(20.0, laswp=2.0)],
                        [result(5.0, laswp=0.5), result(10.0, laswp=1.0)])
        self.assertRegex(text, r"50\.0 \(50\.0\.\.50\.0\)  9\.55\n")

    def test_leave_out_cases_without_barriers(self):
        case = case_named("PB as it is 1x4")
        self.assertNotIn("1x4", table_of(case, [result(10.0, pbcast=1.0)], [result(9.0, pbcast=0.5)]))


if __name__ == "__main__":
    unittest.main()
