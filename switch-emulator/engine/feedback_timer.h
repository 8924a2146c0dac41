// When a turn's feedback is overdue: the round trips of each path, and the switch's requests after
// silence (docs/protocol.md, "Overdue feedback").
//
// All PSNs are the group's. Bound of all comparisons: they are in (min, sent], at most
// Turn::kMostUnderWay apart. PSNs that all paths have acknowledged are deleted.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "switch-emulator/engine/path.h"
#include "wire/types.h"

namespace cepheus::fabric {

class OneSource;
class Turn;
struct Call;

// The round trips of one path, smoothed as in RFC 6298, section 2.
class RoundTrip {
 public:
  bool is_known() const { return mean_ns_ > 0; }
  // The packet was sent once, so the answer is to that packet (Karn's algorithm).
  void add(Duration measured);
  // At least as long as a round trip. The shortest counts until the first measurement.
  void guess(Duration most);
  // Feedback was overdue: wait twice as long, until an acknowledgement moves.
  void back_off() {
    if (doublings_ < kMostDoublings) ++doublings_;
  }
  void end_back_off() { doublings_ = 0; }
  // Silence after which feedback is overdue. RFC 6298 takes the mean once. A switch takes it twice:
  // its wait then exceeds that of a switch below by more than the time between them, so the lower
  // switch requests first.
  Duration wait(Duration floor) const;
  Duration first_wait(Duration floor) const;  // without the doublings

 private:
  static constexpr std::uint8_t kMostDoublings = 6;

  std::uint32_t mean_ns_ = 0, deviation_ns_ = 0;
  std::uint8_t doublings_ = 0;
  bool is_guess_ = false;
};

class FeedbackTimer {
 public:
  // Requests for one packet. The source's own time-out repairs the rest.
  static constexpr int kMostRequests = 4;
  // Silence because of the source's round trip or of queues lasts no longer: both are estimates, and
  // NICs repeat after 67 ms or more.
  static constexpr Duration kLongestSilence = std::chrono::milliseconds(32);

  // Requests for a packet from a path that has never acknowledged one: rule request_unknown_once.
  static constexpr int kMostOfUnknown = 1;

  // Counts until the path's first measurement. A path with a dead member must get no request, so a
  // guess about some members counts only while the source is behind the path.
  void guess(PathNo path, Duration most, bool to_all);
  void on_path_added() { paths_.emplace_back(); }
  void on_path_removed(PathNo gone, PathNo last);
  // Another turn, or a simulated jump: no packet is under way.
  void reset();

  // A packet from the source is sent to the other paths; `is_new`: for the first time.
  void on_data(Instant now, PathNo from, Psn psn, bool ack_request, bool is_new);
  // The source has been sent a NAK for `psn`, and waits for `pause` before it repeats the packet. A
  // round trip is measured if the packet was requested once (Karn's algorithm), and guessed if it
  // was requested twice. Neither holds after a receiver's pause: NICs keep long ones roughly.
  void on_nak(Instant now, Psn psn, Duration pause);
  // A path that had acknowledged `before_it` has answered, and now acknowledges `acked`.
  void on_answer(Instant now, PathNo path, Psn before_it, Psn acked, bool is_rnr);
  // The minimum has risen to `min`. True: a request was unnecessary, because the answer came before
  // the repeat.
  bool on_min(Psn min);
  // The receiver is not ready.
  void on_unready(PathNo path) { paths_[path].is_unready = true; }
  // The source has waited, and repeats to the path the packet that it lacks first.
  void on_repeat(PathNo path) { is_sooner_ |= std::exchange(paths_[path].is_unready, false); }

  // Whether a packet that must be acknowledged has been sent, and a path has not acknowledged it.
  bool is_owed(Psn min) const { return owed_ && before(min, *owed_); }
  // When a request is due, if no packet arrives until then.
  Instant next(const Call& call, const OneSource& group) const;
  // Whether next() may be earlier than when this was called last. Packets alone make it later.
  bool take_sooner() { return std::exchange(is_sooner_, false); }
  // Whether one of the slowest paths has answered RNR, and the source still waits for it.
  bool awaits_receiver(const Turn& turn) const;
  // The packet that the slowest paths lack has been requested.
  void on_request(Instant now, const Turn& turn);

  std::size_t path_bytes() const { return paths_.capacity() * sizeof(PathTimer); }
  std::size_t paths() const { return paths_.size(); }

 private:
  struct PathTimer {
    RoundTrip trip;
    RoundTrip to_source;      // while the source is behind this path
    Instant answered{};       // when it last said what it has
    bool is_unready = false;  // it answered RNR, and the source has not repeated the packet since
    bool is_proven = false;   // it has acknowledged a packet
  };
  // A packet whose round trips are measured.
  struct Sample {
    Psn psn;
    Instant at;
  };
  // A NAK to the source, until it repeats the packet or all have it.
  struct SentNak {
    Psn psn;
    Instant first, last;  // of its NAKs
    Duration pause;
    bool is_paused;  // by a receiver
    int naks;
  };
  // Packets since all had all. Their queue, at a receiver of unknown rate, may take many times as
  // long to empty as it took to fill.
  struct Burst {
    Instant begin, end;
  };
  static constexpr int kSlowerReceiver = 16;
  Duration wait_of(const PathTimer& path, Duration floor, bool patient) const;
  int requests_for(Psn first) const { return first == first_ ? requests_ : 0; }

  std::vector<PathTimer> paths_;
  std::optional<Sample> sample_;
  std::optional<Psn> owed_;       // the last packet that must be acknowledged
  std::optional<Psn> requested_;  // until it is repeated
  std::optional<SentNak> sent_nak_;
  std::optional<Burst> burst_;
  bool is_sooner_ = false;
  Psn min_;
  Psn newest_;      // of the burst
  Instant last_{};  // last packet of the turn, data or feedback
  Psn first_;       // packet of the last request, and number of its requests:
  int requests_ = 0;
};

}  // namespace cepheus::fabric
