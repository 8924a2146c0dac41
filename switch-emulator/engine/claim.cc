#include "switch-emulator/engine/claim.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/numbering.h"

namespace cepheus::fabric {

TurnName name_of(const GroupPacket& packet) {
  return {packet.headers.ip.source, Psn(packet.headers.bth.destination_qp.value())};
}

void admit(Call& call, OneSource& group, PathNo newcomer, Ipv4 source_ip, Psn first,
           Psn port_first) {
  group.begin_turn({newcomer, group.tree.paths[newcomer].is_host, source_ip, first, port_first});
  call.count(Counter::kTurns);
}

Claim answer_old_duplicate(Call& call, const OneSource& group, const GroupPacket& packet) {
  send_feedback(call, group, packet.path, name_of(packet), wire::AckKind::kAck,
                wire::Aeth::kNoCreditLimit, packet.psn());
  call.count(Counter::kOldDuplicateAnswered);
  return Claim::kHandled;
}

Claim drop(Call& call, Counter reason) {
  call.count(reason);
  return Claim::kHandled;
}

// A NIC's packets are within 2^23 of its first outstanding one (IBTA 9.7.2). A packet outside is
// forged. It is dropped as too far ahead, or answered as old.
bool beyond_window(const Call& call, Psn expected, Psn psn) {
  return distance(expected, psn) > static_cast<std::int32_t>(call.config.data_window);
}

namespace {

Claim claim_named(Call& call, OneSource& group, const GroupPacket& packet) {
  const TurnName name = name_of(packet);
  const Turn& turn = group.turn;
  if (turn.source() == packet.path && name == turn.name()) {
    return Claim::kCurrent;
  }
  const Psn psn = packet.psn();
  // The name's base is not compared: a turn of almost 2^24 packets may have begun at the present
  // `next`.
  if (turn.begins_after(psn)) {
    if (call.rules().old_duplicate_answer) return answer_old_duplicate(call, group, packet);
    return drop(call, Counter::kDropConflict);
  }
  if (name.base != turn.next() || !turn.ends_message()) return drop(call, Counter::kDropConflict);
  if (before(psn, name.base) || beyond_window(call, name.base, psn)) {
    return drop(call, Counter::kDropDataWindow);
  }
  if (!gate_is_open(call, group)) {
    return hold_at_gate(call, group, packet, name, name.base);
  }
  admit(call, group, packet.path, name.source, name.base, name.base);
  return Claim::kCurrent;
}

// The source has been silent for longer than the longest wait before a retransmission, and a member
// lacks a part of its turn. The turn ends only if the leader evicts that member. The leader has not
// done so by now, so it is gone.
Claim give_up(Call& call, OneSource& group, const GroupPacket& packet, const TurnName& turn,
              Psn first) {
  Gate& gate = group.turn.gate();
  if (gate.holds_for(packet.path, turn.source)) {
    empty_gate(call, group, group.tree.paths[packet.path].port);
  }
  const auto error = static_cast<std::uint8_t>(wire::NakCode::kRemoteOperational);
  send_feedback(call, group, packet.path, turn, wire::AckKind::kNak, error, first);
  call.count(Counter::kGateGaveUp);
  return Claim::kHandled;
}

}  // namespace

Claim claim_turn(Call& call, OneSource& group, const GroupPacket& packet) {
  const bool is_host = group.tree.paths[packet.path].is_host;
  if (is_host) return group.numbering.claim(call, group, packet);
  if (!call.rules().named_turns) return claim_synchronised(call, group, packet);
  return claim_named(call, group, packet);
}

bool gate_is_open(const Call& call, const OneSource& group) {
  return !call.rules().gate || group.turn.is_finished();
}

void empty_gate(Call& call, OneSource& group, PortId port) {
  call.counters.add(port, Counter::kGateEmptied, group.turn.gate().drop(call.held));
}

Claim hold_at_gate(Call& call, OneSource& group, const GroupPacket& packet, const TurnName& turn,
                   Psn first) {
  Gate& gate = group.turn.gate();
  gate.on_arrival(call.now);
  if (gate.is_past(call.now, call.config.gate_age)) {
    return give_up(call, group, packet, turn, first);
  }
  // A sender that begins again needs another answer; the packets behind its first need none.
  if (packet.psn() == first && gate.answered() == packet.path) gate.on_begun_again();

  const Gate::Kept kept = gate.keep(call, packet, turn.source);
  if (kept == Gate::Kept::kYes) {
    call.count(Counter::kGateHeld);
    return Claim::kHandled;
  }
  if (kept == Gate::Kept::kAlready && packet.psn() != first) {
    return drop(call, Counter::kDropGateAnswered);
  }
  if (gate.answered() == packet.path) return drop(call, Counter::kDropGateAnswered);
  gate.on_answered(packet.path);
  // A newcomer that repeats its first packet although the gate holds it has timed out, and would
  // soon give up without an answer. It needs few RNRs, because the answer to that packet
  // ends its wait.
  const std::uint8_t timer = kept == Gate::Kept::kAlready
                                 ? Gate::kLongestTimer
                                 : gate.next_timer(call.config.gate_rnr_timer);
  send_feedback(call, group, packet.path, turn, wire::AckKind::kRnrNak, timer, first);
  call.count(Counter::kGateRnr);
  return Claim::kHandled;
}

}  // namespace cepheus::fabric
