// The requester's handling of ACKs, NAKs, READ responses and atomic ACKs.
//
// Responses move `una_`, the oldest packet without an answer, over packets up to `sent_`; `next_`
// is the next one to send, and falls back to `una_` when packets are repeated (go-back-N, IBTA
// 9.7.5).
//
//   ACK             everything up to it has arrived, but READs and atomics complete by their result
//   result          in order only; a response behind a missing result shows that the result is lost
//   NAK (sequence)  spends a retry and goes back; one for each gap, also if it comes twice
//   RNR NAK         goes back, waits for its timer, and then sends one packet as a probe
//   other NAKs      fail the oldest request
//
// PSNs are compared with `una_`: fewer than two windows are in flight, at most 2^23 packets.
// What lies outside is counted as stale. Manners (manners.h) are what other makes do differently.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "nic-emulator/engine/memory_table.h"
#include "nic-emulator/engine/requester.h"
#include "wire/situation.h"

namespace cepheus::rnic {
namespace {

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

// The packet that a response names, if it is in flight.
std::optional<std::uint64_t> Requester::packet_of(Psn psn) {
  // Fewer than two windows are in flight (check_consistent), 2^23 at most (Nic's kLargestWindow): a
  // PSN in flight lies within 2^23 of the oldest one. Any other PSN is refused here.
  const std::int32_t steps = distance(psn_of(una_), psn);
  const bool is_old = steps < 0;
  if (!is_old && static_cast<std::uint64_t>(steps) < sent_ - una_) {
    return una_ + static_cast<std::uint64_t>(steps);
  }
  const bool is_accepted = !is_old && qp_.port.config.manners.accepts_ack_of_unsent;
  if (is_accepted && sent_ > una_) return sent_ - 1;
  if (is_old) CEPHEUS_SITUATION("an ACK older than all in flight");
  counters_.add(Counter::kRxDropStaleAck);
  return std::nullopt;
}

void Requester::on_ack(Instant now, Psn psn, const wire::Aeth& aeth, NicOutput& out) {
  const bool known = aeth.kind == wire::AckKind::kAck || aeth.kind == wire::AckKind::kRnrNak ||
                     aeth.is_sequence_nak() || aeth.is_fatal_nak();
  if (!known) return counters_.add(Counter::kRxDropMalformed);
  const auto packet = packet_of(psn);
  if (!packet) return;
  switch (aeth.kind) {
    case wire::AckKind::kAck:
      counters_.add(Counter::kRxAck);
      if (!advance_to(now, acknowledged_end(*packet, aeth.msn), out)) on_missing_result(*packet);
      break;
    case wire::AckKind::kRnrNak:
      on_rnr_nak(now, *packet, aeth.value, out);
      break;
    default:
      on_nak(now, *packet, aeth.value, out);
      break;
  }
}

void Requester::on_result(Instant now, const wire::RoceHeaders& headers,
                          std::span<const std::uint8_t> data, NicOutput& out) {
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  if (info.aeth && headers.aeth.kind != wire::AckKind::kAck)
    return counters_.add(Counter::kRxDropMalformed);
  const auto packet = packet_of(headers.bth.psn);
  if (!packet) return;
  counters_.add(info.atomic_ack_eth ? Counter::kRxAtomicAck : Counter::kRxReadResponse);
  if (!advance_to(now, *packet, out)) return on_missing_result(*packet, true);
  oldest_failure_ = place_result(headers, *packet, data);
  if (oldest_failure_) return;

  const SendWqe& wqe = queue_.front();
  const std::uint64_t done = *packet + 1 - wqe.first_packet;
  const bool ends_request = done == wqe.packets || done % read_piece() == 0;
  if (ends_request && *packet < next_) --fetches_in_flight_;
  una_ = *packet + 1;
  if (done == wqe.packets) queue_.finish_front(out);
  on_progress(now);
}

// Writes the result of `packet`, the oldest one, into the request's memory, or returns the error.
std::optional<WcStatus> Requester::place_result(const wire::RoceHeaders& headers,
                                                std::uint64_t packet,
                                                std::span<const std::uint8_t> data) const {
  const SendWqe& wqe = queue_.front();
  std::array<std::uint8_t, sizeof headers.atomic_ack.original> original;
  std::uint64_t offset = 0;
  std::uint64_t expected = 0;
  const bool atomic = opcode_info(headers.bth.opcode).atomic_ack_eth;
  if (atomic ? !wqe.is_atomic() : wqe.op != SendOp::kRead) return WcStatus::kBadResponse;
  if (!atomic) {
    offset = (packet - wqe.first_packet) * qp_.attr.path_mtu;
    expected = std::min<std::uint64_t>(qp_.attr.path_mtu, wqe.length - offset);
  }
  if (data.size() != expected) return WcStatus::kBadResponse;
  if (atomic) {
    std::memcpy(original.data(), &headers.atomic_ack.original, original.size());
    data = original;
  }
  const bool placed =
      scatter(qp_.port.memory, qp_.init.pd, queue_.sges(queue_.head()), offset, data);
  return placed ? std::nullopt : std::optional(WcStatus::kLocalProtection);
}

// Everything below `una` has arrived, but a READ or atomic completes by its result alone. False:
// stopped at one.
bool Requester::advance_to(Instant now, std::uint64_t una, NicOutput& out) {
  assert(una >= una_ && una <= sent_);
  const std::uint64_t before = una_;
  while (una_ < una) {
    const SendWqe& wqe = queue_.front();
    if (wqe.is_fetch()) break;
    if (wqe.end_packet() > una) {
      una_ = una;
      break;
    }
    una_ = wqe.end_packet();
    queue_.finish_front(out);
  }
  if (una_ != before) on_progress(now);
  return una_ == una;
}

// One behind the last packet that an ACK of `packet` acknowledges. MSNs count modulo 2^24, and a
// queue has far fewer messages than half of that.
std::uint64_t Requester::acknowledged_end(std::uint64_t packet, std::uint32_t msn) const {
  const std::uint64_t end = packet + 1;
  if (!qp_.port.config.manners.completes_by_msn) return end;
  for (std::uint64_t p = queue_.head(); p != queue_.tail() && queue_.at(p).end_packet() <= end;
       ++p) {
    const auto number = static_cast<std::uint32_t>(p + 1 - origin_) & Psn::kMask;
    if (distance(Psn(number), Psn(msn)) < 0) return queue_.at(p).end_packet() - 1;
  }
  return end;
}

void Requester::on_progress(Instant now) {
  if (next_ < una_) {
    CEPHEUS_SITUATION("an ACK overtakes the packets being repeated");
    go_back();
  }
  if (waits_for_receiver_) CEPHEUS_SITUATION("an ACK ends an RNR wait");
  if (timeouts_in_a_row_ != 0) CEPHEUS_SITUATION("an ACK comes after a time-out");
  retries_left_ = qp_.attr.retry_count;
  rnr_retries_left_ = qp_.attr.rnr_retry;
  timeouts_in_a_row_ = 0;
  probing_ = waits_for_receiver_ = false;
  missed_results_ = 0;
  restart_timer(now);
}

// A response that was sent after the oldest packet's result implies that this result is lost (IBTA
// 9.7.6). Responses to the first requests are still in flight then. Responses come in order: one
// that steps back answers a repeated request, and the oldest result is lost again. One that comes
// again does so, too, once its request has been repeated. But ACKs of several requests may be equal.
void Requester::on_missing_result(std::uint64_t packet, bool is_result) {
  constexpr int kMost = 4;  // more would spend the retries that time-outs need
  counters_.add(Counter::kRxMissingResult);
  const bool is_only_one = packet + 1 == sent_ && packet == queue_.front().end_packet();
  const bool comes_again = packet == last_behind_missing_ && packet < next_;
  const bool is_of_repeat =
      packet < last_behind_missing_ || (comes_again && (is_result || is_only_one));
  last_behind_missing_ = packet;
  if (next_ == una_ || missed_results_ == kMost) return;
  if (missed_results_ > 0 && (!is_of_repeat || retries_left_ < 2)) return;
  ++missed_results_;
  probing_ = false;
  timeouts_in_a_row_ = 0;
  spend_retry();
}

void Requester::on_rnr_nak(Instant now, std::uint64_t packet, std::uint8_t timer, NicOutput& out) {
  counters_.add(Counter::kRxRnrNak);
  if (!advance_to(now, packet, out)) return on_missing_result(packet);
  if (next_ == packet) {  // not sent since the last NAK: this is an old one
    CEPHEUS_SITUATION("an RNR NAK comes again before its packet is repeated");
    return;
  }
  go_back();
  if (qp_.attr.rnr_retry != kInfiniteRnrRetry || qp_.port.config.manners.limits_rnr_retries) {
    if (rnr_retries_left_ == 0) {
      counters_.add(Counter::kRnrRetriesExceeded);
      oldest_failure_ = WcStatus::kRnrRetryExceeded;
      return;
    }
    --rnr_retries_left_;
  }
  retries_left_ = qp_.attr.retry_count;  // the receiver is alive
  timeouts_in_a_row_ = 0;
  waits_for_receiver_ = true;
  probing_ = !qp_.port.config.manners.lacks_caution;
  rnr_deadline_ = now + std::min(wire::rnr_timer_duration(timer), qp_.port.config.max_rnr_wait);
}

void Requester::on_nak(Instant now, std::uint64_t packet, std::uint8_t code, NicOutput& out) {
  const bool sequence = static_cast<wire::NakCode>(code) == wire::NakCode::kSequenceError;
  counters_.add(sequence ? Counter::kRxNakSequence : Counter::kRxNakFatal);
  if (!advance_to(now, packet, out)) return on_missing_result(packet);
  if (!sequence) {
    CEPHEUS_SITUATION("a fatal NAK");
    oldest_failure_ = status_of_nak(code);
    return;
  }
  // Not sent since the last NAK: this is an old one, and must not cut an RNR wait short.
  if (next_ == packet) {
    CEPHEUS_SITUATION("a NAK comes again before its packet is repeated");
    return;
  }
  // A responder sends one NAK per gap (IBTA 9.7.5.2). A second one was duplicated on its way, and
  // would cost a retry. If the repeat is lost, too, only a time-out reveals it.
  if (nak_packet_ == packet && !qp_.port.config.every_nak_counts) {
    CEPHEUS_SITUATION("a second NAK for one packet is ignored");
    return;
  }
  if (probing_) CEPHEUS_SITUATION("a NAK answers a probe");
  nak_packet_ = packet;
  probing_ = false;  // the receiver is alive, and lacks more than the probe
  spend_retry();
}

}  // namespace cepheus::rnic
