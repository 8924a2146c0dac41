#include "switch-emulator/engine/registration/answers.h"

#include <algorithm>

#include "switch-emulator/engine/registration/registration_messages.h"
#include "switch-emulator/engine/registration/shares.h"
#include "wire/situation.h"

namespace cepheus::fabric {

using wire::MrpReject;
namespace {

wire::MrpType step_of(const wire::MrpHeader& confirm) {
  return static_cast<wire::MrpType>(confirm.flags & ~wire::MrpHeader::kHostSync);
}

// A CONFIRM that switches merge; the CONFIRM of EVICT comes from a switch itself.
bool is_of_members(const wire::MrpHeader& header) {
  if (header.type != wire::MrpType::kConfirm) return false;
  switch (step_of(header)) {
    case wire::MrpType::kRegister:
    case wire::MrpType::kConnect:
    case wire::MrpType::kActivate:
    case wire::MrpType::kUnregister:
      return true;
    default:
      return false;
  }
}

bool is_version_refusal(const wire::MrpHeader& header) {
  return header.type == wire::MrpType::kReject &&
         header.flags == static_cast<std::uint16_t>(MrpReject::kVersion);
}

// Hosts send only about themselves; switches send REPORT, and name the evicted.
bool may_be_from_host(const MrpRequest& answer) {
  const auto list = answer.message.list();
  const auto is_itself = [&](const wire::MrpMember& m) {
    return m.host == answer.datagram.ip.source;
  };
  const wire::MrpHeader& header = answer.message.header;
  if (answer.message.tree) return false;
  if (list.empty()) return is_version_refusal(header);  // the leader can't read the list
  return list.size() == 1 && is_itself(list[0]) && header.type != wire::MrpType::kReport &&
         (header.type != wire::MrpType::kConfirm || is_of_members(header));
}

void count_kind(Call& call, wire::MrpType type) {
  if (type == wire::MrpType::kConfirm) call.count(Counter::kMrpConfirm);
  if (type == wire::MrpType::kReject) call.count(Counter::kMrpReject);
  if (type == wire::MrpType::kComplain) call.count(Counter::kMrpComplain);
}

bool is_on(const Roster& roster, const MrpRequest& answer) {
  const auto list = answer.message.list();
  return list.empty() ? roster.find(answer.datagram.ip.source) != nullptr
                      : roster.find(list[0]) != nullptr;
}

// A host that waits for a leader can't know that the leader does not get its questions.
void reject_complaint(Call& call, const MrpRequest& answer, MrpReject why) {
  if (answer.message.header.type == wire::MrpType::kComplain) send_reject(call, answer, why, {});
}

// Members in one CONFIRM to the leader's side. Before ACTIVATE it has the tree of a reduction group's
// members, because the next switch has to know all. Then the leader gets what other members get by
// ACTIVATE.
std::size_t most_in_confirm(const GroupEntry* entry, const Roster& roster) {
  if (entry == nullptr || !entry->table.kind.reduction) return wire::MrpMessage::kMaxMembers;
  const bool is_to_leader = entry->table.mft.leader_trunk() == kNoPath;
  const bool has_tree =
      is_to_leader ? roster.step() == wire::MrpType::kActivate : roster.has_all_names();
  return has_tree ? wire::MrpMessage::kMaxWithReduction : wire::MrpMessage::kMaxMembers;
}

bool is_host_sync(const wire::MrpHeader& header) {
  return (header.flags & wire::MrpHeader::kHostSync) != 0;
}

}  // namespace

std::optional<Answers::Party> Answers::find(McstId id, std::uint16_t epoch) {
  if (Tombstone* stone = groups_.find_tombstone(id)) {
    if (stone->epoch != epoch) return std::nullopt;
    return Party{stone->roster, stone->leader, stone->leader_port, stone->by_switch, nullptr};
  }
  GroupEntry* entry = groups_.find(id);
  if (entry == nullptr || entry->table.mft.epoch != epoch) return std::nullopt;
  const Mft& mft = entry->table.mft;
  const PortId port = mft.leader == kNoPath ? PortId() : mft.paths[mft.leader].port;
  return Party{entry->table.roster, entry->leader, port, false, entry};
}

void Answers::on_answer(Call& call, const MrpRequest& answer) {
  const bool from_host = call.port(call.ingress()).kind == PortKind::kHost;
  if (from_host && !may_be_from_host(answer)) return call.count(Counter::kDropMrpForged);
  const auto party = find(answer.id(), answer.epoch());
  const wire::MrpHeader& header = answer.message.header;
  count_kind(call, header.type);
  if (!party) {
    call.count(Counter::kDropUnknownGroup);
    if (from_host) reject_complaint(call, answer, MrpReject::kNotMember);
    return;
  }
  if (party->leader.instance != header.instance) {
    call.count(Counter::kDropMrpForeign);
    if (from_host) reject_complaint(call, answer, MrpReject::kNotMember);
    return;
  }
  if (is_of_members(header)) {
    merge(call, answer, *party);
    return confirm_due(call, answer.id(), answer.epoch());
  }
  if (from_host && party->by_switch) {
    CEPHEUS_RARE_SITUATION("COMPLAIN comes for a group that its switch has ended");
    return reject_complaint(call, answer, MrpReject::kNotMember);
  }
  if (from_host && !is_on(party->roster, answer)) {
    call.count(Counter::kDropNotMember);
    return reject_complaint(call, answer, MrpReject::kEvicted);
  }
  // The leader sends nothing to itself, so answers from its side are in a loop.
  if (call.ingress() == party->towards_leader) return call.count(Counter::kDropNotMember);
  if (party->towards_leader == PortId()) return;
  // Each switch sends the least of its own ways and those behind it.
  if (header.type == wire::MrpType::kReport && answer.message.path) {
    if (party->entry == nullptr) return call.count(Counter::kDropMrpStale);
    party->roster.set_path(call.ingress(), *answer.message.path);
    return report_path_change(call, groups_, *party->entry);
  }
  pass_up(call, answer, party->towards_leader, party->leader);
}

void Answers::merge(Call& call, const MrpRequest& confirm, const Party& party) {
  const wire::MrpHeader& header = confirm.message.header;
  Roster& roster = party.roster;
  if (step_of(header) != roster.step()) {
    CEPHEUS_SITUATION("a member confirms a step that its switch has left behind");
    return call.count(Counter::kDropMrpStale);
  }
  std::size_t known = 0;
  for (const wire::MrpMember& m : confirm.message.list()) {
    if (roster.confirm(m, call.ingress(), is_host_sync(header))) ++known;
  }
  if (known == 0) return call.count(Counter::kDropNotMember);
  if (confirm.message.path) roster.set_path(call.ingress(), *confirm.message.path);
  if (confirm.message.tree && party.entry != nullptr && roster.has_all_names()) {
    const Mft& mft = party.entry->table.mft;
    const PathNo path = mft.find(call.ingress());
    if (path != kNoPath) mft.behaviour->on_tree(path, *confirm.message.tree);
  }
  // A member that never answers is dead, and the source's time-outs have to show it soon.
  const bool all_are_active =
      roster.step() == wire::MrpType::kActivate && roster.awaited() == 0 && party.entry != nullptr;
  if (!all_are_active) return;
  const Mft& mft = party.entry->table.mft;
  for (PathNo i = 0; i < mft.paths.size(); ++i) {
    mft.behaviour->on_round_trip(i, call.now - party.entry->table.activated, true);
  }
}

void Answers::confirm_due(Call& call, McstId id, std::uint16_t epoch) {
  const auto party = find(id, epoch);
  if (!party) return;
  Roster& roster = party->roster;
  const std::size_t most = most_in_confirm(party->entry, roster);
  const std::size_t ready = roster.ready(), in_full_ones = ready - ready % most;
  send_confirms(call, id, epoch, *party, roster.awaited() == 0 ? ready : in_full_ones);
  if (roster.ready() == 0 || roster.is_timed) return;
  roster.is_timed = true;
  due_.push_back({call.now + call.config.confirm_wait, id, epoch});
}

void Answers::on_timer(Call& call) {
  while (!due_.empty() && due_.front().at <= call.now) {
    const Due due = due_.front();
    due_.pop_front();
    const auto party = find(due.id, due.epoch);
    if (!party) continue;
    Roster& roster = party->roster;
    if (roster.ready() > 0 && roster.awaited() > 0)
      CEPHEUS_SITUATION("a switch confirms for some members, and awaits others");
    roster.is_timed = false;
    send_confirms(call, due.id, due.epoch, *party, roster.ready());
  }
}

void Answers::send_confirms(Call& call, McstId id, std::uint16_t epoch, const Party& party,
                            std::size_t members) {
  if (members == 0) return;
  auto message = message_of(wire::MrpType::kConfirm, id, epoch, party.leader);
  const auto step = static_cast<std::uint16_t>(party.roster.step());
  const std::size_t most = most_in_confirm(party.entry, party.roster);
  if (party.entry != nullptr) {
    GroupInstance& table = party.entry->table;
    table.reported = path_of(groups_, *party.entry);
    if (table.reported != wire::MrpPath()) message.path = table.reported;
    if (most < wire::MrpMessage::kMaxMembers) {
      message.tree = table.mft.behaviour->tree_for(call, table.mft.leader);
    }
  }
  // Members of switches that do not rebase are listed separately, because the flag holds for a
  // whole datagram.
  std::array<wire::MrpMessage, 2> of_kind{message, message};
  of_kind[0].header.flags = step;
  of_kind[1].header.flags = step | wire::MrpHeader::kHostSync;
  const auto send = [&](wire::MrpMessage& m) {
    if (m.member_count > 0 && party.towards_leader != PortId()) {
      send_to_leader(call, party.towards_leader, party.leader, m);
    }
    m.member_count = 0;
  };
  party.roster.take_ready(members, [&](const Roster::Member& member) {
    wire::MrpMessage& m = of_kind[member.host_sync ? 1 : 0];
    m.add(member.name());
    if (m.member_count == most) send(m);
  });
  for (wire::MrpMessage& m : of_kind) send(m);
  if (party.entry != nullptr && !party.entry->is_active) {
    party.entry->table.confirmed = call.now;
  }
}

}  // namespace cepheus::fabric
