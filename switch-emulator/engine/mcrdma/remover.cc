#include "switch-emulator/engine/mcrdma/remover.h"

#include <algorithm>
#include <utility>

#include "switch-emulator/engine/mcrdma/install_message.h"
#include "wire/ecn.h"
#include "wire/situation.h"

namespace cepheus::fabric {

using wire::MrpMember;
using wire::MrpType;
using wire::SenderGroupMessage;

namespace {

// Share of a REMOVE over former branches. The sender causes it, so it is not 0. It is far less than
// any part of a whole share, so that it never counts as a missing one.
constexpr std::uint64_t kFormerShare = std::uint64_t{1} << 24;

}  // namespace

void Remover::on_remove(Call& call, const wire::UdpDatagram& datagram,
                        const SenderGroupMessage& message) {
  call.count(Counter::kSenderRemove);
  if (config_.sender_groups == net::SenderGroups::kOff || !is_well_formed(message)) {
    return call.count(Counter::kDropMalformed);
  }
  const SenderKey key{message.sender(), message.virtual_qpn};
  const Ipv4 addressed = is_from_sender(call) ? datagram.ip.destination : message.addressed;
  const SenderGroup* known = groups_.find(key, addressed);
  if (known != nullptr && !is_one_group(known->installed, message)) {
    return call.count(Counter::kDropMrpForeign);
  }
  // A REMOVE from a switch without a path to the sender, while the sender's messages come by
  // another.
  const auto lives = [&](const SenderGroup& other) {
    return is_one_group(other.installed, message) &&
           call.now - other.last_seen <= config_.sender_lives;
  };
  const bool is_sender = message.share != 0;
  if (!is_sender && groups_.any_of(key, lives)) return call.count(Counter::kDropMrpStale);
  // A repeat: switches and hosts behind this one may have missed the first.
  SenderGroup gone;
  gone.installed = message;
  gone.installed.region_count = 0;
  gone.tos = wire::without_ecn(datagram.ip.tos);
  gone.installed.addressed = addressed;
  branch_to_reachable(call, gone);
  std::vector<MrpMember> former;
  groups_.erase_if(key, [&](const SenderGroup& other) {
    if (!is_one_group(other.installed, message)) return false;
    for (const MrpMember& m : other.former) add_host(former, m);
    return true;
  });
  branch_messages_.send(call, gone, MrpType::kRemove, message.share);
  // A switch that regards a sender as dead may be wrong: with share 0 receivers need not believe
  // it.
  if (message.share != 0) remove_former(call, gone, former);
}

// An unreachable receiver must not keep the others from learning of the end.
void Remover::branch_to_reachable(const Call& call, SenderGroup& group) {
  std::vector<Branch> branches;
  while (branches.empty() && group.installed.receiver_count > 0) {
    std::size_t unreachable = 0;
    branches = bifurcate(config_, routes_, group.installed.list(), call.ingress(), unreachable);
    if (branches.empty()) {
      CEPHEUS_SITUATION("a sender group ends while a receiver is cut off");
      group.installed.remove(unreachable);
    }
  }
  group.set_branches(std::move(branches));
}

// If one of several receivers behind a switch is left, messages to it pass that switch untouched.
// Without a REMOVE the switch would keep its record until it ages.
void Remover::remove_former(Call& call, const SenderGroup& gone,
                            std::span<const MrpMember> former) {
  SenderGroup all;
  all.installed = gone.installed;
  all.tos = gone.tos;
  for (const MrpMember& m : former) {
    const auto list = all.installed.list();
    if (std::ranges::find(list, m.host, &MrpMember::host) == list.end()) all.installed.add(m);
  }
  if (all.installed.receiver_count == gone.installed.receiver_count) return;
  CEPHEUS_SITUATION("a sender group ends, and receivers that it had before learn of it");
  branch_to_reachable(call, all);
  branch_messages_.send(call, all, MrpType::kRemove, kFormerShare, &gone.branches);
}

}  // namespace cepheus::fabric
