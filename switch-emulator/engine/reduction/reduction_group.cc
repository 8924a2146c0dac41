#include "switch-emulator/engine/reduction/reduction_group.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/reduction/hop_packets.h"
#include "wire/ecn.h"
#include "wire/icrc.h"
#include "wire/reduction.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

using wire::AckKind;
using wire::Aeth;
using wire::MrpReject;
using wire::NakCode;

// Of a contribution that comes before its slot is free: only a member that ignores its credit sends
// one (0.64 ms).
constexpr std::uint8_t kBusyTimer = 12;

std::uint16_t length_of(const GroupPacket& packet) {  // without the pad
  return static_cast<std::uint16_t>(packet.frame.payload_len - packet.headers.bth.pad_count);
}

// The packet's payload with its pad. It is checked in `copy`, because its writer can still change the
// original. Empty if the copy's ICRC is wrong. Without an ICRC there is nothing to check, and the
// original is read once. A payload that is longer than any unit is not copied, and only refused.
using Payload = std::array<std::uint8_t, wire::MrpReduction::kMostUnit + 4>;
std::optional<std::span<const std::uint8_t>> checked_payload(const GroupPacket& packet,
                                                             Payload& copy) {
  const auto payload = packet.frame.payload();
  if (packet.frame.icrc_state == wire::Icrc::kDeferred || payload.size() > copy.size()) {
    return wire::check_icrc(packet.frame) ? std::optional(payload) : std::nullopt;
  }
  if (!payload.empty()) std::memcpy(copy.data(), payload.data(), payload.size());
  Frame frame = packet.frame;
  frame.set_external_payload({copy.data(), payload.size()}, wire::kNoBuffer);
  if (!wire::check_icrc(frame)) return std::nullopt;
  return std::span<const std::uint8_t>(copy).first(payload.size());
}

}  // namespace

MrpReject ReductionGroup::refusal(const GroupRequest& request) {
  const wire::MrpReduction& wanted = *request.reduction;
  if (!wanted.has_known_kind()) return MrpReject::kNotServed;
  const bool loss_ends = (request.flags & wire::MrpHeader::kLossEnds) != 0;
  if (!wanted.is_valid() || !loss_ends) return MrpReject::kMalformed;
  const bool fits = UnitSlots::bytes_for(wanted, kFewestPaths) <= request.memory_left;
  return fits ? MrpReject::kNone : MrpReject::kNoMemory;
}

ReductionGroup::ReductionGroup(const Mft& mft, const SwitchConfig& config,
                               const wire::MrpReduction& reduction)
    : tree_(mft),
      start_(wire::group_start_psn(mft.id, mft.epoch)),
      probe_wait_(config.reduction_probe),
      slots_(reduction) {}

void ReductionGroup::on_packet(Call& call, const GroupPacket& packet) {
  if (has_failed_) return call.count(Counter::kDropReductionFailed);
  HopPackets packets(call, tree_, parent(), start_, traffic_class_);
  if (!packets.is_addressed_well(packet)) return call.count(Counter::kDropMalformed);
  const wire::Opcode opcode = packet.headers.bth.opcode;
  if (opcode == wire::Opcode::kCnp) {
    take_marks(call, packets, packet);
    note_life(call, packet.path);
    return call.count(Counter::kFeedbackTaken);
  }
  if (opcode == wire::Opcode::kRcAcknowledge) {
    take_marks(call, packets, packet);
    return take_answer(call, packets, packet);
  }
  // A damaged packet says nothing, and a refusal would end its sender's connection.
  Payload copy;
  const auto payload = checked_payload(packet, copy);
  if (!payload) return call.count(Counter::kDropCorrupt);
  take_marks(call, packets, packet);
  const bool is_too_long = payload->size() > copy.size();
  if (opcode != wire::Opcode::kRcSendOnlyImm || is_too_long) {
    call.count(Counter::kDropNotMulticastable);
    return refuse(call, packets, packet);
  }
  take_unit(call, packets, packet, *payload);
}

// The path has sent something that belongs to this group: its device lives, even if the packet is
// old, or another one was lost before it.
void ReductionGroup::note_life(const Call& call, PathNo path) {
  Hop& hop = hops_[path];
  hop.evidence.on_feedback();
  hop.out.on_life();
  if (std::exchange(hop.silent_probes, std::uint8_t{0}) > kSilent) {
    schedule(call.now + probe_wait_);
  }
}

// Of a packet that is stored. What the switch sends has the same one.
void ReductionGroup::take_class(const GroupPacket& packet) {
  traffic_class_ = packet.headers.ip.tos;
  if (wire::ecn_of(traffic_class_) != wire::Ecn::kExperienced) return;
  traffic_class_ = wire::without_ecn(traffic_class_) | static_cast<std::uint8_t>(wire::Ecn::kEct0);
}

// A NIC ends its queue pair for this NAK. The NAK acknowledges all units before it: they are stored.
void ReductionGroup::refuse(const Call& call, HopPackets& packets, const GroupPacket& packet) {
  const wire::Opcode opcode = packet.headers.bth.opcode;
  const bool is_request =
      wire::opcode_info(opcode).request() && service_of(opcode) == wire::Service::kRc;
  if (!tree_.paths[packet.path].is_host || !is_request) return;
  if (failure_ && call.now >= failure_again_) {
    refused_ = packet.path;
    return;
  }
  packets.send_answer(packet.path, hops_[packet.path].in.next(),
                      Aeth::nak(NakCode::kInvalidRequest));
}

// False: it has counted the reason. The leader ends the group for values that no switch serves: the
// member's failed queue pair alone does not show their operation.
bool ReductionGroup::may_take(Call& call, const GroupPacket& packet, const UnitShape& shape) {
  if (shape.bytes > wire::least_known(slots_.unit_bytes(), packet.path_mtu)) {
    call.count(Counter::kDropNotMulticastable);
    return false;
  }
  if (slots_.serves(shape)) return true;
  call.count(Counter::kDropReductionOperation);
  if (!failure_) failure_ = {MrpReject::kOperation, {{{packet.path, shape.what, shape.bytes}}}};
  return false;
}

// `payload`: with its pad, and intact.
void ReductionGroup::take_unit(Call& call, HopPackets& packets, const GroupPacket& packet,
                               std::span<const std::uint8_t> payload) {
  const PathNo path = packet.path;
  Responder& in = hops_[path].in;
  const std::int64_t at = unit_at(start_, in.next(), packet.psn());
  const auto imm = wire::ReductionImm::from(packet.headers.imm.value);
  const UnitShape shape{imm.what(), length_of(packet)};
  const bool agrees = imm.epoch == static_cast<std::uint8_t>(tree_.epoch) &&
                      imm.unit == static_cast<std::uint16_t>(at);
  if (at < 0 || !agrees) return call.count(Counter::kDropMalformed);
  note_life(call, path);
  const Unit unit = static_cast<Unit>(at);
  if (unit < in.next()) {
    if (path == parent()) CEPHEUS_SITUATION("a result comes again");
    if (!tree_.paths[path].is_host && path != parent()) {
      CEPHEUS_SITUATION("a partial result comes again");
    }
    call.count(Counter::kReductionDuplicate);
    if (!call.rules().reduction_add_once) add_again(packet, shape, unit, call.now);
    return call.rules().reduction_duplicates ? acknowledge(packets, path) : void();
  }
  if (unit > in.next()) {
    call.count(Counter::kDropReductionGap);
    if (!call.rules().reduction_in_order) return packets.send_answer(path, unit + 1, Aeth());
    if (!in.take_gap()) return;
    if (path == parent()) CEPHEUS_SITUATION("a result is missing before the one that comes");
    if (tree_.paths[path].is_host) CEPHEUS_SITUATION("a contribution is missing before another");
    return packets.send_answer(path, in.next(), Aeth::nak(NakCode::kSequenceError));
  }
  if (!may_take(call, packet, shape)) return refuse(call, packets, packet);
  const UnitSlots::Content content{shape, payload.first(shape.bytes)};
  return path == parent() ? take_result(call, packets, packet, content)
                          : take_contribution(call, packets, packet, content);
}

void ReductionGroup::take_contribution(Call& call, HopPackets& packets, const GroupPacket& packet,
                                       const UnitSlots::Content& content) {
  const PathNo path = packet.path;
  Hop& hop = hops_[path];
  const Unit unit = hop.in.next();
  // The slot has another unit yet, or the path can't have the result that gives it credit.
  const Unit window = slots_.window();
  if (unit >= hop.out.newest() + window) {
    call.count(Counter::kDropReductionBusy);
    hop.in.on_refused();
    return packets.send_answer(path, unit, {AckKind::kRnrNak, kBusyTimer});
  }
  const UnitShape& shape = content.shape;
  if (!slots_.add(unit, path, shape, content.data, call.now)) {
    const UnitSlots::Contribution& first = slots_.contribution(unit);
    fail({MrpReject::kMismatch,
          {{{first.first, first.shape.what, first.shape.bytes}, {path, shape.what, shape.bytes}}}});
    return call.count(Counter::kDropReductionFailed);
  }
  call.count(Counter::kReductionTaken);
  take_class(packet);
  ++stats_.contributions;
  stats_.bytes += shape.bytes;
  hop.in.take();
  // A member contributes only when it has the result of W units ago.
  if (unit >= window && hop.out.on_implied(call.now, unit - window + 1)) {
    CEPHEUS_SITUATION("a contribution comes before the acknowledgement of the result for it");
    send_due(call, packets, path);
  }
  if (unit == newest_) {
    ++newest_;
    queried_ = {};  // it was about this unit
    schedule(call.now + probe_wait_);
  }
  acknowledge_soon(call, packets, packet);
  const Unit before = complete_;
  complete(call, packets);
  if (complete_ != before) latest_ = path;
}

void ReductionGroup::take_result(Call& call, HopPackets& packets, const GroupPacket& packet,
                                 const UnitSlots::Content& content) {
  Hop& hop = hops_[packet.path];
  const Unit unit = hop.in.next();
  // No result comes before its partial result has been sent.
  if (unit >= hop.out.newest()) return call.count(Counter::kDropMalformed);
  call.count(Counter::kReductionTaken);
  take_class(packet);
  slots_.store(unit, content.shape, content.data);
  hop.in.take();
  if (hop.out.on_implied(call.now, unit + 1)) {
    CEPHEUS_SITUATION("a result comes before the acknowledgement of its partial result");
    send_due(call, packets, packet.path);
  }
  results_ = unit + 1;
  acknowledge_soon(call, packets, packet);
  publish(call, packets);
}

// Units that all children have contributed to are results at the root, and partial results
// elsewhere.
void ReductionGroup::complete(Call& call, HopPackets& packets) {
  const Unit before = complete_;
  const std::size_t needed = call.rules().reduction_all_paths ? children() : 1;
  while (complete_ < newest_ && slots_.contribution(complete_).paths >= needed) {
    call.count(Counter::kReductionUnits);
    if (parent() == kNoPath) slots_.complete(complete_);
    ++complete_;
  }
  if (complete_ == before) return;
  if (parent() != kNoPath) return send_due(call, packets, parent());
  results_ = complete_;
  publish(call, packets);
}

void ReductionGroup::publish(Call& call, HopPackets& packets) {
  const PathNo up = parent();
  for (PathNo i = 0; i < hops_.size(); ++i) {
    if (i != up) send_due(call, packets, i);
  }
}

// Sends all units that are known and may be under way: at most W. A host's contribution is
// acknowledged before its result is sent. To a switch, the result is the acknowledgement. Switches
// acknowledge late, so one that recovers from a loss requests it: few units may be under way.
void ReductionGroup::send_due(Call& call, HopPackets& packets, PathNo path) {
  Hop& hop = hops_[path];
  const bool is_up = path == parent();
  const Unit end = hop.out.limit(is_up ? complete_ : results_);
  const Unit quarter = std::max(1u, slots_.window() / 4u);
  while (!hop.out.is_paused() && hop.out.next() < end) {
    const Unit unit = hop.out.next();
    if (!is_up && hop.in.owed() > 0 && hop.in.next() == unit + 1) {
      if (tree_.paths[path].is_host) acknowledge(packets, path);
      hop.in.on_acknowledged();
    }
    const bool may_request = tree_.paths[path].is_host || hop.out.is_recovering();
    const bool ack_request = may_request && (unit + 1 == end || (unit + 1) % quarter == 0);
    const bool is_repeat = hop.out.on_sent(call.now);
    packets.send_unit(path, unit, is_up ? slots_.partial(unit) : slots_.result(unit), ack_request,
                      is_repeat);
    ++stats_.sent;
    if (is_repeat) call.count(Counter::kReductionRepeated);
  }
  schedule(repeat_due(call, path));
  if (call.rules().reduction_probe) schedule(probe_due(call.now, path));  // it may have become idle
}

// With a rule off: as if the contribution were a new one.
void ReductionGroup::add_again(const GroupPacket& packet, const UnitShape& shape, Unit unit,
                               Instant now) {
  if (packet.path == parent() || slots_.contribution(unit).unit != unit) return;
  slots_.add(unit, packet.path, shape, packet.frame.payload().first(shape.bytes), now);
}

void ReductionGroup::acknowledge(HopPackets& packets, PathNo path) {
  Responder& in = hops_[path].in;
  // Of units that are stored, but for the first time only: so there are few.
  packets.send_answer(path, in.next(), Aeth(), in.owed() > 0 ? Space::kOwn : Space::kNone);
  in.on_acknowledged();
}

void ReductionGroup::acknowledge_soon(Call& call, HopPackets& packets, const GroupPacket& packet) {
  const PathNo path = packet.path;
  const Responder& in = hops_[path].in;
  if (!tree_.paths[path].is_host && packet.headers.bth.ack_request) {
    CEPHEUS_SITUATION("a switch that has lost a unit requests an acknowledgement");
    return acknowledge(packets, path);
  }
  if (in.owed() >= std::max(1u, slots_.window() / 4u)) {
    CEPHEUS_SITUATION("a quarter of the window is acknowledged at once");
    return acknowledge(packets, path);
  }
  ack_due_ = std::min(ack_due_, call.now + kAckWait);
  schedule(ack_due_);
}

void ReductionGroup::take_answer(Call& call, HopPackets& packets, const GroupPacket& packet) {
  const PathNo path = packet.path;
  Requester& out = hops_[path].out;
  const Aeth& aeth = packet.headers.aeth;
  const bool is_ack = aeth.kind == AckKind::kAck;
  const bool is_rnr = aeth.kind == AckKind::kRnrNak;
  const bool is_fatal = aeth.is_fatal_nak();
  if (!is_ack && !is_rnr && !is_fatal && !aeth.is_sequence_nak()) {
    return call.count(Counter::kDropMalformed);
  }
  // Whatever its PSN: rdma_rxe acknowledges a probe before the first result with 2^24 - 1.
  note_life(call, path);
  const std::int64_t end = unit_at(start_, out.acked(), packet.psn()) + (is_ack ? 1 : 0);
  const Requester::Answer answer = out.on_answer(call.now, end);
  if (answer == Requester::Answer::kUnsent) return call.count(Counter::kDropFeedbackUnsent);
  // A NAK for the next unit acknowledges nothing, and is news if that unit is under way.
  const bool requests_next =
      !is_ack && end == static_cast<std::int64_t>(out.acked()) && !out.is_idle();
  if (answer == Requester::Answer::kStale && !requests_next) {
    return call.count(Counter::kDropFeedbackStale);
  }
  call.count(Counter::kFeedbackTaken);
  // Fewer are under way, so the next ones may follow.
  if (is_ack || out.is_idle()) return send_due(call, packets, path);
  if (is_fatal) return fail({MrpReject::kResultRefused, {{{path}}}});
  if (is_rnr) {
    CEPHEUS_RARE_SITUATION("a member is not ready for a result");
    out.on_pause(call.now + wire::rnr_timer_duration(aeth.value));
    return schedule(repeat_due(call, path));
  }
  if (out.is_paused()) return;  // it would end the pause
  if (out.on_nak(call.now, floor_of(call, path))) return send_due(call, packets, path);
  CEPHEUS_SITUATION("a NAK comes again for what has just been repeated");
  send_due(call, packets, path);
}

// Sends what is overdue, and finds the next time.
void ReductionGroup::on_timer(Call& call) {
  HopPackets packets(call, tree_, parent(), start_, traffic_class_);
  set_deadline(wire::kNever);
  if (has_failed_) return;
  const bool acks_are_due = ack_due_ <= call.now;
  if (acks_are_due) ack_due_ = wire::kNever;
  for (PathNo i = 0; i < hops_.size(); ++i) {
    Hop& hop = hops_[i];
    if (acks_are_due && hop.in.owed() > 0) {
      CEPHEUS_SITUATION("an acknowledgement has waited for its time");
      acknowledge(packets, i);
    }
    if (repeat_due(call, i) <= call.now) {
      if (i == parent()) CEPHEUS_SITUATION("a partial result is overdue");
      if (tree_.paths[i].is_host) CEPHEUS_SITUATION("a result for a member is overdue");
      hop.out.on_due(call.now);
      send_due(call, packets, i);
    }
    if (probe_due(call.now, i) <= call.now && call.rules().reduction_probe) {
      if (hop.out.acked() == 0) CEPHEUS_SITUATION("a member is probed before the first result");
      packets.send_probe(i, hop.out.acked());
      hop.probed = call.now;
      if (hop.silent_probes < UINT8_MAX) ++hop.silent_probes;
    }
    schedule(repeat_due(call, i));
    if (call.rules().reduction_probe) schedule(probe_due(call.now, i));
  }
  schedule(ack_due_);
}

void ReductionGroup::fail(const Failure& why) {
  has_failed_ = true;
  failure_ = why;
}

std::optional<Behaviour::Failure> ReductionGroup::take_failure(Instant now) {
  if (!failure_ || now < failure_again_) return std::nullopt;
  failure_again_ = now + probe_wait_;  // a leader that missed the reason gets it again
  return failure_;
}

void ReductionGroup::on_failure_sent(Call& call) {
  const PathNo path = std::exchange(refused_, kNoPath);
  if (path == kNoPath) return;
  HopPackets packets(call, tree_, parent(), start_, traffic_class_);
  packets.send_answer(path, hops_[path].in.next(), Aeth::nak(NakCode::kInvalidRequest));
}

}  // namespace cepheus::fabric
