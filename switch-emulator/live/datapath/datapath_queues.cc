// Queues before links, and flow control of switches (net/flow_control.h), on the times of the
// links' events.
//
// Only fabrics with queues or flow control come here (has_queues_). run_links() walks links' events
// in the order of their times, so a pause that arrived while this process slept has stopped the
// right frames: arrivals, transmissions (DueLinks), and flow control's own deadline; 4,096 steps at
// most.
//
//   enqueue    a frame waits, if its link is busy or paused: marked, refused if there is no space
//   transmit   the next frame leaves; its entry in the ingress's books ends, and perhaps a pause
//   control    an arriving frame goes on, is halted at its ingress, dropped, or is a pause itself
#include <algorithm>
#include <utility>

#include "net/topology.h"
#include "switch-emulator/live/datapath/datapath.h"

namespace cepheus::live {

constexpr std::size_t kStepsPerRound = 4096;  // before the hosts' turn

void Datapath::add_queues(const net::Topology& topology) {
  due_links_.resize(links_.size());
  std::vector<net::BufferPlan> plans = net::buffer_plans(topology);
  plans.resize(switches_.size());
  for (const Port& port : ports_) {
    DirectedLink& out = links_[port.out];
    const net::LinkConfig& config = transit_.link(port.out).config();
    if (!plans[port.of_switch].needs_queue(config)) continue;
    out.waiting = std::make_unique<WaitingLine>(config);
    transit_.leave_queue_to_caller(port.out);
    out.from = static_cast<std::size_t>(&port - ports_.data());
    has_queues_ = true;
  }
  if (!has_queues_) return;
  for (std::size_t s = 0; s < switches_.size(); ++s) add_flow_control(s, plans[s], topology.mtu);
}

void Datapath::add_flow_control(std::size_t at, net::BufferPlan& plan, std::uint32_t mtu) {
  SwitchState& state = switches_[at];
  const std::size_t ports = state.engine->config().ports.size();
  plan.headroom.resize(ports);  // if no link of the fabric is lossless
  plan.repeat.resize(ports);
  // Half of a host's slots, so that frames on the way, and to other ports, have slots, too.
  plan.slots = pools_.geometry().slots_per_area / 2;
  for (std::size_t p = 0; p < ports; ++p) {
    // Frames taken from a host's ring in advance arrive even if the host is paused meanwhile.
    const std::uint32_t in = ports_[state.first_port + p].in;
    if (plan.headroom[p] == 0 || transit_.kind(in) != Transit::Kind::kUplink) continue;
    const wire::Bytes ahead = links_[in].backlog_limit + net::largest_frame(mtu);
    plan.headroom[p] += ahead;
    plan.config.bytes += ahead;
  }
  state.flow = std::make_unique<FlowControl>(plan);
  for (std::size_t p = 0; p < ports; ++p) {
    const Port& port = ports_[state.first_port + p];
    const auto& waiting = links_[port.out].waiting;
    if (waiting == nullptr) continue;
    state.flow->watch(port.id, waiting->pause());
    if (state.flow->books().buffer().is_lossless(port.id)) {
      state.engine->watch(port.id, waiting->pause());
    }
  }
}

// Arrivals and transmissions up to `now`, each at its own time: a pause that arrived while this
// process did not run has stopped the right frames.
bool Datapath::run_links(wire::Instant now) {
  std::size_t steps = 0;
  for (; steps < kStepsPerRound; ++steps) {
    const DueLinks::Entry next = due_links_.next();
    const wire::Instant lands = transit_.next_arrival();
    const wire::Instant due = std::min({next.at, lands, flow_due_});
    if (due > now) break;
    clock_ = std::max(clock_, due);
    if (flow_due_ == due) {
      run_due_flow_control(clock_);
    } else if (lands <= next.at) {
      transit_.land_next(clock_);
    } else {
      transmit(next.link, clock_);
    }
  }
  clock_ = std::max(clock_, now);
  return steps > 0;
}

// When the next frame may leave the link's queue. Whoever changes that calls this.
void Datapath::arrange_transmission(std::uint32_t number, wire::Instant now) {
  const wire::Instant free_at = std::max(transit_.link(number).free_at(), now);
  due_links_.set(number, links_[number].waiting->ready_at(free_at));
}

// A frame leaves the switch by a link with a queue.
void Datapath::join_queue(Port& port, const wire::Frame& frame, Origin origin, fabric::Space space,
                          wire::Instant now) {
  const FlowControl& flow = *switches_[port.of_switch].flow;
  Waiting item{{frame, {port.out, origin}}};
  Hop& hop = item.flight.hop;
  if (space == fabric::Space::kIngress) item.entry = flow.entry_for(port.id);
  hop.is_own = space == fabric::Space::kOwn && flow.is_lossless(port.id);
  hop.is_lossless = hop.is_own;
  enqueue(port.out, item, now);
}

// A frame does not wait if the link is free and no frame is before it. Frames with an entry in the
// ingress's books are lossless, and so are the link's own, and those with space of their own.
void Datapath::enqueue(std::uint32_t number, Waiting& item, wire::Instant now) {
  DirectedLink& line = links_[number];
  net::Link& link = transit_.link(number);
  wire::Frame& frame = item.flight.frame;
  Hop& hop = item.flight.hop;
  const net::TrafficClass of = net::class_of(frame);
  if (item.entry != net::IngressBooks::kNone || of == net::TrafficClass::kLink) {
    hop.is_lossless = true;
  }
  if (link.free_at() <= now && !line.waiting->must_wait(of, now)) {
    return start_transmission(item.flight, now);
  }
  if (!hop.is_lossless && !line.waiting->has_space(of, frame.size())) {
    return link.refuse(frame.size());
  }
  LinkAdmission& admission = transit_.admission(number);
  const wire::Bytes limit = link.config().queue_bytes;
  const wire::Bytes free = limit - std::min(line.waiting->bytes(of), limit);
  if (!admission.admit_to_queue(now, hop, free) || !admission.keep(item.flight)) return;
  line.waiting->mark(of, frame);
  line.waiting->push(of, item, frame.size());
  const wire::Bytes before = line.waiting->bytes() + link.queued_bytes(now);
  admission.note_queued(now, hop, frame.size(), now + link.config().rate.time_for(before));
  switches_[ports_[line.from].of_switch].flow->add_copy(item.entry);
  arrange_transmission(number, now);
}

void Datapath::transmit(std::uint32_t number, wire::Instant now) {
  DirectedLink& link = links_[number];
  Waiting next;
  // A frame that did not have to wait may have been sent meanwhile.
  if (transit_.link(number).free_at() <= now && link.waiting->pop(now, next)) {
    LinkAdmission& admission = transit_.admission(number);
    admission.let_go(next.flight);
    admission.note_left(next.flight.hop);
    next.flight.hop.is_own = false;  // its space was admitted as it began to wait
    start_transmission(next.flight, now);
    release(next.flight.frame);
    SwitchState& state = switches_[ports_[link.from].of_switch];
    state.flow->on_copy_left(next.entry);
    run_flow_control(state, now);
  }
  arrange_transmission(number, now);
}

void Datapath::start_transmission(const Flight& flight, wire::Instant now) {
  const auto& tap = ports_[links_[flight.hop.link].from].tap;
  if (tap != nullptr) tap->write(flight.frame);
  if (net::class_of(flight.frame) == net::TrafficClass::kLink) {
    transit_.transmit_control(flight.frame, flight.hop, now);
  } else {
    transit_.transmit(flight.frame, flight.hop, now);
  }
}

// A frame arrives at a switch; flow control decides its fate. Precondition: has_queues_.
void Datapath::control(Port& port, const wire::Frame& frame, const Hop& hop, wire::Instant now) {
  SwitchState& state = switches_[port.of_switch];
  // Hosts send none: with one, a host would silence all that send to it.
  if (port.end.kind == net::PortKind::kHost && wire::PauseFrame::is_one(frame)) {
    ++port.drops.host_pause;
    return;
  }
  using enum FlowControl::Arrival;
  switch (state.flow->on_frame(now, *state.engine, port.id, frame)) {
    case kForward:
      put_in(port, frame, hop.origin, now);
      break;
    case kHalt:
      if (Flight halted{frame, hop}; transit_.admission(port.in).keep(halted)) {
        state.flow->halt(now, halted);
      }
      break;
    case kBufferFull:
      ++port.drops.no_headroom;
      break;
    case kPause:
      if (const auto& waiting = links_[port.out].waiting; waiting != nullptr) {
        waiting->on_pause(now, frame);
        arrange_transmission(port.out, now);
      }
      break;
  }
  run_flow_control(state, now);
}

void Datapath::run_flow_control(SwitchState& state, wire::Instant now) {
  using enum FlowControl::Step::What;
  for (auto step = state.flow->next(now, *state.engine); step.what != kNothing;
       step = state.flow->next(now, *state.engine)) {
    Port& port = ports_[state.first_port + step.port.value()];
    if (step.what == kForward) {
      const Flight& halted = state.flow->released();
      transit_.admission(port.in).let_go(halted);
      put_in(port, halted.frame, halted.hop.origin, now);
      release(halted.frame);
    } else {
      send_pause(port, step.what == kPause, now);
    }
  }
  flow_due_ = std::min(flow_due_, state.flow->deadline());
}

void Datapath::run_due_flow_control(wire::Instant now) {
  flow_due_ = wire::kNever;
  for (SwitchState& state : switches_) {
    state.flow->on_timer(now);
    run_flow_control(state, now);
  }
}

// A group may have fewer ports to wait for than before.
void Datapath::look_again(SwitchState& state, wire::Instant now) {
  if (state.flow == nullptr) return;
  state.flow->look_again();
  run_flow_control(state, now);
}

void Datapath::send_pause(Port& port, bool pause, wire::Instant now) {
  wire::Frame frame;
  net::emit_pause(frame, switches_[port.of_switch].engine->config().mac, pause);
  leave_switch(port, frame, {}, now);
}

// A host's NIC is its ring: while the host is paused, its ring is not read.
void Datapath::on_pause(Host& host, const wire::Frame& frame, wire::Instant now) {
  if (!host.pause.on_frame(now, frame, transit_.link(host.uplink).config().rate)) return;
  host.turn.wait_for_link(host.pause.until());
}

// Data for the host waits in the queue before its link until its ring has space again.
void Datapath::pause_ring(Host& host, bool pause, wire::Instant now) {
  links_[host.downlink].waiting->pause_data(now, pause ? wire::kNever : now);
  arrange_transmission(host.downlink, now);
  if (!pause) look_again(switches_[ports_[host.port].of_switch], now);
}

// A group that goes on may fill another ring at once.
void Datapath::look_at_rings(wire::Instant now) {
  for (std::size_t i = 0; i < full_.size();) {
    Host& host = hosts_[full_[i]];
    host.last_hop->look(now);
    note_unread(full_[i]);  // it may have filled an empty ring
    if (host.last_hop->is_paused()) {
      ++i;
      continue;
    }
    full_[i] = full_.back();
    full_.pop_back();
    pause_ring(host, false, now);
  }
}

QueueReading Datapath::read_queue(const Port& port) const {
  QueueReading reading;
  if (!has_queues_) return reading;
  const auto microseconds = [](wire::Duration time) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  };
  const FlowControl& flow = *switches_[port.of_switch].flow;
  reading.pauses_sent = flow.books().counters(port.id).pauses_sent;
  const net::HaltCounters halts = flow.halts(port.id, clock_);
  reading.group_halts = halts.halts;
  reading.group_halted_us = microseconds(halts.time);
  if (const auto& waiting = links_[port.out].waiting; waiting != nullptr) {
    reading.ecn_marked = waiting->counters().marked;
    reading.high_water = waiting->counters().high_water;
    reading.pauses_received = waiting->pause().pauses();
    reading.paused_us = microseconds(waiting->pause().time(clock_));
  }
  return reading;
}

}  // namespace cepheus::live
