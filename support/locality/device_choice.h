// Which of several RDMA devices is nearest to a process's cores. Pure: the machine and the cores
// come in as arguments.
//
// Data that a far device reads or writes crosses the link between NUMA nodes, and so does each
// completion. hwloc says below which cores a device's PCI slot hangs (hwloc/openfabrics-verbs.h).
// Devices without a slot, such as those that software makes, have no place: they are neither near
// nor far.
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
  // Of the process's processing units, those at other nodes: fewer is nearer. Null: it has no place.
  std::optional<int> far_cores;
};

class DeviceChoice {
 public:
  // Of the verbs devices `names`, for a process that runs on `cores`.
  DeviceChoice(hwloc_topology_t topology, hwloc_const_cpuset_t cores,
               std::span<const std::string> names);

  // Indices into `names` in the order to try: devices that have a place take each other's turns,
  // the nearest first and equal ones as they came; the others keep theirs.
  const std::vector<std::size_t>& order() const { return order_; }
  const std::vector<DevicePlace>& places() const { return places_; }  // as `names`
  const std::string& cores_at() const { return cores_at_; }           // "NUMA node 1"
  // Why the device at `index` and no other: for people.
  std::string why(std::size_t index) const;

 private:
  std::string cores_at_;
  std::vector<DevicePlace> places_;
  std::vector<std::size_t> order_;
};

}  // namespace cepheus::locality
