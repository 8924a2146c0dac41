// A sender group as one of its receivers sees it, without I/O: what a host answers to INSTALL and
// REMOVE (docs/protocol.md, "Sender groups").
//
// Idempotent: a message that comes twice, or over several paths, is answered each time with the share
// that it brought and acted upon once. Who names the receiver first with its token, which it gave to
// nobody but its sender, has it; from then on that process alone is heeded.
#pragma once

#include "controller/registration.h"
#include "wire/sender_group.h"

namespace cepheus::mrp {

class ReceiverMembership {
 public:
  enum class State : std::uint8_t { kWaiting, kConnecting, kConnected, kActive, kFailed, kGone };

  // What the owner must do after on_message.
  enum class Task : std::uint8_t {
    kNone,
    kConnect,  // bring the QP to RTS towards (sender(), virtual_qpn()), both PSNs start_psn(), then
               // call connected()
    kActivated,  // all receivers are there, data may come; it may have come before
    kEnded,      // the sender, or the fabric in its name, ended the group: see reject_reason()
  };

  explicit ReceiverMembership(MrpMember self) : self_(self) {}

  Task on_message(Instant now, const wire::SenderGroupMessage& message, Outbox& out);
  // The QP is up, or not: answers INSTALLED or REJECT(member failed).
  void connected(bool ok, Outbox& out);
  // The owner's side failed: tells the sender, now and whenever it says INSTALL.
  void leave(Outbox& out);

  State state() const { return state_; }
  const char* state_reason() const { return state_reason_; }
  // kFailed: why the sender gave up, kNone if it was a time-out. kGone: kNone if it has done with the
  // group.
  wire::MrpReject reject_reason() const { return reject_; }
  // INSTALLs of its own group so far: while they come it has not lost its sender.
  std::uint64_t installs_heard() const { return installs_heard_; }
  bool is_connected() const { return state_ == State::kConnected || state_ == State::kActive; }
  const MrpMember& self() const { return self_; }
  Ipv4 sender() const { return group_.sender(); }
  wire::Qpn virtual_qpn() const { return group_.virtual_qpn; }
  wire::Psn start_psn() const { return group_.start; }
  std::uint16_t epoch() const { return group_.header.epoch; }

 private:
  void set_state(State state, const char* reason);
  bool is_named_by(const wire::SenderGroupMessage& message) const;
  bool is_of_this_group(const wire::SenderGroupMessage& message) const;
  Task on_install(Instant now, const wire::SenderGroupMessage& message, Outbox& out);
  void note(const wire::SenderGroupMessage& install);
  Task on_remove(Instant now, const wire::SenderGroupMessage& message, Outbox& out);
  void refuse(const wire::SenderGroupMessage& asked, wire::MrpReject reason, Outbox& out) const;

  MrpMember self_;
  State state_ = State::kWaiting;
  const char* state_reason_ = "new";
  wire::MrpReject reject_ = wire::MrpReject::kNone;
  wire::SenderGroupMessage group_;  // its newest INSTALL, with the share that connected() answers
  std::uint64_t installs_heard_ = 0;
  Instant heard_at_{};
};

// What a host writes about `asked` to its sender: `type` with `flags`, from `self` alone.
wire::SenderGroupMessage answer_to(const wire::SenderGroupMessage& asked, wire::MrpType type,
                                   std::uint16_t flags, const MrpMember& self);

// ... for `named`, which it does not have, or not any more. Empty: nothing.
std::optional<wire::SenderGroupMessage> answer_of_nobody(const wire::SenderGroupMessage& asked,
                                                         const MrpMember& named);

}  // namespace cepheus::mrp
