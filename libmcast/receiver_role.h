// A member of a sender group that receives: answers its sender, and finds out when that is gone.
#pragma once

#include "controller/receiver_membership.h"
#include "libmcast/role.h"
#include "libmcast/watchdog.h"

namespace cepheus::mcast {

class Group;

class ReceiverRole final : public Role {
 public:
  // `patience`: for how long no INSTALL may come.
  ReceiverRole(Group& group, const mrp::MrpMember& self, wire::Duration patience)
      : group_(group), membership_(self), silence_(patience) {}

  // Not named by a sender yet.
  bool is_free() const { return membership_.state() == mrp::ReceiverMembership::State::kWaiting; }

  bool is_sender() const override { return false; }
  void on_message(wire::Instant now, wire::Ipv4 from, const wire::SenderGroupMessage& message,
                  mrp::Outbox& out) override;
  void on_timer(wire::Instant, mrp::Outbox&) override {}
  wire::Instant deadline() const override { return wire::kNever; }
  void ask(wire::Instant, mrp::Outbox&) override {}  // it sends nothing
  void look(wire::Instant now) override;
  void tell_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) override;
  wire::Ipv4 sender() const override { return membership_.sender(); }
  wire::Ipv4 peer() const override { return membership_.sender(); }
  std::uint16_t epoch() const override { return membership_.epoch(); }
  std::size_t member_count() const override { return 0; }

 private:
  void connect(mrp::Outbox& out);

  Group& group_;
  mrp::ReceiverMembership membership_;
  Watchdog silence_;
};

}  // namespace cepheus::mcast
