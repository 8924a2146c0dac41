// One lane of one team: a libmcast group of its members, set up at the first message that needs it.
// Member 0 leads it.
//
//   every member makes the group -> the leader gathers the members' names -> it registers the group
//   -> it sends the outcome to all
//
// A state machine that never blocks: call progress() until the state is kReady or kFailed, which is
// the same on all members, unless a message of the set-up fails (is_one_sided()). If another leader
// holds the McstID, all try again with fresh groups.
#pragma once

#include <mcast/mcast.h>
#include <mcast/query.h>
#include <mcast/reduce.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/core/agreement.h"
#include "collectives/group/messages.h"
#include "collectives/group/sum_order.h"
#include "collectives/group/transport.h"

namespace cepheus::coll {

// A member's name and settings, for the leader. Plain bytes: all ranks run the same build.
struct MemberRecord {
  int32_t status;        // mcast_status_t of making the group
  uint32_t fingerprint;  // of the parameters that all ranks must share
  int32_t lane;          // mcast_lane_t
  mcast_member_t member;
  char reason[160];
};
// The leader's message to all.
struct LaneOutcome {
  int32_t status;  // mcast_status_t; MCAST_ERR_ID_IN_USE: set up again
  uint32_t mcst_id;
  uint32_t epoch;
  uint64_t retry_after;  // units after which multicast is tried again; kNever
  uint64_t max_message;  // bytes of a reduction's result, at the leader
  SumOrder sums;         // of a group that has come up
  char reason[256];      // of a failure; else the reason why sums are not by rank
};

Cause cause_of(mcast_cause_t cause);

class TeamLane {
 public:
  enum class State : std::uint8_t {
    kUnused,
    kGathering,
    kRegistering,
    kAnnouncing,
    kReady,
    kFailed,
    kClosed  // it was ready, and is destroyed
  };

  // `again`: the fabric may serve now though it did not before.
  static constexpr unsigned kMaxEagerDepth = 64;  // buffers of an eager lane each way
  // A unit of 64 MiB in pieces of 64 packets of 4 KiB, each way: so a member that computes stops no
  // others, and a NIC that limits its packets by itself gets all of them.
  static constexpr unsigned kBulkDepth = 256;
  // Packets of reductions: one call's, or those of several parts of a long one. Its results come behind
  // its acknowledgements, as a rule.
  static constexpr unsigned kReductionWindow = MCAST_REDUCTION_PACKETS, kLongWindow = 64;
  TeamLane(const Team& team, mcast_lane_t kind, size_t max_eager, bool again)
      : team_(team), kind_(kind), max_eager_(max_eager), again_(again) {}
  ~TeamLane() { destroy(); }

  // The callback for arriving small messages. Set it before the first progress().
  void set_arrival(Channel::Arrival arrival, void* arg) {
    arrival_ = arrival;
    arrival_arg_ = arg;
  }

  // Of reductions: the group adds floating-point numbers, if its switches take it. Before start.
  void add_floats() { adds_floats_ = true; }
  // This member's session has failed, for `reason`: the lane fails on all members. Data of a group
  // that this member does not look after would be acknowledged and lost. Before start.
  void refuse(const std::string& reason) { refusal_ = reason; }
  // The leader: sent to all if the lane fails in a way that may pass, see `retry_after()`.
  void set_retry_after(uint64_t units) { retry_after_ = units; }
  static constexpr uint64_t kNever = ~uint64_t{0};
  // kFailed: the same on all members. kNever if only the user can remove the cause.
  uint64_t retry_after() const { return outcome_.retry_after; }
  // kFailed: from the unit `first` on it may be tried again.
  void set_retry_at(uint64_t first) { retry_at_ = first; }
  uint64_t retry_at() const { return retry_at_; }
  // kFailed -> kUnused, with fresh groups.
  void reset();

  // No mcast_status_t:
  static constexpr int32_t kRefused = -1000;
  static constexpr int32_t kNoOutcome = -1001;  // of a record: the member can't receive the outcome
  static constexpr int32_t kNoSums = -1002;     // set up again, without floating-point sums

  State progress();
  State state() const { return state_; }
  // kFailed: why, naming the rank or switch.
  const char* reason() const { return outcome_.reason; }
  // kReady, kFailed: a message of the set-up has failed at this member. Others may wait for it, or
  // have another state.
  bool is_one_sided() const { return failed_message_ != Code::kDone; }
  // kFailed: a member's session has failed.
  bool is_refused() const { return outcome_.status == kRefused; }
  std::string address() const;  // kReady: the group's
  // kReady: bytes of a message that the group's ways take well, alike on all members; 0: any number.
  size_t portion() const { return portion_; }
  // kReady: bytes of the longest message, alike on all members.
  size_t max_message() const { return max_message_; }
  // Of reductions: this member's device takes shorter messages than the leader's.
  bool takes_less() const { return takes_less_; }
  // kReady, of reductions: alike on all members; and the reason why they are not SumOrder::kRank.
  SumOrder sums() const { return outcome_.sums; }
  const char* why_not_by_rank() const { return outcome_.reason; }
  uint32_t epoch() const { return outcome_.epoch; }

  Channel& channel() const { return *channel_; }  // kReady
  // kReady: true if the group has failed in operation; why in `attr`.
  bool has_failed(mcast_group_attr_t& attr) const;
  // Takes this rank out of the group, also before the end of the set-up: others may send there
  // before this rank knows it.
  void stop(const char* reason);
  // Stopped, failed or without a group: all that had arrived has been handed over.
  bool is_drained() const;
  // This rank's sends that not every member has acknowledged.
  unsigned outstanding() const;
  mcast_group_h group() const { return channel_ != nullptr ? channel_->group() : nullptr; }
  // Local: the group and its channel are gone afterwards.
  void destroy();

 private:
  template <typename F>
  Code others(F f) const;
  bool is_of_reductions() const { return kind_ == MCAST_LANE_REDUCTION; }
  Tag set_up_tag() const { return is_of_reductions() ? Tag::kReductionSetUp : Tag::kSetUp; }
  Tag outcome_tag() const { return is_of_reductions() ? Tag::kReductionOutcome : Tag::kOutcome; }
  void make_group(MemberRecord& record);
  void start();
  void fail_with_record(Code rc);
  void fail_alone(Code rc);
  void fail(Code rc);
  void gathered();
  void registered(mcast_status_t status);
  void find_sums(const mcast_group_attr_t& attr);
  bool starts_again();
  void remember(mcast_status_t status, const mcast_group_attr_t& attr) const;
  bool is_lost() const { return own_.status == MCAST_OK && (channel_ == nullptr || stopped_); }
  void announce_lost();
  void announce(int32_t status, const std::string& reason);
  void announced(Code error);
  void finish();
  void set_state(State state) { state_ = state; }

  const Team& team_;
  mcast_lane_t kind_;
  size_t max_eager_;
  bool again_;
  bool adds_floats_ = false;
  std::string why_no_sums_;  // the leader's
  uint64_t retry_after_ = 0;
  uint64_t retry_at_ = kNever;
  Channel::Arrival arrival_ = nullptr;
  void* arrival_arg_ = nullptr;

  State state_ = State::kUnused;
  int attempts_ = 0;
  std::unique_ptr<Channel> channel_;
  bool stopped_ = false;
  Code failed_message_ = Code::kDone;  // the other members do not know of it
  std::string refusal_;
  MemberRecord own_{};
  std::vector<MemberRecord> records_;  // the leader's
  LaneOutcome outcome_{};
  size_t portion_ = 0, max_message_ = 0;
  bool takes_less_ = false;
  Clock::time_point began_;  // the registration
  Messages messages_;
  Messages record_;  // the send of this member's, behind the receive of the outcome
};

}  // namespace cepheus::coll
