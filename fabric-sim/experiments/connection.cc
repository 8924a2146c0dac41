#include "fabric-sim/experiments/connection.h"

namespace cepheus::sim {

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
