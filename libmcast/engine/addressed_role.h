// The common part of leader and member of a group with an address: it publishes this member's
// regions to the switches. A member that waits for data asks whether the group still exists
// (docs/protocol.md, "Multicast WRITE", "Members that die or stall").
#pragma once

#include "libmcast/engine/presence.h"
#include "libmcast/engine/role.h"

namespace cepheus::mcast {

class AddressedRole : public Role {
 public:
  wire::Ipv4 address() const override { return mcst_id(); }
  wire::Ipv4 peer() const override { return mcst_id(); }
  void on_message(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                  GroupOutput& out) override;
  void look(wire::Instant now, GroupOutput& out) override;
  Expected<void> check_may_name_regions() const override;
  mcast_status_t regions_status() const override;

 protected:
  explicit AddressedRole(GroupState& group);

  virtual void take_in(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                       GroupOutput& out) = 0;
  // The switch knows all regions that this member has published.
  virtual void on_regions_in_force(wire::Instant now, mrp::Outbox& out) = 0;
  // This member waits for data: asks the host `requested()` whether the group still exists.
  virtual void request_presence(mrp::Outbox& out) const = 0;
  virtual std::string requested() const = 0;
  void on_answer() { presence_.on_answer(); }  // it has answered

  GroupState& group_;

 private:
  Presence presence_;
};

}  // namespace cepheus::mcast
