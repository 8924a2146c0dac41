// Counts of the collectives in this process. The host shows the numbers (MPI_T).
#pragma once

#include <array>
#include <cstdint>

#include "collectives/core/agreement.h"
#include "collectives/core/code.h"
#include "collectives/core/collective.h"

namespace cepheus::coll {

class Counters {
 public:
  enum class Which : std::uint8_t {
    kEager,  // blocking broadcasts, by route
    kBulk,
    kHosts,
    kSaved,        // also the rest of one point to point
    kIbcastEager,  // non-blocking ones
    kIbcastBulk,
    kIbcastHosts,
    kIbcastTree,
    kIbcastSaved,
    kRepaired,  // pieces of broadcasts, and reductions' results, received point to point
    kServed,    // ... that this rank sent
    kGroups,    // groups set up
    kDevice,    // buffers in a GPU's memory, which the host copied
    kCount
  };
  static constexpr std::size_t kKinds = static_cast<std::size_t>(Which::kCount);
  static constexpr std::size_t kCauses = static_cast<std::size_t>(Cause::kCount);

  // The ways of reductions, blocking or not: in the network, among one rank of each host and inside
  // hosts, by messages between ranks, by the MPI implementation's own algorithm.
  enum class ReductionWay : std::uint8_t { kNetwork, kHosts, kMessages, kSaved, kCount };
  static constexpr std::size_t kWays = static_cast<std::size_t>(ReductionWay::kCount);

  void add(Which which) { bump(values_[static_cast<std::size_t>(which)]); }
  void add_broadcast(Route route, bool blocking) {
    constexpr Which kBlocking[] = {Which::kEager, Which::kBulk, Which::kHosts, Which::kSaved,
                                   Which::kSaved};
    constexpr Which kOthers[] = {Which::kIbcastEager, Which::kIbcastBulk, Which::kIbcastHosts,
                                 Which::kIbcastTree, Which::kIbcastSaved};
    add((blocking ? kBlocking : kOthers)[static_cast<std::size_t>(route)]);
  }
  void add_reduction(Collective collective, Route route) {
    const ReductionWay way = route == Route::kNetwork    ? ReductionWay::kNetwork
                             : route == Route::kHosts    ? ReductionWay::kHosts
                             : route == Route::kMessages ? ReductionWay::kMessages
                                                         : ReductionWay::kSaved;
    bump(reductions_[static_cast<std::size_t>(collective)][static_cast<std::size_t>(way)]);
  }
  void add_fallback(Cause cause) { bump(fallbacks_[static_cast<std::size_t>(cause)]); }

  // The numbers themselves, which tools read while they grow: by Which, by Cause, and by Collective
  // and ReductionWay; the first row of these stays 0.
  std::array<unsigned long long, kKinds>& values() { return values_; }
  std::array<unsigned long long, kCauses>& fallbacks() { return fallbacks_; }
  std::array<std::array<unsigned long long, kWays>, kCollectives>& reductions() {
    return reductions_;
  }

 private:
  static void bump(unsigned long long& value) { __atomic_fetch_add(&value, 1, __ATOMIC_RELAXED); }

  std::array<unsigned long long, kKinds> values_{};
  std::array<unsigned long long, kCauses> fallbacks_{};
  std::array<std::array<unsigned long long, kWays>, kCollectives> reductions_{};
};

// This process's.
inline Counters& counters() {
  static Counters instance;
  return instance;
}

}  // namespace cepheus::coll
