// Chooses the RDMA device nearest to a process's cores. Pure: the machine and the cores come in as
// arguments.
//
// Data that a far device reads or writes crosses the link between NUMA nodes, and so does each
// completion. hwloc names the cores above a device's PCI slot (hwloc/openfabrics-verbs.h). Software
// devices have no slot and so no place: they are neither near nor far.
#pragma once

#include <hwloc.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cepheus::locality {

struct DevicePlace {
  std::string name;
  std::string at;  // "NUMA node 1"; empty: it has no place
  // How many of the process's processing units are at other nodes: fewer is nearer. Null: no place.
  std::optional<int> far_cores;
};

class DeviceChoice {
 public:
  // Of the verbs devices `names`, for a process that runs on `cores`.
  DeviceChoice(hwloc_topology_t topology, hwloc_const_cpuset_t cores,
               std::span<const std::string> names);

  // Indices into `names` in the order to try. Devices with a place are sorted among their positions,
  // the nearest first and equal ones in the given order; devices without a place keep theirs.
  const std::vector<std::size_t>& order() const { return order_; }
  const std::vector<DevicePlace>& places() const { return places_; }  // as `names`
  const std::string& cores_at() const { return cores_at_; }           // "NUMA node 1"
  // The reason to choose the device at `index`, as text for users.
  std::string why(std::size_t index) const;

 private:
  std::string cores_at_;
  std::vector<DevicePlace> places_;
  std::vector<std::size_t> order_;
};

}  // namespace cepheus::locality
