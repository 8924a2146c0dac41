// Registration of one group as a member sees it, without I/O: what a host answers to REGISTER, ACTIVATE, UNREGISTER.
#pragma once

#include "controller/registration.h"

namespace cepheus::mrp {

class Membership {
 public:
  enum class State : std::uint8_t { kWaiting, kConnecting, kConfirmed, kActive, kFailed, kGone };

  // What the owner must do after on_message.
  enum class Task : std::uint8_t {
    kNone,
    kConnect,     // bring the QP to RTS towards id(), start PSN group_start_psn(id(), epoch()), then call connected()
    kActivated,   // data may flow
    kDissolved,   // the leader unregistered the group
  };

  explicit Membership(MrpMember self) : self_(self) {}

  // `from` is the leader (the source of the datagram). Messages that do not name this member are ignored.
  Task on_message(Instant now, Ipv4 from, const MrpMessage& message, Actions& out);
  // The QP is up (or not): answers CONFIRM or REJECT(member failed).
  void connected(Instant now, bool ok, Actions& out);

  State state() const { return state_; }
  const MrpMember& self() const { return self_; }
  McstId id() const { return id_; }
  std::uint16_t epoch() const { return epoch_; }
  Ipv4 leader() const { return leader_; }

 private:
  void set_state(State state, const char* reason);
  void answer(wire::MrpType type, std::uint16_t flags, Actions& out) const;

  MrpMember self_;
  State state_ = State::kWaiting;
  McstId id_;
  std::uint16_t epoch_ = 0;
  std::uint32_t instance_ = 0;
  Ipv4 leader_;
};

}  // namespace cepheus::mrp
