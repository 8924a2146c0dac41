// The preload library's settings: environment variables, read when a device is first needed.
//
//   CEPHEUS_FABRIC   path of the fabric's socket; unset: the library only passes calls through
//   CEPHEUS_HOST     which host of the topology this process is: name, address or "#index"
//   CEPHEUS_HOSTS    if CEPHEUS_HOST is unset and a launcher gives this process a rank: the ranks'
//                    hosts, in their order, separated by commas
//                    both unset: "#rank", or the first free one if that is taken; the first free
//                    one for processes without a rank, or started by MPI_Comm_spawn
//   CEPHEUS_RANKS_PER_HOST
//                    K: ranks 0 to K-1 share a host, and so on; the first of each has its port, the
//                    others are refused
//   CEPHEUS_RESERVATION
//                    hexadecimal: the job's reservation of hosts, from its launcher
//   CEPHEUS_ATTACH_TIMEOUT_MS
//                    time limit for a fabric that runs and answers late
//   CEPHEUS_CONGESTION
//                    congestion control: "off", or "orig" or "hpcc" and changes to it
//                    (nic-emulator/engine/congestion_text.h)
//   CEPHEUS_NIC_PROFILE
//                    make of NIC whose manners this one has; unset: "ours"
//                    (nic-emulator/engine/nic_profile.h)
//   CEPHEUS_VERBOSE  1: log to stderr, and print the NIC's counters other than 0 at exit
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cepheus::verbs {

struct Environment {
  std::string fabric;  // empty: none configured
  std::string host;    // as HostPort::Options::host
  bool or_any = true;  // any other free host is acceptable
  // For a fabric that runs and answers late; 0: HostPort's.
  std::chrono::milliseconds attach_timeout{0};
  std::uint64_t reservation = 0;  // as HostPort::Options::reservation
  std::string refusal;            // reason why this process may not attach; mostly empty
  bool is_rank = false;           // of a launcher's job; its libraries report errors
  bool is_first_rank = false;     // 0
  std::string congestion;         // as written; empty: off
  std::string nic_profile;        // empty: the emulated NIC's own manners
  bool verbose = false;

  static Environment read();
};

// Whether a process listens on the Unix socket `path`. The listener does not notice: a datagram
// socket gets different errors from a living stream listener and from a dead one. Sets `reason` if
// not.
bool fabric_listens(const std::string& path, std::string& reason);

}  // namespace cepheus::verbs
