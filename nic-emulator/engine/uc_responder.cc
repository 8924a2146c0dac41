// A message is in progress (SEND, WRITE) or none is. A gap in the PSNs, or the start of another
// message, ends it: what was placed stays in memory, the receive serves the next message, and the
// drop is counted by its reason. Only memory of the receive itself that can't be written fails the
// queue pair. UdResponder takes single packets, and puts the IPv4 header into the 40 bytes before
// the data.
#include "nic-emulator/engine/uc_responder.h"

#include <array>

namespace cepheus::rnic {

UcResponder::UcResponder(const QpContext& context, ReceiveQueue& receives)
    : qp_(context), counters_(context.port.counters), receives_(receives) {}

void UcResponder::reset() {
  receives_.clear();
  expected_ = Psn();
  message_ = Message::kNone;
  offset_ = 0;
}

bool UcResponder::on_request(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                             NicOutput& out) {
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  const bool in_sequence = headers.bth.psn == expected_;
  if (!in_sequence) counters_.add(Counter::kRxOutOfSequence);
  expected_ = headers.bth.psn + 1;
  // A gap or another message's start ends the message in progress; its receive serves the next one
  // (IBTA 9.8.2.2.2).
  if (message_ != Message::kNone && !may_continue(info, in_sequence)) {
    drop(Counter::kRxDropIncomplete);
  }
  bool failed = false;
  if (const auto reason = take(headers, data, failed, out)) drop(*reason);
  return !failed;
}

// Returns the reason to drop the message, if any. `failed`: the receive's own memory can't be
// written.
std::optional<Counter> UcResponder::take(const wire::RoceHeaders& headers,
                                         std::span<const std::uint8_t> data, bool& failed,
                                         NicOutput& out) {
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  if (info.first) {
    if (const auto reason = begin(headers, out)) return reason;
  } else if (message_ == Message::kNone) {
    return Counter::kRxDropIncomplete;
  }
  if (const auto reason = place(info, data, failed)) return reason;
  if (failed) receives_.complete(WcStatus::kLocalProtection, out);
  if (failed || info.last) message_ = Message::kNone;
  if (failed) return std::nullopt;
  offset_ += data.size();
  if (!info.last) return std::nullopt;
  if (!info.send && !info.imm) {
    counters_.add(Counter::kRxSilent);
    return std::nullopt;
  }
  if (!receives_.hold(out)) return Counter::kRxDropNoReceive;  // a write's immediate takes one now
  receives_.complete_message(headers, offset_, out);
  return std::nullopt;
}

bool UcResponder::may_continue(const wire::OpcodeInfo& info, bool in_sequence) const {
  return in_sequence && !info.first && info.send == (message_ == Message::kSend);
}

// The same.
std::optional<Counter> UcResponder::begin(const wire::RoceHeaders& headers, NicOutput& out) {
  const bool send = opcode_info(headers.bth.opcode).send;
  offset_ = 0;
  if (send) {
    if (!receives_.hold(out)) return Counter::kRxDropNoReceive;
    message_ = Message::kSend;
    return std::nullopt;
  }
  const wire::Reth& reth = headers.reth;
  const bool allowed = (qp_.attr.access & kRemoteWrite) != 0 && reth.dma_length <= kMaxMessage &&
                       qp_.may_access(reth, kRemoteWrite);
  if (!allowed) return Counter::kRxDropAccess;
  message_ = Message::kWrite;
  write_ = reth;
  return std::nullopt;
}

std::optional<Counter> UcResponder::place(const wire::OpcodeInfo& info,
                                          std::span<const std::uint8_t> data, bool& failed) {
  const bool whole = data.size() == qp_.attr.path_mtu;
  const bool fits =
      info.last ? data.size() <= qp_.attr.path_mtu && (info.first || !data.empty()) : whole;
  if (!fits) return Counter::kRxDropLength;
  const std::uint64_t end = offset_ + data.size();
  if (info.send) {
    if (end > receives_.capacity()) return Counter::kRxDropLength;
    failed = !receives_.place(offset_, data);
    return std::nullopt;
  }
  if (info.last ? end != write_.dma_length : end >= write_.dma_length)
    return Counter::kRxDropLength;
  return qp_.store(write_, offset_, data) ? std::nullopt : std::optional(Counter::kRxDropAccess);
}

void UcResponder::drop(Counter reason) {
  counters_.add(reason);
  message_ = Message::kNone;
}

void UcResponder::flush(NicOutput& out) {
  receives_.flush(out);
  message_ = Message::kNone;
}

bool UdResponder::on_datagram(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                              NicOutput& out) {
  if (const auto reason = objection(headers, data.size(), out)) {
    counters_.add(*reason);
    return true;
  }
  std::array<std::uint8_t, kGrhBytes> grh{};
  headers.ip.emit(std::span(grh).last<wire::Ipv4Header::kSize>());
  if (!receives_.place(0, grh) || !receives_.place(kGrhBytes, data)) {
    receives_.complete(WcStatus::kLocalProtection, out);
    return false;
  }
  Completion& c = receives_.complete_message(headers, kGrhBytes + data.size(), out);
  c.has_grh = true;
  c.source_qpn = headers.deth.source_qp;
  return true;
}

std::optional<Counter> UdResponder::objection(const wire::RoceHeaders& headers, std::size_t bytes,
                                              NicOutput& out) {
  if (headers.deth.qkey != qp_.attr.qkey) return Counter::kRxDropQkey;
  if (bytes > qp_.attr.path_mtu) return Counter::kRxDropLength;
  if (!receives_.hold(out)) return Counter::kRxDropNoReceive;
  if (kGrhBytes + bytes > receives_.capacity()) return Counter::kRxDropLength;
  return std::nullopt;
}

}  // namespace cepheus::rnic
