// The groups of one team from their set-up until they fail: lanes, arrived messages, the agreement
// about the failure, and the drained data.
//
// All calls are under the communicator's guard.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/core/agreement.h"
#include "collectives/group/drain_time.h"
#include "collectives/group/inbox.h"
#include "collectives/group/team_lane.h"

namespace cepheus::coll {

class Session {
 public:
  // `generation`: sessions of a communicator, counted alike by all ranks. `again`: not the first.
  Session(const Team& team, uint32_t generation, bool again);
  ~Session();

  uint32_t generation() const { return generation_; }
  TeamLane& eager() { return eager_; }
  TeamLane& bulk() { return bulk_; }
  Inbox& inbox() { return inbox_; }
  Agreement& agreement() { return agreement_; }

  // Notices that a group has failed; once it has, stops all lanes, waits until all that had
  // arrived is handed over, keeps it, and destroys the groups.
  void watch(Actions& out);
  // Looks only for a failure; cheaper.
  void look();
  // As far as this rank knows, all its sent data has arrived everywhere.
  bool is_drained() const;
  // Local. Arrived messages that no call has taken are lost, too.
  void destroy_groups();
  // Small broadcasts of this rank that not all have, after the break: header and data, or null.
  const std::vector<std::byte>* stored(uint64_t unit) const;
  void note_eager_sent(uint64_t unit);
  // Every member's NIC has acknowledged `unit`, which this rank sent as its root and returned from.
  // Precondition: the groups are whole.
  bool is_delivered(uint64_t unit) const;

 private:
  struct Stored {
    uint64_t unit;
    std::vector<std::byte> message;
  };
  void stop();
  void end_drain(Actions& out);

  const Team& team_;
  const uint32_t generation_;
  Inbox inbox_;  // outlives the lane that fills it
  TeamLane eager_, bulk_;
  Agreement agreement_;
  std::vector<Stored> stored_;
  std::array<uint64_t, TeamLane::kMaxEagerDepth> recent_{};  // units of the last small sends
  uint64_t eager_sent_ = 0;
  bool stopping_ = false;
  DrainTime drain_time_;
};

}  // namespace cepheus::coll
