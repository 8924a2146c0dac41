#include "soft-roce/engine/requester.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "soft-roce/engine/packet_out.h"
#include "soft-roce/engine/scatter_gather.h"

namespace cepheus::rnic {
namespace {

using wire::Opcode;

// Opcode tables by place in the message: first, middle, last, last with immediate, only, only with
// immediate.
Opcode opcode_for(const SendWqe& wqe, bool first, bool last) {
  const bool imm = wqe.has_imm();
  if (wqe.is_write()) {
    if (first && last) return imm ? Opcode::kRcWriteOnlyImm : Opcode::kRcWriteOnly;
    if (first) return Opcode::kRcWriteFirst;
    if (last) return imm ? Opcode::kRcWriteLastImm : Opcode::kRcWriteLast;
    return Opcode::kRcWriteMiddle;
  }
  if (first && last) return imm ? Opcode::kRcSendOnlyImm : Opcode::kRcSendOnly;
  if (first) return Opcode::kRcSendFirst;
  if (last) return imm ? Opcode::kRcSendLastImm : Opcode::kRcSendLast;
  return Opcode::kRcSendMiddle;
}

WcStatus status_of_nak(std::uint8_t code) {
  switch (static_cast<wire::NakCode>(code)) {
    case wire::NakCode::kRemoteAccess:
      return WcStatus::kRemoteAccess;
    case wire::NakCode::kRemoteOperational:
      return WcStatus::kRemoteOperation;
    default:
      return WcStatus::kRemoteInvalidRequest;
  }
}

}  // namespace

Requester::Requester(const QpContext& context, Counters& counters)
    : qp_(context),
      counters_(counters),
      queue_(context.init.cap.max_send_wr, context.init.cap.max_send_sge,
             context.init.cap.max_inline) {}

void Requester::start(Psn first) {
  assert(queue_.empty() && posted_ == 0);
  first_psn_ = first;
  retries_left_ = qp_.attr.retry_count;
  rnr_retries_left_ = qp_.attr.rnr_retry;
  timeouts_in_a_row_ = 0;
}

void Requester::reset() {
  queue_.clear();
  una_ = next_ = sent_ = posted_ = 0;
  cursor_ = queue_.head();
  probing_ = waits_for_receiver_ = local_failure_ = false;
  rnr_deadline_ = ack_deadline_ = wire::kNever;
  drain_limit_.reset();
  remote_failure_.reset();
}

wire::Result<void> Requester::post(const SendWr& wr) {
  if (wr.op > SendOp::kWriteImm) {
    return wire::fail(wire::ErrorCode::kInvalid, "only SEND and WRITE, with or without immediate");
  }
  const std::uint64_t length = total_length(wr.sges);
  if (length > kMaxMessage) {
    return wire::fail(wire::ErrorCode::kInvalid, "message longer than 2^31 bytes: split it");
  }
  if (wr.inline_data ? length > qp_.init.cap.max_inline
                     : wr.sges.size() > qp_.init.cap.max_send_sge) {
    return wire::fail(wire::ErrorCode::kInvalid, wr.inline_data
                                                     ? "inline data longer than the QP's max_inline"
                                                     : "more SGEs than the QP's max_send_sge");
  }
  if (queue_.full()) {
    return wire::fail(wire::ErrorCode::kAgain, "send queue full: poll completions first");
  }
  SendWqe wqe;
  wqe.wr_id = wr.wr_id;
  wqe.remote_address = wr.remote_address;
  wqe.first_packet = posted_;
  wqe.length = static_cast<std::uint32_t>(length);
  wqe.packets = std::max(
      1u, static_cast<std::uint32_t>((length + qp_.attr.path_mtu - 1) / qp_.attr.path_mtu));
  wqe.rkey = wr.rkey;
  wqe.imm = wr.imm;
  wqe.op = wr.op;
  wqe.signaled = wr.signaled || qp_.init.signal_all;
  wqe.solicited = wr.solicited;
  wqe.inline_data = wr.inline_data;
  posted_ = wqe.end_packet();
  if (!wr.inline_data) {
    queue_.push(wqe, wr.sges);
    return {};
  }
  std::uint8_t* to = queue_.push_inline(wqe);
  for (const Sge& sge : wr.sges) {
    if (sge.length == 0) continue;
    std::memcpy(to, reinterpret_cast<const void*>(sge.address), sge.length);
    to += sge.length;
  }
  return {};
}

std::uint64_t Requester::window() const { return probing_ ? 1 : qp_.port.config.window_packets; }

bool Requester::can_send() const {
  if (qp_.state != QpState::kRts && qp_.state != QpState::kSqd) return false;
  if (waits_for_receiver_ || local_failure_ || remote_failure_) return false;
  return next_ < drain_limit_.value_or(posted_) && next_ - una_ < window();
}

Requester::Build Requester::build(Instant now, std::span<std::uint8_t> buffer, wire::Frame& frame) {
  assert(can_send());
  const NicConfig& config = qp_.port.config;
  const SendWqe& wqe = queue_.at(cursor_);
  const std::uint64_t index = next_ - wqe.first_packet;
  const std::uint64_t offset = index * qp_.attr.path_mtu;
  const auto length =
      static_cast<std::size_t>(std::min<std::uint64_t>(qp_.attr.path_mtu, wqe.length - offset));
  const std::size_t pad = -length & 3;
  const bool first = index == 0;
  const bool last = index + 1 == wqe.packets;
  const bool fills_window = next_ + 1 - una_ >= window();

  wire::RoceHeaders headers = qp_.envelope;
  headers.bth.opcode = opcode_for(wqe, first, last);
  headers.bth.pad_count = static_cast<std::uint8_t>(pad);
  headers.bth.solicited = last && wqe.solicited;
  headers.bth.ack_request = last || fills_window || (index + 1) % config.ack_every == 0;
  headers.bth.psn = psn_of(next_);
  headers.reth = {wqe.remote_address, wqe.rkey, wqe.length};
  headers.imm.value = wqe.imm;
  headers.emit(frame, length + pad);

  const bool fits_inline = frame.payload_fits_inline(length + pad);
  if (!fits_inline && buffer.size() < config.max_mtu) return Build::kNeedsBuffer;
  const std::span<std::uint8_t> payload =
      fits_inline ? std::span(frame.bytes).subspan(frame.header_len, length + pad)
                  : buffer.first(length + pad);
  if (wqe.inline_data) {
    if (length != 0) std::memcpy(payload.data(), queue_.inline_bytes(cursor_) + offset, length);
  } else if (!gather(qp_.port.memory, qp_.init.pd, queue_.sges(cursor_), offset,
                     payload.first(length))) {
    local_failure_ = true;
    return Build::kFailed;
  }
  std::fill(payload.begin() + static_cast<std::ptrdiff_t>(length), payload.end(), std::uint8_t{0});
  finish_packet(config, counters_, payload, fits_inline, frame);

  if (next_ < sent_) counters_.add(Counter::kTxRetransmitted);
  ++next_;
  sent_ = std::max(sent_, next_);
  if (last) ++cursor_;
  restart_timer(now);
  return Build::kBuilt;
}

void Requester::on_response(Instant now, Psn psn, const wire::Aeth& aeth, Actions& out) {
  const bool known = aeth.kind == wire::AckKind::kAck || aeth.kind == wire::AckKind::kRnrNak ||
                     aeth.is_sequence_nak() || aeth.is_fatal_nak();
  if (!known) {
    counters_.add(Counter::kRxDropMalformed);
    return;
  }
  const std::int32_t steps = distance(psn_of(una_), psn);
  if (steps < 0 || static_cast<std::uint64_t>(steps) >= sent_ - una_) {
    counters_.add(Counter::kRxDropStaleAck);
    return;
  }
  const std::uint64_t packet = una_ + static_cast<std::uint64_t>(steps);
  switch (aeth.kind) {
    case wire::AckKind::kAck:
      counters_.add(Counter::kRxAck);
      advance_to(now, packet + 1, out);
      break;
    case wire::AckKind::kRnrNak:
      on_rnr_nak(now, packet, aeth.value, out);
      break;
    default:
      on_nak(now, packet, aeth.value, out);
      break;
  }
}

// Everything below `una` has arrived.
void Requester::advance_to(Instant now, std::uint64_t una, Actions& out) {
  if (una == una_) return;
  assert(una > una_ && una <= sent_);
  una_ = una;
  while (!queue_.empty() && queue_.front().end_packet() <= una_) {
    if (queue_.front().signaled) complete(queue_.front(), WcStatus::kSuccess, out);
    queue_.pop();
  }
  if (next_ < una_) go_back();
  retries_left_ = qp_.attr.retry_count;
  rnr_retries_left_ = qp_.attr.rnr_retry;
  timeouts_in_a_row_ = 0;
  probing_ = waits_for_receiver_ = false;
  restart_timer(now);
}

void Requester::on_rnr_nak(Instant now, std::uint64_t packet, std::uint8_t timer, Actions& out) {
  counters_.add(Counter::kRxRnrNak);
  advance_to(now, packet, out);
  if (next_ == packet) return;  // not sent since the last NAK: this is an old one
  go_back();
  if (qp_.attr.rnr_retry != kInfiniteRnrRetry) {
    if (rnr_retries_left_ == 0) {
      counters_.add(Counter::kRnrRetriesExceeded);
      remote_failure_ = WcStatus::kRnrRetryExceeded;
      return;
    }
    --rnr_retries_left_;
  }
  retries_left_ = qp_.attr.retry_count;  // the receiver lives
  timeouts_in_a_row_ = 0;
  waits_for_receiver_ = probing_ = true;
  rnr_deadline_ = now + std::min(wire::rnr_timer_duration(timer), qp_.port.config.max_rnr_wait);
}

void Requester::on_nak(Instant now, std::uint64_t packet, std::uint8_t code, Actions& out) {
  const bool sequence = static_cast<wire::NakCode>(code) == wire::NakCode::kSequenceError;
  counters_.add(sequence ? Counter::kRxNakSequence : Counter::kRxNakFatal);
  advance_to(now, packet, out);
  if (!sequence) {
    remote_failure_ = status_of_nak(code);
    return;
  }
  // Not sent since the last NAK: this is an old one, and must not cut an RNR wait short.
  if (next_ == packet) return;
  probing_ = false;  // the receiver lives, and misses more than the probe
  timeouts_in_a_row_ = 0;
  spend_retry();
}

// Go-back-N: resend from the oldest packet that is not acknowledged.
void Requester::go_back() {
  next_ = una_;
  cursor_ = queue_.head();
  local_failure_ = false;
  ack_deadline_ = wire::kNever;
}

void Requester::spend_retry() {
  if (retries_left_ == 0) {
    counters_.add(Counter::kRetriesExceeded);
    remote_failure_ = WcStatus::kRetryExceeded;
    return;
  }
  --retries_left_;
  go_back();
}

void Requester::on_timer(Instant now) {
  if (waits_for_receiver_) {
    if (now >= rnr_deadline_) waits_for_receiver_ = false;
    return;
  }
  if (now < ack_deadline_) return;
  counters_.add(Counter::kAckTimeouts);
  ++timeouts_in_a_row_;
  // One packet probes: mostly it was the answer that got lost, or came late, and a whole window
  // would be sent for nothing.
  probing_ = true;
  spend_retry();
}

Duration Requester::ack_timeout() const {
  const auto asked = std::chrono::nanoseconds(std::int64_t{4096} << qp_.attr.timeout_code);
  const Duration first = std::max<Duration>(asked, qp_.port.config.min_ack_timeout);
  return first *
         (std::int64_t{1} << std::min(timeouts_in_a_row_, qp_.port.config.timeout_doublings));
}

void Requester::restart_timer(Instant now) {
  const bool runs = una_ < next_ && qp_.attr.timeout_code != 0;
  ack_deadline_ = runs ? now + ack_timeout() : wire::kNever;
}

std::optional<WcStatus> Requester::failure() const {
  if (remote_failure_) return remote_failure_;
  // Requests before the one that can't be read end first; their own failure would come first, too.
  if (local_failure_ && una_ == next_) return WcStatus::kLocalProtection;
  return std::nullopt;
}

void Requester::complete(const SendWqe& wqe, WcStatus status, Actions& out) const {
  Completion c;
  c.cq = qp_.init.send_cq;
  c.wr_id = wqe.wr_id;
  c.status = status;
  c.opcode = wqe.is_write() ? WcOpcode::kWrite : WcOpcode::kSend;
  c.byte_len = status == WcStatus::kSuccess ? wqe.length : 0;
  c.qpn = qp_.qpn;
  out.completions.push_back(c);
}

void Requester::complete_flushed(const SendWr& wr, Actions& out) const {
  SendWqe wqe;
  wqe.wr_id = wr.wr_id;
  wqe.op = wr.op;
  complete(wqe, WcStatus::kFlush, out);
}

void Requester::flush(std::optional<WcStatus> first, Actions& out) {
  for (; !queue_.empty(); queue_.pop()) {
    complete(queue_.front(), first.value_or(WcStatus::kFlush), out);
    first.reset();
  }
  una_ = next_ = posted_ = sent_;
  cursor_ = queue_.head();
  probing_ = waits_for_receiver_ = local_failure_ = false;
  rnr_deadline_ = ack_deadline_ = wire::kNever;
  drain_limit_.reset();
  remote_failure_.reset();
}

void Requester::drain() {
  drain_limit_ = una_;
  for (std::uint64_t p = queue_.head(); p < queue_.tail() && queue_.at(p).first_packet < sent_;
       ++p) {
    drain_limit_ = queue_.at(p).end_packet();
  }
}

void Requester::check_consistent() const {
  assert(una_ <= next_ && next_ <= sent_ && sent_ <= posted_);
  assert(sent_ - una_ <= qp_.port.config.window_packets);
  assert(queue_.empty() ? una_ == posted_ : queue_.front().end_packet() > una_);
  assert(cursor_ >= queue_.head() && cursor_ <= queue_.tail());
  assert(cursor_ == queue_.tail() ||
         (queue_.at(cursor_).first_packet <= next_ && next_ < queue_.at(cursor_).end_packet()));
  assert(ack_deadline_ == wire::kNever || una_ < next_);
  assert(!waits_for_receiver_ || (probing_ && rnr_deadline_ != wire::kNever));
}

}  // namespace cepheus::rnic
