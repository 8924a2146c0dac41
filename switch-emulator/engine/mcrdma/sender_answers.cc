#include "switch-emulator/engine/mcrdma/sender_answers.h"

#include "switch-emulator/engine/eviction.h"
#include "switch-emulator/engine/mcrdma/install_message.h"
#include "switch-emulator/engine/registration/refusals.h"
#include "switch-emulator/engine/registration/signed_datagram.h"

namespace cepheus::fabric {

using net::PortKind;
using wire::MrpMember;
using wire::MrpReject;
using wire::MrpType;
using wire::SenderGroupMessage;

void SenderAnswers::on_query(Call& call, const SenderGroupMessage& message) {
  call.count(Counter::kMrpQuery);
  const SenderGroup* group = groups_.find_merge({message.sender(), message.virtual_qpn});
  if (group == nullptr || group->installed.header.instance != message.header.instance) {
    return call.count(Counter::kDropUnknownGroup);
  }
  SenderGroupMessage report = message_to_sender(group->installed, MrpType::kReport);
  for (const AckMerge::Receiver& one : group->merge->receivers()) {
    const auto port = own_port(call, routes_, one.host);
    const bool is_down = port && !routes_.is_up(*port);
    if (!is_down && !group->merge->lags(one)) continue;
    std::uint8_t flags = is_down ? wire::kMemberDown : 0;
    if (group->merge->lags(one)) {
      flags |= group->merge->is_silent(call.now, one) ? wire::kMemberOwes : wire::kMemberLate;
    }
    report.add({one.host, Qpn(one.packets), flags});
  }
  send_to_sender(call, report, group->tos);
  call.count(Counter::kMrpReport);
}

void SenderAnswers::on_answer(Call& call, const Frame& frame, const wire::UdpDatagram& datagram,
                              const SenderGroupMessage& message) {
  const bool is_own = is_from_sender(call) && message.receiver_count == 1 &&
                      message.receivers[0].host == call.port(call.ingress()).host;
  if (!is_own || datagram.ip.destination != message.sender()) {
    return call.count(Counter::kDropMrpForged);
  }
  const auto out = routes_.next_hop(datagram.ip.destination, 0, call.ingress());
  if (!out) return call.count(Counter::kDropNoRoute);
  wire::UdpDatagram passed = datagram;
  passed.ethernet = {call.port(*out).peer_mac, config_.mac};
  if (passed.ip.ttl <= 1) return call.lose(Counter::kMrpSent, Counter::kDropCopyTtl);
  --passed.ip.ttl;
  address_process(call, message.control_port, passed.udp);
  Frame copy;
  passed.emit(copy, frame.payload(), frame.ref);
  call.emit(Counter::kMrpSent, *out, copy);
}

// During set-up one unreachable receiver keeps this switch from installing the group. In operation
// a receiver with its port down here has gone; others may become reachable again.
void SenderAnswers::report_cut_off(Call& call, const SenderGroupMessage& message,
                                   const MrpMember& receiver, std::uint8_t tos) {
  call.count(Counter::kSenderUnreachable);
  const auto route = routes_.find(receiver.host);
  const bool is_here = route && call.port(routes_.ports(*route).front()).kind == PortKind::kHost;
  const bool is_fresh = (message.header.flags & SenderGroupMessage::kFresh) != 0;
  // Without HELLOs the sender's switch sends INSTALL over dead paths as well, beside those that
  // reach the receiver.
  if (!is_fresh && !is_here && config_.hello.count() == 0) return;
  if (is_fresh || !is_here) return reject(call, message, MrpReject::kNoRoute, &receiver, tos);
  report_down(call, message, receiver.host, tos);
}

void SenderAnswers::report_down(Call& call, const SenderGroupMessage& installed, Ipv4 host,
                                std::uint8_t tos) {
  SenderGroupMessage report = message_to_sender(installed, MrpType::kReport);
  report.add({host, Qpn(), wire::kMemberDown});
  send_to_sender(call, report, tos);
  call.count(Counter::kMrpReport);
}

void SenderAnswers::send_to(Call& call, Ipv4 destination, wire::UdpDatagram datagram,
                            const SenderGroupMessage& message) {
  datagram.ip.destination = destination;
  const auto out = routes_.next_hop(destination, 0, PortId());
  if (!out) return call.count(Counter::kSenderUnreachable);
  send_signed(call, *out, datagram, message);
}

void SenderAnswers::send_to_sender(Call& call, SenderGroupMessage& message, std::uint8_t tos) {
  wire::UdpDatagram datagram;
  datagram.ip.tos = tos;
  datagram.ip.source = config_.address;
  address_process(call, message.control_port, datagram.udp);
  send_to(call, message.sender(), datagram, message);
}

void SenderAnswers::report_too_long(Call& call, SenderGroup& group, std::uint8_t receiver) {
  if (call.now < group.too_long_again) return;
  group.too_long_again = call.now + kBetweenTooLong;
  reject(call, group.installed, MrpReject::kTooLong, &group.installed.receivers[receiver],
         group.tos);
}

void SenderAnswers::reject(Call& call, const SenderGroupMessage& message, MrpReject reason,
                           const MrpMember* about, std::uint8_t tos) {
  SenderGroupMessage answer = message_to_sender(message, MrpType::kReject);
  answer.header.flags = static_cast<std::uint16_t>(reason);
  if (about != nullptr) answer.add(*about);
  send_to_sender(call, answer, tos);
  call.count(Counter::kMrpReject);
}

}  // namespace cepheus::fabric
