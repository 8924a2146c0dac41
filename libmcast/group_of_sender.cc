// A group that is a sender group's: what its role makes of it, and what it brings to that.
#include <algorithm>

#include "libmcast/group.h"
#include "libmcast/sender_role.h"

namespace cepheus::mcast {

Expected<void> Group::lead_as_sender(wire::Instant now, mrp::SenderConfig config,
                                     std::span<const mrp::MrpMember> members,
                                     std::span<const wire::MrpRegion::Record> regions,
                                     mrp::Outbox& out) {
  if (auto checked = check_lists(members); !checked) return checked;
  std::vector<mrp::MrpMember> receivers(members.begin(), members.end());
  std::erase(receivers, member());
  std::vector<wire::SenderGroupMessage::Region> theirs;
  for (const wire::MrpRegion::Record& each : regions) {
    if (each.host == member().host) continue;
    const auto owner = std::ranges::find(receivers, each.host, &mrp::MrpMember::host);
    if (owner == receivers.end()) {
      return mcast::fail(MCAST_ERR_INVALID, "a region of " + each.host.to_string() +
                                                ", which is no member: name only members'");
    }
    theirs.push_back({static_cast<std::uint8_t>(owner - receivers.begin()), each.region});
  }
  config.qpn = member().qpn;
  config.start =
      wire::group_start_psn(config.host, static_cast<std::uint16_t>(config.virtual_qpn.value()));
  auto role = std::make_unique<SenderRole>(*this, config);
  if (auto started = role->start(now, receivers, theirs, out); !started) return started;
  role_ = std::move(role);
  state_ = MCAST_GROUP_REGISTERING;
  return {};
}

void Group::on_message(wire::Instant now, wire::Ipv4 from, const wire::SenderGroupMessage& message,
                       mrp::Outbox& out) {
  if (role_) role_->on_message(now, from, message, out);
}

bool Group::connect(const RemoteEnd& remote) {
  const auto connected = pair_->connect(remote, timers_);
  if (!connected) {
    fail(connected.error().status, MCAST_CAUSE_REGISTRATION, connected.error().text);
    return false;
  }
  if (state_ == MCAST_GROUP_WAITING) state_ = MCAST_GROUP_REGISTERING;
  return true;
}

Expected<std::vector<wire::MrpRegion::Record>> Group::named_regions() const {
  if (!role_) {
    return mcast::fail(MCAST_ERR_INVALID,
                       "only a sender group's regions are brought to its sender: others' switches "
                       "are told of them");
  }
  std::vector<wire::MrpRegion::Record> list;
  for (const wire::MrpRegion& each : regions_.list()) list.push_back({member().host, each});
  return list;
}

}  // namespace cepheus::mcast
