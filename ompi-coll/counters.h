// What coll/cepheus has done in this process, and its MPI_T performance variables
// (coll_cepheus_<name>; `ompi_info --all` lists them).
#pragma once

#include <array>
#include <cstdint>

#include "ompi-coll/agreement.h"
#include "ompi-coll/course.h"
#include "ompi-coll/ompi_headers.h"

namespace cepheus::coll {

class Counters {
 public:
  enum class Which : std::uint8_t {
    kEager,        // broadcasts by multicast, copied
    kBulk,         // broadcasts by multicast, straight between buffers
    kHosts,        // broadcasts among one rank of each host, and inside hosts
    kSaved,        // broadcasts by the saved module, or the rest of one point to point
    kIbcastEager,  // the same of non-blocking ones
    kIbcastBulk,
    kIbcastHosts,
    kIbcastTree,   // point to point, by coll/cepheus
    kIbcastSaved,  // by the saved module
    kRepaired,     // pieces of broadcasts that this rank received point to point
    kServed,       // ... that it sent
    kGroups,       // groups set up
    kDevice,       // buffers in a GPU's memory, which Open MPI copied
    kCount
  };

  void add(Which which) { bump(values_[static_cast<std::size_t>(which)]); }
  void add_broadcast(Route route, bool attended);
  void add_fallback(Cause cause) { bump(fallbacks_[static_cast<std::size_t>(cause)]); }
  void register_variables(const mca_base_component_t* component);

 private:
  // MPI_T reads the plain numbers.
  static void bump(unsigned long long& value) { __atomic_fetch_add(&value, 1, __ATOMIC_RELAXED); }

  std::array<unsigned long long, static_cast<std::size_t>(Which::kCount)> values_{};
  std::array<unsigned long long, static_cast<std::size_t>(Cause::kCount)> fallbacks_{};
};

Counters& counters();

}  // namespace cepheus::coll
