// Registration of one group as a member sees it, without I/O: the host's answers to REGISTER,
// ACTIVATE, UNREGISTER.
//
// Idempotent: each copy of a message is answered, and acted upon once. The first leader that names
// the member is its leader. A second leader is refused, and so is another group or epoch of the
// first one, since a queue pair serves one registration. A sender without the member's token is a
// stranger: it gets no answer, and can neither begin nor end a registration. A member that has
// answered a leader obeys that leader.
#pragma once

#include "controller/registration.h"

namespace cepheus::mrp {

class Membership {
 public:
  enum class State : std::uint8_t {
    kWaiting,
    kRegistered,  // it takes part, and waits for the path MTU
    kConnecting,
    kConnected,
    kActive,
    kFailed,
    kGone
  };

  // The owner's task after on_message.
  enum class Task : std::uint8_t {
    kNone,
    kRegistered,  // a leader has named this member
    kConnect,    // bring the QP to RTS towards id(), start PSN group_start_psn(id(), epoch()), with
                 // the path MTU of path(), then call connected()
    kActivated,  // data may flow
    kRenewed,    // path() has changed
    kDissolved,  // the leader unregistered the group or gave its registration up, see
                 // reject_reason()
    kWait,       // members that delay this member's sends are alive, or one was evicted; answers
                 // complain()
    kStands,     // the leader still has the group; answers send_request()
  };

  // `path_mtu`: of its port, bytes; 0: the leader does not learn it. `reduces`: it takes part in a
  // reduction group, and in no other kind.
  explicit Membership(MrpMember self, std::uint16_t path_mtu = 0, bool reduces = false)
      : self_(self), path_mtu_(path_mtu), reduces_(reduces) {}

  // `from` is the leader (the source of the datagram), or in REJECT this host's own switch. A
  // REGISTER is ignored that does not name this member and its token, as is a GIVE_UP before that.
  Task on_message(Instant now, Ipv4 from, const MrpMessage& message, Outbox& out);
  // The owner leads this group itself: other leaders' REGISTERs are refused from now on. False if a
  // leader has it already.
  bool lead(McstId id, std::uint16_t epoch, std::uint32_t instance);
  // Tells the leader that this member's sends do not end.
  void complain(Outbox& out) const;
  // The owner waits for data: asks the leader whether the group still exists.
  void send_request(Outbox& out) const;
  // The owner's side failed: sends that to the leader until the leader answers.
  void leave(Instant now, Outbox& out);
  void on_timer(Instant now, Outbox& out);
  Instant deadline() const { return leave_.deadline(); }
  // The QP is up (or not): answers CONFIRM or REJECT(member failed).
  void connected(Instant now, bool ok, Outbox& out);

  State state() const { return state_; }
  // kFailed: why the leader gave up, kNone if it was a time-out. kGone: kEvicted if a member was
  // lost, this one or the source of a message.
  wire::MrpReject reject_reason() const { return reject_; }
  const MrpMember& self() const { return self_; }
  McstId id() const { return id_; }
  std::uint16_t epoch() const { return epoch_; }
  Ipv4 leader() const { return leader_; }
  // What the group's ways can take: the path MTU by CONNECT, the window by the leader's last message
  // about it.
  const wire::MrpPath& path() const { return path_; }
  // Of a reduction group, by REGISTER.
  const wire::MrpReduction& reduction() const { return reduction_; }
  // Of an active reduction group: the switches combine values in pairs by the members' addresses.
  bool is_flat() const { return is_flat_; }
  // The switches leave the PSNs at a change of the source to the hosts.
  bool host_sync() const { return host_sync_; }

 private:
  void set_state(State state, const char* reason);
  bool is_named_by(const MrpMessage& message) const;
  bool is_of_group(const wire::MrpHeader& header) const;
  bool is_of_this_group(Ipv4 from, const wire::MrpHeader& header) const;
  Task on_register(Ipv4 from, const MrpMessage& message, Outbox& out);
  Task on_give_up(Ipv4 from, const MrpMessage& message);
  Task end(const wire::MrpHeader& why, const char* reason);
  void answer(wire::MrpType type, std::uint16_t flags, Outbox& out) const;
  void confirm(wire::MrpType step, Outbox& out) const;
  Task on_connect(Ipv4 from, const MrpMessage& message, Outbox& out);
  void take_up(Ipv4 leader, const wire::MrpHeader& header);
  void fail(Instant now, const char* reason, Outbox& out);
  void send_left(Instant now, Outbox& out);
  void refuse(const wire::MrpHeader& requested, wire::MrpReject reason, Outbox& out) const;

  MrpMember self_;
  std::uint16_t path_mtu_;
  bool reduces_;
  wire::MrpReduction reduction_;
  State state_ = State::kWaiting;
  const char* state_reason_ = "new";  // of the last change of state
  wire::MrpReject reject_ = wire::MrpReject::kNone;
  McstId id_;
  std::uint16_t epoch_ = 0;
  std::uint32_t instance_ = 0;
  Ipv4 leader_;
  bool host_sync_ = false;
  bool is_flat_ = false;
  wire::MrpPath path_;
  Backoff leave_;
};

}  // namespace cepheus::mrp
