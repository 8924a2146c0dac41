#include "switch-emulator/engine/claim.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/feedback.h"

namespace cepheus::fabric {
namespace {

// The name between switches of the turn that `packet` says it belongs to. A host's packets carry
// none.
TurnName name_of(const DataPacket& packet) {
  return {packet.headers.ip.source, Psn(packet.headers.bth.destination_qp.value())};
}

// Admits the newcomer at `path`, whose packets begin at `first`.
void admit(Call& call, Group& group, PathNo newcomer, Ipv4 source_ip, Psn first, Psn port_first) {
  group.turn.begin(group.paths, newcomer, source_ip, first, port_first, call.rebases());
  call.count(Counter::kTurns);
}

// A packet of an earlier turn: its sender lost our last answer. Never answered with anything larger
// than itself: a NIC believes an ACK for more than it sent.
Claim answer_old_duplicate(Call& call, const Group& group, const DataPacket& packet) {
  const Path& path = group.paths[packet.path];
  send_feedback(call, group, path, name_of(packet), wire::AckKind::kAck, wire::Aeth::kNoCreditLimit,
                packet.psn(), path.messages());
  call.count(Counter::kOldDuplicateAnswered);
  return Claim::kSettled;
}

Claim drop(Call& call, Counter reason) {
  call.count(reason);
  return Claim::kSettled;
}

bool beyond_window(const Call& call, Psn expected, Psn psn) {
  return distance(expected, psn) > static_cast<std::int32_t>(call.config.data_window);
}

Claim claim_rebased(Call& call, Group& group, const DataPacket& packet) {
  if (group.turn.source() == packet.path) return Claim::kCurrent;
  const Path& path = group.paths[packet.path];
  const Psn psn = packet.psn();
  const Psn first = call.rules().psn_from_state ? group.start + path.turns() : psn;
  const bool old = before(psn, first);
  if (old && call.rules().old_duplicate_answer) return answer_old_duplicate(call, group, packet);
  if (beyond_window(call, first, psn)) return drop(call, Counter::kDropDataWindow);
  if (!old && !gate_is_open(call, group)) {
    return hold_at_gate(call, group, packet, {}, first);
  }
  admit(call, group, packet.path, call.port(path.port).host, group.turn.next(), first);
  return Claim::kCurrent;
}

// The first packet of a newcomer's turn was lost: it would have to time out. Once, since each of
// the packets behind it would cost the newcomer a retry.
Claim ask_for_first(Call& call, Group& group, const DataPacket& packet, Psn next) {
  Turn& turn = group.turn;
  const Path& path = group.paths[packet.path];
  const bool is_newcomer = path.is_host && turn.ends_message() && after(packet.psn(), next) &&
                           !beyond_window(call, next, packet.psn());
  const bool is_asked = turn.gate().answered() == packet.path && call.rules().newcomer_nak_once;
  if (!is_newcomer || is_asked) {
    return drop(call, Counter::kDropConflict);
  }
  turn.gate().on_answered(packet.path);
  const auto sequence = static_cast<std::uint8_t>(wire::NakCode::kSequenceError);
  send_feedback(call, group, path, name_of(packet), wire::AckKind::kNak, sequence, next,
                path.messages());
  call.count(Counter::kNewcomerNak);
  return Claim::kSettled;
}

// PSNs mean the same on both sides of the port, and nothing names turns.
Claim claim_synchronised(Call& call, Group& group, const DataPacket& packet) {
  Turn& turn = group.turn;
  if (turn.source() == packet.path) {
    turn.pass_to(packet.headers.ip.source);  // several hosts may be behind it
    return Claim::kCurrent;
  }
  const Psn psn = packet.psn();
  const Psn next = turn.next();
  if (turn.source() != kNoPath) {
    if (before(psn, turn.base())) {
      if (call.rules().old_duplicate_answer) return answer_old_duplicate(call, group, packet);
      admit(call, group, packet.path, packet.headers.ip.source, psn, psn);
      return Claim::kCurrent;
    }
    const bool follows = turn.gate().path() == packet.path && turn.gate().holds() &&
                         after(psn, next) && !beyond_window(call, next, psn);
    if (psn != next && !follows) return ask_for_first(call, group, packet, next);
    const Path& path = group.paths[packet.path];
    if (path.is_host && psn == next && turn.ends_message() && before(path.acked(), turn.sent())) {
      acknowledge_by_sending(call, group, packet.path);
    }
    if (!gate_is_open(call, group)) {
      return hold_at_gate(call, group, packet, name_of(packet), next);
    }
  }
  admit(call, group, packet.path, packet.headers.ip.source, next, next);
  return Claim::kCurrent;
}

Claim claim_named(Call& call, Group& group, const DataPacket& packet) {
  const TurnName name = name_of(packet);
  const Turn& turn = group.turn;
  if (turn.source() == packet.path && name == turn.name()) {
    return Claim::kCurrent;
  }
  const Psn psn = packet.psn();
  if (before(psn, turn.base()) && before(name.base, turn.base())) {
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

// The source has been silent for longer than any waits before it sends again, and somebody lacks a
// part of its turn. Unless the leader takes out whoever that is, the turn never ends; and as it has
// not done so by now, there is none.
Claim give_up(Call& call, Group& group, const DataPacket& packet, const TurnName& turn, Psn first) {
  Gate& gate = group.turn.gate();
  if (gate.holds_for(packet.path, turn.source)) {
    gate.drop([&](const Frame& frame) {
      call.release(frame);
      call.count(Counter::kGateEmptied);
    });
  }
  const Path& path = group.paths[packet.path];
  const auto error = static_cast<std::uint8_t>(wire::NakCode::kRemoteOperational);
  send_feedback(call, group, path, turn, wire::AckKind::kNak, error, first, path.messages());
  call.count(Counter::kGateGaveUp);
  return Claim::kSettled;
}

}  // namespace

Claim claim_turn(Call& call, Group& group, const DataPacket& packet) {
  const bool is_host = group.paths[packet.path].is_host;
  if (is_host && call.rebases()) return claim_rebased(call, group, packet);
  if (is_host || !call.rules().named_turns) return claim_synchronised(call, group, packet);
  return claim_named(call, group, packet);
}

bool gate_is_open(const Call& call, const Group& group) {
  return !call.rules().gate || group.turn.is_settled();
}

Claim hold_at_gate(Call& call, Group& group, const DataPacket& packet, const TurnName& turn,
                   Psn first) {
  Gate& gate = group.turn.gate();
  gate.on_arrival(call.now);
  if (gate.is_past(call.now, call.config.gate_age)) {
    return give_up(call, group, packet, turn, first);
  }
  // A sender that begins again wants an answer again; what follows its first packet needs none of
  // its own.
  if (packet.psn() == first && gate.answered() == packet.path) gate.on_begun_again();

  const Gate::Kept kept =
      gate.keep(packet.frame, packet.psn(), packet.path, turn.source, call.config.max_held);
  if (kept == Gate::Kept::kYes) {
    call.count(Counter::kGateHeld);
    return Claim::kHeld;
  }
  if (kept == Gate::Kept::kAlready && packet.psn() != first) {
    return drop(call, Counter::kDropGateAnswered);
  }
  if (gate.answered() == packet.path) return drop(call, Counter::kDropGateAnswered);
  gate.on_answered(packet.path);
  // Who sends its first packet again although it is kept has timed out: left without an answer it
  // would soon give up. No need to ask often, since what ends its wait is the answer to that
  // packet.
  const std::uint8_t timer = kept == Gate::Kept::kAlready
                                 ? Gate::kLongestTimer
                                 : gate.next_timer(call.config.gate_rnr_timer);
  const Path& path = group.paths[packet.path];
  send_feedback(call, group, path, turn, wire::AckKind::kRnrNak, timer, first, path.messages());
  call.count(Counter::kGateRnr);
  return Claim::kSettled;
}

}  // namespace cepheus::fabric
