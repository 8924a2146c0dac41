// Registration of one group as its leader sees it, without I/O (docs/protocol.md, "Registration";
// paper III-C).
//
//     start() -> REGISTER ... CONFIRM from every member ... CONNECT ... CONFIRM from every member
//     ... ACTIVATE ... CONFIRM from every member -> kActive
//
// CONFIRMs of REGISTER bring what each way can take. The least path MTU of all goes to the members
// with CONNECT. The leader repeats each step, for the missing members only, until `timeout` (for all
// steps) or `silence`. The outcome is all or nothing: after a REJECT or a time-out the leader
// unregisters the group, and error() names the refusing or missing members. Switches merge CONFIRMs:
// one names many members. GIVE_UP needs no table: it reaches members to which no switch has named the
// group. While the group is active, REFRESH keeps the switches' tables from ageing.
//
// In operation (docs/protocol.md, "Members that die or stall"): a switch's REPORT, a member's
// COMPLAIN or send_request() start QUERYs. The leader repeats them while a member lags. If the
// lagging members are alive, it sends ALIVE to the members that complained. A member is lost if its
// port is down, or if it lagged and was silent for evict_after. The leader evicts it and sends
// ALIVE, too, or the group fails (lost_member). If a source has gone before all members have its
// last message, the group fails: kFailed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/backoff.h"
#include "controller/lagging_members.h"
#include "controller/member_list.h"
#include "wire/mrp.h"
#include "wire/result.h"
#include "wire/sender_group.h"
#include "wire/times.h"
#include "wire/types.h"

namespace cepheus::mrp {

using wire::Ipv4;
using wire::McstId;
using wire::MrpMember;
using wire::MrpMessage;

// Evicted members, until their switches have confirmed it
// (docs/protocol.md, "Members that die or stall").
class Evictions {
 public:
  void add(Instant now, const MrpMember& gone, Pace pace) {
    list_.push_back(gone);
    repeat_ = Backoff(pace, now);
  }
  void on_confirmed(std::span<const MrpMember> confirmed) {
    for (const MrpMember& member : confirmed) std::erase(list_, member);
    if (list_.empty()) stop();
  }
  // The members for the next EVICT; none once the repeats are used up.
  std::span<const MrpMember> take_due(Instant now) {
    if (repeat_.is_used_up()) list_.clear();
    if (list_.empty()) {
      stop();
    } else {
      repeat_.sent(now);
    }
    return list_;
  }
  void stop() { repeat_.stop(); }
  Instant deadline() const { return repeat_.deadline(); }

 private:
  std::vector<MrpMember> list_;
  Backoff repeat_;
};

// The caller owns it and sends each message to its McstID. Messages of sender groups go to their
// destination() (sender_registration.h). Then the caller clears it and passes it again.
struct Outbox {
  std::vector<MrpMessage> messages;
  std::vector<wire::SenderGroupMessage> of_sender_groups;
  void clear() {
    messages.clear();
    of_sender_groups.clear();
  }
  // Clears, and gives back more memory than an idle group needs: a large group's REGISTER takes
  // megabytes.
  void free() {
    clear();
    if (messages.capacity() > kKept) messages = std::vector<MrpMessage>();
    if (of_sender_groups.capacity() > kKept) {
      of_sender_groups = std::vector<wire::SenderGroupMessage>();
    }
  }

 private:
  static constexpr std::size_t kKept = 2;
};

// The effect of a lost member on its group.
enum class LostMember : std::uint8_t {
  kEvicted,    // the switch acknowledges for it, and the group continues
  kEndsGroup,  // a group without evictions: it fails on all members, and no message completes that
               // the lost member lacks
};
// "was lost: its port is down", for an error text.
std::string loss_text(bool port_is_down, Duration evict_after);

struct RegistrationConfig {
  Ipv4 host;                   // the leader's own address
  std::uint32_t instance = 0;  // this leader process
  std::uint16_t path_mtu = 0;  // of its own port, bytes; 0: no limit is known
  LostMember lost_member = LostMember::kEvicted;
  // A reduction group. It ends with a lost member (LostMember::kEndsGroup).
  std::optional<wire::MrpReduction> reduction;
  Duration timeout = times::kRegister;
  // Ends the registration earlier, if no CONFIRM comes for this time. Unset: only
  // `timeout` counts.
  std::optional<Duration> silence;
  Repeats repeats;
  Duration refresh_pending = times::kRefreshPending;   // until the group is active
  Duration request_again = times::kRequestAgain;       // between two QUERYs while a member lags
  Duration evict_after = times::kEvict;                // of silence; a port that is down is enough
  Duration source_grace = times::kSourceGrace;         // for answers to a source that is gone
  Duration asker_time_limit = times::kAskerTimeLimit;  // members that wait COMPLAIN more often
};

class Registration {
 public:
  enum class State : std::uint8_t {
    kIdle,
    kRegistering,
    kConnecting,
    kActivating,
    kActive,
    kFailed,
    kUnregistering,
    kGone
  };

  Registration(const RegistrationConfig& config, McstId id, std::uint16_t epoch);

  // `members` includes the leader, and its confirmation is given here. kInvalid: an empty list, a
  // host twice, the leader missing or alone, more members than the protocol can number.
  wire::Result<void> start(Instant now, std::span<const MrpMember> members, Outbox& out);
  // Before the last member confirms CONNECT: the group is not activated until release(), since
  // something of the leader's own is not ready. If it is not until the time-out, `why` is the error's
  // text.
  void hold(const char* why) { held_ = why; }
  void release(Instant now, Outbox& out);
  // CONFIRM, REJECT, REPORT and COMPLAIN of this group, `from` a member or a switch; others are
  // ignored.
  void on_message(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out);
  // Asks the switches for lagging members, because the owner's own sends do not end. kActive only.
  void send_request(Instant now, Outbox& out);
  // Asks its own switch whether it is there: the owner waits for data. kActive only.
  void look(Outbox& out) const;
  // The time of this group's last message from the fabric.
  Instant last_message_at() const { return last_message_at_; }
  // The time at which lagging members were last seen alive, or one was evicted. Members that asked
  // receive ALIVE.
  Instant alive_at() const { return alive_at_; }
  // Members evicted since the group became active.
  std::size_t evicted_count() const { return evicted_; }
  // The owner's own side of the group failed: sends UNREGISTER(member failed) to all members. No
  // effect if the registration has ended already.
  void give_up(Instant now, std::string why, Outbox& out);
  // Unregisters the group in any state. A member that has destroyed its side does not answer, so
  // UNREGISTER is repeated. The state is kGone once all members have confirmed, or the repeats are
  // used up.
  void unregister(Instant now, Outbox& out);
  void on_timer(Instant now, Outbox& out);
  Instant deadline() const;

  State state() const { return state_; }
  const wire::Error& error() const { return error_; }        // kFailed
  wire::MrpReject reject_reason() const { return reject_; }  // kNone if the failure was a time-out
  McstId id() const { return id_; }
  std::uint16_t epoch() const { return epoch_; }
  // Members that have not confirmed the current step.
  std::vector<MrpMember> missing() const { return members_.missing(); }
  std::size_t missing_count() const { return members_.missing_count(); }
  std::size_t member_count() const { return members_.size(); }
  // What the group's ways can take, as far as members and switches have answered. The path MTU is
  // final from kConnecting on.
  const wire::MrpPath& path() const { return path_; }
  // The path in ACTIVATE and in all its repeats: all members begin with the same one.
  const wire::MrpPath& first_path() const { return first_path_; }
  // Of an active reduction group: the switches combine values in pairs by the members' addresses.
  bool is_flat() const { return is_flat_; }
  // Of a reduction group: addresses ascend in the order of the members that start() got.
  bool ascends() const { return config_.reduction && config_.reduction->ascends; }
  // The members' answers about Membership::host_sync; they must agree.
  bool host_sync() const { return host_sync_.value_or(false); }
  void check_consistent() const;

 private:
  void set_state(State state, const char* reason);
  bool is_setting_up() const;
  std::optional<wire::MrpType> step() const;
  void begin_step(Instant now, State state, const char* reason, Outbox& out);
  void set_give_up(Instant last_message);
  void keep_pending(Instant now, Outbox& out);
  void send_list(wire::MrpType type, std::span<const MrpMember> list, Outbox& out) const;
  void request_again(wire::MrpType type, Outbox& out) const;
  void send_to_group(wire::MrpType type, Outbox& out) const;
  void send_unregister(Instant now, Outbox& out);
  bool agrees_on_method(const wire::MrpHeader& confirm);
  void on_confirm(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out);
  void on_reject(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out);
  void on_member_failed(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out);
  void go_on(Instant now, Outbox& out);
  void fail(Instant now, wire::Error error, wire::MrpReject reject, Outbox& out);
  void take_path(Instant now, const wire::MrpPath& path, Outbox& out);
  void spread_path(Instant now, Outbox& out);
  void query(Instant now, Outbox& out);
  void on_complaint(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out);
  void on_presence_query(Instant now, const MrpMember& asker, Outbox& out);
  void on_report(Instant now, const MrpMessage& message, Outbox& out);
  void judge(Instant now, const MrpMember& reported, Outbox& out);
  void reassure(Instant now, Outbox& out);
  void lose(Instant now, std::size_t member, bool port_is_down, Outbox& out);
  void evict(Instant now, std::size_t member, Outbox& out);
  MrpMessage message(wire::MrpType type) const;

  RegistrationConfig config_;
  McstId id_;
  std::uint16_t epoch_;
  State state_ = State::kIdle;
  const char* state_reason_ = "new";  // of the last change of state
  MemberList members_;
  Instant give_up_ = wire::kNever;
  Instant latest_ = wire::kNever;  // the bound of give_up_ for any answers
  Backoff repeat_;                 // of the messages of the present state
  Instant refreshed_at_{};         // before the group was active
  const char* held_ = nullptr;     // why the group is not activated
  bool knows_window_ = false;      // some switch has sent one
  bool is_flat_ = false;
  wire::MrpPath path_, spread_;    // the switches' last number, and the one that members have
  wire::MrpPath first_path_;       // in ACTIVATE
  std::optional<bool> host_sync_;  // known with the first CONFIRM
  LaggingMembers suspects_;        // silent, or down
  LaggingMembers late_;            // they answer
  struct Asker {
    Ipv4 host;
    Instant requested;
  };
  std::vector<Asker> askers_;
  Instant requested_at_{}, queried_at_{}, alive_at_{}, last_message_at_{};
  Evictions evictions_;
  Instant next_request_ = wire::kNever;
  std::size_t evicted_ = 0;
  wire::Error error_{};
  wire::MrpReject reject_ = wire::MrpReject::kNone;
};

}  // namespace cepheus::mrp
