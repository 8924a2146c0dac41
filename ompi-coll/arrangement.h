// Finds out who shares a host: at once where every rank knows it of all others, else rank 0 gathers
// the ranks' identities and tells them to all. Never blocks: progress() until it says so.
//
// A host is what cepheus-run or coll_cepheus_ranks_per_host says; else, in mode "require", a NIC's
// address; else a machine, because ranks that share its memory pass data through that faster than
// any NIC can.
#pragma once

#include <string>
#include <vector>

#include "ompi-coll/messages.h"
#include "ompi-coll/placement.h"
#include "ompi-coll/team.h"

namespace cepheus::coll {

class Arrangement {
 public:
  explicit Arrangement(const Team& team) : team_(team) {}

  // True when placement() is known.
  bool progress();
  const Placement& placement() const { return placement_; }
  // Before the first progress(), once: true if it needs no message. Every rank knows it then.
  bool is_known_to_all();

 private:
  enum class State : std::uint8_t { kNew, kGathering, kTelling, kKnown, kFailed, kDone };
  void start();
  int tell();

  const Team& team_;
  State state_ = State::kNew;
  std::vector<Identity> identities_;
  Messages messages_;
  Placement placement_;
};

}  // namespace cepheus::coll
