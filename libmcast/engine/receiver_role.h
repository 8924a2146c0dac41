// A member of a sender group that receives: answers its sender, and finds out when that is gone.
#pragma once

#include "controller/receiver_membership.h"
#include "libmcast/engine/sender_group_role.h"
#include "libmcast/engine/watchdog.h"

namespace cepheus::mcast {

class ReceiverRole final : public SenderGroupRole {
 public:
  explicit ReceiverRole(GroupState& group);

  bool is_leader() const override { return false; }
  // The sender's, unset while that is not known.
  wire::Ipv4 address() const override { return membership_.sender(); }
  wire::Ipv4 peer() const override { return membership_.sender(); }
  std::uint16_t epoch() const override { return membership_.epoch(); }
  void on_sender_group_message(wire::Instant now, wire::Ipv4 from,
                               const wire::SenderGroupMessage& message, GroupOutput& out) override;
  void on_timer(wire::Instant, GroupOutput&) override {}
  void on_connected(wire::Instant, bool ok, GroupOutput& out) override {
    membership_.connected(ok, out);
  }
  wire::Instant deadline() const override { return wire::kNever; }
  void send_request(wire::Instant, mrp::Outbox&) override {}  // it sends nothing
  void look(wire::Instant now, GroupOutput& out) override;
  void send_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) override;
  Expected<void> check_may_send() const override;

 private:
  mrp::ReceiverMembership membership_;
  Watchdog silence_;  // no INSTALL comes
};

}  // namespace cepheus::mcast
