// A sender group as one of its receivers sees it, without I/O: the host's answers to INSTALL and
// REMOVE (docs/protocol.md, "Sender groups").
//
// Idempotent: each copy of a message, over any path, is answered with its share, and acted upon
// once. The first process that names the receiver with its token is its sender. The receiver gave
// that token to its sender only, and obeys that process alone.
#pragma once

#include "controller/registration.h"
#include "wire/sender_group.h"

namespace cepheus::mrp {

class ReceiverMembership {
 public:
  // kNamed: it waits for the path MTU.
  enum class State : std::uint8_t {
    kWaiting,
    kNamed,
    kConnecting,
    kConnected,
    kActive,
    kFailed,
    kGone
  };

  // The owner's task after on_message.
  enum class Task : std::uint8_t {
    kNone,
    kNamed,    // a sender has named this receiver
    kConnect,  // bring the QP to RTS towards (sender(), virtual_qpn()), both PSNs start_psn(), with
               // path_mtu(), then call connected()
    kActivated,  // all receivers are there, data may come; it may have come before
    kEnded,      // the sender, or the fabric in its name, ended the group: see reject_reason()
  };

  // An INSTALL younger than `sender_lives` shows that the sender is alive, even if a switch has
  // reported its end.
  // `path_mtu`: of its port; 0: the sender does not learn it.
  explicit ReceiverMembership(MrpMember self, Duration sender_lives = times::kSenderLives,
                              std::uint16_t path_mtu = 0)
      : self_(self), sender_lives_(sender_lives), path_mtu_(path_mtu) {}

  Task on_message(Instant now, const wire::SenderGroupMessage& message, Outbox& out);
  // The QP is up, or not: answers INSTALLED or REJECT(member failed).
  void connected(bool ok, Outbox& out);
  // The owner's side failed: sends that to the sender, now and after each INSTALL.
  void leave(Outbox& out);

  State state() const { return state_; }
  // kFailed: why the sender gave up, kNone if it was a time-out. kGone: kNone if it has done with the
  // group.
  wire::MrpReject reject_reason() const { return reject_; }
  // The number of INSTALLs of its own group. While it grows the sender is alive.
  std::uint64_t installs_received() const { return installs_received_; }
  bool is_connected() const { return state_ == State::kConnected || state_ == State::kActive; }
  // A sender has named it, and its queue pair is not being connected, which may take long.
  bool takes_part() const { return state_ == State::kNamed || is_connected(); }
  const MrpMember& self() const { return self_; }
  Ipv4 sender() const { return group_.sender(); }
  wire::Qpn virtual_qpn() const { return group_.virtual_qpn; }
  wire::Psn start_psn() const { return group_.start; }
  std::uint16_t path_mtu() const { return group_.path_mtu; }
  std::uint16_t epoch() const { return group_.header.epoch; }

 private:
  void set_state(State state, const char* reason);
  bool is_named_by(const wire::SenderGroupMessage& message) const;
  bool is_of_this_group(const wire::SenderGroupMessage& message) const;
  Task on_install(Instant now, const wire::SenderGroupMessage& message, Outbox& out);
  void note(const wire::SenderGroupMessage& install);
  void answer_measuring(wire::SenderGroupMessage message, Outbox& out) const;
  Task on_remove(Instant now, const wire::SenderGroupMessage& message, Outbox& out);
  void refuse(const wire::SenderGroupMessage& requested, wire::MrpReject reason, Outbox& out) const;

  MrpMember self_;
  Duration sender_lives_;
  std::uint16_t path_mtu_;
  State state_ = State::kWaiting;
  const char* state_reason_ = "new";  // of the last change of state
  wire::MrpReject reject_ = wire::MrpReject::kNone;
  wire::SenderGroupMessage group_;  // its newest INSTALL, with the share that connected() answers
  std::uint64_t installs_received_ = 0;
  Instant last_message_at_{};
};

// The host's answer to the sender of `requested` for `named`, which it does not have, or not any
// more. Empty: nothing.
std::optional<wire::SenderGroupMessage> answer_of_nobody(const wire::SenderGroupMessage& requested,
                                                         const MrpMember& named);

}  // namespace cepheus::mrp
