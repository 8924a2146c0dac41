// RC connections of simulated programs, from INIT to sending.
#pragma once

#include <stdexcept>
#include <type_traits>

#include "fabric-sim/core/host.h"
#include "libmcast/engine/remote_end.h"

namespace cepheus::sim {

inline constexpr wire::Psn kFirstPsn{0};

// IBTA's codes. Where the NIC's floor is longer than the ACK time-out, the floor holds.
struct QpTimers {
  std::uint8_t ack_timeout = 1;  // the shortest
  std::uint8_t min_rnr_timer = 1;
};

// What a simulated program can't do without; throws std::logic_error if it was refused: an error of
// the simulator, not of what it simulates.
template <typename T>
T require(wire::Result<T> result) {
  if (!result) throw std::logic_error("a simulated host: " + result.error().text);
  if constexpr (!std::is_void_v<T>) return *result;
}

// A queue pair in INIT, with room for so many work requests, that peers may WRITE through. Its sends
// complete on queue 1, its receives on 2.
rnic::Qpn create_qp(Host& host, std::uint32_t sends, std::uint32_t receives);
// From RESET to INIT.
void initialise(Host& host, rnic::Qpn qpn);
// From INIT to RTS. Both directions begin with `peer.start`; seven retries, RNRs without end.
void connect(Host& host, rnic::Qpn qpn, const mcast::RemoteEnd& peer, QpTimers timers = {});

}  // namespace cepheus::sim
