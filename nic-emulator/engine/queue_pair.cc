// A packet passes may_enter() (IBTA 9.6.1), congestion control, and then goes by its opcode to
// responder or requester. A failure on either side enters ERR and flushes both queues. A failed
// send of an unreliable queue pair enters SQE instead, which still receives.
//
// Sending alternates between requests and results for the peer, so neither starves. A CNP leaves
// before the acknowledgement that is owed.
#include "nic-emulator/engine/queue_pair.h"

#include <array>
#include <cassert>

#include "nic-emulator/engine/packet_out.h"

namespace cepheus::rnic {
namespace {

constexpr std::uint16_t kPkeyMembershipMask = 0x7FFF;  // bit 15: full or limited membership

// By QpType.
constexpr std::array kServices{wire::Service::kRc, wire::Service::kUc, wire::Service::kUd};

}  // namespace

QueuePair::QueuePair(Port& port, Qpn qpn, const QpInit& init, SharedReceiveQueue* srq)
    : context_(port, qpn, init),
      sends_(context_),
      receives_(context_, srq),
      requester_(context_, sends_),
      responder_(context_, receives_),
      unreliable_(context_, sends_),
      uc_responder_(context_, receives_),
      ud_responder_(context_, receives_) {
  if (type() == QpType::kUd) context_.attr.path_mtu = port.config.max_mtu;
  if (is_rc() && port.config.congestion) {
    congestion_ = std::make_unique<QpCongestion>(*port.config.congestion, port.counters);
  }
  make_envelope();
}

bool QueuePair::jump(std::uint64_t sent, std::uint64_t received) {
  const bool is_idle =
      is_rc() && context_.state == QpState::kRts && requester_.is_idle() && responder_.is_idle();
  if (!is_idle) return false;
  requester_.jump(sent);
  responder_.jump(received);
  return true;
}

void QueuePair::fail(NicOutput& out) {
  if (context_.state == QpState::kReset || context_.state == QpState::kErr) return;
  out.events.push_back({AsyncEventKind::kQpFatal, context_.qpn});
  enter_error(std::nullopt, "external error", out);
}

void QueuePair::set_state(QpState state, const char* reason) {
  context_.state = state;
  reason_ = reason;
}

wire::Result<void> QueuePair::post_send(const SendWr& wr, NicOutput& out) {
  switch (context_.state) {
    case QpState::kRts:
    case QpState::kSqd:
      return is_rc() ? requester_.post(wr) : unreliable_.post(wr);
    case QpState::kSqe:
    case QpState::kErr:
      sends_.complete_flushed(wr, out);
      return {};
    default:
      return wire::invalid(std::string("qp is in state ") + to_string(context_.state) +
                           ": bring it to rts before sending");
  }
}

wire::Result<void> QueuePair::post_sends(std::span<const SendWr> wrs, NicOutput& out) {
  for (std::size_t posted = 0; posted < wrs.size(); ++posted) {
    auto result = post_send(wrs[posted], out);
    if (result) continue;
    // A state that refuses a request completes none of those before it: they are still in the
    // queue.
    for (; posted > 0; --posted) is_rc() ? requester_.take_back() : sends_.pop_youngest();
    return result;
  }
  return {};
}

wire::Result<void> QueuePair::post_recv(const RecvWr& wr, NicOutput& out) {
  switch (context_.state) {
    case QpState::kReset:
      return wire::invalid("qp is in state reset: bring it to init before posting receives");
    case QpState::kErr:
      if (receives_.is_shared()) return receives_.post(wr);
      receives_.complete(wr.wr_id, WcStatus::kFlush, out);
      return {};
    default:
      return receives_.post(wr);
  }
}

bool QueuePair::can_receive() const {
  return context_.state == QpState::kRtr || context_.state == QpState::kRts ||
         context_.state == QpState::kSqd || context_.state == QpState::kSqe;
}

// The checks of IBTA 9.6.1 that concern the connection. A packet refused here is dropped silently.
bool QueuePair::may_enter(const wire::RoceHeaders& headers) {
  Counters& counters = context_.port.counters;
  if (!can_receive()) {
    counters.add(Counter::kRxDropQpState);
    return false;
  }
  if (headers.ip.source != context_.attr.remote_ip && type() != QpType::kUd) {
    counters.add(Counter::kRxDropWrongSource);
    return false;
  }
  if ((headers.bth.pkey & kPkeyMembershipMask) != (wire::Bth::kDefaultPkey & kPkeyMembershipMask)) {
    counters.add(Counter::kRxDropPkey);
    return false;
  }
  return true;
}

void QueuePair::on_packet(Instant now, const wire::RoceHeaders& headers,
                          std::span<const std::uint8_t> data, NicOutput& out) {
  if (!may_enter(headers)) return;
  if (congestion_) {
    resume(now);
    note_congestion(now, headers);
  }
  Counters& counters = context_.port.counters;
  if (service_of(headers.bth.opcode) != kServices[static_cast<std::size_t>(type())]) {
    const bool cnp = headers.bth.opcode == wire::Opcode::kCnp;
    counters.add(cnp ? Counter::kRxCnp : Counter::kRxDropUnsupported);
  } else if (!is_rc()) {
    on_unreliable_packet(headers, data, out);
  } else if (opcode_info(headers.bth.opcode).request()) {
    note_established(out);
    if (!responder_.on_request(now, headers, data, out)) {
      enter_error(std::nullopt, "refused a request", out);
    } else if (congestion_ && congestion_->owes_echo()) {
      responder_.acknowledge();  // of all packets so far, this one included
    }
  } else if (context_.state == QpState::kRtr) {
    counters.add(Counter::kRxDropQpState);
  } else {
    on_response(now, headers, data, out);
  }
}

void QueuePair::note_congestion(Instant now, const wire::RoceHeaders& headers) {
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  const bool is_cnp = headers.bth.opcode == wire::Opcode::kCnp;
  if (is_cnp || (info.response && headers.bth.becn)) {
    if (!is_cnp) context_.port.counters.add(Counter::kRxCeEcho);
    congestion_->on_notification(now);
  } else if (QpCongestion::is_marked(headers)) {
    congestion_->on_marked(now, info.request());
  }
}

void QueuePair::on_response(Instant now, const wire::RoceHeaders& headers,
                            std::span<const std::uint8_t> data, NicOutput& out) {
  if (headers.bth.opcode == wire::Opcode::kRcAcknowledge) {
    requester_.on_ack(now, headers.bth.psn, headers.aeth, out);
  } else {
    requester_.on_result(now, headers, data, out);
  }
  finish_requester(out);
}

void QueuePair::on_unreliable_packet(const wire::RoceHeaders& headers,
                                     std::span<const std::uint8_t> data, NicOutput& out) {
  const bool uc = type() == QpType::kUc;
  if (uc) note_established(out);
  if (!(uc ? uc_responder_.on_request(headers, data, out)
           : ud_responder_.on_datagram(headers, data, out))) {
    enter_error(std::nullopt, "a receive failed", out);
  }
}

void QueuePair::note_established(NicOutput& out) {
  if (context_.state == QpState::kRtr && !has_received_) {
    out.events.push_back({AsyncEventKind::kCommEstablished, context_.qpn});
  }
  has_received_ = true;
}

void QueuePair::on_timer(Instant now, NicOutput& out) {
  resume(now);
  responder_.on_timer(now);
  if (requester_.deadline() > now) return;
  requester_.on_timer(now);
  finish_requester(out);
}

void QueuePair::build_response(wire::Frame& frame) {
  if (owes_cnp()) return build_cnp(frame);
  const bool echo = congestion_ && congestion_->owes_echo();
  responder_.build_response(frame, echo);
  if (echo) congestion_->on_echo_sent();
}

void QueuePair::build_cnp(wire::Frame& frame) {
  wire::RoceHeaders headers = context_.envelope;
  headers.ip.tos = wire::without_ecn(context_.attr.traffic_class);
  headers.bth.opcode = wire::Opcode::kCnp;
  headers.bth.becn = true;
  headers.bth.psn = Psn();
  build_without_payload(context_.port, headers, frame);
  responder_.on_cnp_sent();
  if (congestion_) return congestion_->on_cnp_sent();
  context_.port.counters.add(Counter::kTxCnp);
}

Build QueuePair::build_data(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame,
                            NicOutput& out) {
  const Build built = build_packet(now, buffer, frame, out);
  if (!congestion_ || built != Build::kBuilt) return built;
  if (congestion_->on_sent(now, frame.size()) && has_work()) {
    context_.port.counters.add(Counter::kPacedWaits);
  }
  return built;
}

Build QueuePair::build_packet(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame,
                              NicOutput& out) {
  const bool may_send = can_send();
  if (responder_.has_result() && (result_is_next_ || !may_send)) {
    result_is_next_ = false;
    const Build built = responder_.build_result(buffer, frame, out);
    if (built == Build::kFailed)
      enter_error(std::nullopt, "memory of a read was deregistered", out);
    return built;
  }
  assert(may_send);
  result_is_next_ = true;
  if (is_rc()) {
    const Build built = requester_.build(now, buffer, frame);
    if (built == Build::kFailed) finish_requester(out);
    return built;
  }
  const Build built = unreliable_.build(buffer, frame, out);
  if (built == Build::kFailed) {
    set_state(QpState::kSqe, "a send failed");
    unreliable_.flush(unreliable_.failure(), out);
  } else {
    finish_requester(out);
  }
  return built;
}

void QueuePair::finish_requester(NicOutput& out) {
  if (const auto failure = requester_.failure()) {
    enter_error(failure, "send request failed", out);
  } else if (context_.state == QpState::kSqd && owes_drained_ && is_drained()) {
    owes_drained_ = false;
    out.events.push_back({AsyncEventKind::kSqDrained, context_.qpn});
  }
}

void QueuePair::enter_error(std::optional<WcStatus> oldest_send, const char* reason,
                            NicOutput& out) {
  set_state(QpState::kErr, reason);
  if (is_rc()) {
    requester_.flush(oldest_send, out);
    responder_.flush(out);
  } else {
    unreliable_.flush(oldest_send, out);
    uc_responder_.flush(out);
  }
}

std::optional<CongestionState> QueuePair::congestion(Instant now) const {
  if (!congestion_) return std::nullopt;
  return congestion_->state(now);
}

void QueuePair::check_consistent() const {
  if (is_rc()) {
    requester_.check_consistent();
    responder_.check_consistent();
  }
  assert(!requester_.failure() && reason_ != nullptr);
  assert(!can_send() || context_.state == QpState::kRts || context_.state == QpState::kSqd);
}

}  // namespace cepheus::rnic
