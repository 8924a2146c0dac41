// SENDs and WRITEs, and everything owed; responder_results.cc has READs and atomics. A request is
// next, behind a gap, or a duplicate, by its distance from the expected PSN.
//
// The next one passes, in this order: its place in the message, a receive if it takes one,
// execution. Without a receive an RNR NAK is owed and the PSN stays. A refused request owes a fatal
// NAK and fails the queue pair.
//
// One response is owed at a time. A newer one replaces it, but an ACK does not replace a NAK.
// Packets behind a gap are dropped, or kept up to `keeps_behind_gap` of them; that buffer is
// allocated at RTR.
#include "nic-emulator/engine/responder.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "wire/ecn.h"
#include "wire/situation.h"

namespace cepheus::rnic {

Responder::Responder(QpContext& context, ReceiveQueue& receives)
    : qp_(context), counters_(context.port.counters), receives_(receives) {}

void Responder::start(Psn first) {
  expected_ = first;
  is_fresh_ = true;
  const std::uint32_t kept = qp_.port.config.manners.keeps_behind_gap;
  if (kept != 0) held_ = std::make_unique<ReorderBuffer>(kept, qp_.attr.path_mtu);
}

void Responder::reset() {
  receives_.clear();
  if (!is_fresh_) stale_ = expected_ - 1;
  expected_ = Psn();
  is_fresh_ = true;
  msn_ = 0;
  owed_ = Owed::kNothing;
  has_sent_nak_ = owes_cnp_ = false;
  nak_leaves_ = wire::kNever;
  held_.reset();
  message_ = Message::kNone;
  offset_ = 0;
  since_fetch_ = kFarthestDuplicate;
  packets_ = packets_before_ = 0;
  results_.clear();
}

void Responder::jump(std::uint64_t packets) {
  assert(is_idle());
  is_fresh_ = is_fresh_ && packets == 0;
  expected_ = expected_ + static_cast<std::int64_t>(packets);
  msn_ = static_cast<std::uint32_t>(msn_ + packets) & Psn::kMask;
  since_fetch_ = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(since_fetch_ + packets, kFarthestDuplicate));
}

bool Responder::on_request(Instant now, const wire::RoceHeaders& headers,
                           std::span<const std::uint8_t> data, NicOutput& out) {
  // The peer's PSN may be any number. Within 2^23 ahead it is a gap, within 2^23 behind a duplicate
  // (IBTA 9.7.2): a requester has fewer than 2^23 packets outstanding, so the two do not meet.
  const std::int32_t ahead = distance(expected_, headers.bth.psn);
  if (ahead > 0) {
    on_gap(now, ahead, headers, data);
    return true;
  }
  if (ahead < 0) {
    on_duplicate(headers, static_cast<std::uint32_t>(-ahead));
    return true;
  }
  if (!take(headers, data, out)) return false;
  if (held_ == nullptr) return true;
  // What was kept behind the gap is next now, unless a receive is missing.
  for (Psn before = headers.bth.psn; expected_ != before;) {
    before = expected_;
    const auto kept = held_->take(expected_);
    if (kept) CEPHEUS_SITUATION("a packet kept behind a gap is next");
    if (kept && !take(kept->headers, kept->data, out)) return false;
  }
  return true;
}

void Responder::on_gap(Instant now, std::int32_t ahead, const wire::RoceHeaders& headers,
                       std::span<const std::uint8_t> data) {
  const Manners& manners = qp_.port.config.manners;
  counters_.add(Counter::kRxOutOfSequence);
  if (owed_ == Owed::kRnrNak) CEPHEUS_SITUATION("a gap while an RNR NAK is owed");
  if (has_sent_nak_ && manners.naks_each_packet_of_gap)
    CEPHEUS_SITUATION("a NIC sends another NAK for one gap");
  if (message_ != Message::kNone) CEPHEUS_SITUATION("a gap in the middle of a message");
  if (held_ != nullptr) held_->keep(ahead, headers, data);
  const bool sends_nak = !has_sent_nak_ || manners.naks_each_packet_of_gap;
  // A NAK that waits already covers this packet, too.
  if (!sends_nak || owed_ == Owed::kRnrNak || nak_leaves_ != wire::kNever) return;
  owe(Owed::kSequenceNak);
  owes_cnp_ = manners.sends_cnp_after_loss;
  has_sent_nak_ = true;
  constexpr Duration kLeast = std::chrono::microseconds(1);
  if (manners.longest_nak_wait > kLeast) {
    CEPHEUS_SITUATION("a NIC keeps its NAK back");
    nak_leaves_ = now + qp_.draw(kLeast, manners.longest_nak_wait);
  }
}

// Takes the next packet in sequence. False: the QP must fail.
bool Responder::take(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                     NicOutput& out) {
  const Manners& manners = qp_.port.config.manners;
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  if (!is_in_place(info, data.size())) return refuse(wire::NakCode::kInvalidRequest, out);
  const bool takes_receive = info.send ? info.first : info.imm;
  if (takes_receive && !receives_.hold(out)) {
    // The packets behind it are dropped silently: one NAK per gap.
    CEPHEUS_SITUATION("a message without a receive");
    if (manners.naks_after_rnr) CEPHEUS_SITUATION("a NIC sends NAKs behind an RNR NAK");
    has_sent_nak_ = !manners.naks_after_rnr;
    owe(Owed::kRnrNak);
    return true;
  }
  const bool fetch = info.read_request || info.atomic_request;
  if (fetch ? !execute_fetch(headers, out) : !execute(headers, data, out)) return false;

  has_sent_nak_ = is_fresh_ = false;
  if (fetch) return true;
  ++packets_;  // a message has at most 2^31 bytes
  if (info.last) packets_before_ = std::exchange(packets_, 0);
  if (info.last) msn_ = (msn_ + 1) & Psn::kMask;
  expected_ = expected_ + 1;
  if (since_fetch_ < kFarthestDuplicate) ++since_fetch_;
  // An unsent NAK is wrong now: everything up to here has arrived.
  const bool outdated_nak = owed_ == Owed::kSequenceNak || owed_ == Owed::kRnrNak;
  if (outdated_nak) {
    CEPHEUS_SITUATION("a packet arrives before the NAK for it is sent");
    owe(Owed::kNothing);
  }
  if (headers.bth.ack_request || outdated_nak || manners.acks_every_packet) owe(Owed::kAck);
  return !has_failed_;
}

// Whether a packet with this opcode and length may follow the ones before
// (IBTA 9.7.4.1.1 to 9.7.4.1.6).
bool Responder::is_in_place(const wire::OpcodeInfo& info, std::size_t length) const {
  if (info.read_request || info.atomic_request) return message_ == Message::kNone && length == 0;
  const Message kind = info.send ? Message::kSend : Message::kWrite;
  if (message_ != (info.first ? Message::kNone : kind)) return false;
  if (!info.last) return length == qp_.attr.path_mtu;
  return length <= qp_.attr.path_mtu && (info.first || length > 0);
}

// Executes the next packet in sequence. False: refused.
bool Responder::execute(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                        NicOutput& out) {
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  if (info.first) {
    offset_ = 0;
    message_ = info.send ? Message::kSend : Message::kWrite;
    if (info.write) {
      if (const auto why = begin_write(headers.reth)) return refuse_write(*why, info.imm, out);
    }
  }
  if (info.send) {
    if (!place_send(data, out)) return false;
  } else if (const auto why = place_write(data, info.last)) {
    return refuse_write(*why, info.imm, out);
  }
  offset_ += data.size();
  if (!info.last) return true;
  message_ = Message::kNone;
  if (info.ieth) {
    // Only keys of memory windows and of fast registrations can be revoked, and this NIC has none.
    // The message has arrived, so its sender learns nothing (IBTA 9.9.6.3, class J).
    has_failed_ = true;
    receives_.complete(WcStatus::kRemoteInvalidRequest, out);
  } else if (info.send || info.imm) {
    receives_.complete_message(headers, offset_, out);
  } else {
    counters_.add(Counter::kRxSilent);
  }
  return true;
}

bool Responder::place_send(std::span<const std::uint8_t> data, NicOutput& out) {
  if (offset_ + data.size() > receives_.capacity()) {
    return refuse_receive(wire::NakCode::kInvalidRequest, WcStatus::kLocalLength, out);
  }
  if (!receives_.place(offset_, data)) {
    return refuse_receive(wire::NakCode::kRemoteOperational, WcStatus::kLocalProtection, out);
  }
  return true;
}

std::optional<wire::NakCode> Responder::begin_write(const wire::Reth& reth) {
  if ((qp_.attr.access & kRemoteWrite) == 0 || reth.dma_length > kMaxMessage) {
    return wire::NakCode::kInvalidRequest;
  }
  write_ = reth;
  if (!qp_.may_access(reth, kRemoteWrite)) return wire::NakCode::kRemoteAccess;
  return std::nullopt;
}

std::optional<wire::NakCode> Responder::place_write(std::span<const std::uint8_t> data, bool last) {
  const std::uint64_t end = offset_ + data.size();
  if (last ? end != write_.dma_length : end >= write_.dma_length) {
    return wire::NakCode::kInvalidRequest;
  }
  if (!qp_.store(write_, offset_, data)) return wire::NakCode::kRemoteAccess;
  return std::nullopt;
}

// A packet with an immediate has a receive, which reports the access error (IBTA 11.6.2).
bool Responder::refuse_write(wire::NakCode code, bool has_receive, NicOutput& out) {
  if (!has_receive || code != wire::NakCode::kRemoteAccess) return refuse(code, out);
  return refuse_receive(code, WcStatus::kLocalAccess, out);
}

bool Responder::refuse(wire::NakCode code, NicOutput& out) {
  fatal_code_ = code;
  owe(Owed::kFatalNak);
  out.events.push_back({code == wire::NakCode::kRemoteAccess ? AsyncEventKind::kQpAccessError
                                                             : AsyncEventKind::kQpRequestError,
                        qp_.qpn});
  return false;
}

bool Responder::refuse_receive(wire::NakCode code, WcStatus status, NicOutput& out) {
  fatal_code_ = code;
  owe(Owed::kFatalNak);
  receives_.complete(status, out);
  return false;
}

// The newest response replaces an older one, but an ACK must not replace an unsent NAK.
void Responder::owe(Owed response) {
  if (response == Owed::kAck && owed_ != Owed::kNothing && owed_ != Owed::kDuplicateAck) return;
  owed_ = response;
  nak_leaves_ = wire::kNever;
}

void Responder::build_response(wire::Frame& frame, bool becn) {
  assert(has_response());
  wire::RoceHeaders headers = qp_.envelope;
  headers.ip.tos = wire::without_ecn(qp_.attr.traffic_class);  // not data: never marked
  headers.bth.opcode = wire::Opcode::kRcAcknowledge;
  headers.bth.becn = becn;
  headers.bth.psn = owed_ == Owed::kAck            ? expected_ - 1
                    : owed_ == Owed::kDuplicateAck ? duplicate_psn_
                                                   : expected_;
  headers.aeth.msn = msn_;
  switch (owed_) {
    case Owed::kRnrNak:
      counters_.add(Counter::kTxRnrNak);
      headers.aeth.kind = wire::AckKind::kRnrNak;
      headers.aeth.value = qp_.attr.min_rnr_timer;
      break;
    case Owed::kSequenceNak:
    case Owed::kFatalNak: {
      const bool fatal = owed_ == Owed::kFatalNak;
      counters_.add(fatal ? Counter::kTxNakFatal : Counter::kTxNakSequence);
      const auto code = fatal ? fatal_code_ : wire::NakCode::kSequenceError;
      headers.aeth.kind = wire::AckKind::kNak;
      headers.aeth.value = static_cast<std::uint8_t>(code);
      break;
    }
    default:
      counters_.add(Counter::kTxAck);
      headers.aeth.kind = wire::AckKind::kAck;
      headers.aeth.value = wire::Aeth::kNoCreditLimit;
      break;
  }
  owed_ = Owed::kNothing;
  build_without_payload(qp_.port, headers, frame);
}

void Responder::flush(NicOutput& out) {
  receives_.flush(out);
  message_ = Message::kNone;
  if (owed_ == Owed::kSequenceNak || owed_ == Owed::kRnrNak) owe(Owed::kNothing);
  owes_cnp_ = false;
  if (!std::exchange(has_failed_, false) && owed_ != Owed::kFatalNak) results_.clear_pending();
}

void Responder::check_consistent() const {
  assert(msn_ <= Psn::kMask);
  // A send in progress holds the receive it began with.
  assert(message_ != Message::kSend ||
         (receives_.can_complete() && offset_ <= receives_.capacity()));
  assert(nak_leaves_ == wire::kNever || owed_ == Owed::kSequenceNak);
  assert(message_ != Message::kWrite || offset_ <= write_.dma_length);
}

}  // namespace cepheus::rnic
