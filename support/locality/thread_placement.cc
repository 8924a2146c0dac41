#include "support/locality/thread_placement.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace cepheus::locality {
namespace {

hwloc_obj_t find_interface(hwloc_topology_t topology, const std::string& name) {
  hwloc_obj_t device = nullptr;
  while ((device = hwloc_get_next_osdev(topology, device)) != nullptr) {
    if (device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK && device->name == name) return device;
  }
  if (hwloc_obj_t slot = hwloc_get_pcidev_by_busidstring(topology, name.c_str())) return slot;
  const std::size_t vlan = name.find('.');
  return vlan == std::string::npos ? nullptr : find_interface(topology, name.substr(0, vlan));
}

CpuSet intersection(hwloc_const_cpuset_t a, hwloc_const_cpuset_t b) {
  CpuSet both(hwloc_bitmap_alloc());
  hwloc_bitmap_and(both.get(), a, b);
  return both;
}

// A NUMA node, with those of its cores that the process may use: a hardware thread or more of each.
struct Node {
  unsigned number = 0;
  CpuSet units;
  std::vector<CpuSet> cores;
};

Node look_at(hwloc_topology_t topology, hwloc_obj_t node, hwloc_const_cpuset_t allowed) {
  Node result{node->os_index, intersection(node->cpuset, allowed), {}};
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_inside_cpuset_by_type(topology, node->cpuset, HWLOC_OBJ_CORE,
                                                          core)) != nullptr) {
    CpuSet units = intersection(core->cpuset, allowed);
    if (hwloc_bitmap_iszero(units.get()) == 0) result.cores.push_back(std::move(units));
  }
  return result;
}

// The one NUMA node that all interfaces with a place are at; null if there is none.
hwloc_obj_t node_of(hwloc_topology_t topology, std::span<const std::string> interfaces) {
  const CpuSet nodes(hwloc_bitmap_alloc());
  for (const std::string& name : interfaces) {
    hwloc_obj_t device = find_interface(topology, name);
    if (device == nullptr) continue;
    hwloc_bitmap_or(nodes.get(), nodes.get(),
                    hwloc_get_non_io_ancestor_obj(topology, device)->nodeset);
  }
  if (hwloc_bitmap_weight(nodes.get()) != 1) return nullptr;
  return hwloc_get_numanode_obj_by_os_index(topology,
                                            static_cast<unsigned>(hwloc_bitmap_first(nodes.get())));
}

Node largest_node(hwloc_topology_t topology, hwloc_const_cpuset_t allowed) {
  Node best;
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    Node next = look_at(topology, node, allowed);
    if (next.cores.size() > best.cores.size()) best = std::move(next);
  }
  return best;
}

ThreadPlacement left_to_the_kernel(const std::string& why) {
  return {nullptr, nullptr, "left to the kernel: " + why};
}

}  // namespace

ThreadPlacement place_threads(hwloc_topology_t topology, hwloc_const_cpuset_t cores,
                              unsigned threads, std::span<const std::string> interfaces,
                              const Claim& claim) {
  hwloc_obj_t wanted = node_of(topology, interfaces);
  const Node node =
      wanted != nullptr ? look_at(topology, wanted, cores) : largest_node(topology, cores);
  const std::string name = "NUMA node " + std::to_string(node.number);
  if (node.cores.size() <= threads) {
    return left_to_the_kernel(std::to_string(threads) + " threads need more than the " +
                              std::to_string(node.cores.size()) + " cores at " + name);
  }
  const auto core = std::find_if(node.cores.rbegin(), node.cores.rend(), [&](const CpuSet& units) {
    return claim(static_cast<unsigned>(hwloc_bitmap_first(units.get())));
  });
  if (core == node.cores.rend()) {
    return left_to_the_kernel("other switches have all cores at " + name);
  }
  ThreadPlacement result;
  result.first.reset(hwloc_bitmap_dup(core->get()));
  result.others.reset(hwloc_bitmap_alloc());
  hwloc_bitmap_andnot(result.others.get(), node.units.get(), core->get());
  result.why = "packets on cpu " + std::to_string(hwloc_bitmap_first(core->get())) + " at " + name +
               (wanted != nullptr ? ", where its interfaces are" : "") +
               "; all else on the node's other cores";
  return result;
}

bool CoreClaims::take(unsigned cpu) {
  wire::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "cepheus-core-" + std::to_string(cpu);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // after a zero: abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return false;
  held_.push_back(std::move(socket));
  return true;
}

}  // namespace cepheus::locality
