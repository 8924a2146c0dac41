#include "fabric-sim/checked/forgery.h"

#include <array>

#include "arithmetic/operation.h"
#include "fabric-sim/checked/scenario_plan.h"
#include "wire/icrc.h"
#include "wire/publication.h"
#include "wire/reduction.h"
#include "wire/roce.h"
#include "wire/sender_group.h"

namespace cepheus::sim {
namespace {

using wire::MrpType;

constexpr std::uint64_t kForgeryStream = 0xF0'26'E2'1E5;
constexpr std::uint16_t kRegion = 7;  // the only region of each member

template <typename Message>
std::vector<std::uint8_t> bytes_of(const Message& message) {
  std::vector<std::uint8_t> bytes(wire::MrpMessage::kMaxSize);
  bytes.resize(message.emit(bytes));
  return bytes;
}

}  // namespace

Forgery::Forgery(const ScenarioPlan& plan) : plan_(plan), random_(plan.seed ^ kForgeryStream) {}

std::optional<wire::Frame> Forgery::next(const Host& forger, const GroupPlan& target) {
  if (plan_.reduces) return part_of_reduction(forger, target);
  if (!target.has_one_sender) {
    if (target.region_bytes == 0) return std::nullopt;
    return publication(forger, target);
  }
  return random_.chance(0.5) ? sender_message(forger, target)
                             : to_virtual_queue_pair(forger, target);
}

// Never an INSTALL for a group of the forger itself: that is no forgery.
wire::Frame Forgery::sender_message(const Host& forger, const GroupPlan& target) {
  const wire::Ipv4 sender = address_of(target.members[target.leader]);
  const MemberPlan& somebody = one_of(target);
  wire::SenderGroupMessage m;
  constexpr std::array kTypes{MrpType::kInstall, MrpType::kRemove, MrpType::kInstalled,
                              MrpType::kReject,  MrpType::kQuery,  MrpType::kReport};
  m.header.type = random_.one_of(kTypes);
  const bool is_answer = m.header.type == MrpType::kInstalled ||
                         m.header.type == MrpType::kReject || m.header.type == MrpType::kReport;
  constexpr std::array kAnswered{MrpType::kInstall, MrpType::kRemove};
  m.header.flags = is_answer ? static_cast<std::uint16_t>(random_.one_of(kAnswered))
                             : static_cast<std::uint16_t>(random_.below(2));
  m.header.epoch = static_cast<std::uint16_t>(random_.below(3));
  m.header.seq = static_cast<std::uint16_t>(random_.between(1, 6));
  m.header.mcst_id = sender;
  m.header.instance = random_.chance(0.8) ? 1 : 2;
  m.control_port = target.control_port();
  m.addressed = address_of(somebody);
  m.virtual_qpn = wire::Qpn(virtual_qpn_of(target).value() + random_.below(2));
  m.sender_qpn = rnic::Qpn(1 + random_.below(20));
  m.start = wire::sender_group_start_psn(sender, virtual_qpn_of(target));
  m.share = random_.chance(0.5) ? wire::SenderGroupMessage::kWholeShare : random_.next() >> 3;
  m.add({random_.chance(0.3) ? forger.address() : address_of(somebody),
         rnic::Qpn(1 + random_.below(20)), static_cast<std::uint8_t>(random_.below(8)),
         target.control_port()});
  const wire::Ipv4 from = random_.chance(0.4)   ? forger.address()
                          : random_.chance(0.5) ? sender
                                                : address_of(somebody);
  const bool is_direct = random_.chance(0.2);  // to the process itself, past the switches
  return datagram(forger, from, is_answer ? sender : address_of(somebody),
                  is_direct ? target.control_port() : plan_.topology.mrp_port, bytes_of(m));
}

// Data and feedback, near the sender's window.
wire::Frame Forgery::to_virtual_queue_pair(const Host& forger, const GroupPlan& target) {
  wire::RoceHeaders h;
  h.ethernet.destination = forger.gateway();
  h.ip.source = random_.chance(0.6) ? forger.address() : address_of(one_of(target));
  h.ip.destination = address_of(one_of(target));
  h.udp.source_port = 0xC000;
  constexpr std::array kOpcodes{wire::Opcode::kRcAcknowledge, wire::Opcode::kRcAcknowledge,
                                wire::Opcode::kRcSendOnly, wire::Opcode::kCnp};
  h.bth.opcode = random_.one_of(kOpcodes);
  h.bth.destination_qp = wire::Qpn(virtual_qpn_of(target).value() + random_.below(2));
  const wire::Ipv4 sender = address_of(target.members[target.leader]);
  h.bth.psn = wire::sender_group_start_psn(sender, virtual_qpn_of(target)) + random_.below(40) - 8;
  constexpr std::array kKinds{wire::AckKind::kAck, wire::AckKind::kNak, wire::AckKind::kRnrNak};
  h.aeth.kind = random_.one_of(kKinds);
  h.aeth.value = static_cast<std::uint8_t>(random_.below(5));
  wire::Frame frame;
  h.emit(frame, 0);
  wire::seal_icrc(frame);
  return frame;
}

// A false PUBLISH moves a member's region.
wire::Frame Forgery::publication(const Host& forger, const GroupPlan& target) {
  const wire::Ipv4 member = address_of(one_of(target));
  wire::Publication p;
  p.header.type = MrpType::kPublish;
  p.header.epoch = target.epoch;
  p.header.mcst_id = target.id;
  p.header.instance = 1;
  p.header.seq = static_cast<std::uint16_t>(target.first_publication + random_.below(8));
  p.member = {random_.chance(0.8) ? member : forger.address(), rnic::Qpn(1 + random_.below(20)), 0,
              target.control_port()};
  p.regions[0] = {kRegion, static_cast<std::uint32_t>(random_.next()), 0x100000 * random_.below(9),
                  target.region_bytes};
  p.count = 1;
  const wire::Ipv4 from = random_.chance(0.5) ? forger.address() : member;
  return datagram(forger, from, target.id, plan_.topology.mrp_port, bytes_of(p));
}

// Contributions as of a host, partial results and results as of a switch, near the window and far
// from it.
wire::Frame Forgery::part_of_reduction(const Host& forger, const GroupPlan& target) {
  wire::RoceHeaders h;
  h.ethernet.destination = forger.gateway();
  h.ip.source = random_.chance(0.3)   ? forger.address()
                : random_.chance(0.7) ? address_of(one_of(target))
                                      : target.id;
  h.ip.destination = random_.chance(0.7) ? target.id : address_of(one_of(target));
  h.udp.source_port = 0xC000;
  h.bth.opcode = wire::Opcode::kRcSendOnlyImm;
  h.bth.destination_qp = random_.chance(0.5)   ? wire::kVirtualQpn
                         : random_.chance(0.5) ? wire::Qpn(target.epoch)
                                               : wire::Qpn(random_.below(32));
  h.bth.ack_request = random_.chance(0.5);
  const std::uint32_t unit = random_.chance(0.8) ? random_.below(60) : random_.below(1u << 24);
  h.bth.psn = wire::group_start_psn(target.id, target.epoch) + unit;
  h.imm.value =
      wire::ReductionImm{static_cast<std::uint8_t>(random_.below(arithmetic::kOperations + 1)),
                         static_cast<std::uint8_t>(random_.below(arithmetic::kTypes + 1)),
                         static_cast<std::uint8_t>(target.epoch), static_cast<std::uint16_t>(unit)}
          .value();
  const std::array<std::uint8_t, 16> garbage{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  wire::Frame frame;
  const auto payload = std::span(garbage).first(4 * random_.below(5));
  h.emit(frame, payload.size());
  frame.set_inline_payload(payload);
  wire::seal_icrc(frame);
  return frame;
}

wire::Frame Forgery::datagram(const Host& forger, wire::Ipv4 from, wire::Ipv4 to,
                              std::uint16_t port, std::vector<std::uint8_t> payload) {
  payloads_.push_back(std::move(payload));
  wire::UdpDatagram datagram;
  datagram.ethernet.destination = forger.gateway();
  datagram.ip.source = from;
  datagram.ip.destination = to;
  datagram.udp.source_port = random_.chance(0.3) ? plan_.topology.mrp_port : std::uint16_t{50000};
  datagram.udp.destination_port = port;
  wire::Frame frame;
  datagram.emit(frame, payloads_.back());
  return frame;
}

}  // namespace cepheus::sim
