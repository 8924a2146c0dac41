// Every kind of frame that a host may send without end.
#pragma once

#include <memory>

#include "tests/hostile/place.h"

namespace cepheus::hostile {

inline constexpr std::size_t kLarge = 4096;  // bytes of a packet
inline constexpr wire::McstId kNoGroup{198, 18, 200, 1};

using Made = std::unique_ptr<Attack>;

// RoCE packets of a connection that is not there, at a host: SENDs, acknowledgements, CNPs.
Made flood_with_roce(const Place& place, wire::Ipv4 to, wire::Opcode opcode, std::size_t bytes);
// SENDs in the name of another host.
Made flood_in_anothers_name(const Place& place);
// Data to a group that there is not.
Made flood_unknown_group(const Place& place);
// UDP to a port that nobody listens at; with the registration port: none that can be read.
Made flood_with_datagrams(const Place& place, wire::Ipv4 to, std::uint16_t udp_port,
                          std::size_t bytes);
Made flood_with_arp(const Place& place);
// REGISTERs of ever new groups with the victim in them.
Made flood_with_new_groups(const Place& place);
// One REGISTER, again and again, that names as many members as a datagram holds.
Made flood_with_repeats(const Place& place);
// Data to a group whose members, the victim among them, were never asked.
Made flood_own_group(const Place& place);

}  // namespace cepheus::hostile
