// Chooses the GID of a port by the kernel's route to the groups' addresses.
#pragma once

#include <span>
#include <string>

#include "libmcast/failure.h"
#include "wire/types.h"

namespace cepheus::mcast {

// A RoCE v2 GID over IPv4.
struct Gid {
  int index = 0;
  wire::Ipv4 address;
  unsigned interface = 0;  // index of its network interface, perhaps a VLAN's or a bond's; 0: none
};

// The GID whose packets to the groups leave by its own interface. A queue pair sends by the GID's
// interface, whatever the route says, and registration by the route. Of several on that interface,
// the one with the kernel's preferred source address. A GID without an interface is the emulated
// NIC's, which asks no kernel. Error: each GID's route, and the remedy.
Expected<Gid> choose_by_route(std::span<const Gid> gids, const wire::Ipv4Prefix& groups);

// How packets from the GID's address to `group` leave: interface, next hop and its neighbour entry.
std::string describe_way(const Gid& gid, wire::Ipv4 group);

}  // namespace cepheus::mcast
