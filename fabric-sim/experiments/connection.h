// RC connections of simulated programs, from INIT to sending.
#pragma once

#include <stdexcept>
#include <type_traits>

#include "fabric-sim/core/host.h"

namespace cepheus::sim {

inline constexpr wire::Psn kFirstPsn{0};
inline constexpr std::uint8_t kShortestTimeout = 1;  // IBTA's code; the NIC's floor holds

// What an experiment can't do without; throws std::logic_error if it was refused.
template <typename T>
T require(wire::Result<T> result) {
  if (!result) throw std::logic_error("a simulated host: " + result.error().text);
  if constexpr (!std::is_void_v<T>) return *result;
}

// A queue pair in INIT, with room for so many work requests each way, that peers may WRITE through.
// Its sends complete on queue 1, its receives on 2.
rnic::Qpn create_qp(Host& host, std::uint32_t depth);

// Precondition: the queue pair is in INIT. Both directions begin with `start`; seven retries, RNRs
// without end. `timeout_code`: IBTA's; the NIC's floor holds where it is longer.
void connect(Host& host, rnic::Qpn qpn, wire::Ipv4 peer, rnic::Qpn peer_qpn, wire::Psn start,
             std::uint8_t timeout_code);

}  // namespace cepheus::sim
