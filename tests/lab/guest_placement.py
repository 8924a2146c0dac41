#!/usr/bin/python3
"""In a guest with two NUMA nodes of four cores, cpus 0-3 and 4-7: where the threads of real switches run, as the kernel
tells. Run by placement_test.py."""

import os
import pathlib
import subprocess
import unittest

from guest_fabric import BUILD
import switch_process

NODES = ([0, 1, 2, 3], [4, 5, 6, 7])


def interface_at(node):
    """The network interface that the machine has there. A virtio NIC is below its PCI device."""
    for interface in pathlib.Path("/sys/class/net").iterdir():
        slot = interface / "device/../numa_node"
        if slot.exists() and int(slot.read_text()) == node:
            return interface.name
    raise LookupError(f"no interface at NUMA node {node}")


def cpus_of(text):
    """ "0-2,4" as numbers."""
    spans = [span.split("-") for span in text.strip().split(",")]
    return [cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)]


def placed(switch):
    """The cpus that each thread may run on: [the one that moves packets, the other]."""
    threads = sorted(pathlib.Path(f"/proc/{switch.pid}/task").iterdir(), key=lambda thread: int(thread.name))
    allowed = [next(line for line in (thread / "status").read_text().splitlines() if line.startswith("Cpus_allowed_list"))
               for thread in threads]
    return [cpus_of(line.split(":")[1]) for line in allowed]


def switch(**how):
    return switch_process.Switch(BUILD, topology=switch_process.star(2), **how)


class Placement(unittest.TestCase):
    def test_a_switch_has_the_last_core_of_a_node_and_its_other_thread_the_rest(self):
        with switch() as one:
            self.assertEqual(placed(one), [[3], [0, 1, 2]])
            self.assertEqual(one.status()["placement"], "packets on cpu 3 at NUMA node 0; all else on the node's other cores")

    def test_it_is_where_its_interface_is(self):
        interface = interface_at(1)
        subprocess.run(["ip", "link", "set", interface, "up"], check=True)
        topology = switch_process.star(2, fabric="mtu = 1024") + f'[[host]]\nname = "far"\naddress = "10.0.0.9"\ninterface = "{interface}"\n'
        with switch_process.Switch(BUILD, topology=topology) as one:
            self.assertEqual(placed(one), [[7], [4, 5, 6]])
            self.assertIn("at NUMA node 1, where its interfaces are", one.status()["placement"])

    def test_each_switch_of_a_machine_has_another_core_and_what_one_leaves_is_free_again(self):
        with switch(), switch() as second, switch(), switch():
            self.assertEqual(placed(second), [[2], [0, 1, 3]])
            with switch() as fifth:
                self.assertEqual(placed(fifth), [sum(NODES, [])] * 2)
                self.assertEqual(fifth.status()["placement"], "left to the kernel: other switches have all cores at NUMA node 0")
            second.close()
            with switch() as again:
                self.assertEqual(placed(again), [[2], [0, 1, 3]])

    def test_no_more_cores_than_threads(self):
        with switch(before=["taskset", "--cpu-list", "4,5"]) as one:
            self.assertEqual(placed(one), [[4, 5], [4, 5]])
            self.assertIn("2 threads need more than the 2 cores", one.status()["placement"])

    def test_the_administrator_may_leave_it_to_the_kernel(self):
        with switch_process.Switch(BUILD, "--hosts", "2", "--no-placement") as one:
            self.assertEqual(placed(one), [sum(NODES, [])] * 2)

    def test_doctor_says_it(self):
        with switch() as one:
            said = subprocess.run([BUILD / "bin/cepheus", "doctor", "--fabric", one.socket], text=True, capture_output=True,
                                  env={**os.environ, "CEPHEUS_FABRIC": one.socket})
            self.assertIn("packets on cpu 3 at NUMA node 0", said.stdout, said.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
