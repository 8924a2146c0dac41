// A member of a group that another one leads, or will: answers its leader.
#pragma once

#include "controller/membership.h"
#include "libmcast/engine/addressed_role.h"

namespace cepheus::mcast {

class MemberRole final : public AddressedRole {
 public:
  explicit MemberRole(GroupState& group);

  bool is_leader() const override { return false; }
  wire::McstId mcst_id() const override { return membership_.id(); }
  std::uint16_t epoch() const override { return membership_.epoch(); }
  Pairs pairs() const override { return {membership_.is_flat(), membership_.reduction().ascends}; }
  void on_timer(wire::Instant now, GroupOutput& out) override;
  void on_connected(wire::Instant now, bool ok, GroupOutput& out) override;
  wire::Instant deadline() const override { return membership_.deadline(); }
  void send_request(wire::Instant, mrp::Outbox& out) override { membership_.complain(out); }
  void send_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) override;

 private:
  void take_in(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
               GroupOutput& out) override;
  void on_regions_in_force(wire::Instant now, mrp::Outbox& out) override;
  void request_presence(mrp::Outbox& out) const override { membership_.send_request(out); }
  std::string requested() const override {
    return "the leader " + membership_.leader().to_string();
  }
  Expected<void> check_reduction() const;
  void connect(wire::Instant now, const wire::MrpHeader& header, GroupOutput& out);

  mrp::Membership membership_;
  wire::MrpHeader connect_;  // the header of the leader's CONNECT
};

}  // namespace cepheus::mcast
