// The gate holds packets of one newcomer, in order of their PSNs, each once. It refuses a second
// source's packets, and any beyond `max_held` or without a payload slot: their sender gets an RNR
// NAK, with a longer timer each time. Arrivals cost a search among the held ones only if out of
// order.
#include "switch-emulator/engine/group/gate.h"

#include <algorithm>
#include <utility>

#include "switch-emulator/engine/call.h"
#include "switch-emulator/engine/check.h"
#include "wire/situation.h"

namespace cepheus::fabric {

Gate::Kept Gate::keep(Call& call, const GroupPacket& packet, Ipv4 source) {
  if (!holds()) {
    path_ = packet.path;
    source_ = source;
  }
  if (!holds_for(packet.path, source)) {
    CEPHEUS_SITUATION("a second source sends while the gate holds packets of the first");
    return Kept::kNo;
  }
  HeldFrames& frames = call.held;
  const Psn psn = packet.psn();
  const auto psn_of = [&](HeldFrames::Place at) { return frames[at].headers.bth.psn; };
  // The frame before its place. Most come in order. Bound: all PSNs are in the data window behind
  // the turn's end (claim.cc).
  HeldFrames::Place before_it = HeldFrames::kNone, after_it = first_;
  if (holds() && !before(psn, psn_of(last_))) {
    before_it = last_;
    after_it = HeldFrames::kNone;
  }
  while (after_it != HeldFrames::kNone && !before(psn, psn_of(after_it))) {
    before_it = after_it;
    after_it = frames[after_it].next;
  }
  if (before_it != HeldFrames::kNone && psn_of(before_it) == psn) {
    CEPHEUS_SITUATION("a packet comes again while the gate holds it");
    return Kept::kAlready;
  }
  if (after_it != HeldFrames::kNone) CEPHEUS_SITUATION("packets reach the gate out of order");
  if (size_ >= call.config.max_held) {
    CEPHEUS_SITUATION("a gate is full");
    return Kept::kNo;
  }

  const Frame& frame = packet.frame;
  HeldPayload payload;
  if (frame.external != nullptr) {
    if (frame.ref == wire::kNoBuffer || !call.payloads.hold(frame.ref)) return Kept::kNo;
    payload = {call.payloads, frame.ref};
  }
  const auto place = frames.add(frame, packet.headers, std::move(payload), call.ingress());
  if (place == HeldFrames::kNone) return Kept::kNo;
  frames[place].next = after_it;
  (before_it == HeldFrames::kNone ? first_ : frames[before_it].next) = place;
  if (after_it == HeldFrames::kNone) last_ = place;
  ++size_;
  return Kept::kYes;
}

HeldFrames::Place Gate::take() {
  size_ = 0;
  return std::exchange(first_, HeldFrames::kNone);
}

std::size_t Gate::drop(HeldFrames& frames) {
  const std::size_t dropped = size_;
  for (auto at = take(); at != HeldFrames::kNone;) at = frames.remove(at).second;
  return dropped;
}

std::uint8_t Gate::next_timer(std::uint8_t first) {
  constexpr std::uint8_t kDouble = 2;  // codes: two more double the time
  if (first == 0) return first;        // the longest time
  const int timer = std::min<int>(first + kDouble * answers_, std::max(first, kLongestTimer));
  if (timer < kLongestTimer) ++answers_;
  return static_cast<std::uint8_t>(timer);
}

void Gate::renumber(PathNo gone, PathNo last) {
  for (PathNo* const number : {&path_, &answered_, &nacked_}) {
    if (*number == gone) {
      *number = kNoPath;
    } else if (*number == last) {
      *number = gone;
    }
  }
}

void Gate::check_consistent(std::size_t paths, std::size_t most) const {
  must(size_ <= most, "the gate holds too many frames");
  must(!holds() || path_ < paths, "held frames are of no path");
  must(answered_ == kNoPath || answered_ < paths, "the gate has answered no path");
  must(nacked_ == kNoPath || nacked_ < paths, "the gate has sent NAK to no path");
}

}  // namespace cepheus::fabric
