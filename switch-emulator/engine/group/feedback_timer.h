// When a turn's feedback is overdue: the round trips of each path, and the switch's requests after
// silence (docs/protocol.md, "Overdue feedback").
//
// All PSNs are the group's. Bound of all comparisons: they are in (min, sent], at most
// Turn::kMostUnderWay apart. PSNs that all paths have acknowledged are deleted.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "switch-emulator/engine/group/naks.h"
#include "switch-emulator/engine/group/path.h"
#include "switch-emulator/engine/group/round_trip.h"
#include "wire/types.h"

namespace cepheus::fabric {

class Group;
class Turn;
struct Call;

class FeedbackTimer {
 public:
  // Silence because of the source's round trip or of queues lasts no longer: both are estimates, and
  // NICs repeat after 67 ms or more.
  static constexpr Duration kLongestSilence = std::chrono::milliseconds(32);

  explicit FeedbackTimer(const Rules& rules)
      : is_on_(rules.request_again),
        is_patient_(rules.request_limit),
        most_after_rnr_(rules.rnr_again ? 2 : 0),
        most_of_unknown_(rules.request_unknown_once ? 1 : std::numeric_limits<int>::max()) {}

  // Counts until the path's first measurement. A path with a dead member must get no request, so a
  // guess about some members counts only while the source is behind the path.
  void guess(PathNo path, Duration most, bool to_all);
  void on_path_added() { paths_.emplace_back(); }
  void on_path_removed(PathNo gone, PathNo last);
  // Another turn, or a simulated jump: no packet is under way.
  void reset();

  // A packet from the source is sent to the other paths; `is_new`: for the first time. `repeat`: it
  // answers a NAK.
  void on_data(Instant now, PathNo from, Psn psn, bool ack_request, bool is_new,
               const std::optional<Naks::Repeat>& repeat);
  // A path that had acknowledged `before_it` has answered, and now acknowledges `acked`.
  void on_answer(Instant now, PathNo path, Psn before_it, Psn acked, bool is_rnr);
  // The minimum is `min`.
  void on_min(Psn min);
  // The receiver is not ready.
  void on_unready(PathNo path) { paths_[path].is_unready = is_sooner_ = true; }
  // The source has waited, and repeats to the path the packet that it lacks first.
  void on_repeat(PathNo path) { is_sooner_ |= std::exchange(paths_[path].is_unready, false); }

  // Since the source's last packet came.
  Duration since_data(Instant now) const { return now - data_at_; }
  // Whether a packet that must be acknowledged has been sent, and a path has not acknowledged it.
  bool is_owed(Psn min) const { return owed_ && before(min, *owed_); }
  // When a request is due, if no packet arrives until then.
  Instant next(const Call& call, const Group& group) const;
  // Whether next() may be earlier than when this was called last. Packets alone make it later.
  bool take_sooner() { return std::exchange(is_sooner_, false); }
  // Whether one of the slowest paths has answered RNR, and the source has not repeated its packet.
  bool awaits_receiver(const Turn& turn) const;
  // ... although the source's wait is over.
  bool may_have_lost_rnr(Instant now, const Turn& turn) const;
  // The packet that the slowest paths lack has been requested.
  void on_request(Instant now, const Turn& turn);

  std::size_t path_bytes() const { return paths_.capacity() * sizeof(PathTimer); }
  std::size_t paths() const { return paths_.size(); }

 private:
  // How long the source may take to answer feedback. None: not measured yet.
  std::optional<Duration> source_wait(const Turn& turn, Duration floor) const;
  Instant next_after_rnr(const Group& group, Duration floor) const;

  struct PathTimer {
    RoundTrip trip;
    RoundTrip to_source;       // while the source is behind this path
    Instant answered{};        // its last acknowledgement or NAK
    bool is_unready = false;   // it answered RNR, and the source has not repeated the packet since
    bool is_proven = false;    // it has acknowledged a packet
    std::int32_t at_once = 0;  // most packets that a measured answer has acknowledged, of late
    Duration took{};           // time in which they had come
  };
  // A packet whose round trips are measured.
  struct Sample {
    Psn psn;
    Instant at;
  };
  // Packets since all had all. Their queue, at a receiver of unknown rate, may take many times as
  // long to empty as it took to fill.
  struct Burst {
    Instant begin, end;
  };
  static constexpr int kSlowerReceiver = 16;

  // Rules, as they were when the group was made.
  const bool is_on_, is_patient_;
  const int most_after_rnr_;   // requests for a packet after a receiver's RNR NAK for it
  const int most_of_unknown_;  // requests for a packet of a path that has never acknowledged one
  std::vector<PathTimer> paths_;
  std::optional<Sample> sample_;
  std::optional<Psn> owed_;  // the last packet that must be acknowledged
  std::optional<Burst> burst_;
  bool is_sooner_ = false;
  Psn min_;
  Psn newest_;      // of the burst
  Instant last_{};  // last packet of the turn, data or feedback
  Instant data_at_{};
};

}  // namespace cepheus::fabric
