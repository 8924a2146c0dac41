#include "switch-emulator/engine/mcrdma/branch_messages.h"

#include <algorithm>
#include <utility>

#include "switch-emulator/engine/mcrdma/install_message.h"
#include "switch-emulator/engine/registration/signed_datagram.h"

namespace cepheus::fabric {

using wire::MrpType;
using wire::SenderGroupMessage;

void BranchMessages::send(Call& call, const SenderGroup& group, MrpType type, std::uint64_t share,
                          const std::vector<Branch>* unless_as_before) {
  const bool by_each_port = config_.sender_groups == net::SenderGroups::kEverywhere;
  const bool measures_ways = type == MrpType::kInstall && measures(group.installed);
  const auto goes_once = [&](const Branch& branch) {
    return !measures_ways && (group.rewrites(branch) || !by_each_port);
  };
  const auto copies = [&](const Branch& branch) {
    return goes_once(branch) ? std::size_t{1} : branch.ports.size();
  };
  std::size_t parts = 0;
  for (const Branch& branch : group.branches) parts += copies(branch);
  std::uint64_t rest = parts > 0 ? share % parts : 0;  // added to the first part
  for (const Branch& branch : group.branches) {
    const bool is_known = unless_as_before != nullptr &&
                          std::ranges::find(*unless_as_before, branch) != unless_as_before->end();
    if (is_known) continue;
    SenderGroupMessage part = part_of(config_, group, branch, type);
    wire::UdpDatagram datagram;
    datagram.ip.tos = group.tos;
    datagram.ip.source = group.installed.sender();
    datagram.udp.source_port = config_.mrp_port;
    datagram.udp.destination_port = config_.mrp_port;
    const bool is_for_host = group.rewrites(branch);
    if (is_for_host) address_process(call, part.receivers[0].control_port, datagram.udp);
    datagram.ip.destination = is_for_host ? part.receivers[0].host : part.addressed;
    if (measures_ways && call.rules().least_path_mtu) narrow_path(config_, routes_, part);
    for (std::size_t i = 0; i < copies(branch); ++i) {
      part.share = share / parts + std::exchange(rest, 0);
      if (goes_once(branch)) {
        answers_.send_to(call, datagram.ip.destination, datagram, part);
      } else {
        send_signed(call, branch.ports[i], datagram, part);
      }
    }
  }
}

}  // namespace cepheus::fabric
