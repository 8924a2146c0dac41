// A packet of another path than the source's claims the turn. It begins a turn only if the last one
// has ended everywhere (the gate); before that it is held, or its sender waits by RNR NAK. Other
// packets, and their answers:
//
//   of an earlier turn                 acknowledged again: its sender has lost that ACK
//   beyond the data window             dropped: forged
//   behind a newcomer's lost first     one NAK for the first packet (host-sync alone)
//   of a turn that can't begin yet     dropped: its sender repeats it
//
// A switch names turns by source and first PSN. A host's packets have no name: with rebasing its
// own count of packets tells old ones (Rebasing), with host-sync the group's PSN does (HostSync). A
// newcomer that has waited for longer than a leader may take to evict gets a fatal NAK: the leader
// is gone.
#include "switch-emulator/engine/registration/claim.h"

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/group/feedback.h"
#include "wire/situation.h"

namespace cepheus::fabric {
namespace {

// The turn's name in `packet`, which packets between switches carry. Packets of hosts have none.
TurnName name_of(const GroupPacket& packet) {
  return {packet.headers.ip.source, Psn(packet.headers.bth.destination_qp.value())};
}

// Admits the newcomer at `path`; its packets begin at `first`.
Claim admit(Call& call, Group& group, PathNo newcomer, Ipv4 source_ip, Psn first, Psn port_first) {
  group.begin_turn({newcomer, group.tree.paths[newcomer].is_host, source_ip, first, port_first});
  call.count(Counter::kTurns);
  return Claim::kCurrent;
}

Claim drop(Call& call, Counter reason) {
  call.count(reason);
  return Claim::kHandled;
}

// A packet of an earlier turn: its sender has lost the last answer. The answer never has a larger
// PSN than the packet: a NIC believes an ACK for more than it sent.
Claim answer_old_duplicate(Call& call, const Group& group, const GroupPacket& packet) {
  CEPHEUS_SITUATION("a packet of an earlier turn comes again");
  if (!group.conditions.answers_old_duplicates) return drop(call, Counter::kDropConflict);
  send_feedback(call, group, packet.path, name_of(packet), {}, packet.psn());
  call.count(Counter::kOldDuplicateAnswered);
  return Claim::kHandled;
}

// A NIC's packets are within 2^23 of its first outstanding one (IBTA 9.7.2). A packet outside is
// forged. It is dropped as too far ahead, or answered as old.
bool beyond_window(const Call& call, Psn expected, Psn psn) {
  return distance(expected, psn) > static_cast<std::int32_t>(call.config.data_window);
}

// The source has been silent for longer than the longest wait before a retransmission, and a member
// lacks a part of its turn. The turn ends only if the leader evicts that member. The leader has not
// done so by now, so it is gone.
Claim give_up(Call& call, Group& group, const GroupPacket& packet, const TurnName& turn,
              Psn first) {
  Gate& gate = group.turn.gate();
  CEPHEUS_RARE_SITUATION("a newcomer waits at the gate for longer than its leader may take");
  if (gate.holds_for(packet.path, turn.source)) {
    empty_gate(call, group, group.tree.paths[packet.path].port);
  }
  const auto error = wire::Aeth::nak(wire::NakCode::kRemoteOperational);
  send_feedback(call, group, packet.path, turn, error, first);
  call.count(Counter::kGateGaveUp);
  return Claim::kHandled;
}

// Adds a packet to the gate, or answers RNR(first). `first` is the newcomer's first PSN in the
// numbering of its port, `turn` its turn's name.
Claim hold_at_gate(Call& call, Group& group, const GroupPacket& packet, const TurnName& turn,
                   Psn first) {
  Gate& gate = group.turn.gate();
  gate.on_arrival(call.now);
  if (gate.is_past(call.now, call.config.gate_age)) {
    return give_up(call, group, packet, turn, first);
  }
  // A sender that begins again needs another answer; the packets behind its first need none.
  if (packet.psn() == first && gate.answered() == packet.path) {
    CEPHEUS_SITUATION("a newcomer begins again after its RNR NAK, and the gate is still shut");
    gate.on_begun_again();
  }

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
  if (kept == Gate::Kept::kAlready)
    CEPHEUS_SITUATION("a newcomer times out while the gate holds its first packet");
  // A newcomer that repeats its first packet although the gate holds it has timed out, and would
  // soon give up without an answer. It needs few RNRs, because the answer to that packet
  // ends its wait.
  const std::uint8_t timer = kept == Gate::Kept::kAlready
                                 ? Gate::kLongestTimer
                                 : gate.next_timer(call.config.gate_rnr_timer);
  send_feedback(call, group, packet.path, turn, {wire::AckKind::kRnrNak, timer}, first);
  call.count(Counter::kGateRnr);
  return Claim::kHandled;
}

Claim claim_named(Call& call, Group& group, const GroupPacket& packet) {
  const TurnName name = name_of(packet);
  const Turn& turn = group.turn;
  const Psn psn = packet.psn();
  // The name's base is not compared: a turn of almost 2^24 packets may have begun at the present
  // `next`.
  if (turn.begins_after(psn)) return answer_old_duplicate(call, group, packet);
  if (name.base != turn.next() || !turn.ends_message()) {
    CEPHEUS_SITUATION("a switch passes on a turn that can't begin yet");
    return drop(call, Counter::kDropConflict);
  }
  if (before(psn, name.base) || beyond_window(call, name.base, psn)) {
    return drop(call, Counter::kDropDataWindow);
  }
  if (!turn.admits_newcomer()) return hold_at_gate(call, group, packet, name, name.base);
  return admit(call, group, packet.path, name.source, name.base, name.base);
}

// The first packet of a newcomer's turn was lost: without a NAK it would have to time out. One NAK
// only, because each of the packets behind it would cost the newcomer a retry.
Claim nak_first(Call& call, Group& group, const GroupPacket& packet, Psn next) {
  Turn& turn = group.turn;
  const Path& path = group.tree.paths[packet.path];
  // Bound: the data window beyond `next`. PSNs below `next` belong to an older turn (begins_after).
  const bool is_newcomer = path.is_host && turn.ends_message() && after(packet.psn(), next) &&
                           !beyond_window(call, next, packet.psn());
  const bool is_answered = turn.gate().spares(packet.path);
  if (is_newcomer && is_answered)
    CEPHEUS_SITUATION("a newcomer with a lost first packet has had its NAK");
  if (!is_newcomer || is_answered) return drop(call, Counter::kDropConflict);
  CEPHEUS_SITUATION("a newcomer's first packet is lost");
  turn.gate().on_nak(packet.path);
  const auto sequence = wire::Aeth::nak(wire::NakCode::kSequenceError);
  send_feedback(call, group, packet.path, name_of(packet), sequence, next);
  call.count(Counter::kNewcomerNak);
  return Claim::kHandled;
}

// PSNs are the same on both sides of the port, and turns have no names.
Claim claim_synchronised(Call& call, Group& group, const GroupPacket& packet) {
  Turn& turn = group.turn;
  const Psn psn = packet.psn();
  const Psn next = turn.next();
  if (turn.begins_after(psn)) return answer_old_duplicate(call, group, packet);
  // No source has a turn, and all have all packets: any packet of the next source begins its turn.
  // If a source has left and a member lacks a part of its turn, a newcomer waits as for any other
  // turn.
  const bool is_free = turn.source() == kNoPath && turn.is_finished();
  if (is_free) CEPHEUS_SITUATION("a newcomer begins after the last source has left");
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
    if (!turn.admits_newcomer()) {
      return hold_at_gate(call, group, packet, name_of(packet), next);
    }
  }
  const bool had_nak = turn.gate().has_nak(packet.path);
  admit(call, group, packet.path, packet.headers.ip.source, next, next);
  // Receivers' NAKs for this packet would cost a second retry (rule nak_once).
  if (had_nak) {
    CEPHEUS_SITUATION("a newcomer with a NAK repeats its first packet, and is admitted");
    turn.naks().on_sent_before(next);
  }
  return Claim::kCurrent;
}

}  // namespace

Claim claim_turn(Call& call, Group& group, const GroupPacket& packet) {
  Turn& turn = group.turn;
  const bool is_host = group.tree.paths[packet.path].is_host;
  const bool is_named = !is_host && turn.has_names();
  if (packet.path == turn.source() && (!is_named || name_of(packet) == turn.name())) {
    if (!is_host && !is_named) turn.pass_to(packet.headers.ip.source);
    return Claim::kCurrent;
  }
  if (is_named) return claim_named(call, group, packet);
  return is_host ? group.numbering.claim(call, group, packet)
                 : claim_synchronised(call, group, packet);
}

void empty_gate(Call& call, Group& group, PortId port) {
  call.counters.add(port, Counter::kGateEmptied, group.turn.gate().drop(call.held));
}

Claim Rebasing::claim(Call& call, Group& group, const GroupPacket& packet) const {
  const Path& path = group.tree.paths[packet.path];
  const Psn psn = packet.psn();
  const Psn first = knows_first_ ? group.start + group.turn.turns(packet.path) : psn;
  // Bound: a host has fewer than 2^23 packets outstanding (IBTA 9.7.2), and its old duplicates are
  // at most that many of its own packets older.
  if (before(psn, first)) return answer_old_duplicate(call, group, packet);
  if (beyond_window(call, first, psn)) return drop(call, Counter::kDropDataWindow);
  if (!group.turn.admits_newcomer()) return hold_at_gate(call, group, packet, {}, first);
  return admit(call, group, packet.path, call.port(path.port).host, group.turn.next(), first);
}

std::uint32_t Rebasing::msn(const Group& group, PathNo path, std::uint32_t messages) const {
  return (group.turn.messages(path) + messages) & Psn::kMask;
}

std::optional<Psn> Rebasing::first_outstanding(const Group& group, PathNo path, Psn /*psn*/) const {
  return group.start + group.turn.turns(path);
}

Claim HostSync::claim(Call& call, Group& group, const GroupPacket& packet) const {
  return claim_synchronised(call, group, packet);
}

std::optional<Psn> HostSync::first_outstanding(const Group& group, PathNo /*path*/, Psn psn) const {
  return psn == group.turn.next() ? std::optional(psn) : std::nullopt;
}

// Until it has set its queue pair's PSN through RESET it sends one NAK for its own packets, and is
// then silent. Bound: a host sends at most 2^22 packets before it sets its PSN
// (mrp::PsnSync::kMostSent), so its NAK is that near below the base.
bool HostSync::is_of_last_source(const Group& group, PathNo path, Psn psn) const {
  return waits_ && group.tree.paths[path].is_host && before(psn, group.turn.base()) &&
         group.turn.acked(path) == group.turn.base() - 1;
}

}  // namespace cepheus::fabric
