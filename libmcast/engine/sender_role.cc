// Registration goes first, because the virtual QPN may still be another process's at the switches.
// Then the queue pair connects to the alias with the group's first PSN, and the group is active.
#include "libmcast/engine/sender_role.h"

#include <algorithm>
#include <vector>

#include "wire/situation.h"

namespace cepheus::mcast {

namespace {

mrp::SenderConfig of_its_queue_pair(mrp::SenderConfig config, const GroupState& group) {
  config.qpn = group.member().qpn;
  config.path_mtu = group.settings().path_mtu;
  config.start = wire::sender_group_start_psn(config.host, config.virtual_qpn);
  return config;
}

}  // namespace

SenderRole::SenderRole(GroupState& group, const mrp::SenderConfig& config)
    : SenderGroupRole(group),
      registration_(std::make_unique<mrp::SenderRegistration>(of_its_queue_pair(config, group))) {}

wire::Ipv4 SenderRole::address() const { return group_.member().host; }

Expected<void> SenderRole::start(wire::Instant now, std::span<const mrp::MrpMember> members,
                                 std::span<const wire::MrpRegion::Record> regions,
                                 mrp::Outbox& out) {
  std::vector<mrp::MrpMember> receivers(members.begin(), members.end());
  std::erase(receivers, group_.member());
  std::vector<wire::SenderGroupMessage::Region> theirs;
  for (const wire::MrpRegion::Record& each : regions) {
    if (each.host == address()) continue;
    const auto owner = std::ranges::find(receivers, each.host, &mrp::MrpMember::host);
    if (owner == receivers.end()) {
      return fail(MCAST_ERR_INVALID, "a region of " + each.host.to_string() +
                                         ", which is not a member: name regions of members only");
    }
    theirs.push_back({static_cast<std::uint8_t>(owner - receivers.begin()), each.region});
  }
  if (const auto started = registration_->start(now, receivers, theirs, out); !started) {
    return tl::unexpected(failure_of(started.error()));
  }
  return {};
}

void SenderRole::on_sender_group_message(wire::Instant now, wire::Ipv4 from,
                                         const wire::SenderGroupMessage& message,
                                         GroupOutput& out) {
  if (!registration_->is_of_this_group(message)) return;
  registration_->on_message(now, from, message, out);
  follow(out);
}

void SenderRole::on_timer(wire::Instant now, GroupOutput& out) {
  if (registration_->deadline() > now) return;
  registration_->on_timer(now, out);
  follow(out);
}

void SenderRole::follow(GroupOutput& out) {
  using State = mrp::SenderRegistration::State;
  const mrp::SenderRegistration& r = *registration_;
  if (alive_at_ != r.alive_at()) {
    alive_at_ = r.alive_at();
    group_.watchdog().reset();
  }
  if (r.state() == State::kFailed) {
    if (group_.state() == MCAST_GROUP_ACTIVE)
      CEPHEUS_RARE_SITUATION("an active sender group fails at its sender");
    group_.fail_with(r.error(), r.reject_reason(), out);
  } else if (r.is_active() && group_.state() == MCAST_GROUP_REGISTERING &&
             !group_.is_connecting()) {
    // Not before: the virtual QPN may have been another process's.
    group_.connect({r.alias(), r.virtual_qpn(), r.start_psn(), r.path_mtu()}, out);
  }
}

void SenderRole::on_connected(wire::Instant, bool ok, GroupOutput& out) {
  if (ok) group_.activate(false, {0, registration_->window()}, out);
}

void SenderRole::send_failure(wire::Instant now, const std::string& reason, mrp::Outbox& out) {
  registration_->give_up(now, reason, out);
}

}  // namespace cepheus::mcast
