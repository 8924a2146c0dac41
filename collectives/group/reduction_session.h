// A team's reductions in the network: its group, the next group after a failure, and the members'
// agreement about both (core/rootless_agreement.h). It does all I/O for the agreement.
//
// One call has its turn at a time. A unit of the agreement is one operation of the group: a whole gather,
// or a part of a reduction of values, of which kWindow are under way. All results arrive in memory of
// the session, and are copied to the call's. So they may lie in the place of its values, and the last
// ones are kept for members that lack them.
//
// All calls are under the communicator's guard and never block.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/core/backoff.h"
#include "collectives/core/rootless_agreement.h"
#include "collectives/group/call_units.h"
#include "collectives/group/control_link.h"
#include "collectives/group/kept_results.h"
#include "collectives/group/reduction_group.h"

namespace cepheus::coll {

class ReductionSession {
 public:
  // `called` runs when another member may need something of this one: look_after() soon. It runs
  // inside the host's progress.
  // `adds_floats`: its groups shall add floating-point numbers, too.
  ReductionSession(const Team& team, std::function<void()> called, bool adds_floats);

  // --- One call after the other, in the same order on all members.
  // Its memory stays until it is over.
  void begin(const CallUnits& call);
  // Code::kDone: in the network; result() has a gather's. Code::kNotServed: not there, on all members
  // alike, for reason(), or only in part: see served_bytes(). Code::kPending: call again. Else an error:
  // a member can't be reached.
  Code progress();
  const std::byte* result() { return results_.result(first_unit_); }
  // The ways of sums, as all members find alike: they set groups up at the same calls.
  const GroupSums& sums() const { return sums_; }
  // Behind Code::kNotServed: this part of a reduction of values has its result, on all members alike.
  std::size_t served_bytes() const { return served_bytes_; }
  const std::string& reason() const { return reason_; }
  // Another member has sent this one the result of the last gather, point to point.
  bool is_repaired() const { return is_repaired_; }
  // A gather that is served by messages instead can't end any more: a member has given up. Of a
  // session with groups all members know behind tear_down().
  bool has_given_up() const { return agreement_.is_ended() || has_ended_; }
  // This member's messages to `member`, or from it, fail.
  void lose(int member);
  // This member can't go on, for `reason`: gathers that are not complete end in errors on all.
  // `is_refusal`: it takes no part in a gather that confirms the ranks' agreement.
  void give_up(const std::string& reason, bool is_refusal);
  // A member has given up so, as this one knows.
  bool is_refused() const { return agreement_.is_refused(); }
  // A gather ends in an error. Logs the reason once, because it is the reason of all further ones.
  Code fail_call();

  // This member learns from now on if another one gives up. False: it has given up itself, because MPI
  // refuses it messages.
  bool listen();

  // --- Beside them. Background work: others may need this member's results.
  void look_after();
  // The group has failed, and look_after() is needed soon again.
  bool is_draining() const { return agreement_.stage() == RootlessAgreement::Stage::kStopping; }
  // A group was set up, at some member at least, or may have been: a member has given up in a set-up. All
  // members learn that, so they end together. Any thread.
  bool has_groups() const { return has_groups_.load(); }
  // No gather follows. True when no member needs this one any more, it has all their messages, and
  // its group is destroyed; at once without groups.
  bool tear_down();
  void detach();  // local: cancels receives on the communicator

 private:
  // The end of the communicator. Each member reports to member 0 that it is closed; member 0 lets all
  // go; each confirms that behind all its other messages.
  enum class End : std::uint8_t { kOpen, kClosed, kReleased };

  static constexpr std::size_t kWindow = ReductionGroup::kMostUnderWay;
  // Units under way. Without long reductions there is one.
  static std::uint32_t window();
  bool fits() const { return units_.fits(most_bytes_); }
  std::size_t unit_bytes(std::uint64_t unit) const {
    return units_.bytes(unit - first_unit_, most_bytes_);
  }
  std::byte* prepare_result(std::uint64_t unit) {
    return results_.prepare(agreement_.generation(), unit, unit_bytes(unit));
  }
  void look_for_pairs();
  bool start(std::uint64_t unit);
  void take_result();
  Code set_up();
  void renew();
  void refuse(const TeamLane& lane);
  void give_up_alone(const std::string& what);
  void contribute();
  std::uint64_t retry_after(Backoff backoff) const;

  void receive();
  bool take_end(const RootlessMessage& message);
  void look_at_group();
  void take_results();
  void copy();
  void act();
  void stop_group();
  void serve(const RootlessOutput::Serve& serve);
  void take_served();
  void end_with_all();
  void send_end(int to, RootlessMessage::Kind kind);

  const Team& team_;
  GroupSums sums_;
  // A host may complete a receive without its notice, if another thread looks at it at that moment.
  static constexpr unsigned kLooksWithoutNotice = 16;
  std::atomic<bool> has_message_{true};
  unsigned looks_ = 0;
  RootlessLink link_;
  RootlessAgreement agreement_;
  RootlessOutput out_;
  std::size_t most_bytes_ = 0;  // of the group's results, or the last group's

  CallUnits units_{};
  std::uint64_t call_ = 0;
  std::uint64_t first_unit_ = 0;   // of the call, in this group
  std::uint64_t contributed_ = 0;  // units of this group
  std::size_t served_bytes_ = 0;
  KeptResults results_;
  std::unique_ptr<ReductionGroup> group_;  // writes results_, so it is destroyed first
  std::string reason_;                     // of the gather
  std::string too_long_;                   // the reason of gathers that do not fit
  std::string why_not_;                    // the network does not serve

  Messages copies_;
  bool is_copying_ = false;
  bool is_repaired_ = false;
  Messages serves_;
  int serving_ = 0;

  Backoff backoff_;
  std::chrono::steady_clock::time_point since_;  // of the rate of calls
  std::uint64_t since_call_ = 0;
  bool was_refused_ = false;
  bool is_failure_logged_ = false;

  std::atomic<bool> has_groups_{false};  // once true, for ever
  End end_ = End::kOpen;
  bool is_released_ = false;
  // By a message. If that one's sender had no groups, it had sent no record, and no set-up is complete.
  bool is_ended_elsewhere_ = false;
  bool has_ended_ = false;     // as member 0 knows, which has let this one go
  int closed_ = 0, gone_ = 0;  // members, as member 0 knows
};

}  // namespace cepheus::coll
