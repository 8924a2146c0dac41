// The groups of one team from their set-up until they break: lanes, what arrived, the
// agreement about the break, and what is salvaged then.
//
// Everything here runs under the communicator's guard.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "ompi-coll/agreement.h"
#include "ompi-coll/inbox.h"
#include "ompi-coll/team_lane.h"

namespace cepheus::coll {

class Session {
 public:
  // `generation`: sessions of a communicator, counted alike by all ranks. `again`: not the first.
  Session(const Team& team, uint32_t generation, bool again);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  uint32_t generation() const { return generation_; }
  TeamLane& eager() { return *lanes_.front(); }
  // What carries large broadcasts of member `root`: the one lane of all, or with sender groups one
  // of its own, made at its first, on all members alike. Null: enough other roots have one.
  TeamLane* bulk(int root);
  Inbox& inbox() { return inbox_; }
  Agreement& agreement() { return agreement_; }

  // Notices that a group has failed; once it has, stops all lanes, waits until all that had
  // arrived is handed over, keeps it, and destroys the groups.
  void watch(Actions& out);
  // Looks only for a failure; cheaper.
  void look();
  // Nothing that this rank sent may be missing anywhere, as far as it can know.
  bool is_drained() const;
  // Local. What had arrived and was not asked for is gone, too.
  void destroy_groups();
  // Small broadcasts of this rank that not all have, after the break: header and data, or null.
  const std::vector<std::byte>* stored(uint64_t unit) const;

 private:
  struct Stored {
    uint64_t unit;
    std::vector<std::byte> message;
  };
  template <typename F>
  void each_ready(F f) const;
  void look_at(const TeamLane& lane);
  void stop();
  void salvage(Actions& out);

  const Team& team_;
  const uint32_t generation_;
  Inbox inbox_;  // outlives the lane that fills it
  const bool again_;
  std::vector<std::unique_ptr<TeamLane>> lanes_;  // the eager one, then those of large broadcasts
  Agreement agreement_;
  std::vector<Stored> stored_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point give_up_;
};

}  // namespace cepheus::coll
