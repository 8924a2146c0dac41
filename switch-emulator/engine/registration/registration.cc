#include "switch-emulator/engine/registration/registration.h"

#include "switch-emulator/engine/eviction.h"
#include "switch-emulator/engine/registration/refusals.h"
#include "switch-emulator/engine/registration/registration_messages.h"
#include "switch-emulator/engine/registration/shares.h"
#include "switch-emulator/engine/registration/signed_datagram.h"
#include "switch-emulator/engine/registration/trees.h"
#include "wire/situation.h"

namespace cepheus::fabric {

using wire::MrpReject;

namespace {

// Repeats of REGISTER name only the missing members: members that a switch knew before a restart are
// not among them.
bool knows_all(const GroupInstance& table, const MrpRequest& request) {
  return table.roster.size() == request.message.header.flags;
}

// The leader is alive, as far as this switch knows.
void touch(const Call& call, GroupEntry& entry) {
  entry.last_seen = call.now;
  entry.orphaned.reset();
}

}  // namespace

void Registrar::on_datagram(Call& call, const Frame& frame, const wire::UdpHeaders& headers) {
  const auto datagram = wire::UdpDatagram::parse(frame, headers);
  if (!datagram) return call.count(Counter::kDropMalformed);
  const auto payload = verified(call, datagram->ip.source, frame);
  if (!payload) return call.count(Counter::kDropMrpUnauthenticated);
  if (const auto publication = wire::Publication::parse(*payload)) {
    return on_publish(call, *datagram, *publication);
  }
  const auto message = wire::MrpMessage::parse(*payload);
  if (!message || message->header.mcst_id != datagram->ip.destination) {
    call.count(Counter::kDropMalformed);
    if (const auto why = wire::refuse_version(*payload)) send_refusal(call, *datagram, *why);
    return;
  }
  const MrpRequest request{*datagram, *message};
  if (wire::is_for_leader(message->header.type)) return answers_.on_answer(call, request);
  switch (message->header.type) {
    case wire::MrpType::kRegister:
      return on_register(call, request);
    case wire::MrpType::kConnect:
      return on_connect(call, request);
    case wire::MrpType::kActivate:
      return on_activate(call, request);
    case wire::MrpType::kUnregister:
      return on_unregister(call, request);
    case wire::MrpType::kRefresh:
      return on_refresh(call, request);
    case wire::MrpType::kQuery:
      return on_query(call, request);
    case wire::MrpType::kEvict:
      return on_evict(call, request);
    case wire::MrpType::kGiveUp:
      return on_give_up(call, request);
    case wire::MrpType::kAlive:
      return on_alive(call, request);
    case wire::MrpType::kConfirm:
    case wire::MrpType::kReject:
    case wire::MrpType::kReport:
    case wire::MrpType::kComplain:  // all of them are answers
    case wire::MrpType::kHello:
    case wire::MrpType::kPublish:
    case wire::MrpType::kInstall:
    case wire::MrpType::kInstalled:
    case wire::MrpType::kRemove:
    case wire::MrpType::kProbe:
    case wire::MrpType::kProbed:
      return call.count(Counter::kDropMalformed);
  }
}

void Registrar::on_register(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpRegister);
  if (admission_.is_stale(request)) {
    CEPHEUS_SITUATION("REGISTER comes after its step, or of an older epoch");
    return call.count(Counter::kDropMrpStale);
  }
  if (!admission_.is_within_rate(call, request)) return call.count(Counter::kDropMrpRate);
  if (const Refusal refusal = admission_.refuse(call, request)) {
    return send_reject(call, request, refusal.reason, refusal.member);
  }
  GroupEntry* const known = groups_.find(request.id());
  const auto opened = known == nullptr ? admission_.open(call, request) : known;
  if (!opened) return send_reject(call, request, opened.error(), {});
  GroupEntry& entry = **opened;
  touch(call, entry);

  if (const Refusal refusal = tree_.place_all(call, entry.table, request.message.list())) {
    if (known != nullptr) CEPHEUS_RARE_SITUATION("a later part of a list of members is refused");
    if (known == nullptr) groups_.erase(call, request.id());
    return send_reject(call, request, refusal.reason, refusal.member);
  }
  request_confirms(call, request, entry.table.roster, {},
                   entry.table.mft.behaviour->register_flags());
}

// Passes on the leader's request to the members that it names, or to all on `ports`, where they
// have not confirmed it yet, and confirms for those that have.
void Registrar::request_confirms(Call& call, const MrpRequest& request, Roster& roster,
                                 std::span<const PortId> ports, std::uint16_t flags,
                                 const Mft* mft) {
  roster.begin(request.message.header.type);
  if (request.message.member_count == 0) {
    roster.expect_all();
    pass_on(call, request, ports, roster, mft);
  } else {
    Split parts;
    std::size_t nameless = 0;
    for (const wire::MrpMember& m : request.message.list()) {
      if (const Roster::Member* member = roster.find(m)) {
        roster.expect(*member);
        if (!member->confirmed) parts.add(member->port, m);
      } else if (add_by_trunk(roster, m, parts)) {
        ++nameless;
      }
    }
    roster.expect_nameless(nameless);
    parts.send(call, request, &roster, flags, mft);
  }
  answers_.confirm_due(call, request.id(), request.epoch());
}

// The switch has no name of a member behind a trunk. A request for one goes over every trunk of the
// tree that leads to its attachment switch: the trunk of its registration, and seldom another one:
// its switches drop the name. False before ACTIVATE: all members behind have names, so others are at
// the leader's side.
bool Registrar::add_by_trunk(const Roster& roster, const wire::MrpMember& member,
                             Split& parts) const {
  const auto route = routes_.find(member.host);
  if (!route || roster.has_all_names()) return false;
  bool found = false;
  for (const PortId port : routes_.ports(*route)) {
    if (roster.count_behind(port) == 0) continue;
    if (found) CEPHEUS_SITUATION("a member without a name may be behind two trunks");
    parts.add(port, member);
    found = true;
  }
  return found;
}

GroupEntry* Registrar::find_commanded(Call& call, const MrpRequest& request) {
  GroupEntry* entry = groups_.find(request.id());
  if (entry == nullptr) {
    call.count(groups_.find_tombstone(request.id()) != nullptr ? Counter::kDropMrpStale
                                                               : Counter::kDropUnknownGroup);
    return nullptr;
  }
  if (entry->leader == request.leader() && leads_to(entry->table.mft, call.ingress())) {
    return entry;
  }
  CEPHEUS_SITUATION("a command for a group comes from another leader, or another side");
  call.count(Counter::kDropMrpForeign);
  return nullptr;
}

GroupEntry* Registrar::find_active(Call& call, const MrpRequest& request) {
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return nullptr;
  if (entry->is_active && entry->table.mft.epoch == request.epoch()) return entry;
  call.count(Counter::kDropMrpStale);
  return nullptr;
}

void Registrar::on_connect(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpConnect);
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return reject_if_forgotten(call, request);
  if (entry->is_active || entry->table.mft.epoch != request.epoch()) {
    return call.count(Counter::kDropMrpStale);
  }
  if (!knows_all(entry->table, request)) {
    CEPHEUS_RARE_SITUATION("CONNECT finds an incomplete list of members");
    return send_reject(call, request, MrpReject::kIncomplete, {});
  }
  if (!may_have_tree(entry->table, request)) return call.count(Counter::kDropMalformed);
  touch(call, *entry);
  take_tree(entry->table, request);
  if (request.message.path) entry->table.path_mtu = request.message.path->mtu;
  list_branches(entry->table.mft, branches_);
  request_confirms(call, request, entry->table.roster, branches_, 0, &entry->table.mft);
}

void Registrar::on_activate(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpActivate);
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return;
  GroupInstance& table = entry->table;
  if (table.mft.epoch != request.epoch()) return call.count(Counter::kDropMrpStale);
  const Path& leader = table.mft.paths[table.mft.leader];
  if (!may_have_tree(table, request)) return call.count(Counter::kDropMalformed);
  if (!entry->is_active) {
    if (leader.is_host && leader.qpn.value() == 0) {  // not in its own list of members
      return send_reject(call, request, MrpReject::kMalformed, {});
    }
    take_tree(table, request);
    if (!knows_all(table, request) || !knows_trees(table, request)) {
      return send_reject(call, request, MrpReject::kIncomplete, {});
    }
    entry->is_active = true;
    table.mft.behaviour->on_active(call);
    table.chosen = std::vector<PortId>();
    table.activated = call.now;
    // With the wait for other members, so rather too long.
    if (table.confirmed != Instant()) {
      table.mft.behaviour->on_round_trip(table.mft.leader, call.now - table.confirmed, false);
    }
  }
  touch(call, *entry);
  groups_.reschedule(request.id(), *entry);  // another age counts from now on
  list_branches(table.mft, branches_);
  request_confirms(call, request, table.roster, branches_, 0, &table.mft);
}

void Registrar::on_unregister(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpUnregister);
  if (Tombstone* stone = groups_.find_tombstone(request.id())) {
    // A repeat: switches and hosts behind this one may have missed the first.
    if (stone->leader != request.leader() || stone->leader_port != call.ingress()) {
      return call.count(Counter::kDropMrpForeign);
    }
    if (stone->epoch != request.epoch()) return call.count(Counter::kDropMrpStale);
    CEPHEUS_SITUATION("UNREGISTER comes again, and the group has ended here");
    return request_confirms(call, request, stone->roster, stone->ports);
  }
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return;
  const std::uint16_t epoch = entry->table.mft.epoch;
  if (wire::newer_epoch(request.epoch(), epoch)) return ageing_.end_older(call, request.id());
  if (epoch != request.epoch()) return call.count(Counter::kDropMrpStale);
  list_branches(entry->table.mft, branches_);
  // A repeat names no evicted member, and a hostile leader names any. Without its table this switch
  // passes no later message on, so now all switches and members behind it learn of the end.
  const wire::MrpMessage to_all = without_members(request.message);
  request_confirms(call, {request.datagram, to_all}, entry->table.roster, branches_);
  groups_.bury(call, request.id());
  ageing_.repeat_later(call, request.id(), static_cast<MrpReject>(to_all.header.flags));
}

void Registrar::on_refresh(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpRefresh);
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return;
  touch(call, *entry);
  list_branches(entry->table.mft, branches_);
  const bool is_news = entry->is_active && request.message.path;
  if (!is_news) return pass_on_to_switches(call, request, branches_);
  CEPHEUS_SITUATION("members of an active group learn of a new path");
  // A REPORT that was lost is repeated.
  pass_on(call, request, branches_, entry->table.roster);
  report_path(call, groups_, *entry);
}

void Registrar::on_query(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpQuery);
  GroupEntry* entry = find_active(call, request);
  if (entry == nullptr) return reject_if_forgotten(call, request);
  touch(call, *entry);
  const Mft& mft = entry->table.mft;
  mft.behaviour->on_query(call);
  if (const auto failure = mft.behaviour->take_failure(call.now)) {
    report_failure(call, *entry, *failure);
  }
  groups_.note_timer(request.id(), *entry);
  list_branches(mft, branches_);
  pass_on_to_switches(call, request, branches_);
  const bool is_presence =
      request.message.header.flags == wire::MrpHeader::kPresence && call.rules().presence_answer;
  const bool is_leaders_switch = call.port(call.ingress()).kind == PortKind::kHost;
  report_hosts(call, routes_, entry->leader, mft, std::nullopt, is_presence && is_leaders_switch);
  for (PathNo i = 0; i < mft.paths.size(); ++i) {
    if (mft.paths[i].is_host || routes_.is_up(mft.paths[i].port)) continue;
    return report_lost_path(call, entry->leader, entry->table, i);
  }
}

// The switch has restarted, or has freed the group while its leader's port was down. Members behind
// it may have left, or don't receive CONNECT, and can't inform their leader over this path.
void Registrar::reject_if_forgotten(Call& call, const MrpRequest& request) {
  const Tombstone* stone = groups_.find_tombstone(request.id());
  const bool is_unregistered = stone != nullptr && !stone->by_switch;
  const bool is_known = groups_.find(request.id()) != nullptr || is_unregistered;
  if (is_known || !call.rules().presence_answer) return;
  CEPHEUS_SITUATION("a switch gets a command for a group that it has forgotten");
  send_reject(call, request, MrpReject::kIncomplete, {});
}

void Registrar::on_port_down(Call& call, PortId down) {
  groups_.for_each([&](McstId, GroupEntry& entry) {
    Mft& mft = entry.table.mft;
    const PathNo path = mft.find(down);
    if (path == kNoPath || path == mft.leader) return;
    if (!mft.paths[path].is_host) {
      report_lost_path(call, entry.leader, entry.table, path);
    } else if (!entry.is_active) {
      CEPHEUS_SITUATION("a member's port goes down during its group's registration");
    } else {
      mft.behaviour->on_port_down(path);
      report_hosts(call, routes_, entry.leader, mft, path);
    }
  });
}

void Registrar::on_port_up(PortId up) {
  groups_.for_each([&](McstId, GroupEntry& entry) {
    if (!entry.is_active) return;
    Mft& mft = entry.table.mft;
    const PathNo path = mft.find(up);
    if (path != kNoPath) mft.behaviour->on_port_up(path);
  });
}

void Registrar::on_evict(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpEvict);
  GroupEntry* entry = find_active(call, request);
  if (entry == nullptr) return;
  touch(call, *entry);
  Mft& mft = entry->table.mft;
  list_branches(mft, branches_);
  pass_down(call, request, branches_);
  wire::MrpMessage done;
  done.header = request.message.header;
  for (const wire::MrpMember& member : request.message.list()) {
    entry->table.roster.remove(member.host);
    const std::optional<PortId> port = own_port(call, routes_, member.host);
    if (!port) continue;
    const PathNo path = mft.find(*port);
    if (path == mft.leader) continue;  // a leader that leaves unregisters
    if (path == kNoPath) CEPHEUS_RARE_SITUATION("EVICT comes again, and the member has left here");
    if (path != kNoPath && mft.paths[path].qpn == member.qpn) {
      call.count(Counter::kPathsEvicted);
      evict(call, groups_, *entry, path);
    }
    done.add(member);
    send_evicted(call, request, *port, member);
  }
  if (done.member_count > 0) confirm_eviction(call, request, done);
}

// Members that complained may wait.
void Registrar::on_alive(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpAlive);
  GroupEntry* entry = find_active(call, request);
  if (entry == nullptr) return;
  Split parts;
  for (const wire::MrpMember& m : request.message.list()) {
    const Roster& roster = entry->table.roster;
    if (const Roster::Member* member = roster.find(m)) {
      parts.add(member->port, m);
    } else {
      add_by_trunk(roster, m, parts);
    }
  }
  parts.send(call, request);
}

// The recipients may be behind switches that have refused the group, so it follows the routes. A
// member believes it because of its token (wire::MrpMember::token).
void Registrar::on_give_up(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpGiveUp);
  const GroupEntry* entry = groups_.find(request.id());
  if (entry != nullptr && entry->leader != request.leader()) {
    return call.count(Counter::kDropMrpForeign);
  }
  Split parts;
  for (const wire::MrpMember& m : request.message.list()) {
    const auto own = own_port(call, routes_, m.host);
    const auto next = own ? own : routes_.next_hop(m.host, 0, call.ingress());
    if (next && *next != call.ingress()) parts.add(*next, m);
  }
  if (parts.is_empty()) return call.count(Counter::kDropNoRoute);
  parts.send(call, request);
}

}  // namespace cepheus::fabric
