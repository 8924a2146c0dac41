// The one member of a sender group that sends: registers it, and connects its queue pair to the alias
// once all receivers are there.
#pragma once

#include "libmcast/role.h"

namespace cepheus::mcast {

class Group;

class SenderRole final : public Role {
 public:
  // The registration of `group`, not started yet.
  SenderRole(Group& group, const mrp::SenderConfig& config);

  Expected<void> start(wire::Instant now, std::span<const mrp::MrpMember> receivers,
                       std::span<const wire::SenderGroupMessage::Region> regions, mrp::Outbox& out);

  bool is_sender() const override { return true; }
  void on_message(wire::Instant now, wire::Ipv4 from, const wire::SenderGroupMessage& message,
                  mrp::Outbox& out) override;
  void on_timer(wire::Instant now, mrp::Outbox& out) override;
  wire::Instant deadline() const override { return registration_->deadline(); }
  void ask(wire::Instant now, mrp::Outbox& out) override { registration_->ask(now, out); }
  void look(wire::Instant) override {}  // who sends waits for nobody
  void tell_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) override;
  wire::Ipv4 sender() const override { return host_; }
  wire::Ipv4 peer() const override { return registration_->alias(); }
  std::uint16_t epoch() const override { return registration_->epoch(); }
  std::size_t member_count() const override { return registration_->receivers().size() + 1; }
  std::unique_ptr<mrp::SenderRegistration> take_registration() override {
    return std::move(registration_);
  }

 private:
  void follow();

  Group& group_;
  const wire::Ipv4 host_;
  std::unique_ptr<mrp::SenderRegistration> registration_;
  wire::Instant alive_at_{};  // as it says, when it was last looked at
};

}  // namespace cepheus::mcast
