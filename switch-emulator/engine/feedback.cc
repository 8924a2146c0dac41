#include "switch-emulator/engine/feedback.h"

#include <optional>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/claim.h"
#include "switch-emulator/engine/drop_order.h"
#include "switch-emulator/engine/refusals.h"
#include "wire/extension_headers.h"

namespace cepheus::fabric {
namespace {

using wire::AckKind;

// Sends to the source's port, in its numbering. `psn` is the group's.
void to_source(Call& call, const OneSource& group, AckKind kind, std::uint8_t value, Psn psn) {
  const Turn& turn = group.turn;
  const bool is_ack_to_host = kind == AckKind::kAck && group.tree.paths[turn.source()].is_host;
  if (call.drops != nullptr && is_ack_to_host &&
      call.drops->takes_ack(call.now, turn.at_port(psn))) {
    return call.lose(Counter::kFeedbackSent, Counter::kDropAckOnRequest);
  }
  send_feedback(call, group, turn.source(), turn.name(), kind, value, turn.at_port(psn),
                turn.messages());
  call.count(Counter::kFeedbackToSource);
}

void send_nak(Call& call, OneSource& group, const Nak& nak) {
  const Duration pause = nak.rnr ? wire::rnr_timer_duration(nak.timer) : Duration();
  group.feedback_timer->on_nak(call.now, nak.psn, pause);
  const auto sequence = static_cast<std::uint8_t>(wire::NakCode::kSequenceError);
  to_source(call, group, nak.rnr ? AckKind::kRnrNak : AckKind::kNak, nak.rnr ? nak.timer : sequence,
            nak.psn);
}

// The acknowledgements of all may have reached the held NAK's PSN, or passed the last ACK to the
// source. `from_slowest`: the feedback came by the path for which the others waited.
void check(Call& call, OneSource& group, bool from_slowest) {
  Turn& turn = group.turn;
  if (turn.source() == kNoPath) return;  // it has left
  if (group.feedback_timer->on_min(turn.min())) call.count(Counter::kRequestedInVain);
  const Rules& rules = call.rules();
  turn.naks().drop_overtaken(turn.min());
  std::optional<Nak> nak;
  if (rules.recheck_held_nak || from_slowest) nak = turn.take_due_nak();
  if (nak) {
    send_nak(call, group, *nak);
  } else if (after(turn.min(), turn.acknowledged())) {
    acknowledge_to_source(call, group);
  } else {
    call.count(Counter::kFeedbackAbsorbed);
  }
}

// A NAK waits until all have the packets that it acknowledges (paper III-D).
void take_nak(Call& call, OneSource& group, const Nak& nak, bool from_slowest) {
  Turn& turn = group.turn;
  const Rules& rules = call.rules();
  const bool waits = nak.rnr ? rules.rnr_ordering : rules.nak_ordering;
  if (!waits) {
    turn.naks().on_sent(nak);
    return send_nak(call, group, nak);
  }
  turn.naks().drop_overtaken(turn.min());
  if (nak.rnr || !turn.naks().knows(nak.psn, rules.nak_once)) {
    turn.naks().hold(nak, rules.several_naks);
  }
  check(call, group, from_slowest);
}

// Whether there is a source to notify, and the feedback is about its turn. Counts the reason if
// not.
bool concerns_turn(Call& call, const OneSource& group, PathNo path, const wire::RoceHeaders& h) {
  const Turn& turn = group.turn;
  if (turn.source() == kNoPath) {
    call.count(Counter::kDropFeedbackNoSource);
    return false;
  }
  if (path == turn.source()) {
    call.count(Counter::kDropFeedbackStale);
    return false;
  }
  const TurnName named{h.ip.destination, Psn(h.bth.destination_qp.value())};
  if (!group.tree.paths[path].is_host && call.rules().named_turns && named != turn.name()) {
    call.count(Counter::kDropFeedbackOtherTurn);
    return false;
  }
  return true;
}

// A receiver's acknowledgement echoes the mark of a packet. The acknowledgement may be merged into
// later feedback, or be old; the echo goes on by itself.
void take_echo(Call& call, const OneSource& group, PathNo path) {
  if (!group.cnps->passes(call.now, path, group.turn.source()))
    return call.count(Counter::kEchoFiltered);
  make_cnp(call, group);
}

// Requests that the source begin its turn again later. No member can be further behind its first
// packet: `min` is the PSN before the turn.
void send_wait(Call& call, OneSource& group) {
  call.count(Counter::kHandoverRnr);
  Turn& turn = group.turn;
  turn.naks().hold({turn.base(), true, turn.next_handover_timer()});
  check(call, group, true);
}

}  // namespace

void take_feedback(Call& call, OneSource& group, PathNo path, const wire::RoceHeaders& headers) {
  if (!concerns_turn(call, group, path, headers)) return;
  if (headers.bth.becn) take_echo(call, group, path);
  const wire::Aeth& aeth = headers.aeth;
  if (aeth.is_fatal_nak()) {
    call.count(Counter::kFeedbackTaken);
    const bool is_access = aeth.value == static_cast<std::uint8_t>(wire::NakCode::kRemoteAccess);
    if (is_access && group.tree.paths[path].is_host)
      name_refuser(call, group, group.tree.paths[path]);
    return fail_source(call, group, aeth.value);
  }
  const bool is_ack = aeth.kind == AckKind::kAck;
  const bool is_rnr = aeth.kind == AckKind::kRnrNak;
  if (!is_ack && !is_rnr && !aeth.is_sequence_nak()) return call.count(Counter::kDropMalformed);

  const Path& from = group.tree.paths[path];
  Evidence& evidence = group.evidence[path];
  ++evidence.packets;
  evidence.unanswered.clear();
  evidence.on_packet();
  Turn& turn = group.turn;
  const Psn psn = headers.bth.psn + (from.is_host ? turn.turns(path) : 0);
  const Psn cumulative = is_ack ? psn : psn - 1;
  // A last source that is not ready sends one NAK and is silent from then on. Requesting that the
  // new source waits and begins again is safe, because the last one acknowledges nothing of this
  // turn. Without the request the new source would time out.
  if (aeth.is_sequence_nak() && group.numbering.is_of_last_source(call, group, path, psn)) {
    call.count(Counter::kFeedbackTaken);
    turn.await_handover(call.now);
    group.feedback_timer->on_unready(path);
    if (turn.naks().is_waiting_for(turn.base())) return call.count(Counter::kFeedbackAbsorbed);
    return send_wait(call, group);
  }
  // Real receivers send very old PSNs, and PSNs from before their reset: rdma_rxe does. Bound: a
  // path's acknowledgement and `sent` are within 2^22 (Turn::kMostUnderWay), so only PSNs of 2^24
  // packets ago can be mistaken for one of these.
  if (after(is_ack ? cumulative : psn, turn.sent())) {
    return call.count(Counter::kDropFeedbackUnsent);
  }
  const Psn acked = turn.acked(path);
  if (before(cumulative, acked) || (is_ack && cumulative == acked)) {
    if (call.rules().every_drop_counted) call.count(Counter::kDropFeedbackStale);
    return;
  }
  call.count(Counter::kFeedbackTaken);
  const bool from_slowest = path == turn.slowest();
  turn.set_acked(path, cumulative);
  group.feedback_timer->on_answer(call.now, path, acked, cumulative, is_rnr);
  if (is_ack) return check(call, group, from_slowest);
  take_nak(call, group, {psn, is_rnr, aeth.value}, from_slowest);
}

// A leader evicts a dead last source. It has not done so within `gate_age`, so it is gone.
void extend_wait(Call& call, OneSource& group) {
  Turn& turn = group.turn;
  if (!turn.awaits_handover() || turn.previous() == kNoPath) return;
  if (turn.acked(turn.previous()) != turn.base() - 1) return;
  if (!turn.is_handover_past(call.now, call.config.gate_age)) return send_wait(call, group);
  call.count(Counter::kHandoverGaveUp);
  fail_source(call, group, static_cast<std::uint8_t>(wire::NakCode::kRemoteOperational));
}

void acknowledge_by_sending(Call& call, OneSource& group, PathNo path) {
  Turn& turn = group.turn;
  const bool from_slowest = path == turn.slowest();
  ++group.evidence[path].packets;
  turn.set_acked(path, turn.sent());
  check(call, group, from_slowest);
}

// An RNR NAK with the shortest wait, as if from the receiver. It spends none of the source's
// retries, and NICs that ignore a second NAK for a packet accept it. The source repeats one packet,
// and the answer to that reveals other losses.
Instant request_if_overdue(Call& call, OneSource& group) {
  constexpr std::uint8_t kSoon = 1;
  Turn& turn = group.turn;
  FeedbackTimer& timer = *group.feedback_timer;
  const Instant due = timer.next(call, group);
  if (due > call.now) return due;
  call.count(Counter::kRequestedAgain);
  if (timer.awaits_receiver(turn)) call.count(Counter::kRequestedUnready);
  timer.on_request(call.now, turn);
  take_nak(call, group, {turn.min() + 1, true, kSoon}, true);
  return timer.next(call, group);
}

Instant repeat_last_ack(Call& call, OneSource& group) {
  const Turn& turn = group.turn;
  if (turn.source() == kNoPath || !turn.rests()) return wire::kNever;
  if (group.last_ack.next() <= call.now) {
    call.count(Counter::kLastAckRepeated);
    group.last_ack.on_repeat(call.now);
    to_source(call, group, AckKind::kAck, wire::Aeth::kNoCreditLimit, turn.acknowledged());
  }
  return group.last_ack.next();
}

void recheck(Call& call, OneSource& group) { check(call, group, true); }

void take_cnp(Call& call, OneSource& group, const GroupPacket& packet) {
  if (!concerns_turn(call, group, packet.path, packet.headers)) return;
  if (!group.cnps->passes(call.now, packet.path, group.turn.source()))
    return call.count(Counter::kCnpFiltered);
  send_cnp(call, group, packet.frame, packet.headers);
}

void acknowledge_to_source(Call& call, OneSource& group) {
  Turn& turn = group.turn;
  to_source(call, group, AckKind::kAck, wire::Aeth::kNoCreditLimit, turn.acknowledge());
  const bool is_host = turn.source() != kNoPath && group.tree.paths[turn.source()].is_host;
  if (is_host && turn.rests()) group.last_ack.on_sent(call.now);
}

void fail_source(Call& call, OneSource& group, std::uint8_t code) {
  to_source(call, group, AckKind::kNak, code, group.turn.acknowledge() + 1);
}

}  // namespace cepheus::fabric
