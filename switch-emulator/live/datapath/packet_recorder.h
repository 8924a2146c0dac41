// Packets of a fabric's switches, kept for a recording (support/recording/timeline.h): a ring
// between the datapath's thread, which writes and never waits, and the thread that answers
// requests.
//
// Data and acknowledgements are sampled by time: the first ones of each window, with all their
// copies and merged acknowledgements, so that samples are complete. Rare events are always kept:
// NAKs, notifications, registration, retransmissions, and the switches' counters of turns, gates
// and evictions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/recording/counter_watch.h"
#include "support/recording/sighting.h"
#include "switch-emulator/engine/incidents.h"
#include "wire/frame.h"

namespace cepheus::live {

class PacketRecorder {
 public:
  static constexpr std::size_t kMost = 1 << 15;  // sightings in the ring
  static constexpr wire::Duration kWindow = std::chrono::milliseconds(10);

  // Extends the lease. `per_window`: number of sampled packets that come in.
  PacketRecorder(std::size_t switches, wire::Instant lease, std::uint32_t per_window);

  // --- On the datapath's thread.

  // Before the first packet: earlier counts are no events.
  void begin(std::size_t at, const fabric::Counters& counters);
  // Ends it for good, if its lease is over.
  bool end_if_over(wire::Instant now);
  struct Place {
    std::size_t at = 0;  // switch
    wire::PortId port;
    bool is_host = false;  // behind the port
  };
  void arrives(wire::Instant now, const Place& place, const wire::Frame& frame);
  // The counters of that switch after the packet.
  void counted(const Place& place, const fabric::Counters& counters);
  void leaves(const Place& place, const wire::Frame& frame);
  // Packets that leave from now on were not caused by it.
  void handled() { in_hand_ = Hand::kNothing; }

  // --- On one other thread.

  bool is_over(wire::Instant now) const { return now.time_since_epoch().count() >= lease_.load(); }
  // False: it has ended, and records nothing more.
  bool extend(wire::Instant lease);
  // The oldest ones, at most `most`.
  std::vector<recording::Sighting> take(std::size_t most);
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  std::uint64_t passed_over() const { return passed_over_.load(std::memory_order_relaxed); }

 private:
  enum class Hand : std::uint8_t { kNothing, kPassedOver, kKept };
  struct Stream {  // of a source's packets, at its port
    std::uint64_t name = 0;
    std::uint32_t psn = 0;  // the last that was new
  };
  static constexpr std::size_t kStreams = 256;
  // A PSN further back begins another connection.
  static constexpr std::int32_t kRepeatWindow = 1 << 16;

  bool is_repeat(const Place& place, const wire::Frame& frame, std::uint32_t psn);
  bool may_sample(wire::Instant now);
  void put(recording::Sighting seen, const Place& place);

  using Watch = recording::CounterWatch<fabric::Counter, fabric::kIncidents.size()>;
  std::vector<Watch> counters_;
  std::array<Stream, kStreams> streams_{};
  const std::uint32_t per_window_;
  std::uint32_t left_ = 0;  // in this window
  wire::Instant window_ends_{};
  Hand in_hand_ = Hand::kNothing;
  recording::Sighting arrived_;

  std::vector<recording::Sighting> ring_;
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  std::atomic<std::uint64_t> lost_{0}, passed_over_{0};
  static constexpr std::int64_t kEnded = std::numeric_limits<std::int64_t>::min();
  std::atomic<std::int64_t> lease_;  // kEnded stays
};

}  // namespace cepheus::live
