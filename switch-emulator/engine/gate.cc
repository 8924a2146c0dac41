#include "switch-emulator/engine/gate.h"

#include <algorithm>
#include <utility>

#include "switch-emulator/engine/check.h"

namespace cepheus::fabric {

Gate::Kept Gate::keep(const GroupPacket& packet, Ipv4 source, std::size_t most,
                      PayloadStore& payloads) {
  if (frames_.empty()) {
    path_ = packet.path;
    source_ = source;
  }
  if (!holds_for(packet.path, source)) return Kept::kNo;
  const Frame& frame = packet.frame;
  const Psn psn = packet.psn();
  const auto psn_of = [](const Held& held) { return held.headers.bth.psn; };
  std::size_t at = frames_.size();
  // Bound: all PSNs are in the data window behind the turn's end (claim.cc).
  while (at > 0 && before(psn, psn_of(frames_[at - 1]))) --at;
  if (at > 0 && psn_of(frames_[at - 1]) == psn) return Kept::kAlready;
  if (frames_.size() >= most) return Kept::kNo;
  HeldPayload payload;
  if (frame.external != nullptr) {
    if (frame.ref == wire::kNoBuffer || !payloads.hold(frame.ref)) return Kept::kNo;
    payload = {payloads, frame.ref};
  }
  frames_.reserve(most);  // once a group
  frames_.insert(frames_.begin() + static_cast<std::ptrdiff_t>(at),
                 {frame, packet.headers, std::move(payload)});
  return Kept::kYes;
}

std::vector<Gate::Held> Gate::take() { return std::exchange(frames_, {}); }

std::size_t Gate::drop() {
  const std::size_t dropped = frames_.size();
  frames_.clear();
  return dropped;
}

void Gate::reuse(std::vector<Held> frames) {
  if (!frames_.empty()) return;
  frames.clear();
  frames_ = std::move(frames);
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
  must(frames_.size() <= most, "the gate holds too many frames");
  must(frames_.empty() || path_ < paths, "held frames are of no path");
  must(answered_ == kNoPath || answered_ < paths, "the gate has answered no path");
  must(nacked_ == kNoPath || nacked_ < paths, "the gate has sent NAK to no path");
}

}  // namespace cepheus::fabric
