// The gate before a turn: a newcomer's first packets, kept until the old turn has ended, and whom
// it told to wait (docs/protocol.md, "Changing the source").
#pragma once

#include <optional>
#include <vector>

#include "switch-emulator/engine/group_packet.h"

namespace cepheus::fabric {

class Gate {
 public:
  enum class Kept : std::uint8_t { kYes, kAlready, kNo };
  struct Held {
    Frame frame;
    wire::RoceHeaders headers;
    HeldPayload payload;
  };

  // A newcomer is here and may not begin yet.
  void on_arrival(Instant now) {
    if (!since_) since_ = now;
  }
  // The old turn goes on.
  void on_old_source() { since_.reset(); }
  // The old turn's source has been silent for `time_limit` while a newcomer waited.
  bool is_past(Instant now, Duration time_limit) const {
    return since_ && now - *since_ > time_limit;
  }

  // Puts the first packets of one newcomer in PSN order, as they came: `most` at most, and what
  // `payloads` has room for. `source`: its turn's name, behind a switch port.
  Kept keep(const GroupPacket& packet, Ipv4 source, std::size_t most, PayloadStore& payloads);
  bool holds() const { return !frames_.empty(); }
  std::size_t size() const { return frames_.size(); }
  std::size_t room() const { return frames_.capacity(); }  // frames that it has memory for
  PathNo path() const { return path_; }                    // of whom it holds, or held last
  Ipv4 source() const { return source_; }
  // The frames, to be let through; the memory comes back by reuse().
  std::vector<Held> take();
  void reuse(std::vector<Held> frames);
  // Drops what it holds, and returns how many frames these were.
  std::size_t drop();
  // ... of what it holds of one newcomer.
  bool holds_for(PathNo path, Ipv4 source) const { return path_ == path && source_ == source; }

  // RNRs. A path that was told so and has not begun again since hears nothing more: kNoPath if
  // nobody was.
  PathNo answered() const { return answered_; }
  void on_begun_again() { answered_ = kNoPath; }
  void on_answered(PathNo path) { answered_ = path; }
  // A path was answered NAK: its first packet was lost, and a retry of its own is spent on it.
  void on_asked(PathNo path) { answered_ = asked_ = path; }
  bool has_asked(PathNo path) const { return path != kNoPath && asked_ == path; }
  // Timer code for the next RNR, beginning with `first`: a long wait needs few.
  std::uint8_t next_timer(std::uint8_t first);
  static constexpr std::uint8_t kLongestTimer = 14;  // 1.28 ms

  // The newcomer is admitted, or another one.
  void on_admitted() {
    answered_ = asked_ = kNoPath;
    answers_ = 0;
    since_.reset();
  }
  // Path `gone` has left, and `last` got its number.
  void renumber(PathNo gone, PathNo last);
  void check_consistent(std::size_t paths, std::size_t most) const;

 private:
  std::vector<Held> frames_;
  PathNo path_ = kNoPath;
  Ipv4 source_;
  PathNo answered_ = kNoPath;
  PathNo asked_ = kNoPath;
  std::uint8_t answers_ = 0;
  std::optional<Instant> since_;  // somebody waits, and the old source is silent
};

}  // namespace cepheus::fabric
