// Registration does the protocol (controller/registration.h); this connects it to the group. A hold
// on it keeps ACTIVATE back until the leader's own queue pair is connected and its regions are in
// force. The leader is a member as well: Membership answers its own switch.
#include "libmcast/engine/leader_role.h"

#include <cassert>

namespace cepheus::mcast {

LeaderRole::LeaderRole(GroupState& group, const mrp::RegistrationConfig& config,
                       const mrp::McstAllocator::Lease& lease)
    : AddressedRole(group),
      registration_(std::make_unique<mrp::Registration>(config, lease.id, lease.epoch)),
      membership_(group.member()) {
  const bool free_to_lead = membership_.lead(lease.id, lease.epoch, config.instance);
  assert(free_to_lead);
  static_cast<void>(free_to_lead);
}

Expected<void> LeaderRole::start(wire::Instant now, std::span<const mrp::MrpMember> members,
                                 mrp::Outbox& out) {
  hold_or_release(now, out);  // others might send or write before
  if (const auto started = registration_->start(now, members, out); !started) {
    return tl::unexpected(failure_of(started.error()));
  }
  register_ = out.messages.back().header;
  return {};
}

void LeaderRole::take_in(wire::Instant now, wire::Ipv4 from, const wire::MrpMessage& message,
                         GroupOutput& out) {
  hold_or_release(now, out);  // regions may have been published since start()
  registration_->on_message(now, from, message, out);
  follow(out);
  if (message.header.type == wire::MrpType::kRegister) {
    membership_.on_message(now, from, message, out);
  }
}

void LeaderRole::on_regions_in_force(wire::Instant now, mrp::Outbox& out) {
  hold_or_release(now, out);
}

void LeaderRole::on_connected(wire::Instant now, bool ok, GroupOutput& out) {
  is_connected_ = ok;
  // All switches have the group's table by now. One that restarts is asked for a new one by REGISTER
  // alone, and would not know what was published before.
  if (ok) group_.regions().begin(now, register_, group_.member());
  hold_or_release(now, out);
}

void LeaderRole::hold_or_release(wire::Instant now, mrp::Outbox& out) {
  if (!is_connected_) {
    registration_->hold(
        "the leader's queue pair was not connected in time: raise register_timeout_ms");
  } else if (!group_.regions().is_in_force()) {
    registration_->hold(
        "the switch did not confirm the leader's memory regions: bring it to the same version, or "
        "publish no regions");
  } else {
    registration_->release(now, out);
  }
}

void LeaderRole::on_timer(wire::Instant now, GroupOutput& out) {
  if (registration_->deadline() > now) return;
  registration_->on_timer(now, out);
  follow(out);
}

void LeaderRole::follow(GroupOutput& out) {
  using State = mrp::Registration::State;
  const mrp::Registration& r = *registration_;
  if (alive_at_ != r.alive_at()) {
    alive_at_ = r.alive_at();
    group_.watchdog().reset();
  }
  if (last_message_at_ != r.last_message_at()) {
    last_message_at_ = r.last_message_at();
    on_answer();
  }
  if (r.state() == State::kConnecting) {
    if (group_.is_connecting() || is_connected_) return;
    RemoteEnd remote = group_end(r.id(), r.epoch(), r.path().mtu);
    if (const auto& reduction = group_.settings().reduction) remote.unit = reduction->unit;
    group_.connect(remote, out);
  } else if (r.state() == State::kFailed) {
    group_.fail_with(r.error(), r.reject_reason(), out);
  } else if (r.state() == State::kActive) {
    if (group_.state() == MCAST_GROUP_REGISTERING) {
      group_.activate(r.host_sync(), r.first_path(), out);
    }
    group_.work().renew(r.path().window);
  }
}

void LeaderRole::send_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) {
  registration_->give_up(now, reason, out);
}

}  // namespace cepheus::mcast
