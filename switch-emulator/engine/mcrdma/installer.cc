// INSTALL walks down the branches (bifurcation.h). Each switch that branches or rewrites keeps a
// record: installed message, branches, rule, age. The sender's own switch keeps the AckMerge, too.
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

// Whether `message` is the same group's, of a newer epoch than the record.
bool is_superseded(const SenderGroup& record, const SenderGroupMessage& message) {
  return is_one_group(record.installed, message) &&
         wire::newer_epoch(message.header.epoch, record.installed.header.epoch);
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
    // One that ends a record here is lawful as often as there are records.
    const SenderGroup* own = groups_.find_merge({message->sender(), message->virtual_qpn});
    const bool ends_record = own != nullptr && is_one_group(own->installed, *message);
    if (ends_record || admits_repeat(call)) {
      remover_.on_remove(call, *datagram, *message);
    } else {
      call.count(Counter::kDropMrpRate);
    }
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

// Each group that a host may have sends an INSTALL a second.
bool Installer::admits_repeat(const Call& call) {
  constexpr std::uint32_t kForEachGroup = 4;
  return repeats_.admit(call.ingress(), call.now, kForEachGroup * config_.max_groups_per_host);
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
  const bool is_admitted =
      group == nullptr ? new_groups_.admit(call.ingress(), call.now) : admits_repeat(call);
  if (!is_admitted) return call.count(Counter::kDropMrpRate);
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
  group->set_branches(std::move(branches));
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
  branch_messages_.send(call, *group, MrpType::kInstall, message.share);
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

void Installer::on_routes_changed(Call& call) {
  std::vector<SenderGroup*> all;
  groups_.for_each([&](SenderGroup& group) { all.push_back(&group); });
  for (SenderGroup* group : all) {
    std::size_t unreachable = 0;
    auto branches =
        bifurcate(config_, routes_, group->installed.list(), group->ingress, unreachable);
    // Cut off for now: the record stays, and the sender notices by time.
    if (branches.empty() || branches == group->branches) continue;
    const std::vector<Branch> before = std::exchange(group->branches, {});
    group->set_branches(std::move(branches));
    call.count(Counter::kSenderRebuilt);
    branch_messages_.send(call, *group, MrpType::kInstall, 0, &before);
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
  branch_messages_.send(call, group, MrpType::kRemove, 0);
  groups_.erase(group);
}

}  // namespace cepheus::fabric
