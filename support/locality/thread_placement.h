// Which core each thread of a packet-moving process has. Pure: the machine comes in as an argument,
// and what other processes have taken as a question.
//
// The first thread, which polls, has a core of its own with all its hardware threads, so that
// nothing shares its caches and units. The others share what is left of its NUMA node: there lie the
// rings that all of them touch. Cores are given from the last one on, since launchers of MPI
// programs bind ranks from the first one on.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/locality/machine.h"
#include "wire/unique_fd.h"

namespace cepheus::locality {

struct ThreadPlacement {
  CpuSet first, others;  // null: the threads are left to the kernel
  std::string why;       // for people
  bool is_placed() const { return first != nullptr; }
};

// Whether this process may have the core whose first processing unit has that number.
using Claim = std::function<bool(unsigned)>;

// For `threads` threads of a process that runs on `cores` and uses these network interfaces, by name
// or PCI address: at their NUMA node if they have one in common ("eth0.101" is where eth0 is), else
// at that which has most of the cores. Nothing is placed where there are no more cores than threads.
ThreadPlacement place_threads(hwloc_topology_t topology, hwloc_const_cpuset_t cores,
                              unsigned threads, std::span<const std::string> interfaces,
                              const Claim& claim);

// Cores that switches of one machine have for themselves, so that no two poll on the same one.
//
// A claim is a name in the abstract namespace of Unix sockets (unix(7)): it belongs to one process,
// and the kernel drops it when that ends, however it ends. Processes in other network namespaces are
// not seen.
class CoreClaims {
 public:
  // False if another process, or this one, has that core already.
  bool take(unsigned cpu);

 private:
  std::vector<wire::UniqueFd> held_;
};

}  // namespace cepheus::locality
