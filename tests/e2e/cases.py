"""Small cases for every way into the collectives: coll/cepheus, and libcepheus-mpi.so with Open MPI and with MPICH.

programs_test, preload_test and mpich_test run them all. Each case needs code that the ways do not share: of types, requests,
communicators, threads or messages. Sizes, links, packets and faults are below the ways; one MPI suffices for those.
"""

from typing import NamedTuple

from harness import PROGRAMS, REDUCTIONS, REQUIRE, VERBOSE, EndToEnd, over_fabric, star

NONE, MANY = (0,), range(21, 1 << 30)


class Case(NamedTuple):
    name: str
    command: str  # of a program of tests/mpi
    how: dict = {}  # arguments of over_fabric; 4 hosts by default
    counted: dict = {}  # legal numbers of calls by path
    printed: str = ""  # on stderr
    leaves_no_group: bool = False


TWO_EACH = {"hosts": 2, "options": ("--ranks-per-host", 2)}


def reductions(way, calls):
    """With the one by which a program checks its end, where that counts."""
    return {f"{each}s_{way}": (calls, calls + 1) for each in REDUCTIONS}


CASES = (
    # Types and memory.
    Case("types_that_differ_between_ranks", "broadcast_check --count 60 --max 524288 --type mixed --root random"),
    Case("predefined_types_without_a_name", "kind_types_check"),
    Case("memory_of_a_gpu_whose_driver_comes_late", "device_memory_check --late 1"),
    # Communicators.
    Case("halves_of_a_split_at_the_same_time", "broadcast_check --count 60 --max 262144 --comm split"),
    Case("communicators_alive_together", "communicators_check --alive 40"),
    Case("communicators_made_and_freed", "communicators_check --churn 40", leaves_no_group=True),
    Case("communicators_with_attributes", "attributes_check", {"hosts": 3}),
    Case("first_broadcast_during_a_duplication", "order_check --idup 1", TWO_EACH),
    # Errors.
    Case("ranks_that_pass_other_counts", "order_check --counts 1", {"hosts": 3, "mca": VERBOSE}, printed="rank 2 passes 1000 bytes"),
    Case("a_wait_reports_the_error_once", "ibcast_check --short world", {"hosts": 3}),
    Case("a_wait_reports_the_error_of_a_freed_communicator", "ibcast_check --short freed", {"hosts": 3}),
    # Threads and progress.
    Case("lowest_level_of_threads", "levels_check --level single", {"hosts": 3}),
    Case("threads_on_communicators_of_their_own", "threads_check --threads 4 --count 100"),
    Case("a_thread_with_a_small_stack", "small_stack_check", {"hosts": 3, "mca": {**REQUIRE, "coll_cepheus_verbose": 2}}),
    Case("a_message_that_needs_a_rank_in_a_broadcast", "rendezvous_check"),
    Case("an_ibcast_that_needs_ranks_in_other_calls", "ibcast_check --absent 1"),
    # Requests and messages.
    Case("first_broadcast_is_not_blocking", "order_check --ibcast 1", {}, {"ibcasts_eager": (1,), "bcasts_eager": (7,), "bcasts_saved": NONE}),
    Case("ibcasts_among_blocking_broadcasts", "ibcast_check --count 60 --outstanding 6 --type mixed --mix 1", {},
         {"ibcasts_eager": MANY, "ibcasts_bulk": MANY, "ibcasts_tree": NONE, "ibcasts_saved": NONE}),
    Case("communicator_freed_before_others_start", "ibcast_check --leave 1", leaves_no_group=True),
    Case("several_ranks_on_a_host", "ibcast_check --count 20 --mix 1 --type mixed", TWO_EACH, {"ibcasts_hosts": MANY, "ibcasts_saved": NONE}),
    # Reductions, gathers and barriers.
    Case("reductions_in_the_switch", "counters_check --reductions 30", {}, {**reductions("network", 60), **reductions("saved", 0)}),
    Case("reductions_of_several_ranks_on_a_host", "counters_check --reductions 30", TWO_EACH, dict.fromkeys(reductions("hosts", 60), range(60, 123))),  # a report has leaders and other ranks on lines of their own
    Case("duplications_under_way", "order_check --idup 1"),
    Case("a_receive_behind_an_operation_and_a_barrier", "order_check --behind 1"),
    Case("chosen_collectives_only", "counters_check --reductions 30", {"mca": {**REQUIRE, "coll_cepheus_collectives": "barrier"}},
         {"barriers_network": (60,), "allreduces_network": NONE, "bcasts_eager": NONE}),
    Case("default_collectives", "counters_check --reductions 30", {"mca": {**REQUIRE, "coll_cepheus_collectives": None}},
         {**dict.fromkeys(("barriers_network", "allreduces_network", "allgathers_network"), (60, 61)), "bcasts_eager": (10,),
          **dict.fromkeys(("reduces_network", "reduces_messages", "reduces_saved"), NONE)}),  # MPI_Reduce is MPI's own: nothing counts it
    Case("reductions_of_memory_of_a_gpu", "device_memory_check --reductions 1"),
    Case("reductions_with_wrong_arguments", "wrong_arguments_check --structs 1"),
    Case("a_switch_without_space", "ibcast_check --count 40 --mix 1 --type mixed", {"topology": star(4, switch="max_groups = 0"), "mca": {}},
         {"ibcasts_tree": MANY}),
)


class Cases(EndToEnd):
    def check(self, case):
        program, *arguments = case.command.split()
        run = over_fabric(PROGRAMS / program, *arguments, **{"mca": REQUIRE, **case.how})
        self.assert_ok(run)
        self.assertIn(case.printed, run.err, run.everything())
        for path, numbers in case.counted.items():
            self.assertIn(run.variables()[path], numbers, f"{path}\n{run.everything()}")
        if case.leaves_no_group:
            self.assertEqual(run.status["switches"][0]["groups"], [], run.everything())


for each in CASES:
    setattr(Cases, f"test_{each.name}", lambda self, case=each: self.check(case))
