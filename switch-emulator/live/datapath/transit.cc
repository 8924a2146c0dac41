// transmit() gets the frame's fate from the link: dropped, corrupt, once or twice, and when.
// schedule() delivers at once, or stores the frame with a reference of its own. A frame beyond a
// sender's share is dropped and counted.
//
// A corrupt frame gets memory of its own, with one bit flipped. If that bit makes it no frame any
// more, it is dropped and counted.
#include "switch-emulator/live/datapath/transit.h"

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
  links_.push_back({net::Link(config), kind, has_senders, &drops,
                    LinkAdmission(pools_, flights_, drops, has_senders)});
  return static_cast<std::uint32_t>(links_.size() - 1);
}

void Transit::transmit(const wire::Frame& frame, const Hop& hop, Instant now) {
  DirectedLink& link = links_[hop.link];
  const net::Passage passage =
      link.has_queue ? offer_to_queue(link, frame, hop, now) : link.link.offer(now, frame.size());
  if (passage.copies == 0) return;
  if (passage.corrupt) {
    transmit_corrupt(frame, hop, passage, now);
  } else {
    schedule(link, frame, hop, passage.arrival[0], now);
  }
  if (passage.copies == 2) schedule(link, frame, hop, passage.arrival[1], now);
}

// The link's answer, unless the sender has used up its share of the queue before it.
net::Passage Transit::offer_to_queue(DirectedLink& link, const wire::Frame& frame, const Hop& hop,
                                     Instant now) {
  const net::LinkConfig& config = link.link.config();
  const wire::Bytes bytes = frame.size();
  const wire::Bytes queued = link.link.queued_bytes(now);
  const wire::Bytes free = config.queue_bytes - std::min(queued, config.queue_bytes);
  // An idle link takes any frame.
  if (queued != 0 && !link.admission.admit_to_queue(now, hop, free)) return {};
  const net::Passage passage = link.link.offer(now, bytes);
  const wire::Bytes more = link.link.queued_bytes(now);
  if (more > queued) link.admission.note_queued(now, hop, bytes, now + config.rate.time_for(more));
  return passage;
}

void Transit::transmit_corrupt(const wire::Frame& frame, const Hop& hop,
                               const net::Passage& passage, Instant now) {
  wire::Frame damaged = frame;
  DirectedLink& link = links_[hop.link];
  if (!make_corrupt(frame, passage.corrupt_bit, damaged)) {
    ++link.drops->corrupt;
    return;
  }
  Hop of_damaged = hop;
  of_damaged.corrupt = true;
  schedule(link, damaged, of_damaged, passage.arrival[0], now);
  release(damaged);
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
void Transit::schedule(DirectedLink& link, const wire::Frame& frame, const Hop& hop,
                       Instant arrival, Instant now) {
  if (arrival <= now && link.kind != Kind::kTrunk) return arrivals_.arrive(frame, hop, now);
  put_on(link, frame, hop, arrival);
}

void Transit::put_on(DirectedLink& link, const wire::Frame& frame, const Hop& hop,
                     Instant arrival) {
  Flight waiting{frame, hop};
  waiting.hop.is_lossless = hop.is_lossless || link.link.config().pfc.on;
  if (link.admission.put_on(waiting)) delay_line_.push(arrival, waiting);
}

void Transit::transmit_control(const wire::Frame& frame, const Hop& hop, Instant now) {
  DirectedLink& link = links_[hop.link];
  const net::Passage passage = link.link.offer_control(now, frame.size());
  if (passage.copies != 0) schedule(link, frame, hop, passage.arrival[0], now);
}

void Transit::land_next(Instant now) {
  Flight flight;
  delay_line_.pop(flight);
  links_[flight.hop.link].admission.take_off(flight);
  arrivals_.arrive(flight.frame, flight.hop, now);
  release(flight.frame);
}

}  // namespace cepheus::live
