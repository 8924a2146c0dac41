#!/usr/bin/python3
"""Faults under programs of MPICH: messages, requests and the thread of libcepheus-mpi.so complete the broadcasts in flight.

One case of each kind. `./run faults --mpi mpich` has random moments of a switch's and trunks' faults.
"""

import mpich_test
from fallback_test import Fallback
from ibcast_test import Faults
from lost_member_test import LostMember
from programs_test import Times


def only(cases, *names):
    """A class with these tests of another one alone."""
    return type(cases.__name__, (cases,), {name: None for name in dir(cases) if name.startswith("test_") and name not in names})


Fallback = only(Fallback, "test_several_ranks_a_host_continue_when_the_fabric_fails", "test_a_fabric_that_fails_during_a_groups_set_up",
                "test_a_fabric_that_starts_after_the_first_broadcasts")
Faults = only(Faults, "test_switch_restarted", "test_a_rank_cut_off")
LostMember = only(LostMember, "test_large_nonblocking", "test_small_blocking")
Times = only(Times, "test_a_root_that_finalizes_with_data_unacknowledged")

if __name__ == "__main__":
    mpich_test.run()
