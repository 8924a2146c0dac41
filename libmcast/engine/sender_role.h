// The one member of a sender group that sends: registers it, and connects its queue pair to the alias
// once all receivers are there.
#pragma once

#include <span>

#include "libmcast/engine/sender_group_role.h"

namespace cepheus::mcast {

class SenderRole final : public SenderGroupRole {
 public:
  // The registration of `group`, not started yet; `config` without the queue pair and its first PSN.
  SenderRole(GroupState& group, const mrp::SenderConfig& config);

  // `members` and their `regions`, the caller's own among them or not. INVALID: a region of a
  // stranger's.
  Expected<void> start(wire::Instant now, std::span<const mrp::MrpMember> members,
                       std::span<const wire::MrpRegion::Record> regions, mrp::Outbox& out);

  bool is_leader() const override { return true; }
  wire::Ipv4 address() const override;  // its own
  wire::Ipv4 peer() const override { return registration_ ? registration_->alias() : wire::Ipv4(); }
  // Callbacks of a group that is being destroyed may call this after its registration was taken.
  std::uint16_t epoch() const override { return registration_ ? registration_->epoch() : 0; }
  std::size_t member_count() const override {
    return registration_ ? registration_->receivers().size() + 1 : 0;
  }
  void on_sender_group_message(wire::Instant now, wire::Ipv4 from,
                               const wire::SenderGroupMessage& message, GroupOutput& out) override;
  void on_timer(wire::Instant now, GroupOutput& out) override;
  wire::Instant deadline() const override { return registration_->deadline(); }
  void on_connected(wire::Instant, bool ok, GroupOutput& out) override;
  void send_request(wire::Instant now, mrp::Outbox& out) override {
    registration_->send_request(now, out);
  }
  void look(wire::Instant, GroupOutput&) override {}  // a sender does not wait for data
  void send_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) override;
  void leave(wire::Instant now, mrp::Outbox& out) override { registration_->remove(now, out); }
  bool has_left() const override {
    return registration_->state() == mrp::SenderRegistration::State::kGone;
  }
  Registrations take_registration() override { return {nullptr, std::move(registration_)}; }

 private:
  void follow(GroupOutput& out);

  std::unique_ptr<mrp::SenderRegistration> registration_;
  wire::Instant alive_at_{};  // as the registration had it at the last look
};

}  // namespace cepheus::mcast
