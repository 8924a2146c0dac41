// RC connections of simulated programs, from INIT to sending, and the requests that go over them.
#pragma once

#include <cstdint>
#include <span>
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

// Registers a program's memory, at address 0 of an address space of its own.
rnic::MemoryKeys open_memory(Host& host, std::span<std::uint8_t> memory,
                             std::uint32_t access = rnic::kLocalWrite);
// Both post a request of one piece of memory, or of none if the piece is empty.
void post_send(Host& host, rnic::Qpn qpn, const rnic::Sge& piece, rnic::SendWr wr);
void post_receive(Host& host, rnic::Qpn qpn, const rnic::Sge& piece, std::uint64_t wr_id = 0);
// Throws std::runtime_error if the work request has failed.
void require_success(const rnic::Completion& completion);

}  // namespace cepheus::sim
