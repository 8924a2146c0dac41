// A reduction group of simulated hosts, registered like a live one. Their programs only move bytes.
// In a gather each sends its block among zeros, and compares the result.
#pragma once

#include <memory>
#include <vector>

#include "fabric-sim/experiments/testbed.h"
#include "libmcast/engine/reduction.h"
#include "wire/mrp.h"

namespace cepheus::sim {

class ReductionTeam {
 public:
  // The same as in libmcast's lanes.
  static constexpr wire::MrpReduction kUsual{wire::MrpReduction::kValues,
                                             wire::MrpReduction::kMostUnit, 64};
  // ... with floating_sums.
  static constexpr wire::MrpReduction kOrdered{wire::MrpReduction::kOrdered, kUsual.unit,
                                               kUsual.window};
  // Units of an operation in libmcast (MCAST_REDUCTION_PACKETS).
  static constexpr std::size_t kMostUnits = 8;

  // `hosts`: indices in the network; the first host leads. Waits on virtual time until the group is
  // active; throws std::runtime_error if that fails.
  ReductionTeam(Testbed& testbed, const std::vector<std::size_t>& hosts,
                const wire::MrpReduction& reduction = kUsual);
  ~ReductionTeam();

  // All members begin at once, each with a block of this many bytes; 0: a barrier. Returns the time
  // until the last one has the result. Throws std::runtime_error if a result is wrong.
  // Preconditions: the result has at most kMostUnits; NICs move its payload.
  wire::Duration gather(std::size_t block);

  // The same for a sum of vectors with `bytes`: of double in ordered groups, otherwise of int64. It
  // is a long operation, straight from and to the testbed's memory, as in libmcast. No value of it is
  // compared. Preconditions: the testbed has this much memory; NICs have lengths only.
  //
  // The last member begins `late` after the others, and the time is counted from then.
  wire::Duration sum(std::uint64_t bytes, wire::Duration late = {});

 private:
  class Member;
  friend class Member;

  wire::Duration run(wire::Duration late);

  Testbed& testbed_;
  const wire::MrpReduction reduction_;
  std::vector<std::unique_ptr<Member>> members_;
  // Of the operation under way.
  mcast::ReductionUnits::Kind kind_;
  std::uint64_t bytes_ = 0;
  std::size_t block_ = 0;  // of a gather; 0: no values are made or compared
  bool is_long_ = false;
  std::uint64_t operations_ = 0;  // begun
  std::size_t waiting_ = 0;       // members without its result
  Instant ended_at_{};
};

// Registers a group of these hosts, and measures its second operation.
wire::Duration time_of_gather(Testbed& testbed, const std::vector<std::size_t>& hosts,
                              std::size_t block);

}  // namespace cepheus::sim
