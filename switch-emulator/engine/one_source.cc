#include "switch-emulator/engine/one_source.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/feedback.h"
#include "switch-emulator/engine/replication.h"

namespace cepheus::fabric {
namespace {

Disposition take(Call& call, Group& group, const GroupPacket& packet) {
  const wire::Opcode opcode = packet.headers.bth.opcode;
  const wire::OpcodeInfo& info = wire::opcode_info(opcode);
  const bool is_host = group.paths[packet.path].is_host;
  // What a host sends goes to the virtual QP; between switches, feedback is what comes from the
  // McstID.
  const bool is_feedback = opcode == wire::Opcode::kRcAcknowledge || opcode == wire::Opcode::kCnp;
  const bool to_group = packet.headers.ip.destination == group.id;
  if (is_host ? packet.headers.bth.destination_qp != wire::kVirtualQpn : is_feedback == to_group) {
    call.count(Counter::kDropMalformed);
  } else if (opcode == wire::Opcode::kRcAcknowledge) {
    take_feedback(call, group, packet.path, packet.headers);
  } else if (opcode == wire::Opcode::kCnp) {
    take_cnp(call, group, packet);
  } else if (info.multicastable() && (info.write || (info.send && !info.ieth))) {
    return replicate(call, group, packet);
  } else if (info.request() && service_of(opcode) == wire::Service::kRc) {
    refuse_operation(call, group, packet);
  } else {
    call.count(Counter::kDropNotMulticastable);
  }
  return Disposition::kDone;
}

}  // namespace

Disposition OneSource::on_packet(Call& call, Group& group, const GroupPacket& packet) const {
  const Disposition disposition = take(call, group, packet);
  try_gate(call, group);
  return disposition;
}

void OneSource::on_path_left(Call& call, Group& group) const {
  recheck(call, group);
  try_gate(call, group);
}

}  // namespace cepheus::fabric
