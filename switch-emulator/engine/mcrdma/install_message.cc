#include "switch-emulator/engine/mcrdma/install_message.h"

namespace cepheus::fabric {

using wire::MrpMember;
using wire::MrpType;
using wire::SenderGroupMessage;

namespace {

// What the queues before the branch's links take, and those before this switch. The half that stays
// free is for feedback, unicasts and other groups.
std::uint32_t window_of(const SwitchConfig& config, const SenderGroup& group,
                        const Branch& branch) {
  if (!config.rules.announced_window) return group.installed.window;
  std::uint32_t least = wire::least_known(group.installed.window, (config.data_slots + 1) / 2);
  for (const PortId port : branch.ports) {
    const PortConfig& out = config.ports[port.value()];
    least = wire::least_known(least, (out.most_waiting() + 1) / 2);
    least = wire::least_known(least, out.ring_window);
  }
  return least;
}

}  // namespace

SenderGroupMessage message_to_sender(const SenderGroupMessage& installed, MrpType type) {
  SenderGroupMessage m;
  m.header = installed.header;
  m.header.type = type;
  m.control_port = installed.control_port;
  m.virtual_qpn = installed.virtual_qpn;
  m.sender_qpn = installed.sender_qpn;
  return m;
}

SenderGroupMessage part_of(const SwitchConfig& config, const SenderGroup& group,
                           const Branch& branch, MrpType type) {
  SenderGroupMessage part = message_to_sender(group.installed, type);
  part.window = window_of(config, group, branch);
  // Flags of INSTALL have no meaning in a REMOVE that this switch sends instead.
  if (type != group.installed.header.type) part.header.flags = 0;
  part.start = group.installed.start;
  part.path_mtu = group.installed.path_mtu;
  part.addressed = group.rule.empty() ? group.installed.addressed
                                      : group.installed.receivers[branch.receivers.front()].host;
  for (const std::uint8_t i : branch.receivers) {
    part.add(group.installed.receivers[i]);
    if (group.rewrites(branch)) continue;  // later packets are for the receiver itself
    for (const SenderGroupMessage::Region& r : group.installed.region_list()) {
      if (r.receiver == i) part.add_region(part.receiver_count - 1, r.region);
    }
  }
  return part;
}

bool is_well_formed(const SenderGroupMessage& message) {
  const auto can_be = [&](const MrpMember& m) {
    return !m.host.is_unset() && m.host != message.sender() && m.qpn.value() != 0 &&
           !wire::is_sender_group(m.qpn);
  };
  return message.receiver_count > 0 && std::ranges::all_of(message.list(), can_be);
}

bool is_one_group(const SenderGroupMessage& a, const SenderGroupMessage& b) {
  return a.header.instance == b.header.instance && a.sender_qpn == b.sender_qpn;
}

void add_host(std::vector<MrpMember>& to, const MrpMember& member) {
  if (std::ranges::find(to, member.host, &MrpMember::host) == to.end()) to.push_back(member);
}

bool measures(const SenderGroupMessage& message) {
  return message.header.type == MrpType::kInstall &&
         (message.header.flags & SenderGroupMessage::kMeasures) != 0;
}

void narrow_path(const SwitchConfig& config, const Routes& routes, SenderGroupMessage& install) {
  const auto narrow = [&](Ipv4 host) {
    const auto route = routes.find(host);
    if (!route) return;
    for (const PortId port : routes.ports(*route)) {
      install.path_mtu = wire::least_known(install.path_mtu, config.ports[port.value()].path_mtu());
    }
  };
  narrow(install.sender());
  for (const wire::MrpMember& receiver : install.list()) narrow(receiver.host);
}

const wire::MrpMember* find_behind_small_port(const SwitchConfig& config, const Routes& routes,
                                              const SenderGroupMessage& install, PortId ingress) {
  if (!config.rules.least_path_mtu || measures(install)) return nullptr;
  for (const wire::MrpMember& receiver : install.list()) {
    const auto route = routes.find(receiver.host);
    if (!route) continue;
    for (const PortId port : routes.ports(*route)) {
      const bool is_way = routes.serves(port, *route) && port != ingress;
      if (is_way && config.ports[port.value()].path_mtu() < install.path_mtu) return &receiver;
    }
  }
  return nullptr;
}

}  // namespace cepheus::fabric
