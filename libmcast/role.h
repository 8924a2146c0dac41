// A member's part in a sender group, as its sender or as a receiver (docs/protocol.md, "Sender
// groups"): every member begins as a receiver, and who leads becomes the sender.
//
// Under the context's state lock. A role tells its group what becomes of it, and makes no callback.
#pragma once

#include <memory>

#include "controller/sender_registration.h"
#include "libmcast/failure.h"

namespace cepheus::mcast {

class Role {
 public:
  virtual ~Role() = default;

  virtual bool is_sender() const = 0;
  virtual void on_message(wire::Instant now, wire::Ipv4 from,
                          const wire::SenderGroupMessage& message, mrp::Outbox& out) = 0;
  virtual void on_timer(wire::Instant now, mrp::Outbox& out) = 0;
  virtual wire::Instant deadline() const = 0;
  // This member's sends do not end.
  virtual void ask(wire::Instant now, mrp::Outbox& out) = 0;
  // After all that has arrived was taken in: is the other side still there?
  virtual void look(wire::Instant now) = 0;
  // The group has failed here because of `reason`.
  virtual void tell_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) = 0;
  // The group's sender; unset while that is not known.
  virtual wire::Ipv4 sender() const = 0;
  // Whom this member speaks to: the alias, or the sender.
  virtual wire::Ipv4 peer() const = 0;
  virtual std::uint16_t epoch() const = 0;
  virtual std::size_t member_count() const = 0;  // as the sender knows it; 0 at receivers
  // The sender's half, to be removed after the group itself is gone; null of receivers.
  virtual std::unique_ptr<mrp::SenderRegistration> take_registration() { return nullptr; }
};

}  // namespace cepheus::mcast
