#!/usr/bin/python3
"""HPL with broadcasts for panels and row swaps: residual checks, a switch killed in the middle, HPL.dat read and refused.

Exit code 77: HPL's source is not available.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "hpl-patches"))

import dat
import source
from harness import BUILD, VERBOSE, needs_component
from hpl import Hpl, failures
from live import LiveRun

SKIP = 77
SMALL = {"n": 130, "nb": 24}
ONLY_MULTICAST = [("coll_cepheus_mode", "require"), ("coll_cepheus_watchdog_ms", "30000"),
                  ("coll_cepheus_register_timeout_ms", "20000")]
LEFT_MULTICAST = r"cepheus: .*\(4 ranks\): (open mpi's own algorithms from broadcast|the group failed)"


@needs_component
class Variants(unittest.TestCase):
    def check(self, grid, **parameters):
        text = dat.Dat(**SMALL, grid=grid, **parameters).text()
        report, code = Hpl(BUILD, ONLY_MULTICAST).run(text, grid[0] * grid[1], echo=False)
        self.assertEqual(failures(report, dat.tests(text)), [], report)
        self.assertEqual(code, 0, report)

    def test_panels_in_one_process_row(self):
        self.check((1, 4), bcasts=[1, 6, 7], swap=1, depths=[0, 1])

    def test_swaps_in_one_process_column_with_u_plain_and_all_pivots_elsewhere(self):
        self.check((4, 1), bcasts=[6], swap=3, u_plain=1, central=1)

    def test_swaps_among_all_broadcasts_with_l1_plain(self):
        self.check((2, 2), bcasts=list(dat.BCASTS), swap=3, l1_plain=1)

    def test_eight_processes(self):
        self.check((2, 4), bcasts=[0, 6, 7], swap=3, depths=[0, 1])


class LiveHpl(LiveRun):
    """xhpl with a given HPL.dat."""

    STARTED = "^The following parameter values"

    def program(self, arguments, seed):
        (pathlib.Path(self.scratch) / "HPL.dat").write_text(*arguments)
        return [str(source.build(BUILD.parent / "hpl")[0])]


class Faults(unittest.TestCase):
    def kill_the_switch(self, grid, bcast, n, repeat):
        # Repeated, so that there is time to kill the switch during the first.
        text = dat.Dat(n=n, nb=64, grid=grid, bcasts=[bcast], swap=3, repeat=repeat).text()
        with LiveHpl(text, mca=VERBOSE) as run:
            run.wait_for_payload(2 * n * n)  # half of one broadcast's data
            run.switch.kill()
            code = run.finish()
            self.assertEqual(code, 0, run.everything())
            self.assertEqual(failures(run.out.text(), dat.tests(text)), [], run.everything())
            self.assertTrue(run.err.count(LEFT_MULTICAST), run.everything())

    def test_the_switch_dies_in_the_middle_of_panel_broadcasts(self):
        self.kill_the_switch((1, 4), 6, n=1200, repeat=20)

    def test_the_switch_dies_during_broadcasts_that_overlap_the_update(self):
        self.kill_the_switch((1, 4), 7, n=1200, repeat=20)

    def test_the_switch_dies_in_the_middle_of_row_swaps(self):
        self.kill_the_switch((4, 1), 6, n=700, repeat=4)  # each column costs messages, so few


class HplDat(unittest.TestCase):
    TEXT = dat.Dat(n=500, nb=32, grid=(2, 3), bcasts=[0, 6], swap=3, depths=[0, 1], repeat=5).text()

    def test_tests_and_grids_are_counted(self):
        self.assertEqual(dat.tests(self.TEXT), 20)
        self.assertEqual(dat.grids(self.TEXT), [(2, 3)])

    def test_a_grid_replaces_all_grids(self):
        lines = self.TEXT.splitlines()
        lines[dat.GRIDS:dat.QS + 1] = ["2 # of process grids", "1 2 Ps", "4 2 Qs"]
        several = "\n".join(lines)
        self.assertEqual(dat.grids(several), [(1, 4), (2, 2)])
        self.assertEqual(dat.grids(dat.with_grid(several, (4, 2))), [(4, 2)])

    def test_a_line_that_hpl_could_not_read_is_named(self):
        lines = self.TEXT.splitlines()
        lines[dat.PS] = "Ps"
        with self.assertRaisesRegex(dat.BadDat, "line 11 .*the Ps"):
            dat.grids("\n".join(lines))
        with self.assertRaisesRegex(dat.BadDat, "line 5 "):
            dat.tests("one\ntwo\n")

    def test_a_report_is_read(self):
        report = ("WR16C2R4        3000   128     1     4               4.51              3.991e+00\n"
                  "Max aggregated wall time rfact . . . :               0.04\n"
                  "+ Max aggregated wall time laswp . . :               0.43\n"
                  "Max aggregated wall time up tr sv  . :               0.01\n"
                  "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0030308 ...... PASSED\n"
                  "WC07L2R4         100    32     2     2               0.01              1.0e-01\n"
                  "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=       99.0030308 ...... FAILED\n")
        good, bad = dat.results(report)
        self.assertEqual((good.depth, good.bcast, good.n, good.nb, good.grid, good.time), (1, 6, 3000, 128, (1, 4), 4.51))
        self.assertEqual(good.timers, {"rfact": 0.04, "laswp": 0.43, "up tr sv": 0.01})
        self.assertTrue(good.passed)
        self.assertIs(bad.passed, False)
        self.assertEqual(failures(report, 3), ["1 of 3 residual checks failed", "only 2 of 3 tests ran"])


if __name__ == "__main__":
    try:
        source.build(BUILD.parent / "hpl")
    except source.Unavailable as error:
        print(f"SKIPPED: {error}")
        sys.exit(SKIP)
    unittest.main()
