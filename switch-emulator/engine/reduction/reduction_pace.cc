// A reduction group's answer to congestion, and the times after which it repeats units.
#include <algorithm>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/reduction/hop_packets.h"
#include "switch-emulator/engine/reduction/reduction_group.h"
#include "wire/ecn.h"
#include "wire/situation.h"
#include "wire/times.h"

namespace cepheus::fabric {

// Marks on a path's contributions and on its results slow the path's contributions, and so, by the
// window, all others'. Marks and notifications from the parent slow the path that all waited for.
void ReductionGroup::take_marks(Call& call, HopPackets& packets, const GroupPacket& packet) {
  const bool is_marked = wire::ecn_of(packet.headers.ip.tos) == wire::Ecn::kExperienced;
  const bool is_cnp = packet.headers.bth.opcode == wire::Opcode::kCnp;
  if (!is_marked && !is_cnp && !packet.headers.bth.becn) return;
  if (packet.path != parent()) return slow(call, packets, packet.path);
  if (latest_ == kNoPath) return;
  CEPHEUS_SITUATION("congestion above slows the path that all waited for");
  slow(call, packets, latest_);
}

void ReductionGroup::slow(Call& call, HopPackets& packets, PathNo path) {
  Hop& hop = hops_[path];
  if (call.now < hop.slowed_until) return;
  hop.slowed_until = call.now + wire::times::kCnpGap;
  packets.send_cnp(path);
}

// The least time after which an answer is overdue: a switch's acknowledgement may be late.
Duration ReductionGroup::floor_of(const Call& call, PathNo path) const {
  const Duration wait = call.config.feedback_wait;
  return tree_.paths[path].is_host ? wait : wait + kAckWait;
}

// When units are repeated. Packets that wait for the end of a pause are under way.
Instant ReductionGroup::repeat_due(const Call& call, PathNo path) const {
  const Requester& out = hops_[path].out;
  if (!out.is_paused() && !call.rules().reduction_repeats) return wire::kNever;
  const auto pause_end = call.pause_end(tree_.paths[path].port);
  const Duration floor = std::max(floor_of(call, path), pause_end ? kLongestSilence : Duration{});
  // Repeats to a member are its probes.
  const bool is_judged = tree_.paths[path].is_host && is_requested(call.now);
  return out.due(floor, pause_end.value_or(Instant()),
                 is_judged ? probe_wait_ : Requester::kLongestWait);
}

}  // namespace cepheus::fabric
