#include "support/locality/device_choice.h"

#include <hwloc/distances.h>
#include <hwloc/openfabrics-verbs.h>

#include <algorithm>
#include <limits>

#include "support/locality/machine.h"

namespace cepheus::locality {
namespace {

// What the firmware says about ways between NUMA nodes (ACPI's SLIT), if it does.
class NodeLatencies {
 public:
  explicit NodeLatencies(hwloc_topology_t topology) : topology_(topology) {
    unsigned count = 1;
    if (hwloc_distances_get_by_name(topology, "NUMALatency", &count, &table_, 0) != 0 ||
        count == 0) {
      table_ = nullptr;
    }
  }
  ~NodeLatencies() {
    if (table_ != nullptr) hwloc_distances_release(topology_, table_);
  }
  NodeLatencies(const NodeLatencies&) = delete;
  NodeLatencies& operator=(const NodeLatencies&) = delete;

  // The shortest way from a node of `from` to one of `to`; 0 if nothing is said.
  std::uint64_t between(hwloc_const_nodeset_t from, hwloc_const_nodeset_t to) const {
    if (table_ == nullptr) return 0;
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (unsigned i = 0; i < table_->nbobjs; ++i) {
      if (!is_in(from, table_->objs[i])) continue;
      for (unsigned j = 0; j < table_->nbobjs; ++j) {
        if (!is_in(to, table_->objs[j])) continue;
        least = std::min(least, std::uint64_t{table_->values[i * table_->nbobjs + j]});
      }
    }
    return least == std::numeric_limits<std::uint64_t>::max() ? 0 : least;
  }

 private:
  static bool is_in(hwloc_const_nodeset_t nodes, hwloc_obj_t object) {
    return object != nullptr && hwloc_bitmap_isset(nodes, object->os_index) != 0;
  }

  hwloc_topology_t topology_;
  hwloc_distances_s* table_ = nullptr;
};

// The cores that a device's slot hangs below; null if hwloc knows of no slot, or has it below all
// of several NUMA nodes: then the firmware does not say where it is.
hwloc_obj_t home_of(hwloc_topology_t topology, const std::string& name) {
  hwloc_obj_t device = hwloc_ibv_get_device_osdev_by_name(topology, name.c_str());
  if (device == nullptr) return nullptr;
  hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(topology, device);
  if (home == nullptr || home->cpuset == nullptr || hwloc_bitmap_iszero(home->cpuset) != 0) {
    return nullptr;
  }
  const bool is_anywhere =
      hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1 &&
      hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(topology), home->cpuset) != 0;
  return is_anywhere ? nullptr : home;
}

Distance distance(const NodeLatencies& latencies, hwloc_obj_t home, hwloc_const_cpuset_t cores,
                  hwloc_const_nodeset_t nodes) {
  Distance result;
  const CpuSet far(hwloc_bitmap_alloc());
  hwloc_bitmap_andnot(far.get(), cores, home->cpuset);
  result.far_cores = hwloc_bitmap_weight(far.get());
  result.latency = latencies.between(home->nodeset, nodes);
  for (hwloc_obj_t at = home; hwloc_bitmap_isincluded(cores, at->cpuset) == 0 && at->parent;) {
    at = at->parent;
    ++result.steps_up;
  }
  return result;
}

}  // namespace

DeviceChoice::DeviceChoice(hwloc_topology_t topology, hwloc_const_cpuset_t cores,
                           std::span<const std::string> names)
    : cores_at_(nodes_text(topology, cores)) {
  const NodeLatencies latencies(topology);
  const CpuSet nodes(hwloc_bitmap_alloc());
  hwloc_cpuset_to_nodeset(topology, cores, nodes.get());
  std::vector<std::size_t> placed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    DevicePlace place{names[i], "", std::nullopt};
    if (hwloc_obj_t home = home_of(topology, names[i])) {
      place.at = nodes_text(topology, home->cpuset);
      place.distance = distance(latencies, home, cores, nodes.get());
      placed.push_back(i);
    }
    places_.push_back(std::move(place));
  }
  std::stable_sort(placed.begin(), placed.end(), [this](std::size_t a, std::size_t b) {
    return *places_[a].distance < *places_[b].distance;
  });
  auto next = placed.begin();
  for (std::size_t i = 0; i < names.size(); ++i) {
    order_.push_back(places_[i].distance ? *next++ : i);
  }
}

std::string DeviceChoice::why(std::size_t index) const {
  const DevicePlace& chosen = places_[index];
  if (!chosen.distance) return "the first that serves; it has no place near any cores";
  const DevicePlace* other = nullptr;  // the nearest of the rest
  for (const std::size_t i : order_) {
    if (i == index || !places_[i].distance) continue;
    other = &places_[i];
    break;
  }
  const std::string at = "at " + chosen.at + ", process on " + cores_at_;
  if (other == nullptr) return "the only one with a place: " + at;
  if (*chosen.distance == *other->distance) return "first of equally near ones: " + at;
  const std::string rest = "; " + other->name + " at " + other->at;
  return (*chosen.distance < *other->distance ? "nearest: " : "nearest that serves: ") + at + rest;
}

}  // namespace cepheus::locality
