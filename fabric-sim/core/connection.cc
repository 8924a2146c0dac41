#include "fabric-sim/core/connection.h"

#include <string>

namespace cepheus::sim {

rnic::Qpn create_qp(Host& host, std::uint32_t sends, std::uint32_t receives) {
  rnic::QpInit init;
  init.pd = 1;
  init.send_cq = 1;
  init.recv_cq = 2;
  init.cap.max_send_wr = sends;
  init.cap.max_recv_wr = receives;
  const rnic::Qpn qpn = require(host.create_qp(init));
  initialise(host, qpn);
  return qpn;
}

wire::Result<void> set_state(Host& host, rnic::Qpn qpn, rnic::QpState state) {
  rnic::QpAttr attr;
  attr.state = state;
  return host.modify_qp(qpn, attr, rnic::kAttrState);
}

void initialise(Host& host, rnic::Qpn qpn) {
  rnic::QpAttr attr;
  attr.state = rnic::QpState::kInit;
  attr.access = rnic::kLocalWrite | rnic::kRemoteWrite;
  require(host.modify_qp(qpn, attr, rnic::kAttrState | rnic::kAttrAccess));
}

void connect(Host& host, rnic::Qpn qpn, const mcast::RemoteEnd& peer, QpTimers timers) {
  rnic::QpAttr attr;
  attr.state = rnic::QpState::kRtr;
  attr.remote_ip = peer.address;
  attr.remote_qpn = peer.qpn;
  attr.path_mtu = peer.path_mtu != 0 ? peer.path_mtu : host.nic().config().max_mtu;
  attr.rq_psn = peer.start;
  attr.min_rnr_timer = timers.min_rnr_timer;
  require(host.modify_qp(qpn, attr,
                         rnic::kAttrState | rnic::kAttrAddress | rnic::kAttrRemoteQpn |
                             rnic::kAttrPathMtu | rnic::kAttrRqPsn | rnic::kAttrMinRnrTimer));
  attr.state = rnic::QpState::kRts;
  attr.sq_psn = peer.start;
  attr.timeout_code = timers.ack_timeout;
  attr.retry_count = 7;
  attr.rnr_retry = 7;
  require(host.modify_qp(qpn, attr,
                         rnic::kAttrState | rnic::kAttrSqPsn | rnic::kAttrTimeout |
                             rnic::kAttrRetryCount | rnic::kAttrRnrRetry));
}

rnic::MemoryKeys open_memory(Host& host, std::span<std::uint8_t> memory, std::uint32_t access) {
  return require(host.nic().register_memory(1, memory.data(), memory.size(), 0, access));
}

void post_send(Host& host, rnic::Qpn qpn, const rnic::Sge& piece, rnic::SendWr wr) {
  if (piece.length > 0) wr.sges = {&piece, 1};
  require(host.post_send(qpn, wr));
}

void post_receive(Host& host, rnic::Qpn qpn, const rnic::Sge& piece, std::uint64_t wr_id) {
  rnic::RecvWr wr{wr_id, {}};
  if (piece.length > 0) wr.sges = {&piece, 1};
  require(host.post_recv(qpn, wr));
}

void require_success(const rnic::Completion& completion) {
  if (completion.status == rnic::WcStatus::kSuccess) return;
  throw std::runtime_error("a simulated work request ended with " +
                           std::string(rnic::to_string(completion.status)));
}

}  // namespace cepheus::sim
