#include "switch-emulator/engine/replication.h"

#include <utility>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/feedback.h"
#include "switch-emulator/engine/numbering.h"

namespace cepheus::fabric {
namespace {

// Copies to every path but the source's; to those that lack `psn` only, if it has been here before.
std::uint32_t copy_out(Call& call, Group& group, const GroupPacket& packet, Psn psn, bool repeat) {
  const TurnName turn = group.turn.name();
  std::uint32_t wanted = 0;
  for (PathNo i = 0; i < group.paths.size(); ++i) {
    const Path& path = group.paths[i];
    if (i == group.turn.source() || (repeat && !before(path.acked(), psn))) continue;
    ++wanted;
    if (repeat && psn == path.acked() + 1) group.evidence[i].unanswered.note(call.now);
    if (!send_data(call, group, path, packet.frame, packet.headers, turn, psn)) continue;
    ++group.stats.copies;
  }
  return wanted;
}

}  // namespace

Disposition replicate(Call& call, Group& group, const GroupPacket& packet) {
  switch (claim_turn(call, group, packet)) {
    case Claim::kHeld:
      return packet.frame.external == nullptr ? Disposition::kDone : Disposition::kHeld;
    case Claim::kSettled:
      return Disposition::kDone;
    case Claim::kCurrent:
      break;
  }
  Turn& turn = group.turn;
  const Psn psn = turn.from_port(packet.psn());
  if (distance(turn.sent(), psn) > static_cast<std::int32_t>(call.config.data_window)) {
    call.count(Counter::kDropDataWindow);
    return Disposition::kDone;
  }
  call.count(Counter::kDataTaken);
  group.evidence[turn.source()].hear();
  ++group.stats.data_packets;
  group.stats.data_bytes += packet.frame.payload_len;

  const bool ends_message = wire::opcode_info(packet.headers.bth.opcode).last;
  if (turn.on_data(psn, ends_message)) {
    // Nobody else in this group: nobody else will say it has arrived.
    if (copy_out(call, group, packet, psn, false) == 0) acknowledge_to_source(call, group);
  } else if (copy_out(call, group, packet, psn, true) > 0) {
    if (psn == turn.base()) ask_to_wait_again(call, group);
  } else if (call.rules().lost_aggregate_answer) {
    call.count(Counter::kLostAggregateAnswered);
    acknowledge_to_source(call, group);
  }
  return Disposition::kDone;
}

void try_gate(Call& call, Group& group) {
  Gate& gate = group.turn.gate();
  if (!gate.holds() || !gate_is_open(call, group)) return;
  const PathNo path = gate.path();
  // What the gate would hold anew goes into the empty one.
  std::vector<Gate::Held> all = gate.take();
  for (const auto& [frame, headers] : all) {
    call.icrc = frame.icrc_state;
    call.ingress = group.paths[path].port;
    call.count(Counter::kGateLetThrough);
    if (replicate(call, group, {frame, headers, path}) == Disposition::kDone) call.release(frame);
  }
  gate.reuse(std::move(all));
}

void refuse_operation(Call& call, Group& group, const GroupPacket& packet) {
  call.count(Counter::kDropNotMulticastable);
  const Path& path = group.paths[packet.path];
  if (!path.is_host) return;
  const auto invalid = static_cast<std::uint8_t>(wire::NakCode::kInvalidRequest);
  if (group.turn.source() == packet.path) {
    fail_source(call, group, invalid);
    return;
  }
  // As a NAK acknowledges what lies below it, it names the first PSN that this host can have
  // outstanding.
  const auto next = group.strategies.numbering->first_outstanding(group, path, packet.psn());
  if (!next) return;
  send_feedback(call, group, path, {}, wire::AckKind::kNak, invalid, *next, path.messages());
}

}  // namespace cepheus::fabric
