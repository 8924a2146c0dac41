// The faults of a frame, in a fixed order of draws: loss, reordering, duplication, damage. A lost
// frame draws no more. The transmitter's time is used in any case. Queued bytes are a time
// multiplied by a rate, and are computed in 128 bits.
#include "net/link.h"

namespace cepheus::net {

using wire::Bytes;
using wire::Duration;
using wire::Instant;

Link::Link(const LinkConfig& config)
    : is_faulty_(config.is_faulty()), config_(config), random_(config.seed) {}

void Link::set_faults(double loss, double duplicate, double reorder, double corrupt) {
  config_.loss = loss;
  config_.duplicate = duplicate;
  config_.reorder = reorder;
  config_.corrupt = corrupt;
  is_faulty_ = config_.is_faulty();
}

Bytes Link::queued_bytes(Instant now) const {
  if (config_.rate.is_unlimited() || free_at_ <= now) return 0;
  const auto waiting = static_cast<unsigned __int128>((free_at_ - now).count());
  return static_cast<Bytes>(waiting * config_.rate.bits_per_second / kBitNanoseconds);
}

void Link::refuse(std::size_t frame_bytes) {
  ++counters_.frames;
  counters_.bytes += frame_bytes;
  ++counters_.dropped_queue_full;
}

// Applies the link's faults to a frame that would arrive at `passage.arrival[0]`.
void Link::meet_faults(std::size_t frame_bytes, Passage& passage) {
  const Instant arrival = passage.arrival[0];
  // A lost frame uses the rate all the same, because it is lost on the wire, not before it.
  if (chance(config_.loss)) {
    ++counters_.dropped_loss;
    passage.drop = LinkDrop::kLoss;
    passage.copies = 0;
    return;
  }
  if (chance(config_.reorder)) {
    ++counters_.reordered;
    passage.arrival[0] += hold_back();
  }
  if (chance(config_.duplicate)) {
    ++counters_.duplicated;
    passage.copies = 2;
    passage.arrival[1] = arrival + hold_back();
  }
  if (frame_bytes != 0 && chance(config_.corrupt)) {
    ++counters_.corrupted;
    passage.corrupt = true;
    passage.corrupt_bit = static_cast<std::uint32_t>(random_.next() % (frame_bytes * 8));
  }
}

// In (0, reorder_by].
Duration Link::hold_back() {
  if (config_.reorder_by.count() <= 0) return Duration{0};
  const auto span = static_cast<std::uint64_t>(config_.reorder_by.count());
  return Duration{static_cast<std::int64_t>(1 + random_.next() % span)};
}

// A fault with probability 0 draws no random number, so an ideal link draws none.
bool Link::chance(double probability) {
  return probability > 0 && random_.fraction() < probability;
}

}  // namespace cepheus::net
