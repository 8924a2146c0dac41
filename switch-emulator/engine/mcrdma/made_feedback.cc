#include "switch-emulator/engine/mcrdma/made_feedback.h"

#include "switch-emulator/engine/group/bridging.h"
#include "wire/roce.h"

namespace cepheus::fabric {
namespace {

using wire::Opcode;
using wire::RoceHeaders;

RoceHeaders to_sender(const SenderGroup& group, Ipv4 from, Qpn qpn, Opcode opcode) {
  RoceHeaders h;
  h.ip.tos = group.tos;
  h.ip.source = from;
  h.ip.destination = group.installed.sender();
  h.udp.source_port = wire::kRoceUdpPort;
  h.bth.opcode = opcode;
  h.bth.destination_qp = qpn;
  return h;
}

void send(Call& call, PortId port, RoceHeaders headers, const AckMerge::Answer& answer) {
  headers.bth.psn = answer.psn;
  headers.aeth = answer.aeth;
  send_made(call, Counter::kFeedbackSent, port, headers);
}

}  // namespace

void send_answer(Call& call, const SenderGroup& group, const AckMerge::Answer& answer) {
  const AckMerge& merge = *group.merge;
  send(call, merge.port(),
       to_sender(group, merge.alias(), group.installed.sender_qpn, Opcode::kRcAcknowledge), answer);
}

void notify(Call& call, const SenderGroup& group) {
  const AckMerge& merge = *group.merge;
  RoceHeaders h = to_sender(group, merge.alias(), group.installed.sender_qpn, Opcode::kCnp);
  h.bth.becn = true;
  send_made(call, Counter::kEchoToSource, merge.port(), h);
}

void send_to_merge(Call& call, const SenderGroup& group, Ipv4 from, PortId out,
                   const AckMerge::Answer& answer) {
  send(call, out, to_sender(group, from, group.installed.virtual_qpn, Opcode::kRcAcknowledge),
       answer);
}

}  // namespace cepheus::fabric
