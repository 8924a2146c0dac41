// The gate before a turn: a newcomer's first packets, held until the old turn has ended, and the
// newcomers that must wait (docs/protocol.md, "Changing the source").
#pragma once

#include <optional>

#include "net/rules.h"
#include "switch-emulator/engine/group/group_packet.h"
#include "switch-emulator/engine/group/held_frames.h"

namespace cepheus::fabric {

struct Call;

class Gate {
 public:
  enum class Kept : std::uint8_t { kYes, kAlready, kNo };

  explicit Gate(const net::Rules& rules = {})
      : holds_newcomers_(rules.gate), naks_once_(rules.newcomer_nak_once) {}

  // Without it, newcomers begin at once.
  bool holds_newcomers() const { return holds_newcomers_; }

  // A newcomer is here and may not begin yet.
  void on_arrival(Instant now) {
    if (!since_) since_ = now;
  }
  // The old turn goes on.
  void on_old_source() { since_.reset(); }
  // Whether the old turn's source has been silent for `limit` while a newcomer waited.
  bool is_past(Instant now, Duration limit) const { return since_ && now - *since_ > limit; }

  // Inserts a newcomer's packets in PSN order, as frames: `max_held` at most, and within the limits
  // of the call's payloads and held frames. `source`: its turn's name, behind a switch port.
  Kept keep(Call& call, const GroupPacket& packet, Ipv4 source);
  bool holds() const { return size_ != 0; }
  std::size_t size() const { return size_; }
  PathNo path() const { return path_; }  // of the newcomer that it holds, or held last
  Ipv4 source() const { return source_; }
  // Takes the frames out, to be let through: the place of the first. The caller removes them.
  HeldFrames::Place take();
  // Drops all held frames, and returns their number.
  std::size_t drop(HeldFrames& frames);
  // Whether it holds, or held last, the frames of this newcomer.
  bool holds_for(PathNo path, Ipv4 source) const { return path_ == path && source_ == source; }

  // RNRs. The newcomer that was answered RNR and has not begun again since gets no other answer;
  // kNoPath: none.
  PathNo answered() const { return answered_; }
  void on_begun_again() { answered_ = kNoPath; }
  void on_answered(PathNo path) { answered_ = path; }
  // A path was answered NAK, because its first packet was lost; this spends one of its retries.
  void on_nak(PathNo path) { answered_ = nacked_ = path; }
  bool has_nak(PathNo path) const { return path != kNoPath && nacked_ == path; }
  // The path gets no NAK for its first packet any more.
  bool spares(PathNo path) const { return naks_once_ && answered_ == path; }
  // Timer code of the next RNR, beginning with `first`: a long wait needs few RNRs.
  std::uint8_t next_timer(std::uint8_t first);
  static constexpr std::uint8_t kLongestTimer = 14;  // 1.28 ms

  // That newcomer, or another one, is admitted.
  void on_admitted() {
    answered_ = nacked_ = kNoPath;
    answers_ = 0;
    since_.reset();
  }
  // Path `gone` has left, and `last` has its number.
  void renumber(PathNo gone, PathNo last);
  void check_consistent(std::size_t paths, std::size_t most) const;

 private:
  // In the switch's store. Bound: a gate that holds frames has them removed before it is freed
  // (Behaviour::release_held).
  HeldFrames::Place first_ = HeldFrames::kNone, last_ = HeldFrames::kNone;
  std::uint16_t size_ = 0;
  PathNo path_ = kNoPath;
  Ipv4 source_;
  PathNo answered_ = kNoPath;
  PathNo nacked_ = kNoPath;
  std::uint8_t answers_ = 0;
  bool holds_newcomers_, naks_once_;
  std::optional<Instant> since_;  // start of the old source's silence while a newcomer waits
};

}  // namespace cepheus::fabric
