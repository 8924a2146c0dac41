// A request that a program could have known to be wrong is refused at once: too many pieces, a
// datagram without an address, a READ without max_rd_atomic. What ConnectX finds later (an
// operation that the service lacks, a message that is too long) is queued without data as
// defective, and fails in its turn. Inline data is copied here; other data is read from memory when
// its packet is built, so the program may not change it before the completion.
#include "nic-emulator/engine/send_queue.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "nic-emulator/engine/memory_table.h"

namespace cepheus::rnic {
namespace {

using wire::Opcode;

constexpr std::uint64_t kAtomicBytes = 8;

bool gives(QpType type, SendOp op) {
  return type == QpType::kRc || op <= (type == QpType::kUc ? SendOp::kWriteImm : SendOp::kSendImm);
}

// By SendOp.
constexpr std::array kCompletions{WcOpcode::kSend,        WcOpcode::kSend,    WcOpcode::kWrite,
                                  WcOpcode::kWrite,       WcOpcode::kSend,    WcOpcode::kRead,
                                  WcOpcode::kCompareSwap, WcOpcode::kFetchAdd};
static_assert(kCompletions.size() == static_cast<std::size_t>(SendOp::kFetchAdd) + 1);

}  // namespace

wire::Opcode opcode_of(const SendWqe& wqe, bool first, bool last) {
  const bool imm = wqe.has_imm();
  const bool invalidate = wqe.op == SendOp::kSendInvalidate;
  if (wqe.is_write()) {
    if (first && last) return imm ? Opcode::kRcWriteOnlyImm : Opcode::kRcWriteOnly;
    if (first) return Opcode::kRcWriteFirst;
    if (last) return imm ? Opcode::kRcWriteLastImm : Opcode::kRcWriteLast;
    return Opcode::kRcWriteMiddle;
  }
  if (first && last && invalidate) return Opcode::kRcSendOnlyInvalidate;
  if (last && invalidate) return Opcode::kRcSendLastInvalidate;
  if (first && last) return imm ? Opcode::kRcSendOnlyImm : Opcode::kRcSendOnly;
  if (first) return Opcode::kRcSendFirst;
  if (last) return imm ? Opcode::kRcSendLastImm : Opcode::kRcSendLast;
  return Opcode::kRcSendMiddle;
}

SendQueue::SendQueue(const QpContext& qp)
    : WorkQueue(qp.init.cap.max_send_wr, qp.init.cap.max_send_sge, qp.init.cap.max_inline),
      qp_(qp) {}

// As ConnectX: operations that the service lacks, and messages that are too long.
WcStatus SendQueue::defect_of(const SendWr& wr, std::uint64_t length) const {
  const QpType type = qp_.init.type;
  if (!gives(type, wr.op)) return WcStatus::kLocalQpOperation;
  const std::uint64_t most = type == QpType::kUd ? qp_.attr.path_mtu : kMaxMessage;
  return length > most ? WcStatus::kLocalLength : WcStatus::kSuccess;
}

wire::Result<void> SendQueue::check(const SendWr& wr, std::uint64_t length) const {
  if (wr.inline_data && length > qp_.init.cap.max_inline) {
    return wire::invalid("inline data longer than the QP's max_inline");
  }
  if (!wr.inline_data && wr.sges.size() > qp_.init.cap.max_send_sge) {
    return wire::invalid("more SGEs than the QP's max_send_sge");
  }
  if (defect_of(wr, length) != WcStatus::kSuccess) return {};
  if (qp_.init.type == QpType::kUd && wr.destination.ip.is_unset()) {
    return wire::invalid("a datagram needs an address: set wr.ud.ah");
  }
  if (wr.op < SendOp::kRead) return {};
  if (wr.inline_data) return wire::invalid("READ and atomics return data: do not send inline");
  if (qp_.attr.max_rd_atomic == 0) {
    return wire::invalid(
        "READ and atomics need max_rd_atomic above 0: set it on the "
        "way to rts");
  }
  if (wr.op != SendOp::kRead && length != kAtomicBytes) {
    return wire::invalid("an atomic returns 8 bytes: give it SGEs of 8 bytes");
  }
  return {};
}

wire::Result<std::uint64_t> SendQueue::post(const SendWr& wr, std::uint64_t first_packet) {
  std::uint64_t length = total_length(wr.sges);
  if (auto ok = check(wr, length); !ok) return tl::unexpected(ok.error());
  if (full()) {
    return wire::fail(wire::ErrorCode::kAgain, "send queue full: poll completions first");
  }
  const WcStatus defect = defect_of(wr, length);
  if (defect != WcStatus::kSuccess) length = 0;
  const std::uint32_t mtu = qp_.attr.path_mtu;
  const bool datagram = qp_.init.type == QpType::kUd;
  SendWqe wqe;
  wqe.wr_id = wr.wr_id;
  wqe.remote_address = wr.remote_address;
  wqe.compare_add = wr.compare_add;
  wqe.swap = wr.swap;
  wqe.first_packet = first_packet;
  wqe.length = static_cast<std::uint32_t>(length);
  wqe.packets = std::max(1u, static_cast<std::uint32_t>((length + mtu - 1) / mtu));
  wqe.rkey = datagram ? wr.qkey : wr.rkey;
  wqe.imm = wr.op == SendOp::kSendInvalidate ? wr.invalidate_rkey : wr.imm;
  wqe.destination = wr.destination;
  wqe.remote_qpn = wr.remote_qpn;
  wqe.op = wr.op;
  wqe.signaled = wr.signaled || qp_.init.signal_all;
  wqe.solicited = wr.solicited;
  wqe.inline_data = wr.inline_data;
  wqe.fence = wr.fence;
  wqe.defect = defect;
  if (!wr.inline_data || wqe.is_defective()) {
    // A defective one may have any number of pieces of inline data, and sends none.
    push(wqe, wqe.is_defective() ? std::span<const Sge>() : wr.sges);
    return wqe.end_packet();
  }
  std::uint8_t* to = push_inline(wqe);
  for (const Sge& sge : wr.sges) {
    if (sge.length == 0) continue;
    std::memcpy(to, reinterpret_cast<const void*>(sge.address), sge.length);
    to += sge.length;
  }
  return wqe.end_packet();
}

bool SendQueue::read(std::uint64_t position, std::uint64_t offset,
                     std::span<std::uint8_t> out) const {
  if (!at(position).inline_data) {
    return gather(qp_.port.memory, qp_.init.pd, sges(position), offset, out);
  }
  if (!out.empty()) std::memcpy(out.data(), inline_bytes(position) + offset, out.size());
  return true;
}

void SendQueue::finish_front(NicOutput& out) {
  if (front().signaled) {
    complete(front(), WcStatus::kSuccess, out);
  } else {
    ++silent_;
  }
  pop();
}

void SendQueue::complete(const SendWqe& wqe, WcStatus status, NicOutput& out) {
  Completion c;
  c.cq = qp_.init.send_cq;
  c.requests = std::exchange(silent_, 0) + 1;
  c.owner = qp_.init.send_owner;
  c.wr_id = wqe.wr_id;
  c.status = status;
  c.opcode = kCompletions[static_cast<std::size_t>(wqe.op)];
  c.byte_len = status == WcStatus::kSuccess ? wqe.length : 0;
  c.qpn = qp_.qpn;
  out.completions.push_back(c);
}

void SendQueue::complete_flushed(const SendWr& wr, NicOutput& out) {
  SendWqe wqe;
  wqe.wr_id = wr.wr_id;
  wqe.op = wr.op;
  complete(wqe, WcStatus::kFlush, out);
}

void SendQueue::flush(std::optional<WcStatus> first, NicOutput& out) {
  for (; !empty(); pop()) {
    complete(front(), first.value_or(WcStatus::kFlush), out);
    first.reset();
  }
}

}  // namespace cepheus::rnic
