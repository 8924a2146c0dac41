#!/usr/bin/python3
"""broadcast_costs: results by the kernel's counts and perf's samples."""

import contextlib
import io
import unittest

import broadcast_costs


def row(switches, calls, of_switch=0.0, cpu=100.0):
    def role(n):
        return {"switches": n, "sched_waking": calls, "sys_enter": calls, "sys_enter_poll": calls, "sys_enter_futex": 0.0}
    return {"cpu": cpu, "events": {"root": role(switches), "receiver": role(2 * switches), "switch": role(of_switch)}}


def uncounted():
    role = {"switches": 2.0, "sched_waking": None, "sys_enter": None, "sys_enter_poll": None}
    return {"cpu": 100.0, "events": {"root": dict(role), "receiver": dict(role), "switch": dict(role)}}


def printed(*arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        broadcast_costs.print_row(*arguments)
    return out.getvalue().split()


class Kinds(unittest.TestCase):
    def test_assigns_a_sample_to_its_thread(self):
        for library, symbol, kind in (
                ("[kernel.kallsyms]", "[k] finish_task_switch.isra.0", "kernel"),
                ("libc.so.6", "[.] __memmove_avx512_unaligned_erms", "copies"),
                ("libcepheus-roce.so", "[.] cepheus::fabric::copy_used", "copies"),
                ("libcepheus-roce.so", "[.] cepheus::wire::RoceHeaders::parse", "engines"),
                ("cepheus-switch", "[.] cepheus::fabric::rewrite", "engines"),
                ("libcepheus-coll.so", "[.] cepheus::coll::CommunicatorState::serve", "engines"),
                ("libopen-pal.so.40.30.2", "[.] opal_progress", "MPI and libraries"),
                ("mpi_bcast", "[.] start_page_wait", None)):
            with self.subTest(symbol):
                self.assertEqual(broadcast_costs.kind(library, symbol), kind)


class Rows(unittest.TestCase):
    def test_all_processes_count(self):
        self.assertEqual(broadcast_costs.total([row(10, 1, of_switch=5)], "switches", hosts=4), 10 + 3 * 20 + 5)

    def test_a_row_is_the_median_of_the_rounds(self):
        rows = [row(1, 1), row(100, 1), row(10, 1)]
        self.assertEqual(broadcast_costs.by_role(rows, "root", "switches"), 10)

    def test_counts_packets_between_context_switches(self):
        words = printed("cepheus", 1 << 20, 4, [row(4, 3, of_switch=16)])
        self.assertEqual(words[:3], ["1", "MiB", "cepheus"])
        self.assertEqual(words[7:10], ["64", "32", "64"], "256 packets over 4 and 8, and four times as many over 16")
        self.assertEqual(words[10:], ["poll", "15"])

    def test_what_is_not_counted_is_not_zero(self):
        words = printed("tcp", 8, 4, [uncounted()])
        self.assertEqual(words[3:7], ["100", "10", "-", "-"])


if __name__ == "__main__":
    unittest.main()
