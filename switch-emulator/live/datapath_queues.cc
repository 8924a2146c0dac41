// Queues before links, and what switches tell their neighbours when these grow: as the simulator's
// switches and cables do it (fabric-sim/core), with the same parts (net/).
#include <algorithm>
#include <utility>

#include "net/pfc.h"
#include "net/topology.h"
#include "switch-emulator/live/datapath.h"
#include "wire/ecn.h"

namespace cepheus::live {
namespace {

constexpr std::size_t kStepsPerRound = 4096;  // before hosts have their turn

}  // namespace

void Datapath::add_queues(const net::Topology& topology) {
  std::vector<net::BufferPlan> plans = net::buffer_plans(topology);
  plans.resize(switches_.size());
  for (std::size_t s = 0; s < switches_.size(); ++s) {
    if (!plans[s].has_lossless_ports()) continue;
    SwitchState& state = switches_[s];
    for (std::size_t p = 0; p < plans[s].headroom.size(); ++p) {
      if (plans[s].headroom[p] == 0) continue;
      // What is taken from a host's ring in advance comes whatever the host is told meanwhile.
      const DirectedLink& in = links_[ports_[state.first_port + p].in];
      if (in.kind != LinkKind::kUplink) continue;
      const wire::Bytes ahead = in.backlog_limit + net::largest_frame(topology.mtu);
      plans[s].headroom[p] += ahead;
      plans[s].config.bytes += ahead;
    }
    state.books = std::make_unique<net::IngressBooks>(plans[s].config, plans[s].headroom);
    if (plans[s].config.group_halt) {
      state.halted = std::make_unique<HaltedGroups>(plans[s].headroom.size());
    }
    state.repeat = std::move(plans[s].repeat);
  }
  for (const Port& port : ports_) {
    DirectedLink& out = links_[port.out];
    const net::LinkConfig& config = out.link.config();
    // Where something comes by a lossless link, it may have to wait before any other.
    const bool is_needed = config.has_queue() || switches_[port.of_switch].books != nullptr;
    if (config.rate.is_unlimited() || !is_needed) continue;
    out.waiting = std::make_unique<WaitingLine>(config);
    out.from = static_cast<std::size_t>(&port - ports_.data());
    has_queues_ = true;
  }
}

// Landings and transmissions up to `now`, each at its own time: a pause that came while this process
// was not running has stopped what it would have stopped.
bool Datapath::run_links(wire::Instant now) {
  std::size_t steps = 0;
  for (; steps < kStepsPerRound; ++steps) {
    const Transmission next = next_transmission();
    const wire::Instant lands = delay_line_.next_arrival();
    const wire::Instant due = std::min({next.at, lands, halts_due_});
    if (due > now) break;
    clock_ = std::max(clock_, due);
    if (halts_due_ == due) {
      end_due_halts(clock_);
    } else if (lands <= next.at) {
      land_next(clock_);
    } else {
      transmit(next.link, clock_);
    }
  }
  const bool repeated = repeat_pauses(now);
  clock_ = std::max(clock_, now);
  return steps > 0 || repeated;
}

// When the next frame leaves a queue, and by which link.
Datapath::Transmission Datapath::next_transmission() const {
  Transmission first;
  for (const std::uint32_t number : waited_for_) {
    const DirectedLink& link = links_[number];
    const wire::Instant at = link.waiting->ready_at(std::max(link.link.free_at(), clock_));
    if (at < first.at) first = {at, number};
  }
  return first;
}

// A frame that finds the link free and nobody before it does not wait.
void Datapath::enqueue(std::uint32_t number, const Waiting& item, wire::Instant now) {
  DirectedLink& link = links_[number];
  const wire::Frame& frame = item.flight.frame;
  const net::TrafficClass of = net::class_of(frame);
  if (link.link.free_at() <= now && !link.waiting->must_wait(of, now)) {
    return depart(link, item.flight, now);
  }
  const bool is_lossy = item.entry == net::IngressBooks::kNone && of != net::TrafficClass::kLink;
  if (is_lossy) {
    const wire::Bytes limit = link.link.config().queue_bytes;
    const wire::Bytes free = limit - std::min(link.waiting->bytes(of), limit);
    if (!link.waiting->has_room(of, frame.size())) return link.link.refuse(frame.size());
    if (!link.queue->has_room(now, item.flight.origin.host, free)) {
      ++drops_of(number).queue_share;
      return;
    }
  }
  Waiting waiting = item;
  if (!keep(link, waiting.flight.frame)) return;
  if (link.waiting->wants_mark(of) &&
      wire::mark_congestion(
          waiting.flight.frame.header().subspan<wire::kIpOffset, wire::Ipv4Header::kSize>())) {
    link.waiting->count_mark();
  }
  link.waiting->push(of, waiting, frame.size());
  if (is_lossy) {
    const wire::Bytes before = link.waiting->bytes() + link.link.queued_bytes(now);
    link.queue->add(item.flight.origin.host, frame.size(),
                    now + link.link.config().rate.time_for(before));
  }
  if (item.entry != net::IngressBooks::kNone) {
    switches_[ports_[link.from].of_switch].books->add_copy(item.entry);
  }
  if (!std::exchange(link.is_waited_for, true)) waited_for_.push_back(number);
}

void Datapath::transmit(std::uint32_t number, wire::Instant now) {
  DirectedLink& link = links_[number];
  Waiting next;
  if (link.waiting->pop(now, next)) {
    let_go(link, next.flight.frame);
    depart(link, next.flight, now);
    release(next.flight.frame);
    if (next.entry != net::IngressBooks::kNone) {
      leave_buffer(switches_[ports_[link.from].of_switch], next.entry, now);
    }
  }
  if (!link.waiting->is_empty()) return;
  link.is_waited_for = false;
  std::erase(waited_for_, number);
}

void Datapath::depart(DirectedLink& link, const Flight& flight, wire::Instant now) {
  if (const auto& tap = ports_[link.from].tap; tap != nullptr) tap->write(flight.frame);
  if (net::class_of(flight.frame) != net::TrafficClass::kLink) return carry(flight, now);
  const net::Passage passage = link.link.offer_control(now, flight.frame.size());
  if (passage.copies != 0) convey(flight, passage.arrival[0], now);
}

// False if the frame goes no further: it spoke to the port, or there is no headroom left for it.
// Otherwise what came by a lossless link is in the buffer, as entry_.
bool Datapath::admit(Port& port, const wire::Frame& frame, wire::Instant now) {
  const net::TrafficClass of = net::class_of(frame);
  if (of == net::TrafficClass::kLink) {
    on_pause(port, frame, now);
    return false;
  }
  net::IngressBooks* const books = switches_[port.of_switch].books.get();
  if (books == nullptr || of != net::TrafficClass::kData || !books->buffer().is_lossless(port.id)) {
    return true;
  }
  if (!books->admit(port.id, frame.size())) {
    ++port.drops.no_headroom;
    return false;
  }
  entry_ = books->open(port.id, frame.size());
  return true;
}

// When no port is paused to which the group copies what came by `ingress`, as far as is known.
wire::Instant Datapath::free_at(const SwitchState& state, wire::McstId group,
                                wire::PortId ingress) const {
  state.engine->list_copies(group, ingress, copies_);
  wire::Instant at{};
  for (const wire::PortId port : copies_) {
    const auto& waiting = links_[ports_[state.first_port + port.value()].out].waiting;
    if (waiting != nullptr) at = std::max(at, waiting->paused_until());
  }
  return at;
}

// True if the frame, which came by a lossless link, has to wait here, in the buffer like a copy that
// waits before a link, or if there is no place for what does.
bool Datapath::halt(Port& port, const Flight& flight, wire::Instant now) {
  if (entry_ == net::IngressBooks::kNone) return false;
  SwitchState& state = switches_[port.of_switch];
  const auto group = state.engine->group_of_data(flight.frame);
  if (!group || !state.halted->must_wait(*group, port.id, now, free_at(state, *group, port.id))) {
    return false;
  }
  Waiting waiting{flight, std::exchange(entry_, net::IngressBooks::kNone)};
  if (keep(links_[port.in], waiting.flight.frame)) {
    state.books->add_copy(waiting.entry);
    state.halted->push(*group, port.id, waiting, now);
  }
  leave_buffer(state, waiting.entry, now);
  end_halts(state, now);
  return true;
}

// Whoever may go does; for the others it is looked again when their pauses end.
void Datapath::end_halts(SwitchState& state, wire::Instant now) {
  if (state.halted == nullptr) return;
  const auto when = [&](wire::McstId group, const Waiting& item) {
    return free_at(state, group, ports_[links_[item.flight.link].port].id);
  };
  Waiting next;
  while (state.halted->pop(now, next, when)) {
    DirectedLink& in = links_[next.flight.link];
    let_go(in, next.flight.frame);
    entry_ = next.entry;
    put_in(ports_[in.port], next.flight.frame, next.flight.origin, now);
    release(next.flight.frame);
  }
  halts_due_ = std::min(halts_due_, state.halted->ready_at(when));
}

void Datapath::end_due_halts(wire::Instant now) {
  halts_due_ = wire::kNever;
  for (SwitchState& state : switches_) end_halts(state, now);
}

void Datapath::leave_buffer(SwitchState& state, net::IngressBooks::EntryId entry,
                            wire::Instant now) {
  state.books->leave(entry);
  tell_neighbour(state, now);
}

void Datapath::tell_neighbour(SwitchState& state, wire::Instant now) {
  const auto change = state.books->take_change();
  if (change) send_pause(ports_[state.first_port + change->port.value()], change->pause, now);
}

void Datapath::send_pause(Port& port, bool pause, wire::Instant now) {
  const SwitchState& state = switches_[port.of_switch];
  wire::Frame frame;
  net::emit_pause(frame, state.engine->config().mac, pause);
  // What it says ends by itself: said again as long as it holds.
  port.repeat_at = pause ? now + state.repeat[port.id.value()] : wire::kNever;
  repeat_due_ = std::min(repeat_due_, port.repeat_at);
  leave_switch(port, frame, {}, now);
}

bool Datapath::repeat_pauses(wire::Instant now) {
  if (repeat_due_ > now) return false;
  repeat_due_ = wire::kNever;
  for (Port& port : ports_) {
    if (port.repeat_at <= now) send_pause(port, true, now);
    repeat_due_ = std::min(repeat_due_, port.repeat_at);
  }
  return true;
}

void Datapath::on_pause(Port& port, const wire::Frame& frame, wire::Instant now) {
  DirectedLink& out = links_[port.out];
  const auto time = net::data_pause(frame, out.link.config().rate);
  if (!time || out.waiting == nullptr) return;
  out.waiting->pause(now, now + *time);
  end_halts(switches_[port.of_switch], now);
}

// A host's NIC is its ring: while it is paused nothing is taken from it.
void Datapath::on_pause(Host& host, const wire::Frame& frame, wire::Instant now) {
  const auto time = net::data_pause(frame, links_[host.uplink].link.config().rate);
  if (!time) return;
  host.pause.set(now, now + *time);
  host.resume = std::max(host.held_until, host.pause.until());
}

QueueReading Datapath::read_queue(const Port& port) const {
  QueueReading reading;
  if (!has_queues_) return reading;
  const auto microseconds = [](wire::Duration time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  };
  if (const auto& books = switches_[port.of_switch].books; books != nullptr) {
    reading.pauses_sent = books->counters(port.id).pauses_sent;
  }
  if (const auto& halted = switches_[port.of_switch].halted; halted != nullptr) {
    const net::HaltCounters halts = halted->counters(port.id, clock_);
    reading.group_halts = halts.halts;
    reading.group_halted_us = microseconds(halts.time);
  }
  if (const auto& waiting = links_[port.out].waiting; waiting != nullptr) {
    reading.ecn_marked = waiting->counters().marked;
    reading.high_water = waiting->counters().high_water;
    reading.pauses_received = waiting->counters().pauses_received;
    reading.paused_us = microseconds(waiting->paused_time(clock_));
  }
  return reading;
}

}  // namespace cepheus::live
