// This machine by hwloc: cores, NUMA nodes, and the PCI devices below them.
//
// Loading reads sysfs and takes some 10 ms, so callers load only if they need it. hwloc's variables
// HWLOC_XMLFILE and HWLOC_SYNTHETIC replace the machine by another one.
#pragma once

#include <hwloc.h>

#include <memory>
#include <string>
#include <type_traits>

#include "wire/result.h"

namespace cepheus::locality {

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
// Processing units (hardware threads) by the operating system's numbers.
using CpuSet = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, BitmapDeleter>;

class Machine {
 public:
  static wire::Result<Machine> load();

  hwloc_topology_t topology() const { return topology_.get(); }
  // Where this process's threads may run, all of them together.
  CpuSet cores_of_process() const;

 private:
  struct TopologyDeleter {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  };
  using Handle = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, TopologyDeleter>;

  explicit Machine(Handle topology) : topology_(std::move(topology)) {}

  Handle topology_;
};

// The nodes of these cores: "NUMA node 1", "NUMA nodes 0-1".
std::string nodes_text(hwloc_topology_t topology, hwloc_const_cpuset_t cores);

}  // namespace cepheus::locality
