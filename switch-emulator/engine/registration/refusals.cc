#include "switch-emulator/engine/registration/refusals.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/feedback.h"
#include "switch-emulator/engine/group_table.h"
#include "switch-emulator/engine/registration/registration_messages.h"

namespace cepheus::fabric {
namespace {

wire::MrpMember member_at(const Call& call, const Path& path) {
  return {call.port(path.port).host, path.qpn};
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
                   member_at(call, path));
  fail_source(call, group, wire::Aeth::nak(wire::NakCode::kRemoteAccess));
}

void name_refuser(Call& call, Group& group, const GroupPacket& packet, const Path& path) {
  note(call, group, {{}, 0, 0, 0, true, 0}, path);
  reject_to_leader(call, group.tree, packet.leader, wire::MrpReject::kRemoteAccess,
                   member_at(call, path));
}

void refuse_regions(Call& call, const Mft& mft, const Leader& leader, const Path& path) {
  reject_to_leader(call, mft, leader, wire::MrpReject::kWriteMode, member_at(call, path));
}

void report_too_long(Call& call, GroupEntry& entry, PortId port) {
  GroupInstance& table = entry.table;
  const Mft& mft = table.mft;
  if (call.now < table.too_long_again || mft.leader == kNoPath) return;
  table.too_long_again = call.now + kBetweenTooLong;
  std::optional<wire::MrpPath> fits;  // 0 would mean that no limit is known
  if (const auto mtu = call.port(port).path_mtu(); mtu != 0) fits = wire::MrpPath{mtu, 0};
  const PathNo path = mft.find(port);  // none: the member was evicted meanwhile
  const bool is_host = path != kNoPath && mft.paths[path].is_host;
  const auto member = is_host ? member_at(call, mft.paths[path]) : table.roster.one_behind(port);
  reject_to_leader(call, mft, entry.leader, wire::MrpReject::kTooLong, member, fits);
}

void reject_to_leader(Call& call, const Mft& mft, const Leader& leader, wire::MrpReject reason,
                      const std::optional<wire::MrpMember>& member,
                      const std::optional<wire::MrpPath>& path) {
  if (mft.leader == kNoPath) return;
  auto message = message_of(wire::MrpType::kReject, mft.id, mft.epoch, leader);
  message.header.flags = static_cast<std::uint16_t>(reason);
  message.path = path;
  if (member) message.add(*member);
  send_to_leader(call, mft.paths[mft.leader].port, leader, message);
  call.count(Counter::kMrpReject);
}

}  // namespace cepheus::fabric
