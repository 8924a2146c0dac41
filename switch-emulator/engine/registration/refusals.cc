#include "switch-emulator/engine/registration/refusals.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/feedback.h"
#include "switch-emulator/engine/registration/registration_messages.h"

namespace cepheus::fabric {
namespace {

// Before the NAK: if leader and source are one, it knows the member when its WRITE fails.
void reject_to_leader(Call& call, const Group& group, const Leader& leader, const Path& path,
                      wire::MrpReject reason) {
  if (group.leader == kNoPath) return;
  wire::MrpMessage message;
  message.header.type = wire::MrpType::kReject;
  message.header.flags = static_cast<std::uint16_t>(reason);
  message.header.epoch = group.epoch;
  message.header.mcst_id = group.id;
  message.header.instance = leader.instance;
  message.add({call.port(path.port).host, path.qpn});
  send_to_leader(call, group.paths[group.leader].port, leader, message);
  call.count(Counter::kMrpReject);
}

void note(Call& call, OneSource& group, WriteRefusal refusal, const Path& path) {
  refusal.host = call.port(path.port).host;
  group.own_regions().note_refusal(refusal);
}

}  // namespace

void refuse_write(Call& call, OneSource& group, const GroupPacket& packet, Psn psn,
                  const Path& path) {
  const wire::Reth& reth = packet.headers.reth;
  call.count(Counter::kDropWriteRefused);
  group.own_regions().refuse_from(psn);
  note(call, group, {{}, reth.rkey, reth.virtual_address, reth.dma_length, false, 0}, path);
  reject_to_leader(call, group.tree, packet.leader, path, wire::MrpReject::kRemoteAccess);
  fail_source(call, group, wire::Aeth::nak(wire::NakCode::kRemoteAccess));
}

void name_refuser(Call& call, OneSource& group, const GroupPacket& packet, const Path& path) {
  note(call, group, {{}, 0, 0, 0, true, 0}, path);
  reject_to_leader(call, group.tree, packet.leader, path, wire::MrpReject::kRemoteAccess);
}

void refuse_regions(Call& call, const Group& group, const Leader& leader, const Path& path) {
  reject_to_leader(call, group, leader, path, wire::MrpReject::kWriteMode);
}

}  // namespace cepheus::fabric
