// The ring has one writer and one reader, with release and acquire on its two counts. A full ring
// loses the new sighting and counts it. The lease is one atomic number: either the writer ends it
// or the reader extends it, and an ended one stays ended.
//
// Repeats are found in a table of kStreams slots by hash. A collision may miss a repeat. Time
// stamps are taken when a sighting is stored.
#include "switch-emulator/live/datapath/packet_recorder.h"

#include <algorithm>

#include "wire/byte_order.h"
#include "wire/clock.h"
#include "wire/roce.h"

namespace cepheus::live {
namespace {

using recording::Event;
using recording::PacketKind;
using recording::Sighting;

constexpr std::size_t kQpOffset = wire::kBthOffset + 5;

bool is_rare(PacketKind kind) { return kind != PacketKind::kData && kind != PacketKind::kAck; }

// There is one writer, so the sum need not be atomic.
void add_one(std::atomic<std::uint64_t>& count) {
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

PacketRecorder::PacketRecorder(std::size_t switches, wire::Instant lease, std::uint32_t per_window)
    : counters_(switches, Watch(fabric::kIncidents)),
      per_window_(per_window),
      ring_(kMost),
      lease_(lease.time_since_epoch().count()) {}

void PacketRecorder::begin(std::size_t at, const fabric::Counters& counters) {
  counters_[at].look(counters, [](std::size_t, std::uint64_t) {});
}

// If the other thread extends the lease at the same moment, either this call sees it, or that call
// fails.
bool PacketRecorder::end_if_over(wire::Instant now) {
  std::int64_t lease = lease_.load(std::memory_order_relaxed);
  return now.time_since_epoch().count() >= lease && lease_.compare_exchange_strong(lease, kEnded);
}

bool PacketRecorder::extend(wire::Instant until) {
  std::int64_t lease = lease_.load();
  while (lease != kEnded) {
    if (lease_.compare_exchange_weak(lease, until.time_since_epoch().count())) return true;
  }
  return false;
}

bool PacketRecorder::may_sample(wire::Instant now) {
  if (now >= window_ends_) {
    window_ends_ = now + kWindow;
    left_ = per_window_;
  }
  if (left_ == 0) return false;
  --left_;
  return true;
}

// Two streams in one slot replace each other: then a repeat is missed, but none is invented.
bool PacketRecorder::is_repeat(const Place& place, const wire::Frame& frame, std::uint32_t psn) {
  const auto opcode = static_cast<wire::Opcode>(frame.bytes[wire::kBthOffset]);
  if (!place.is_host || !wire::opcode_info(opcode).request()) return false;
  const std::uint64_t name = std::uint64_t{wire::load_be24(&frame.bytes[kQpOffset])} << 40 ^
                             std::uint64_t{place.port.value()} << 32 ^
                             std::uint64_t{place.at} << 50 ^
                             wire::load_be32(&frame.bytes[wire::kIpOffset + 16]);
  Stream& stream = streams_[(name * 0x9E3779B97F4A7C15ull) >> 56];
  // Bound: none over a pause. Then a new packet may look like a repeat, in the recording only.
  const std::int32_t ahead = distance(wire::Psn(stream.psn), wire::Psn(psn));
  const bool again = stream.name == name && ahead <= 0 && ahead > -kRepeatWindow;
  if (!again) stream = {name, psn};
  return again;
}

void PacketRecorder::put(Sighting seen, const Place& place) {
  const std::uint64_t written = written_.load(std::memory_order_relaxed);
  if (written - read_.load(std::memory_order_acquire) == kMost) return add_one(lost_);
  seen.at_ns = wire::monotonic_now().time_since_epoch().count();
  seen.node = static_cast<std::uint16_t>(place.at);
  seen.port = place.port.value();
  ring_[written % kMost] = seen;
  written_.store(written + 1, std::memory_order_release);
}

void PacketRecorder::arrives(wire::Instant now, const Place& place, const wire::Frame& frame) {
  arrived_ = recording::describe(frame);
  arrived_.is_repeat =
      arrived_.kind == PacketKind::kData && is_repeat(place, frame, arrived_.number);
  const bool keep = is_rare(arrived_.kind) || arrived_.is_repeat || may_sample(now);
  in_hand_ = keep ? Hand::kKept : Hand::kPassedOver;
  if (keep) {
    put(arrived_, place);
  } else {
    add_one(passed_over_);
  }
}

void PacketRecorder::counted(const Place& place, const fabric::Counters& counters) {
  counters_[place.at].look(counters, [&](std::size_t which, std::uint64_t more) {
    Sighting seen = in_hand_ == Hand::kNothing ? Sighting() : arrived_;
    seen.event = Event::kCounts;
    seen.number = static_cast<std::uint32_t>(which);
    seen.bytes = static_cast<std::uint32_t>(more);
    put(seen, place);
  });
}

void PacketRecorder::leaves(const Place& place, const wire::Frame& frame) {
  Sighting seen = recording::describe(frame);
  if (in_hand_ != Hand::kKept && !is_rare(seen.kind)) return add_one(passed_over_);
  seen.event = Event::kLeaves;
  seen.is_caused = in_hand_ == Hand::kKept;
  put(seen, place);
}

std::vector<Sighting> PacketRecorder::take(std::size_t most) {
  const std::uint64_t read = read_.load(std::memory_order_relaxed);
  const std::uint64_t written = written_.load(std::memory_order_acquire);
  const std::size_t count = std::min<std::uint64_t>(written - read, most);
  std::vector<Sighting> taken;
  taken.reserve(count);
  for (std::size_t i = 0; i < count; ++i) taken.push_back(ring_[(read + i) % kMost]);
  read_.store(read + count, std::memory_order_release);
  return taken;
}

}  // namespace cepheus::live
