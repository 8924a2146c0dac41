// The member that leads a group with an address: registers it, keeps it alive, and answers for it.
#pragma once

#include <span>
#include <utility>

#include "controller/mcst_allocator.h"
#include "controller/membership.h"
#include "libmcast/engine/addressed_role.h"

namespace cepheus::mcast {

class LeaderRole final : public AddressedRole {
 public:
  // The registration of `group` at the leased address, not started yet.
  LeaderRole(GroupState& group, const mrp::RegistrationConfig& config,
             const mrp::McstAllocator::Lease& lease);

  Expected<void> start(wire::Instant now, std::span<const mrp::MrpMember> members,
                       mrp::Outbox& out);

  bool is_leader() const override { return true; }
  // Callbacks of a group that is being destroyed may call this after its registration was taken.
  wire::McstId mcst_id() const override { return membership_.id(); }
  std::uint16_t epoch() const override { return membership_.epoch(); }
  std::size_t member_count() const override {
    return registration_ ? registration_->member_count() : 0;
  }
  std::size_t missing_count() const override {
    return registration_ ? registration_->missing_count() : 0;
  }
  Pairs pairs() const override {
    return registration_ ? Pairs{registration_->is_flat(), registration_->ascends()} : Pairs();
  }
  void on_timer(wire::Instant now, GroupOutput& out) override;
  wire::Instant deadline() const override { return registration_->deadline(); }
  void send_request(wire::Instant now, mrp::Outbox& out) override {
    registration_->send_request(now, out);
  }
  void send_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) override;
  void on_connected(wire::Instant now, bool ok, GroupOutput& out) override;
  void leave(wire::Instant now, mrp::Outbox& out) override { registration_->unregister(now, out); }
  bool has_left() const override {
    return registration_->state() == mrp::Registration::State::kGone;
  }
  Registrations take_registration() override { return {std::move(registration_), nullptr}; }

 private:
  void take_in(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
               GroupOutput& out) override;
  void on_regions_in_force(wire::Instant now, mrp::Outbox& out) override;
  void request_presence(mrp::Outbox& out) const override { registration_->look(out); }
  std::string requested() const override { return "the switch"; }
  void hold_or_release(wire::Instant now, mrp::Outbox& out);
  void follow(GroupOutput& out);

  std::unique_ptr<mrp::Registration> registration_;
  mrp::Membership membership_;                    // refuses other leaders
  wire::MrpHeader register_;                      // the header of its REGISTER
  bool is_connected_ = false;                     // its queue pair
  wire::Instant alive_at_{}, last_message_at_{};  // as the registration had them at the last look
};

}  // namespace cepheus::mcast
