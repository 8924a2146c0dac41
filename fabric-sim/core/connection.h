// RC connections of simulated programs, from INIT to RTS, and requests over them.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>

#include "fabric-sim/core/host.h"
#include "libmcast/engine/remote_end.h"

namespace cepheus::sim {

inline constexpr wire::Psn kFirstPsn{0};

// IBTA's codes. If the NIC's minimum is longer than the ACK time-out, the minimum holds.
struct QpTimers {
  std::uint8_t ack_timeout = 1;  // the shortest
  std::uint8_t min_rnr_timer = 1;
};

// Unwraps a result that a simulated program needs; throws std::logic_error if the call failed: an
// error in the simulator.
template <typename T>
T require(wire::Result<T> result) {
  if (!result) throw std::logic_error("a simulated host: " + result.error().text);
  if constexpr (!std::is_void_v<T>) return *result;
}

// Creates a queue pair in INIT, with space for this number of work requests, that accepts WRITEs.
// Its sends complete on queue 1, its receives on 2.
rnic::Qpn create_qp(Host& host, std::uint32_t sends, std::uint32_t receives);
wire::Result<void> set_state(Host& host, rnic::Qpn qpn, rnic::QpState state);
// From RESET to INIT.
void initialise(Host& host, rnic::Qpn qpn);
// From INIT to RTS. Both directions begin with `peer.start`; seven retries, and unlimited RNR
// retries.
void connect(Host& host, rnic::Qpn qpn, const mcast::RemoteEnd& peer, QpTimers timers = {});

// Registers a program's memory at address 0 of its own address space.
rnic::MemoryKeys open_memory(Host& host, std::span<std::uint8_t> memory,
                             std::uint32_t access = rnic::kLocalWrite);
// Both post a request with one piece of memory, or none if the piece is empty.
void post_send(Host& host, rnic::Qpn qpn, const rnic::Sge& piece, rnic::SendWr wr);
void post_receive(Host& host, rnic::Qpn qpn, const rnic::Sge& piece, std::uint64_t wr_id = 0);
// Throws std::runtime_error if the work request has failed.
void require_success(const rnic::Completion& completion);

}  // namespace cepheus::sim
