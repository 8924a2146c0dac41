#include "switch-emulator/engine/feedback.h"

#include <algorithm>

#include "switch-emulator/engine/call.h"
#include "wire/extension_headers.h"

namespace cepheus::fabric {
namespace {

using wire::AckKind;

// Sends to the source's port, in its numbering. `psn` is the group's.
void to_source(Call& call, Group& group, AckKind kind, std::uint8_t value, Psn psn) {
  const Path& path = group.paths[group.source];
  const std::uint32_t messages = path.messages + group.turn_messages;
  send_feedback(call, group, path, {group.source_ip, group.base}, kind, value,
                psn + distance(group.base, group.source_first), messages);
  call.count(Counter::kFeedbackToSource);
}

void send_nak(Call& call, Group& group, const HeldNak& nak) {
  group.asked = nak.psn;
  if (!nak.rnr) group.said = nak.psn;
  const auto sequence = static_cast<std::uint8_t>(wire::NakCode::kSequenceError);
  to_source(call, group, nak.rnr ? AckKind::kRnrNak : AckKind::kNak, nak.rnr ? nak.timer : sequence,
            nak.psn);
}

// What all have acknowledged may have grown to what the held NAK waits for, or past what the source
// knows. `from_slowest`: the feedback came by the path that the others were waiting for.
void check(Call& call, Group& group, bool from_slowest) {
  const Psn min = group.min();
  const Rules& rules = call.rules();
  if (group.nak && rules.drop_overtaken_nak && !before(min, group.nak->psn)) group.nak.reset();
  if (group.nak && min == group.nak->psn - 1 && (rules.recheck_held_nak || from_slowest)) {
    const HeldNak nak = *group.nak;
    group.nak.reset();
    group.advance_aggregate(min);
    send_nak(call, group, nak);
  } else if (after(min, group.agg)) {
    acknowledge_to_source(call, group);
  } else {
    call.count(Counter::kFeedbackAbsorbed);
  }
}

// Keeps the smallest NAK; of two for one packet an RNR NAK wins, with the longest timer asked for.
void hold_nak(Group& group, const HeldNak& nak) {
  if (!group.nak || before(nak.psn, group.nak->psn)) {
    group.nak = nak;
  } else if (nak.psn == group.nak->psn && nak.rnr) {
    group.nak->timer =
        group.nak->rnr ? wire::longer_rnr_timer(group.nak->timer, nak.timer) : nak.timer;
    group.nak->rnr = true;
  }
}

// The source knows that e is missing, or has been told before.
//
// After RNR(e) the same receiver also asks for e, which would cut the wait short; after NAK(e)
// others do, who missed it, too. What they sent before the repeat reached them arrives as long
// after it as their delays differ, and each would spend one of the source's retries. A receiver
// says NAK(e) once a gap, so a second one hardly ever says that the repeat was lost: that shows
// when the source times out.
bool is_known(const Call& call, const Group& group, Psn psn) {
  return group.asked == psn || (call.rules().nak_once && group.said == psn);
}

// Is there a source to tell, and is the feedback about its turn? Counts the reason if not.
bool concerns_turn(Call& call, const Group& group, PathNo path, const wire::RoceHeaders& h) {
  if (group.source == kNoPath) {
    call.count(Counter::kDropFeedbackNoSource);
    return false;
  }
  if (path == group.source) {
    call.count(Counter::kDropFeedbackStale);
    return false;
  }
  if (!group.paths[path].is_host && call.rules().named_turns &&
      (h.ip.destination != group.source_ip || h.bth.destination_qp != Qpn(group.base.value()))) {
    call.count(Counter::kDropFeedbackOtherTurn);
    return false;
  }
  return true;
}

// RNR timer codes, each two of which double the time: from 10.24 ms to 81.92 ms.
constexpr std::uint8_t kFirstHandoverTimer = 20, kLastHandoverTimer = 26;

// Without rebasing the last turn's source takes nothing before it has moved its queue pair's PSN on
// through RESET: until then it asks for what it sent itself, once, and is silent from then on.
// Asking the new source to wait and begin again is safe, since it acknowledges nothing of this
// turn; left alone, it would have to time out.
bool is_not_synchronised(const Call& call, const Group& group, PathNo path, const wire::Aeth& aeth,
                         Psn psn) {
  const Path& from = group.paths[path];
  return !call.rebases() && from.is_host && path == group.previous && aeth.is_sequence_nak() &&
         before(psn, group.base) && from.ack == group.base - 1;
}

// The source should begin its turn again later. Nobody else can be behind its first packet by less:
// `min` is what lies before the turn.
void ask_to_wait(Call& call, Group& group) {
  call.count(Counter::kHandoverRnr);
  hold_nak(group, {group.base, true, group.handover_timer});
  group.handover_timer = std::min<std::uint8_t>(group.handover_timer + 2, kLastHandoverTimer);
  check(call, group, true);
}

}  // namespace

void take_feedback(Call& call, Group& group, PathNo path, const wire::RoceHeaders& headers) {
  if (!concerns_turn(call, group, path, headers)) return;
  const wire::Aeth& aeth = headers.aeth;
  if (aeth.is_fatal_nak()) return fail_source(call, group, aeth.value);
  const bool is_ack = aeth.kind == AckKind::kAck;
  const bool is_rnr = aeth.kind == AckKind::kRnrNak;
  if (!is_ack && !is_rnr && !aeth.is_sequence_nak()) return call.count(Counter::kDropMalformed);

  Path& from = group.paths[path];
  ++from.heard;
  from.unanswered.clear();
  from.hear();
  const Psn psn = headers.bth.psn + (from.is_host ? from.turns : 0);
  const Psn cumulative = is_ack ? psn : psn - 1;
  if (is_not_synchronised(call, group, path, aeth, psn)) {
    if (group.handover_timer == 0) group.handover_timer = kFirstHandoverTimer;
    if (group.asked == group.base) return call.count(Counter::kFeedbackAbsorbed);
    return ask_to_wait(call, group);
  }
  // Real receivers send PSNs of long ago, and of before they were reset (facts of rdma_rxe).
  if (after(cumulative, group.sent)) return call.count(Counter::kDropFeedbackUnsent);
  if (before(cumulative, from.ack) || (is_ack && cumulative == from.ack)) {
    return call.count(Counter::kDropFeedbackStale);
  }
  const bool from_slowest = path == group.slowest;
  group.set_ack(path, cumulative);

  const Rules& rules = call.rules();
  if (!is_ack) {
    HeldNak nak{psn, is_rnr, aeth.value};
    if (rules.nak_policy == NakPolicy::kRewrite) {
      nak.psn = group.min() + 1;
      if (!is_rnr && is_known(call, group, nak.psn)) return call.count(Counter::kFeedbackAbsorbed);
      group.advance_aggregate(group.min());
      return send_nak(call, group, nak);
    }
    if (is_rnr ? !rules.rnr_ordering : !rules.nak_ordering) return send_nak(call, group, nak);
    if (group.nak && rules.drop_overtaken_nak && !before(group.min(), group.nak->psn)) {
      group.nak.reset();
    }
    if (is_rnr || !is_known(call, group, psn)) hold_nak(group, nak);
  }
  check(call, group, from_slowest);
}

void ask_to_wait_again(Call& call, Group& group) {
  if (group.handover_timer == 0 || group.previous == kNoPath) return;
  if (group.paths[group.previous].ack == group.base - 1) ask_to_wait(call, group);
}

void acknowledge_by_sending(Call& call, Group& group, PathNo path) {
  const bool from_slowest = path == group.slowest;
  ++group.paths[path].heard;
  group.set_ack(path, group.sent);
  check(call, group, from_slowest);
}

void recheck(Call& call, Group& group) {
  if (group.source != kNoPath) check(call, group, true);
}

void take_cnp(Call& call, Group& group, PathNo path, const Frame& frame,
              const wire::RoceHeaders& headers) {
  if (!concerns_turn(call, group, path, headers)) return;
  if (send_cnp(call, group, frame, headers)) call.count(Counter::kCnpToSource);
}

void acknowledge_to_source(Call& call, Group& group) {
  group.advance_aggregate(group.min());
  to_source(call, group, AckKind::kAck, wire::Aeth::kNoCreditLimit, group.agg);
}

void fail_source(Call& call, Group& group, std::uint8_t code) {
  group.advance_aggregate(group.min());
  to_source(call, group, AckKind::kNak, code, group.agg + 1);
}

}  // namespace cepheus::fabric
