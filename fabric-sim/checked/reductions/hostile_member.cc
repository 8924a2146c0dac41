#include "fabric-sim/checked/reductions/hostile_member.h"

#include <algorithm>
#include <array>

#include "wire/icrc.h"
#include "wire/roce.h"

namespace cepheus::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kHostileStream = 0x8'057'11E'5;
constexpr std::uint32_t kSpoilers = bit(Attack::kGarbage) | bit(Attack::kOtherShapes) |
                                    bit(Attack::kAhead) | bit(Attack::kContributions);
constexpr std::size_t kMostFrames = 600;

}  // namespace

HostileMember::HostileMember(Simulator& simulator, Network& network, const ScenarioPlan& plan,
                             const IncidentPlan& incident, ReductionLedger& ledger,
                             std::size_t member)
    : simulator_(simulator),
      host_(network.host(incident.host)),
      plan_(plan),
      incident_(incident),
      ledger_(ledger),
      member_(member),
      random_(plan.seed ^ kHostileStream) {
  host_.set_tamper(this);
  simulator_.schedule(Instant{incident.at}, *this, 0);
}

void HostileMember::begin(Instant now) {
  has_begun_ = true;
  simulator_.trace().note(now, host_.name(), "attacks its reductions by", incident_.attacks);
  const ReductionLedger::Hostile hostile{member_, host_.address().to_string(),
                                         (incident_.attacks & kSpoilers) != 0};
  ledger_.on_hostile(hostile);
}

void HostileMember::on_event(Instant now, std::uint64_t) {
  if (host_.is_dead()) return;
  if (!has_begun_) begin(now);
  flood(now);
  if (is_over(now) || payloads_.size() >= kMostFrames) return;
  simulator_.schedule(now + random_.between(2us, 40us), *this, 0);
}

void HostileMember::flood(Instant) {
  const std::uint64_t window = ledger_.plan().reduction.window;
  if (does(Attack::kAhead)) send_contribution(ahead_ = std::max(ahead_ + 1, unit_ + 1));
  if (does(Attack::kContributions)) {
    const bool is_near = random_.chance(0.8);
    send_contribution(unit_ + (is_near ? random_.below(2 * window + 4) : random_.below(1u << 24)) -
                      std::min<std::uint64_t>(unit_, 4));
  }
  if (does(Attack::kFeedback)) send_feedback();
  if (does(Attack::kRegistration)) send_registration();
}

bool HostileMember::tamper(Instant, wire::Frame& frame, std::span<std::uint8_t> buffer) {
  const GroupPlan& group = ledger_.plan().group;
  auto headers = wire::RoceHeaders::parse(frame);
  if (!headers || headers->ip.destination != group.id) return true;
  if (headers->bth.opcode == wire::Opcode::kRcAcknowledge) {
    return !has_begun_ || !does(Attack::kNoAnswers);
  }
  if (headers->bth.opcode != wire::Opcode::kRcSendOnlyImm) return true;
  const std::int32_t steps = distance(wire::group_start_psn(group.id, group.epoch) +
                                          static_cast<std::int32_t>(unit_ & wire::Psn::kMask),
                                      headers->bth.psn);
  if (steps > 0) unit_ += static_cast<std::uint64_t>(steps);
  imm_ = wire::ReductionImm::from(headers->imm.value);
  bytes_ = static_cast<std::uint16_t>(frame.payload_len - headers->bth.pad_count);
  if (!has_begun_) return true;
  if (does(Attack::kGarbage)) {
    const auto payload = frame.external != nullptr
                             ? buffer.first(frame.payload_len)
                             : std::span(frame.bytes).subspan(frame.header_len, frame.payload_len);
    for (std::uint8_t& byte : payload) byte = static_cast<std::uint8_t>(random_.next());
  }
  const bool has_icrc = frame.icrc_state == wire::Icrc::kPresent;
  alter(*headers);
  headers->emit(frame, frame.payload_len);
  if (has_icrc) wire::seal_icrc(frame);
  return true;
}

void HostileMember::alter(wire::RoceHeaders& headers) {
  auto imm = wire::ReductionImm::from(headers.imm.value);
  if (does(Attack::kOtherShapes) && random_.chance(0.2)) {
    if (random_.chance(0.3)) imm.operation = static_cast<std::uint8_t>(random_.below(16));
    if (random_.chance(0.3)) imm.type = static_cast<std::uint8_t>(random_.below(16));
    if (random_.chance(0.5)) headers.bth.pad_count = static_cast<std::uint8_t>(random_.below(4));
  }
  if (does(Attack::kOtherEpochs) && random_.chance(0.5)) {
    imm.epoch = static_cast<std::uint8_t>(imm.epoch + 1);
    if (random_.chance(0.3)) headers.bth.destination_qp = wire::Qpn(imm.epoch);
  }
  headers.imm.value = imm.value();
}

wire::RoceHeaders HostileMember::headers_to_group(wire::Opcode opcode, std::uint64_t unit) const {
  const GroupPlan& group = ledger_.plan().group;
  wire::RoceHeaders h;
  h.ethernet.destination = host_.gateway();
  h.ip.source = host_.address();
  h.ip.destination = group.id;
  h.udp.source_port = 0xC000;
  h.bth.opcode = opcode;
  h.bth.destination_qp = wire::kVirtualQpn;
  h.bth.psn = wire::group_start_psn(group.id, group.epoch) +
              static_cast<std::int32_t>(unit & wire::Psn::kMask);
  return h;
}

void HostileMember::send_contribution(std::uint64_t unit) {
  wire::RoceHeaders h = headers_to_group(wire::Opcode::kRcSendOnlyImm, unit);
  h.bth.ack_request = random_.chance(0.5);
  wire::ReductionImm imm = imm_;
  std::size_t bytes = bytes_;
  if (random_.chance(0.1)) {
    // Often a sum of floating-point numbers, or a part of a value.
    imm.operation = static_cast<std::uint8_t>(random_.below(arithmetic::kOperations + 1));
    if (random_.chance(0.5)) {
      imm.type = static_cast<std::uint8_t>(random_.below(arithmetic::kTypes + 1));
    }
    bytes = random_.below(plan_.transport.path_mtu + 1);
  }
  imm.epoch = static_cast<std::uint8_t>(ledger_.plan().group.epoch);
  imm.unit = static_cast<std::uint16_t>(unit);
  h.imm.value = imm.value();
  std::vector<std::uint8_t>& payload = payloads_.emplace_back((bytes + 3) / 4 * 4);
  h.bth.pad_count = static_cast<std::uint8_t>(payload.size() - bytes);
  for (std::uint8_t& byte : payload) byte = static_cast<std::uint8_t>(random_.next());
  wire::Frame frame;
  h.emit(frame, payload.size());
  frame.set_external_payload(payload, wire::kNoBuffer);
  wire::seal_icrc(frame);
  host_.send_frame(frame);
}

// About results that it has, has not, and that nobody has sent.
void HostileMember::send_feedback() {
  const std::uint64_t window = ledger_.plan().reduction.window;
  const bool is_cnp = random_.chance(0.1);
  wire::RoceHeaders h =
      headers_to_group(is_cnp ? wire::Opcode::kCnp : wire::Opcode::kRcAcknowledge,
                       unit_ + 4 - random_.below(random_.chance(0.5) ? 8 : window + 8));
  constexpr std::array kKinds{wire::AckKind::kAck, wire::AckKind::kNak, wire::AckKind::kNak,
                              wire::AckKind::kRnrNak, wire::AckKind::kRnrNak};
  h.aeth.kind = random_.one_of(kKinds);
  const bool is_nak = h.aeth.kind == wire::AckKind::kNak;
  h.aeth.value = static_cast<std::uint8_t>(is_nak && random_.chance(0.95) ? 0 : random_.below(20));
  wire::Frame frame;
  h.emit(frame, 0);
  wire::seal_icrc(frame);
  payloads_.emplace_back();
  host_.send_frame(frame);
}

// In its own name, about itself and others. Never a REGISTER: the first leader of an identifier owns
// it, and groups that the member leads are no attack.
void HostileMember::send_registration() {
  const GroupPlan& group = ledger_.plan().group;
  const MemberPlan& somebody = group.members[random_.below(group.members.size())];
  const std::size_t host = random_.chance(0.5) ? somebody.host : incident_.host;
  wire::MrpMessage message;
  message.header.type = random_.chance(0.1) ? wire::MrpType::kConnect
                                            : static_cast<wire::MrpType>(random_.between(2, 13));
  message.header.flags = static_cast<std::uint16_t>(random_.below(23));
  message.header.epoch = group.epoch;
  message.header.mcst_id = group.id;
  message.header.instance = random_.chance(0.8) ? 1 : 2;
  message.add({plan_.topology.hosts[host].address, rnic::Qpn(1 + random_.below(20)),
               static_cast<std::uint8_t>(random_.below(16)), group.control_port()});
  payloads_.emplace_back();
  host_.send_datagram(message, group.control_port());
}

}  // namespace cepheus::sim
