// A path's acknowledgement is cumulative. The least of all paths, Turn::min(), goes to the source
// as one ACK when it grows. A NAK(e) acknowledges all below e, so it waits in Naks until that is
// true for all paths. Only the lowest goes: the repeat includes the others' packets. An ACK that it
// implies is left out. Congestion
// marks and CNPs pass by the group's policy, and fatal NAKs at once: the source's connection has
// ended.
//
// Feedback is about the present turn, or it is dropped and counted: another turn's name, no source,
// the source's own path, PSNs that were not sent, or no more than the path has acknowledged before.
//
// Overdue feedback is requested again (FeedbackTimer), the last ACK of a turn is repeated
// (LastAcks), and a last source that is not ready makes the new one wait by RNR NAK
// (docs/protocol.md, "Changing the source").
#include "switch-emulator/engine/group/feedback.h"

#include <optional>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/group_order.h"
#include "switch-emulator/engine/registration/claim.h"
#include "switch-emulator/engine/registration/refusals.h"
#include "wire/extension_headers.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

using wire::AckKind;

// Sends to the source's port, in its numbering. `psn` is the group's. False: the leader has ordered
// its drop.
bool to_source(Call& call, const Group& group, wire::Aeth answer, Psn psn) {
  const Turn& turn = group.turn;
  const bool is_ack_to_host =
      answer.kind == AckKind::kAck && group.tree.paths[turn.source()].is_host;
  if (call.order != nullptr && is_ack_to_host &&
      call.order->takes_ack(call.now, turn.at_port(psn))) {
    call.lose(Counter::kFeedbackSent, Counter::kDropAckOnRequest);
    return false;
  }
  answer.msn = turn.messages();
  send_feedback(call, group, turn.source(), turn.name(), answer, turn.at_port(psn));
  call.count(Counter::kFeedbackToSource);
  return true;
}

// Some path has acknowledged more, has sent `nak`, or has left. Sends the source what may go to it
// now: a NAK waits until all have the packets that it acknowledges (paper III-D). `from_slowest`:
// the others waited for this path.
void merge(Call& call, Group& group, bool from_slowest,
           const std::optional<Nak>& nak = std::nullopt) {
  Turn& turn = group.turn;
  if (turn.source() == kNoPath) return;  // it has left
  group.feedback_timer->on_min(turn.min());
  if (turn.naks().on_min(turn.min())) call.count(Counter::kRequestedInVain);
  if (nak) turn.naks().hold(*nak);
  if (const auto due = turn.naks().take_due(call.now, turn.min(), from_slowest)) {
    if (!nak) CEPHEUS_SITUATION("a NAK is sent once the slowest path has caught up");
    turn.acknowledge();
    if (!due->rnr) group.note_loss();
    to_source(call, group, due->aeth(), due->psn);
  } else if (after(turn.min(), turn.acknowledged())) {
    acknowledge_to_source(call, group);
  } else {
    if (nak) CEPHEUS_SITUATION("a NAK comes before a slower path's answer");
    call.count(Counter::kFeedbackAbsorbed);
  }
}

// Whether there is a source to notify, and the feedback is about its turn. Counts the reason if
// not.
bool concerns_turn(Call& call, const Group& group, const GroupPacket& packet) {
  const Turn& turn = group.turn;
  if (turn.source() == kNoPath) {
    CEPHEUS_RARE_SITUATION("feedback arrives after its source has left");
    call.count(Counter::kDropFeedbackNoSource);
    return false;
  }
  if (packet.path == turn.source()) {
    CEPHEUS_SITUATION("a new source answers the turn before its own");
    call.count(Counter::kDropFeedbackStale);
    return false;
  }
  const TurnName named{packet.headers.ip.destination,
                       Psn(packet.headers.bth.destination_qp.value())};
  if (!group.tree.paths[packet.path].is_host && turn.has_names() && named != turn.name()) {
    CEPHEUS_SITUATION("a switch answers another turn than the present one");
    call.count(Counter::kDropFeedbackOtherTurn);
    return false;
  }
  return true;
}

// A receiver's acknowledgement echoes the mark of a packet. The acknowledgement may be merged into
// later feedback, or be old; the echo goes on by itself.
void take_echo(Call& call, const Group& group, PathNo path) {
  if (!group.cnps->passes(call.now, path, group.turn.source()))
    return call.count(Counter::kEchoFiltered);
  make_cnp(call, group, Counter::kEchoToSource);
}

// Requests that the source begin its turn again later. No member can be further behind its first
// packet: `min` is the PSN before the turn.
void send_wait(Call& call, Group& group) {
  call.count(Counter::kHandoverRnr);
  Turn& turn = group.turn;
  merge(call, group, true, Nak{turn.base(), true, turn.next_handover_timer()});
}

}  // namespace

void take_feedback(Call& call, Group& group, const GroupPacket& packet) {
  const PathNo path = packet.path;
  if (!concerns_turn(call, group, packet)) return;
  if (packet.headers.bth.becn) take_echo(call, group, path);
  const wire::Aeth& aeth = packet.headers.aeth;
  const Path& from = group.tree.paths[path];
  if (aeth.is_fatal_nak()) {
    call.count(Counter::kFeedbackTaken);
    const bool is_access = aeth.value == static_cast<std::uint8_t>(wire::NakCode::kRemoteAccess);
    if (is_access && from.is_host) name_refuser(call, group, packet, from);
    return fail_source(call, group, aeth);
  }
  const bool is_ack = aeth.kind == AckKind::kAck;
  const bool is_rnr = aeth.kind == AckKind::kRnrNak;
  if (!is_ack && !is_rnr && !aeth.is_sequence_nak()) return call.count(Counter::kDropMalformed);

  group.evidence[path].on_feedback();
  Turn& turn = group.turn;
  const Psn psn = packet.psn() + (from.is_host ? turn.turns(path) : 0);
  const Psn cumulative = is_ack ? psn : psn - 1;
  // A last source that is not ready sends one NAK and is silent from then on. Requesting that the
  // new source waits and begins again is safe, because the last one acknowledges nothing of this
  // turn. Without the request the new source would time out.
  if (path == turn.previous() && aeth.is_sequence_nak() &&
      group.numbering.is_of_last_source(group, path, psn)) {
    CEPHEUS_SITUATION("a last source is not ready for the new one");
    call.count(Counter::kFeedbackTaken);
    turn.await_handover(call.now);
    group.feedback_timer->on_unready(path);
    if (turn.naks().is_sent(turn.base())) return call.count(Counter::kFeedbackAbsorbed);
    return send_wait(call, group);
  }
  // Real receivers send very old PSNs, and PSNs from before their reset: rdma_rxe does. Bound: a
  // path's acknowledgement and `sent` are within 2^22 (Turn::kMostUnderWay), so only PSNs of 2^24
  // packets ago can be mistaken for one of these.
  if (after(psn, turn.sent())) return call.count(Counter::kDropFeedbackUnsent);
  const Psn acked = turn.acked(path);
  if (before(cumulative, acked) || (is_ack && cumulative == acked)) {
    if (!is_ack) CEPHEUS_SITUATION("a NAK arrives after a later acknowledgement of its path");
    if (group.conditions.counts_stale_feedback) call.count(Counter::kDropFeedbackStale);
    return;
  }
  call.count(Counter::kFeedbackTaken);
  const bool from_slowest = path == turn.slowest();
  turn.set_acked(path, cumulative);
  group.feedback_timer->on_answer(call.now, path, acked, cumulative, is_rnr);
  merge(call, group, from_slowest, is_ack ? std::nullopt : std::optional(Nak::from(psn, aeth)));
}

// A leader evicts a dead last source. It has not done so within `gate_age`, so it is gone.
void extend_wait(Call& call, Group& group) {
  Turn& turn = group.turn;
  if (!turn.awaits_handover() || turn.previous() == kNoPath) return;
  if (turn.acked(turn.previous()) != turn.base() - 1) return;
  if (!turn.is_handover_past(call.now, call.config.gate_age)) return send_wait(call, group);
  CEPHEUS_RARE_SITUATION("a last source never becomes ready");
  call.count(Counter::kHandoverGaveUp);
  fail_source(call, group, wire::Aeth::nak(wire::NakCode::kRemoteOperational));
}

void acknowledge_by_sending(Call& call, Group& group, PathNo path) {
  Turn& turn = group.turn;
  const bool from_slowest = path == turn.slowest();
  CEPHEUS_RARE_SITUATION("a member begins its turn before its last acknowledgement arrives");
  ++group.evidence[path].packets;
  turn.set_acked(path, turn.sent());
  merge(call, group, from_slowest);
}

Instant request_if_overdue(Call& call, Group& group) {
  Turn& turn = group.turn;
  FeedbackTimer& timer = *group.feedback_timer;
  const Instant due = timer.next(call, group);
  if (due > call.now) return due;
  call.count(Counter::kRequestedAgain);
  const bool is_after_rnr = timer.awaits_receiver(turn);
  if (is_after_rnr && !timer.may_have_lost_rnr(call.now, turn)) {
    call.count(Counter::kRequestedUnready);
  }
  timer.on_request(call.now, turn);
  const Psn first = turn.min() + 1;
  turn.naks().on_request(first);
  if (!is_after_rnr) group.note_loss();
  merge(call, group, true, Nak::request(first));
  return timer.next(call, group);
}

Instant repeat_last_acks(Call& call, Group& group) {
  const Turn& turn = group.turn;
  while (const auto ack = group.last_acks->take_due(call.now)) {
    const bool is_source = ack->path == turn.source();
    if (is_source && !turn.rests()) continue;  // it goes on, so a later one follows
    CEPHEUS_SITUATION("the last ACK of a turn is sent again");
    wire::Aeth answer;
    if (is_source) answer.msn = turn.messages();
    send_feedback(call, group, ack->path, ack->turn, answer, ack->psn);
    call.count(Counter::kLastAckRepeated);
    call.count(Counter::kFeedbackToSource);
  }
  return group.last_acks->next();
}

void recheck(Call& call, Group& group) { merge(call, group, true); }

void take_cnp(Call& call, Group& group, const GroupPacket& packet) {
  if (!concerns_turn(call, group, packet)) return;
  if (!group.cnps->passes(call.now, packet.path, group.turn.source()))
    return call.count(Counter::kCnpFiltered);
  send_cnp(call, group, packet);
}

void acknowledge_to_source(Call& call, Group& group) {
  Turn& turn = group.turn;
  const Psn all_have = turn.acknowledge();
  // The order measures when the source repeats, so a dropped ACK is not repeated either.
  if (!to_source(call, group, {}, all_have)) return;
  if (turn.source() == kNoPath || !turn.rests()) return;
  const LastAcks::Ack ack{turn.source(), turn.at_port(all_have), turn.name()};
  if (group.tree.paths[turn.source()].is_host) {
    group.last_acks->on_sent_to_host(call.now, ack);
  } else {
    group.last_acks->on_sent_to_switch(call.now, ack, group.feedback_timer->since_data(call.now));
  }
}

void fail_source(Call& call, Group& group, const wire::Aeth& error) {
  const Psn all_have = group.turn.acknowledge();
  to_source(call, group, error, all_have + 1);
}

}  // namespace cepheus::fabric
