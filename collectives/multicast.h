// A team's broadcasts by multicast: its session, the next session when multicast is tried again
// after a failure, and the members' messages about both.
//
// All calls are under the communicator's guard and never block.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/core/backoff.h"
#include "collectives/group/control_link.h"
#include "collectives/group/tear_down.h"
#include "collectives/units/call.h"

namespace cepheus::coll {

class BulkOperation;
class EagerOperation;
class Operation;
class Session;
class TeamLane;

class Multicast {
 public:
  // reason() of a broadcast by multicast, for `cepheusctl explain`.
  static constexpr char kMulticast[] = "multicast";
  // `called` runs when another member may need something of this one: look_after() soon. It runs
  // inside the host's progress.
  Multicast(const Team& team, std::function<void()> called);
  ~Multicast();

  // --- One broadcast after the other, in the same order on all members. True if one of this number
  // of bytes is copied through posted buffers.
  static bool is_small(size_t bytes);
  static size_t unit_bytes(bool small);
  // The units of the next one: the number of the first.
  uint64_t take_units(size_t bytes);
  // Prepares the lane of the broadcast with units from `first` on. Code::kDone: by multicast;
  // Code::kNotServed: not by it, on all members alike; Code::kPending: call again. reason(): for
  // either. Else an error, and of all later ones: a message of a set-up has failed at this member.
  Code prepare(uint64_t first, bool small);
  // It has failed so, and others may wait for this member in an earlier broadcast. Any thread.
  bool has_ended() const { return is_ended_.load(); }
  const std::string& reason() const { return reason_; }
  // The reason of the session's failure.
  const std::string& failure() const;
  // The operation of a unit, until its finish().
  Operation& begin(const Call& call, bool small);
  // Advances a unit.
  Code run(Operation& operation);
  // Units until multicast is tried again, should this member have to decide on that now.
  uint64_t retry_after() const { return retry_after(backoff_); }

  // --- Beside them. Background work while the program makes other calls of MPI: others may need
  // this member's data.
  void look_after();
  // The group has failed, and look_after() is needed soon again.
  bool is_draining() const;
  // Groups were set up: all members agree on that, so they are torn down together. Any thread, also
  // without the guard.
  bool has_groups() const { return has_groups_.load(); }
  // True when all members have all data, this one has all their messages, and its groups are
  // destroyed; at once without groups.
  bool tear_down();
  void detach();  // local: cancels receives on the communicator

 private:
  struct Held {
    int from;
    ControlMessage message;
  };

  bool switched_over_before(uint64_t unit) const;
  Code set_up(TeamLane& lane, uint64_t first);
  Code try_again(uint64_t unit);
  Code end_broadcasts(const TeamLane& lane);
  uint64_t retry_after(Backoff backoff) const;
  void receive();
  void take(const Actions& actions);
  void serve_stored(int to, uint64_t unit);
  void announce(const ControlMessage& message);
  void report(const TeamLane& lane, bool again);

  const Team& team_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Session> next_session_;  // while multicast is tried again
  ControlLink link_;
  std::vector<Held> held_;                 // of a session that this member has not entered yet
  std::unique_ptr<EagerOperation> eager_;  // kept for all units, as is the next one
  std::unique_ptr<BulkOperation> bulk_;
  Operation* current_ = nullptr;
  Actions actions_;
  Messages repairs_;
  std::string reason_;

  uint64_t broadcasts_ = 0;
  uint64_t next_unit_ = 0;                       // counted alike by all members
  Backoff backoff_;                              // between sessions
  Backoff set_up_backoff_;                       // between attempts at a session's lanes
  std::chrono::steady_clock::time_point since_;  // of the rate of units
  uint64_t since_unit_ = 0;
  bool reported_ = false;
  std::atomic<bool> is_ended_{
      false};  // the others may multicast, and this member not, or the reverse

  std::atomic<bool> has_groups_{false};  // once true, for ever
  TearDown tear_down_;
};

}  // namespace cepheus::coll
