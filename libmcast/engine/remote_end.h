// The remote end of a member's queue pair.
#pragma once

#include "wire/sender_group.h"
#include "wire/types.h"

namespace cepheus::mcast {

// Both of the queue pair's PSNs begin with `start`.
struct RemoteEnd {
  wire::Ipv4 address;
  wire::Qpn qpn;
  wire::Psn start;
  std::uint32_t path_mtu = 0;  // bytes; 0: the device's
  std::uint32_t unit = 0;      // of a reduction group: a packet's bytes at most, by its leader
};

// A group's: destination address the McstID, destination QPN 0x1.
inline RemoteEnd group_end(wire::McstId id, std::uint16_t epoch, std::uint32_t path_mtu) {
  return {id, wire::kVirtualQpn, wire::group_start_psn(id, epoch), path_mtu};
}

}  // namespace cepheus::mcast
