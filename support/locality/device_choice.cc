#include "support/locality/device_choice.h"

#include <hwloc/openfabrics-verbs.h>

#include <algorithm>

#include "support/locality/machine.h"

namespace cepheus::locality {
namespace {

// The cores above a device's slot. Null if hwloc has no slot, or puts it below all of several NUMA
// nodes: then the firmware does not report its place.
hwloc_obj_t node_of(hwloc_topology_t topology, const std::string& name) {
  hwloc_obj_t device = hwloc_ibv_get_device_osdev_by_name(topology, name.c_str());
  if (device == nullptr) return nullptr;
  hwloc_obj_t node = hwloc_get_non_io_ancestor_obj(topology, device);
  if (node == nullptr || node->cpuset == nullptr || hwloc_bitmap_iszero(node->cpuset) != 0) {
    return nullptr;
  }
  const bool is_anywhere =
      hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1 &&
      hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(topology), node->cpuset) != 0;
  return is_anywhere ? nullptr : node;
}

int far_cores(hwloc_obj_t node, hwloc_const_cpuset_t cores) {
  const CpuSet far(hwloc_bitmap_alloc());
  hwloc_bitmap_andnot(far.get(), cores, node->cpuset);
  return hwloc_bitmap_weight(far.get());
}

}  // namespace

DeviceChoice::DeviceChoice(hwloc_topology_t topology, hwloc_const_cpuset_t cores,
                           std::span<const std::string> names)
    : cores_at_(nodes_text(topology, cores)) {
  std::vector<std::size_t> placed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    DevicePlace place{names[i], "", std::nullopt};
    if (hwloc_obj_t node = node_of(topology, names[i])) {
      place.at = nodes_text(topology, node->cpuset);
      place.far_cores = far_cores(node, cores);
      placed.push_back(i);
    }
    places_.push_back(std::move(place));
  }
  std::ranges::stable_sort(placed, {}, [this](std::size_t i) { return *places_[i].far_cores; });
  auto next = placed.begin();
  for (std::size_t i = 0; i < names.size(); ++i) {
    order_.push_back(places_[i].far_cores ? *next++ : i);
  }
}

std::string DeviceChoice::why(std::size_t index) const {
  const DevicePlace& chosen = places_[index];
  if (!chosen.far_cores) return "in the order of the list; it has no place near any cores";
  const DevicePlace* other = nullptr;  // the nearest of the rest
  for (const std::size_t i : order_) {
    if (i == index || !places_[i].far_cores) continue;
    other = &places_[i];
    break;
  }
  const std::string at = "at " + chosen.at + ", process on " + cores_at_;
  if (other == nullptr) return "the only one with a place: " + at;
  if (*chosen.far_cores == *other->far_cores)
    return "first of those with as many cores at its node: " + at;
  const std::string rest = "; " + other->name + " at " + other->at;
  return (*chosen.far_cores < *other->far_cores ? "nearest: " : "nearest that serves: ") + at +
         rest;
}

}  // namespace cepheus::locality
