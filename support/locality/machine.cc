// The topology is loaded without the components that search displays and accelerators, because
// these open drivers. PCI devices are kept if hwloc calls them important. If the kernel does not
// report the process's cores, or none of them is in the topology, all cores count.
#include "support/locality/machine.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace cepheus::locality {
namespace {

// Searches for displays and accelerators open their drivers, which is slow and not needed here.
constexpr std::array kUnwanted = {"gl", "opencl", "cuda", "nvml", "rsmi", "levelzero"};

tl::unexpected<wire::Error> unknown(const std::string& what) {
  return wire::unavailable("hwloc can't read this machine's topology (" + what + ": " +
                           std::strerror(errno) + "); try lstopo");
}

}  // namespace

wire::Result<Machine> Machine::load() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return unknown("hwloc_topology_init");
  Handle topology(made);
  for (const char* component : kUnwanted) {
    // hwloc refuses types that this machine lacks.
    static_cast<void>(
        hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component));
  }
  if (hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0) {
    return unknown("hwloc_topology_set_io_types_filter");
  }
  if (hwloc_topology_load(made) != 0) return unknown("hwloc_topology_load");
  return Machine(std::move(topology));
}

CpuSet Machine::cores_of_process() const {
  CpuSet cores(hwloc_bitmap_alloc());
  const bool is_known = hwloc_get_cpubind(topology_.get(), cores.get(), HWLOC_CPUBIND_PROCESS) == 0;
  hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology_.get());
  if (is_known) hwloc_bitmap_and(cores.get(), cores.get(), all);
  if (!is_known || hwloc_bitmap_iszero(cores.get())) hwloc_bitmap_copy(cores.get(), all);
  return cores;
}

std::string nodes_text(hwloc_topology_t topology, hwloc_const_cpuset_t cores) {
  const CpuSet nodes(hwloc_bitmap_alloc());
  hwloc_cpuset_to_nodeset(topology, cores, nodes.get());
  std::array<char, 64> list{};
  hwloc_bitmap_list_snprintf(list.data(), list.size(), nodes.get());
  return (hwloc_bitmap_weight(nodes.get()) == 1 ? "NUMA node " : "NUMA nodes ") +
         std::string(list.data());
}

}  // namespace cepheus::locality
