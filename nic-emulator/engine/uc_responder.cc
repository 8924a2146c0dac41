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
  if (info.first) {
    if (const auto reason = begin(headers, out)) {
      drop(*reason);
      return true;
    }
  } else if (message_ == Message::kNone) {
    drop(Counter::kRxDropIncomplete);
    return true;
  }
  bool failed = false;
  if (const auto reason = place(info, data, failed)) {
    drop(*reason);
    return true;
  }
  if (failed) {
    receives_.complete(WcStatus::kLocalProtection, out);
    message_ = Message::kNone;
    return false;
  }
  offset_ += data.size();
  if (!info.last) return true;
  message_ = Message::kNone;
  if (!info.send && !info.imm) {
    counters_.add(Counter::kRxSilent);
    return true;
  }
  if (!receives_.hold(out)) {  // a write's immediate takes one now
    counters_.add(Counter::kRxDropNoReceive);
    return true;
  }
  complete(headers, out);
  return true;
}

bool UcResponder::may_continue(const wire::OpcodeInfo& info, bool in_sequence) const {
  return in_sequence && !info.first && info.send == (message_ == Message::kSend);
}

// Returns the reason to drop the message, if any.
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
                       (reth.dma_length == 0 ||
                        qp_.port.memory.translate(reth.rkey, qp_.init.pd, reth.virtual_address,
                                                  reth.dma_length, kRemoteWrite) != nullptr);
  if (!allowed) return Counter::kRxDropAccess;
  message_ = Message::kWrite;
  write_ = reth;
  return std::nullopt;
}

// The same; `failed` is set if the receive's own memory can't be written.
std::optional<Counter> UcResponder::place(const wire::OpcodeInfo& info,
                                          std::span<const std::uint8_t> data, bool& failed) {
  const bool whole = data.size() == qp_.attr.path_mtu;
  const bool fits =
      info.last ? data.size() <= qp_.attr.path_mtu && (info.first || !data.empty()) : whole;
  if (!fits) return Counter::kRxDropLength;
  if (!info.send) return place_write(info.last, data);
  if (offset_ + data.size() > receives_.capacity()) return Counter::kRxDropLength;
  failed = !receives_.place(offset_, data);
  return std::nullopt;
}

std::optional<Counter> UcResponder::place_write(bool last, std::span<const std::uint8_t> data) {
  const std::uint64_t end = offset_ + data.size();
  if (last ? end != write_.dma_length : end >= write_.dma_length) return Counter::kRxDropLength;
  if (data.empty()) return std::nullopt;
  std::uint8_t* const to = qp_.port.memory.translate(
      write_.rkey, qp_.init.pd, write_.virtual_address + offset_, data.size(), kRemoteWrite);
  // Deregistered or unmapped in the meantime.
  if (to == nullptr || !qp_.port.memory.copy_in(write_.rkey, to, data.data(), data.size())) {
    return Counter::kRxDropAccess;
  }
  return std::nullopt;
}

void UcResponder::complete(const wire::RoceHeaders& headers, NicOutput& out) {
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  Completion& c = receives_.complete(WcStatus::kSuccess, out);
  c.opcode = info.write ? WcOpcode::kRecvWriteImm : WcOpcode::kRecv;
  c.byte_len = static_cast<std::uint32_t>(offset_);
  c.solicited = headers.bth.solicited;
  c.has_imm = info.imm;
  c.imm = info.imm ? headers.imm.value : 0;
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
  if (headers.deth.qkey != qp_.attr.qkey) {
    counters_.add(Counter::kRxDropQkey);
    return true;
  }
  if (data.size() > qp_.attr.path_mtu) {
    counters_.add(Counter::kRxDropLength);
    return true;
  }
  if (!receives_.hold(out)) {
    counters_.add(Counter::kRxDropNoReceive);
    return true;
  }
  if (kGrhBytes + data.size() > receives_.capacity()) {
    counters_.add(Counter::kRxDropLength);
    return true;
  }
  std::array<std::uint8_t, kGrhBytes> grh{};
  headers.ip.emit(std::span(grh).last<wire::Ipv4Header::kSize>());
  if (!receives_.place(0, grh) || !receives_.place(kGrhBytes, data)) {
    receives_.complete(WcStatus::kLocalProtection, out);
    return false;
  }
  const wire::OpcodeInfo& info = opcode_info(headers.bth.opcode);
  Completion& c = receives_.complete(WcStatus::kSuccess, out);
  c.byte_len = static_cast<std::uint32_t>(kGrhBytes + data.size());
  c.solicited = headers.bth.solicited;
  c.has_imm = info.imm;
  c.imm = info.imm ? headers.imm.value : 0;
  c.has_grh = true;
  c.source_qpn = headers.deth.source_qp;
  return true;
}

}  // namespace cepheus::rnic
