#include "switch-emulator/engine/turns.h"

#include <algorithm>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/feedback.h"

namespace cepheus::fabric {
namespace {

// The name between switches of the turn that `packet` says it belongs to. A host's packets carry
// none.
TurnName name_of(const DataPacket& packet) {
  return {packet.headers.ip.source, Psn(packet.headers.bth.destination_qp.value())};
}

// Ends the current turn, whose packets were [base, next), and begins the newcomer's at `next`.
void admit(Call& call, Group& group, PathNo newcomer, Ipv4 source_ip, Psn next, Psn source_first) {
  if (group.source != kNoPath) {
    Path& old = group.paths[group.source];
    if (old.is_host) {
      if (call.rebases()) {
        old.turns = Psn(old.turns + static_cast<std::uint32_t>(distance(group.base, next))).value();
      }
      // Past the gate, all of the turn's messages have arrived everywhere.
      old.messages += group.turn_messages + group.ends.take(group.agg, next - 1);
    }
    old.ack = next - 1;
  }
  group.previous = group.source;
  group.source = newcomer;
  group.source_ip = source_ip;
  group.base = next;
  group.source_first = source_first;
  group.agg = next - 1;
  group.nak.reset();
  group.asked.reset();
  group.said.reset();
  group.handover_timer = 0;
  group.ends = MessageEnds();
  group.turn_messages = 0;
  group.gate.answered = kNoPath;
  group.gate.answers = 0;
  group.gate.since.reset();
  group.paths[newcomer].ack = next - 1;
  group.find_slowest();
  call.count(Counter::kTurns);
}

// A packet of an earlier turn: its sender lost our last answer. Never answered with anything larger
// than itself: a NIC believes an ACK for more than it sent.
Claim answer_old_duplicate(Call& call, const Group& group, const DataPacket& packet) {
  const Path& path = group.paths[packet.path];
  send_feedback(call, group, path, name_of(packet), wire::AckKind::kAck, wire::Aeth::kNoCreditLimit,
                packet.psn(), path.messages);
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
  if (group.source == packet.path) return Claim::kCurrent;
  const Path& path = group.paths[packet.path];
  const Psn psn = packet.psn();
  const Psn first = call.rules().psn_from_state ? group.start + path.turns : psn;
  const bool old = before(psn, first);
  if (old && call.rules().old_duplicate_answer) return answer_old_duplicate(call, group, packet);
  if (beyond_window(call, first, psn)) return drop(call, Counter::kDropDataWindow);
  if (!old && !gate_is_open(call, group)) {
    return hold_at_gate(call, group, packet, {}, first);
  }
  admit(call, group, packet.path, path.host, group.sent + 1, first);
  return Claim::kCurrent;
}

// The first packet of a newcomer's turn was lost: it would have to time out. Once, since each of
// the packets behind it would cost the newcomer a retry.
Claim ask_for_first(Call& call, Group& group, const DataPacket& packet, Psn next) {
  const Path& path = group.paths[packet.path];
  const bool is_newcomer = path.is_host && group.ended && after(packet.psn(), next) &&
                           !beyond_window(call, next, packet.psn());
  if (!is_newcomer || group.gate.answered == packet.path) return drop(call, Counter::kDropConflict);
  group.gate.answered = packet.path;
  const auto sequence = static_cast<std::uint8_t>(wire::NakCode::kSequenceError);
  send_feedback(call, group, path, name_of(packet), wire::AckKind::kNak, sequence, next,
                path.messages);
  call.count(Counter::kNewcomerNak);
  return Claim::kSettled;
}

// PSNs mean the same on both sides of the port, and nothing names turns.
Claim claim_synchronised(Call& call, Group& group, const DataPacket& packet) {
  if (group.source == packet.path) {
    group.source_ip = packet.headers.ip.source;  // several hosts may be behind it
    return Claim::kCurrent;
  }
  const Psn psn = packet.psn();
  const Psn next = group.sent + 1;
  if (group.source != kNoPath) {
    if (before(psn, group.base)) {
      if (call.rules().old_duplicate_answer) return answer_old_duplicate(call, group, packet);
      admit(call, group, packet.path, packet.headers.ip.source, psn, psn);
      return Claim::kCurrent;
    }
    const bool follows = group.gate.path == packet.path && !group.gate.frames.empty() &&
                         after(psn, next) && !beyond_window(call, next, psn);
    if (psn != next && !follows) return ask_for_first(call, group, packet, next);
    const Path& path = group.paths[packet.path];
    if (path.is_host && psn == next && group.ended && before(path.ack, group.sent)) {
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
  const TurnName turn = name_of(packet);
  if (group.source == packet.path && turn.source == group.source_ip && turn.base == group.base) {
    return Claim::kCurrent;
  }
  const Psn psn = packet.psn();
  if (before(psn, group.base) && before(turn.base, group.base)) {
    if (call.rules().old_duplicate_answer) return answer_old_duplicate(call, group, packet);
    return drop(call, Counter::kDropConflict);
  }
  if (turn.base != group.sent + 1 || !group.ended) return drop(call, Counter::kDropConflict);
  if (before(psn, turn.base) || beyond_window(call, turn.base, psn)) {
    return drop(call, Counter::kDropDataWindow);
  }
  if (!gate_is_open(call, group)) {
    return hold_at_gate(call, group, packet, turn, turn.base);
  }
  admit(call, group, packet.path, turn.source, turn.base, turn.base);
  return Claim::kCurrent;
}

// RNR timer codes, each two of which double the time, up to 1.28 ms.
constexpr std::uint8_t kPatience = 14, kDouble = 2;

// Code 0 is the longest there is.
std::uint8_t next_timer(const Call& call, Gate& gate) {
  const std::uint8_t first = call.config.gate_rnr_timer;
  if (first == 0 || first >= kPatience) return first;
  if (gate.answers < kPatience / kDouble) ++gate.answers;
  return static_cast<std::uint8_t>(std::min<int>(first + kDouble * (gate.answers - 1), kPatience));
}

// The source has been silent for longer than any waits before it sends again, and somebody lacks a
// part of its turn. Unless the leader takes out whoever that is, the turn never ends: and if this is
// still so now, there is no leader.
bool is_abandoned(const Call& call, const Gate& gate) {
  return gate.since && call.now - *gate.since > call.config.gate_age;
}

Claim give_up(Call& call, Group& group, const DataPacket& packet, const TurnName& turn, Psn first) {
  Gate& gate = group.gate;
  if (gate.path == packet.path && gate.source == turn.source) {
    for (const Frame& frame : gate.frames) call.release(frame);
    gate.frames.clear();
  }
  const Path& path = group.paths[packet.path];
  const auto error = static_cast<std::uint8_t>(wire::NakCode::kRemoteOperational);
  send_feedback(call, group, path, turn, wire::AckKind::kNak, error, first, path.messages);
  call.count(Counter::kGateGaveUp);
  return Claim::kSettled;
}

enum class Kept : std::uint8_t { kYes, kAlready, kNo };

// Puts a packet among those that the gate holds, in PSN order.
Kept keep(Gate& gate, const DataPacket& packet, std::size_t most) {
  const bool lasting = packet.frame.external == nullptr || packet.frame.ref != wire::kNoBuffer;
  const auto psn_of = [](const Frame& f) { return wire::RoceHeaders::parse(f)->bth.psn; };
  std::size_t at = gate.frames.size();
  while (at > 0 && before(packet.psn(), psn_of(gate.frames[at - 1]))) --at;
  if (at > 0 && psn_of(gate.frames[at - 1]) == packet.psn()) return Kept::kAlready;
  if (!lasting || gate.frames.size() >= most) return Kept::kNo;
  gate.frames.reserve(most);  // once a group
  gate.frames.insert(gate.frames.begin() + static_cast<std::ptrdiff_t>(at), packet.frame);
  return Kept::kYes;
}

}  // namespace

Claim claim_turn(Call& call, Group& group, const DataPacket& packet) {
  const bool is_host = group.paths[packet.path].is_host;
  if (is_host && call.rebases()) return claim_rebased(call, group, packet);
  if (is_host || !call.rules().named_turns) return claim_synchronised(call, group, packet);
  return claim_named(call, group, packet);
}

bool gate_is_open(const Call& call, const Group& group) {
  if (!call.rules().gate) return true;
  if (!group.ended) return false;
  for (PathNo i = 0; i < group.paths.size(); ++i) {
    if (i == group.source) continue;
    if (before(group.paths[i].ack, group.sent)) return false;
  }
  return true;
}

Claim hold_at_gate(Call& call, Group& group, const DataPacket& packet, const TurnName& turn,
                   Psn first) {
  Gate& gate = group.gate;
  if (!gate.since) gate.since = call.now;
  if (is_abandoned(call, gate)) return give_up(call, group, packet, turn, first);
  // A sender that begins again wants an answer again; what follows its first packet needs none of
  // its own.
  if (packet.psn() == first && gate.answered == packet.path) gate.answered = kNoPath;

  if (gate.frames.empty()) {
    gate.path = packet.path;
    gate.source = turn.source;
  }
  bool is_kept = false;
  if (gate.path == packet.path && gate.source == turn.source) {
    switch (keep(gate, packet, call.config.max_held)) {
      case Kept::kYes:
        call.count(Counter::kGateHeld);
        return Claim::kHeld;
      case Kept::kAlready:
        if (packet.psn() != first) return drop(call, Counter::kDropGateAnswered);
        // Its sender has timed out: left without an answer it would soon give up. No need to ask
        // often, since what ends the wait is the answer to the packet that is kept.
        is_kept = true;
        break;
      case Kept::kNo:
        break;
    }
  }
  if (gate.answered == packet.path) return drop(call, Counter::kDropGateAnswered);
  gate.answered = packet.path;
  const Path& path = group.paths[packet.path];
  const std::uint8_t timer = is_kept ? kPatience : next_timer(call, gate);
  send_feedback(call, group, path, turn, wire::AckKind::kRnrNak, timer, first, path.messages);
  call.count(Counter::kGateRnr);
  return Claim::kSettled;
}

}  // namespace cepheus::fabric
