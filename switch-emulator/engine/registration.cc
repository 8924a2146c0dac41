#include "switch-emulator/engine/registration.h"

#include <algorithm>
#include <utility>

#include "switch-emulator/engine/eviction.h"
#include "switch-emulator/engine/registration_messages.h"

namespace cepheus::fabric {

using wire::MrpReject;

namespace {

bool is_well_formed(const MrpRequest& request) {
  const wire::MrpHeader& h = request.message.header;
  return request.message.member_count > 0 && h.seq < h.total;
}

bool leads_to(const Group& group, PortId port) {
  return group.leader != kNoPath && group.paths[group.leader].port == port;
}

// The leader is alive, as far as this switch can see.
void touch(const Call& call, GroupEntry& entry) {
  entry.last_seen = call.now;
  entry.orphaned.reset();
}

}  // namespace

void Registrar::on_datagram(Call& call, const Frame& frame) {
  const auto datagram = wire::UdpDatagram::parse(frame);
  auto payload = frame.payload();
  if (datagram && call.config.mrp_key) {
    const auto verified = call.config.mrp_key->verify(datagram->ip.source, payload);
    if (!verified) return call.count(Counter::kDropMrpUnauthenticated);
    payload = *verified;
  }
  const auto message = wire::MrpMessage::parse(payload);
  if (!datagram || !message || message->header.mcst_id != datagram->ip.destination) {
    call.count(Counter::kDropMalformed);
    const auto refusal = datagram ? wire::refuse_version(payload) : std::nullopt;
    if (refusal) send_refusal(call, *datagram, *refusal);
    return;
  }
  const MrpRequest request{*datagram, *message};
  switch (message->header.type) {
    case wire::MrpType::kRegister:
      return on_register(call, request);
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
    case wire::MrpType::kConfirm:
    case wire::MrpType::kReject:
    case wire::MrpType::kReport:
      break;  // for the leader, never for a group
  }
  call.count(Counter::kDropMalformed);
}

bool Registrar::may_answer(const Call& call, const Frame& frame, const wire::Ipv4Header& ip) const {
  auto payload = frame.payload();
  if (call.config.mrp_key) {  // whoever it is for checks the tag
    payload = payload.first(payload.size() - std::min(payload.size(), wire::MrpKey::kTagSize));
  }
  const auto message = wire::MrpMessage::parse(payload);
  if (!message || message->member_count == 0) return false;
  const auto all_are = [&](Ipv4 host) {
    const auto list = message->list();
    return std::all_of(list.begin(), list.end(),
                       [&](const wire::MrpMember& m) { return m.host == host; });
  };
  switch (message->header.type) {
    case wire::MrpType::kConfirm:
    case wire::MrpType::kQuery:
      return all_are(ip.source);
    case wire::MrpType::kReject:
      return all_are(ip.source) || all_are(ip.destination);
    default:
      return false;
  }
}

void Registrar::on_register(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpRegister);
  if (is_stale(request)) return call.count(Counter::kDropMrpStale);
  if (const Refusal refusal = refuse(call, request)) {
    return send_reject(call, request, refusal.reason, refusal.member);
  }
  GroupEntry* known = groups_.find(request.id());
  const bool is_new = known == nullptr || !known->pending;
  GroupEntry& entry = is_new ? open_pending(call, request) : *known;
  touch(call, entry);

  Placement ports;
  if (const Refusal refusal = place_all(call, *entry.pending, request, ports)) {
    if (is_new) close_refused(call, request.id(), entry);
    return send_reject(call, request, refusal.reason, refusal.member);
  }
  split_register(call, request, entry.pending->group, ports);
}

// Older than what is known, or a repeat of what has been settled: nothing changes and nobody
// answers.
bool Registrar::is_stale(const MrpRequest& request) {
  if (const Tombstone* stone = groups_.find_tombstone(request.id())) {
    return stone->leader == request.leader() && !wire::newer_epoch(request.epoch(), stone->epoch);
  }
  const GroupEntry* entry = groups_.find(request.id());
  if (entry == nullptr || entry->leader != request.leader()) return false;
  if (entry->pending && entry->pending->group.epoch == request.epoch()) return false;
  return !wire::newer_epoch(request.epoch(), entry->newest().epoch);
}

// Reasons that need no look at the members. Makes room for a newer epoch's table.
Registrar::Refusal Registrar::refuse(Call& call, const MrpRequest& request) {
  if (!is_well_formed(request)) return {MrpReject::kMalformed, {}};
  if (groups_.find_tombstone(request.id()) != nullptr) return {MrpReject::kIdInUse, {}};
  GroupEntry* entry = groups_.find(request.id());
  if (entry != nullptr && entry->leader != request.leader()) return {MrpReject::kIdInUse, {}};
  if (entry != nullptr && entry->pending) {
    if (entry->pending->group.epoch == request.epoch()) {
      // From two sides at once: two switches disagree on the routes, and this would be no tree.
      return leads_to(entry->pending->group, call.ingress) ? Refusal{}
                                                           : Refusal{MrpReject::kNoRoute, {}};
    }
    groups_.drop(entry->pending, call.out);
    if (!entry->current) groups_.erase(request.id());
  }
  if (groups_.size() >= call.config.max_groups) return {MrpReject::kTableFull, {}};
  return {};
}

GroupEntry& Registrar::open_pending(Call& call, const MrpRequest& request) {
  GroupEntry* entry = groups_.find(request.id());
  if (entry == nullptr) entry = &groups_.add_entry(request.id(), request.leader(), call.now);
  Group& group = groups_.add_pending(request.id(), *entry, request.epoch(), routes_.class_count());
  const PortConfig& port = call.port(call.ingress);
  group.leader = groups_.add_path(group, call.ingress, port.kind == PortKind::kHost);
  group.paths[group.leader].host = port.host;
  return *entry;
}

void Registrar::close_refused(Call& call, McstId id, GroupEntry& entry) {
  groups_.drop(entry.pending, call.out);
  if (!entry.current) groups_.erase(id);
}

Registrar::Refusal Registrar::place_all(Call& call, Registration& table, const MrpRequest& request,
                                        Placement& ports) {
  const auto members = request.message.list();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (const Refusal refusal = place(call, table, members[i], ports[i])) return refusal;
  }
  return {};
}

// Finds the port towards a member and makes it a path of the group.
Registrar::Refusal Registrar::place(Call& call, Registration& table, const wire::MrpMember& member,
                                    PortId& port) {
  if (member.host.is_unset() || member.qpn.value() == 0 ||
      call.config.mcst_pool.contains(member.host)) {
    return {MrpReject::kMalformed, member};
  }
  const auto route = routes_.find(member.host);
  if (!route) return {MrpReject::kNoRoute, member};
  const PortId first = routes_.ports(*route).front();
  const PortConfig& next = call.port(first);
  const bool is_host = next.kind == PortKind::kHost && next.host == member.host;
  const auto chosen = is_host && routes_.is_up(first) ? first : choose_port(call, table, *route);
  if (!chosen) return {MrpReject::kNoRoute, member};
  port = *chosen;

  Group& group = table.group;
  PathNo number = group.find(port);
  if (number == kNoPath) {
    if (group.paths.size() >= call.config.max_paths) return {MrpReject::kTooManyPaths, member};
    number = groups_.add_path(group, port, is_host);
  }
  if (!is_host) return {};
  Path& path = group.paths[number];
  const bool is_set = path.qpn.value() != 0;
  if (is_set && path.qpn != member.qpn) return {MrpReject::kMalformed, member};
  path.host = member.host;
  path.qpn = member.qpn;
  return {};
}

// Equal-cost choice, made once per group and class of routes, so that repeats and later members
// agree with it: a port that is in the tree, else the one that the fewest groups use. Never back to
// where the leader is.
std::optional<PortId> Registrar::choose_port(const Call& call, Registration& table,
                                             Routes::ClassNo c) {
  PortId& chosen = table.chosen[c];
  if (chosen != PortId()) {
    return routes_.is_up(chosen) ? std::optional(chosen) : std::nullopt;
  }
  std::optional<PortId> best;
  for (const PortId port : routes_.ports(c)) {
    if (port == call.ingress || !routes_.is_up(port) || call.port(port).kind == PortKind::kHost) {
      continue;
    }
    if (table.group.find(port) != kNoPath) {
      best = port;
      break;
    }
    if (!best || groups_.groups_over(port) < groups_.groups_over(*best)) best = port;
  }
  if (best) chosen = *best;
  return best;
}

GroupEntry* Registrar::find_commanded(Call& call, const MrpRequest& request) {
  GroupEntry* entry = groups_.find(request.id());
  if (entry == nullptr) {
    call.count(groups_.find_tombstone(request.id()) != nullptr ? Counter::kDropMrpStale
                                                               : Counter::kDropUnknownGroup);
    return nullptr;
  }
  const bool by_leaders_port = (entry->current && leads_to(entry->current->group, call.ingress)) ||
                               (entry->pending && leads_to(entry->pending->group, call.ingress));
  if (entry->leader == request.leader() && by_leaders_port) return entry;
  call.count(Counter::kDropMrpForeign);
  return nullptr;
}

void Registrar::on_activate(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpActivate);
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return;
  if (entry->pending && entry->pending->group.epoch == request.epoch()) {
    const Path& leader = entry->pending->group.paths[entry->pending->group.leader];
    if (leader.is_host && leader.qpn.value() == 0) {  // not in its own list of members
      return send_reject(call, request, MrpReject::kMalformed, {});
    }
    if (entry->current) groups_.drop(entry->current, call.out);
    entry->current = std::move(entry->pending);
    entry->current->chosen = {};
  }
  if (!entry->current || entry->current->group.epoch != request.epoch()) {
    return call.count(Counter::kDropMrpStale);
  }
  touch(call, *entry);
  const Group& group = entry->current->group;
  pass_on(call, request, group.paths, group.leader, Reach::kAll);
}

void Registrar::on_unregister(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpUnregister);
  if (const Tombstone* stone = groups_.find_tombstone(request.id())) {
    // A repeat: those behind may have missed the first.
    if (stone->leader != request.leader() || stone->leader_path == kNoPath ||
        stone->paths[stone->leader_path].port != call.ingress) {
      return call.count(Counter::kDropMrpForeign);
    }
    if (stone->epoch != request.epoch()) return call.count(Counter::kDropMrpStale);
    return pass_on(call, request, stone->paths, stone->leader_path, Reach::kAll);
  }
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return;
  const auto matches = [&](const std::unique_ptr<Registration>& table) {
    return table && table->group.epoch == request.epoch();
  };
  std::unique_ptr<Registration>* table = matches(entry->pending)   ? &entry->pending
                                         : matches(entry->current) ? &entry->current
                                                                   : nullptr;
  if (table == nullptr) return call.count(Counter::kDropMrpStale);
  const Group& group = (*table)->group;
  pass_on(call, request, group.paths, group.leader, Reach::kAll);
  const bool only_one = !entry->current || !entry->pending;
  if (only_one) {
    groups_.bury(request.id(), request.epoch(), call.now, call.out);
  } else {
    groups_.drop(*table, call.out);
  }
}

void Registrar::on_refresh(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpRefresh);
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return;
  touch(call, *entry);
  const Group& group = entry->newest();
  pass_on(call, request, group.paths, group.leader, Reach::kSwitches);
}

void Registrar::on_query(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpQuery);
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return;
  if (!entry->current || entry->current->group.epoch != request.epoch()) {
    return call.count(Counter::kDropMrpStale);
  }
  touch(call, *entry);
  const Group& group = entry->current->group;
  pass_on(call, request, group.paths, group.leader, Reach::kSwitches);
  const bool is_presence = request.message.header.flags == wire::MrpHeader::kPresence;
  const bool is_leaders_switch = call.port(call.ingress).kind == PortKind::kHost;
  report_hosts(call, routes_, entry->leader, group, std::nullopt, is_presence && is_leaders_switch);
}

void Registrar::on_port_down(Call& call) {
  const PortId down = call.ingress;
  groups_.for_each([&](McstId, GroupEntry& entry) {
    if (!entry.current) return;
    Group& group = entry.current->group;
    const PathNo path = group.find(down);
    if (path != kNoPath && path != group.leader && group.paths[path].is_host) {
      group.paths[path].was_down = true;
      group.paths[path].is_back = false;
      report_hosts(call, routes_, entry.leader, group, path);
    }
  });
}

void Registrar::on_port_up(Call& call) {
  groups_.for_each([&](McstId, GroupEntry& entry) {
    if (!entry.current) return;
    Group& group = entry.current->group;
    const PathNo path = group.find(call.ingress);
    if (path != kNoPath) group.paths[path].is_back = group.paths[path].was_down;
  });
}

void Registrar::on_evict(Call& call, const MrpRequest& request) {
  call.count(Counter::kMrpEvict);
  GroupEntry* entry = find_commanded(call, request);
  if (entry == nullptr) return;
  if (!entry->current || entry->current->group.epoch != request.epoch()) {
    return call.count(Counter::kDropMrpStale);
  }
  touch(call, *entry);
  Group& group = entry->current->group;
  pass_down(call, request, group);
  wire::MrpMessage done = request.message;
  done.member_count = 0;
  for (const wire::MrpMember& member : request.message.list()) {
    const std::optional<PortId> port = own_port(call, routes_, member.host);
    if (!port) continue;
    const PathNo path = group.find(*port);
    if (path == group.leader) continue;  // a leader that leaves unregisters
    if (path != kNoPath && group.paths[path].qpn == member.qpn) {
      call.count(Counter::kPathsEvicted);
      evict(call, groups_, group, path);
    }
    done.add(member);
    tell_evicted(call, request, *port, member);
  }
  if (done.member_count > 0) confirm_eviction(call, request, done);
}

// A leader that is gone leaves its members behind. What they have in flight may still end without
// it, if it was not the one that sent; the rest cannot be led any more.
void Registrar::age(Call& call, McstId id) {
  GroupEntry& entry = *groups_.find(id);
  if (entry.orphaned && !entry.leaderless && entry.current && !entry.pending) {
    Group& group = entry.current->group;
    if (group.paths[group.leader].is_host && group.leader != group.turn.source() &&
        group.paths.size() > 2) {
      entry.leaderless = true;
      entry.orphaned = call.now;
      const PathNo leader = std::exchange(group.leader, kNoPath);
      call.ingress = group.paths[leader].port;
      call.count(Counter::kPathsEvicted);
      evict(call, groups_, group, leader);
      return groups_.reschedule(id, entry);
    }
  }
  const bool broken = entry.orphaned.has_value();
  call.count(Counter::kStaleTableAged);
  dissolve(call, id, broken ? MrpReject::kEvicted : MrpReject::kNone);
}

void Registrar::dissolve(Call& call, McstId id, MrpReject why) {
  GroupEntry& entry = *groups_.find(id);
  for (const Registration* table : {entry.current.get(), entry.pending.get()}) {
    if (table == nullptr) continue;
    const Group& group = table->group;
    if (group.leader != kNoPath) call.ingress = group.paths[group.leader].port;
    pass_on_aged(call, entry.leader, group, why);
  }
  groups_.bury(id, entry.newest().epoch, call.now, call.out);
}

}  // namespace cepheus::fabric
