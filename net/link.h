// One direction of a link, without I/O: rate, delay, a bounded queue and faults, on the caller's
// time.
//
// offer() returns the time of the frame's arrival at the other end, or the reason for its drop. The
// live fabric and the simulator use the same object; the driver keeps the frame until it arrives.
// Faults draw from the link's own seeded generator, so equal seeds give equal faults.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>

#include "net/ecn.h"
#include "wire/splitmix.h"
#include "wire/types.h"

namespace cepheus::net {

// Priority flow control: data on this link is lossless.
struct PfcConfig {
  bool on = false;
  wire::Bytes headroom = 0;  // 0: by the link's rate and delay (net/pfc.h)
  bool operator==(const PfcConfig&) const = default;
};

struct LinkConfig {
  wire::BitRate rate;                 // unlimited by default
  wire::Duration delay{0};            // propagation, one way
  std::uint32_t mtu = 0;              // largest path MTU, payload bytes; 0: the fabric's
  wire::Bytes queue_bytes = 4 << 20;  // limit of the bytes that wait for the rate; more are dropped
  double loss = 0;                    // probabilities per frame, 0..1
  double duplicate = 0;               // ... of a second copy, up to reorder_by behind the first
  double reorder = 0;                 // ... of a delay by up to reorder_by more
  wire::Duration reorder_by{std::chrono::microseconds(50)};
  double corrupt = 0;  // ... of one flipped bit
  std::uint64_t seed = 1;
  EcnConfig ecn;  // of the queue before this link, where a switch sends; off by default
  PfcConfig pfc;  // of the switch at the far end, for its port of this link; off by default

  bool is_faulty() const { return loss != 0 || duplicate != 0 || reorder != 0 || corrupt != 0; }
  bool has_queue() const { return ecn.on || pfc.on; }
};

enum class LinkDrop : std::uint8_t { kNone, kLoss, kQueueFull, kDown };

// Fate of one offered frame.
struct Passage {
  LinkDrop drop = LinkDrop::kNone;
  std::uint8_t copies = 0;                 // 1, or 2 if duplicated; 0 if dropped
  std::array<wire::Instant, 2> arrival{};  // of each copy
  bool corrupt = false;                    // the first copy has bit `corrupt_bit` flipped
  std::uint32_t corrupt_bit = 0;  // bit index into the frame's bytes (Ethernet header to ICRC)
};

struct LinkCounters {
  std::uint64_t dropped_loss = 0, dropped_queue_full = 0, dropped_down = 0;
  std::uint64_t duplicated = 0, reordered = 0, corrupted = 0;
  std::uint64_t frames = 0, bytes = 0;
};

inline constexpr std::uint64_t kBitNanoseconds = 8ull * 1'000'000'000ull;  // per byte at 1 bit/s

class Link {
 public:
  explicit Link(const LinkConfig& config = {});

  Passage offer(wire::Instant now, std::size_t frame_bytes) {
    Passage passage = offer_control(now, frame_bytes);
    if (is_faulty_ && passage.copies != 0) meet_faults(frame_bytes, passage);
    return passage;
  }
  // The same without faults: for the control frames of the link's two ends.
  Passage offer_control(wire::Instant now, std::size_t frame_bytes);
  // Counts a frame that did not fit into the caller's queue before the link.
  void refuse(std::size_t frame_bytes);
  // When the transmitter will have sent all offered frames.
  wire::Instant free_at() const { return free_at_; }
  void set_faults(double loss, double duplicate, double reorder, double corrupt);
  void set_up(bool up) { up_ = up; }
  bool is_up() const { return up_; }
  wire::Bytes queued_bytes(wire::Instant now) const;

  const LinkConfig& config() const { return config_; }
  const LinkCounters& counters() const { return counters_; }

 private:
  bool has_space(wire::Instant now, std::size_t frame_bytes) const;
  wire::Duration serialise(wire::Instant now, std::size_t frame_bytes);
  void meet_faults(std::size_t frame_bytes, Passage& passage);
  wire::Duration hold_back();
  bool chance(double probability);

  // Ordered by use: a frame without faults touches only the end of the counters and the beginning
  // of the settings.
  LinkCounters counters_;
  wire::Instant free_at_{};
  // Remainder of the division by the rate, carried to the next frame.
  std::uint64_t residue_ = 0;
  // Cache of the last frame's size, since most frames have the same size: its time and remainder.
  std::size_t last_bytes_ = 0;
  std::uint64_t last_time_ = 0, last_rest_ = 0;
  bool up_ = true;
  bool is_faulty_;
  LinkConfig config_;
  wire::SplitMix random_;
};

inline Passage Link::offer_control(wire::Instant now, std::size_t frame_bytes) {
  Passage passage;
  ++counters_.frames;
  counters_.bytes += frame_bytes;
  if (!up_) {
    ++counters_.dropped_down;
    passage.drop = LinkDrop::kDown;
    return passage;
  }
  if (!has_space(now, frame_bytes)) {
    ++counters_.dropped_queue_full;
    passage.drop = LinkDrop::kQueueFull;
    return passage;
  }
  const wire::Instant sent = std::max(now, free_at_) + serialise(now, frame_bytes);
  free_at_ = sent;
  passage.copies = 1;
  passage.arrival[0] = sent + config_.delay;
  return passage;
}

// Whether queued_bytes() and the frame fit into the limit, without the division. An idle
// transmitter takes any frame, however small the limit.
inline bool Link::has_space(wire::Instant now, std::size_t frame_bytes) const {
  if (config_.rate.is_unlimited() || free_at_ <= now) return true;
  const auto work =
      static_cast<unsigned __int128>((free_at_ - now).count()) * config_.rate.bits_per_second;
  if (work < kBitNanoseconds) return true;
  return frame_bytes <= config_.queue_bytes &&
         work < static_cast<unsigned __int128>(config_.queue_bytes - frame_bytes + 1) *
                    kBitNanoseconds;
}

// Time on the wire, rounded down with the remainder carried to the next frame: a long run keeps the
// exact rate.
inline wire::Duration Link::serialise(wire::Instant now, std::size_t frame_bytes) {
  if (config_.rate.is_unlimited()) return wire::Duration{0};
  if (free_at_ < now) residue_ = 0;
  const std::uint64_t rate = config_.rate.bits_per_second;
  if (frame_bytes != last_bytes_) {
    assert(frame_bytes < 1u << 30);  // all in 64 bits
    const std::uint64_t work = frame_bytes * kBitNanoseconds;
    last_bytes_ = frame_bytes;
    last_time_ = work / rate;
    last_rest_ = work - last_time_ * rate;
  }
  residue_ += last_rest_;
  if (residue_ < rate) return wire::Duration{static_cast<std::int64_t>(last_time_)};
  residue_ -= rate;
  return wire::Duration{static_cast<std::int64_t>(last_time_ + 1)};
}

}  // namespace cepheus::net
