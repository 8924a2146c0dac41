// INSTALL and REMOVE walk down the branches (bifurcation.h). Each switch that branches or rewrites
// keeps a record: installed message, branches, rule, age. The sender's own switch keeps the
// AckMerge, too. A message carries a share of 1, which every branch divides, so that the sender
// knows when all receivers have answered.
//
// A record is replaced by a newer epoch of the same program's group, kept while its receivers are
// cut off, built anew when routes change, and ends by REMOVE, by age, or `orphan_age` after its
// sender's port went down. Refused: a full table, a host's quota, a number that another group has,
// no route.
#include "switch-emulator/engine/mcrdma/installer.h"

#include "switch-emulator/engine/mcrdma/install_message.h"
#include "switch-emulator/engine/mcrdma/made_feedback.h"
#include "switch-emulator/engine/registration/signed_datagram.h"
#include "wire/ecn.h"
#include "wire/situation.h"

namespace cepheus::fabric {

using net::PortKind;
using wire::MrpMember;
using wire::MrpReject;
using wire::MrpType;
using wire::SenderGroupMessage;

namespace {

// Share of a REMOVE over former branches. The sender causes it, so it is not 0. It is far less than
// any part of a whole share, so that it never counts as a missing one.
constexpr std::uint64_t kFormerShare = std::uint64_t{1} << 24;

// Receivers are valid if they are not the sender and have a real queue pair.
bool is_well_formed(const SenderGroupMessage& message) {
  const auto can_be = [&](const MrpMember& m) {
    return !m.host.is_unset() && m.host != message.sender() && m.qpn.value() != 0 &&
           !wire::is_sender_group(m.qpn);
  };
  return message.receiver_count > 0 && std::ranges::all_of(message.list(), can_be);
}

// The rule for data that arrives addressed to `addressed` (MC-RDMA algorithm 1, lines 16 to 25).
// Without a branch, a rule is needed as well if no later switch could rewrite the packet for a
// receiver's queue pair.
std::vector<Replica> rule_for(std::span<const MrpMember> receivers,
                              const std::vector<Branch>& branches, Ipv4 addressed) {
  const bool is_last = branches.size() == 1 && branches.front().is_here;
  const bool is_for_one =
      std::ranges::find(receivers, addressed, &MrpMember::host) != receivers.end();
  if (branches.size() == 1 && !is_last && is_for_one) return {};
  std::vector<Replica> rule;
  rule.reserve(branches.size());
  for (const Branch& branch : branches) {
    const MrpMember& first = receivers[branch.receivers.front()];
    rule.push_back({first.host, branch.is_one() ? first.qpn : Qpn(), branch.receivers.front()});
  }
  return rule;
}

// Whether both are about one queue pair of one program. Equal virtual QPNs are not enough: another
// program may have chosen the same number for another group.
bool is_one_group(const SenderGroupMessage& a, const SenderGroupMessage& b) {
  return a.header.instance == b.header.instance && a.sender_qpn == b.sender_qpn;
}

// Whether `message` is the same group's, of a newer epoch than the record.
bool is_superseded(const SenderGroup& record, const SenderGroupMessage& message) {
  return is_one_group(record.installed, message) &&
         wire::newer_epoch(message.header.epoch, record.installed.header.epoch);
}

void add_host(std::vector<MrpMember>& to, const MrpMember& member) {
  if (std::ranges::find(to, member.host, &MrpMember::host) == to.end()) to.push_back(member);
}

// All present and former receivers of the record.
void add_receivers(std::vector<MrpMember>& to, const SenderGroup& group) {
  for (const MrpMember& m : group.installed.list()) add_host(to, m);
  for (const MrpMember& m : group.former) add_host(to, m);
}

// Of another version, if it can't be parsed.
bool is_of_sender(std::span<const std::uint8_t> payload) {
  const auto type = wire::MrpHeader::type_of(payload);
  return type == MrpType::kInstall || type == MrpType::kRemove;
}

// From a message without regions, because regions have indices of receivers.
void remove_receiver(SenderGroupMessage& message, std::size_t at) {
  for (; at + 1 < message.receiver_count; ++at) message.receivers[at] = message.receivers[at + 1];
  --message.receiver_count;
}

}  // namespace

bool Installer::on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
  // This switch is at neither end, and branches nothing.
  const bool from_host = is_from_sender(call);
  const auto route = routes_.find(headers.ip.destination);
  const bool at_destination =
      route && call.port(routes_.ports(*route).front()).kind == PortKind::kHost;
  if (!from_host && !at_destination && config_.sender_groups != net::SenderGroups::kEverywhere) {
    return false;
  }
  const auto datagram = wire::UdpDatagram::parse(frame, headers);
  if (!datagram) {
    call.count(Counter::kDropMalformed);
    return true;
  }
  const auto payload = verified(call, datagram->ip.source, frame);
  if (!payload) {
    call.count(Counter::kDropMrpUnauthenticated);
    return true;
  }
  const auto message = SenderGroupMessage::parse(*payload);
  if (!message) {
    const bool is_forged = from_host && !is_of_sender(*payload);
    call.count(is_forged ? Counter::kDropMrpForged : Counter::kDropMalformed);
    return true;
  }
  const MrpType type = message->header.type;
  if (type == MrpType::kInstalled || type == MrpType::kReject) {
    answers_.on_answer(call, frame, *datagram, *message);
  } else if (message->sender() != datagram->ip.source) {
    call.count(Counter::kDropMrpForged);
  } else if (type == MrpType::kInstall) {
    on_install(call, *datagram, *message);
  } else if (type == MrpType::kRemove) {
    on_remove(call, *datagram, *message);
  } else if (type == MrpType::kQuery && from_host) {
    answers_.on_query(call, *message);
  } else {
    call.count(Counter::kDropMrpForged);
  }
  if (call.fates == 0) call.count(Counter::kMrpTaken);
  return true;
}

bool Installer::take_passing(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
  auto datagram = wire::UdpDatagram::parse(frame, headers);
  if (!datagram || datagram->ip.ttl <= 1) return false;
  const auto payload = verified(call, datagram->ip.source, frame);
  if (!payload) return false;
  auto message = SenderGroupMessage::parse(*payload);
  const auto route = routes_.find(datagram->ip.destination);
  if (!message || !route) return false;
  if (!measures(*message)) {
    if (!refuse_too_long(call, *datagram, *message)) return false;
    call.count(Counter::kMrpTaken);
    return true;
  }
  // Data may leave by any of them.
  std::vector<PortId> out = routes_.ports(*route);
  std::erase_if(out, [&](PortId p) { return !routes_.serves(p, *route) || p == call.ingress(); });
  if (out.empty()) return false;
  CEPHEUS_SITUATION("a switch that branches nothing narrows an INSTALL's path");
  --datagram->ip.ttl;
  narrow_path(config_, routes_, *message);
  const std::uint64_t share = message->share / out.size();
  message->share -= share * (out.size() - 1);  // the first one has the rest, too
  for (const PortId port : out) {
    send_signed(call, port, *datagram, *message);
    message->share = share;
  }
  call.count(Counter::kMrpTaken);
  return true;
}

// The group's queue pairs keep their path MTU, and its packets would be dropped here without a sign.
// False: they fit.
bool Installer::refuse_too_long(Call& call, const wire::UdpDatagram& datagram,
                                const SenderGroupMessage& message) {
  const MrpMember* const receiver =
      find_behind_small_port(config_, routes_, message, call.ingress());
  if (receiver == nullptr) return false;
  answers_.reject(call, message, MrpReject::kTooLong, receiver, wire::without_ecn(datagram.ip.tos));
  return true;
}

// Reasons that need no routes.
MrpReject Installer::refuse(Call& call, const SenderGroupMessage& message,
                            const SenderGroup* known) {
  if (config_.sender_groups == net::SenderGroups::kOff) return MrpReject::kNoSenderGroups;
  if (!is_well_formed(message)) return MrpReject::kMalformed;
  if (known != nullptr) {
    return is_one_group(known->installed, message) ? MrpReject::kNone : MrpReject::kIdInUse;
  }
  // It replaces a record with another key: a newer epoch may lack a branch's first receiver.
  const auto is_older = [&](const SenderGroup& other) { return is_superseded(other, message); };
  if (groups_.any_of({message.sender(), message.virtual_qpn}, is_older)) return MrpReject::kNone;
  if (groups_.size() >= config_.max_groups) return MrpReject::kTableFull;
  if (groups_.count_of(message.sender()) >= config_.max_groups_per_host) {
    call.count(Counter::kRefusedQuota);
    return MrpReject::kQuota;
  }
  return MrpReject::kNone;
}

void Installer::on_install(Call& call, const wire::UdpDatagram& datagram,
                           const SenderGroupMessage& message) {
  call.count(Counter::kSenderInstall);
  const std::uint8_t tos = wire::without_ecn(datagram.ip.tos);
  const bool from_sender = is_from_sender(call);
  const SenderKey key{message.sender(), message.virtual_qpn};
  const Ipv4 addressed = from_sender ? datagram.ip.destination : message.addressed;
  SenderGroup* group = groups_.find(key, addressed);
  // This is the sender's own switch: an honest INSTALL comes by the sender's port only.
  if (group != nullptr && group->merge && !from_sender) return call.count(Counter::kDropMrpForged);
  if (group == nullptr && !rate_.admit(call.ingress(), call.now)) {
    return call.count(Counter::kDropMrpRate);
  }
  if (const MrpReject reason = refuse(call, message, group); reason != MrpReject::kNone) {
    return answers_.reject(call, message, reason, nullptr, tos);
  }
  // Feedback has only the virtual QPN, whatever host the data is addressed to.
  const SenderGroup* merging = from_sender ? groups_.find_merge(key) : nullptr;
  if (merging != nullptr && !is_one_group(merging->installed, message)) {
    return answers_.reject(call, message, MrpReject::kIdInUse, nullptr, tos);
  }
  if (group != nullptr && wire::newer_epoch(group->installed.header.epoch, message.header.epoch)) {
    CEPHEUS_RARE_SITUATION("an INSTALL of an older epoch arrives at a switch");
    return call.count(Counter::kDropMrpStale);
  }
  std::size_t unreachable = 0;
  auto branches = bifurcate(config_, routes_, message.list(), call.ingress(), unreachable);
  if (branches.empty()) {
    // Cut off for now: the record stays. The sender evicts receivers that are gone.
    if (group != nullptr) {
      CEPHEUS_RARE_SITUATION("a receiver of an installed group is cut off");
      group->last_seen = call.now;
      group->note_install();
    }
    return answers_.report_cut_off(call, message, message.receivers[unreachable], tos);
  }
  if (refuse_too_long(call, datagram, message)) return;
  std::vector<MrpMember> former = erase_older(key, message, group);
  if (group == nullptr) group = &groups_.add(key, addressed);
  add_receivers(former, *group);
  std::erase_if(former, [&](const MrpMember& m) {
    return std::ranges::find(message.list(), m.host, &MrpMember::host) != message.list().end();
  });
  if (former.size() > SenderGroupMessage::kMaxReceivers) {
    former.resize(SenderGroupMessage::kMaxReceivers);
  }
  group->former = std::move(former);
  group->installed = message;
  group->tos = tos;
  group->installed.addressed = addressed;
  group->ingress = call.ingress();
  group->branches = std::move(branches);
  group->rule = rule_for(message.list(), group->branches, group->installed.addressed);
  group->last_seen = call.now;
  group->note_install();
  due_ = std::min(due_, expires(*group));
  if (from_sender) {
    // The record of a restarted switch comes from an INSTALL of an active group. A later INSTALL with
    // the flag is from before the restart: the sender may have sent packets since.
    const bool is_first = !group->merge;
    if (is_first) {
      group->merge =
          std::make_unique<AckMerge>(addressed, call.ingress(), config_.rules, config_.cnp_window);
    }
    if (is_first && (message.header.flags & SenderGroupMessage::kFresh) == 0)
      CEPHEUS_SITUATION("a restarted switch gets an INSTALL of an active group");
    const bool is_fresh = is_first && (message.header.flags & SenderGroupMessage::kFresh) != 0;
    // Soon after this switch's start, even the first INSTALL may be from before a restart.
    const bool sees_all = call.now - started_ > config_.sender_lives;
    if (is_fresh && !sees_all)
      CEPHEUS_SITUATION("a new group is installed soon after its switch's start");
    const auto answer = group->merge->set_receivers(
        call.now, message.list(), is_fresh ? std::optional(message.start) : std::nullopt, sees_all);
    merged_ = group;
    if (answer) send_answer(call, *group, *answer);
  }
  pass_on(call, *group, MrpType::kInstall, message.share);
}

// Erases records of older epochs except `kept`, because the destinations of their copies are no
// longer valid. Returns their receivers.
std::vector<MrpMember> Installer::erase_older(const SenderKey& key,
                                              const SenderGroupMessage& message,
                                              const SenderGroup* kept) {
  std::vector<MrpMember> former;
  groups_.erase_if(key, [&](const SenderGroup& other) {
    if (&other == kept || !is_superseded(other, message)) return false;
    CEPHEUS_RARE_SITUATION("a new epoch of a sender group branches by another receiver");
    add_receivers(former, other);
    return true;
  });
  return former;
}

void Installer::on_remove(Call& call, const wire::UdpDatagram& datagram,
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
  pass_on(call, gone, MrpType::kRemove, message.share);
  // A switch that regards a sender as dead may be wrong: with share 0 receivers need not believe
  // it.
  if (message.share != 0) remove_former(call, gone, former);
}

// An unreachable receiver must not keep the others from learning of the end.
void Installer::branch_to_reachable(const Call& call, SenderGroup& group) {
  while (group.branches.empty() && group.installed.receiver_count > 0) {
    std::size_t unreachable = 0;
    group.branches =
        bifurcate(config_, routes_, group.installed.list(), call.ingress(), unreachable);
    if (group.branches.empty()) {
      CEPHEUS_SITUATION("a sender group ends while a receiver is cut off");
      remove_receiver(group.installed, unreachable);
    }
  }
  group.rule = rule_for(group.installed.list(), group.branches, group.installed.addressed);
}

// If one of several receivers behind a switch is left, messages to it pass that switch untouched.
// Without a REMOVE the switch would keep its record until it ages.
void Installer::remove_former(Call& call, const SenderGroup& gone,
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
  pass_on(call, all, MrpType::kRemove, kFormerShare, &gone.branches);
}

void Installer::on_routes_changed(Call& call) {
  std::vector<SenderGroup*> all;
  groups_.for_each([&](SenderGroup& group) { all.push_back(&group); });
  for (SenderGroup* group : all) {
    std::size_t unreachable = 0;
    auto branches =
        bifurcate(config_, routes_, group->installed.list(), group->ingress, unreachable);
    // Cut off for now: the record stays, and the sender notices by time.
    if (branches.empty() || branches == group->branches) continue;
    std::swap(branches, group->branches);
    group->rule = rule_for(group->installed.list(), group->branches, group->installed.addressed);
    call.count(Counter::kSenderRebuilt);
    pass_on(call, *group, MrpType::kInstall, 0, &branches);
  }
}

void Installer::on_port_down(Call& call, PortId down) {
  const Ipv4 host = call.port(down).host;
  groups_.for_each([&](SenderGroup& group) {
    if (group.merge && group.merge->port() == down) {
      CEPHEUS_RARE_SITUATION("a sender's port goes down");
      if (!group.orphaned) group.orphaned = call.now;
      due_ = std::min(due_, expires(group));
    }
    const auto all = group.installed.list();
    const auto gone = std::ranges::find(all, host, &MrpMember::host);
    if (gone != all.end()) answers_.report_down(call, group.installed, host, group.tos);
  });
}

void Installer::on_port_up(Instant now, PortId up) {
  groups_.for_each([&](SenderGroup& group) {
    if (!group.orphaned || group.merge->port() != up || group.port_came_up) return;
    CEPHEUS_RARE_SITUATION("a sender's port is up again before its group ages");
    group.orphaned = now;
    group.port_came_up = true;
  });
}

Instant Installer::expires(const SenderGroup& group) const {
  const Instant unused = group.last_seen + config_.age;
  return group.orphaned ? std::min(unused, *group.orphaned + config_.orphan_age) : unused;
}

void Installer::on_timer(Call& call) {
  if (call.now < due_) return;
  due_ = wire::kNever;
  std::vector<const SenderGroup*> old;
  groups_.for_each([&](const SenderGroup& group) {
    const Instant then = expires(group);
    if (then <= call.now) {
      old.push_back(&group);
    } else {
      due_ = std::min(due_, then);
    }
  });
  for (const SenderGroup* group : old) forget(call, *group);
}

// Receivers behind this switch get a REMOVE in the sender's name.
void Installer::forget(Call& call, const SenderGroup& group) {
  CEPHEUS_SITUATION("a sender group ages at a switch");
  call.count(Counter::kStaleTableAged);
  pass_on(call, group, MrpType::kRemove, 0);
  groups_.erase(group);
}

// Each branch of several receivers gets a message for the next switch that branches. Hosts of the
// other branches get their own. Each has a part of the share. `unless_as_before`: old branches;
// unchanged ones get no message.
void Installer::pass_on(Call& call, const SenderGroup& group, MrpType type, std::uint64_t share,
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
