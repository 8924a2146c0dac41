#include "switch-emulator/live/transit.h"

namespace cepheus::live {

using wire::Instant;
using wire::kNoBuffer;

Transit::Transit(fabric::PayloadPools& pools, std::size_t hosts, Arrivals& arrivals)
    : pools_(pools),
      arrivals_(arrivals),
      flights_(hosts),
      contiguous_(pools.geometry().slot_bytes + wire::Frame::kCapacity + 4) {}

std::uint32_t Transit::add(const net::LinkConfig& config, Kind kind, LinkSideDrops& drops) {
  const bool has_senders = kind != Kind::kUplink && !config.rate.is_unlimited();
  links_.push_back({net::Link(config), kind, &drops, fabric::EgressShare(pools_),
                    has_senders ? std::make_unique<QueueShare>() : nullptr});
  return static_cast<std::uint32_t>(links_.size() - 1);
}

void Transit::transmit(const Flight& flight, Instant now) {
  const net::Passage passage = offer(flight, now);
  if (passage.copies == 0) return;
  if (passage.corrupt) {
    transmit_corrupt(flight, passage, now);
  } else {
    schedule(flight, passage.arrival[0], now);
  }
  if (passage.copies == 2) schedule(flight, passage.arrival[1], now);
}

// The link's answer, unless the sender has used up its share of the queue before it.
net::Passage Transit::offer(const Flight& flight, Instant now) {
  DirectedLink& link = links_[flight.link];
  if (link.queue == nullptr) return link.link.offer(now, flight.frame.size());
  const net::LinkConfig& config = link.link.config();
  const wire::Bytes queued = link.link.queued_bytes(now);
  const wire::Bytes free = config.queue_bytes - std::min(queued, config.queue_bytes);
  // An idle link takes any frame.
  if (!link.queue->has_space(now, flight.origin.host, free) && queued != 0) {
    ++link.drops->queue_share;
    return {};
  }
  const net::Passage passage = link.link.offer(now, flight.frame.size());
  const wire::Bytes more = link.link.queued_bytes(now);
  if (more > queued) {
    link.queue->add(flight.origin.host, flight.frame.size(), now + config.rate.time_for(more));
  }
  return passage;
}

void Transit::transmit_corrupt(const Flight& flight, const net::Passage& passage, Instant now) {
  Flight damaged = flight;
  damaged.corrupt = true;
  if (!make_corrupt(flight.frame, passage.corrupt_bit, damaged.frame)) {
    ++drops(flight.link).corrupt;
    return;
  }
  schedule(damaged, passage.arrival[0], now);
  release(damaged.frame);
}

// The bytes with one bit flipped, as a frame with its own payload (and one reference to it).
bool Transit::make_corrupt(const wire::Frame& frame, std::uint32_t bit, wire::Frame& damaged) {
  const std::size_t length =
      frame.to_bytes(contiguous_);  // computes a deferred ICRC over the intact bytes
  if (length == 0) return false;
  contiguous_[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
  const auto parsed = wire::Frame::from_bytes({contiguous_.data(), length});
  if (!parsed) return false;
  damaged = *parsed;
  const auto payload = damaged.payload();
  if (damaged.payload_fits_inline(payload.size())) {
    damaged.set_inline_payload(payload);
    return true;
  }
  return frame.ref == kNoBuffer ? pools_.keep_private(damaged)
                                : pools_.copy_in(fabric::PayloadPools::pool_of(frame.ref), damaged);
}

// To the far end: at once, or over the delay line. Trunks always use the delay line: no switch is
// entered while another one's outputs are being read.
void Transit::schedule(const Flight& flight, Instant arrival, Instant now) {
  DirectedLink& link = links_[flight.link];
  if (arrival <= now && link.kind != Kind::kTrunk) return arrivals_.arrive(flight, now);
  if (!has_space(flight.origin)) {
    ++link.drops->delay_line_full;
    return;
  }
  Flight waiting = flight;
  if (!keep(flight.link, waiting.frame)) return;
  delay_line_.push(arrival, waiting);
  if (flight.origin.host != fabric::kFabricItself) flights_[flight.origin.host].add();
}

bool Transit::keep(std::uint32_t number, wire::Frame& frame) {
  DirectedLink& link = links_[number];
  if (frame.external == nullptr || frame.payload_len == 0) {
    frame.ref = kNoBuffer;
    return true;
  }
  const bool lent = frame.ref == kNoBuffer;  // the engine's own bytes are gone after this call
  if (lent && !pools_.keep_private(frame)) {
    ++link.drops->no_slot;
    return false;
  }
  if (!link.under_way.try_add(frame.ref)) {
    if (lent) pools_.drop(frame.ref);
    ++link.drops->share_used_up;
    return false;
  }
  if (!lent) pools_.hold(frame.ref);
  return true;
}

void Transit::let_go(std::uint32_t number, const wire::Frame& frame) {
  if (frame.ref != kNoBuffer) links_[number].under_way.remove(frame.ref);
}

// A host may have half of all frames under way, so that others' frames always fit.
bool Transit::has_space(const Origin& origin) const {
  const std::size_t free = kMaxFlights - delay_line_.size();
  return origin.host == fabric::kFabricItself ? free > 0 : flights_[origin.host].has_space(free);
}

void Transit::transmit_control(const Flight& flight, Instant now) {
  const net::Passage passage = link(flight.link).offer_control(now, flight.frame.size());
  if (passage.copies != 0) schedule(flight, passage.arrival[0], now);
}

void Transit::land_next(Instant now) {
  Flight flight;
  delay_line_.pop(flight);
  if (flight.origin.host != fabric::kFabricItself) flights_[flight.origin.host].remove();
  let_go(flight.link, flight.frame);
  arrivals_.arrive(flight, now);
  release(flight.frame);
}

}  // namespace cepheus::live
