// The end of one run: the violated invariant, if any, and numbers of events, which distinguish a
// rich scenario from a dull one.
#pragma once

#include <cstdint>
#include <optional>

#include "fabric-sim/checked/findings.h"
#include "fabric-sim/core/network.h"

namespace cepheus::sim {

struct Outcome {
  std::optional<Finding> failure;  // none: all invariants held
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  wire::Duration virtual_time{0};
  std::uint64_t turns = 0;
  std::uint64_t gated = 0;  // first packets of a newcomer held or answered RNR
  std::uint64_t time_outs = 0;
  std::uint64_t naks = 0;      // sequence NAKs at senders
  std::uint64_t rnr_naks = 0;  // RNR NAKs at senders
  std::uint64_t evicted = 0;
  std::uint64_t spoofed = 0;         // packets dropped for their source address
  std::uint64_t writes = 0;          // multicast WRITEs that completed
  std::uint64_t writes_refused = 0;  // packets of WRITEs beyond a region
  std::uint64_t marked = 0;          // copies that queues marked
  std::uint64_t pauses = 0;          // sent by switches, without repeats
  std::uint64_t jumped = 0;          // packets that were skipped instead of simulated
  std::uint64_t gave_up = 0;         // members that got no answer to their questions
  std::uint64_t reduced = 0;         // units of reductions that all behind a switch contributed to

  // Adds up the numbers of several runs.
  Outcome& operator+=(const Outcome& other);
  // Adds the counters of all switches, cables and NICs.
  void add(Network& network);
};

}  // namespace cepheus::sim
