#include "switch-emulator/engine/registration/refusals.h"

#include <initializer_list>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/feedback.h"
#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/registration/registration_messages.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

wire::MrpMember member_at(const Call& call, const Path& path) {
  return {call.port(path.port).host, path.qpn};
}

// At a trunk, one of the members behind it.
std::optional<wire::MrpMember> member_at(const Call& call, const GroupInstance& table,
                                         const Path& path) {
  return path.is_host ? member_at(call, path) : table.roster.one_behind(path.port);
}

// Sends nothing if the leader has gone.
void reject_to_leader(Call& call, const Mft& mft, const Leader& leader, wire::MrpReject reason,
                      std::initializer_list<std::optional<wire::MrpMember>> members,
                      const std::optional<wire::MrpPath>& path = {}) {
  if (mft.leader == kNoPath) return;
  auto message = message_of(wire::MrpType::kReject, mft.id, mft.epoch, leader);
  message.header.flags = static_cast<std::uint16_t>(reason);
  message.path = path;
  for (const auto& member : members) {
    if (member) message.add(*member);
  }
  send_to_leader(call, mft.paths[mft.leader].port, leader, message);
  call.count(Counter::kMrpReject);
}

void note(Call& call, Group& group, WriteRefusal refusal, const Path& path) {
  refusal.host = call.port(path.port).host;
  group.own_regions().note_refusal(refusal);
}

}  // namespace

void refuse_write(Call& call, Group& group, const GroupPacket& packet, Psn psn, const Path& path) {
  const wire::Reth& reth = packet.headers.reth;
  call.count(Counter::kDropWriteRefused);
  group.own_regions().refuse_from(psn);
  note(call, group, {{}, reth.rkey, reth.virtual_address, reth.dma_length, false, 0}, path);
  // Before the NAK: if leader and source are one, it knows the member when its WRITE fails.
  reject_to_leader(call, group.tree, packet.leader, wire::MrpReject::kRemoteAccess,
                   {member_at(call, path)});
  fail_source(call, group, wire::Aeth::nak(wire::NakCode::kRemoteAccess));
}

void name_refuser(Call& call, Group& group, const GroupPacket& packet, const Path& path) {
  note(call, group, {{}, 0, 0, 0, true, 0}, path);
  reject_to_leader(call, group.tree, packet.leader, wire::MrpReject::kRemoteAccess,
                   {member_at(call, path)});
}

void refuse_regions(Call& call, const Mft& mft, const Leader& leader, const Path& path) {
  reject_to_leader(call, mft, leader, wire::MrpReject::kWriteMode, {member_at(call, path)});
}

void report_too_long(Call& call, GroupEntry& entry, PortId port) {
  GroupInstance& table = entry.table;
  const Mft& mft = table.mft;
  if (call.now < table.too_long_again || mft.leader == kNoPath) return;
  table.too_long_again = call.now + kBetweenTooLong;
  std::optional<wire::MrpPath> fits;  // 0 would mean that no limit is known
  if (const auto mtu = call.port(port).path_mtu(); mtu != 0) fits = wire::MrpPath{mtu, 0};
  const PathNo path = mft.find(port);  // none: the member was evicted meanwhile
  const auto member =
      path != kNoPath ? member_at(call, table, mft.paths[path]) : table.roster.one_behind(port);
  reject_to_leader(call, mft, entry.leader, wire::MrpReject::kTooLong, {member}, fits);
}

void report_lost_path(Call& call, const Leader& leader, const GroupInstance& table, PathNo path) {
  const Mft& mft = table.mft;
  if (mft.leader == kNoPath) return;
  CEPHEUS_SITUATION("a switch reports to the leader that a path is lost");
  reject_to_leader(call, mft, leader, wire::MrpReject::kPathLost,
                   {table.roster.one_behind(mft.paths[path].port)});
}

void report_failure(Call& call, const GroupEntry& entry, const Behaviour::Failure& failure) {
  const GroupInstance& table = entry.table;
  const auto named = [&](const Behaviour::Failure::Member& one) -> std::optional<wire::MrpMember> {
    if (one.path >= table.mft.paths.size()) return std::nullopt;
    auto member = member_at(call, table, table.mft.paths[one.path]);
    // Of the members at the leader's side a switch knows the leader alone.
    const bool is_beside_leader = one.path == table.mft.leader_trunk();
    if (is_beside_leader) CEPHEUS_RARE_SITUATION("a contribution from the leader's side differs");
    if (is_beside_leader) member = wire::MrpMember{entry.leader.host, Qpn()};
    if (!member) return std::nullopt;
    return wire::MrpMember{member->host, member->qpn, one.what, 0, one.bytes};
  };
  reject_to_leader(call, table.mft, entry.leader, failure.reason,
                   {named(failure.members[0]), named(failure.members[1])});
}

}  // namespace cepheus::fabric
