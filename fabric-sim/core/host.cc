// Every call of the NIC ends in after_nic_call(). Completions go to a queue that an event at the
// same instant delivers; a transmission and a timer are requested. One frame leaves whenever the
// cable has taken the last one, datagrams before the NIC's packets.
//
// A stalled NIC keeps arriving frames, stalled programs keep datagrams; both get them in order when
// they wake. A dead host drops all of them. While data is paused, only control datagrams leave.
// Datagrams from other ports than the registration port are ignored, and so are wrong signatures.
#include "fabric-sim/core/host.h"

#include "fabric-sim/core/recorder.h"
#include "wire/roce.h"

namespace cepheus::sim {

Host::Host(Simulator& simulator, BufferPool& pool, std::string name, const rnic::NicConfig& nic,
           std::uint16_t mrp_port)
    : simulator_(simulator), pool_(pool), nic_(nic), name_(std::move(name)), mrp_port_(mrp_port) {}

wire::Result<void> Host::modify_qp(rnic::Qpn qpn, const rnic::QpAttr& attr, std::uint32_t mask) {
  auto result = nic_.modify_qp(simulator_.now(), qpn, attr, mask, actions_);
  after_nic_call();
  return result;
}

wire::Result<void> Host::post_send(rnic::Qpn qpn, const rnic::SendWr& wr) {
  auto result = nic_.post_send(simulator_.now(), qpn, wr, actions_);
  after_nic_call();
  return result;
}

wire::Result<void> Host::post_recv(rnic::Qpn qpn, const rnic::RecvWr& wr) {
  auto result = nic_.post_recv(simulator_.now(), qpn, wr, actions_);
  after_nic_call();
  return result;
}

void Host::send_datagram(const wire::MrpMessage& message, std::uint16_t control_port) {
  send_any(message.header.mcst_id, message, control_port);
}

void Host::send_datagram(const wire::Publication& message, std::uint16_t control_port) {
  send_any(message.header.mcst_id, message, control_port);
}

void Host::send_datagram(wire::Ipv4 to, const wire::SenderGroupMessage& message,
                         std::uint16_t control_port) {
  send_any(to, message, control_port);
}

template <typename Message>
void Host::send_any(wire::Ipv4 to, const Message& message, std::uint16_t control_port) {
  const wire::BufferRef buffer = pool_.acquire();
  std::size_t size = message.emit(pool_.bytes(buffer));
  if (key_) size = key_->sign(address(), pool_.bytes(buffer), size);
  wire::UdpDatagram datagram;
  datagram.ethernet.destination = nic_.config().gateway;
  datagram.ethernet.source = nic_.config().mac;
  datagram.ip.source = address();
  datagram.ip.destination = to;
  datagram.udp.source_port = control_port;
  datagram.udp.destination_port = mrp_port_;
  wire::Frame frame;
  datagram.emit(frame, pool_.bytes(buffer).first(size), buffer);
  if (frame.external == nullptr) pool_.release(buffer);
  datagrams_.push_back(frame);
  after_nic_call();
}

void Host::stall_nic(Instant until) {
  if (until <= nic_awake_at_) return;
  nic_awake_at_ = until;
  simulator_.schedule(until, *this, kWakeNic);
}

void Host::stall_programs(Instant until) {
  if (until <= programs_awake_at_) return;
  programs_awake_at_ = until;
  simulator_.schedule(until, *this, kWakePrograms);
}

void Host::pause(Instant until) {
  stall_programs(until);
  stall_nic(until);
}

void Host::die() {
  dead_ = true;
  nic_awake_at_ = programs_awake_at_ = {};
  for (std::deque<wire::Frame>* const frames : {&missed_, &unread_}) {
    for (const wire::Frame& frame : *frames) pool_.release(frame.ref);
    frames->clear();
  }
  for (const wire::Frame& frame : datagrams_) {
    if (frame.external != nullptr) pool_.release(frame.ref);
  }
  datagrams_.clear();
  completions_.clear();
}

void Host::send_frame(const wire::Frame& frame) {
  datagrams_.push_back(frame);
  after_nic_call();
}

void Host::receive(Instant now, wire::PortId port, const wire::Frame& frame) {
  if (wire::PauseFrame::is_one(frame)) return on_pause(now, frame);
  if (dead_) return pool_.release(frame.ref);
  if (nic_awake_at_ > now) return missed_.push_back(frame);
  if (watch_ != nullptr) watch_->on_arrival(now, address(), frame);
  Recorder* const recorder = simulator_.trace().recorder();
  if (recorder != nullptr) recorder->arrives(now, number_, port, frame);
  if (frame.icrc_state == wire::Icrc::kNone) {
    on_udp(now, frame);
  } else {
    ++frames_to_nic_;
    nic_.on_packet(now, frame, actions_);
  }
  pool_.release(frame.ref);
  after_nic_call();
  if (recorder != nullptr) recorder->handled();
}

// Ignores other UDP datagrams, as a host's UDP stack would. Programs get datagrams from the
// registration port only: no other host can send from there.
void Host::on_udp(Instant now, const wire::Frame& frame) {
  const auto datagram = wire::UdpDatagram::parse(frame);
  if (!datagram || datagram->ip.destination != address() ||
      datagram->udp.source_port != mrp_port_) {
    return;
  }
  ++datagrams_in_;
  if (programs_awake_at_ > now || !unread_.empty()) {
    pool_.hold(frame.ref);
    return unread_.push_back(frame);
  }
  read(now, *datagram, frame.payload());
}

void Host::read(Instant now, const wire::UdpDatagram& datagram,
                std::span<const std::uint8_t> signed_payload) {
  const auto payload =
      key_ ? key_->verify(datagram.ip.source, signed_payload) : std::optional(signed_payload);
  if (!payload) return;
  const auto message = wire::MrpMessage::parse(*payload);
  const auto of_senders = message ? std::nullopt : wire::SenderGroupMessage::parse(*payload);
  for (const Listener& listener : listeners_) {
    if (listener.port != datagram.udp.destination_port) continue;
    if (message) listener.client->on_datagram(now, datagram.ip.source, *message);
    if (of_senders) listener.client->on_sender_group(now, datagram.ip.source, *of_senders);
  }
}

void Host::on_event(Instant now, std::uint64_t what) {
  if (dead_) {
    if (what == kTransmit && transmit_at_ <= now) transmit_at_ = wire::kNever;
    if (what == kTimer && timer_at_ <= now) timer_at_ = wire::kNever;
    if (what == kDeliver) delivery_scheduled_ = false;
    return;
  }
  const bool is_programs = what == kDeliver || what == kWakePrograms;
  const Instant awake_at = is_programs ? programs_awake_at_ : nic_awake_at_;
  if (awake_at > now) return simulator_.schedule(awake_at, *this, what);
  switch (static_cast<What>(what)) {
    case kTransmit:
      if (transmit_at_ <= now) transmit_at_ = wire::kNever;
      transmit(now);
      break;
    case kTimer:
      if (timer_at_ <= now) timer_at_ = wire::kNever;
      nic_.on_timer(now, actions_);
      break;
    case kWakeNic:
      for (; !missed_.empty(); missed_.pop_front()) {
        receive(now, wire::PortId(0), missed_.front());
      }
      break;
    case kDeliver:
      delivery_scheduled_ = false;
      deliver(now);
      break;
    case kWakePrograms:
      for (; !unread_.empty(); unread_.pop_front()) {
        read(now, *wire::UdpDatagram::parse(unread_.front()), unread_.front().payload());
        pool_.release(unread_.front().ref);
      }
      break;
  }
  after_nic_call();
}

// One frame whenever the cable has taken the last one: back-pressure without a queue.
void Host::transmit(Instant now) {
  wire::Frame frame;
  if (now < free_at_ || !next_frame(now, frame)) return;
  if (Recorder* const recorder = simulator_.trace().recorder(); recorder != nullptr) {
    recorder->counted(now, number_, nic_.counters());
    recorder->leaves(now, number_, wire::PortId(0), frame);
  }
  uplink_->send(now, frame);
  // Times rounded to nanoseconds would be slightly early for each frame. If the switch relies on
  // silence after the frame that is being sent, no frame may wait in the link.
  const net::LinkConfig& link = uplink_->config();
  free_at_ = link.pfc.on ? uplink_->free_at() : now + link.rate.time_for(frame.size());
}

// The port receives pause frames even if the host is stalled.
void Host::on_pause(Instant now, const wire::Frame& frame) {
  if (data_pause_.on_frame(now, frame, uplink_->config().rate) && !dead_) after_nic_call();
}

bool Host::may_send_first_datagram(Instant now) const {
  return !datagrams_.empty() && (!data_pause_.is_paused(now) ||
                                 net::class_of(datagrams_.front()) != net::TrafficClass::kData);
}

// A paused NIC sends nothing: all of its packets are data, except for congestion notifications,
// which wait with the rest.
void Host::arrange_transmission() {
  const Instant now = simulator_.now();
  Instant at = free_at_;
  if (data_pause_.is_paused(now) && !may_send_first_datagram(now)) {
    at = std::max(at, data_pause_.until());
  }
  at = std::max(at, now);
  if (at >= transmit_at_) return;
  transmit_at_ = at;
  simulator_.schedule(at, *this, kTransmit);
}

bool Host::next_frame(Instant now, wire::Frame& frame) {
  if (may_send_first_datagram(now)) {
    frame = datagrams_.front();
    datagrams_.pop_front();
    return true;
  }
  if (data_pause_.is_paused(now)) return false;
  const bool moves = nic_.config().moves_payload;
  const wire::BufferRef buffer = moves ? pool_.acquire() : BufferPool::kShared;
  const std::span<std::uint8_t> bytes = pool_.bytes(buffer);
  const bool built = nic_.transmit(now, bytes, frame, actions_) &&
                     (tamper_ == nullptr || tamper_->tamper(now, frame, bytes));
  if (built && frame.external != nullptr) {
    frame.ref = buffer;
  } else {
    frame.ref = wire::kNoBuffer;
    pool_.release(buffer);
  }
  return built;
}

void Host::deliver(Instant now) {
  while (!completions_.empty()) {
    const rnic::Completion completion = completions_.front();
    completions_.pop_front();
    const auto client = by_qpn_.find(completion.qpn);
    if (client != by_qpn_.end()) client->second->on_completion(now, completion);
  }
}

void Host::after_nic_call() {
  if (is_checked_) nic_.check_consistent();
  if (Recorder* const recorder = simulator_.trace().recorder(); recorder != nullptr) {
    recorder->counted(simulator_.now(), number_, nic_.counters());
  }
  for (const rnic::Completion& completion : actions_.completions) {
    const auto client = by_qpn_.find(completion.qpn);
    if (client != by_qpn_.end()) client->second->on_arrival(completion);
  }
  if (!actions_.completions.empty()) {
    completions_.insert(completions_.end(), actions_.completions.begin(),
                        actions_.completions.end());
  }
  actions_.clear();
  if (!completions_.empty() && !delivery_scheduled_) {
    delivery_scheduled_ = true;
    simulator_.schedule(simulator_.now(), *this, kDeliver);
  }
  if (!datagrams_.empty() || nic_.wants_to_transmit()) arrange_transmission();
  if (const Instant due = nic_.deadline(); due < timer_at_) {
    timer_at_ = due;
    simulator_.schedule(due, *this, kTimer);
  }
}

}  // namespace cepheus::sim
