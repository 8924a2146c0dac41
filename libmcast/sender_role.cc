#include "libmcast/sender_role.h"

#include "libmcast/group.h"

namespace cepheus::mcast {

SenderRole::SenderRole(Group& group, const mrp::SenderConfig& config)
    : group_(group),
      host_(config.host),
      registration_(std::make_unique<mrp::SenderRegistration>(config)) {}

Expected<void> SenderRole::start(wire::Instant now, std::span<const mrp::MrpMember> receivers,
                                 std::span<const wire::SenderGroupMessage::Region> regions,
                                 mrp::Outbox& out) {
  if (const auto started = registration_->start(now, receivers, regions, out); !started) {
    return tl::unexpected(failure_of(started.error()));
  }
  return {};
}

void SenderRole::on_message(wire::Instant now, wire::Ipv4 from,
                            const wire::SenderGroupMessage& message, mrp::Outbox& out) {
  if (!registration_->is_of_this_group(message)) return;
  registration_->on_message(now, from, message, out);
  follow();
}

void SenderRole::on_timer(wire::Instant now, mrp::Outbox& out) {
  if (registration_->deadline() > now) return;
  registration_->on_timer(now, out);
  follow();
}

void SenderRole::follow() {
  using State = mrp::SenderRegistration::State;
  const mrp::SenderRegistration& r = *registration_;
  if (alive_at_ != r.alive_at()) {
    alive_at_ = r.alive_at();
    group_.calm();
  }
  if (r.state() == State::kFailed && group_.state() == MCAST_GROUP_ACTIVE) {
    group_.fail(MCAST_ERR_FABRIC, MCAST_CAUSE_LEADER, r.error().text);
  } else if (r.state() == State::kFailed) {
    const bool taken = r.reject_reason() == wire::MrpReject::kIdInUse;
    group_.fail(taken ? MCAST_ERR_ID_IN_USE : status_of(r.error().code), MCAST_CAUSE_REGISTRATION,
                r.error().text);
  } else if (r.is_active() && group_.state() == MCAST_GROUP_REGISTERING) {
    // Not before: the virtual QPN may have been another process's.
    if (group_.connect({r.alias(), r.virtual_qpn(), r.start_psn()})) group_.activate();
  }
}

void SenderRole::tell_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) {
  registration_->give_up(now, reason, out);
}

}  // namespace cepheus::mcast
