// The members of a communicator agree, unit by unit, on the path of their broadcasts after a
// failure of the group. Pure: actions say which messages to send and which memory to serve.
//
// A *unit* is one multicast operation: a small broadcast, or up to 64 MiB of a large one. All
// members count units alike. The root of a unit alone decides its path:
//
//   no failure known at the root    multicast
//   a failure known at the root     SWITCH_OVER(unit) to all: the saved function serves this unit
//                                   and all later ones
//
// Two roots never decide differently: a member gets past the unit of a SWITCH_OVER only by that
// message, so the root of a later unit knows it. Earlier units were sent by multicast, perhaps not
// to all. A member with a failed group takes the data that has arrived, then asks the unit's root
// for the rest:
//
//   LACK(unit, bytes it has)        -> the rest, point to point; or a SWITCH_OVER answers it
//
// The root of a small unit has usually returned. It keeps data until all have acknowledged it, and
// serves LACK from its progress. The root of a large unit is still inside. It sends FAILED(unit) to
// all, and returns when each member has sent HAVE(unit), or LACK(unit) and has got the data.
// Members learn of a failure by FAILED, LACK or SWITCH_OVER, or detect it themselves.
//
// A root without a copy of the unit answers LACK by GONE: the member's call ends in an error. That
// happens only if the fabric acknowledged data and then lost it.
//
// After such a loss the group shows no failure, and a member would wait for ever. So a member that
// has waited for long asks the unit's root repeatedly. Without an answer it asks more and more
// rarely, because questions queue at a root that computes outside MPI.
//
//   WAITING(unit)                   -> DELIVERED(unit), once every member's NIC has acknowledged
//                                      the unit; FAILED if the group has failed at the root
//
// After two such answers the member takes the unit for lost, and the group for failed. The member
// has sent the second question after the first answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cepheus::coll {

enum class Cause : std::uint32_t { kWork, kWatchdog, kDevice, kLeader, kLost, kCount };
const char* name(Cause cause);  // "watchdog"

inline constexpr std::uint64_t kNoUnit = ~std::uint64_t{0};

// Travels as it is: all ranks run the same build.
struct ControlMessage {
  enum class Kind : std::uint32_t {
    kFailed = 1,
    kSwitchOver,
    kLack,
    kHave,
    kGone,
    kWaiting,
    kDelivered,
    kLast,  // this and the next one are TearDown's
    kLastReceived
  };
  Kind kind;
  std::uint32_t generation;  // of the groups; counted alike by all
  std::uint64_t
      unit;  // kFailed: that must be answered for, or kNoUnit; kSwitchOver: the first unit
  std::uint64_t
      value;  // kLack: bytes it has; kSwitchOver: the unit at which to try multicast again
  Cause cause;
  char reason[180];  // of the failure, naming the rank that detected it
};

struct Action {
  // kSendDelivered: deliver() if every member's NIC has acknowledged the unit.
  enum class Kind : std::uint8_t { kSend, kServeStored, kServeCurrent, kSendDelivered };
  static constexpr int kEveryone = -1;
  Kind kind;
  int to;
  ControlMessage message;  // kSend; of the others unit and value
};
using Actions = std::vector<Action>;

class Agreement {
 public:
  enum class Path : std::uint8_t {
    kMulticast,
    kDrain,   // the group has failed: wait for drained()
    kRepair,  // member: take it from the inbox, or lack(); root: until is_answered()
    kSaved,
    kGone,  // member: the root has no copy of the unit
  };
  using Time = std::chrono::steady_clock::time_point;
  // A waiting member sends WAITING to its root after kRequest, and again after kRequestAgain.
  // Without an answer that time doubles up to kRequestSeldom. After an answer it is kRequestAgain.
  static constexpr std::chrono::milliseconds kRequest{4000}, kRequestAgain{2000},
      kRequestSeldom{64000};

  Agreement(int rank, int size, std::uint32_t generation)
      : rank_(rank), size_(size), generation_(generation) {}

  // --- The member's own calls. Units only grow.
  // `retry_after`: if this rank decides on a switch-over, multicast is tried again after this
  // number of units.
  void enter(std::uint64_t unit, int root, std::uint64_t retry_after, Actions& out);
  void mark_sent() { sent_ = true; }  // root: something of the unit was sent by multicast
  void leave(std::uint64_t next_unit, Actions& out);

  // --- Events.
  void fail(Cause cause, const std::string& reason);  // found here
  // The group is stopped, and the inbox has all arrived data. `unacknowledged`: some members may
  // lack data that this rank has sent as a root.
  void drained(bool unacknowledged, Actions& out);
  // All members know that the group has failed, and have all units before `unit`. The saved
  // function serves this one and all later ones until `retry_at`.
  void give_up(std::uint64_t unit, std::uint64_t retry_at, const std::string& reason);
  // Member, on path kRepair: it has the first `bytes` of the current unit. Asks once.
  void lack(std::uint64_t bytes, Actions& out);
  // Root: it has no copy of `unit`, which member `to` lacks.
  void gone(int to, std::uint64_t unit, Actions& out) const;
  // Root: every member's NIC has acknowledged `unit`, which member `to` waits for.
  void deliver(int to, std::uint64_t unit, Actions& out) const;
  // The time goes by; call now and then.
  void watch(Time now, Actions& out);
  void receive(int from, const ControlMessage& message, Actions& out);

  // --- Questions.
  Path path() const;  // of the current unit
  bool has_failed() const { return stage_ != Stage::kWhole; }
  bool is_drained() const { return stage_ == Stage::kDrained; }
  Cause cause() const { return cause_; }
  const std::string& reason() const { return reason_; }
  std::optional<std::uint64_t> switch_over() const { return switch_over_; }
  std::uint64_t retry_at() const { return retry_at_; }  // if there is a switch-over
  void set_retry_at(std::uint64_t unit) { retry_at_ = unit; }
  // Root on path kRepair: every member has sent HAVE or LACK.
  bool is_answered() const { return unanswered_ == 0; }

 private:
  // Of this member's groups. kFailed: they stop, and data may still arrive.
  enum class Stage : std::uint8_t { kWhole, kFailed, kDrained };

  ControlMessage message(ControlMessage::Kind kind, std::uint64_t unit, std::uint64_t value) const;
  void send(int to, const ControlMessage& message, Actions& out) const;
  void decide_switch_over(Actions& out);
  void take_lack(int from, const ControlMessage& message, Actions& out);
  void take_answer(int from);
  void take_waiting(int from, std::uint64_t unit, Actions& out);
  void take_delivered(int from, std::uint64_t unit);
  bool is_root() const { return inside_ && root_ == rank_; }
  bool may_decide() const;

  const int rank_, size_;
  const std::uint32_t generation_;

  std::uint64_t position_ =
      0;  // the current unit, or the next one: all before it are complete here
  bool inside_ = false;
  int root_ = 0;
  bool sent_ = false;
  bool requested_root_ = false;  // LACK of the current unit is out
  bool gone_ = false;            // the root's answer to it
  std::optional<Time>
      request_at_;  // WAITING of the current unit is due; else in request_in_ from now on
  std::chrono::milliseconds request_in_ = kRequest, request_again_in_ = kRequestAgain;
  bool requested_since_ = false;  // WAITING was sent after the last answer
  int delivered_ = 0;             // answers that count
  std::uint64_t retry_after_ = 0;

  Stage stage_ = Stage::kWhole;
  Cause cause_ = Cause::kWork;
  std::string reason_;
  std::optional<std::uint64_t> switch_over_;
  std::uint64_t retry_at_ = kNoUnit;

  struct Requested {  // FAILED(unit) that is to be answered when the unit is complete here
    std::uint64_t unit;
    int by;
  };
  std::vector<Requested>
      requested_;  // roots of several non-blocking units may ask at the same time
  struct Deferred {
    int from;
    ControlMessage message;
  };
  std::vector<Deferred> deferred_;  // LACKs that came before drained()
  std::vector<bool> answered_;
  int unanswered_ = 0;
};

}  // namespace cepheus::coll
