// One frame's way over a link, into a switch and out of it.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "switch-emulator/live/datapath.h"
#include "wire/icrc.h"

namespace cepheus::live {

using wire::Icrc;
using wire::Instant;
using wire::kNoBuffer;

void Datapath::carry(const Flight& flight, wire::Instant now) {
  const net::Passage passage = offer(flight, now);
  if (passage.copies == 0) return;
  if (passage.corrupt) {
    carry_corrupt(flight, passage, now);
  } else {
    convey(flight, passage.arrival[0], now);
  }
  if (passage.copies == 2) convey(flight, passage.arrival[1], now);
}

// The link's word, unless the sender has its share of the queue before it.
net::Passage Datapath::offer(const Flight& flight, wire::Instant now) {
  DirectedLink& link = links_[flight.link];
  if (link.queue == nullptr || link.waiting != nullptr)
    return link.link.offer(now, flight.frame.size());
  const net::LinkConfig& config = link.link.config();
  const wire::Bytes queued = link.link.queued_bytes(now);
  const wire::Bytes free = config.queue_bytes - std::min(queued, config.queue_bytes);
  // An idle link takes any frame.
  if (!link.queue->has_room(now, flight.origin.host, free) && queued != 0) {
    ++drops_of(flight.link).queue_share;
    return {};
  }
  const net::Passage passage = link.link.offer(now, flight.frame.size());
  const wire::Bytes more = link.link.queued_bytes(now);
  if (more > queued) {
    link.queue->add(flight.origin.host, flight.frame.size(), now + config.rate.time_for(more));
  }
  return passage;
}

void Datapath::carry_corrupt(const Flight& flight, const net::Passage& passage, wire::Instant now) {
  Flight damaged = flight;
  damaged.corrupt = true;
  if (!make_corrupt(flight.frame, passage.corrupt_bit, damaged.frame)) {
    ++drops_of(flight.link).corrupt;
    return;
  }
  convey(damaged, passage.arrival[0], now);
  release(damaged.frame);
}

// The bytes with one bit turned over, as a frame with a payload of its own (and one reference on
// it).
bool Datapath::make_corrupt(const wire::Frame& frame, std::uint32_t bit, wire::Frame& damaged) {
  const std::size_t length =
      frame.to_bytes(contiguous_);  // makes a deferred ICRC, of what was meant
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

// To the far end: at once, or by way of the delay line. Trunks always take the delay line: a switch
// is never entered while another one's outputs are being read.
void Datapath::convey(const Flight& flight, wire::Instant arrival, wire::Instant now) {
  DirectedLink& link = links_[flight.link];
  if (arrival <= now && link.kind != LinkKind::kTrunk) return arrive(flight, now);
  if (!has_room_under_way(flight.origin)) {
    ++drops_of(flight.link).delay_line_full;
    return;
  }
  Flight waiting = flight;
  if (!keep(link, waiting.frame)) return;
  delay_line_.push(arrival, waiting);
  if (flight.origin.host != fabric::kFabricItself) hosts_[flight.origin.host].flights.add();
}

// A frame that is to stay, with a reference of its own on its payload. False, and counted, if there
// is no room for it.
bool Datapath::keep(DirectedLink& link, wire::Frame& frame) {
  LinkSideDrops& drops = ports_[link.port].drops;
  if (frame.external == nullptr || frame.payload_len == 0) {
    frame.ref = kNoBuffer;
    return true;
  }
  const bool lent = frame.ref == kNoBuffer;  // an engine's own bytes, gone after this call
  if (lent && !pools_.keep_private(frame)) {
    ++drops.no_slot;
    return false;
  }
  if (!link.under_way.try_add(frame.ref)) {
    if (lent) pools_.drop(frame.ref);
    ++drops.share_used_up;
    return false;
  }
  if (!lent) pools_.hold(frame.ref);
  return true;
}

// It stays its caller's to release.
void Datapath::let_go(DirectedLink& link, const wire::Frame& frame) {
  if (frame.ref != kNoBuffer) link.under_way.remove(frame.ref);
}

// A host may have half of all frames under way: whatever it sends, others' frames have room.
bool Datapath::has_room_under_way(const Origin& origin) const {
  const std::size_t free = kMaxFlights - delay_line_.size();
  return origin.host == fabric::kFabricItself ? free > 0
                                              : hosts_[origin.host].flights.has_room(free);
}

void Datapath::arrive(const Flight& flight, wire::Instant now) {
  Port& port = ports_[links_[flight.link].port];
  if (links_[flight.link].kind == LinkKind::kDownlink) {
    hand_over(port.end.host, flight, now);
  } else {
    enter_switch(port, flight, now);
  }
}

void Datapath::hand_over(std::size_t index, const Flight& flight, wire::Instant now) {
  Host& host = hosts_[index];
  if (has_queues_ && wire::PauseFrame::is_one(flight.frame))
    return on_pause(host, flight.frame, now);
  if (!host.client->deliver(flight.frame, flight.origin.host, now)) return charge_refused(flight);
  note_answer(host, flight);
  if (host.has_unread) return;
  host.has_unread = true;
  unread_.push_back(index);
}

// What the switch itself acts on, acknowledgements and other small packets, is checked here; an
// intact payload is the receiver's to check, as in any switch.
bool Datapath::icrc_is_good(const Port& port, const Flight& flight) const {
  if (flight.frame.icrc_state == Icrc::kNone) return true;  // no RoCE: it has checksums of its own
  if (!icrc_always_ && !flight.corrupt) return true;
  const bool missing =
      flight.frame.icrc_state == Icrc::kDeferred && port.end.kind == net::PortKind::kHost;
  if (icrc_always_ && missing) return false;
  const bool is_bulk = flight.frame.external != nullptr;
  return (is_bulk && !flight.corrupt) || wire::check_icrc(flight.frame);
}

void Datapath::enter_switch(Port& port, const Flight& flight, wire::Instant now) {
  wire::Frame frame = flight.frame;
  port.rx.add(frame);
  if (port.tap != nullptr) port.tap->write(frame);
  if (!icrc_is_good(port, flight)) {
    ++port.drops.bad_icrc;
    return;
  }
  // Whoever wrote a payload can still change it. RoCE payloads are nobody's business here; all
  // others are read by the switch, so they are copied before they are believed.
  if (frame.icrc_state == Icrc::kNone && frame.external != nullptr) {
    const std::size_t length = std::min<std::size_t>(frame.payload_len, private_payload_.size());
    std::memcpy(private_payload_.data(), frame.external, length);
    frame.set_external_payload({private_payload_.data(), length}, kNoBuffer);
  }
  if (has_queues_) return control(port, {frame, flight.link, flight.origin}, now);
  put_in(port, frame, flight.origin, now);
}

// Into the switch's engine, and what that sends on its way.
void Datapath::put_in(Port& port, const wire::Frame& frame, Origin origin, wire::Instant now) {
  SwitchState& state = switches_[port.of_switch];
  if (recorder_ != nullptr) recorder_->arrives(now, place_of(port), frame);
  if (port.end.kind == net::PortKind::kHost && frame.ref != kNoBuffer) {
    pools_.note_sender(frame.ref, static_cast<fabric::SenderNo>(port.end.host));
  }
  state.engine->on_packet(now, port.id, frame, actions_);
  dispatch(state, now, origin, port.id);
}

// On whose account a switch sends what comes from port `from`. A gate lets frames of other ports
// through: those of a host are the host's. What the switch sends on its own is nobody's.
Origin Datapath::origin_of(const SwitchState& state, wire::PortId from, Origin origin,
                           wire::PortId ingress) const {
  if (from == ingress) return origin;
  if (from == wire::PortId()) return {};
  const net::PortEnd& end = ports_[state.first_port + from.value()].end;
  if (end.kind != net::PortKind::kHost) return origin;
  return {static_cast<fabric::SenderNo>(end.host)};
}

void Datapath::dispatch(SwitchState& state, wire::Instant now, Origin origin,
                        wire::PortId ingress) {
  if (origin.is_stray) charge_copies(origin.host, ingress);
  if (recorder_ != nullptr) {
    recorder_->counted(place_of(ports_[state.first_port]), state.engine->counters());
  }
  for (fabric::Emit& emit : actions_.emits) {
    assert(emit.port.value() < state.engine->config().ports.size());
    leave_switch(ports_[state.first_port + emit.port.value()], emit.frame,
                 origin_of(state, emit.origin, origin, ingress), now);
  }
  if (recorder_ != nullptr) recorder_->handled();
  actions_.clear();
  state.deadline = state.engine->deadline();
  earliest_timer_ = std::min(earliest_timer_, state.deadline);
}

void Datapath::leave_switch(Port& port, wire::Frame& frame, Origin origin, wire::Instant now) {
  if (icrc_always_) wire::seal_icrc(frame);
  port.tx.add(frame);
  if (recorder_ != nullptr) recorder_->leaves(place_of(port), frame);
  const Flight flight{frame, port.out, origin};
  if (links_[port.out].waiting != nullptr) {
    return enqueue(port.out, {flight, switches_[port.of_switch].flow->entry_for(port.id)}, now);
  }
  if (port.tap != nullptr) port.tap->write(frame);
  carry(flight, now);
}

}  // namespace cepheus::live
