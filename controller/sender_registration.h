// Registration of one sender group as its sender sees it, without I/O (docs/protocol.md, "Sender
// groups"; MC-RDMA III-A, IV-A).
//
//     start() -> INSTALL(measures) ... INSTALLED over every path from every receiver
//     -> INSTALL(path MTU) ... INSTALLED, the same -> kActive
//
// The first INSTALL brings the least path MTU of all receivers and ports on the way, and the second
// has receivers connect with it.
// Each INSTALL until then is an attempt of its own (MrpHeader::seq). The group is installed once
// the shares of one attempt's answers add up to the whole and every receiver has answered it. The
// sender repeats INSTALL until `timeout`. The outcome is all or nothing: after a REJECT or a
// time-out the sender removes the group, and error() names the refusing or missing receivers. While
// the group is active, the sender repeats INSTALL without answers, for restarted switches and for
// switches of a changed route.
//
// A newer epoch removes a receiver that is gone: kEvicting until all others have answered that
// epoch. Data continues meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "controller/lagging_members.h"
#include "controller/registration.h"
#include "controller/step_answers.h"
#include "wire/sender_group.h"
#include "wire/times.h"

namespace cepheus::mrp {

using wire::SenderGroupMessage;

// The destination of a host's message, at the registration port. A sender's message goes where its
// data goes, a receiver's to the sender.
Ipv4 destination(const SenderGroupMessage& message);

struct SenderConfig {
  Ipv4 host;                       // the sender's own address
  std::uint32_t instance = 0;      // this process
  std::uint16_t control_port = 0;  // where it listens
  wire::Qpn qpn;                   // its queue pair
  wire::Qpn virtual_qpn;           // no other group's of this host (controller/virtual_qpns.h)
  wire::Psn start;                 // of all queue pairs
  std::uint16_t path_mtu = 0;      // of its own port, bytes; 0: none is measured
  Duration timeout = times::kRegister;
  Repeats repeats;
  Duration request_again = times::kRequestAgain;  // between two QUERYs while a member lags
  Duration evict_after = times::kEvict;           // of silence; a port that is down is enough
  Duration asker_time_limit = times::kAskerTimeLimit;
  LostMember lost_receiver = LostMember::kEvicted;
};

class SenderRegistration {
 public:
  enum class State : std::uint8_t {
    kIdle,
    kMeasuring,
    kInstalling,
    kActive,
    kEvicting,
    kFailed,
    kRemoving,
    kGone
  };

  explicit SenderRegistration(const SenderConfig& config);

  // `receivers` with their control ports and tokens. The first is the alias, the destination of all
  // data. `regions` are the receivers' regions, for WRITEs. kInvalid: no or too many receivers, a
  // host twice or the sender's own, more regions than a datagram holds.
  wire::Result<void> start(Instant now, std::span<const MrpMember> receivers,
                           std::span<const SenderGroupMessage::Region> regions, Outbox& out);
  // INSTALLED, REJECT and REPORT of this group, `from` a receiver or a switch; others are ignored.
  void on_message(Instant now, Ipv4 from, const SenderGroupMessage& message, Outbox& out);
  // Asks the switch for lagging receivers, because the sender's sends do not end. While active
  // only.
  void send_request(Instant now, Outbox& out);
  // The time at which lagging receivers were last seen alive, or were removed.
  Instant alive_at() const { return alive_at_; }
  // The owner's own side failed: sends that to all receivers. No effect if the group has ended
  // already.
  void give_up(Instant now, std::string why, Outbox& out);
  // Ends the group in any state: REMOVE, repeated until all receivers have answered or the repeats
  // are used up. Then kGone.
  void remove(Instant now, Outbox& out);
  void on_timer(Instant now, Outbox& out);
  Instant deadline() const;

  State state() const { return state_; }
  bool is_active() const { return state_ == State::kActive || state_ == State::kEvicting; }
  const wire::Error& error() const { return error_; }        // kFailed
  wire::MrpReject reject_reason() const { return reject_; }  // kNone if the failure was a time-out
  // The remote end for the sender's queue pair, before its first send.
  Ipv4 alias() const { return group_.addressed; }
  wire::Qpn virtual_qpn() const { return group_.virtual_qpn; }
  wire::Psn start_psn() const { return group_.start; }
  std::uint16_t path_mtu() const { return group_.path_mtu; }
  std::uint16_t epoch() const { return group_.header.epoch; }
  // Packets that the sender may have under way, by the answers to INSTALL; 0: no limit is known.
  std::uint32_t window() const { return path_.window; }
  std::span<const MrpMember> receivers() const { return group_.list(); }  // the remaining ones
  // A datagram of this group: of the same sender, process and virtual QPN.
  bool is_of_this_group(const SenderGroupMessage& message) const;
  void check_consistent() const;

 private:
  void set_state(State state, const char* reason);
  bool is_setting_up() const { return state_ == State::kMeasuring || state_ == State::kInstalling; }
  void begin_step(Instant now, State state, const char* reason, Outbox& out);
  Pace pace() const;
  void send_attempt(Instant now, Outbox& out);
  SenderGroupMessage message(wire::MrpType type, std::uint16_t flags) const;
  void on_installed(Instant now, Ipv4 from, const SenderGroupMessage& answer, Outbox& out);
  void on_reject(Instant now, Ipv4 from, const SenderGroupMessage& message, Outbox& out);
  void on_report(Instant now, const SenderGroupMessage& report, Outbox& out);
  void go_on(Instant now, Outbox& out);
  void query(Instant now, Outbox& out);
  bool on_silence(Instant now, Ipv4 host, std::uint32_t received, Outbox& out);
  void lose(Instant now, std::size_t receiver, const std::string& how, Outbox& out);
  void evict(Instant now, std::size_t receiver, Outbox& out);
  void fail(Instant now, wire::Error error, wire::MrpReject reject, Outbox& out);
  void on_time_out(Instant now, Outbox& out);
  std::size_t find(Ipv4 host) const;  // receiver_count if it is none
  bool is_awaited(wire::MrpType type) const;

  SenderConfig config_;
  State state_ = State::kIdle;
  const char* state_reason_ = "new";  // of the last change of state
  SenderGroupMessage group_;  // the part of the group in every message, INSTALL's list and regions
  wire::MrpPath path_;
  StepAnswers answers_;  // of the current step
  std::uint16_t seq_ = 0;
  Instant give_up_ = wire::kNever;
  Backoff repeat_;  // of the messages of the present state
  Instant next_request_ = wire::kNever;
  LaggingMembers suspects_;  // silent, or down
  LaggingMembers late_;      // they answer, or the sender has not retransmitted to them
  Instant alive_at_{};
  wire::Error error_{};
  wire::MrpReject reject_ = wire::MrpReject::kNone;
};

}  // namespace cepheus::mrp
