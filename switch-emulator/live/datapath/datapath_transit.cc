// A frame's path into a switch and out of it.
//
//   ring or interface -> Transit (the link's time, loss) -> arrive()
//   enter_switch(): capture, ICRC -> flow control, if any -> put_in(): the engine
//   dispatch() -> leave_switch(): a queue, or Transit -> arrive() -> hand_over(): a host's ring
//
// Payloads that the switch reads are copied first, because their writer may change them. Copies
// of an unanswered frame are charged to the host that sent it.
#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "switch-emulator/live/datapath/datapath.h"
#include "wire/icrc.h"

namespace cepheus::live {

using wire::Icrc;
using wire::kNoBuffer;

void Datapath::arrive(const wire::Frame& frame, const Hop& hop, wire::Instant now) {
  Port& port = ports_[links_[hop.link].port];
  if (transit_.kind(hop.link) == Transit::Kind::kDownlink) {
    hand_over(port.end.host, frame, hop.origin, now);
  } else {
    enter_switch(port, frame, hop, now);
  }
}

void Datapath::hand_over(std::size_t index, const wire::Frame& frame, const Origin& origin,
                         wire::Instant now) {
  Host& host = hosts_[index];
  if (has_queues_ && wire::PauseFrame::is_one(frame)) return on_pause(host, frame, now);
  // The host has requested the repeat, or answers late. One that a queue refused costs nothing.
  if (origin.worth == fabric::Worth::kRepeat) host.turn.unanswered().take_repeat(frame);
  const bool is_taken = host.last_hop == nullptr ? host.client->deliver(frame, origin.host, now)
                                                 : deliver_lossless(index, frame, origin.host, now);
  if (!is_taken) return charge_refused(frame, origin);
  note_answer(host, frame, origin);
  note_unread(index);
}

void Datapath::note_unread(std::size_t index) {
  if (std::exchange(hosts_[index].has_unread, true)) return;
  unread_.push_back(index);
}

bool Datapath::deliver_lossless(std::size_t index, const wire::Frame& frame,
                                fabric::SenderNo sender, wire::Instant now) {
  Host& host = hosts_[index];
  if (net::class_of(frame) != net::TrafficClass::kData) {
    return host.client->deliver(frame, sender, now);
  }
  const bool was_paused = host.last_hop->is_paused();
  const bool is_taken = host.last_hop->take(frame, sender, now);
  if (!was_paused && host.last_hop->is_paused()) {
    full_.push_back(index);
    pause_ring(host, true, now);
  }
  return is_taken;
}

// Packets on which the switch itself acts (acknowledgements and other small ones) are checked here.
// Intact payload is for the receiver to check, as with any switch.
bool Datapath::icrc_is_good(const Port& port, const wire::Frame& frame, bool is_corrupt) const {
  if (frame.icrc_state == Icrc::kNone) return true;  // not RoCE: it has its own checksums
  if (!icrc_always_ && !is_corrupt) return true;
  const bool missing = frame.icrc_state == Icrc::kDeferred && port.end.kind == net::PortKind::kHost;
  if (icrc_always_ && missing) return false;
  const bool is_bulk = frame.external != nullptr;
  return (is_bulk && !is_corrupt) || wire::check_icrc(frame);
}

void Datapath::enter_switch(Port& port, const wire::Frame& frame, const Hop& hop,
                            wire::Instant now) {
  port.rx.add(frame);
  if (port.tap != nullptr) port.tap->write(frame);
  if (!icrc_is_good(port, frame, hop.corrupt)) {
    ++port.drops.bad_icrc;
    return;
  }
  if (frame.icrc_state != Icrc::kNone || frame.external == nullptr) {
    return pass_on(port, frame, hop, now);
  }
  // The writer of a payload can still change it. The switch ignores RoCE payloads, but reads all
  // others, so it copies those before it checks them.
  wire::Frame own = frame;
  const std::size_t length = std::min<std::size_t>(frame.payload_len, private_payload_.size());
  std::memcpy(private_payload_.data(), frame.external, length);
  own.set_external_payload({private_payload_.data(), length}, kNoBuffer);
  pass_on(port, own, hop, now);
}

void Datapath::pass_on(Port& port, const wire::Frame& frame, const Hop& hop, wire::Instant now) {
  if (has_queues_) {
    const bool is_lossless = transit_.link(hop.link).config().pfc.on;
    return control(port, frame, {hop.link, hop.origin, false, is_lossless}, now);
  }
  put_in(port, frame, hop.origin, now);
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

// The host that is charged for frames that a switch sends because of port `from`. A gate lets
// frames of other ports through: a host's frames are charged to the host. The switch's own frames
// are charged to no host.
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
  if (origin.is_unanswered) charge_copies(origin.host, ingress);
  if (recorder_ != nullptr) {
    recorder_->counted(place_of(ports_[state.first_port]), state.engine->counters());
  }
  for (fabric::Emit& emit : actions_.emits) {
    assert(emit.port.value() < state.engine->config().ports.size());
    Port& port = ports_[state.first_port + emit.port.value()];
    Origin caused_by = origin_of(state, emit.origin, origin, ingress);
    caused_by.worth = emit.worth;
    leave_switch(port, emit.frame, caused_by, now, emit.space);
  }
  if (recorder_ != nullptr) recorder_->handled();
  actions_.clear();
  state.deadline = state.engine->deadline();
  earliest_timer_ = std::min(earliest_timer_, state.deadline);
}

void Datapath::leave_switch(Port& port, wire::Frame& frame, Origin origin, wire::Instant now,
                            fabric::Space space) {
  if (icrc_always_) wire::seal_icrc(frame);
  port.tx.add(frame);
  if (recorder_ != nullptr) recorder_->leaves(place_of(port), frame);
  if (links_[port.out].waiting != nullptr) return join_queue(port, frame, origin, space, now);
  if (port.tap != nullptr) port.tap->write(frame);
  transit_.transmit(frame, {port.out, origin}, now);
}

}  // namespace cepheus::live
