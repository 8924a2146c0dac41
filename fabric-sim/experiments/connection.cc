#include "fabric-sim/experiments/connection.h"

namespace cepheus::sim {

rnic::Qpn create_qp(Host& host, std::uint32_t depth) {
  rnic::QpInit init;
  init.pd = 1;
  init.send_cq = 1;
  init.recv_cq = 2;
  init.cap.max_send_wr = init.cap.max_recv_wr = depth;
  const rnic::Qpn qpn = require(host.create_qp(init));
  rnic::QpAttr attr;
  attr.state = rnic::QpState::kInit;
  attr.access = rnic::kLocalWrite | rnic::kRemoteWrite;
  require(host.modify_qp(qpn, attr, rnic::kAttrState | rnic::kAttrAccess));
  return qpn;
}

void connect(Host& host, rnic::Qpn qpn, wire::Ipv4 peer, rnic::Qpn peer_qpn, wire::Psn start,
             std::uint8_t timeout_code) {
  rnic::QpAttr attr;
  attr.state = rnic::QpState::kRtr;
  attr.remote_ip = peer;
  attr.remote_qpn = peer_qpn;
  attr.path_mtu = host.nic().config().max_mtu;
  attr.rq_psn = start;
  attr.min_rnr_timer = 1;
  require(host.modify_qp(qpn, attr,
                         rnic::kAttrState | rnic::kAttrAddress | rnic::kAttrRemoteQpn |
                             rnic::kAttrPathMtu | rnic::kAttrRqPsn | rnic::kAttrMinRnrTimer));
  attr.state = rnic::QpState::kRts;
  attr.sq_psn = start;
  attr.timeout_code = timeout_code;
  attr.retry_count = 7;
  attr.rnr_retry = 7;
  require(host.modify_qp(qpn, attr,
                         rnic::kAttrState | rnic::kAttrSqPsn | rnic::kAttrTimeout |
                             rnic::kAttrRetryCount | rnic::kAttrRnrRetry));
}

}  // namespace cepheus::sim
