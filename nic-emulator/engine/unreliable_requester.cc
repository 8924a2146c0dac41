// One packet is built at a time, in order, and PSNs only count up: nothing is repeated, and no
// timer runs. A request completes with its last packet. A queue pair of UC has one destination;
// each request of UD has its own, and one packet.
#include "nic-emulator/engine/unreliable_requester.h"

#include <algorithm>
#include <cassert>

#include "wire/ecn.h"

namespace cepheus::rnic {

constexpr std::uint32_t kOwnQkey = 0x80000000;  // selects the QP's own (IBTA 10.2.5)

UnreliableRequester::UnreliableRequester(const QpContext& context, SendQueue& queue)
    : qp_(context), queue_(queue) {}

void UnreliableRequester::reset() {
  queue_.clear();
  psn_ = Psn();
  sent_packets_ = 0;
}

wire::Result<void> UnreliableRequester::post(const SendWr& wr) {
  const auto posted = queue_.post(wr, 0);
  if (!posted) return tl::unexpected(posted.error());
  return {};
}

wire::RoceHeaders UnreliableRequester::headers_of(const SendWqe& wqe) const {
  const bool first = sent_packets_ == 0;
  const bool last = sent_packets_ + 1 == wqe.packets;
  wire::RoceHeaders headers = qp_.envelope;
  headers.bth.psn = psn_;
  headers.bth.solicited = last && wqe.solicited;
  headers.imm.value = wqe.imm;
  if (qp_.init.type == QpType::kUc) {
    headers.bth.opcode = as_uc(opcode_of(wqe, first, last));
    headers.reth = {wqe.remote_address, wqe.rkey, wqe.length};
    return headers;
  }
  headers.bth.opcode = wqe.has_imm() ? wire::Opcode::kUdSendOnlyImm : wire::Opcode::kUdSendOnly;
  headers.bth.destination_qp = wqe.remote_qpn;
  headers.ip.destination = wqe.destination.ip;
  headers.ip.tos = wire::without_ecn(wqe.destination.traffic_class);
  headers.ip.ttl = wqe.destination.hop_limit;
  headers.deth = {(wqe.rkey & kOwnQkey) != 0 ? qp_.attr.qkey : wqe.rkey, qp_.qpn};
  return headers;
}

Build UnreliableRequester::build(std::span<std::uint8_t> buffer, wire::Frame& frame,
                                 NicOutput& out) {
  assert(can_send());
  const SendWqe& wqe = queue_.front();
  if (wqe.is_defective()) return Build::kFailed;
  const std::uint64_t offset = std::uint64_t{sent_packets_} * qp_.attr.path_mtu;
  const auto length =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(qp_.attr.path_mtu, wqe.length - offset));
  wire::RoceHeaders headers = headers_of(wqe);
  const Build built = build_with_payload(qp_.port, headers, length, buffer, frame, [&](auto bytes) {
    return queue_.read(queue_.head(), offset, bytes);
  });
  if (built != Build::kBuilt) return built;

  psn_ = psn_ + 1;
  if (++sent_packets_ == wqe.packets) {
    queue_.finish_front(out);
    sent_packets_ = 0;
  }
  return Build::kBuilt;
}

void UnreliableRequester::flush(std::optional<WcStatus> first, NicOutput& out) {
  queue_.flush(first, out);
  sent_packets_ = 0;
}

}  // namespace cepheus::rnic
