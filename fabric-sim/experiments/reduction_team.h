// A reduction group of simulated hosts. Their programs only move bytes: each sends its block among
// zeros, and compares the result. The group is registered like a live one.
#pragma once

#include <memory>
#include <vector>

#include "fabric-sim/experiments/testbed.h"
#include "wire/mrp.h"

namespace cepheus::sim {

class ReductionTeam {
 public:
  // The same as in libmcast's lanes.
  static constexpr wire::MrpReduction kUsual{wire::MrpReduction::kValues,
                                             wire::MrpReduction::kMostUnit, 64};
  // Units of an operation in libmcast (MCAST_REDUCTION_PACKETS).
  static constexpr std::size_t kMostUnits = 8;

  // `hosts`: indices in the network; the first host leads. Waits on virtual time until the group is
  // active; throws std::runtime_error if that fails. Precondition: the testbed has live NICs, because
  // results are compared.
  ReductionTeam(Testbed& testbed, const std::vector<std::size_t>& hosts);
  ~ReductionTeam();

  // All members begin at once, each with a block of this many bytes; 0: a barrier. Returns the time
  // until the last one has the result. Throws std::runtime_error if a result is wrong.
  // Precondition: the result has at most kMostUnits.
  wire::Duration gather(std::size_t block);

 private:
  class Member;
  friend class Member;

  Testbed& testbed_;
  std::vector<std::unique_ptr<Member>> members_;
  std::size_t block_ = 0;         // of the operation under way
  std::uint64_t operations_ = 0;  // begun
  std::size_t waiting_ = 0;       // members without its result
  Instant ended_at_{};
};

// Registers a group of these hosts, and measures its second operation.
wire::Duration time_of_gather(Testbed& testbed, const std::vector<std::size_t>& hosts,
                              std::size_t block);

}  // namespace cepheus::sim
