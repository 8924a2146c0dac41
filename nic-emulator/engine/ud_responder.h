// The responder half of unreliable datagrams: one packet, one receive, from anybody who knows the
// queue key (IBTA vol. 1, 9.8.3, Annex A17.4.5).
#pragma once

#include "nic-emulator/engine/receive_queue.h"
#include "wire/roce.h"

namespace cepheus::rnic {

class UdResponder {
 public:
  UdResponder(const QpContext& context, ReceiveQueue& receives)
      : qp_(context), counters_(context.port.counters), receives_(receives) {}

  // `data` is the payload without pad. False: a receive failed, the QP must break down.
  bool on_datagram(const wire::RoceHeaders& headers, std::span<const std::uint8_t> data,
                   NicOutput& out);

 private:
  const QpContext& qp_;
  Counters& counters_;
  ReceiveQueue& receives_;
};

}  // namespace cepheus::rnic
