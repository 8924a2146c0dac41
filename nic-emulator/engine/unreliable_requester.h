// The requester half of UC and UD: a sent packet is complete, without an answer (IBTA vol. 1,
// 9.8.2, 9.8.3).
#pragma once

#include "nic-emulator/engine/packet_out.h"
#include "nic-emulator/engine/send_queue.h"

namespace cepheus::rnic {

class UnreliableRequester {
 public:
  UnreliableRequester(const QpContext& context, SendQueue& queue);

  void start(Psn first) { psn_ = first; }  // RTR -> RTS
  void reset();
  wire::Result<void> post(const SendWr& wr);  // errors: see SendQueue

  // In SQD only a message already begun continues.
  bool can_send() const {
    return !queue_.empty() &&
           (qp_.state == QpState::kRts || (qp_.state == QpState::kSqd && sent_packets_ != 0));
  }
  bool drained() const { return sent_packets_ == 0; }
  // Precondition: can_send(). kFailed: failure() tells why; the send queue must fail.
  Build build(std::span<std::uint8_t> buffer, wire::Frame& frame, NicOutput& out);
  WcStatus failure() const {
    return queue_.front().is_defective() ? queue_.front().defect : WcStatus::kLocalProtection;
  }
  void flush(std::optional<WcStatus> first, NicOutput& out);

  Psn next_psn() const { return psn_; }

 private:
  wire::RoceHeaders headers_of(const SendWqe& wqe) const;

  const QpContext& qp_;
  SendQueue& queue_;
  Psn psn_;
  std::uint32_t sent_packets_ = 0;  // of the oldest message
};

}  // namespace cepheus::rnic
