#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/numbering.h"

namespace cepheus::fabric {

Claim Rebasing::claim(Call& call, OneSource& group, const GroupPacket& packet) const {
  if (group.turn.source() == packet.path) return Claim::kCurrent;
  const Path& path = group.tree.paths[packet.path];
  const Psn psn = packet.psn();
  const Psn first = call.rules().psn_from_state ? group.start + group.turn.turns(packet.path) : psn;
  // Bound: a host has fewer than 2^23 packets outstanding (IBTA 9.7.2), and its old duplicates are no
  // older than that many of its own packets.
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

}  // namespace cepheus::fabric
