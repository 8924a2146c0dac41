#include "switch-emulator/engine/numbering.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/feedback.h"

namespace cepheus::fabric {

Claim Rebasing::claim(Call& call, OneSource& group, const GroupPacket& packet) const {
  if (group.turn.source() == packet.path) return Claim::kCurrent;
  const Path& path = group.tree.paths[packet.path];
  const Psn psn = packet.psn();
  const Psn first = call.rules().psn_from_state ? group.start + group.turn.turns(packet.path) : psn;
  // Bound: a host has fewer than 2^23 packets outstanding (IBTA 9.7.2), and its old duplicates are
  // at most that many of its own packets older.
  const bool old = before(psn, first);
  if (old && call.rules().old_duplicate_answer) return answer_old_duplicate(call, group, packet);
  if (beyond_window(call, first, psn)) return drop(call, Counter::kDropDataWindow);
  if (!old && !gate_is_open(call, group)) {
    return hold_at_gate(call, group, packet, {}, first);
  }
  admit(call, group, packet.path, call.port(path.port).host, group.turn.next(), first);
  return Claim::kCurrent;
}

std::optional<Psn> Rebasing::first_outstanding(const OneSource& group, PathNo path,
                                               Psn /*psn*/) const {
  return group.start + group.turn.turns(path);
}

namespace {

// The first packet of a newcomer's turn was lost: without a NAK it would have to time out. One NAK
// only, because each of the packets behind it would cost the newcomer a retry.
Claim nak_first(Call& call, OneSource& group, const GroupPacket& packet, Psn next) {
  Turn& turn = group.turn;
  const Path& path = group.tree.paths[packet.path];
  // Bound: the data window beyond `next`. PSNs below `next` belong to an older turn (begins_after).
  const bool is_newcomer = path.is_host && turn.ends_message() && after(packet.psn(), next) &&
                           !beyond_window(call, next, packet.psn());
  const bool is_answered = turn.gate().answered() == packet.path && call.rules().newcomer_nak_once;
  if (!is_newcomer || is_answered) {
    return drop(call, Counter::kDropConflict);
  }
  turn.gate().on_nak(packet.path);
  const auto sequence = static_cast<std::uint8_t>(wire::NakCode::kSequenceError);
  send_feedback(call, group, packet.path, name_of(packet), wire::AckKind::kNak, sequence, next);
  call.count(Counter::kNewcomerNak);
  return Claim::kHandled;
}

}  // namespace

Claim claim_synchronised(Call& call, OneSource& group, const GroupPacket& packet) {
  Turn& turn = group.turn;
  if (turn.source() == packet.path) {
    turn.pass_to(packet.headers.ip.source);  // several hosts may be behind it
    return Claim::kCurrent;
  }
  const Psn psn = packet.psn();
  const Psn next = turn.next();
  if (turn.begins_after(psn)) {
    if (call.rules().old_duplicate_answer) return answer_old_duplicate(call, group, packet);
    admit(call, group, packet.path, packet.headers.ip.source, psn, psn);
    return Claim::kCurrent;
  }
  // No source has a turn, and all have all packets: any packet of the next source begins its turn.
  // If a source has left and a member lacks a part of its turn, a newcomer waits as for any other
  // turn.
  const bool is_free = turn.source() == kNoPath && turn.is_finished();
  if (!is_free) {
    // Bounds: of PSNs the data window beyond `next`, of acknowledgements Turn::kMostUnderWay.
    const bool follows = turn.gate().path() == packet.path && turn.gate().holds() &&
                         after(psn, next) && !beyond_window(call, next, psn);
    if (psn != next && !follows) return nak_first(call, group, packet, next);
    const Path& path = group.tree.paths[packet.path];
    if (path.is_host && psn == next && turn.ends_message() &&
        before(turn.acked(packet.path), turn.sent())) {
      acknowledge_by_sending(call, group, packet.path);
    }
    if (!gate_is_open(call, group)) {
      return hold_at_gate(call, group, packet, name_of(packet), next);
    }
  }
  const bool had_nak = turn.gate().has_nak(packet.path);
  admit(call, group, packet.path, packet.headers.ip.source, next, next);
  // Receivers' NAKs for this packet would cost a second retry (rule nak_once).
  if (had_nak) turn.naks().on_sent({next});
  return Claim::kCurrent;
}

Claim HostSync::claim(Call& call, OneSource& group, const GroupPacket& packet) const {
  return claim_synchronised(call, group, packet);
}

std::optional<Psn> HostSync::first_outstanding(const OneSource& group, PathNo /*path*/,
                                               Psn psn) const {
  return psn == group.turn.next() ? std::optional(psn) : std::nullopt;
}

// Until it has set its queue pair's PSN through RESET it sends one NAK for its own packets, and is
// then silent. Bound: a host sends at most 2^22 packets before it sets its PSN
// (mrp::PsnSync::kMostSent), so its NAK is that near below the base.
bool HostSync::is_of_last_source(const Call& call, const OneSource& group, PathNo path,
                                 Psn psn) const {
  const Path& from = group.tree.paths[path];
  return call.rules().handover_rnr && from.is_host && path == group.turn.previous() &&
         before(psn, group.turn.base()) && group.turn.acked(path) == group.turn.base() - 1;
}

}  // namespace cepheus::fabric
